/* SPDX-License-Identifier: Apache-2.0
 *
 * Saves and restores the keys. A line `key` for each lock, in front of those of the queues:
 *
 *   path, value   the lock, and the value of the latest attempt to take its key
 *   step          ours, or elsewhere, or any other
 *   heard_ms      of a key of this host: from when on its lease counts (clock_now_ms())
 *   had           how many claims the turn had
 *   gate          its name
 *
 * A value that is not known to be this host's key is given back by who restores it: the attempt may
 * have succeeded. Loop thread only.
 */
#include "stores/redis/save.h"

#include <errno.h>
#include <string.h>

#include "journal/fields.h"

struct saved_key {
	const char *path, *value, *gate;
	enum key_step step;
	int64_t heard_ms;
	uint64_t had;
};

static const char *const steps[] = {
	[KEY_IDLE] = "idle",
	[KEY_ASKED] = "asked",
	[KEY_ELSEWHERE] = "elsewhere",
	[KEY_OURS] = "ours",
};

static const struct field key_fields[] = {
	{"path", FIELD_TEXT(struct saved_key, path)},
	{"value", FIELD_TEXT(struct saved_key, value)},
	{"gate", FIELD_TEXT(struct saved_key, gate)},
	{"step", FIELD_WORD(struct saved_key, step, steps)},
	{"heard_ms", FIELD_NUMBER(struct saved_key, heard_ms, 0, INT64_MAX)},
	{"had", FIELD_UNSIGNED(struct saved_key, had, SIZE_MAX)},
	{0},
};

static struct redis_lock *lock_of(const struct state_item *item)
{
	return STATE_WHOLE(item, struct redis_lock, item);
}

/* Behind the line `shard`, and in front of those of the queues. */
static struct state_place place_key(const struct state_item *item)
{
	const struct redis_lock *lock = lock_of(item);

	return (struct state_place){{lock->store->place, 0, lock->serial}};
}

static void save_key(const struct state_item *item, FILE *out)
{
	const struct redis_lock *lock = lock_of(item);
	const struct saved_key saved = {
		.path = lock->path,
		.value = lock->value,
		.gate = lock->gate.name,
		.step = lock->key.step,
		.heard_ms = lock->key.step == KEY_OURS ? lock->key.heard_ms : 0,
		.had = lock->key.had,
	};

	state_begin(out, "key");
	fields_save(key_fields, &saved, out);
	state_end(out);
}

static const struct state_kind key_kind = {place_key, save_key};

int64_t redis_save_session(const struct store *base)
{
	return (int64_t)store_local_session(((const struct store_redis *)base)->queues.home);
}

void redis_save_flag(const struct store *base, FILE *out)
{
	(void)base;
	state_flag(out, "redis", true);
}

void redis_save_claims(const struct store *base, FILE *out)
{
	const struct store_redis *store = (const struct store_redis *)base;
	const struct store *home = store->queues.home;
	struct redis_lock *lock;

	for (lock = store->locks; lock != NULL; lock = lock->hh.next)
		save_key(&lock->item, out);
	home->ops->save_claims(home, out);
}

void redis_save_keep(struct store *base, struct state_journal *journal, uint64_t place)
{
	struct store_redis *store = store_redis_from(base);
	struct store *home = store->queues.home;
	struct redis_lock *lock;

	store->journal = journal;
	store->key_kind = &key_kind;
	store->place = place;
	for (lock = store->locks; lock != NULL; lock = lock->hh.next)
		state_journal_mark(journal, &lock->item, &key_kind);
	home->ops->keep_claims(home, journal, place);
}

static int restore_key(struct store_redis *store, struct state_reader *in)
{
	struct saved_key saved;
	struct redis_lock *lock;

	if (fields_restore(key_fields, &saved, in) < 0)
		return -EINVAL;
	if (*saved.path == '\0' || redis_lock_find(store, saved.path) != NULL)
		return state_refuse(in, "path", "that of a lock, once");
	if (strlen(saved.value) >= sizeof(lock->value))
		return state_refuse(in, "value", "one of dlockfs");
	lock = redis_lock_open(store, saved.path);
	if (lock == NULL)
		return state_starve(in);
	strcpy(lock->value, saved.value);
	if (*saved.gate != '\0' && !redis_gate_read(&lock->gate, saved.gate))
		return state_refuse(in, "gate", "the name of a claim");
	key_restore(&lock->key, saved.step == KEY_OURS, *saved.gate != '\0', saved.heard_ms,
		    (size_t)saved.had);
	return 0;
}

/* The keys come first, and their claims later: what follows from both is found at the end. */
int redis_save_restore(struct store *base, struct state_reader *in)
{
	struct store_redis *store = store_redis_from(base);
	struct store *home = store->queues.home;
	int more, error = 0;

	while (error == 0 && (more = state_next(in)) != 0) {
		if (more < 0) {
			error = more;
		} else if (strcmp(in->word, "key") == 0) {
			error = restore_key(store, in);
		} else {
			state_again(in);
			break;
		}
	}
	if (error == 0)
		error = home->ops->restore_claims(home, in);
	if (error == 0 && redis_locks_restored(store) < 0)
		error = state_starve(in);
	return error;
}
