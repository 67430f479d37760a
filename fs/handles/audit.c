/* SPDX-License-Identifier: Apache-2.0
 *
 * Owns the wording of the lines: "audit: granted kind=flock mode=exclusive host=web1 pid=4711 uid=0
 * command=backup waited=0.000123 lock=cron/backup", values as base/escape.h writes them. What is
 * not known is left out. Loop thread only.
 */
#include "handles/audit.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/fuse.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <utlist.h>

#include "base/escape.h"
#include "base/histogram.h"
#include "base/log.h"
#include "base/log_queue.h"
#include "files/claim_text.h"
#include "files/inode.h"
#include "files/user_lines.h"
#include "handles/audit_note.h"
#include "handles/handle.h"

#define FIELD_PREFIX "DLOCKFS_"
#define LINE_BYTES   2048 /* of a message in the log */
#define VALUE_BYTES  4097 /* the longest is the name of a lock */
#define FIELD_BYTES  (VALUE_BYTES + 32)

static const char *const kind_words[] = {
	[LOCK_KIND_OPEN] = "open",
	[LOCK_KIND_FLOCK] = "flock",
	[LOCK_KIND_RECORD] = "record",
};

/* A line that is being made. */
struct line {
	char text[LINE_BYTES];
	size_t used;
	char fields[LOG_FIELDS_MAX][FIELD_BYTES];
	size_t count;
};

__attribute__((format(printf, 4, 5))) static void add(struct line *line, const char *key,
						      const char *field, const char *format, ...)
{
	char value[VALUE_BYTES];
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(value, sizeof(value), format, arguments);
	va_end(arguments);
	snprintf(line->fields[line->count++], FIELD_BYTES, FIELD_PREFIX "%s=%s", field, value);
	if (line->used >= LINE_BYTES - 1)
		return;
	line->used +=
		(size_t)snprintf(line->text + line->used, LINE_BYTES - line->used, " %s=", key);
	if (line->used >= LINE_BYTES - 1)
		return;
	escape_format(line->text + line->used, LINE_BYTES - line->used, value);
	line->used += strlen(line->text + line->used);
}

static void begin(struct line *line, const char *event)
{
	line->used = (size_t)snprintf(line->text, LINE_BYTES, "audit: %s", event);
	line->count = 0;
	snprintf(line->fields[line->count++], FIELD_BYTES, FIELD_PREFIX "AUDIT=%s", event);
}

static void write_line(const struct line *line)
{
	const char *fields[LOG_FIELDS_MAX];

	for (size_t i = 0; i < line->count; i++)
		fields[i] = line->fields[i];
	log_queue_write(line->text, fields, line->count);
}

/* The lock is last: where the line is too long for the log, its name alone is cut. */
static void end(struct line *line, const char *path)
{
	add(line, "lock", "LOCK", "%s", path);
	write_line(line);
}

static void add_seconds(struct line *line, const char *key, const char *field, int64_t us)
{
	us = us > 0 ? us : 0;
	add(line, key, field, "%" PRId64 ".%06" PRId64, us / 1000000, us % 1000000);
}

static void add_holder(struct line *line, const struct filesystem *filesystem,
		       const struct audit_note *note)
{
	add(line, "host", "HOST", "%s", filesystem->host);
	if (note->pid > 0) /* else of another pid namespace */
		add(line, "pid", "PID", "%d", (int)note->pid);
	add(line, "uid", "UID", "%u", (unsigned int)note->uid);
	if (note->command[0] != '\0')
		add(line, "command", "COMMAND", "%s", note->command);
}

static void add_span(struct line *line, struct claim_span span)
{
	if (span.end == INT64_MAX)
		add(line, "range", "RANGE", "%" PRId64 "-", span.start);
	else
		add(line, "range", "RANGE", "%" PRId64 "-%" PRId64, span.start, span.end);
}

static void add_mode(struct line *line, const struct audit_note *note)
{
	add(line, "mode", "MODE", "%s", note->mode == CLAIM_EXCLUSIVE ? "exclusive" : "shared");
}

static const char *error_word(int error)
{
	static const struct {
		int error;
		const char *word;
	} words[] = {{EWOULDBLOCK, "EWOULDBLOCK"},
		     {EEXIST, "EEXIST"},
		     {EDEADLK, "EDEADLK"},
		     {ENOLCK, "ENOLCK"},
		     {EINTR, "EINTR"},
		     {ENOMEM, "ENOMEM"},
		     {EIO, "EIO"}};

	for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++) {
		if (words[i].error == -error)
			return words[i].word;
	}
	return "other";
}

/* The caller of the request, in a note of this kind. */
static struct audit_note note_caller(fuse_req_t req, enum lock_kind kind)
{
	struct audit_note note = {.kind = kind, .mode = CLAIM_EXCLUSIVE};
	struct claim_details details;

	claim_text_ask(req, &details);
	note.pid = details.pid;
	note.uid = fuse_req_ctx(req)->uid;
	memcpy(note.command, details.command, sizeof(note.command));
	return note;
}

static struct claim_span span_of(const struct fuse_file_lock *lock)
{
	int64_t end = lock->end > INT64_MAX ? INT64_MAX : (int64_t)lock->end;
	return (struct claim_span){(int64_t)lock->start, end};
}

/* Why what was held through the open file has ended, unless its holder wanted that; NULL: it is not
 * known. */
static const char *reason_of(const struct handle *handle, const struct audit_note *note)
{
	static const char *const words[] = {
		[ENGINE_LOSS_SESSION] = "session",  [ENGINE_LOSS_BROKEN] = "broken",
		[ENGINE_LOSS_EXPIRED] = "max_hold", [ENGINE_LOSS_TAKEN] = "deleted",
		[ENGINE_LOSS_STOPPED] = "stopped",
	};

	if (handle->fenced)
		return handle->owner != NULL ? words[engine_file_loss(handle->owner)] : NULL;
	return note->revoked ? "revoked" : NULL;
}

/* The lock was held until now. */
static void write_end(const struct handle *handle, const struct audit_note *note, const char *event,
		      const struct claim_span *span)
{
	struct filesystem *filesystem = handle->filesystem;
	const char *reason = reason_of(handle, note);
	struct line line;

	if (!user_lines_pass(filesystem, note->uid, USER_LINES_AUDIT))
		return;
	begin(&line, event);
	add(&line, "kind", "KIND", "%s", kind_words[note->kind]);
	if (note->kind != LOCK_KIND_RECORD) /* else it may be several */
		add_mode(&line, note);
	if (span != NULL)
		add_span(&line, *span);
	add_holder(&line, filesystem, note);
	add_seconds(&line, "held", "HELD", histogram_now_us() - note->since_us);
	if (reason != NULL)
		add(&line, "why", "WHY", "%s", reason);
	if (note->token != 0)
		add(&line, "token", "TOKEN", "%" PRIu64, note->token);
	end(&line, handle->inode->path);
}

/* Where a note of that kind stands. */
static struct audit_note **notes_of(const struct handle *handle, enum lock_kind kind)
{
	return kind == LOCK_KIND_RECORD ? &handle_holders(handle)->audited
					: &handle->filesystem->handles->audited;
}

/* The note of flock or exclusive open; NULL: there is none. */
static struct audit_note *find_of_file(const struct handle *handle)
{
	return audit_note_of_file(handle->filesystem->handles->audited, handle->number);
}

/* The note of the owner's record locks; NULL: there is none, or no holder of the path. */
static struct audit_note *find_of_owner(const struct handle *handle, uint64_t owner)
{
	const struct holders *holders = handle_holders(handle);
	return holders != NULL ? audit_note_of_owner(holders->audited, owner) : NULL;
}

/* The note of record locks may be in the line of another open file of the path. */
static void remove_note(const struct handle *handle, struct audit_note *note)
{
	struct handle *noted = handle_of_number(handle->filesystem->handles, note->handle);

	audit_note_remove(notes_of(handle, note->kind), note);
	if (noted != NULL)
		handle_mark(noted);
}

static void write_and_remove(const struct handle *handle, struct audit_note *note,
			     const char *event)
{
	write_end(handle, note, event, NULL);
	remove_note(handle, note);
}

/* Notes a grant. Returns false if it is one of what is held already, which changes nothing. */
static bool note_grant(struct handle *handle, const struct audit_note *note)
{
	struct audit_note *former = note->kind == LOCK_KIND_RECORD
					    ? find_of_owner(handle, note->owner)
					    : find_of_file(handle);

	if (former != NULL && note->kind == LOCK_KIND_RECORD)
		return true; /* of another range; it holds since the first */
	if (former != NULL && former->mode == note->mode)
		return false;
	if (former != NULL) /* the former mode went first, as flock(2) says */
		write_and_remove(handle, former, "released");
	if (audit_note_add(notes_of(handle, note->kind), note))
		handle_mark(handle);
	return true;
}

void audit_decided(struct handle *handle, const struct audit_call *call, int result)
{
	const struct fuse_lk_in *lock = call->lock;
	bool is_record = call->kind == LOCK_KIND_RECORD;
	struct audit_note note = note_caller(call->req, call->kind);
	struct line line;

	if (lock != NULL)
		note.mode = lock->lk.type == F_RDLCK ? CLAIM_SHARED : CLAIM_EXCLUSIVE;
	note.handle = handle->number;
	if (lock != NULL && is_record)
		note.owner = lock->owner;
	note.since_us = histogram_now_us();
	if (result == 0 && !note_grant(handle, &note))
		return;
	if (!user_lines_pass(handle->filesystem, note.uid, USER_LINES_AUDIT))
		return;
	begin(&line, result == 0 ? "granted" : "refused");
	add(&line, "kind", "KIND", "%s", kind_words[note.kind]);
	add_mode(&line, &note);
	if (lock != NULL && is_record)
		add_span(&line, span_of(&lock->lk));
	add_holder(&line, handle->filesystem, &note);
	add_seconds(&line, "waited", "WAITED", note.since_us - call->since_us);
	if (result != 0)
		add(&line, "error", "ERROR", "%s", error_word(result));
	end(&line, handle->inode->path);
}

void audit_refused(fuse_req_t req, const char *path, enum lock_kind kind, int error)
{
	struct filesystem *filesystem = filesystem_of(req);
	struct line line;

	if (!audit_is_on(filesystem) ||
	    !user_lines_pass(filesystem, fuse_req_ctx(req)->uid, USER_LINES_AUDIT))
		return;
	struct audit_note note = note_caller(req, kind);
	begin(&line, "refused");
	add(&line, "kind", "KIND", "%s", kind_words[kind]);
	add_holder(&line, filesystem, &note);
	add(&line, "error", "ERROR", "%s", error_word(error));
	end(&line, path);
}

void audit_released_file(struct handle *handle)
{
	struct audit_note *note = find_of_file(handle);

	if (note != NULL)
		write_and_remove(handle, note, "released");
}

void audit_released_range(struct handle *handle, uint64_t owner, struct claim_span span, bool all)
{
	struct audit_note *note = find_of_owner(handle, owner);

	if (note == NULL)
		return;
	write_end(handle, note, "released", &span);
	if (all)
		remove_note(handle, note);
}

void audit_released_ranges(struct handle *handle, uint64_t owner)
{
	struct audit_note *note = NULL;

	if (audit_is_on(handle->filesystem))
		note = find_of_owner(handle, owner);
	if (note != NULL)
		write_and_remove(handle, note, "released");
}

/* What is noted for the open file has ended. */
static void end_all(struct handle *handle, const char *event)
{
	const struct holders *holders = handle_holders(handle);
	struct audit_note *note, *next;

	note = find_of_file(handle);
	if (note != NULL)
		write_and_remove(handle, note, event);
	if (holders == NULL)
		return;
	DL_FOREACH_SAFE (holders->audited, note, next) {
		if (note->handle == handle->number)
			write_and_remove(handle, note, event);
	}
}

void audit_closed(struct handle *handle)
{
	if (audit_is_on(handle->filesystem))
		end_all(handle, handle->fenced ? "lost" : "released");
}

void audit_lost(struct handle *handle)
{
	if (audit_is_on(handle->filesystem))
		end_all(handle, "lost");
}

static void mark_revoked(struct audit_note *note, const struct handle *handle)
{
	if (note != NULL && note->handle == handle->number)
		note->revoked = true;
}

void audit_revoked(struct handle *handle)
{
	const struct holders *holders = handle_holders(handle);
	struct audit_note *note;

	if (!audit_is_on(handle->filesystem))
		return;
	mark_revoked(find_of_file(handle), handle);
	if (holders == NULL)
		return;
	DL_FOREACH (holders->audited, note) {
		mark_revoked(note, handle);
	}
}

static bool set_token(struct audit_note *note, const struct handle *handle, uint64_t token)
{
	if (note == NULL || note->handle != handle->number || note->token == token)
		return false;
	note->token = token;
	return true;
}

void audit_told(fuse_req_t req, struct handle *handle, uint64_t token)
{
	const struct holders *holders = handle_holders(handle);
	struct audit_note *note;
	struct line line;

	if (!audit_is_on(handle->filesystem))
		return;
	bool changed = set_token(find_of_file(handle), handle, token);
	if (holders != NULL) {
		DL_FOREACH (holders->audited, note) {
			changed |= set_token(note, handle, token);
		}
	}
	if (!changed)
		return;
	handle_mark(handle);
	if (!user_lines_pass(handle->filesystem, fuse_req_ctx(req)->uid, USER_LINES_AUDIT))
		return;
	struct audit_note caller = note_caller(req, LOCK_KIND_FLOCK);
	begin(&line, "token");
	add_holder(&line, handle->filesystem, &caller);
	add(&line, "token", "TOKEN", "%" PRIu64, token);
	end(&line, handle->inode->path);
}

void audit_tell_left_out(struct filesystem *filesystem, bool all)
{
	struct line line;
	uint64_t count;
	uid_t uid;

	while (user_lines_next(filesystem, USER_LINES_AUDIT, all, &uid, &count)) {
		begin(&line, "more");
		add(&line, "host", "HOST", "%s", filesystem->host);
		add(&line, "uid", "UID", "%u", (unsigned int)uid);
		add(&line, "lines", "LINES", "%" PRIu64, count);
		write_line(&line);
	}
}

static void forget_all(struct handle *handle)
{
	struct holders *holders = handle_holders(handle);
	struct audit_note *note = find_of_file(handle);

	if (note != NULL)
		audit_note_remove(notes_of(handle, note->kind), note);
	while (holders != NULL && holders->audited != NULL)
		audit_note_remove(&holders->audited, holders->audited);
	handle_mark(handle);
}

void audit_reload(struct filesystem *filesystem)
{
	struct handle *handle;

	if (audit_is_on(filesystem))
		return;
	HANDLES_FOREACH (filesystem->handles, handle) {
		if (handle->owner != NULL)
			forget_all(handle);
	}
}

void audit_restore(struct handle *handle, struct state_reader *in)
{
	const struct holders *holders = handle_holders(handle);
	struct audit_note note;
	size_t bytes;

	if (!audit_is_on(handle->filesystem) || holders == NULL || !state_has(in, "audit"))
		return;
	const char *text = state_get_bytes(in, "audit", &bytes);
	while (audit_note_read(&text, &note)) {
		note.handle = handle->number;
		if (note.kind != LOCK_KIND_RECORD && find_of_file(handle) != NULL)
			continue;
		audit_note_add(notes_of(handle, note.kind), &note);
	}
}
