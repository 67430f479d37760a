/* SPDX-License-Identifier: Apache-2.0
 *
 * Names, directories and files of the mount. There are four kinds of identifier:
 *
 *   path    of a lock, "a/b" below the mount: equal paths exclude each other over all hosts
 *   name    one component, known in its directory while the file is in use on this host
 *   node    the kernel's number for an inode here, never used twice
 *   st_ino  what stat(2) shows: a hash of the path, so the same on every host
 *
 * A file that was unlinked or dropped lives on without a name until its last handle is closed; its
 * path, and so its lock, stays what it was. A node that is gone may still be known to the kernel,
 * which is told ESTALE: then the kernel looks the name up again, if there is one (else somebody has
 * the file by O_PATH, or as working directory).
 *
 * Loop thread only; nothing here blocks.
 */
#ifndef DLOCKFS_FILES_INODE_H
#define DLOCKFS_FILES_INODE_H

#include <fuse_lowlevel.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

#define HASH_NONFATAL_OOM 1
#include <uthash.h>

#include "config/config.h"
#include "files/access.h"
#include "files/text.h"
#include "journal/journal.h"
#include "journal/text.h"

#define NODES_END ((uint64_t)1 << 62) /* of inodes: from here on those of .dlockfs */

#define FOREVER_SECONDS (365.0 * 24 * 3600) /* of what the kernel may remember for good */

struct brief;
struct filesystem;
struct looked;
struct shard;
struct user;

/* A named file that nobody has open is idle: its name goes after the configured time `idle`. */
struct inode_idle {
	bool listed;
	int64_t since_ms;		     /* if listed: clock_now_ms() */
	struct inode *prev, *next;	     /* in inodes->idle */
	struct inode *user_prev, *user_next; /* in user->idle */
};

struct inode {
	struct state_item item; /* first */
	uint64_t node;
	UT_hash_handle by_node;
	struct inode *parent; /* NULL: the root, or without a name */
	UT_hash_handle by_name;
	struct inode *children; /* of a directory, by name */
	nlink_t directories;	/* among them */
	uid_t maker;		/* the user on whose account the inode is */
	struct user *user;	/* has the shares of USER_NAMES for the name; NULL: no name */
	struct inode_idle idle;
	bool configured;	 /* one of the configuration's directories, or above one */
	size_t handles;		 /* open files */
	size_t finders;		 /* threads that have looked the inode up (looked.h), or list it */
	struct brief *brief;	 /* handles/brief.h; NULL: no exclusive open that may be brief */
	bool brief_told;	 /* the log says that one was */
	struct opening *opening; /* exclusive opens whose open(2) has not returned */
	struct timespec atime, mtime, ctime;
	mode_t mode; /* with the file type */
	uid_t uid;
	gid_t gid;
	struct access access; /* if fixed: counts instead of mode, uid and gid */
	struct text text;
	char *path;	     /* "" for the root */
	struct shard *shard; /* the shard that has the lock at that path */
	bool keeps_files; /* a directory in which names are lockfile (lockfile.h), and which is none
			     itself */
	struct lockfile *lockfile; /* what such a name has beyond others; NULL: it is a lock */
	const char *name;	   /* the last component of path */
};

struct inodes {
	struct inode *by_node;
	struct inode *root;
	struct inode *idle; /* named files that nobody has open, the longest idle first */
	uint64_t last_node;
	int makers; /* epoll(7) of processes that made lock files: handles/lockfile_name.h */
	struct looked *looked; /* what threads have looked up last: looked.h */
};

/* Reads the members of the inode that inode_save() writes as they are, from the present line.
 * Returns 0; or -EINVAL, with a line in the reader's `why`. */
int inode_restore_fields(struct inode *inode, struct state_reader *in);

/* Something that inode_save() writes has changed. */
void inode_mark(struct inode *inode);

/* Writes the inode, up to what text_save_blocks() writes. Directories go before what is in them, as
 * in the order of their nodes. */
void inode_save(const struct inode *inode, FILE *out);

/* Makes an inode without a parent or a name, on the account of `uid`, whose limit the caller has
 * checked. Returns 0; -ENOMEM, -ENAMETOOLONG; -EINVAL if a file cannot have that name. */
int inode_create(struct filesystem *filesystem, const struct inode *parent, const char *name,
		 mode_t mode, uid_t uid, gid_t gid, struct inode **ret);

/* As inode_create(), with the path, which becomes the inode's, also after an error; NULL: out of
 * memory. The caller has checked the path. */
int inode_create_path(struct filesystem *filesystem, char *path, mode_t mode, uid_t uid, gid_t gid,
		      struct inode **ret);

/* Whether a file or a directory can have that name. The kernel sends no other one. */
bool inode_is_name(const char *name);

/* Frees an inode that has no name, and that nobody uses; else only takes an inode without a name
 * off the account of USER_NAMES. */
void inode_free_if_unused(struct filesystem *filesystem, struct inode *inode);

/* Gives an inode its name in the directory. Returns 0, -EEXIST or -ENOMEM. */
int inode_attach(struct inode *parent, struct inode *inode);

/* Gives a file that never had a name the name of its path. A file that has the name loses the name
 * and nothing else; `with_text`: and its text, which the new file gets. Nothing happens if the
 * directory is gone, or the name is one of a directory, or when out of memory. */
void inode_take_name(struct filesystem *filesystem, struct inode *inode, bool with_text);

/* The file was not to get the name of its path, but the kernel knows the file by that name: if the
 * name is free, the file takes the name after all, and loses it when it has been idle. */
void inode_leave_name(struct filesystem *filesystem, struct inode *inode);

/* Takes the name away; frees the inode unless it is open. */
void inode_detach(struct filesystem *filesystem, struct inode *inode);

/* The inode of a node id; NULL if there is none. */
struct inode *inode_find(const struct inodes *inodes, fuse_ino_t node);

/* The directory of a node id; NULL if there is none, or if the directory was taken away: then it
 * has no names and gets none, though threads that have looked it up still know it (finders). */
struct inode *inode_find_directory(const struct inodes *inodes, fuse_ino_t node);

/* The child of a directory; NULL if there is none. */
struct inode *inode_child(struct inode *parent, const char *name);

/* The directory in which the name of the inode's path is, or would be; NULL if it is gone. */
struct inode *inode_directory(const struct inodes *inodes, const struct inode *inode);

bool inode_is_directory(const struct inode *inode);

/* Whether names in the directory are lock files (lockfile.h). */
bool inode_keeps_lockfiles(const struct inode *directory);

/* The directory above all that are lock files themselves, for `path` in the store. */
const struct inode *inode_top(const struct inode *directory);

/* The path in the store of a name in the directory. To be freed; NULL: out of memory. */
char *inode_lockfile_path(const struct inode *directory, const char *name);

/* The next inode in the ring of links of a lock file; the inode itself, if it is alone. */
struct inode *inode_next_link(const struct inode *inode);

/* For each inode of the ring of links, that inode first; none for NULL. The ring stays as it is. */
#define LINKS_FOREACH(link, inode)                                                                 \
	for ((link) = (inode); (link) != NULL;                                                     \
	     (link) = inode_next_link(link) != (inode) ? inode_next_link(link) : NULL)

/* Counts an open file in or out. A named file that nobody has open is idle. */
void inode_use(struct filesystem *filesystem, struct inode *inode);
void inode_unuse(struct filesystem *filesystem, struct inode *inode);

/* One of the inode's finders does not need the inode any more. */
void inode_let_go(struct filesystem *filesystem, struct inode *inode);

/* A file that exists but was never opened is idle from now on. */
void inode_set_idle(struct filesystem *filesystem, struct inode *inode);

/* The inode does not go as an idle one, until inode_set_idle(). */
void inode_leave_idle(struct filesystem *filesystem, struct inode *inode);

/* What the inode, which has a name, has of the shares of USER_NAMES of its maker. */
size_t inode_shares(const struct inode *inode);

/* The shares of USER_NAMES for a name in the directory. */
size_t inode_name_shares(const struct inode *parent, const char *name);

/* Frees the inode and everything below it, even if something still refers to them. */
void inode_free_tree(struct filesystem *filesystem, struct inode *inode);

void inode_stat(const struct inode *inode, struct stat *attr);

/* The answer to LOOKUP, CREATE and the like. The kernel caches names until they are taken away, and
 * asks for the attributes of files each time (exclusive open relies on that). */
void inode_entry(const struct inode *inode, struct fuse_entry_param *entry);

/* How long the kernel may keep the attributes, in seconds. */
double inode_attr_timeout(const struct inode *inode);

/* The file is created anew under its name: the file belongs to its creator, and is empty unless
 * `keeps_text`. */
void inode_recreate(struct inode *inode, mode_t mode, uid_t uid, gid_t gid, bool keeps_text);

/* How long the text may become, in bytes: `text_limit` of the lock, or less. */
off_t inode_text_limit(const struct inode *inode);

/* Cuts the text; or extends it with zeros, on the account of `uid`. Returns 0; -EFBIG, -EDQUOT or
 * -ENOMEM. */
int inode_resize(struct inode *inode, off_t size, uid_t uid);

/* Writes into the text, which is extended as far as that takes. Returns what inode_resize() does.
 */
int inode_write(struct inode *inode, const char *data, size_t bytes, off_t offset, uid_t uid);

/* What the configuration says of the path. */
struct lock_policy inode_policy(const struct inode *inode);

/* The path in the store of the inode's lock (claim/file_path.h): one path is one lock. */
const char *inode_lock_path(const struct inode *inode);

/* Owner, group and mode, as stat(2) shows them. */
struct access inode_access(const struct inode *inode);

/* The configuration may have changed. Returns whether inode_access() has. */
bool inode_set_access(struct inode *inode, const struct config *config);

/* The number that stat(2) shows for a path. */
ino_t inode_number(const char *path);

/* Now, for time stamps. */
struct timespec inode_time(void);

#endif
