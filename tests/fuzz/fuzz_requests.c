/* SPDX-License-Identifier: Apache-2.0
 *
 * Raw FUSE requests through the handlers of the file system, on the local store, in one thread and
 * without a clock: the input says what is asked, by whom, in which order, and when the store
 * answers, time passes, signals come, a rival host claims a lock, and the session is lost. Where
 * the input says so, there is a directory of `style = file` beside the locks, in which the rival
 * makes, changes and takes away names. What must hold is in kernel.h; besides, another program
 * could take over at any time, and the engine's books are checked after every step, and in the end
 * everything is released: nothing waits, nothing is held, nothing is left.
 */
#include "fuzz.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/log.h"
#include "dlockfs.h"
#include "engine/books/state.h"
#include "files/filesystem.h"
#include "files/inode.h"
#include "files/names.h"
#include "files/shard.h"
#include "files/user.h"
#include "handles/handle.h"
#include "handles/lockfile_name.h"
#include "handles/parked.h"
#include "handles/steer.h"
#include "kernel.h"
#include "kernel/request.h"
#include "notifier_double.h"
#include "ops/asking.h"
#include "ops/serving.h"
#include "rehearsal.h"
#include "restart/takeover.h"
#include "status/content.h"
#include "status/status.h"
#include "stores/local/service.h"
#include "told.h"

enum {
	INPUT_BYTES_MAX = 2000,
	KEEPS_FILES = 4, /* a bit of the first byte */
	THREADS = 8,
	FIRST_THREAD = 5000000, /* above all that a kernel gives out (PID_MAX_LIMIT) */
	RIVALS = 8,
	USER = 1000,
	JOURNAL_STEPS = 4, /* between two looks into it */
};

/* What becomes of an alteration. */
enum refusal {
	REFUSE_NOTHING,
	REFUSE_ACCESS,
	REFUSE_SILENTLY, /* -ECONNRESET, and nothing is done */
	REFUSE_ANSWER,	 /* the same, and it is done */
};

struct rival_claim {
	char path[64];
	char name[CLAIM_NAME_BYTES];
	int64_t order;
};

struct world {
	struct config config;
	struct shards shards;  /* one */
	struct engine *engine; /* of the shard, as the next two */
	struct local_service *service;
	struct store *store;
	struct store *rival;
	struct rival_claim claims[RIVALS]; /* of the rival */
	size_t claim_count;
	char rival_path[64]; /* of its latest */
	/* With a directory of `style = file`; */
	uint64_t files;	      /* that, or the root */
	struct store_ops ops; /* of the store, but for alter() */
	enum refusal refusal; /* of the next alteration */
	bool suspended;	      /* the store has no connection */
	struct serving serving;
	struct kernel kernel;
	int64_t now_ms;
	const uint8_t *data; /* what is left of the input */
	size_t bytes;
};

/* There is no cache of names in which something could be forgotten. */
static void on_forget(fuse_ino_t parent, fuse_ino_t node, const char *name)
{
	(void)parent;
	REQUIRE(node != 0 && (name == NULL || *name != '\0'));
}

/* What the input says */

static uint8_t take(struct world *world)
{
	return fuzz_byte(&world->data, &world->bytes);
}

/* A name; most are few, so that they meet. */
static const char *take_name(struct world *world, char buffer[1025])
{
	static const char *const names[] = {"a",      "b",	"d",	    ".dlockfs", "locks",
					    "queues", "status", "metrics",  ".queue",	"%2E%2E",
					    "...",    "\xff\n", "zookeeper"};
	/* Some of them no kernel sends. */
	static const char *const odd[] = {"..",		  ".", "../..", "%2fa", "d/a", "users",
					  "a-0000000001", "/", ""};
	uint8_t choice = take(world);
	size_t length;

	if (choice < 224)
		return names[choice % (sizeof(names) / sizeof(*names))];
	if (choice >= 253)
		return odd[take(world) % (sizeof(odd) / sizeof(*odd))];
	length = choice < 240 ? 1u + take(world) % 8 : choice < 250 ? 255 : 256 + 3u * take(world);
	for (size_t i = 0; i < length; i++) {
		uint8_t byte = choice < 240 ? take(world) : 'x';

		buffer[i] = (char)(byte != '\0' && byte != '/' ? byte : '_');
	}
	buffer[length] = '\0';
	return buffer;
}

static uint64_t take_node(struct world *world)
{
	uint8_t choice = take(world);
	size_t count = world->kernel.node_count;

	if (choice == 255)
		return fuzz_number(&world->data, &world->bytes);
	if (choice < 64 || count == 0)
		return choice % 4 == 3 ? FUSE_ROOT_ID : world->files;
	return world->kernel.nodes[choice % count].node;
}

/* Whether the kernel knows that the node is a directory. */
static bool is_directory(struct world *world, uint64_t number)
{
	const struct status_node *shown =
		status_owns(number) ? status_node_find(world->serving.filesystem.status, number)
				    : NULL;
	const struct inode *inode = inode_find(world->serving.filesystem.inodes, number);

	if (shown)
		return shown->kind == STATUS_TOP || shown->kind == STATUS_LOCKS;
	return inode && inode_is_directory(inode);
}

/* A directory, or a node that is unknown by now. The kernel lets nobody into a directory that was
 * removed. */
static uint64_t take_parent(struct world *world)
{
	uint64_t node = take_node(world);
	const struct inode *inode = inode_find(world->serving.filesystem.inodes, node);
	bool known = status_node_find(world->serving.filesystem.status, node) || inode;
	bool removed = inode && !inode->parent && inode != world->serving.filesystem.inodes->root;

	return (known && !is_directory(world, node)) || removed ? FUSE_ROOT_ID : node;
}

/* An open file (or directory); NULL if there is none. */
static struct kernel_file *take_file(struct world *world, bool directory)
{
	struct kernel *kernel = &world->kernel;
	size_t choice = take(world);

	for (size_t i = 0; i < kernel->file_count; i++) {
		struct kernel_file *file = &kernel->files[(choice + i) % kernel->file_count];

		if (file->directory == directory && file->opener == 0 && !file->failed)
			return file;
	}
	return NULL;
}

/* Offsets where it matters. */
static uint64_t take_offset(struct world *world)
{
	static const uint64_t offsets[] = {
		0,	   1,	       2,
		10,	   100,	       4095,
		4096,	   4097,       INT64_MAX - 1,
		INT64_MAX, UINT64_MAX, (uint64_t)1 << 63,
	};
	uint8_t choice = take(world);

	return choice < 240 ? offsets[choice % (sizeof(offsets) / sizeof(*offsets))]
			    : fuzz_number(&world->data, &world->bytes);
}

/* Time and the store */

static void dispatch(struct world *world)
{
	struct store *stores[] = {world->rival, world->store};

	for (int i = 0; i < (world->suspended ? 1 : 2); i++) {
		struct pollfd ready = {.fd = stores[i]->ops->descriptor(stores[i]),
				       .events = POLLIN};

		if (poll(&ready, 1, 0) > 0)
			stores[i]->ops->dispatch(stores[i]);
	}
	serving_go_on(&world->serving.filesystem);
	serving_ask(&world->serving.filesystem);
}

static void write_journal(struct world *world)
{
	serving_go_on(&world->serving.filesystem);
	takeover_mark_changed(&world->serving.filesystem);
	state_journal_commit(world->serving.filesystem.journal, 0, NULL, 0);
}

/* As the loop does after each request and each event. */
static void commit(struct world *world)
{
	write_journal(world);
	engine_send(world->engine);
}

static void advance(struct world *world, int64_t ms)
{
	world->now_ms += ms;
	engine_advance(world->engine, world->now_ms);
	serving_advance(&world->serving.filesystem, world->now_ms);
}

/* The rival: a session of its own, without an engine */

static void on_session(void *context, enum store_session session, int64_t timeout_ms)
{
	(void)context;
	(void)session;
	(void)timeout_ms;
}

static void on_placed(void *context, void *tag, int error, const char *name, int64_t order,
		      int64_t after, const struct store_entry *entries, size_t count)
{
	struct world *world = context;
	struct rival_claim *claim = &world->claims[world->claim_count++];

	(void)tag;
	(void)after;
	(void)entries;
	(void)count;
	REQUIRE(error == 0 && world->claim_count <= RIVALS);
	strcpy(claim->path, world->rival_path);
	strcpy(claim->name, name);
	claim->order = order;
}

static void on_done(void *context, void *tag, int error)
{
	(void)context;
	(void)tag;
	REQUIRE(error == 0);
}

static const struct store_events rival_events = {
	.on_session = on_session,
	.on_placed = on_placed,
	.on_amended = on_done,
	.on_withdrawn = on_done,
};

/* The data of a claim, as bad as can be. */
static void take_claim_data(struct world *world, char text[512])
{
	static const char *const lines[] = {
		"format=1\n",
		"ranges=w0-1,r5-9\n",
		"ranges=w0-9223372036854775807\n",
		"ranges=w5-4\n",
		"waits=0\n",
		"waits=-1\n",
		"revoke=x y\x7f\n",
		"break=root\n",
		"kind=record\nhost=a b\n",
		"uid=0\npid=1\n",
		"host=%0A\ncommand=x\n",
		"ranges=",
	};
	uint8_t count = take(world) % 6;

	strcpy(text, take(world) % 8 != 0 ? lines[0] : "__REVOKE__");
	for (; count > 0; count--)
		strcat(text, lines[take(world) % (sizeof(lines) / sizeof(*lines))]);
}

static struct claim_span take_span(struct world *world)
{
	int64_t a = (int64_t)(take_offset(world) & INT64_MAX);
	int64_t b = (int64_t)(take_offset(world) & INT64_MAX);

	return a < b ? (struct claim_span){a, b} : (struct claim_span){b, a};
}

static void let_rival_claim(struct world *world)
{
	static const char *const paths[] = {"a", "b", "d/a", "d", "a/b/a"};
	char text[512];
	uint8_t bits = take(world);
	struct claim_name name = {
		.id = {.session = claim_id_session(take(world)), .owner = 1, .number = 1},
		.mode = bits & 1 ? CLAIM_EXCLUSIVE : CLAIM_SHARED,
		.record = bits & 2,
		.sparse = bits & 4,
		.anchored = bits & 8,
		.span = bits & 16 ? CLAIM_SPAN_WHOLE : take_span(world),
		.anchor = take(world),
		.anchor_span = take_span(world),
	};

	take_claim_data(world, text);
	if (world->claim_count == RIVALS)
		return;
	strcpy(world->rival_path, paths[take(world) % 5]);
	world->rival->ops->place(world->rival, NULL, world->rival_path, &name, text, false, NULL);
	world->rival->ops->dispatch(world->rival);
}

static void let_rival_change(struct world *world)
{
	char text[512];
	struct rival_claim *claim = &world->claims[take(world) % RIVALS];

	if (claim >= world->claims + world->claim_count)
		return;
	if (take(world) % 2 == 0) {
		take_claim_data(world, text);
		world->rival->ops->amend(world->rival, NULL, claim->path, claim->name, text,
					 STORE_ANY_VERSION);
	} else {
		world->rival->ops->withdraw(world->rival, nobody_is_told(), NULL, claim->path,
					    claim->name, claim->order, false);
		*claim = world->claims[--world->claim_count];
	}
}

/* Lock files */

static struct world *altered; /* whose store has the function */

static int alter(struct store *base, struct store_change *change, const struct store_step *steps,
		 size_t count)
{
	enum refusal refusal = altered->refusal;
	struct local_store *store = (struct local_store *)base;
	int error = local_alter(base, change, steps,
				refusal == REFUSE_NOTHING || refusal == REFUSE_ANSWER ? count : 0);

	if (error == 0 && refusal != REFUSE_NOTHING)
		store->answers->prev->error = refusal == REFUSE_ACCESS ? -EACCES : -ECONNRESET;
	altered->refusal = REFUSE_NOTHING;
	return error;
}

/* Answers about different files come in any order. */
static void turn_answers(struct world *world)
{
	struct local_store *store = (struct local_store *)world->store;
	struct answer *answer = store->answers;

	if (!answer || !answer_is_for_outside(answer))
		return;
	DL_DELETE(store->answers, answer);
	DL_APPEND(store->answers, answer);
}

/* What was asked for may have happened or not, and is answered so; or there is a connection again.
 */
static void turn_connection(struct world *world)
{
	struct local_store *store = (struct local_store *)world->store;
	struct answer *answer;

	if (store->lost || store->over) {
		world->suspended = false; /* the end of the session is told */
		return;
	}
	world->suspended = !world->suspended;
	DL_FOREACH (store->answers, answer) {
		if (world->suspended && answer_is_for_outside(answer))
			answer->error = -ECONNRESET;
	}
	store->events->on_session(store->context,
				  world->suspended ? STORE_SUSPENDED : STORE_CONNECTED, 0);
}

static void on_rival_altered(struct store_change *change, int error)
{
	(void)change;
	(void)error;
}

static void let_rival_alter(struct world *world)
{
	static const char *const paths[] = {"files//a", "files//b", "files//d", "files//d/a",
					    "files//d/b"};
	static const char *const texts[] = {
		"abcdefghijklmnopabcdefghijklmnop\nfile mode=33188 uid=1000 gid=0 links=1 "
		"mtime=7 host=b pid=9 command=x text=hello",
		"bbcdefghijklmnopabcdefghijklmnop\nfile mode=16877 uid=0 gid=0 links=1 host=b "
		"pid=9 command=x text=",
		"cbcdefghijklmnopabcdefghijklmnop\nfile inode=5 mode=41471 uid=0 gid=0 links=2 "
		"host=b pid=9 command=x text=d",
		"of another client",
	};
	static struct store_change change = {on_rival_altered};
	uint8_t choice = take(world);
	struct store_step step = {
		.kind = (enum store_step_kind)(choice % STEP_CHECK),
		.path = paths[choice / 4 % 5],
		.text = texts[take(world) % 4],
		.version = STORE_ANY_VERSION,
	};

	world->rival->ops->alter(world->rival, &change, &step, 1);
	world->rival->ops->dispatch(world->rival);
}

static void disturb_files(struct world *world, uint8_t how)
{
	if (how % 8 < 4)
		let_rival_alter(world);
	else if (how % 8 == 4)
		turn_connection(world);
	else if (how % 8 == 5)
		turn_answers(world);
	else
		world->refusal = (enum refusal)(1 + how / 8 % 3);
}

/* Requests. Each sends one, or nothing where it needs a file that there is not. */

static void send_named(struct world *world, const struct kernel_caller *caller, uint32_t opcode,
		       const void *body, size_t bytes)
{
	char buffer[1025];
	uint64_t parent = take_parent(world);
	const char *name = take_name(world, buffer);

	kernel_send(&world->kernel, caller, opcode, parent, NULL, body, bytes, name,
		    strlen(name) + 1);
}

static void send_name(struct world *world, const struct kernel_caller *caller)
{
	static const uint32_t opcodes[] = {FUSE_LOOKUP, FUSE_UNLINK, FUSE_RMDIR, FUSE_LOOKUP};
	struct fuse_mkdir_in directory = {.mode = 0755};
	struct fuse_mknod_in node = {.mode = S_IFREG | 0644};

	switch (take(world) % 8) {
	case 0:
	case 1:
		send_named(world, caller, FUSE_MKDIR, &directory, sizeof(directory));
		break;
	case 2:
		node.mode = take(world) % 4 == 0 ? S_IFCHR : node.mode;
		send_named(world, caller, FUSE_MKNOD, &node, sizeof(node));
		break;
	default:
		send_named(world, caller, opcodes[take(world) % 4], NULL, 0);
	}
}

static void send_refused(struct world *world, const struct kernel_caller *caller)
{
	static const char names[] = "a\0b";
	struct fuse_rename_in rename = {.newdir = FUSE_ROOT_ID};
	struct fuse_link_in link = {.oldnodeid = take_node(world)};

	switch (take(world) % 3) {
	case 0:
		kernel_send(&world->kernel, caller, FUSE_RENAME, take_parent(world), NULL, &rename,
			    sizeof(rename), names, sizeof(names));
		break;
	case 1:
		send_named(world, caller, FUSE_LINK, &link, sizeof(link));
		break;
	default:
		kernel_send(&world->kernel, caller, FUSE_SYMLINK, take_parent(world), NULL, names,
			    sizeof(names), NULL, 0);
	}
}

/* Whether the directory is the inode, or somewhere in it. */
static bool is_in(const struct inode *directory, const struct inode *inode)
{
	while (directory && directory != inode)
		directory = directory->parent;
	return inode && directory == inode;
}

/* The kernel renames no directory into itself, and in place of none what is none. */
static bool can_rename(const struct world *world, uint64_t parent, const char *name,
		       uint64_t new_parent, const char *new_name)
{
	const struct inodes *inodes = world->serving.filesystem.inodes;
	struct inode *from = inode_find(inodes, parent), *to = inode_find(inodes, new_parent);
	const struct inode *source = from ? inode_child(from, name) : NULL;
	const struct inode *target = to ? inode_child(to, new_name) : NULL;

	return !(source && source == target) && !is_in(to, source) && !is_in(from, target) &&
	       !(source && target && S_ISDIR(source->mode) != S_ISDIR(target->mode));
}

static void send_rename(struct world *world, const struct kernel_caller *caller)
{
	static const uint32_t flags[] = {0, RENAME_NOREPLACE, RENAME_EXCHANGE, 0};
	char buffer[1025], new_buffer[1025], names[2 * sizeof(buffer)];
	uint8_t choice = take(world);
	uint64_t parent = take_parent(world);
	struct fuse_rename2_in body = {.newdir = take_parent(world), .flags = flags[choice % 4]};
	struct fuse_rename_in old_body = {.newdir = body.newdir};
	const char *name = take_name(world, buffer), *new_name = take_name(world, new_buffer);
	size_t bytes = (size_t)snprintf(names, sizeof(names), "%s%c%s", name, '\0', new_name) + 1;

	if (!can_rename(world, parent, name, body.newdir, new_name))
		return;
	if (choice % 4 == 0)
		kernel_send(&world->kernel, caller, FUSE_RENAME, parent, NULL, &old_body,
			    sizeof(old_body), names, bytes);
	else
		kernel_send(&world->kernel, caller, FUSE_RENAME2, parent, NULL, &body, sizeof(body),
			    names, bytes);
}

static void send_link(struct world *world, const struct kernel_caller *caller)
{
	struct fuse_link_in body = {.oldnodeid = take_node(world)};

	if (!is_directory(world, body.oldnodeid))
		send_named(world, caller, FUSE_LINK, &body, sizeof(body));
}

static void send_symlink(struct world *world, const struct kernel_caller *caller)
{
	static const char *const targets[] = {"d", "ann@web1.17:3", "\xff\n"};
	char buffer[1025];
	uint64_t parent = take_parent(world);
	const char *name = take_name(world, buffer), *target = targets[take(world) % 3];

	kernel_send(&world->kernel, caller, FUSE_SYMLINK, parent, NULL, name, strlen(name) + 1,
		    target, strlen(target) + 1);
}

static void send_readlink(struct world *world, const struct kernel_caller *caller)
{
	kernel_send(&world->kernel, caller, FUSE_READLINK, take_node(world), NULL, NULL, 0, NULL,
		    0);
}

static void send_setattr(struct world *world, const struct kernel_caller *caller)
{
	uint64_t node = take_node(world);
	struct fuse_setattr_in body = {
		.valid = take(world) & ~(uint32_t)FATTR_FH,
		.mode = S_IFREG | 0600,
		.uid = USER,
		.mtime = 1000000000,
		.mtimensec = take(world),
	};

	body.valid |= take(world) % 2 ? FATTR_MTIME_NOW : 0;
	body.size = take_offset(world);
	kernel_send(&world->kernel, caller, FUSE_SETATTR, node, NULL, &body, sizeof(body), NULL, 0);
}

static void send_create(struct world *world, const struct kernel_caller *caller)
{
	static const uint32_t flags[] = {O_RDONLY,
					 O_RDWR,
					 O_WRONLY | O_TRUNC,
					 O_RDWR | O_EXCL,
					 O_RDWR | O_EXCL | O_NONBLOCK,
					 O_RDWR | O_EXCL};
	struct fuse_create_in body = {.flags = O_CREAT | flags[take(world) % 6], .mode = 0640};

	send_named(world, caller, FUSE_CREATE, &body, sizeof(body));
}

static void send_open(struct world *world, const struct kernel_caller *caller)
{
	struct fuse_open_in body = {.flags = take(world) % 4 == 0 ? O_RDWR | O_TRUNC : O_RDONLY};
	uint64_t node = take_node(world);
	bool directory = is_directory(world, node);
	const struct inode *inode = inode_find(world->serving.filesystem.inodes, node);

	if (inode && S_ISLNK(inode->mode))
		return;
	kernel_send(&world->kernel, caller, directory ? FUSE_OPENDIR : FUSE_OPEN, node, NULL, &body,
		    sizeof(body), NULL, 0);
}

static void send_text(struct world *world, const struct kernel_caller *caller)
{
	static char text[5000];
	struct kernel_file *file = take_file(world, false);
	struct fuse_read_in read = {.size = 1u + take(world) * 20u};
	struct fuse_write_in write = {.size = read.size % 5000};
	struct fuse_setattr_in attr = {.valid = take(world)};
	uint64_t offset = take_offset(world);

	if (!file)
		return;
	read.fh = write.fh = attr.fh = file->fh;
	read.offset = write.offset = attr.size = offset;
	write.flags = take(world) % 4 == 0 ? O_APPEND : 0;
	if (take(world) % 3 == 0)
		kernel_send(&world->kernel, caller, FUSE_READ, file->node, file, &read,
			    sizeof(read), NULL, 0);
	else if (attr.valid & FATTR_FH || status_owns(file->node))
		kernel_send(&world->kernel, caller, FUSE_SETATTR, file->node, NULL, &attr,
			    sizeof(attr), NULL, 0);
	else
		kernel_send(&world->kernel, caller, FUSE_WRITE, file->node, file, &write,
			    sizeof(write), text, write.size);
}

static void send_attributes(struct world *world, const struct kernel_caller *caller)
{
	struct fuse_getattr_in body = {0};

	if (take(world) % 8 == 0)
		kernel_send(&world->kernel, caller, FUSE_STATFS, FUSE_ROOT_ID, NULL, NULL, 0, NULL,
			    0);
	else
		kernel_send(&world->kernel, caller, FUSE_GETATTR, take_node(world), NULL, &body,
			    sizeof(body), NULL, 0);
}

static void send_list(struct world *world, const struct kernel_caller *caller)
{
	struct kernel_file *file = take_file(world, true);
	struct fuse_read_in body = {.size = 16u + take(world) * 16u};
	bool plus = take(world) % 2;

	body.offset = take(world) % 4 == 0 ? take_offset(world) : take(world) % 16;
	if (!file)
		return;
	body.fh = file->fh;
	kernel_send(&world->kernel, caller, plus ? FUSE_READDIRPLUS : FUSE_READDIR, file->node,
		    file, &body, sizeof(body), NULL, 0);
}

static void send_flock(struct world *world, const struct kernel_caller *caller)
{
	static const uint32_t types[] = {F_WRLCK, F_RDLCK, F_UNLCK, F_WRLCK};
	struct kernel_file *file = take_file(world, false);
	uint8_t bits = take(world);
	struct fuse_lk_in body = {.lk_flags = FUSE_LK_FLOCK, .lk.type = types[bits % 4]};

	if (!file)
		return;
	body.fh = file->fh;
	body.owner = file->serial;
	body.lk.end = INT64_MAX;
	file->flock = KERNEL_FREE;   /* another mode releases the one that is held */
	if (body.lk.type != F_WRLCK) /* also what an exclusive open holds */
		file->open = KERNEL_FREE;
	kernel_send(&world->kernel, caller, bits & 4 ? FUSE_SETLK : FUSE_SETLKW, file->node, file,
		    &body, sizeof(body), NULL, 0);
}

static void send_range(struct world *world, const struct kernel_caller *caller)
{
	static const uint32_t types[] = {F_WRLCK, F_RDLCK, F_UNLCK, F_WRLCK};
	static const uint32_t opcodes[] = {FUSE_SETLK, FUSE_SETLKW, FUSE_GETLK, FUSE_SETLKW};
	struct kernel_file *file = take_file(world, false);
	uint8_t bits = take(world);
	struct fuse_lk_in body = {
		.owner = bits & 64 ? 100u + caller->pid % 4 : caller->pid,
		.lk = {.type = bits % 16 == 15 ? 7 : types[bits % 4], .pid = caller->pid},
	};

	body.lk.start = take_offset(world);
	body.lk.end = take_offset(world);
	if (!file)
		return;
	body.fh = file->fh;
	kernel_send(&world->kernel, caller, opcodes[(bits >> 4) % 4], file->node, file, &body,
		    sizeof(body), NULL, 0);
}

static void send_flush(struct world *world, const struct kernel_caller *caller)
{
	struct kernel_file *file = take_file(world, false);
	struct fuse_flush_in body = {.lock_owner = caller->pid};

	if (!file)
		return;
	body.fh = file->fh;
	kernel_send(&world->kernel, caller, FUSE_FLUSH, file->node, file, &body, sizeof(body), NULL,
		    0);
}

/* Names of claims that there are, or never were. */
static void take_claim_name(struct world *world, const char *path, char *name, size_t bytes)
{
	const struct queue *queue = path ? queue_find(world->service, path) : NULL;
	uint8_t choice = take(world);
	const struct node *node =
		queue && queue->count > 0 ? queue->nodes[choice % queue->count] : NULL;

	if (path && lockfile_name_find(&world->serving.filesystem, path))
		snprintf(name, bytes, "%s.file",
			 lockfile_name_find(&world->serving.filesystem, path)->lockfile->id);
	else if (node && take(world) % 8 != 0)
		snprintf(name, bytes, "%s", node->name);
	else
		memset(name, 'x', 1u + take(world) % bytes);
}

static void send_ioctl(struct world *world, const struct kernel_caller *caller)
{
	static const uint32_t commands[] = {
		DLOCKFS_IOC_TOKEN, DLOCKFS_IOC_REVOKE,	   DLOCKFS_IOC_BREAK, 0x5401,
		DLOCKFS_IOC_RUNS,  DLOCKFS_IOC_HELD_SINCE, DLOCKFS_IOC_RAN,   DLOCKFS_IOC_TERM,
	};
	struct kernel_file *file = take_file(world, false);
	uint8_t choice = take(world);
	uint32_t command = commands[choice % (sizeof(commands) / sizeof(*commands))];
	struct fuse_ioctl_in body = {.cmd = command, .out_size = 8};
	struct dlockfs_steer steer = {0};
	struct dlockfs_run run = {.start_ms = 5, .status = choice / 64, .key = "key"};
	struct dlockfs_term term = {.least_ms = choice / 64 - 1, .most_ms = choice};
	const void *in = &steer;
	const struct status_node *shown =
		file ? status_node_find(world->serving.filesystem.status, file->node) : NULL;

	if (!file)
		return;
	body.fh = file->fh;
	take_claim_name(world, shown ? shown->lock : NULL, steer.claim, sizeof(steer.claim));
	/* The command says how large these are, and the kernel sees to that. */
	if (command == DLOCKFS_IOC_REVOKE || command == DLOCKFS_IOC_BREAK) {
		body.in_size = sizeof(steer);
		body.out_size = 0;
		world->kernel.steered = true;
	} else if (command == DLOCKFS_IOC_RUNS) {
		body.out_size = sizeof(struct dlockfs_runs);
	} else if (command == DLOCKFS_IOC_RAN) {
		body.in_size = sizeof(run);
		body.out_size = 0;
		in = &run;
	} else if (command == DLOCKFS_IOC_TERM) {
		body.in_size = sizeof(term);
		body.out_size = 0;
		in = &term;
	}
	kernel_send(&world->kernel, caller, FUSE_IOCTL, file->node, file, &body, sizeof(body), in,
		    body.in_size);
}

static void send_fsync(struct world *world, const struct kernel_caller *caller)
{
	struct kernel_file *file = take_file(world, false);
	struct fuse_fsync_in body = {0};

	if (!file)
		return;
	body.fh = file->fh;
	kernel_send(&world->kernel, caller, FUSE_FSYNC, file->node, file, &body, sizeof(body), NULL,
		    0);
}

static void send_poll(struct world *world, const struct kernel_caller *caller)
{
	struct kernel_file *file = take_file(world, false); /* none of a directory */
	struct fuse_poll_in body = {.flags = take(world) % 2 ? FUSE_POLL_SCHEDULE_NOTIFY : 0};

	if (!file)
		return;
	body.fh = file->fh;
	body.kh = file->serial;
	kernel_send(&world->kernel, caller, FUSE_POLL, file->node, file, &body, sizeof(body), NULL,
		    0);
}

static void release(struct world *world, const struct kernel_caller *caller)
{
	struct kernel_file *file = take_file(world, take(world) % 4 == 0);

	if (file)
		kernel_release(&world->kernel, caller, file);
}

static void forget(struct world *world)
{
	struct kernel *kernel = &world->kernel;
	uint8_t choice = take(world), lookups = take(world);

	if (kernel->node_count > 0)
		kernel_forget(kernel, &kernel->nodes[choice % kernel->node_count], lookups);
}

static void interrupt(struct world *world)
{
	struct kernel *kernel = &world->kernel;
	uint8_t choice = take(world);

	if (kernel->request_count > 0)
		kernel_interrupt(kernel, &kernel->requests[choice % kernel->request_count]);
}

/* The next thing that the thread does, which is in an open that has not returned. */
static void go_on_opening(struct world *world, const struct kernel_caller *caller,
			  struct kernel_file *file)
{
	struct fuse_getattr_in body = {0};

	if (file->asked)
		return; /* and waits */
	file->asked = true;
	kernel_send(&world->kernel, caller, FUSE_GETATTR, file->node, file, &body, sizeof(body),
		    NULL, 0);
}

static size_t count_waiters(const struct filesystem *filesystem, const struct user *user)
{
	const struct handle *handle;
	const struct waiting *waiting;
	size_t count = 0;

	HANDLES_FOREACH (filesystem->handles, handle) {
		DL_FOREACH (handle->parked, waiting) {
			count += waiting->shares > 0 && waiting->uid == user->uid;
		}
	}
	DL_FOREACH (filesystem->calls->askings, waiting) {
		count += waiting->shares > 0 && waiting->uid == user->uid;
	}
	return count;
}

/* All that is held, by whatever files. */
static size_t count_ranges(const struct world *world)
{
	const struct lock *lock;
	size_t count = 0;

	for (lock = world->engine->locks; lock; lock = lock->hh.next)
		count += lock->in_queue.held_ranges;
	return count;
}

static size_t count_names(const struct filesystem *filesystem, const struct user *user)
{
	const struct inode *inode;
	size_t count = 0;

	for (inode = filesystem->inodes->by_node; inode; inode = inode->by_node.next) {
		if (inode->user == user)
			count += user_shares_of_path(strlen(inode->path));
		if (inode->text.writer == user)
			count += user_shares_of_text(inode->text.count);
	}
	return count;
}

/* Requests that will open something, or look for it, in .dlockfs. */
static size_t count_lookers(const struct kernel *kernel, bool lookup)
{
	size_t count = 0;

	for (size_t i = 0; i < kernel->request_count; i++) {
		uint32_t opcode = kernel->requests[i].opcode;
		if (kernel_lasts(kernel, kernel->requests[i].node))
			continue;
		count += opcode == FUSE_OPEN || opcode == FUSE_OPENDIR ||
			 (lookup && opcode == FUSE_LOOKUP);
	}
	return count;
}

/* What open files count for, beside one each. The listings of directories are not long here. */
static size_t count_long(const struct filesystem *filesystem)
{
	const struct status_content *content;
	const struct handle *handle;
	size_t count = 0;

	HANDLES_FOREACH (filesystem->handles, handle) {
		count += handle_shares(handle->inode) - 1;
	}
	for (content = filesystem->status->contents; content; content = content->hh.next)
		count += user_shares_of(content->bytes) - 1;
	return count;
}

/* Open files that may count for nothing. */
static size_t count_forgotten(const struct kernel *kernel)
{
	size_t count = 0;

	for (size_t i = 0; i < kernel->file_count; i++) {
		const struct kernel_file *file = &kernel->files[i];
		count += file->forgotten && (file->directory || status_owns(file->node));
	}
	return count;
}

/* What users have is what there is, and none that is limited has too much. */
static void check_users(const struct world *world)
{
	const struct filesystem *filesystem = &world->serving.filesystem;
	const struct kernel *kernel = &world->kernel;
	size_t files = 0, ranges = 0,
	       lookups = count_lookers(kernel, true) - count_lookers(kernel, false);
	const struct user *user;

	for (user = filesystem->users->by_uid; user; user = user->by_uid.next) {
		/* Texts that are stored late, requests that are put aside, and those about runs
		 * count, too. */
		bool others = filesystem->calls->lates || filesystem->calls->held ||
			      filesystem->calls->held_until || filesystem->calls->running;
		size_t waiters = count_waiters(filesystem, user);
		REQUIRE(user->counts[USER_WAITERS] == waiters ||
			(others && user->counts[USER_WAITERS] > waiters));
		REQUIRE(user->counts[USER_NAMES] == count_names(filesystem, user));
		files += user->counts[USER_FILES];
		ranges += user->counts[USER_RANGES];
		if (user->uid == 0 || user->uid == getuid())
			continue;
		REQUIRE(user->counts[USER_WAITERS] <= (size_t)world->config.user_waiters);
		REQUIRE(user->counts[USER_FILES] <= (size_t)world->config.user_files + lookups);
		REQUIRE(user->counts[USER_NAMES] <= (size_t)world->config.user_names);
		REQUIRE(user->counts[USER_RANGES] <=
			2 * (size_t)world->config.user_ranges + (size_t)world->config.user_waiters);
	}
	REQUIRE(ranges == count_ranges(world));
	size_t known = kernel->file_count + count_long(filesystem) + count_lookers(kernel, true);
	REQUIRE(files <= known && files + count_forgotten(kernel) >= known);
}

/* Whoever waits for news of a lock is told that it is lost. */
static void check_polls(struct world *world)
{
	for (size_t i = 0; i < world->kernel.file_count; i++) {
		const struct kernel_file *file = &world->kernel.files[i];
		const struct handle *handle =
			handle_of_number(world->serving.filesystem.handles, file->fh);

		REQUIRE(!handle || !handle->fenced || !file->polls);
	}
}

/* Each shard has counted its open files that are fenced. */
static void check_fenced(const struct filesystem *filesystem)
{
	for (size_t i = 0; i < filesystem->shards->count; i++) {
		const struct shard *shard = &filesystem->shards->list[i];
		const struct handle *handle;
		size_t count = 0;

		HANDLES_FOREACH (filesystem->handles, handle)
			count += handle->fenced && handle->inode->shard == shard;
		REQUIRE(shard->fenced == count);
	}
}

/* Every name is that of a file in its directory, and no path leads out. */
static void check_names(const struct filesystem *filesystem)
{
	const struct inode *inode;

	for (inode = filesystem->inodes->by_node; inode; inode = inode->by_node.next) {
		size_t bytes = strlen(inode->path);

		if (inode == filesystem->inodes->root)
			continue;
		REQUIRE(bytes > 0 && bytes <= PATH_BYTES_MAX);
		REQUIRE(strlen(inode->name) <= NAME_BYTES_MAX && !strchr(inode->name, '/'));
		REQUIRE(inode->name[0] != '\0' && strcmp(inode->name, ".") != 0 &&
			strcmp(inode->name, "..") != 0);
		REQUIRE(strcmp(inode->path + bytes - strlen(inode->name), inode->name) == 0);
		REQUIRE(strncmp(inode->path, ".dlockfs/", 9) != 0 &&
			strcmp(inode->path, ".dlockfs") != 0);
		if (inode->parent)
			REQUIRE(strncmp(inode->path, inode->parent->path,
					strlen(inode->parent->path)) == 0);
	}
}

/* SIGHUP: all locks are somebody else's now, or their creator's again. */
static void reload(struct world *world)
{
	char why[256];
	bool bar = world->kernel.barred == 0;

	REQUIRE(config_set(&world->config, "owner", bar ? "1001" : "creator", why, sizeof(why)) ==
		0);
	world->kernel.barred = bar ? USER : 0;
	names_reload(&world->serving.filesystem);
}

static void release_failed(struct world *world, const struct kernel_caller *caller)
{
	struct kernel *kernel = &world->kernel;

	for (size_t i = kernel->file_count; i-- > 0;) {
		if (kernel->files[i].failed)
			kernel_release(kernel, caller, &kernel->files[i]);
	}
}

/* The beginning and the end */

static void on_ready(void *context)
{
	(void)context;
}

static void make_session(struct filesystem *filesystem)
{
	char *arguments[] = {(char *)"fuzz", NULL};
	struct fuse_args args = FUSE_ARGS_INIT(1, arguments);

	filesystem->exclusive_open_waits = true;
	filesystem->calls->calls_are_seen = false; /* the threads are no threads of this machine */
	filesystem->mountpoint = "/fuzz";
	filesystem->calls->on_ready = on_ready;
	filesystem->session =
		fuse_session_new(&args, &serving_ops, sizeof(serving_ops), filesystem);
	fuse_opt_free_args(&args);
	REQUIRE(filesystem->session);
}

/* A file system that is new, which keeps what it knows in the journal. */
static void begin_filesystem(struct world *world, int journal)
{
	struct filesystem *filesystem = &world->serving.filesystem;

	REQUIRE(shards_open(&world->config, &serving_events, NULL, &world->shards) == 0);
	world->engine = world->shards.list->engine;
	world->store = world->shards.list->store;
	world->service = ((struct local_store *)world->store)->service;
	REQUIRE(store_local_open(world->service, &rival_events, world, &world->rival) == 0);
	REQUIRE(serving_init(&world->serving, &world->config, &world->shards) == 0);
	rehearsal_keep(filesystem, journal);
	world->ops = *world->store->ops;
	world->ops.alter = alter;
	world->store->ops = &world->ops;
	world->suspended = false;
	world->refusal = REFUSE_NOTHING;
	altered = world;
}

static void end_filesystem(struct world *world)
{
	struct filesystem *filesystem = &world->serving.filesystem;

	fuse_session_destroy(filesystem->session);
	serving_finish(filesystem);
	REQUIRE(!filesystem->users->by_uid);
	world->rival->ops->close(world->rival, nobody_is_told());
	shards_close(&world->shards);
	steer_finish(filesystem);
	rehearsal_forget(filesystem);
}

static void begin(struct world *world, bool keeps_files)
{
	static const char files[] = "[mount]\ndirectories = files\n"
				    "[locks \"files\"]\nstyle = file\nsteal = yes\n";
	const struct kernel_caller looker = {.pid = FIRST_THREAD};
	struct filesystem *filesystem = &world->serving.filesystem;
	char why[256];

	log_set_level(LOG_LEVEL_ERROR);
	REQUIRE(config_init(&world->config) == 0);
	REQUIRE(config_set(&world->config, "process_ranges", "6", why, sizeof(why)) == 0);
	REQUIRE(config_set(&world->config, "file_ranges", "8", why, sizeof(why)) == 0);
	REQUIRE(config_set(&world->config, "user_waiters", "3", why, sizeof(why)) == 0);
	REQUIRE(config_set(&world->config, "user_files", "7", why, sizeof(why)) == 0);
	REQUIRE(config_set(&world->config, "user_names", "6", why, sizeof(why)) == 0);
	REQUIRE(config_set(&world->config, "user_ranges", "4", why, sizeof(why)) == 0);
	REQUIRE(!keeps_files || config_read_text(&world->config, "fuzz", files, strlen(files), why,
						 sizeof(why)) == 0);
	begin_filesystem(world, memfd_create("dlockfs fuzz", MFD_CLOEXEC));
	make_session(filesystem);
	world->now_ms = filesystem->now_ms;
	names_make_directories(filesystem);
	kernel_init(&world->kernel, filesystem);
	world->files = FUSE_ROOT_ID;
	if (keeps_files) {
		kernel_send(&world->kernel, &looker, FUSE_LOOKUP, FUSE_ROOT_ID, NULL, NULL, 0,
			    "files", strlen("files") + 1);
		world->files = world->kernel.nodes[0].node;
	}
	dispatch(world);
	commit(world);
}

static void withdraw_rival(struct world *world)
{
	while (world->claim_count > 0) {
		struct rival_claim *claim = &world->claims[--world->claim_count];

		world->rival->ops->withdraw(world->rival, nobody_is_told(), NULL, claim->path,
					    claim->name, claim->order, false);
	}
	files_end((struct local_store *)world->rival);
}

/* The next one goes on with what the journal says. */
static void go_on(struct world *world, int journal)
{
	struct filesystem *filesystem = &world->serving.filesystem;
	struct state_journal_content content;
	struct takeover takeover = {0};
	char why[1024] = "";

	REQUIRE(state_journal_load(journal, &content, why, sizeof(why)) == 0);
	REQUIRE(takeover_read_kept(&takeover, content.text, 3, why, sizeof(why)) == 0);
	content.text = NULL;
	state_journal_content_finish(&content);
	REQUIRE(takeover_check(&takeover, &world->config, why, sizeof(why)) == 0);
	begin_filesystem(world, journal);
	filesystem->now_ms = world->now_ms;
	if (takeover_restore(&takeover, filesystem, why, sizeof(why)) != 0)
		fprintf(stderr, "%s\n", why);
	REQUIRE(why[0] == '\0');
	make_session(filesystem);
	kernel_go_on(&world->kernel, filesystem);
	takeover_resume(&takeover, filesystem);
	kernel_resumed(&world->kernel);
	takeover_finish(&takeover);
	if (world->files != FUSE_ROOT_ID)
		advance(world, 0); /* lock files are watched anew at once */
	REQUIRE(engine_deadline(world->engine) >= world->now_ms);
	commit(world);
}

/* The file system is killed: what has been done since the latest commit has never been. The rival
 * lives in the same process, so it goes, too, and ends its claims before. */
static void kill_and_go_on(struct world *world)
{
	struct state_journal *journal = world->serving.filesystem.journal;

	withdraw_rival(world);
	write_journal(world);
	if (take(world) % 2 == 0)
		engine_send(world->engine);
	int descriptor = dup(state_journal_descriptor(journal));
	kernel_cut_off(&world->kernel);
	serving_stop(&world->serving.filesystem);
	end_filesystem(world);
	go_on(world, descriptor);
}

static void (*const requests[])(struct world *world, const struct kernel_caller *caller) = {
	send_name,
	send_create,
	send_create,
	send_open,
	send_flock,
	send_flock,
	send_range,
	send_range,
	send_fsync,
	send_ioctl,
	send_ioctl,
	send_text,
	send_list,
	send_attributes,
	send_flush,
	send_poll,
	release,
	release,
	send_refused,
	/* With a directory of `style = file`: */
	send_rename,
	send_link,
	send_symlink,
	send_setattr,
	send_readlink,
	send_create,
};

enum { REQUESTS_ABOUT_FILES = 6 };

/* One step of the input. */
static void step(struct world *world)
{
	static const int64_t pauses_ms[] = {1, 10, 50, 100, 1000, 2000, 5000, 61000};
	uint8_t choice = take(world), who = take(world);
	struct kernel_caller caller = {
		.pid = FIRST_THREAD + who % THREADS,
		.uid = who & 8 ? USER : 0,
		.killed = who >= 0xf0,
		.interrupted_early = who >= 0xe0 && who < 0xf0,
	};
	struct kernel_file *opening = kernel_opening(&world->kernel, caller.pid);
	size_t count = sizeof(requests) / sizeof(*requests) -
		       (world->files == FUSE_ROOT_ID ? REQUESTS_ABOUT_FILES : 0);

	advance(world, 0);
	switch (choice % 32) {
	case 25:
		store_local_expire(world->store);
		kernel_lose_holds(&world->kernel);
		dispatch(world); /* so that nobody is told of what is lost already */
		break;
	case 26:
		let_rival_claim(world);
		break;
	case 27:
		let_rival_change(world);
		break;
	case 28:
		advance(world, pauses_ms[who % 8]);
		break;
	case 29:
		interrupt(world);
		break;
	case 30:
		forget(world);
		break;
	case 31:
		if (who % 4 == 0)
			reload(world);
		else if (who % 4 == 1)
			kill_and_go_on(world);
		else if (world->files != FUSE_ROOT_ID)
			disturb_files(world, who / 4);
		break;
	default:
		if (opening)
			go_on_opening(world, &caller, opening);
		else
			requests[choice % 32 % count](world, &caller);
	}
	commit(world);
	if (choice & 32)
		dispatch(world);
	release_failed(world, &caller);
	commit(world);
	engine_check_invariants(world->engine);
	check_users(world);
	check_polls(world);
	check_fenced(&world->serving.filesystem);
	check_names(&world->serving.filesystem);
}

/* The store answers all that is asked; an answer may lead to the next question. */
static void answer_all(struct world *world)
{
	for (int turns = 0; turns < 8; turns++) {
		commit(world);
		dispatch(world);
	}
}

/* Every program is killed: all waits end, all files are closed, all names forgotten. */
static void kill_all(struct world *world)
{
	struct kernel *kernel = &world->kernel;
	struct kernel_caller caller = {.pid = FIRST_THREAD};

	if (world->suspended)
		turn_connection(world);
	for (size_t i = 0; i < kernel->file_count; i++) {
		caller.pid = kernel->files[i].opener;
		if (caller.pid != 0)
			go_on_opening(world, &caller, &kernel->files[i]);
	}
	while (kernel->request_count > 0) {
		size_t before = kernel->request_count;

		for (size_t i = 0; i < kernel->request_count; i++)
			kernel_interrupt(kernel, &kernel->requests[i]);
		answer_all(world);
		if (kernel->request_count == before) /* its limit passes */
			advance(world, 61000);
		answer_all(world);
		REQUIRE(kernel->request_count < before);
	}
	while (kernel->file_count > 0)
		kernel_release(kernel, &caller, &kernel->files[0]);
	while (kernel->node_count > 0)
		kernel_forget(kernel, &kernel->nodes[0], kernel->nodes[0].lookups);
}

/* Nothing is left, once the rival is gone as well and names have been idle for long enough. */
static void check_released(struct world *world)
{
	struct filesystem *filesystem = &world->serving.filesystem;
	struct engine_counts counts;
	const struct inode *inode;

	withdraw_rival(world);
	for (int i = 0; i < 20; i++) {
		advance(world, 61000);
		answer_all(world);
		engine_check_invariants(world->engine);
	}
	counts = engine_counts(world->engine);
	REQUIRE(counts.holders == 0 && counts.waiters == 0 && counts.locks == 0);
	REQUIRE(!filesystem->handles->by_number.used && !filesystem->handles->owning &&
		!filesystem->inodes->idle);
	check_users(world);
	check_fenced(filesystem);
	REQUIRE(!filesystem->status->waits && !filesystem->status->contents);
	REQUIRE(!filesystem->status->by_number && !filesystem->status->by_key);
	REQUIRE(!filesystem->steers && !filesystem->calls->askings);
	for (inode = filesystem->inodes->by_node; inode; inode = inode->by_node.next)
		REQUIRE(inode->finders > 0 || /* until the thread's next call, or others' */
			((inode_is_directory(inode) ||
			  (inode->lockfile && inode->lockfile->is_ours)) &&
			 (inode->parent || inode == filesystem->inodes->root)));
}

static void end(struct world *world)
{
	struct filesystem *filesystem = &world->serving.filesystem;

	serving_stop(filesystem);
	/* Whoever has not asked yet for what an exclusive open waits for never will. */
	REQUIRE(world->kernel.request_count == 0);
	end_filesystem(world);
	config_finish(&world->config);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	static struct world world;

	if (bytes > INPUT_BYTES_MAX)
		return 0;
	world.data = data;
	world.bytes = bytes;
	world.claim_count = 0;
	notifier_double.on_forget = on_forget;
	uint8_t how = take(&world);
	bool stops = how % 2;
	begin(&world, how & KEEPS_FILES);
	for (int steps = 1; world.bytes > 0; steps++) {
		step(&world);
		if (steps % JOURNAL_STEPS == 0)
			rehearsal_of_journal(&world.serving.filesystem);
		if (steps % 32 == 0)
			rehearsal_of(&world.serving.filesystem);
	}
	rehearsal_of(&world.serving.filesystem);
	if (!stops) {
		kill_all(&world);
		check_released(&world);
	}
	end(&world);
	return 0;
}
