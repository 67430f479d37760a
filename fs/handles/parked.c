/* SPDX-License-Identifier: Apache-2.0
 *
 * Owns parked requests. Loop thread only.
 */
#include "handles/parked.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/fuse.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "files/claim_text.h"
#include "files/filesystem.h"
#include "files/inode.h"
#include "files/kept_request.h"
#include "files/metrics.h"
#include "files/request.h"
#include "files/shard.h"
#include "handles/answers.h"
#include "handles/audit.h"
#include "handles/brief.h"
#include "handles/holder.h"
#include "journal/fields.h"

static const struct parked *of_item(const struct state_item *item)
{
	return (const struct parked *)((const char *)item - offsetof(struct parked, waiting.item));
}

static struct state_place place(const struct state_item *item)
{
	const struct parked *parked = of_item(item);
	return (struct state_place){{STATE_PLACE_HANDLE, parked->handle->number,
				     STATE_OF_HANDLE_PARKED, parked->number}};
}

static void save(const struct state_item *item, FILE *out)
{
	parked_save(of_item(item), out);
}

/* Something that parked_save() writes has changed. */
static void mark(struct parked *parked)
{
	static const struct state_kind kind = {place, save};
	state_journal_mark(parked->handle->filesystem->journal, &parked->waiting.item, &kind);
}

/* What is parked, as the first member of so many bytes. Returns NULL when out of memory. */
static void *create(size_t bytes, struct handle *handle, enum parked_kind kind, uid_t uid)
{
	struct filesystem *filesystem = handle->filesystem;
	struct parked *parked = calloc(1, bytes);

	if (parked == NULL)
		return NULL;
	if (kind != PARKED_BESIDE &&
	    waiting_count(filesystem, &parked_kind, &parked->waiting, uid, 1) != 0) {
		free(parked);
		return NULL;
	}
	DL_APPEND(handle->parked, &parked->waiting);
	parked->handle = handle;
	parked->kind = kind;
	parked->since_us = histogram_now_us();
	parked->number = ++filesystem->handles->last_number;
	mark(parked);
	return parked;
}

struct parked *parked_create(struct handle *handle, enum parked_kind kind, uid_t uid)
{
	return create(sizeof(struct parked), handle, kind, uid);
}

struct proving *parked_create_proving(struct handle *handle, enum parked_kind kind, uid_t uid)
{
	return create(sizeof(struct proving), handle, kind, uid);
}

struct opening *parked_create_opening(struct handle *handle, const struct fuse_ctx *caller,
				      mode_t mode, bool keeps_text)
{
	struct opening *opening = create(sizeof(*opening), handle, PARKED_OPEN, caller->uid);
	if (opening == NULL)
		return NULL;
	opening->thread = caller->pid;
	opening->uid = caller->uid;
	opening->gid = caller->gid;
	opening->mode = mode;
	opening->keeps_text = keeps_text;
	DL_APPEND(handle->inode->opening, opening);
	return opening;
}

static struct opening *opening_of(struct parked *parked)
{
	return (struct opening *)parked; /* its first member */
}

static bool is_proof(const struct parked *parked)
{
	return parked->kind == PARKED_FSYNC || parked->kind == PARKED_TOKEN;
}

static const enum lock_kind lock_kinds[] = {
	[PARKED_FLOCK] = LOCK_KIND_FLOCK,
	[PARKED_OPEN] = LOCK_KIND_OPEN,
	[PARKED_RECORD] = LOCK_KIND_RECORD,
};

/* A call that asks for a lock has ended. */
static void count(const struct parked *parked)
{
	if (parked->kind <= PARKED_RECORD)
		metrics_count_acquisition(&parked->handle->inode->shard->metrics,
					  lock_kinds[parked->kind],
					  parked->decided ? parked->result : -EINTR,
					  histogram_now_us() - parked->since_us);
}

/* What the request of flock(2) or fcntl(2) says of the lock: `owner` is the kernel's lock owner,
 * `lk.pid` the caller of fcntl(2). Returns false, with zeros, if no such request was kept. */
static bool read_lock(const struct parked *parked, struct fuse_lk_in *ret)
{
	bool is_lock = parked->kind != PARKED_OPEN && parked->request_bytes == PARKED_REQUEST_BYTES;

	*ret = (struct fuse_lk_in){0};
	if (is_lock)
		memcpy(ret, parked->request + sizeof(struct fuse_in_header), sizeof(*ret));
	return is_lock;
}

/* The call is decided, and about to be answered. */
static void tell_audit(const struct parked *parked, int result)
{
	struct fuse_lk_in lock;

	if (parked->kind > PARKED_RECORD || parked->waiting.req == NULL ||
	    !audit_is_on(parked->handle->filesystem))
		return;
	bool has_lock = read_lock(parked, &lock);
	const struct audit_call call = {.req = parked->waiting.req,
					.kind = lock_kinds[parked->kind],
					.lock = has_lock ? &lock : NULL,
					.since_us = parked->since_us};
	audit_decided(parked->handle, &call, result);
}

void parked_free(struct parked *parked)
{
	struct handle *handle = parked->handle;
	count(parked);
	DL_DELETE(handle->parked, &parked->waiting);
	waiting_end(handle->filesystem, &parked_kind, &parked->waiting);
	state_journal_remove(handle->filesystem->journal, &parked->waiting.item);
	if (parked->kind == PARKED_OPEN)
		DL_DELETE(handle->inode->opening, opening_of(parked));
	else if (is_proof(parked))
		questions_leave(&handle->inode->shard->proofs,
				&((struct proving *)parked)->question);
	free(parked);
}

static void answer(const struct parked *parked, int result)
{
	struct inode *inode = parked->handle->inode;
	struct stat attr;

	if (result == -ENOMEM && (parked->kind == PARKED_RECORD || parked->kind == PARKED_TEST))
		result = -ENOLCK; /* which fcntl(2) knows */
	if (result == 0)
		answers_tell_of(parked->handle);
	if (result != 0 || (parked->kind != PARKED_OPEN && parked->kind != PARKED_BESIDE)) {
		fuse_reply_err(parked->waiting.req, -result);
		return;
	}
	inode_stat(inode, &attr);
	fuse_reply_attr(parked->waiting.req, &attr, inode_attr_timeout(inode));
}

/* Takes the wish or question back: the engine does not answer it any more. */
static void take_back(const struct parked *parked)
{
	if (is_proof(parked) && parked->proof != NULL)
		engine_cancel_proof(parked->proof);
	else if (parked->kind == PARKED_TEST)
		engine_cancel_test(parked->test);
	else if (is_proof(parked) || parked->kind == PARKED_BESIDE)
		return;
	else if (!parked->decided && parked->wish != NULL)
		engine_cancel(parked->wish);
}

static bool is_foreign(const struct parked *parked)
{
	return parked->kind == PARKED_OPEN && ((const struct opening *)parked)->thread == 0;
}

/* The request has been answered. That of a foreign exclusive open may have been another process's:
 * so those beside it get the same answer; and if the open has failed, whoever asks next, too. */
static void conclude(struct parked *parked, int result)
{
	struct waiting *waiting, *next;

	if (!is_foreign(parked)) {
		parked_free(parked);
		return;
	}
	DL_FOREACH_SAFE (parked->handle->parked, waiting, next) {
		struct parked *beside = parked_of(waiting);
		if (beside->kind != PARKED_BESIDE)
			continue;
		answer(beside, result);
		parked_free(beside);
	}
	if (result == 0) {
		parked_free(parked);
		return;
	}
	parked->waiting.req = NULL;
	parked->request_bytes = 0; /* not to be handled again */
	parked->wish = NULL;
	parked->decided = true;
	parked->result = result;
	mark(parked);
}

void parked_interrupt(struct parked *parked, fuse_req_t req)
{
	take_back(parked);
	tell_audit(parked, -EINTR);
	fuse_reply_err(req, EINTR);
	/* Whoever else asks was not interrupted: stat(2) looks again, and open(2) begins anew. */
	conclude(parked, is_foreign(parked) ? -ESTALE : -EINTR);
}

static void on_interrupt(fuse_req_t req, void *data)
{
	struct parked *parked = data;

	if (!is_proof(parked) || parked->proof == NULL) {
		parked_interrupt(parked, req);
		return;
	}
	/* Until the servers have answered it counts as under way: or else who interrupts its calls
	 * again and again could have any number of them there. */
	answer(parked, -EINTR);
	parked->waiting.req = NULL;
	parked->request_bytes = 0;
	mark(parked);
}

static void refuse(struct waiting *waiting, int error)
{
	struct parked *parked = parked_of(waiting);

	take_back(parked);
	if (!parked->decided) {
		tell_audit(parked, error);
		parked->result = error;
	}
	parked->decided = true;
	if (waiting->req != NULL)
		answer(parked, error);
	parked_free(parked);
}

const struct waiting_kind parked_kind = {
	.share = USER_WAITERS,
	.saves_itself = true,
	.on_interrupt = on_interrupt,
	.refuse = refuse,
};

bool parked_lacks_lock(const struct handle *handle)
{
	struct waiting *waiting;

	DL_FOREACH (handle->parked, waiting) {
		const struct parked *parked = parked_of(waiting);
		if (is_foreign(parked) && !(parked->decided && parked->result == 0))
			return true;
	}
	return false;
}

static void keep_request(struct parked *parked)
{
	const struct requests *requests = parked->handle->filesystem->requests;

	if (requests->handled == NULL || requests->handled_bytes > PARKED_REQUEST_BYTES)
		return;
	memcpy(parked->request, requests->handled, requests->handled_bytes);
	parked->request_bytes = (uint8_t)requests->handled_bytes;
	mark(parked);
}

bool parked_hold(struct parked *parked, fuse_req_t req)
{
	if (waiting_hold(&parked_kind, &parked->waiting, req) != 0)
		return false;
	keep_request(parked);
	return true;
}

/* That of another process, which handled the request; NULL: there is none. */
static struct parked *find_kept(const struct handle *handle, const void *request)
{
	uint64_t unique = request_header(request).unique;
	struct waiting *waiting;

	DL_FOREACH (handle->parked, waiting) {
		struct parked *parked = parked_of(waiting);
		if (parked->waiting.req == NULL && parked->request_bytes > 0 &&
		    request_header(parked->request).unique == unique)
			return parked;
	}
	return NULL;
}

bool parked_resume(struct handle *handle, fuse_req_t req)
{
	const void *request = handle->filesystem->requests->handled;
	struct parked *parked = request != NULL ? find_kept(handle, request) : NULL;

	if (parked == NULL)
		return false;
	if (!parked_hold(parked, req)) {
		take_back(parked);
		parked_free(parked);
		fuse_reply_err(req, EINTR);
	} else if (parked->decided) {
		parked_decide(parked, parked->result);
	}
	return true;
}

static const char *const kind_words[] = {
	[PARKED_FLOCK] = "flock",
	[PARKED_OPEN] = "open",
	[PARKED_RECORD] = "record",
};

static const struct field fields[] = {
	{"number", FIELD_UNSIGNED(struct parked, number, UINT64_MAX)},
	{"decided", FIELD_FLAG(struct parked, decided)},
	{"result", FIELD_NUMBER(struct parked, result, -4095, 0), FIELD_OR(0)},
	{"since_us", FIELD_NUMBER(struct parked, since_us, 0, INT64_MAX)},
	{0},
};

static const struct field opening_fields[] = {
	{"thread", FIELD_NUMBER(struct opening, thread, 0, INT32_MAX)},
	{"uid", FIELD_UNSIGNED(struct opening, uid, UINT32_MAX)},
	{"gid", FIELD_UNSIGNED(struct opening, gid, UINT32_MAX)},
	{"mode", FIELD_UNSIGNED(struct opening, mode, UINT32_MAX)},
	{"keeps_text", FIELD_FLAG(struct opening, keeps_text)},
	{0},
};

/* A test or a proof is not saved: its request, if it is not answered, is handled again, and asks
 * the engine again. */
void parked_save(const struct parked *parked, FILE *out)
{
	if (parked->kind > PARKED_RECORD && parked->request_bytes == 0)
		return;
	if (parked->kind > PARKED_RECORD) {
		kept_request_write(parked->request, parked->request_bytes, out);
		return;
	}
	state_begin(out, "parked");
	state_text(out, "kind", kind_words[parked->kind]);
	state_unsigned(out, "handle", parked->handle->number);
	fields_save(fields, parked, out);
	state_unsigned(out, "user", parked->waiting.uid);
	state_bytes(out, "bytes", parked->request, parked->request_bytes);
	if (parked->kind == PARKED_OPEN)
		fields_save(opening_fields, parked, out);
	state_end(out);
}

/* Whether a request of the kind may have so many bytes. That of an exclusive open comes later than
 * its wish. */
static bool is_request(enum parked_kind kind, size_t bytes)
{
	if (kind == PARKED_RECORD)
		return bytes == PARKED_REQUEST_BYTES;
	if (kind == PARKED_OPEN && bytes == 0)
		return true;
	return bytes >= sizeof(struct fuse_in_header) && bytes <= PARKED_REQUEST_BYTES;
}

struct parked *parked_restore(struct handle *handle, struct state_reader *in)
{
	enum parked_kind kind = (enum parked_kind)state_get_word(
		in, "kind", kind_words, sizeof(kind_words) / sizeof(*kind_words));
	size_t bytes;
	const void *request = state_get_bytes(in, "bytes", &bytes);

	if (!is_request(kind, bytes))
		state_refuse(in, "bytes", "a request");
	if (state_failed(in))
		return NULL;
	uid_t user = (uid_t)state_find_unsigned(in, "user", UINT32_MAX);
	struct opening *opening = create(sizeof(*opening), handle, kind, user);
	if (opening == NULL) {
		state_starve(in);
		return NULL;
	}
	struct parked *parked = &opening->parked;
	fields_restore(fields, parked, in);
	memcpy(parked->request, request, bytes);
	parked->request_bytes = (uint8_t)bytes;
	if (kind == PARKED_OPEN) {
		fields_restore(opening_fields, opening, in);
		DL_APPEND(handle->inode->opening, opening);
	}
	return parked;
}

void parked_decide(struct parked *parked, int result)
{
	struct handle *handle = parked->handle;

	if (parked->kind == PARKED_OPEN && !parked->decided) {
		const struct opening *opening = opening_of(parked);
		if (result == -EWOULDBLOCK)
			result = -EEXIST;
		else if (result == 0 && is_foreign(parked))
			inode_take_name(handle->filesystem, handle->inode, opening->keeps_text);
		if (result == 0)
			inode_recreate(handle->inode, opening->mode, opening->uid, opening->gid,
				       opening->keeps_text);
		if (result == 0)
			brief_grant(handle, &opening->maker);
	}
	parked->decided = true;
	parked->result = result;
	mark(parked);
	if (parked->waiting.req == NULL)
		return;
	if (result == 0 && parked->kind == PARKED_RECORD) {
		struct fuse_lk_in lock;
		read_lock(parked, &lock);
		holder_take_range(handle, lock.owner, (pid_t)lock.lk.pid);
	} else if (result == 0) {
		holder_take_file(handle, fuse_req_ctx(parked->waiting.req)->pid);
	}
	tell_audit(parked, result);
	answer(parked, result);
	conclude(parked, result);
}

/* The kernel takes no more than the type of F_UNLCK, and leaves the rest as the caller gave it
 * (fcntl_getlk()). The kernel shows the pid as the caller's pid namespace has it, 0 if the process
 * is on another host or has ended, and always -1 to F_OFD_GETLK. */
void parked_reply_lock(fuse_req_t req, const struct engine_conflict *conflict)
{
	struct flock lock = {.l_type = F_UNLCK, .l_whence = SEEK_SET};

	if (conflict != NULL) {
		struct claim_span span = conflict->range.span;
		lock.l_type = conflict->range.mode == CLAIM_EXCLUSIVE ? F_WRLCK : F_RDLCK;
		lock.l_start = span.start;
		lock.l_len = span.end == INT64_MAX ? 0 : span.end - span.start + 1;
		lock.l_pid = claim_text_process(conflict->pid);
	}
	fuse_reply_lock(req, &lock);
}

void parked_tell(struct parked *parked, int error, const struct engine_conflict *conflict)
{
	if (error != 0)
		answer(parked, error);
	else
		parked_reply_lock(parked->waiting.req, conflict);
	parked_free(parked);
}

void parked_prove(struct parked *parked, int error, uint64_t token)
{
	if (parked->waiting.req == NULL) {
		parked_free(parked);
		return;
	}
	if (error == 0 && parked->kind == PARKED_TOKEN) {
		answers_tell_of(parked->handle);
		audit_told(parked->waiting.req, parked->handle, token);
		fuse_reply_ioctl(parked->waiting.req, 0, &token, sizeof(token));
	} else {
		answer(parked, error);
	}
	parked_free(parked);
}
