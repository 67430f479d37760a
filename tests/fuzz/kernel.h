/* SPDX-License-Identifier: Apache-2.0
 *
 * The far side of the file system, in place of a kernel: makes raw FUSE requests and checks what is
 * answered. It keeps the books that a kernel keeps: which nodes and open files it was told of, and
 * which requests are under way. Each is answered exactly once, in the form that its operation
 * has; and no two open files hold a flock(2) or an exclusive open of one lock that exclude
 * each other.
 *
 * What a kernel never does is not done here: a file that was not opened is not used, and no node
 * is forgotten more often than it was looked up.
 */
#ifndef FUZZ_KERNEL_H
#define FUZZ_KERNEL_H

#include <linux/fuse.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct filesystem;

enum { KERNEL_NODES = 4096, KERNEL_FILES = 24, KERNEL_REQUESTS = 48 };

struct kernel_node {
	uint64_t node;
	uint64_t lookups;
	uint64_t number; /* st_ino: the same for all nodes of one lock */
};

enum kernel_hold { KERNEL_FREE, KERNEL_SHARED, KERNEL_EXCLUSIVE };

struct kernel_file {
	uint64_t fh;
	uint64_t node;
	uint64_t number;
	uint64_t serial; /* no other one had it */
	uint32_t opener; /* the thread of an exclusive open on its way; 0: none */
	bool asked;	 /* it has asked for the attributes */
	bool polls;	 /* it is to be told when there is news */
	bool failed;	 /* and got an error: the open file goes */
	bool directory;
	bool lasts;		      /* a lock file, or a directory of those: see kernel_lasts() */
	bool exclusive;		      /* open(2) waits for the lock */
	bool forgotten;		      /* what it shows went with a file system that was killed */
	enum kernel_hold flock, open; /* what is known to be held */
};

struct kernel_request {
	uint64_t unique;
	uint32_t opcode;
	uint64_t node;
	uint64_t other_node; /* of RENAME: the new directory; 0: none */
	uint32_t pid;
	uint32_t size;		/* of READ, READDIR, WRITE, IOCTL */
	uint32_t flags;		/* of open(2) */
	uint64_t file;		/* serial; 0: of none */
	enum kernel_hold wants; /* flock(2) */
	uint32_t uid;
	bool barred; /* must be refused */
	bool killed; /* its answer is not taken: -ENOENT */
	bool interrupted;
};

struct kernel {
	struct filesystem *filesystem;
	struct kernel_node nodes[KERNEL_NODES];
	size_t node_count;
	struct kernel_file files[KERNEL_FILES];
	size_t file_count;
	struct kernel_request requests[KERNEL_REQUESTS]; /* under way */
	size_t request_count;
	uint64_t last_unique, last_serial;
	bool cut_off, resuming;
	uint32_t barred; /* a user who may make and take away no name; 0: none */
	bool steered; /* claims may be taken away at any time: who holds is not checked any more */
};

/* Who asks, and how. A thread of an odd number is in a foreign pid namespace: the file system is
 * told 0. */
struct kernel_caller {
	uint32_t pid, uid;
	bool killed;		/* before the answer comes */
	bool interrupted_early; /* its signal comes before the request is read */
};

/* Greets the file system, which has a session. One kernel at a time. */
void kernel_init(struct kernel *kernel, struct filesystem *filesystem);

/* The file system is killed: nothing that it says reaches the kernel any more, nor is it known that
 * it had. */
void kernel_cut_off(struct kernel *kernel);

/* Another one goes on, which has a session: greets it. It may answer once more what was answered,
 * until kernel_resumed(). */
void kernel_go_on(struct kernel *kernel, struct filesystem *filesystem);
void kernel_resumed(struct kernel *kernel);

/* Whether the node is of `style = file`: a lock file, or a directory of those.
 * Requests about them may wait for the store, also those that lock a directory. */
bool kernel_lasts(const struct kernel *kernel, uint64_t node);

/* The open that the thread is in, which has not returned; NULL if it is in none. */
struct kernel_file *kernel_opening(struct kernel *kernel, uint32_t pid);

/* Sends a request with a body in up to two parts. `file` may be NULL. Where the books are
 * full nothing is sent; nor while a request under way has the directory locked. */
void kernel_send(struct kernel *kernel, const struct kernel_caller *caller, uint32_t opcode,
		 uint64_t node, const struct kernel_file *file, const void *body, size_t body_bytes,
		 const void *more, size_t more_bytes);

/* A signal for the caller of a request under way; once for each. */
void kernel_interrupt(struct kernel *kernel, struct kernel_request *request);

/* Closes the file, by RELEASE or RELEASEDIR, unless a request through it is under way: then the
 * kernel keeps it. */
void kernel_release(struct kernel *kernel, const struct kernel_caller *caller,
		    struct kernel_file *file);

/* Drops references to a node. */
void kernel_forget(struct kernel *kernel, struct kernel_node *node, uint64_t lookups);

/* The session was lost: nobody holds anything. */
void kernel_lose_holds(struct kernel *kernel);

#endif
