/* SPDX-License-Identifier: Apache-2.0
 *
 * Fencing tokens go on growing when the service has gone back, whichever of the hosts that have
 * seen it before comes first: a few hosts on a service that is set back again and again.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "../../sim/prng.h"
#include "stores/tokens.h"

enum { HOSTS = 4, STEPS = 20000 };

struct state {
	int64_t stamp, offset;
};

struct model_host {
	struct store_tokens tokens;
	int64_t seen;
	bool connected;
};

struct model {
	struct prng prng;
	struct state service, backup;
	struct model_host hosts[HOSTS];
	int64_t told;
	int setbacks;
};

static bool chance(struct model *model, int percent)
{
	return prng_chance(&model->prng, percent);
}

/* As the stores do it: what was seen counts first, then what stands there is read. */
static void connect(struct model *model, struct model_host *host)
{
	int64_t offset;

	tokens_note(&host->tokens, host->seen);
	host->tokens.offset = model->service.offset;
	offset = tokens_raise(&host->tokens, model->service.stamp);
	if (offset != 0) {
		assert_true(offset > model->service.offset);
		model->service.offset = host->tokens.offset = offset;
	}
	host->seen = model->service.stamp;
	host->connected = true;
}

/* It has seen as much of what was told as is promised, and enough to notice a set-back: who has
 * seen nothing that the service has not, or has again, cannot. */
static bool knows(const struct model *model, const struct model_host *host)
{
	int64_t floor = tokens_floor(&host->tokens, host->seen);

	return floor >= model->told || (floor > model->service.offset + model->service.stamp &&
					model->told - floor < TOKENS_MARGIN);
}

static void set_back(struct model *model)
{
	static const struct state wiped;
	struct state former = model->service;
	bool known = false;

	model->service = chance(model, 30) ? wiped : model->backup;
	for (int i = 0; i < HOSTS; i++)
		known |= knows(model, &model->hosts[i]);
	if (!known) {
		model->service = former;
		return;
	}
	model->setbacks++;
	for (int i = 0; i < HOSTS; i++)
		model->hosts[i].connected = false;
}

static void grant(struct model *model, struct model_host *host)
{
	int64_t token;

	model->service.stamp += 1 + prng_below(&model->prng, 100);
	host->seen = model->service.stamp;
	host->tokens.offset = model->service.offset;
	token = tokens_make(&host->tokens, model->service.stamp);
	assert_true(token > model->told);
	model->told = token;
}

/* Another process goes on: of an idle host what was saved is as old as that. */
static void restart(struct model_host *host)
{
	host->tokens = (struct store_tokens){.floor = tokens_floor(&host->tokens, host->seen)};
	host->connected = false;
}

static void step(struct model *model)
{
	struct model_host *host = &model->hosts[prng_below(&model->prng, HOSTS)];
	bool first = true;

	for (int i = 0; i < HOSTS; i++)
		first &= !model->hosts[i].connected;
	if (!host->connected && (!first || knows(model, host)))
		connect(model, host);
	else if (host->connected && chance(model, 80))
		grant(model, host);
	else if (chance(model, 10))
		restart(host);
	else if (chance(model, 5) && !first)
		*host = (struct model_host){0}; /* a new one */
	else if (chance(model, 10))
		model->backup = model->service;
	else if (chance(model, 2))
		set_back(model);
}

static void test_tokens_grow(void **state)
{
	struct model model = {0};

	(void)state;
	for (uint64_t seed = 0; seed < 50; seed++) {
		model = (struct model){0};
		prng_seed(&model.prng, seed);
		for (int i = 0; i < STEPS; i++)
			step(&model);
		assert_true(model.setbacks > 3);
	}
}

static void test_ordinary(void **state)
{
	struct store_tokens tokens = {0};

	(void)state;
	/* Where nothing has ever gone back, the stamp is the token. */
	assert_int_equal(tokens_make(&tokens, 5), 5);
	tokens_note(&tokens, 5);
	assert_int_equal(tokens_raise(&tokens, 5), 0);
	assert_int_equal(tokens_make(&tokens, 6), 6);
	/* What others have told, unless they saw more than that margin. */
	assert_int_equal(tokens_raise(&tokens, 3), 2 + TOKENS_MARGIN);
	/* Until that is done, none is told that is too low. */
	assert_int_equal(tokens_make(&tokens, 4), 0);
	tokens.offset = 2 + TOKENS_MARGIN;
	assert_int_equal(tokens_make(&tokens, 4), 6 + TOKENS_MARGIN);
}

static void test_ends(void **state)
{
	struct store_tokens tokens = {.floor = INT64_MAX};

	(void)state;
	/* Not again and again. */
	assert_int_equal(tokens_raise(&tokens, 1), TOKENS_OFFSET_MAX);
	tokens.offset = TOKENS_OFFSET_MAX;
	assert_int_equal(tokens_raise(&tokens, 1), 0);
	assert_int_equal(tokens_floor(&tokens, INT64_MAX), INT64_MAX);
	assert_int_equal(tokens_make(&tokens, INT64_MAX), 0);
}

static int64_t parse(const char *text)
{
	return tokens_parse(text, strlen(text));
}

static void test_parse(void **state)
{
	(void)state;
	assert_int_equal(parse(""), 0);
	assert_int_equal(parse("0"), 0);
	assert_int_equal(parse("1099511627961"), 1099511627961);
	assert_int_equal(parse("12\n34"), 12);
	assert_int_equal(parse("-1"), 0);
	assert_int_equal(parse("12 "), 0);
	assert_int_equal(parse("4611686018427387903"), TOKENS_OFFSET_MAX);
	assert_int_equal(parse("4611686018427387904"), 0);
	assert_int_equal(parse("99999999999999999999999"), 0);
	assert_int_equal(tokens_parse("123", 2), 12);
}

/* What servers say that lie. */
static void test_below_zero(void **state)
{
	struct store_tokens tokens = {.offset = 5, .floor = 9};

	(void)state;
	assert_int_equal(tokens_make(&tokens, INT64_MIN), 0);
	assert_int_equal(tokens_raise(&tokens, -1), 0);
	assert_int_equal(tokens_floor(&tokens, INT64_MIN), 9);
	assert_int_equal(tokens_make(&tokens, INT64_MAX), INT64_MAX);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_below_zero), cmocka_unit_test(test_tokens_grow),
		cmocka_unit_test(test_ordinary),   cmocka_unit_test(test_ends),
		cmocka_unit_test(test_parse),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
