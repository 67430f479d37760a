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

enum { TEXT_BYTES = 512, SHOWN_BYTES = 384 };

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

static void explain_block(const struct redis_gate *gate, char *text, size_t bytes)
{
	snprintf(text, bytes, "%s%s has no end and is not ours: it blocks %s until it is deleted",
		 gate->store->prefix, gate->path, gate->path);
}

/* Behind a turn of this host the gate waits for the claims in front of it: who holds one of them
 * and asks for more goes before it. */
static char *make_text(const struct redis_gate *gate, const struct redis_holder *holder)
{
	const char *value = holder->value != NULL ? holder->value : "";
	char shown[SHOWN_BYTES], text[TEXT_BYTES], why[TEXT_BYTES];
	int bytes;

	if (read_host(value, shown)) {
		bytes = snprintf(text, sizeof(text), "format=1\nmode=exclusive\nhost=%s\n", shown);
	} else if (*value != '\0') {
		explain_block(gate, why, sizeof(why));
		escape_format(shown, sizeof(shown), holder->is_endless ? why : value);
		bytes = snprintf(text, sizeof(text),
				 "format=1\nmode=exclusive\nclient=other\ncommand=%s\n", shown);
	} else {
		bytes = snprintf(text, sizeof(text), "format=1\nmode=exclusive\n");
	}
	if (holder->waits)
		snprintf(text + bytes, sizeof(text) - (size_t)bytes, "waits=%lld\n",
			 (long long)(gate->order > 1 ? gate->order - 1 : 0));
	return strdup(text);
}

static void set_text(struct redis_gate *gate, const struct redis_holder *holder)
{
	struct store *strangers = gate->store->queues.strangers;
	char *text = make_text(gate, holder);

	gate->blocks = holder->is_endless && holder->value != NULL && !holder->waits;

	if (text == NULL || (gate->text != NULL && strcmp(text, gate->text) == 0) ||
	    store_local_rewrite(strangers, gate->path, gate->name, text) < 0) {
		free(text);
		return;
	}
	free(gate->text);
	gate->text = text;
}

static int put(struct redis_gate *gate, const struct claim_name *name)
{
	struct claim_name placed;
	int error = store_local_put(gate->store->queues.strangers, gate->path, name, "format=1\n",
				    gate->name);

	if (error != 0 || !claim_name_parse(gate->name, &placed)) {
		gate->name[0] = '\0';
		return -ENOMEM;
	}
	gate->order = placed.order;
	return 0;
}

void redis_gate_raise(struct redis_gate *gate, const struct redis_holder *holder)
{
	struct redis_queues *queues = &gate->store->queues;
	const struct claim_name name = {
		.id = {.session = queues->gate_session, .number = ++queues->gates},
		.span = CLAIM_SPAN_WHOLE,
		.mode = CLAIM_EXCLUSIVE,
		.recipe = gate->recipe,
	};

	if (put(gate, &name) < 0)
		redis_starve(gate->store);
	else
		set_text(gate, holder);
}

void redis_gate_show(struct redis_gate *gate, const struct redis_holder *holder)
{
	if (gate->name[0] != '\0')
		set_text(gate, holder);
}

void redis_gate_lower(struct redis_gate *gate)
{
	if (gate->name[0] != '\0')
		store_local_take(gate->store->queues.strangers, gate->path, gate->name);
	gate->name[0] = '\0';
	free(gate->text);
	gate->text = NULL;
	gate->blocks = false;
}

void redis_gate_warn(const struct redis_gate *gate, void (*say)(void *context, const char *text),
		     void *context)
{
	char text[2 * PATH_MAX + TEXT_BYTES];

	explain_block(gate, text, sizeof(text));
	if (gate->blocks)
		say(context, text);
}

bool redis_gate_read(struct redis_gate *gate, const char *text)
{
	struct claim_name name;
	bool valid = claim_name_parse(text, &name) && name.id.session != 0 && name.order > 0;

	if (valid) {
		strcpy(gate->name, text);
		gate->recipe = name.recipe;
	}
	return valid;
}

int redis_gate_restore(struct redis_gate *gate, const struct redis_holder *holder)
{
	struct claim_name name;
	int error = claim_name_parse(gate->name, &name) ? put(gate, &name) : 0;

	if (error == 0 && gate->name[0] != '\0')
		set_text(gate, holder);
	return error;
}

bool redis_gate_is(const struct redis_gate *gate, const char *name)
{
	return gate->name[0] != '\0' && strcmp(gate->name, name) == 0;
}
