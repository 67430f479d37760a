/* SPDX-License-Identifier: Apache-2.0
 *
 * Owns what inodes of lasting names have beyond others, and the form of their texts. Loop thread
 * only.
 */
#include "files/lasting.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>
#include <utlist.h>

#include "base/escape.h"
#include "files/filesystem.h"

#define NS_PER_MS INT64_C(1000000)
#define NS_PER_S  INT64_C(1000000000)
#define ID_BYTES  16 /* of randomness */

bool lasting_directory(const struct inode *directory)
{
	return directory->keeps_files || (directory->lasting != NULL && S_ISDIR(directory->mode));
}

const struct inode *lasting_top(const struct inode *directory)
{
	while (directory->lasting != NULL && directory->parent != NULL)
		directory = directory->parent;
	return directory;
}

bool lasting_renew_id(struct inode *inode)
{
	unsigned char bytes[ID_BYTES];

	if (getrandom(bytes, sizeof(bytes), 0) != (ssize_t)sizeof(bytes))
		return false;
	for (size_t i = 0; i < sizeof(bytes); i++) {
		inode->lasting->id[2 * i] = (char)('a' + (bytes[i] >> 4)); /* a word: text.h */
		inode->lasting->id[2 * i + 1] = (char)('a' + (bytes[i] & 15));
	}
	if (inode->lasting->number == 0)
		memcpy(&inode->lasting->number, bytes, sizeof(inode->lasting->number));
	return true;
}

int lasting_create(struct inode *inode, const struct inode *directory)
{
	const char *top = lasting_top(directory)->path;
	struct lasting *lasting = calloc(1, sizeof(*lasting));

	if (lasting == NULL)
		return -ENOMEM;
	const char *rest = inode->path + strlen(top);
	if (asprintf(&lasting->path, "%s//%s", top, *top != '\0' ? rest + 1 : rest) < 0) {
		free(lasting);
		return -ENOMEM;
	}
	lasting->maker_fd = -1;
	lasting->links = 1;
	lasting->prev = lasting->next = inode;
	inode->lasting = lasting;
	return 0;
}

void lasting_free(struct inode *inode)
{
	struct lasting *lasting = inode->lasting;

	if (lasting == NULL)
		return;
	lasting->prev->lasting->next = lasting->next;
	lasting->next->lasting->prev = lasting->prev;
	if (lasting->maker_fd >= 0)
		close(lasting->maker_fd);
	free(lasting->opening);
	free(lasting->path);
	free(lasting);
	inode->lasting = NULL;
}

void lasting_join(struct inode *inode, struct inode *other)
{
	struct lasting *mine = inode->lasting, *its = other->lasting;

	mine->next = its->next;
	mine->prev = other;
	its->next->lasting->prev = inode;
	its->next = inode;
	mine->number = its->number;
	mine->is_linked = true;
	inode_mark(inode);
	if (its->is_linked)
		return;
	its->is_linked = true;
	inode_mark(other);
}

nlink_t lasting_links(const struct inode *inode)
{
	const struct inode *link = inode;
	nlink_t links = 0;

	if (!inode->lasting->is_ours && inode->parent != NULL)
		return inode->lasting->links;
	do {
		links += link->parent != NULL;
		link = link->lasting->next;
	} while (link != inode);
	return links;
}

static int64_t ns_of(struct timespec time)
{
	return (int64_t)time.tv_sec * NS_PER_S + time.tv_nsec;
}

static struct timespec time_of(int64_t ns)
{
	struct timespec time = {ns / NS_PER_S, ns % NS_PER_S};

	if (time.tv_nsec < 0) {
		time.tv_sec--;
		time.tv_nsec += NS_PER_S;
	}
	return time;
}

char *lasting_format(const struct inode *inode, nlink_t links)
{
	const struct lasting *lasting = inode->lasting;
	char *text = NULL;
	size_t bytes;
	FILE *out = open_memstream(&text, &bytes);

	if (out == NULL)
		return NULL;
	fprintf(out, "%s\n", lasting->id);
	state_begin(out, "file");
	state_unsigned(out, "inode", lasting->number);
	state_unsigned(out, "mode", inode->mode);
	state_unsigned(out, "uid", inode->uid);
	state_unsigned(out, "gid", inode->gid);
	state_unsigned(out, "links", links);
	if (lasting->dates)
		state_number(out, "mtime", ns_of(inode->mtime));
	state_text(out, "host", inode->shard->filesystem->host);
	state_number(out, "pid", lasting->maker);
	state_text(out, "command", lasting->command);
	if (inode->text.count > 0)
		state_bytes(out, "text", inode->text.bytes, inode->text.count);
	state_end(out);
	bool failed = ferror(out) != 0;
	if (fclose(out) != 0 || failed) {
		free(text);
		return NULL;
	}
	return text;
}

/* Returns false, and leaves the facts undefined, if the lines are not of dlockfs. */
static bool parse_lines(struct state_reader *in, struct lasting_facts *facts)
{
	size_t bytes;

	if (state_next(in) != 1 || strlen(in->word) != sizeof(facts->id) - 1 || in->field_count > 0)
		return false;
	memcpy(facts->id, in->word, sizeof(facts->id));
	if (state_next(in) != 1 || strcmp(in->word, "file") != 0)
		return false;
	facts->number = state_get_unsigned(in, "inode", UINT64_MAX);
	facts->mode = (mode_t)state_get_unsigned(in, "mode", 0177777);
	facts->uid = (uid_t)state_get_unsigned(in, "uid", UINT32_MAX);
	facts->gid = (gid_t)state_get_unsigned(in, "gid", UINT32_MAX);
	facts->links = (nlink_t)state_get_unsigned(in, "links", UINT32_MAX);
	if (state_has(in, "mtime"))
		facts->mtime = time_of(state_get_number(in, "mtime", INT64_MIN, INT64_MAX));
	char host[64], command[32];
	escape_format(host, sizeof(host), state_get_text(in, "host"));
	escape_format(command, sizeof(command), state_get_text(in, "command"));
	facts->maker = (pid_t)state_get_number(in, "pid", 0, INT32_MAX);
	snprintf(facts->who, sizeof(facts->who), "host %s, process %d (%s)", host,
		 (int)facts->maker, command);
	if (state_has(in, "text")) {
		const void *text = state_get_bytes(in, "text", &bytes);
		facts->text_bytes = bytes < LASTING_TEXT_BYTES_MAX ? bytes : LASTING_TEXT_BYTES_MAX;
		facts->text = malloc(facts->text_bytes + 1);
		if (facts->text == NULL)
			return false;
		memcpy(facts->text, text, facts->text_bytes);
		facts->text[facts->text_bytes] = '\0';
	}
	bool is_kind = S_ISREG(facts->mode) || S_ISDIR(facts->mode) || S_ISLNK(facts->mode);
	return !state_failed(in) && is_kind;
}

/* What another client has put there. */
static int take_as_text(const struct store_claim *claim, struct lasting_facts *facts)
{
	free(facts->text);
	*facts = (struct lasting_facts){
		.mode = S_IFREG | 0644,
		.links = 1,
		.mtime = facts->mtime,
		.ctime = facts->ctime,
		.version = facts->version,
		.who = "another client of the store",
	};
	facts->text_bytes = claim->data_bytes < LASTING_TEXT_BYTES_MAX ? claim->data_bytes
								       : LASTING_TEXT_BYTES_MAX;
	facts->text = malloc(facts->text_bytes + 1);
	if (facts->text == NULL)
		return -ENOMEM;
	if (facts->text_bytes > 0)
		memcpy(facts->text, claim->data, facts->text_bytes);
	facts->text[facts->text_bytes] = '\0';
	/* Differs between two that follow each other under one name. */
	snprintf(facts->id, sizeof(facts->id), "%016llx%016llx", (unsigned long long)claim->session,
		 (unsigned long long)claim->since_ms);
	return 0;
}

int lasting_parse(const struct store_claim *claim, struct lasting_facts *facts)
{
	struct state_reader in;
	FILE *file = claim->data_bytes > 0 ? fmemopen((void *)claim->data, claim->data_bytes, "r")
					   : NULL;
	bool parsed = false;

	*facts = (struct lasting_facts){
		.mtime = time_of(claim->changed_ms * NS_PER_MS),
		.ctime = time_of(claim->changed_ms * NS_PER_MS),
		.version = claim->version,
	};
	if (file == NULL && claim->data_bytes > 0)
		return -ENOMEM;
	if (file != NULL) {
		state_reader_init(&in, file);
		parsed = parse_lines(&in, facts);
		state_reader_finish(&in);
		fclose(file);
	}
	return parsed ? 0 : take_as_text(claim, facts);
}

bool lasting_is_same(const struct inode *inode, const struct lasting_facts *facts)
{
	return strcmp(inode->lasting->id, facts->id) == 0;
}

int lasting_update(struct inode *inode, const struct lasting_facts *facts)
{
	struct lasting *lasting = inode->lasting;
	int error = text_set(inode, facts->text, facts->text_bytes, inode->maker);

	if (error != 0)
		return error;
	memcpy(lasting->id, facts->id, sizeof(lasting->id));
	lasting->number = facts->number != 0 ? facts->number : inode_number(inode->path);
	lasting->links = facts->links;
	lasting->version = facts->version;
	memcpy(lasting->who, facts->who, sizeof(lasting->who));
	lasting->dates = ns_of(facts->mtime) != ns_of(facts->ctime);
	inode->mode = facts->mode;
	inode->uid = facts->uid;
	inode->gid = facts->gid;
	inode->atime = inode->mtime = facts->mtime;
	inode->ctime = facts->ctime;
	inode_mark(inode);
	return 0;
}

/* What another process goes on with */

void lasting_save(const struct inode *inode, FILE *out)
{
	const struct lasting *lasting = inode->lasting;

	state_text(out, "file", lasting->path);
	state_text(out, "file_id", lasting->id);
	state_unsigned(out, "file_number", lasting->number);
	state_flag(out, "file_is_ours", lasting->is_ours);
	state_unsigned(out, "file_links", lasting->links);
	state_unsigned(out, "file_version", lasting->version);
	state_flag(out, "file_dates", lasting->dates);
	state_number(out, "file_maker", lasting->maker);
	state_unsigned(out, "file_maker_start", lasting->maker_start);
	state_text(out, "file_command", lasting->command);
	state_flag(out, "file_is_taken", lasting->is_taken);
	state_flag(out, "file_is_linked", lasting->is_linked);
	if (lasting->opening == NULL)
		return;
	state_number(out, "opening_thread", lasting->opening->thread);
	state_unsigned(out, "opening_uid", lasting->opening->uid);
	state_unsigned(out, "opening_gid", lasting->opening->gid);
	state_number(out, "opening_flags", lasting->opening->flags);
	state_flag(out, "opening_decided", lasting->opening->decided);
	state_number(out, "opening_error", lasting->opening->error);
}

/* Returns 0 or -ENOMEM. */
static int restore_opening(struct lasting *lasting, struct state_reader *in)
{
	struct lasting_opening *opening = calloc(1, sizeof(*opening));

	if (opening == NULL)
		return state_starve(in);
	opening->thread = (pid_t)state_get_number(in, "opening_thread", 0, INT32_MAX);
	opening->uid = (uid_t)state_get_unsigned(in, "opening_uid", UINT32_MAX);
	opening->gid = (gid_t)state_get_unsigned(in, "opening_gid", UINT32_MAX);
	opening->flags = (int)state_get_number(in, "opening_flags", INT32_MIN, INT32_MAX);
	opening->decided = state_find_flag(in, "opening_decided");
	opening->error = (int)state_find_number(in, "opening_error", 0, 4095);
	lasting->opening = opening;
	return 0;
}

int lasting_restore(struct inode *inode, struct state_reader *in)
{
	struct lasting *lasting = calloc(1, sizeof(*lasting));
	const char *id = state_get_text(in, "file_id");

	if (lasting == NULL)
		return state_starve(in);
	lasting->path = strdup(state_get_text(in, "file"));
	if (lasting->path == NULL) {
		free(lasting);
		return state_starve(in);
	}
	snprintf(lasting->id, sizeof(lasting->id), "%s", id);
	lasting->number = state_get_unsigned(in, "file_number", UINT64_MAX);
	lasting->is_ours = state_find_flag(in, "file_is_ours");
	lasting->links = (nlink_t)state_get_unsigned(in, "file_links", UINT32_MAX);
	lasting->version = (uint32_t)state_get_unsigned(in, "file_version", UINT32_MAX);
	lasting->dates = state_find_flag(in, "file_dates");
	lasting->is_taken = state_find_flag(in, "file_is_taken");
	lasting->is_linked = state_find_flag(in, "file_is_linked");
	lasting->maker = (pid_t)state_get_number(in, "file_maker", 0, INT32_MAX);
	lasting->maker_start = state_get_unsigned(in, "file_maker_start", UINT64_MAX);
	lasting->maker_fd = -1;
	snprintf(lasting->command, sizeof(lasting->command), "%s",
		 state_get_text(in, "file_command"));
	lasting->prev = lasting->next = inode;
	inode->lasting = lasting;
	if (state_has(in, "opening_thread") && restore_opening(lasting, in) != 0)
		return -ENOMEM;
	return state_failed(in) ? -EINVAL : 0;
}

/* 0: it has no others in its ring. */
static uint64_t content_of(const struct inode *inode)
{
	return inode->lasting != NULL && inode->lasting->is_linked ? inode->lasting->number : 0;
}

static int compare_contents(const struct inode *a, const struct inode *b)
{
	return (content_of(a) > content_of(b)) - (content_of(a) < content_of(b));
}

void lasting_restored_all(struct inodes *inodes)
{
	struct inode *inode, *former = NULL;

	HASH_SRT(by_node, inodes->by_node, compare_contents);
	for (inode = inodes->by_node; inode != NULL; former = inode, inode = inode->by_node.next) {
		if (former != NULL && content_of(inode) != 0 &&
		    content_of(inode) == content_of(former))
			lasting_join(inode, former);
	}
}
