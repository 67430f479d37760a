/* SPDX-License-Identifier: Apache-2.0
 *
 * fuse_floor FOLDER: the least that a lock on a FUSE mount costs: mounts a file system which has
 * every name that it is asked for, as a file, and lets everybody have every lock. Says "mounted".
 * One thread, until it is unmounted or ended by a signal.
 */
#include <errno.h>
#include <fuse_lowlevel.h>
#include <stdio.h>
#include <sys/stat.h>

#define FILE_NODE 2
#define VALID_S	  3600.0

static struct stat attributes(fuse_ino_t node)
{
	return (struct stat){
		.st_ino = node,
		.st_mode = node == FUSE_ROOT_ID ? S_IFDIR | 0755 : S_IFREG | 0666,
		.st_nlink = 1,
	};
}

static void on_getattr(fuse_req_t req, fuse_ino_t node, struct fuse_file_info *info)
{
	struct stat attr = attributes(node);
	(void)info;
	fuse_reply_attr(req, &attr, VALID_S);
}

static void on_lookup(fuse_req_t req, fuse_ino_t parent, const char *name)
{
	struct fuse_entry_param entry = {
		.ino = FILE_NODE,
		.attr = attributes(FILE_NODE),
		.attr_timeout = VALID_S,
		.entry_timeout = VALID_S,
	};
	(void)parent;
	(void)name;
	fuse_reply_entry(req, &entry);
}

static void on_open(fuse_req_t req, fuse_ino_t node, struct fuse_file_info *info)
{
	(void)node;
	fuse_reply_open(req, info);
}

static void on_flock(fuse_req_t req, fuse_ino_t node, struct fuse_file_info *info, int operation)
{
	(void)node;
	(void)info;
	(void)operation;
	fuse_reply_err(req, 0);
}

static void on_release(fuse_req_t req, fuse_ino_t node, struct fuse_file_info *info)
{
	(void)node;
	(void)info;
	fuse_reply_err(req, 0);
}

static const struct fuse_lowlevel_ops ops = {
	.lookup = on_lookup,
	.getattr = on_getattr,
	.open = on_open,
	.flock = on_flock,
	.release = on_release,
};

int main(int argc, char **argv)
{
	char *options[] = {argv[0], "-oallow_other", NULL};
	struct fuse_args args = FUSE_ARGS_INIT(2, options);
	struct fuse_session *session = fuse_session_new(&args, &ops, sizeof(ops), NULL);
	int result;

	if (argc != 2 || session == NULL || fuse_set_signal_handlers(session) != 0 ||
	    fuse_session_mount(session, argv[1]) != 0)
		return 1;
	puts("mounted");
	fflush(stdout);
	result = fuse_session_loop(session);
	fuse_session_unmount(session);
	fuse_session_destroy(session);
	return result < 0 ? 1 : 0;
}
