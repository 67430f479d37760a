/* SPDX-License-Identifier: Apache-2.0
 *
 * Owns the gates in the queues. Loop thread only.
 */
#include "stores/redis/gate.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/escape.h"

enum { TEXT_BYTES = 512, SHOWN_BYTES = 192 };

/* The host that a value of dlockfs names. */
static bool read_host(const char *holder, char host[SHOWN_BYTES])
{
	char name[HOST_NAME_MAX + 1];
	size_t mark = strlen(REDIS_VALUE_MARK);
	const char *end;

	if (strncmp(holder, REDIS_VALUE_MARK, mark) != 0)
		return false;
	end = strchr(holder + mark, ':');
	if (end == NULL || end == holder + mark || (size_t)(end - holder) - mark >= sizeof(name))
		return false;
	snprintf(name, sizeof(name), "%.*s", (int)(end - holder - (ptrdiff_t)mark), holder + mark);
	escape_format(host, SHOWN_BYTES, name);
	return true;
}

/* Behind a turn of this host the gate waits for the claims in front of it: who holds one of them
 * and asks for more goes before it. */
static char *make_text(const struct redis_lock *lock, const char *holder)
{
	char shown[SHOWN_BYTES], text[TEXT_BYTES];
	int bytes = snprintf(text, sizeof(text), "format=1\nmode=exclusive\n");

	if (holder != NULL && read_host(holder, shown)) {
		bytes += snprintf(text + bytes, sizeof(text) - (size_t)bytes, "host=%s\n", shown);
	} else if (holder != NULL && *holder != '\0') {
		escape_format(shown, sizeof(shown), holder);
		bytes +=
			snprintf(text + bytes, sizeof(text) - (size_t)bytes, "command=%s\n", shown);
	}
	if (lock->key.step == KEY_OURS)
		snprintf(text + bytes, sizeof(text) - (size_t)bytes, "waits=%lld\n",
			 (long long)(lock->gate.order > 1 ? lock->gate.order - 1 : 0));
	return strdup(text);
}

static void set_text(struct redis_lock *lock, const char *holder)
{
	char *text = make_text(lock, holder);

	if (text == NULL || (lock->gate.text != NULL && strcmp(text, lock->gate.text) == 0)) {
		free(text);
		return;
	}
	if (store_local_rewrite(lock->store->queues.strangers, lock->path, lock->gate.name, text) <
	    0) {
		free(text);
		return;
	}
	free(lock->gate.text);
	lock->gate.text = text;
}

static int put(struct redis_lock *lock, const struct claim_name *name)
{
	struct claim_name placed;
	int error = store_local_put(lock->store->queues.strangers, lock->path, name, "format=1\n",
				    lock->gate.name);

	if (error != 0 || !claim_name_parse(lock->gate.name, &placed)) {
		lock->gate.name[0] = '\0';
		return -ENOMEM;
	}
	lock->gate.order = placed.order;
	return 0;
}

void redis_gate_raise(struct redis_lock *lock, const char *holder)
{
	struct redis_queues *queues = &lock->store->queues;
	const struct claim_name name = {
		.id = {.session = queues->gate_session, .number = ++queues->gates},
		.span = CLAIM_SPAN_WHOLE,
		.mode = CLAIM_EXCLUSIVE,
		.recipe = lock->recipe,
	};

	if (put(lock, &name) < 0)
		redis_starve(lock->store);
	else
		set_text(lock, holder);
}

void redis_gate_show(struct redis_lock *lock, const char *holder)
{
	if (lock->gate.name[0] != '\0')
		set_text(lock, holder);
}

void redis_gate_lower(struct redis_lock *lock)
{
	if (lock->gate.name[0] != '\0')
		store_local_take(lock->store->queues.strangers, lock->path, lock->gate.name);
	lock->gate.name[0] = '\0';
	free(lock->gate.text);
	lock->gate.text = NULL;
}

bool redis_gate_read(struct redis_lock *lock, const char *text)
{
	struct claim_name name;
	bool valid = claim_name_parse(text, &name) && name.id.session != 0 && name.order > 0;

	if (valid) {
		strcpy(lock->gate.name, text);
		lock->recipe = name.recipe;
	}
	return valid;
}

int redis_gate_restore(struct redis_lock *lock)
{
	struct claim_name name;
	int error = claim_name_parse(lock->gate.name, &name) ? put(lock, &name) : 0;

	if (error == 0 && lock->gate.name[0] != '\0')
		set_text(lock, NULL);
	return error;
}

bool redis_gate_is(const struct redis_lock *lock, const char *name)
{
	return lock->gate.name[0] != '\0' && strcmp(lock->gate.name, name) == 0;
}
