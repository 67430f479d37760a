/* SPDX-License-Identifier: Apache-2.0
 *
 * dlockctl wait: reads the queue again and again, and takes no place in it.
 */
#include <errno.h>
#include <unistd.h>

#include "dlockctl/commands/commands.h"
#include "dlockctl/commands/waiting.h"
#include "dlockctl/look.h"
#include "dlockctl/output.h"
#include "dlockctl/tree.h"

#define INTERVAL_FIRST_MS 200
#define INTERVAL_LAST_MS  1000
#define GRACE_MS	  200 /* for the last look, which begins when the time is over */

struct wait {
	bool verbose;
	long long limit_ms; /* -1: none */
};

/* A lock that this host keeps unused is free, and one of several slots that has one left. */
static bool is_free(const struct queues *queues)
{
	if (queues->bad_lines != 0 || queues->unreadable != 0)
		return false;
	if (queues->count == 0)
		return true;
	const struct queue *queue = &queues->list[0];
	int64_t slots = queue->count > 0 ? queue->claims[queue->count - 1].slots : 1;
	return queue->count == queue->kept || (int64_t)queue->count < slots;
}

/* Reads the queue once. Returns 0, -1 to read again, or a status whose error has been reported.
 * That the store does not answer may pass, and is reported once. */
static int read_once(const struct place *place, const struct wait *wait, struct waiting *waiting,
		     int *last_error)
{
	struct queues queues;
	int status = -1, error = tree_queue(place, &queues);
	bool passes = status_of_errno(error) == EXIT_NO_ANSWER;

	if (error == LOOK_TOO_LATE)
		return EXIT_NO;
	if (error == 0 && is_free(&queues))
		status = 0;
	else if (error == 0 && wait->verbose)
		waiting_show(waiting, &queues);
	else if (error != 0 && !passes)
		status = tree_fail(place->mount, error == -ENOENT ? "locks" : place->name, error);
	else if (error != 0 && error != *last_error)
		tree_fail(place->mount, place->name, error);
	*last_error = error;
	queues_finish(&queues);
	return status;
}

/* Returns 0, EXIT_NO, or a status whose error has been reported. */
static int wait_free(const struct place *place, const struct wait *wait)
{
	long long end_ms = now_ms() + wait->limit_ms, interval_ms = INTERVAL_FIRST_MS;
	struct waiting waiting;
	int status, last_error = 0;

	waiting_init(&waiting, place, 0);
	if (wait->limit_ms >= 0)
		look_until(end_ms + GRACE_MS);
	while ((status = read_once(place, wait, &waiting, &last_error)) < 0) {
		long long left_ms = end_ms - now_ms();
		if (wait->limit_ms >= 0 && left_ms <= 0) {
			status = EXIT_NO;
			break;
		}
		bool short_of_time = wait->limit_ms >= 0 && left_ms < interval_ms;
		usleep((useconds_t)(short_of_time ? left_ms : interval_ms) * 1000);
		interval_ms *= 2;
		if (interval_ms > INTERVAL_LAST_MS)
			interval_ms = INTERVAL_LAST_MS;
	}
	waiting_clear(&waiting);
	return status;
}

int command_wait(struct context *context, int argc, char **argv)
{
	static const struct option options[] = {{"wait", required_argument, NULL, 'w'},
						{"timeout", required_argument, NULL, 'w'},
						{"verbose", no_argument, NULL, 'v'},
						COMMON_OPTIONS};
	struct wait wait = {.limit_ms = -1};
	struct place place;
	int letter, status = -1;

	while (status < 0 && (letter = getopt_long(argc, argv, ":w:vh", options, NULL)) != -1) {
		if (letter == 'w' && !parse_seconds(optarg, &wait.limit_ms))
			return fail(EX_USAGE, "-w %s: is no time; expected seconds, such as 2.5",
				    optarg);
		if (letter == 'v')
			wait.verbose = true;
		else if (letter != 'w')
			status = common_option(context, letter, argv);
	}
	if (status < 0)
		status = check_words(context, argc, argv, 1, 1);
	if (status >= 0)
		return status;
	long long begin_ms = now_ms();
	status = place_find_queue(context, argv[optind], &place);
	if (status == 0)
		status = wait_free(&place, &wait);
	if (context->json && (status == 0 || status == EXIT_NO)) {
		int failed = print_json(
			must(json_pack("{s:o, s:o, s:b, s:f}", "mount", text_json(place.mount),
				       "name", text_json(place.name), "free", status == 0, "waited",
				       (double)(now_ms() - begin_ms) / 1000)));
		status = failed != 0 ? failed : status;
	}
	place_finish(&place);
	return status;
}
