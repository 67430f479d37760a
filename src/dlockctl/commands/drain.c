/* SPDX-License-Identifier: Apache-2.0
 *
 * dlockctl drain, undrain: whether this host grants anything new; waits for those who hold.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "dlockctl/commands/commands.h"
#include "dlockctl/inside.h"
#include "dlockctl/look.h"
#include "dlockctl/output.h"
#include "dlockctl/text.h"
#include "dlockctl/tree.h"
#include "dlockfs.h"

#define INTERVAL_MS 200

struct order {
	const char *mount;
	int32_t drains;
};

static int ask(const void *what, char **ret_text, size_t *ret_bytes)
{
	const struct order *order = what;
	int failed, fd = inside_open(order->mount, ".dlockfs/status", O_RDONLY | O_NOCTTY, 0);

	*ret_text = NULL;
	*ret_bytes = 0;
	if (fd < 0)
		return fd;
	do
		failed = ioctl(fd, DLOCKFS_IOC_DRAIN, &order->drains);
	while (failed < 0 && errno == EINTR);
	int error = failed < 0 ? -errno : 0;
	close(fd);
	return error;
}

/* Returns 0, or tells the error and returns the status. */
static int send_order(const char *mount, bool drains)
{
	struct order order = {mount, drains};
	char *text = NULL;
	size_t bytes;
	int error = look(mount, ask, &order, &text, &bytes);

	free(text);
	if (error == -ENOTTY)
		return fail(EXIT_NO_MOUNT,
			    "%s: the mount knows no such order; expected this version of dlockfs",
			    mount);
	if (status_of_errno(error) == EX_NOPERM)
		return fail(EX_NOPERM, "%s: %s; root may, and the user as whom its daemon runs",
			    mount, strerror(-error));
	return error == 0 ? 0 : tree_fail(mount, "status", error);
}

/* What the status says of all stores. */
struct left {
	bool drains;
	long long holders; /* and lock files */
	char *oldest;	   /* "NAME pid=N for_s=N"; empty: not known */
};

static long long number_of(const char *block, const char *key)
{
	char *value = tree_value(block, key);
	long long number = 0;

	if (value == NULL || !parse_number(value, 0, INT32_MAX, &number))
		number = 0;
	free(value);
	return number;
}

/* Returns 0, and what is left, whose text is to be freed; or tells the error and returns the
 * status.
 */
static int read_left(const char *mount, struct left *ret)
{
	char *text = NULL;
	size_t bytes;
	int error = tree_read(mount, "status", &text, &bytes);

	*ret = (struct left){0};
	if (error != 0)
		return tree_fail(mount, "status", error);
	char *drains = tree_value(text, "draining");
	ret->drains = drains != NULL && strcmp(drains, "yes") == 0;
	for (const char *block = text; block != NULL; block = tree_next_block(block)) {
		ret->holders += number_of(block, "holders") + number_of(block, "files");
		if (ret->oldest == NULL)
			ret->oldest = tree_value(block, "oldest_holder");
	}
	free(drains);
	free(text);
	return 0;
}

static const char *locks_are(long long count)
{
	return count == 1 ? "lock is" : "locks are";
}

static int tell_late(const char *mount, const struct left *left)
{
	char *oldest = left->oldest != NULL ? text_printable(left->oldest) : NULL;

	fail(EXIT_NO, "%s: %lld %s held yet%s%s; see: dlockctl ls", mount, left->holders,
	     locks_are(left->holders), oldest != NULL ? ", for the longest time " : "",
	     oldest != NULL ? oldest : "");
	free(oldest);
	return EXIT_NO;
}

struct drain {
	bool waits;
	long long limit_ms; /* -1: none */
};

/* Returns 0 when nothing is held any more, or need not be waited for; EXIT_NO, or a status whose
 * error has been reported. */
static int wait_drained(const char *mount, const struct drain *drain, struct left *left)
{
	long long end_ms = now_ms() + drain->limit_ms;
	int status;

	while ((status = read_left(mount, left)) == 0 && drain->waits) {
		if (!left->drains)
			return fail(EXIT_NO, "%s: drains no more; see: dlockctl undrain", mount);
		if (left->holders == 0)
			return 0;
		if (drain->limit_ms >= 0 && now_ms() >= end_ms)
			return tell_late(mount, left);
		usleep(INTERVAL_MS * 1000);
		free(left->oldest);
	}
	return status;
}

static int print_drained(const struct context *context, const char *mount, const struct left *left)
{
	if (context->json)
		return print_json(
			must(json_pack("{s:o, s:b, s:I}", "mount", text_json(mount), "draining",
				       left->drains, "holders", (json_int_t)left->holders)));
	printf("%s grants nothing new; %lld %s held\n", mount, left->holders,
	       locks_are(left->holders));
	return 0;
}

static int carry_out(const struct context *context, const char *mount, const struct drain *drain)
{
	struct left left = {0};
	int status = send_order(mount, true);

	if (status == 0)
		status = wait_drained(mount, drain, &left);
	if (status == 0 || (status == EXIT_NO && context->json)) {
		int failed = print_drained(context, mount, &left);
		status = failed != 0 ? failed : status;
	}
	free(left.oldest);
	return status;
}

int command_drain(struct context *context, int argc, char **argv)
{
	enum { OPTION_WAIT = OPTION_OWN };
	static const struct option options[] = {{"wait", no_argument, NULL, OPTION_WAIT},
						{"timeout", required_argument, NULL, 'w'},
						COMMON_OPTIONS};
	struct drain drain = {.limit_ms = -1};
	struct place place;
	int letter, status = -1;

	while (status < 0 && (letter = getopt_long(argc, argv, ":w:h", options, NULL)) != -1) {
		if (letter == 'w' && !parse_seconds(optarg, &drain.limit_ms))
			return fail(EX_USAGE, "-w %s: is no time; expected seconds, such as 2.5",
				    optarg);
		if (letter == 'w' || letter == OPTION_WAIT)
			drain.waits = true;
		else
			status = common_option(context, letter, argv);
	}
	if (status < 0)
		status = check_words(context, argc, argv, 0, 0);
	if (status >= 0)
		return status;
	status = place_find(context, NULL, &place);
	if (status == 0)
		status = carry_out(context, place.mount, &drain);
	place_finish(&place);
	return status;
}

int command_undrain(struct context *context, int argc, char **argv)
{
	struct place place;
	int status = only_common_options(context, argc, argv, 0, 0);

	if (status >= 0)
		return status;
	status = place_find(context, NULL, &place);
	if (status == 0)
		status = send_order(place.mount, false);
	place_finish(&place);
	return status;
}
