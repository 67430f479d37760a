/* SPDX-License-Identifier: Apache-2.0
 *
 * Names in directories of `style = file`: lock files, also directories and
 * symbolic links. Such a name exists for all hosts or for none (lockfile/lockfiles.h). A name
 * that this host has made is known here until the name is gone; each request asks the store again
 * for another host's name, and for the content of both: struct lockfile has what the store said
 * last.
 *
 * The form of the text that the store has of a lock file is in lockfile_text.h.
 *
 * Hard links are in a ring. The inode of a name that was taken away, but is open, stays in the
 * ring: what is written there is in the others, too. rename(2) needs that: it gives the content a
 * new name, with an inode of its own, and takes the old name away.
 *
 * The lock belongs to the content: all lock files of a ring have one queue, also on other hosts,
 * which know no ring. The queue is that of the path at which the content was made first. So what is
 * made anew by a name shares its lock with all that were made by that name before: those that were
 * removed, and may be open still, and those that were renamed.
 *
 * Loop thread only; nothing here blocks.
 */
#ifndef DLOCKFS_FILES_LOCKFILE_H
#define DLOCKFS_FILES_LOCKFILE_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/types.h>

#include "journal/text.h"

struct asking;
struct inode;
struct late;

/* Of an id, with its NUL. */
#define LOCKFILE_ID_BYTES 33

/* Of the mode of a name: its kind, and who may do what. Whoever can write to the store decides
 * whose a name is, so that none is setuid or setgid. Nor is it sticky, as in a lock directory. */
#define LOCKFILE_MODE_BITS (S_IFMT | 0777)

/* An open(2) that creates the name, and has not returned. */
struct lockfile_opening {
	pid_t thread; /* which called open(2); 0: of another pid namespace */
	uid_t uid;
	gid_t gid;
	int flags;
	bool decided;
	int error;	       /* then: 0, or the errno for open(2) */
	struct asking *asking; /* until then: ops/asking.h */
};

/* The process that made the name. */
struct lockfile_maker {
	pid_t pid;	/* 0: unknown */
	uint64_t start; /* when the process started: process_start(); 0: not needed, or unknown */
	int pidfd;	/* -1: not needed, or unknown */
	bool ended;	/* so the name is to go (file_owner) */
	char command[16];
};

struct lockfile {
	struct inode *inode;
	bool is_named; /* the inode has a name */
	char *path;    /* in the store: claim/file_path.h */
	char *queue;   /* path of the queue of the lock in the store; stays while the inode has its
			  id */
	bool is_ours;  /* this host has made the name, and the name stands */
	char id[LOCKFILE_ID_BYTES];
	uint64_t number;
	nlink_t links;	  /* of a name of another host */
	uint32_t version; /* of a name of another host, as it was read last */
	char who[128];	  /* who made a name of another host */
	bool dates;	  /* mtime is not when the store had the text */
	uint64_t lost_by; /* the event (handles/telling.h) that took the name away; 0: none has */
	bool is_taken;	  /* somebody else has taken the name away */
	bool is_linked;	  /* there are, or were, others in the ring */
	bool is_moved;	  /* a directory that was renamed with names in it */
	bool is_linking;  /* link(2) makes the name, and the store has not decided */
	struct lockfile_maker maker;
	struct lockfile *prev, *next;	  /* the ring of links: this one, if it is alone */
	struct lockfile_opening *opening; /* NULL: there is none */
	struct late *late; /* ops/late.h: the text is stored late; NULL: another one of the ring may
			      have that */
	bool is_touched; /* a directory in which names have come or gone: its times are stored late
			  */
	int64_t stored_ms; /* when this host last changed the text in the store; 0: never, and */
	struct timespec stored; /* that time by the servers' clock */
};

/* What the inode has as a lock file with that path, alone in its ring and not of this host yet. The
 * path becomes the lock file's, also after an error, and may be NULL: out of memory. Returns NULL
 * when out of memory. */
struct lockfile *lockfile_create(struct inode *inode, char *path);

/* Frees the lock file, which leaves its ring. NULL is fine. */
void lockfile_free(struct lockfile *lockfile);

/* The lock is that of the queue with that path; NULL: that of the lock file's own name. Returns 0
 * or -ENOMEM. */
int lockfile_set_queue(struct lockfile *lockfile, const char *queue);

/* Whether the lock is another one than that of the lock file's own name. */
bool lockfile_has_other_queue(const struct lockfile *lockfile);

/* The lock file has the content of the other one, too. Both inodes are to be marked. */
void lockfile_join(struct lockfile *lockfile, struct lockfile *other);

/* What is with one lock file of the ring: its member `late`. */
struct late *lockfile_late(const struct lockfile *lockfile);

/* The number of names in the ring. */
nlink_t lockfile_links(const struct lockfile *lockfile);

/* The number of names in the ring of a lock file of this host, with those that link(2) is about to
 * make. */
nlink_t lockfile_links_soon(const struct lockfile *lockfile);

/* How many bytes the text may have, whatever `text_limit` is: with that many, all names of the
 * content can be replaced in one transaction. */
off_t lockfile_text_limit(const struct lockfile *lockfile);

/* Makes a new id, for a name that is to be made. Returns false if there is no randomness. */
bool lockfile_renew_id(struct lockfile *lockfile);

/* The number of a content whose only name, or first one, has that id. */
uint64_t lockfile_number(const char *id);

/* Writes the lock file as keys of the inode's line, for another process. */
void lockfile_save(const struct lockfile *lockfile, FILE *out);

/* Makes the lock file that the inode's line describes; *ret is set also after an error, if there is
 * memory for it. Returns 0 or -errno. */
int lockfile_restore(struct inode *inode, struct state_reader *in, struct lockfile **ret);

#endif
