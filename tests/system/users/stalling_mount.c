/* stalling_mount FOLDER: mounts a file system with one file, "page", 4096 bytes of which no read is
 * ever answered. Says "mounted", and "asked" once a read has come. */
#include <errno.h>
#include <fuse_lowlevel.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

enum { PAGE_NODE = 2 };

static struct stat attributes(fuse_ino_t node)
{
	return (struct stat){
		.st_ino = node,
		.st_mode = node == FUSE_ROOT_ID ? S_IFDIR | 0755 : S_IFREG | 0666,
		.st_nlink = 1,
		.st_size = 4096,
	};
}

static void on_getattr(fuse_req_t req, fuse_ino_t node, struct fuse_file_info *info)
{
	struct stat attr = attributes(node);
	(void)info;
	fuse_reply_attr(req, &attr, 3600);
}

static void on_lookup(fuse_req_t req, fuse_ino_t parent, const char *name)
{
	struct fuse_entry_param entry = {
		.ino = PAGE_NODE,
		.attr = attributes(PAGE_NODE),
		.attr_timeout = 3600,
		.entry_timeout = 3600,
	};
	(void)parent;
	if (strcmp(name, "page") == 0)
		fuse_reply_entry(req, &entry);
	else
		fuse_reply_err(req, ENOENT);
}

static void on_open(fuse_req_t req, fuse_ino_t node, struct fuse_file_info *info)
{
	(void)node;
	fuse_reply_open(req, info);
}

static void on_read(fuse_req_t req, fuse_ino_t node, size_t size, off_t offset,
		    struct fuse_file_info *info)
{
	(void)req;
	(void)node;
	(void)size;
	(void)offset;
	(void)info;
	puts("asked");
	fflush(stdout);
}

static const struct fuse_lowlevel_ops ops = {
	.lookup = on_lookup,
	.getattr = on_getattr,
	.open = on_open,
	.read = on_read,
};

int main(int argc, char **argv)
{
	char *options[] = {argv[0], "-oallow_other", NULL};
	struct fuse_args args = FUSE_ARGS_INIT(2, options);
	struct fuse_session *session = fuse_session_new(&args, &ops, sizeof(ops), NULL);

	if (argc != 2 || session == NULL || fuse_session_mount(session, argv[1]) != 0)
		return 1;
	puts("mounted");
	fflush(stdout);
	fuse_session_loop(session);
	fuse_session_unmount(session);
	return 0;
}
