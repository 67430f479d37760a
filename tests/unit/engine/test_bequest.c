/* SPDX-License-Identifier: Apache-2.0
 *
 * Hand-over by message: hosts that ask each other, and tell each other what is released. Messages
 * stay on their way until the test delivers them.
 */
#include <stdio.h>

#include "fixture.h"

enum { MESSAGES_MAX = 64 };

struct message {
	bool tells;
	struct host *to;
	char claim[CLAIM_NAME_BYTES];
	char names[ENGINE_TOLD_MAX][CLAIM_NAME_BYTES];
	size_t count;
};

static struct message messages[MESSAGES_MAX];
static size_t messages_count;
static bool is_quiet; /* messages are lost */

static struct message *post(void)
{
	assert_true(messages_count < MESSAGES_MAX);
	return memset(&messages[messages_count++], 0, sizeof(*messages));
}

static void on_ask(void *context, const char *path, const char *rival, const char *peer,
		   const char *claim)
{
	struct host *host = context;
	int number;

	assert_string_equal(path, "a");
	assert_int_equal(sscanf(peer, "host%d", &number), 1);
	assert_ptr_not_equal(host->world->hosts[number], host);
	if (is_quiet)
		return;
	struct message *message = post();
	message->to = host->world->hosts[number];
	snprintf(message->claim, CLAIM_NAME_BYTES, "%s", claim);
	snprintf(message->names[0], CLAIM_NAME_BYTES, "%s", rival);
	message->count = 1;
}

static void on_tell(void *context, const char *path, const struct engine_peer *asker,
		    const char *claim, const char *const *names, size_t count)
{
	struct host *host = context;

	if (is_quiet)
		return;
	struct message *message = post();
	message->tells = true;
	message->to = host->world->hosts[asker->bytes[0]];
	snprintf(message->claim, CLAIM_NAME_BYTES, "%s", claim);
	message->count = count;
	for (size_t i = 0; i < count; i++)
		snprintf(message->names[i], CLAIM_NAME_BYTES, "%s", names[i]);
}

static int number_of(const struct host *host)
{
	int number = 0;
	while (host->world->hosts[number] != host)
		number++;
	return number;
}

static void describe(void *context, const struct engine_caller *caller, enum lock_kind kind,
		     enum claim_mode mode, char text[ENGINE_TEXT_BYTES])
{
	file_events.describe(context, caller, kind, mode, text);
	sprintf(text + strlen(text), "peer=host%d\n", number_of(context));
}

static struct engine_events peer_events;

static int setup(void **state)
{
	peer_events = file_events;
	peer_events.describe = describe;
	peer_events.on_ask = on_ask;
	peer_events.on_tell = on_tell;
	fixture_events = &peer_events;
	messages_count = 0;
	is_quiet = false;
	return world_setup(state);
}

static int teardown(void **state)
{
	fixture_events = &file_events;
	return world_teardown(state);
}

/* Delivers a message, which stays as it is. `from` is the number of the host it comes from. */
static void deliver(const struct message *message, int from)
{
	struct engine_peer peer = {{(uint8_t)from}};
	const char *names[ENGINE_TOLD_MAX];

	for (size_t i = 0; i < message->count; i++)
		names[i] = message->names[i];
	if (message->tells)
		engine_peer_told(message->to->engine, "a", message->claim, names, message->count,
				 &peer);
	else
		engine_peer_asked(message->to->engine, "a", names[0], message->claim, &peer);
	engine_check_invariants(message->to->engine);
}

/* The three hosts' files; the first one holds, and those behind wait and have asked. */
static void queue_up(struct world *world, struct file files[3])
{
	for (int i = 0; i < 3; i++)
		file_open_and_lock(&files[i], world->hosts[i], EX);
	assert_int_equal(messages_count, 2);
	deliver(&messages[0], 1);
	deliver(&messages[1], 2);
	messages_count = 0;
}

static void close_all(struct world *world, struct file files[3])
{
	for (int i = 0; i < 3; i++)
		file_close(&files[i]);
	settle(world);
	pass(world, 3 * TIMEOUT_MS);
	assert_int_equal(queue_length(world, "a"), 0);
}

/* Who is told holds, before the store has heard of anything; and the next one by hearsay. */
static void test_is_told(void **state)
{
	struct world *world = *state;
	struct file files[3];

	queue_up(world, files);
	file_unlock(&files[0]);
	assert_int_equal(messages_count, 1);
	assert_int_equal(messages[0].count, 1);
	deliver(&messages[0], 0);
	assert_holds(&files[1]);
	assert_int_equal(queue_length(world, "a"), 3);
	file_unlock(&files[1]);
	assert_int_equal(messages_count, 2);
	assert_int_equal(messages[1].count, 2);
	deliver(&messages[0], 0); /* once more */
	deliver(&messages[1], 1);
	assert_holds(&files[2]);
	assert_int_equal(engine_counts(world->three.engine).by_message, 1);
	settle(world);
	assert_holds(&files[2]);
	assert_int_equal(queue_length(world, "a"), 1);
	close_all(world, files);
}

/* Without the message it is as without any. */
static void test_is_not_told(void **state)
{
	struct world *world = *state;
	struct file files[3];

	queue_up(world, files);
	is_quiet = true;
	file_unlock(&files[0]);
	assert_waits(&files[1]);
	settle(world);
	assert_holds(&files[1]);
	assert_int_equal(engine_counts(world->two.engine).by_store, 1);
	close_all(world, files);
}

/* A host that does not listen asks nobody. */
static void test_does_not_listen(void **state)
{
	struct world *world = *state;
	struct file files[3];

	engine_set_peers(world->two.engine, false);
	for (int i = 0; i < 3; i++)
		file_open_and_lock(&files[i], world->hosts[i], EX);
	assert_int_equal(messages_count, 1);
	assert_ptr_equal(messages[0].to, &world->two);
	file_unlock(&files[0]);
	settle(world);
	assert_holds(&files[1]);
	assert_int_equal(engine_counts(world->two.engine).by_store, 0);
	close_all(world, files);
}

/* Somebody takes the heir away, which its host has not heard when it is told: what it was left
 * keeps the others out until it has. */
static void test_heir_is_gone(void **state)
{
	struct world *world = *state;
	struct file files[3];

	queue_up(world, files);
	foreign_withdraw(world, "a", 1);
	settle_alone(&world->three);
	messages_count = 0; /* the third host asks for the first one now, which is lost */
	file_unlock(&files[0]);
	deliver(&messages[0], 0);
	assert_holds(&files[1]);
	settle_alone(&world->one);
	settle_alone(&world->three);
	assert_waits(&files[2]);
	messages_count = 0;
	settle_alone(&world->two);
	assert_int_equal(files[1].lost, 1);
	settle(world);
	pass(world, TIMEOUT_MS / 2);
	assert_waits(&files[2]);
	pass(world, TIMEOUT_MS);
	assert_holds(&files[2]);
	close_all(world, files);
}

/* The same, with one of the releasing host's own behind the heir. */
static void test_own_waits_for_heir(void **state)
{
	struct world *world = *state;
	struct file files[3];

	file_open_and_lock(&files[0], &world->one, EX);
	file_open_and_lock(&files[1], &world->two, EX);
	file_open_and_lock(&files[2], &world->one, EX);
	deliver(&messages[0], 1);
	foreign_withdraw(world, "a", 1);
	settle_alone(&world->one);
	messages_count = 0;
	file_unlock(&files[0]);
	deliver(&messages[0], 0);
	assert_holds(&files[1]);
	settle_alone(&world->one);
	assert_waits(&files[2]);
	settle_alone(&world->two);
	assert_int_equal(files[1].lost, 1);
	pass(world, TIMEOUT_MS / 2);
	assert_waits(&files[2]);
	pass(world, TIMEOUT_MS);
	assert_holds(&files[2]);
	close_all(world, files);
}

/* A host whose own heir is not found knows by that that somebody has taken it away. */
static void test_own_heir_is_gone(void **state)
{
	struct world *world = *state;
	struct file files[3];

	file_open_and_lock(&files[0], &world->two, EX);
	file_open_and_lock(&files[1], &world->one, EX);
	file_open_and_lock(&files[2], &world->one, EX);
	deliver(&messages[0], 0);
	messages_count = 0;
	file_unlock(&files[0]);
	deliver(&messages[0], 1);
	assert_holds(&files[1]);
	foreign_withdraw(world, "a", 2);
	file_unlock(&files[1]);
	assert_holds(&files[2]);
	settle_alone(&world->one);
	assert_int_equal(files[2].lost, 1);
	close_all(world, files);
}

/* What is said of an heir that is missing is said until it is answered. */
static void test_heir_is_told_again(void **state)
{
	struct world *world = *state;
	struct file files[3];

	queue_up(world, files);
	file_close(&files[1]);
	settle_alone(&world->two);
	file_unlock(&files[0]);
	settle(world);
	messages_count = 0; /* all of that is lost */
	assert_waits(&files[2]);
	pass(world, TIMEOUT_MS / 8);
	assert_true(messages_count > 0);
	deliver(&messages[0], 0);
	deliver(&messages[messages_count - 1], 1);
	settle(world);
	assert_holds(&files[2]);
	file_open(&files[1], &world->two, "a");
	close_all(world, files);
}

/* The heir has given up when it is told: its host says so, and nobody is waited for. */
static void test_heir_gives_up(void **state)
{
	struct world *world = *state;
	struct file files[3];

	queue_up(world, files);
	file_close(&files[1]);
	settle_alone(&world->two);
	file_unlock(&files[0]);
	assert_int_equal(messages_count, 1);
	deliver(&messages[0], 0);
	assert_int_equal(messages_count, 2);
	assert_true(messages[1].tells);
	assert_ptr_equal(messages[1].to, &world->one);
	deliver(&messages[1], 1);
	settle(world);
	assert_holds(&files[2]);
	file_open(&files[1], &world->two, "a");
	close_all(world, files);
}

/* What is broken, or held as the daemon stops, is not told. */
static void test_loss_is_not_told(void **state)
{
	struct world *world = *state;
	struct file files[3];
	struct engine_claim claim;

	queue_up(world, files);
	assert_true(engine_file_claim(files[0].owner, &claim));
	assert_int_equal(engine_steer(world->one.engine, "a", claim.name, ENGINE_BREAK, "me"), 0);
	assert_int_equal(messages_count, 0);
	settle(world);
	assert_holds(&files[1]);
	while (messages_count > 0)
		deliver(&messages[--messages_count], 2);
	engine_stop(world->two.engine);
	file_unlock(&files[1]);
	assert_int_equal(messages_count, 0);
	close_all(world, files);
}

/* What is left to a claim that is broken is left to nobody behind it, of its own host either. */
static void test_is_left_to_one(void **state)
{
	struct world *world = *state;
	struct engine_claim claim;
	struct file files[3];

	file_open_and_lock(&files[0], &world->one, EX);
	file_open_and_lock(&files[1], &world->two, EX);
	file_open_and_lock(&files[2], &world->two, EX);
	deliver(&messages[0], 1);
	messages_count = 0;
	file_unlock(&files[0]);
	deliver(&messages[0], 0);
	assert_holds(&files[1]);
	assert_true(engine_file_claim(files[1].owner, &claim));
	assert_int_equal(engine_steer(world->two.engine, "a", claim.name, ENGINE_BREAK, "me"), 0);
	settle_alone(&world->two);
	assert_int_equal(files[1].lost, 1);
	assert_waits(&files[2]);
	settle(world);
	pass(world, 2 * TIMEOUT_MS);
	assert_holds(&files[2]);
	close_all(world, files);
}

/* Who asked longer ago than a session lasts may be gone: nothing is left to it. */
static void test_asked_long_ago(void **state)
{
	struct world *world = *state;
	struct file files[3];

	queue_up(world, files);
	pass(world, TIMEOUT_MS);
	messages_count = 0;
	foreign_withdraw(world, "a", 1);
	file_unlock(&files[0]);
	assert_int_equal(messages_count, 0);
	settle(world);
	assert_holds(&files[2]);
	close_all(world, files);
}

/* Asks the first host for a claim like that one, in its place of the queue or behind. */
static void ask_for(const struct message *asked, int64_t order, enum claim_mode mode, uint16_t slot)
{
	struct message ask = *asked;
	struct claim_name parts;

	assert_true(claim_name_parse(asked->claim, &parts));
	parts.order += order;
	parts.mode = mode;
	parts.slot = slot;
	claim_name_format_placed(ask.claim, &parts);
	deliver(&ask, 2);
}

/* Questions for what cannot be an heir are as if nobody had asked, and one that comes when somebody
 * behind has asked already is a late one. */
static void test_asked_for_others(void **state)
{
	struct world *world = *state;
	struct message asked;
	struct file files[3];

	queue_up(world, files);
	asked = messages[0];
	ask_for(&asked, 5, CLAIM_SHARED, 0);
	ask_for(&asked, 5, CLAIM_EXCLUSIVE, 1);
	ask_for(&asked, -1, CLAIM_EXCLUSIVE, 0);
	file_unlock(&files[0]);
	assert_int_equal(messages_count, 1);
	assert_ptr_equal(messages[0].to, &world->two);
	deliver(&messages[0], 0);
	assert_holds(&files[1]);
	close_all(world, files);
}

static void test_asked_late(void **state)
{
	struct world *world = *state;
	struct message asked, behind;
	struct file files[3];

	queue_up(world, files);
	asked = behind = messages[0];
	strcpy(behind.claim, messages[1].claim);
	deliver(&behind, 2);
	deliver(&asked, 1);
	file_unlock(&files[0]);
	assert_int_equal(messages_count, 1);
	assert_ptr_equal(messages[0].to, &world->three);
	settle(world);
	assert_holds(&files[1]);
	close_all(world, files);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_is_told, setup, teardown),
		cmocka_unit_test_setup_teardown(test_is_not_told, setup, teardown),
		cmocka_unit_test_setup_teardown(test_does_not_listen, setup, teardown),
		cmocka_unit_test_setup_teardown(test_heir_is_gone, setup, teardown),
		cmocka_unit_test_setup_teardown(test_own_waits_for_heir, setup, teardown),
		cmocka_unit_test_setup_teardown(test_own_heir_is_gone, setup, teardown),
		cmocka_unit_test_setup_teardown(test_heir_is_told_again, setup, teardown),
		cmocka_unit_test_setup_teardown(test_heir_gives_up, setup, teardown),
		cmocka_unit_test_setup_teardown(test_loss_is_not_told, setup, teardown),
		cmocka_unit_test_setup_teardown(test_is_left_to_one, setup, teardown),
		cmocka_unit_test_setup_teardown(test_asked_long_ago, setup, teardown),
		cmocka_unit_test_setup_teardown(test_asked_for_others, setup, teardown),
		cmocka_unit_test_setup_teardown(test_asked_late, setup, teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
