/* SPDX-License-Identifier: Apache-2.0
 *
 * Owns the locks of the store, and the calls that wait at them. Loop thread only.
 */
#include "stores/redis/lock.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <utlist.h>

#include "base/clock.h"
#include "base/log.h"
#include "stores/redis/dialect.h"

static struct redis_lock *lock_of(struct key *key)
{
	return (struct redis_lock *)(void *)((char *)key - offsetof(struct redis_lock, key));
}

char *redis_lock_key(const struct redis_lock *lock)
{
	char *key = malloc(strlen(lock->store->prefix) + strlen(lock->path) + 1);

	if (key != NULL)
		stpcpy(stpcpy(key, lock->store->prefix), lock->path);
	return key;
}

/* Requests */

static int ask(struct redis_lock *lock, struct redis_request *request, enum redis_verb verb)
{
	struct store_redis *store = lock->store;
	char *key = redis_lock_key(lock);
	int error = -ENOMEM;

	if (store->service == NULL)
		error = -ENOTCONN;
	else if (key != NULL)
		error = redis_ask(store->service, request, verb, key,
				  verb != REDIS_READ ? lock->value : NULL, store->rules.ttl_ms);
	free(key);
	redis_wake(store);
	return error;
}

/* Nobody else may know it beforehand, nor draw the same one. */
static int draw_value(struct redis_lock *lock)
{
	uint64_t random[2];

	if (getrandom(random, sizeof(random), 0) != (ssize_t)sizeof(random))
		return -EIO;
	snprintf(lock->value, sizeof(lock->value), REDIS_VALUE_MARK "%s:%016llx%016llx%s",
		 lock->store->host, (unsigned long long)random[0], (unsigned long long)random[1],
		 dialect_of_recipe(lock->gate.recipe)->suffix);
	return 0;
}

static int on_take(struct key *key)
{
	struct redis_lock *lock = lock_of(key);
	int error = draw_value(lock);

	if (error == 0)
		error = ask(lock, &lock->request, REDIS_TAKE);
	return error;
}

static int on_read(struct key *key)
{
	struct redis_lock *lock = lock_of(key);

	return ask(lock, &lock->request, REDIS_READ);
}

static void on_given(struct redis_request *request, const struct redis_answer *answer)
{
	(void)request;
	(void)answer;
}

/* The service asks until it is done, or the key has ended. */
static void on_give(struct key *key)
{
	struct redis_request request = {.done = on_given};

	(void)ask(lock_of(key), &request, REDIS_GIVE);
	redis_forget(&request);
}

static void note_refusal(const struct redis_lock *lock, int error)
{
	if (error == 0 || error == -EEXIST || error == -ENOENT || error == -ECONNRESET)
		return;
	if (log_limit_passes(&lock->store->refusals, clock_now_ms(), "key", lock->path,
			     strlen(lock->path), error))
		log_error("redis: key of lock %s: %s", lock->path,
			  error == -EBADMSG ? dialect_of(lock->value)->mistaken : strerror(-error));
}

static void on_done(struct redis_request *request, const struct redis_answer *answer)
{
	struct redis_lock *lock = (void *)((char *)request - offsetof(struct redis_lock, request));

	note_refusal(lock, answer->error);
	lock->is_endless = answer->ttl_ms == REDIS_TTL_NEVER;
	lock->proofs++; /* it stays, whatever follows from the answer */
	key_answered(&lock->key, answer->error, answer->holder, clock_now_ms());
	lock->proofs--;
	redis_lock_settle(lock);
}

/* Calls */

static struct redis_call *copy(const struct redis_call *call, const char *text)
{
	struct redis_call *copy = malloc(sizeof(*copy) + (text != NULL ? strlen(text) + 1 : 0));

	if (copy == NULL)
		return NULL;
	*copy = *call;
	if (text != NULL)
		strcpy(copy->text, text);
	return copy;
}

void redis_lock_wait(struct redis_lock *lock, const struct redis_call *call, const char *text)
{
	struct redis_call *waiting = copy(call, text);

	if (waiting == NULL) {
		redis_starve(lock->store);
		return;
	}
	DL_APPEND(lock->calls, waiting);
	if (call->kind == CALL_PLACE)
		lock->gate.recipe = call->name.recipe;
	key_wait(&lock->key, call->kind == CALL_PLACE, clock_now_ms());
	redis_lock_settle(lock);
}

bool redis_lock_is_in_turn(const struct redis_lock *lock, const struct claim_name *name)
{
	if (lock->gate.name[0] == '\0' || name->order < lock->gate.order)
		return true;
	return name->anchored && name->anchor < lock->gate.order;
}

void redis_lock_place(struct redis_lock *lock, const struct redis_call *call, const char *text)
{
	struct store *home = lock->store->queues.home;
	struct claim_name name = call->name;

	name.order = INT64_MAX; /* behind the gate, if there is one */
	lock->gate.recipe = name.recipe;
	home->ops->place(home, call->tag, lock->path, &call->name, text, call->list,
			 call->attention);
	key_placed(&lock->key, redis_lock_is_in_turn(lock, &name), clock_now_ms());
}

static void make(struct redis_lock *lock, const struct redis_call *call)
{
	struct store *home = lock->store->queues.home;

	if (call->kind == CALL_PLACE)
		redis_lock_place(lock, call, call->text);
	else if (call->kind == CALL_LIST)
		home->ops->list(home, call->tag, lock->path, call->sync, call->attend);
	else if (home->ops->look(home, call->tag, lock->path) < 0)
		redis_starve(lock->store);
}

static void refuse(struct redis_lock *lock, const struct redis_call *call, int error)
{
	const struct store_redis *store = lock->store;
	struct store_look *look = call->tag;

	if (call->kind == CALL_PLACE)
		store->events->on_placed(store->context, call->tag, error, NULL, 0, 0, NULL, 0);
	else if (call->kind == CALL_LIST)
		store->events->on_listed(store->context, call->tag, error, NULL, 0);
	else
		look->done(look, error, NULL, 0, NULL, 0);
}

static void on_known(struct key *key, int error)
{
	struct redis_lock *lock = lock_of(key);
	struct redis_call *calls = lock->calls, *call, *next;

	lock->calls = NULL; /* more may come meanwhile */
	DL_FOREACH_SAFE (calls, call, next) {
		DL_DELETE(calls, call);
		if (error == 0)
			make(lock, call);
		else
			refuse(lock, call, error == -ENOMEM ? -EIO : error);
		free(call);
	}
	if (error == 0)
		redis_wake(lock->store);
}

/* By what is known here. */
static void answer_looks(struct redis_lock *lock)
{
	struct redis_call *call, *next;

	DL_FOREACH_SAFE (lock->calls, call, next) {
		if (call->kind != CALL_LOOK)
			continue;
		DL_DELETE(lock->calls, call);
		make(lock, call);
		free(call);
	}
}

/* A look is answered whatever becomes of the session. */
static void drop_calls(struct redis_lock *lock)
{
	struct redis_call *call, *next;

	answer_looks(lock);
	DL_FOREACH_SAFE (lock->calls, call, next) {
		DL_DELETE(lock->calls, call);
		free(call);
	}
}

/* The queue */

static struct redis_holder holder_of(const struct redis_lock *lock, const char *value)
{
	return (struct redis_holder){
		.value = value,
		.is_endless = lock->is_endless,
		.waits = lock->key.step == KEY_OURS,
	};
}

static void on_raise(struct key *key, const char *value)
{
	struct redis_lock *lock = lock_of(key);
	const struct redis_holder holder = holder_of(lock, value);

	redis_gate_raise(&lock->gate, &holder);
}

static void on_show(struct key *key, const char *value)
{
	struct redis_lock *lock = lock_of(key);
	const struct redis_holder holder = holder_of(lock, value);

	redis_gate_show(&lock->gate, &holder);
}

static void on_lower(struct key *key)
{
	redis_gate_lower(&lock_of(key)->gate);
}

static void take_away(void *context, const char *name)
{
	struct redis_lock *lock = context;
	struct claim_name claim;

	if (claim_name_parse(name, &claim) && redis_lock_is_in_turn(lock, &claim))
		store_local_take(lock->store->queues.strangers, lock->path, name);
}

/* The engine hears of it with the next heartbeat, and lists the queue, in which a gate stands by
 * then. What stood behind a gate may wait on. */
static void on_lost(struct key *key)
{
	struct redis_lock *lock = lock_of(key);

	log_error("redis: key of lock %s was taken away, or has ended early", lock->path);
	store_local_each(lock->store->queues.home, lock->path, take_away, lock);
	lock->store->lost += !lock->is_lost;
	lock->is_lost = true;
	redis_lease_hurry(&lock->store->lease);
	redis_wake(lock->store);
}

static const struct key_events key_events = {
	.take = on_take,
	.read = on_read,
	.give = on_give,
	.raise = on_raise,
	.show = on_show,
	.lower = on_lower,
	.known = on_known,
	.lost = on_lost,
};

struct counting {
	const struct redis_lock *lock;
	size_t turn, waiting;
};

static void count(void *context, const char *name)
{
	struct counting *counting = context;
	struct claim_name claim;

	if (!claim_name_parse(name, &claim))
		return;
	if (redis_lock_is_in_turn(counting->lock, &claim))
		counting->turn++;
	else
		counting->waiting++;
}

static struct counting count_all(const struct redis_lock *lock)
{
	struct counting counting = {.lock = lock};

	store_local_each(lock->store->queues.home, lock->path, count, &counting);
	return counting;
}

static void recount(struct redis_lock *lock)
{
	const struct counting counting = count_all(lock);
	int64_t now_ms = clock_now_ms();

	while (lock->key.waiting > counting.waiting)
		key_left(&lock->key, false, now_ms);
	while (lock->key.turn > counting.turn)
		key_left(&lock->key, true, now_ms);
}

void redis_locks_recount(struct store_redis *store)
{
	struct redis_lock *lock, *next;

	HASH_ITER (hh, store->locks, lock, next) {
		recount(lock);
		redis_lock_settle(lock);
	}
}

/* Books */

static void on_due(struct timer *timer)
{
	struct redis_lock *lock = TIMER_WHOLE(timer, struct redis_lock, timer);

	key_advance(&lock->key, clock_now_ms());
	redis_lock_settle(lock);
}

struct redis_lock *redis_lock_find(const struct store_redis *store, const char *path)
{
	struct redis_lock *lock;

	HASH_FIND_STR(store->locks, path, lock);
	return lock;
}

struct redis_lock *redis_lock_open(struct store_redis *store, const char *path)
{
	struct redis_lock *lock = redis_lock_find(store, path);

	if (lock != NULL)
		return lock;
	lock = calloc(1, sizeof(*lock) + strlen(path) + 1);
	if (lock == NULL)
		return NULL;
	lock->store = lock->gate.store = store;
	lock->gate.path = lock->path;
	lock->serial = ++store->serials;
	lock->request.done = on_done;
	lock->timer.on_due = on_due;
	strcpy(lock->path, path);
	key_init(&lock->key, &store->rules, &key_events);
	HASH_ADD_STR(store->locks, path, lock);
	if (lock->hh.tbl != NULL)
		return lock;
	free(lock);
	return NULL;
}

static void free_lock(struct redis_lock *lock)
{
	struct store_redis *store = lock->store;

	timers_clear(&store->loop.timers, &lock->timer);
	state_journal_remove(store->journal, &lock->item);
	HASH_DEL(store->locks, lock);
	free(lock->gate.text);
	free(lock);
}

/* Messages are wanted while this host waits for others. */
static void attend(struct redis_lock *lock)
{
	bool waits = lock->key.step == KEY_ELSEWHERE && lock->key.waiting > 0 &&
		     lock->store->service != NULL;
	char *key = waits != lock->is_listening ? redis_lock_key(lock) : NULL;

	if (key == NULL)
		return;
	if (!waits)
		redis_unlisten(lock->store->service, key);
	lock->is_listening =
		waits && redis_listen(lock->store->service, key, dialect_of(lock->value)) == 0;
	free(key);
}

void redis_lock_settle(struct redis_lock *lock)
{
	struct store_redis *store = lock->store;
	bool is_ours = lock->key.step == KEY_OURS;

	if (is_ours && !lock->is_counted)
		redis_lease_add(&store->lease, lock->key.heard_ms);
	else if (!is_ours && lock->is_counted)
		redis_lease_remove(&store->lease);
	lock->is_counted = is_ours;
	if (lock->key.due_ms != INT64_MAX)
		timers_set(&store->loop.timers, &lock->timer, lock->key.due_ms);
	else
		timers_clear(&store->loop.timers, &lock->timer);
	attend(lock);
	state_journal_mark(store->journal, &lock->item, store->key_kind);
	redis_wake(store);
	if (key_is_idle(&lock->key) && lock->proofs == 0 && !lock->is_lost && lock->calls == NULL)
		free_lock(lock);
}

int redis_locks_restored(struct store_redis *store)
{
	struct redis_lock *lock, *next;

	HASH_ITER (hh, store->locks, lock, next) {
		const struct redis_holder holder = holder_of(lock, NULL);

		if (redis_gate_restore(&lock->gate, &holder) < 0)
			return -ENOMEM;
		const struct counting counting = count_all(lock);

		key_recount(&lock->key, counting.turn, counting.waiting, clock_now_ms());
		redis_lock_settle(lock);
	}
	return 0;
}

void redis_locks_abandon(struct store_redis *store)
{
	struct redis_lock *lock, *next;

	HASH_ITER (hh, store->locks, lock, next) {
		drop_calls(lock);
		key_abandon(&lock->key);
		lock->is_lost = false;
		redis_lock_settle(lock);
	}
	store->lost = 0;
}

void redis_locks_suspend(struct store_redis *store)
{
	struct redis_lock *lock, *next;

	HASH_ITER (hh, store->locks, lock, next) {
		answer_looks(lock);
		redis_lock_settle(lock);
	}
}

void redis_locks_resume(struct store_redis *store)
{
	struct redis_lock *lock, *next;
	int64_t now_ms = clock_now_ms();

	HASH_ITER (hh, store->locks, lock, next) {
		key_connected(&lock->key, now_ms);
		redis_lock_settle(lock);
	}
}

void redis_locks_warn(const struct store_redis *store, void (*say)(void *context, const char *text),
		      void *context)
{
	for (const struct redis_lock *lock = store->locks; lock != NULL; lock = lock->hh.next)
		redis_gate_warn(&lock->gate, say, context);
}

void redis_locks_free(struct store_redis *store)
{
	struct redis_lock *lock, *next;

	HASH_ITER (hh, store->locks, lock, next) {
		redis_forget(&lock->request);
		drop_calls(lock);
		free_lock(lock);
	}
}
