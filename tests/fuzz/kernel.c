/* SPDX-License-Identifier: Apache-2.0 */
#include "kernel.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include "files/filesystem.h"
#include "files/inode.h"
#include "files/lockfile.h"
#include "files/request.h"
#include "fuzz.h"
#include "ops/calls.h"

static struct kernel *current; /* libfuse hands the file system's data over to on_write() */

static struct kernel_file *find_file(struct kernel *kernel, uint64_t serial)
{
	for (size_t i = 0; i < kernel->file_count; i++) {
		if (kernel->files[i].serial == serial)
			return &kernel->files[i];
	}
	return NULL;
}

static struct kernel_node *find_node(struct kernel *kernel, uint64_t number)
{
	for (size_t i = 0; i < kernel->node_count; i++) {
		if (kernel->nodes[i].node == number)
			return &kernel->nodes[i];
	}
	return NULL;
}

bool kernel_lasts(const struct kernel *kernel, uint64_t node)
{
	const struct inode *inode = inode_find(kernel->filesystem->inodes, node);

	return inode && (inode->lockfile || inode_keeps_lockfiles(inode));
}

/* What excludes one another has the same number: of a lock all nodes, of `style = file` a name. */
static uint64_t lock_number(const struct kernel *kernel, const struct kernel_node *node)
{
	const struct inode *inode = inode_find(kernel->filesystem->inodes, node->node);

	return inode && inode->lockfile ? inode_number(inode_lock_path(inode)) : node->number;
}

/* What is held */

static bool excludes(const struct kernel_file *a, const struct kernel_file *b)
{
	enum kernel_hold held_a = a->flock > a->open ? a->flock : a->open;
	enum kernel_hold held_b = b->flock > b->open ? b->flock : b->open;

	return a != b && a->number == b->number && held_a != KERNEL_FREE && held_b != KERNEL_FREE &&
	       (held_a == KERNEL_EXCLUSIVE || held_b == KERNEL_EXCLUSIVE);
}

static void check_holds(const struct kernel *kernel)
{
	for (size_t i = 0; i < kernel->file_count; i++)
		for (size_t j = 0; j < i; j++)
			REQUIRE(!excludes(&kernel->files[i], &kernel->files[j]));
}

void kernel_lose_holds(struct kernel *kernel)
{
	for (size_t i = 0; i < kernel->file_count; i++)
		kernel->files[i].flock = kernel->files[i].open = KERNEL_FREE;
}

struct kernel_file *kernel_opening(struct kernel *kernel, uint32_t pid)
{
	for (size_t i = 0; i < kernel->file_count; i++) {
		if (kernel->files[i].opener == pid)
			return &kernel->files[i];
	}
	return NULL;
}

/* Answers */

static void learn_node(struct kernel *kernel, const struct fuse_entry_out *entry)
{
	struct kernel_node *node = find_node(kernel, entry->nodeid);

	if (entry->nodeid == 0)
		return; /* there is no such name */
	REQUIRE(entry->nodeid != FUSE_ROOT_ID);
	REQUIRE(S_ISDIR(entry->attr.mode) || S_ISREG(entry->attr.mode) ||
		(S_ISLNK(entry->attr.mode) && kernel_lasts(kernel, entry->nodeid)));
	if (!node) {
		REQUIRE(kernel->node_count < KERNEL_NODES);
		node = &kernel->nodes[kernel->node_count++];
		*node = (struct kernel_node){.node = entry->nodeid, .number = entry->attr.ino};
	}
	/* An open that finds the file of another host has answered CREATE with a number of its own.
	 */
	REQUIRE(node->number == entry->attr.ino || kernel_lasts(kernel, node->node));
	node->lookups++;
}

static void learn_file(struct kernel *kernel, const struct kernel_request *request, uint64_t node,
		       uint64_t fh)
{
	const struct kernel_node *known = find_node(kernel, node);
	struct kernel_file *file = &kernel->files[kernel->file_count++];

	REQUIRE(kernel->file_count <= KERNEL_FILES);
	for (size_t i = 0; i + 1 < kernel->file_count; i++)
		REQUIRE(kernel->files[i].fh != fh);
	*file = (struct kernel_file){
		.fh = fh,
		.node = node,
		.number = known ? lock_number(kernel, known) : 0,
		.serial = ++kernel->last_serial,
		.directory = request->opcode == FUSE_OPENDIR,
		.lasts = kernel_lasts(kernel, node),
	};
	file->exclusive = request->opcode == FUSE_CREATE && request->flags & O_EXCL && !file->lasts;
	if (file->exclusive || (request->opcode == FUSE_CREATE && file->lasts))
		file->opener = request->pid;
}

static bool makes_something(uint32_t opcode)
{
	return opcode == FUSE_LOOKUP || opcode == FUSE_MKDIR || opcode == FUSE_MKNOD ||
	       opcode == FUSE_SYMLINK || opcode == FUSE_LINK || opcode == FUSE_CREATE ||
	       opcode == FUSE_OPEN || opcode == FUSE_OPENDIR;
}

/* The answer to the attribute request of a thread that is in an open: open(2) returns. */
static void finish_open(struct kernel *kernel, const struct kernel_request *request, int error)
{
	struct kernel_file *file = find_file(kernel, request->file);

	if (!file || file->opener == 0)
		return;
	file->opener = 0;
	file->failed = error != 0;
	file->open = error == 0 && file->exclusive ? KERNEL_EXCLUSIVE : KERNEL_FREE;
}

/* Entries of a directory: none runs over the end, all have a name. */
static void check_entries(const char *text, size_t bytes, bool plus)
{
	while (bytes > 0) {
		size_t before = plus ? sizeof(struct fuse_entry_out) : 0, size;
		struct fuse_dirent entry;

		REQUIRE(bytes >= before + FUSE_NAME_OFFSET);
		memcpy(&entry, text + before, FUSE_NAME_OFFSET);
		REQUIRE(entry.namelen > 0 && entry.namelen <= 255);
		REQUIRE(!memchr(text + before + FUSE_NAME_OFFSET, '/', entry.namelen));
		size = FUSE_DIRENT_ALIGN(before + FUSE_NAME_OFFSET + entry.namelen);
		REQUIRE(size <= bytes);
		text += size;
		bytes -= size;
	}
}

/* READDIRPLUS takes a reference to each node that it tells of, but for "." and "..". */
static void learn_entries(struct kernel *kernel, const char *text, size_t bytes)
{
	while (bytes > 0) {
		struct fuse_direntplus entry;
		size_t size;

		memcpy(&entry, text, FUSE_NAME_OFFSET_DIRENTPLUS);
		learn_node(kernel, &entry.entry_out);
		size = FUSE_DIRENTPLUS_SIZE(&entry);
		text += size;
		bytes -= size;
	}
}

static void check_body(struct kernel *kernel, const struct kernel_request *request,
		       const void *body, size_t bytes)
{
	const struct fuse_entry_out *entry = body;
	struct kernel_file *file = find_file(kernel, request->file);

	switch (request->opcode) {
	case FUSE_LOOKUP:
	case FUSE_MKDIR:
	case FUSE_MKNOD:
	case FUSE_SYMLINK:
	case FUSE_LINK:
		REQUIRE(bytes == sizeof(*entry));
		learn_node(kernel, entry);
		break;
	case FUSE_CREATE:
		REQUIRE(bytes == sizeof(*entry) + sizeof(struct fuse_open_out));
		learn_node(kernel, entry);
		learn_file(kernel, request, entry->nodeid,
			   ((const struct fuse_open_out *)(entry + 1))->fh);
		break;
	case FUSE_OPEN:
	case FUSE_OPENDIR:
		REQUIRE(bytes == sizeof(struct fuse_open_out));
		learn_file(kernel, request, request->node,
			   ((const struct fuse_open_out *)body)->fh);
		break;
	case FUSE_GETATTR:
	case FUSE_SETATTR:
		REQUIRE(bytes == sizeof(struct fuse_attr_out));
		break;
	case FUSE_READ:
		REQUIRE(bytes <= request->size);
		break;
	case FUSE_READLINK:
		REQUIRE(bytes <= 4096);
		break;
	case FUSE_READDIR:
	case FUSE_READDIRPLUS:
		REQUIRE(bytes <= request->size);
		check_entries(body, bytes, request->opcode == FUSE_READDIRPLUS);
		if (request->opcode == FUSE_READDIRPLUS)
			learn_entries(kernel, body, bytes);
		break;
	case FUSE_WRITE:
		REQUIRE(bytes == sizeof(struct fuse_write_out) &&
			((const struct fuse_write_out *)body)->size == request->size);
		break;
	case FUSE_GETLK:
		REQUIRE(bytes == sizeof(struct fuse_lk_out));
		break;
	case FUSE_IOCTL:
		REQUIRE(bytes >= sizeof(struct fuse_ioctl_out) &&
			bytes <= sizeof(struct fuse_ioctl_out) + request->size);
		break;
	case FUSE_POLL:
		REQUIRE(bytes == sizeof(struct fuse_poll_out));
		if (file && request->flags & FUSE_POLL_SCHEDULE_NOTIFY)
			file->polls = !(((const struct fuse_poll_out *)body)->revents & POLLERR);
		break;
	case FUSE_STATFS:
		REQUIRE(bytes == sizeof(struct fuse_statfs_out));
		break;
	case FUSE_INIT:
		break;
	case FUSE_SETLK:
	case FUSE_SETLKW:
		REQUIRE(bytes == 0);
		if (file && request->wants != KERNEL_FREE)
			file->flock = request->wants;
		break;
	default:
		REQUIRE(bytes == 0);
	}
}

static bool is_rename(uint32_t opcode)
{
	return opcode == FUSE_RENAME || opcode == FUSE_RENAME2;
}

/* These have the directory for themselves. */
static bool is_change(uint32_t opcode)
{
	return opcode == FUSE_CREATE || opcode == FUSE_MKDIR || opcode == FUSE_MKNOD ||
	       opcode == FUSE_SYMLINK || opcode == FUSE_LINK || opcode == FUSE_UNLINK ||
	       opcode == FUSE_RMDIR || is_rename(opcode);
}

static void take_answer(struct kernel *kernel, const struct kernel_request *request, int error,
			const void *body, size_t bytes)
{
	REQUIRE(error <= 0 && error > -1000);
	/* Without a signal the caller of EINTR would see another error. */
	REQUIRE(error != -EINTR || request->interrupted);
	REQUIRE(!request->barred || error != 0);
	if (error != 0)
		REQUIRE(bytes == 0);
	else
		check_body(kernel, request, body, bytes);
	if (request->opcode == FUSE_GETATTR)
		finish_open(kernel, request, error);
	if (!kernel->steered)
		check_holds(kernel);
}

static void take_news(struct kernel *kernel, const void *body, size_t bytes)
{
	struct fuse_notify_poll_wakeup_out news;

	REQUIRE(bytes == sizeof(news));
	memcpy(&news, body, sizeof(news));
	struct kernel_file *file = find_file(kernel, news.kh);
	if (file)
		file->polls = false;
}

/* The file system writes an answer, or a notification. */
static ssize_t on_write(int fd, struct iovec *parts, int count, void *user)
{
	struct kernel *kernel = current;
	struct kernel_request request;
	struct fuse_out_header header;
	size_t bytes = 0, used = 0, i = 0;
	uint8_t *message;

	(void)fd;
	(void)user;
	for (int part = 0; part < count; part++)
		bytes += parts[part].iov_len;
	REQUIRE(bytes >= sizeof(header) && parts[0].iov_len == sizeof(header));
	message = malloc(bytes);
	REQUIRE(message);
	for (int part = 0; part < count; used += parts[part++].iov_len)
		memcpy(message + used, parts[part].iov_base, parts[part].iov_len);
	memcpy(&header, message, sizeof(header));
	REQUIRE(header.len == bytes);
	if (kernel->cut_off) {
		free(message);
		return (ssize_t)bytes;
	}
	if (header.unique == 0) {
		REQUIRE(header.error == FUSE_NOTIFY_POLL);
		take_news(kernel, message + sizeof(header), bytes - sizeof(header));
		free(message);
		return (ssize_t)bytes;
	}
	while (i < kernel->request_count && kernel->requests[i].unique != header.unique)
		i++;
	if (i == kernel->request_count && kernel->resuming) {
		free(message);
		errno = ENOENT;
		return -1;
	}
	REQUIRE(i < kernel->request_count); /* answered once, and only what was asked */
	request = kernel->requests[i];
	kernel->requests[i] = kernel->requests[--kernel->request_count];
	if (request.killed) {
		free(message);
		errno = ENOENT;
		return -1;
	}
	take_answer(kernel, &request, header.error, message + sizeof(header),
		    bytes - sizeof(header));
	free(message);
	return (ssize_t)bytes;
}

/* Requests are handed over with request_handle(). */
static ssize_t on_read(int fd, void *buffer, size_t bytes, void *user)
{
	(void)fd;
	(void)buffer;
	(void)bytes;
	(void)user;
	abort();
}

static const struct fuse_custom_io io = {.writev = on_write, .read = on_read};

/* Requests */

static void hand_over(struct kernel *kernel, const struct fuse_in_header *header, const void *body,
		      size_t body_bytes, const void *more, size_t more_bytes)
{
	size_t bytes = sizeof(*header) + body_bytes + more_bytes;
	struct fuse_buf buffer = {.size = bytes, .mem = malloc(bytes)};

	REQUIRE(buffer.mem && bytes == header->len);
	memcpy(buffer.mem, header, sizeof(*header));
	if (body_bytes > 0)
		memcpy((char *)buffer.mem + sizeof(*header), body, body_bytes);
	if (more_bytes > 0)
		memcpy((char *)buffer.mem + sizeof(*header) + body_bytes, more, more_bytes);
	request_handle(kernel->filesystem, &buffer);
	free(buffer.mem);
}

static void send_interrupt(struct kernel *kernel, uint64_t unique)
{
	struct fuse_interrupt_in body = {.unique = unique};
	struct fuse_in_header header = {
		.len = sizeof(header) + sizeof(body),
		.opcode = FUSE_INTERRUPT,
		.unique = unique | 1,
	};

	hand_over(kernel, &header, &body, sizeof(body), NULL, 0);
}

void kernel_interrupt(struct kernel *kernel, struct kernel_request *request)
{
	if (request->interrupted)
		return;
	request->interrupted = true;
	send_interrupt(kernel, request->unique);
}

/* What has to be known of a request when its answer comes. */
static void note(struct kernel_request *request, const void *body)
{
	const struct fuse_lk_in *lock = body;

	switch (request->opcode) {
	case FUSE_READ:
	case FUSE_READDIR:
	case FUSE_READDIRPLUS:
		request->size = ((const struct fuse_read_in *)body)->size;
		break;
	case FUSE_WRITE:
		request->size = ((const struct fuse_write_in *)body)->size;
		break;
	case FUSE_IOCTL:
		request->size = ((const struct fuse_ioctl_in *)body)->out_size;
		break;
	case FUSE_CREATE:
		request->flags = ((const struct fuse_create_in *)body)->flags;
		break;
	case FUSE_RENAME:
		request->other_node = ((const struct fuse_rename_in *)body)->newdir;
		break;
	case FUSE_RENAME2:
		request->other_node = ((const struct fuse_rename2_in *)body)->newdir;
		break;
	case FUSE_POLL:
		request->flags = ((const struct fuse_poll_in *)body)->flags;
		break;
	case FUSE_SETLK:
	case FUSE_SETLKW:
		if (lock->lk_flags & FUSE_LK_FLOCK && lock->lk.type != F_UNLCK)
			request->wants =
				lock->lk.type == F_WRLCK ? KERNEL_EXCLUSIVE : KERNEL_SHARED;
		break;
	default:
		break;
	}
}

/* Whether the answer must be there when the request has been handed over: while these are under
 * way, the kernel keeps everybody from the directory. What was written is stored before its file
 * counts as closed: `late`, so something is still to be stored. */
static bool is_at_once(uint32_t opcode, uint64_t node, bool lasts, bool late)
{
	bool of_locks = node < (uint64_t)1 << 62 && !lasts; /* not of .dlockfs */

	return opcode == FUSE_CREATE || opcode == FUSE_READLINK || opcode == FUSE_RELEASEDIR ||
	       opcode == FUSE_POLL || opcode == FUSE_STATFS ||
	       (!lasts &&
		(is_change(opcode) || opcode == FUSE_SETATTR || opcode == FUSE_READ ||
		 opcode == FUSE_WRITE || opcode == FUSE_READDIR || opcode == FUSE_READDIRPLUS)) ||
	       (!late && (opcode == FUSE_FLUSH || opcode == FUSE_RELEASE)) ||
	       (of_locks && (opcode == FUSE_LOOKUP || opcode == FUSE_OPEN));
}

/* Whether others that do so may have the directory locked at the same time. */
static bool only_looks(uint32_t opcode)
{
	return opcode == FUSE_LOOKUP || opcode == FUSE_READDIR || opcode == FUSE_READDIRPLUS;
}

/* Whether the kernel does not let the request go: another one has a directory locked, or the node
 * is of an open that is not decided, by the name of which nobody gets at it. */
static bool has_to_wait(const struct kernel *kernel, const struct kernel_request *request)
{
	for (size_t i = 0; i < kernel->request_count; i++) {
		const struct kernel_request *other = &kernel->requests[i];
		bool changes = is_change(request->opcode), other_changes = is_change(other->opcode);

		if (!(changes && (other_changes || only_looks(other->opcode))) &&
		    !(other_changes && only_looks(request->opcode)))
			continue;
		if (other->node == request->node || other->node == request->other_node ||
		    other->other_node == request->node ||
		    (other->other_node != 0 && other->other_node == request->other_node))
			return true;
	}
	const struct inode *inode = inode_find(kernel->filesystem->inodes, request->node);
	if (!inode || !inode->lockfile || !inode->lockfile->opening ||
	    inode->lockfile->opening->decided)
		return false;
	for (size_t i = 0; i < kernel->file_count; i++) {
		const struct kernel_file *file = &kernel->files[i];

		if (file->opener != 0 && file->opener != request->pid &&
		    file->node == request->node)
			return true;
	}
	return false;
}

void kernel_send(struct kernel *kernel, const struct kernel_caller *caller, uint32_t opcode,
		 uint64_t node, const struct kernel_file *file, const void *body, size_t body_bytes,
		 const void *more, size_t more_bytes)
{
	struct fuse_in_header header = {
		.len = (uint32_t)(sizeof(header) + body_bytes + more_bytes),
		.opcode = opcode,
		.unique = kernel->last_unique += 2,
		.nodeid = node,
		.uid = caller->uid,
		.gid = caller->uid,
		.pid = caller->pid % 2 == 0 ? caller->pid : 0,
	};
	struct kernel_request request = {
		.unique = header.unique,
		.opcode = opcode,
		.node = node,
		.pid = caller->pid,
		.uid = caller->uid,
		.file = file ? file->serial : 0,
		.killed = caller->killed && makes_something(opcode),
		.interrupted = caller->interrupted_early,
	};

	if (kernel->request_count == KERNEL_REQUESTS ||
	    (makes_something(opcode) &&
	     (kernel->file_count + kernel->request_count >= KERNEL_FILES)) ||
	    kernel->node_count + 256 > KERNEL_NODES)
		return;
	note(&request, body);
	bool lasts = kernel_lasts(kernel, node);
	if (lasts && has_to_wait(kernel, &request))
		return;
	/* A file that is there is opened by whoever may, if that has to be done by CREATE. */
	request.barred = is_change(opcode) && caller->uid == kernel->barred &&
			 kernel->barred != 0 &&
			 !(lasts && opcode == FUSE_CREATE && !(request.flags & O_EXCL));
	if (request.interrupted)
		send_interrupt(kernel, request.unique);
	kernel->requests[kernel->request_count++] = request;
	hand_over(kernel, &header, body, body_bytes, more, more_bytes);
	for (size_t i = 0; i < kernel->request_count; i++)
		REQUIRE(kernel->requests[i].unique != request.unique ||
			!is_at_once(opcode, node, lasts,
				    lasts && kernel->filesystem->calls->lates));
}

void kernel_release(struct kernel *kernel, const struct kernel_caller *caller,
		    struct kernel_file *file)
{
	struct fuse_release_in body = {.fh = file->fh};
	struct kernel_file released = *file;

	for (size_t i = 0; i < kernel->request_count; i++) {
		if (kernel->requests[i].file == file->serial)
			return;
	}

	*file = kernel->files[--kernel->file_count];
	kernel_send(kernel, caller, released.directory ? FUSE_RELEASEDIR : FUSE_RELEASE,
		    released.node, NULL, &body, sizeof(body), NULL, 0);
}

void kernel_forget(struct kernel *kernel, struct kernel_node *node, uint64_t lookups)
{
	struct fuse_forget_in body = {.nlookup = lookups < node->lookups ? lookups : node->lookups};
	struct fuse_in_header header = {
		.len = sizeof(header) + sizeof(body),
		.opcode = FUSE_FORGET,
		.unique = kernel->last_unique += 2,
		.nodeid = node->node,
	};

	node->lookups -= body.nlookup;
	if (node->lookups == 0)
		*node = kernel->nodes[--kernel->node_count];
	hand_over(kernel, &header, &body, sizeof(body), NULL, 0);
}

static void greet(struct kernel *kernel, struct filesystem *filesystem)
{
	const struct kernel_caller nobody = {0};
	const struct fuse_init_in body = {
		.major = FUSE_KERNEL_VERSION,
		.minor = FUSE_KERNEL_MINOR_VERSION,
		.max_readahead = 4096,
		.flags = FUSE_POSIX_LOCKS | FUSE_FLOCK_LOCKS | FUSE_BIG_WRITES |
			 FUSE_ATOMIC_O_TRUNC | FUSE_DO_READDIRPLUS | FUSE_MAX_PAGES,
	};

	current = kernel;
	kernel->filesystem = filesystem;
	REQUIRE(fuse_session_custom_io(filesystem->session, &io,
				       open("/dev/null", O_RDWR | O_CLOEXEC)) == 0);
	size_t before = kernel->request_count;
	kernel_send(kernel, &nobody, FUSE_INIT, 0, NULL, &body, sizeof(body), NULL, 0);
	REQUIRE(kernel->request_count == before);
}

void kernel_init(struct kernel *kernel, struct filesystem *filesystem)
{
	kernel->node_count = kernel->file_count = kernel->request_count = 0;
	kernel->last_unique = kernel->last_serial = 0;
	kernel->steered = kernel->cut_off = kernel->resuming = false;
	kernel->barred = 0;
	greet(kernel, filesystem);
}

void kernel_cut_off(struct kernel *kernel)
{
	kernel->cut_off = true;
	for (size_t i = 0; i < kernel->file_count; i++)
		kernel->files[i].forgotten = true;
}

void kernel_go_on(struct kernel *kernel, struct filesystem *filesystem)
{
	kernel->cut_off = false;
	kernel->resuming = true;
	greet(kernel, filesystem);
}

void kernel_resumed(struct kernel *kernel)
{
	kernel->resuming = false;
}
