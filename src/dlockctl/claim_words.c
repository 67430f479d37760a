/* SPDX-License-Identifier: Apache-2.0
 *
 * How claims are worded, for people and for programs.
 */
#include <inttypes.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "dlockctl/output.h"
#include "dlockctl/text.h"

char *claim_host(const struct claim *claim)
{
	bool other = claim->client != NULL && strcmp(claim->client, "other") == 0;
	if (claim->host != NULL)
		return text_printable(claim->host);
	return must(strdup(other ? "another client" : "unknown host"));
}

char *claim_position(const struct claim *claim)
{
	if (claim->follower == 0)
		return must_format("%" PRId64, claim->position);
	return must_format("%" PRId64 ".%" PRId64, claim->position, claim->follower);
}

const char *claim_state(const struct claim *claim)
{
	if (claim->held)
		return claim->maybe_kept ? "kept?" : "held";
	if (claim->lost)
		return "lost";
	if (claim->resting)
		return "resting";
	return claim->kept ? "kept" : "waiting";
}

char *claim_mode_words(const struct claim *claim)
{
	if (claim->slots < 0)
		return must(strdup(claim->shared ? "shared" : "exclusive"));
	if (claim->slot < 0)
		return must_format("of %" PRId64 " slots", claim->slots);
	return must_format("slot %" PRId64 " of %" PRId64, claim->slot, claim->slots);
}

enum hue claim_hue(const struct claim *claim)
{
	if (claim->lost)
		return HUE_RED;
	return claim->held || claim->kept ? HUE_GREEN : HUE_YELLOW;
}

char *claim_kind(const struct claim *claim)
{
	if (claim->kind != NULL && strcmp(claim->kind, "file") == 0)
		return must(strdup("lock file"));
	return text_printable(claim->kind);
}

/* Empty if the process is of a foreign pid namespace. */
char *claim_pid(const struct claim *claim)
{
	if (claim->pid <= 0)
		return must(strdup(""));
	return must_format("%" PRId64 "%s", claim->pid, claim->maybe_former ? "?" : "");
}

char *claim_command(const struct claim *claim)
{
	return text_printable(claim->command);
}

char *claim_holder(const struct claim *claim)
{
	char *host = claim_host(claim), *pid = claim_pid(claim), *command = claim_command(claim);
	char *holder = must_format("%s%s%s%s%s", host, pid[0] != '\0' ? ":" : "", pid,
				   command[0] != '\0' ? " " : "", command);
	free(host);
	free(pid);
	free(command);
	return holder;
}

char *claim_user(const struct claim *claim)
{
	if (claim->uid < 0)
		return must(strdup(""));
	/* The number may be another user's on that host; but hosts that share locks mostly share
	 * users.
	 */
	const struct passwd *user =
		claim->uid == (uid_t)claim->uid ? getpwuid((uid_t)claim->uid) : NULL;
	return user != NULL ? text_printable(user->pw_name) : must_format("%" PRId64, claim->uid);
}

int64_t claim_seconds(const struct claim *claim)
{
	int64_t now = time(NULL);
	if (claim->since < 0)
		return -1;
	return now > claim->since ? now - claim->since : 0;
}

char *claim_age(const struct claim *claim)
{
	char age[TEXT_AGE_BYTES] = "";
	if (claim->since >= 0)
		text_age(claim_seconds(claim), age);
	return must(strdup(age));
}

char *claim_delay(const struct claim *claim)
{
	char age[TEXT_AGE_BYTES];
	int64_t left = claim->delay_until - time(NULL);
	if (claim->delay_until < 0)
		return must(strdup(""));
	text_age(left > 0 ? left : 0, age);
	return must(strdup(age));
}

char *queue_holders(const struct queue *queue)
{
	const struct claim *first = queue_holder(queue);
	if (first == NULL)
		return must(strdup(""));
	char *holder = claim_holder(first);
	size_t alike = first->held	? queue->holders
		       : first->resting ? queue->resting
		       : first->lost	? queue->lost
					: queue->kept;
	size_t more = alike - 1;
	if (more == 0)
		return holder;
	char *holders = must_format("%s +%zu more", holder, more);
	free(holder);
	return holders;
}

json_t *text_json(const char *text)
{
	json_t *string;
	if (text == NULL)
		return json_null();
	string = json_string(text); /* NULL if it is no UTF-8 */
	if (string == NULL) {
		char *shown = text_printable(text);
		string = json_string(shown);
		if (string == NULL) /* the locale is no UTF-8 */
			string = json_string("?");
		free(shown);
	}
	return must(string);
}

static json_t *number_json(int64_t number)
{
	return number >= 0 ? json_integer(number) : json_null();
}

static json_t *claim_json(const struct claim *claim)
{
	char *user = claim_user(claim);
	json_t *follower =
		claim->follower > 0 ? json_integer((json_int_t)claim->follower) : json_null();
	json_t *object = must(json_pack(
		"{s:I, s:o, s:s, s:b, s:b, s:s, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, "
		"s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}",
		"position", (json_int_t)claim->position, "follower", follower, "state",
		claim->held ? "held" : claim_state(claim), "maybe_kept",
		claim->held && claim->maybe_kept, "maybe_former", claim->maybe_former, "mode",
		claim->shared ? "shared" : "exclusive", "slots", number_json(claim->slots), "slot",
		number_json(claim->slot), "kind", text_json(claim->kind), "target",
		text_json(claim->target), "ranges", text_json(claim->ranges), "host",
		text_json(claim->host), "pid", number_json(claim->pid), "uid",
		number_json(claim->uid), "user", claim->uid >= 0 ? text_json(user) : json_null(),
		"command", text_json(claim->command), "since", number_json(claim->since), "clock",
		text_json(claim->clock), "age", number_json(claim_seconds(claim)), "lost_since",
		number_json(claim->lost_since), "delay_until", number_json(claim->delay_until),
		"client", text_json(claim->client), "session", text_json(claim->session), "claim",
		text_json(claim->claim)));
	free(user);
	return object;
}

json_t *queue_json(const struct queue *queue)
{
	json_t *claims = must(json_array());
	for (size_t i = 0; i < queue->count; i++) {
		if (json_array_append_new(claims, claim_json(&queue->claims[i])) != 0)
			must(NULL);
	}
	return must(json_pack("{s:o, s:o, s:I, s:I, s:I, s:I, s:I, s:o}", "name",
			      text_json(queue->name), "name_encoded",
			      text_json(queue->name_encoded), "holders", (json_int_t)queue->holders,
			      "kept", (json_int_t)queue->kept, "resting",
			      (json_int_t)queue->resting, "lost", (json_int_t)queue->lost,
			      "waiters", (json_int_t)queue->waiters, "claims", claims));
}

int print_json(json_t *object)
{
	/* ASCII only: others choose the content, and some characters of Unicode control terminals.
	 */
	bool written = json_dumpf(object, stdout, JSON_INDENT(2) | JSON_ENSURE_ASCII) == 0 &&
		       putchar('\n') != EOF && fflush(stdout) == 0;
	json_decref(object);
	return written ? 0
		       : fail(EX_IOERR, "standard output: cannot be written; see where it goes");
}
