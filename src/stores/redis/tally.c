/* SPDX-License-Identifier: Apache-2.0
 *
 * Owns the rules of the majority. Any thread.
 */
#include "stores/redis/tally.h"

#include <errno.h>

struct sums {
	size_t servers, majority;
	size_t open, yes, unknown; /* unknown: LOST or ABSENT */
	size_t gone, taken;	   /* -ENOENT, -EEXIST */
	int other;		   /* the first other error; 0: there is none */
};

static struct sums sum(const struct tally_vote *votes, size_t count)
{
	struct sums sums = {.servers = count, .majority = count / 2 + 1};

	for (size_t i = 0; i < count; i++) {
		const struct tally_vote *vote = &votes[i];

		sums.open += vote->state == TALLY_OPEN;
		sums.yes += vote->state == TALLY_YES;
		sums.unknown += vote->state == TALLY_LOST || vote->state == TALLY_ABSENT;
		if (vote->state != TALLY_NO)
			continue;
		sums.gone += vote->error == -ENOENT;
		sums.taken += vote->error == -EEXIST;
		if (vote->error != -ENOENT && vote->error != -EEXIST && sums.other == 0)
			sums.other = vote->error;
	}
	return sums;
}

/* Of what was neither done by a majority nor refused by it. */
static int doubt(const struct sums *sums)
{
	return sums->other != 0 && sums->unknown == 0 ? sums->other : -ECONNRESET;
}

static int count_take(const struct sums *sums)
{
	if (sums->yes >= sums->majority)
		return 0;
	if (sums->yes + sums->open >= sums->majority)
		return TALLY_UNDECIDED;
	if (sums->taken > 0)
		return -EEXIST;
	return sums->other != 0 ? sums->other : -ECONNRESET;
}

static int count_renew(const struct sums *sums)
{
	if (sums->yes >= sums->majority)
		return 0;
	if (sums->gone > sums->servers - sums->majority)
		return -ENOENT;
	return sums->open > 0 ? TALLY_UNDECIDED : doubt(sums);
}

static int count_give(const struct sums *sums)
{
	if (sums->yes + sums->gone >= sums->majority)
		return sums->yes > 0 ? 0 : -ENOENT;
	return sums->open > 0 ? TALLY_UNDECIDED : doubt(sums);
}

static int count_read(const struct sums *sums)
{
	size_t said = sums->servers - sums->open - sums->unknown;

	if (said < sums->majority && sums->open > 0)
		return TALLY_UNDECIDED;
	if (sums->yes > 0)
		return 0;
	return sums->gone > 0 ? -ENOENT : sums->other != 0 ? sums->other : -ECONNRESET;
}

int tally_count(enum redis_verb verb, const struct tally_vote *votes, size_t count)
{
	const struct sums sums = sum(votes, count);

	switch (verb) {
	case REDIS_TAKE:
		return count_take(&sums);
	case REDIS_GIVE:
		return count_give(&sums);
	case REDIS_READ:
		return count_read(&sums);
	case REDIS_RENEW:
	case REDIS_STAMP:
		break;
	}
	return count_renew(&sums);
}

size_t tally_open(const struct tally_vote *votes, size_t count)
{
	return sum(votes, count).open;
}
