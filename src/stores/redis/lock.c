/* SPDX-License-Identifier: Apache-2.0
 *
 * Owns the locks of the store, and the calls that wait at them. Loop thread only.
 *
 * Calls of a lock are made in the order in which they come. Those in front may wait for what is
 * known of the key: all that do so get one answer, and then all are made. A proof, of which the
 * servers are asked, too, waits until it is the first, and stands in the way of all behind it until
 * it is told.
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

/* Requests */

static int ask(struct redis_lock *lock, struct redis_request *request, enum redis_verb verb)
{
	const struct store_redis *store = lock->store;

	return redis_ask(store->service, request, verb, lock->name,
			 verb != REDIS_READ ? lock->value : NULL, store->rules.ttl_ms);
}

/* Nobody else may know it beforehand, nor draw the same one. */
static int draw_value(struct redis_lock *lock)
{
	struct redis_lots *lots = &lock->store->lots;
	unsigned long long high, low;

	if (lots->left == 0) {
		if (getrandom(lots->numbers, sizeof(lots->numbers), 0) != sizeof(lots->numbers))
			return -EIO;
		lots->left = REDIS_LOTS;
	}
	high = lots->numbers[--lots->left];
	low = lots->numbers[--lots->left];
	snprintf(lock->value, sizeof(lock->value), REDIS_VALUE_MARK "%s:%016llx%016llx%s",
		 lock->store->host, high, low, dialect_of_recipe(lock->gate.recipe)->suffix);
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
	lock->users++; /* it stays, whatever follows from the answer */
	key_answered(&lock->key, answer->error, answer->holder, clock_now_ms());
	lock->users--;
	redis_lock_settle(lock);
}

/* Calls */

bool redis_lock_is_in_turn(const struct redis_lock *lock, const struct claim_name *name)
{
	if (lock->gate.name[0] == '\0' || name->order < lock->gate.order)
		return true;
	return name->anchored && name->anchor < lock->gate.order;
}

static void place(struct redis_lock *lock, const struct redis_call *call)
{
	const struct store *home = lock->store->queues.home;
	struct claim_name name = call->claim;
	size_t count = store_local_count(home, lock->path);

	redis_call_make(lock->store, lock->path, call);
	if (store_local_count(home, lock->path) == count) {
		redis_starve(lock->store);
		return;
	}
	name.order = INT64_MAX; /* behind the gate, if there is one */
	key_placed(&lock->key, redis_lock_is_in_turn(lock, &name), clock_now_ms());
}

/* Nobody takes a gate away: for whoever takes it for a claim of his, it has gone. */
static void withdraw(struct redis_lock *lock, const struct redis_call *call)
{
	struct redis_call own = *call;
	struct claim_name claim;
	bool stood = store_local_has(lock->store->queues.home, lock->path, call->name);

	if (redis_gate_is(&lock->gate, call->name))
		own.name = "";
	redis_call_make(lock->store, lock->path, &own);
	if (stood && claim_name_parse(call->name, &claim))
		key_left(&lock->key, redis_lock_is_in_turn(lock, &claim), clock_now_ms());
}

/* Of others' claims the engine changes only that of a gate, which is to be queued again. */
static void amend(struct redis_lock *lock, const struct redis_call *call)
{
	redis_call_make(lock->store, lock->path, call);
	if (redis_gate_is(&lock->gate, call->name))
		key_requeue(&lock->key);
}

void redis_lock_set_loss(struct redis_lock *lock, enum redis_loss loss)
{
	lock->store->losses -= lock->loss != LOSS_NONE;
	lock->store->losses += loss != LOSS_NONE;
	lock->loss = loss;
}

static void make(struct redis_lock *lock, const struct redis_call *call)
{
	if (call->kind == CALL_PLACE)
		place(lock, call);
	else if (call->kind == CALL_WITHDRAW)
		withdraw(lock, call);
	else if (call->kind == CALL_AMEND)
		amend(lock, call);
	else
		redis_call_make(lock->store, lock->path, call);
}

/* Whether the call is to wait, with nothing in front of it. */
static bool has_to_wait(const struct redis_lock *lock, const struct redis_call *call)
{
	bool needs_key =
		call->kind == CALL_PLACE || call->kind == CALL_LIST || call->kind == CALL_LOOK;

	return call->kind == CALL_PROVE ||
	       (needs_key && key_must_wait(&lock->key, call->kind == CALL_PLACE));
}

/* Calls up to a proof: each is made, or waits for the key, once one in front does. */
static void go_on(struct redis_lock *lock)
{
	struct redis_call *call, *next;

	DL_FOREACH_SAFE (lock->calls, call, next) {
		if (call->kind == CALL_PROVE)
			return;
		if (has_to_wait(lock, call) && !call->waits) {
			call->waits = true;
			key_wait(&lock->key, call->kind == CALL_PLACE, clock_now_ms());
		} else if (lock->key.step != KEY_ASKED) {
			DL_DELETE(lock->calls, call);
			make(lock, call);
			free(call);
		}
	}
}

void redis_lock_call(struct redis_lock *lock, const struct redis_call *call)
{
	struct redis_call *waiting;

	if (call->kind == CALL_PLACE)
		lock->gate.recipe = call->claim.recipe;
	if (lock->calls == NULL && !has_to_wait(lock, call)) {
		make(lock, call);
	} else {
		waiting = redis_call_copy(call);
		if (waiting != NULL)
			DL_APPEND(lock->calls, waiting);
		else
			redis_starve(lock->store);
	}
	redis_lock_settle(lock);
}

bool redis_lock_is_first(const struct redis_lock *lock, const struct redis_proof *proof)
{
	return lock->calls != NULL && lock->calls->kind == CALL_PROVE && lock->calls->tag == proof;
}

void redis_lock_pass(struct redis_lock *lock, const struct redis_proof *proof)
{
	struct redis_call *call, *next;

	DL_FOREACH_SAFE (lock->calls, call, next) {
		if (call->kind != CALL_PROVE || call->tag != proof)
			continue;
		DL_DELETE(lock->calls, call);
		free(call);
	}
}

/* Who is refused may call again, which waits behind this. */
static void on_known(struct key *key, int error)
{
	struct redis_lock *lock = lock_of(key);
	struct redis_call *calls = NULL, *call, *next;

	while ((call = lock->calls) != NULL && call->kind != CALL_PROVE) {
		DL_DELETE(lock->calls, call);
		DL_APPEND(calls, call);
	}
	DL_FOREACH_SAFE (calls, call, next) {
		if (error == 0 || !call->waits)
			make(lock, call);
		else
			redis_call_refuse(lock->store, call, error);
		free(call);
	}
}

/* Looks are answered, by what is known here; `all`: and the others are not, any more. */
static void end_calls(struct redis_lock *lock, bool all)
{
	struct redis_call *call, *next;

	DL_FOREACH_SAFE (lock->calls, call, next) {
		if (call->kind != CALL_LOOK && !all)
			continue;
		DL_DELETE(lock->calls, call);
		if (call->kind == CALL_LOOK)
			make(lock, call);
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
	redis_lock_set_loss(lock, LOSS_UNTOLD);
	lock->store->lease.beat_ms = INT64_MIN;
	redis_wake(lock->store->service);
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
	bool valid = claim_name_parse(name, &claim);
	bool in_turn = valid && redis_lock_is_in_turn(counting->lock, &claim);

	counting->turn += in_turn;
	counting->waiting += valid && !in_turn;
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
	lock = calloc(1, sizeof(*lock) + strlen(store->prefix) + strlen(path) + 1);
	if (lock == NULL)
		return NULL;
	lock->store = lock->gate.store = store;
	lock->path = lock->gate.path = stpcpy(lock->name, store->prefix);
	lock->serial = ++store->serials;
	lock->request.done = on_done;
	lock->timer.on_due = on_due;
	strcpy(lock->name + strlen(store->prefix), path);
	key_init(&lock->key, &store->rules, &key_events);
	HASH_ADD_KEYPTR(hh, store->locks, lock->path, strlen(lock->path), lock);
	if (lock->hh.tbl != NULL)
		return lock;
	free(lock);
	return NULL;
}

static void free_lock(struct redis_lock *lock)
{
	struct store_redis *store = lock->store;

	timers_clear(redis_timers(store->service), &lock->timer);
	state_journal_remove(store->journal, &lock->item);
	HASH_DEL(store->locks, lock);
	free(lock->gate.text);
	free(lock);
}

/* Messages are wanted while this host waits for others. */
static void attend(struct redis_lock *lock)
{
	struct redis_service *service = lock->store->service;
	bool waits = lock->key.step == KEY_ELSEWHERE && lock->key.waiting > 0;

	if (waits && !lock->is_listening)
		lock->is_listening =
			redis_listen(service, lock->name, dialect_of(lock->value)) == 0;
	else if (!waits && lock->is_listening)
		redis_unlisten(service, lock->name);
	lock->is_listening &= waits;
}

void redis_lock_settle(struct redis_lock *lock)
{
	struct store_redis *store = lock->store;

	go_on(lock);
	bool is_ours = lock->key.step == KEY_OURS;

	if (is_ours && !lock->is_counted)
		redis_lease_add(&store->lease, lock->key.heard_ms);
	else if (!is_ours && lock->is_counted)
		redis_lease_remove(&store->lease);
	lock->is_counted = is_ours;
	if (lock->key.due_ms != INT64_MAX)
		timers_set(redis_timers(store->service), &lock->timer, lock->key.due_ms);
	else
		timers_clear(redis_timers(store->service), &lock->timer);
	if (lock->loss == LOSS_TOLD && lock->calls == NULL)
		store->lease.beat_ms = INT64_MIN; /* one that finds it so, and ends the doubt */
	attend(lock);
	state_journal_mark(store->journal, &lock->item, store->key_kind);
	redis_wake(store->service);
	if (key_is_idle(&lock->key) && lock->users == 0 && lock->loss == LOSS_NONE &&
	    lock->calls == NULL)
		free_lock(lock);
}

int redis_locks_restored(struct store_redis *store)
{
	struct redis_lock *lock, *next;

	HASH_ITER (hh, store->locks, lock, next) {
		const struct redis_holder holder = holder_of(lock, NULL);

		if (redis_gate_restore(&lock->gate, &holder) < 0)
			return -ENOMEM;
		struct counting counting = {.lock = lock};

		store_local_each(store->queues.home, lock->path, count, &counting);
		key_recount(&lock->key, counting.turn, counting.waiting, clock_now_ms());
		redis_lock_settle(lock);
	}
	return 0;
}

void redis_locks_forget(struct store_redis *store)
{
	struct redis_lock *lock;

	for (lock = store->locks; lock != NULL; lock = lock->hh.next)
		end_calls(lock, true);
}

void redis_locks_abandon(struct store_redis *store)
{
	struct redis_lock *lock, *next;

	HASH_ITER (hh, store->locks, lock, next) {
		end_calls(lock, true);
		key_abandon(&lock->key);
		redis_lock_set_loss(lock, LOSS_NONE);
		redis_lock_settle(lock);
	}
}

void redis_locks_suspend(struct store_redis *store)
{
	struct redis_lock *lock, *next;

	HASH_ITER (hh, store->locks, lock, next) {
		end_calls(lock, false);
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
		end_calls(lock, true);
		free_lock(lock);
	}
}
