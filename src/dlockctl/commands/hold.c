/* SPDX-License-Identifier: Apache-2.0
 *
 * dlockctl hold and give: a lock that outlives the host that takes it.
 *
 * What stands in the queue is the truth: whose a hold is stands in its data. So hold looks there
 * first, and once more when it cannot tell what became of its request. While it waits it looks,
 * too: the same owner may wait on several hosts, and has the lock when one of them has it. Two of
 * them may be granted two slots at once, and make two holds; then each of them sees both, and gives
 * back all but the first in the queue.
 */
#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <time.h>
#include <unistd.h>

#include "dlockctl/commands/commands.h"
#include "dlockctl/commands/opening.h"
#include "dlockctl/commands/waiting.h"
#include "dlockctl/descriptor.h"
#include "dlockctl/look.h"
#include "dlockctl/mount.h"
#include "dlockctl/output.h"
#include "dlockctl/steer.h"
#include "dlockctl/text.h"
#include "dlockctl/tree.h"
#include "dlockfs.h"

#define MACHINE_ID "/etc/machine-id"

enum { LOOK_MS = 1000, TICK_MS = 20 };

enum { OPTION_AS = OPTION_OWN, OPTION_FOR };

struct hold {
	struct place place;
	char *name; /* printable */
	char *owner;
	bool verbose, has_time;
	long long wait_ms; /* -1: for ever */
	long long for_ms;  /* --for; 0: for ever */
};

/* The thread that looks while flock(2) waits, and ends that. */
struct looker {
	const struct hold *hold;
	pthread_t main;
	pthread_mutex_t mutex;
	pthread_cond_t changed;
	long long end_ms; /* INT64_MAX: none */
	bool over;	  /* flock(2) has returned */
	bool found, late; /* the owner has a hold; the time is over */
};

static volatile sig_atomic_t caught;

static void on_signal(int number)
{
	if (number != SIGALRM)
		caught = number;
}

/* The machine's id, or tells the error and returns NULL. */
static char *machine_owner(void)
{
	static char line[64];
	FILE *file = fopen(MACHINE_ID, "re");

	if (file != NULL && fgets(line, sizeof(line), file) == NULL)
		line[0] = '\0';
	if (file != NULL)
		fclose(file);
	line[strcspn(line, "\n")] = '\0';
	if (line[0] != '\0')
		return line;
	fail(EX_USAGE, "%s: has no id of this machine; expected --as OWNER", MACHINE_ID);
	return NULL;
}

/* Reads the options, and finds the lock. Returns -1 to go on, or the status to end with. */
static int parse(struct hold *hold, struct context *context, int argc, char **argv,
		 const struct option *options, const char *letters)
{
	int letter, status = -1;

	*hold = (struct hold){.wait_ms = -1};
	while (status < 0 && (letter = getopt_long(argc, argv, letters, options, NULL)) != -1) {
		if (letter == OPTION_AS && *optarg != '\0' &&
		    strlen(optarg) < sizeof(((struct dlockfs_hold *)0)->owner))
			hold->owner = optarg;
		else if (letter == OPTION_AS)
			status = fail(EX_USAGE,
				      "--as: is empty or too long; expected 1 to 127 bytes");
		else if (letter == OPTION_FOR &&
			 !parse_time(optarg, 366 * DLOCKFS_LEAST_MAX_MS, &hold->for_ms))
			status = fail(EX_USAGE,
				      "--for %s: is no such time; expected up to 366d, such as "
				      "90s, 5m, 1h or 1d",
				      optarg);
		else if (letter == OPTION_FOR)
			hold->has_time = true;
		else if (letter == 'n')
			hold->wait_ms = 0;
		else if (letter == 'v')
			hold->verbose = true;
		else if (letter == 'w' && !parse_seconds(optarg, &hold->wait_ms))
			status = fail(EX_USAGE, "-w %s: is no time; expected seconds, such as 2.5",
				      optarg);
		else if (letter != 'w')
			status = common_option(context, letter, argv);
	}
	if (status < 0)
		status = check_words(context, argc, argv, 1, 1);
	if (status >= 0)
		return status;
	if (hold->owner == NULL)
		hold->owner = machine_owner();
	if (hold->owner == NULL)
		return EX_USAGE;
	status = place_find_queue(context, argv[optind], &hold->place);
	if (status != 0)
		return status;
	hold->name = text_printable(hold->place.name);
	return -1;
}

/* The queue; an empty one where nobody holds the lock or waits for it. Returns 0 or -errno. */
static int read_queue(const struct hold *hold, struct queues *queues)
{
	int error = tree_queue(&hold->place, queues);
	return error == -ENOENT ? 0 : error;
}

/* The next hold of the owner in the queue, behind that one, or the first; NULL: there is none. */
static const struct claim *find(const struct hold *hold, const struct queues *queues,
				const struct claim *behind)
{
	if (queues->count == 0)
		return NULL;
	const struct queue *queue = &queues->list[0];
	for (const struct claim *claim = behind != NULL ? behind + 1 : queue->claims;
	     claim < queue->claims + queue->count; claim++) {
		if (claim->hold != NULL && strcmp(claim->hold, hold->owner) == 0)
			return claim;
	}
	return NULL;
}

static void tell(const struct hold *hold, const struct claim *claim)
{
	char *owner = text_printable(hold->owner);

	printf("%s: held as %s", hold->name, owner);
	if (claim->token > 0)
		printf(", token %" PRId64, claim->token);
	if (claim->slot >= 0)
		printf(", slot %" PRId64, claim->slot);
	putchar('\n');
	free(owner);
}

/* If the owner has a hold: gives back those behind the first, sets its time, and tells. Returns -1
 * if there is none; or the status. */
static int settle(const struct hold *hold, bool set_time)
{
	struct queues queues;
	int error = read_queue(hold, &queues), status = 0;

	if (error != 0)
		return tree_fail(hold->place.mount, hold->place.name, error);
	const struct claim *first = find(hold, &queues, NULL), *more = first;
	while (more != NULL && status == 0 && (more = find(hold, &queues, more)) != NULL)
		status = steer_hold(&hold->place, more, -1);
	if (first != NULL && status == 0 && set_time && hold->has_time)
		status = steer_hold(&hold->place, first, hold->for_ms);
	if (first != NULL && status == 0)
		tell(hold, first);
	status = first != NULL ? status : -1;
	queues_finish(&queues);
	return status;
}

static bool is_found(const struct hold *hold)
{
	struct queues queues;
	bool found = read_queue(hold, &queues) == 0 && find(hold, &queues, NULL) != NULL;

	queues_finish(&queues);
	return found;
}

/* Sleeps, with the mutex held. */
static void sleep_ms(struct looker *looker, long long ms)
{
	long long end_ms = now_ms() + ms;
	const struct timespec end = {.tv_sec = end_ms / 1000, .tv_nsec = end_ms % 1000 * 1000000};

	while (!looker->over && pthread_cond_timedwait(&looker->changed, &looker->mutex, &end) == 0)
		;
}

static void *look_thread(void *context)
{
	struct looker *looker = context;

	pthread_mutex_lock(&looker->mutex);
	while (!looker->over) {
		long long left_ms = looker->end_ms - now_ms();
		bool ends = looker->found || looker->late;

		sleep_ms(looker, ends ? TICK_MS : left_ms < LOOK_MS ? left_ms : LOOK_MS);
		if (looker->over)
			break;
		if (!ends) {
			pthread_mutex_unlock(&looker->mutex);
			bool found = is_found(looker->hold);
			pthread_mutex_lock(&looker->mutex);
			looker->found = found;
		}
		looker->late |= now_ms() >= looker->end_ms;
		/* Again and again, in case it comes right before flock(2) is called. */
		if (looker->found || looker->late || caught != 0)
			pthread_kill(looker->main, SIGALRM);
	}
	pthread_mutex_unlock(&looker->mutex);
	return NULL;
}

static void catch_signals(void)
{
	const struct sigaction action = {.sa_handler = on_signal};

	sigaction(SIGALRM, &action, NULL);
	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
	sigaction(SIGHUP, &action, NULL);
}

static int start_thread(struct looker *looker, pthread_t *thread)
{
	pthread_condattr_t attributes;
	sigset_t all, before;

	pthread_mutex_init(&looker->mutex, NULL);
	pthread_condattr_init(&attributes);
	pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
	pthread_cond_init(&looker->changed, &attributes);
	pthread_condattr_destroy(&attributes);
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	int error = pthread_create(thread, NULL, look_thread, looker);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return error;
}

/* Returns 0, the lock is taken; EEXIST, the owner has a hold; or another errno, EWOULDBLOCK also
 * after the time. */
static int take(const struct hold *hold, int fd)
{
	static struct looker looker;
	pthread_t thread;
	int error;

	if (hold->wait_ms == 0)
		return flock(fd, LOCK_EX | LOCK_NB) == 0 ? 0 : errno;
	looker = (struct looker){
		.hold = hold,
		.main = pthread_self(),
		.end_ms = hold->wait_ms > 0 ? now_ms() + hold->wait_ms : INT64_MAX,
	};
	error = start_thread(&looker, &thread);
	if (error != 0)
		return error;
	do
		error = flock(fd, LOCK_EX) == 0 ? 0 : errno;
	while (error == EINTR && caught == 0 && !looker.found && !looker.late);
	pthread_mutex_lock(&looker.mutex);
	looker.over = true;
	pthread_cond_signal(&looker.changed);
	pthread_mutex_unlock(&looker.mutex);
	pthread_join(thread, NULL);
	if (error == EINTR && looker.found)
		return EEXIST;
	return error == EINTR && caught == 0 ? EWOULDBLOCK : error;
}

static int take_failed(const struct hold *hold, int error)
{
	if (error == EINTR)
		return fail(128 + caught, "%s: interrupted; nothing was taken", hold->name);
	if (error == EWOULDBLOCK)
		return fail(EXIT_NO, "%s: others hold it%s; see: dlockctl show %s", hold->name,
			    hold->wait_ms > 0 ? " still" : "", hold->name);
	if (error == ENOLCK)
		return fail(EX_OSERR,
			    "%s: the store could not be reached in time; see: dlockctl doctor",
			    hold->name);
	return fail(EX_DATAERR, "%s: cannot be locked: %s; see: dlockctl doctor", hold->name,
		    strerror(error));
}

/* The lock is held through the descriptor. Returns the status. */
static int turn(const struct hold *hold, int fd)
{
	struct dlockfs_hold wanted = {.for_ms = hold->for_ms};
	int error = descriptor_token(fd, &wanted.token);

	if (error != 0)
		return descriptor_fail(hold->name, error);
	strcpy(wanted.owner, hold->owner);
	error = descriptor_hold(fd, &wanted);
	if (error != 0 && error != -EIO && error != -EINTR && error != -ENODATA)
		return descriptor_fail(hold->name, error);
	int status = settle(hold, false);
	if (status >= 0)
		return status;
	if (error == -EINTR)
		return fail(128 + caught,
			    "%s: interrupted; it may be held all the same; see: dlockctl show %s",
			    hold->name, hold->name);
	return fail(EXIT_LOST, "%s: the lock was lost before it was a hold; take it anew",
		    hold->name);
}

static int may_hold(const struct hold *hold, int fd)
{
	int error = descriptor_may_hold(fd);

	if (error == -EOPNOTSUPP)
		return fail(EX_UNAVAILABLE,
			    "%s: its store, recipe or style has no holds; expected a lock in "
			    "ZooKeeper or etcd, without recipe = curator-any and style = file",
			    hold->name);
	if (error == -ENOTTY)
		return fail(EX_UNAVAILABLE,
			    "%s: the daemon is older than dlockctl, and knows no holds; restart it",
			    hold->name);
	if (error == -EPERM)
		return fail(EX_NOPERM,
			    "%s: only root, and the owner of the lock by dlockfs.ini, may hold it "
			    "for longer than a process lives",
			    hold->name);
	return error == 0 ? 0 : descriptor_fail(hold->name, error);
}

static int take_and_turn(const struct hold *hold)
{
	static struct waiting waiting; /* for the thread, too */
	int fd, status = opening_lock(&hold->place, &fd);

	if (status == 0)
		status = may_hold(hold, fd);
	if (status != 0)
		return status;
	catch_signals();
	waiting_init(&waiting, &hold->place, getpid());
	if (hold->verbose && hold->wait_ms != 0)
		waiting_start(&waiting);
	int error = take(hold, fd);
	waiting_stop(&waiting);
	if (error == 0) {
		status = turn(hold, fd);
	} else if (error == EEXIST || error == EWOULDBLOCK) {
		status = settle(hold, true);
		if (status < 0)
			status = take_failed(hold, error);
	} else {
		status = take_failed(hold, error);
	}
	close(fd);
	return status;
}

static void finish(struct hold *hold)
{
	place_finish(&hold->place);
	free(hold->name);
}

int command_hold(struct context *context, int argc, char **argv)
{
	static const struct option options[] = {{"as", required_argument, NULL, OPTION_AS},
						{"for", required_argument, NULL, OPTION_FOR},
						{"nonblock", no_argument, NULL, 'n'},
						{"wait", required_argument, NULL, 'w'},
						{"verbose", no_argument, NULL, 'v'},
						COMMON_OPTIONS};
	struct hold hold;
	int status = parse(&hold, context, argc, argv, options, ":nw:vh");

	if (status < 0)
		status = settle(&hold, true);
	if (status < 0)
		status = take_and_turn(&hold);
	finish(&hold);
	return status;
}

static int give(const struct hold *hold)
{
	struct queues queues;
	int status = 0, error = read_queue(hold, &queues);

	if (error != 0)
		return tree_fail(hold->place.mount, hold->place.name, error);
	const struct claim *claim = find(hold, &queues, NULL);
	char *owner = text_printable(hold->owner);
	bool any = claim != NULL;
	for (; claim != NULL && status == 0; claim = find(hold, &queues, claim))
		status = steer_hold(&hold->place, claim, -1);
	if (status == 0)
		printf("%s: %s %s\n", hold->name, owner,
		       any ? "has given it back" : "does not hold it");
	free(owner);
	queues_finish(&queues);
	return status;
}

int command_give(struct context *context, int argc, char **argv)
{
	static const struct option options[] = {{"as", required_argument, NULL, OPTION_AS},
						COMMON_OPTIONS};
	struct hold hold;
	int status = parse(&hold, context, argc, argv, options, ":h");

	if (status < 0)
		status = give(&hold);
	finish(&hold);
	return status;
}
