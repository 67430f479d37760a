/* SPDX-License-Identifier: Apache-2.0
 *
 * dlockfs: the parts in the order in which they begin, and in reverse.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/resource.h>

#include "config.h"
#include "daemon.h"
#include "engine.h"
#include "filesystem.h"
#include "log.h"
#include "loop.h"
#include "mount.h"
#include "notifier.h"
#include "options.h"
#include "steer.h"
#include "store_local.h"
#include "store_statistics.h"
#include "store_zookeeper.h"
#include "view.h"

struct daemon {
	struct config config;
	struct options options;
	struct engine *engine;
	struct local_service *service; /* of the local store */
	struct store *store;
	struct viewer *viewer;
	struct store_statistics store_statistics; /* of ZooKeeper's */
	struct filesystem filesystem;
	struct loop loop;
	char *mountpoint;
};

/* Each process that is to be sent a signal takes a descriptor (holder.h). */
static void raise_descriptor_limit(void)
{
	struct rlimit limit;
	if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
		return;
	limit.rlim_cur = limit.rlim_max;
	if (setrlimit(RLIMIT_NOFILE, &limit) < 0)
		log_warning("raising the limit of open files: %m");
}

static int open_engine(struct daemon *daemon)
{
	uint64_t seed;
	if (getrandom(&seed, sizeof(seed), 0) != (ssize_t)sizeof(seed))
		return -errno;
	daemon->engine = engine_create(&filesystem_engine_events, &daemon->filesystem, seed);
	return daemon->engine != NULL ? 0 : -ENOMEM;
}

static int open_store(struct daemon *daemon)
{
	const struct config *config = &daemon->config;
	int error;

	if (config->store.kind == STORE_KIND_LOCAL) {
		daemon->service = local_service_create();
		if (daemon->service == NULL)
			return -ENOMEM;
		error = store_local_open(daemon->service, &engine_store_events, daemon->engine,
					 &daemon->store);
	} else {
		struct store_zookeeper_options options = {
			.servers = config->store.servers,
			.root = config->store.root,
			.session_timeout_ms = config->session_timeout_ms,
			.statistics = &daemon->store_statistics,
		};
		error = store_zookeeper_open(&options, &engine_store_events, daemon->engine,
					     &daemon->store);
	}
	if (error == 0)
		engine_set_store(daemon->engine, daemon->store);
	else if (daemon->service != NULL)
		local_service_destroy(daemon->service);
	return error;
}

static int open_viewer(struct daemon *daemon)
{
	daemon->viewer = viewer_create(daemon->store, daemon->engine);
	return daemon->viewer != NULL ? 0 : -ENOMEM;
}

static void close_store(struct daemon *daemon)
{
	daemon->store->ops->close(daemon->store);
	viewer_destroy(daemon->viewer);
	steer_finish(&daemon->filesystem);
	if (daemon->service != NULL)
		local_service_destroy(daemon->service);
}

static void on_ready(void *context)
{
	struct daemon *daemon = context;
	char where[512];
	daemon->store->ops->describe(daemon->store, where, sizeof(where));
	log_info("%s is ready; %s", daemon->mountpoint, where);
	daemon_ready();
}

/* Runs the daemon from the mount to its end. Returns 0 or -errno, the error told. */
static int run(struct daemon *daemon)
{
	struct filesystem *filesystem = &daemon->filesystem;
	char why[1024] = "";
	const char *what = "preparing the mount";
	int error =
		mount_prepare(daemon->options.mountpoint, &daemon->mountpoint, why, sizeof(why));
	if (error != 0)
		goto cleanup;
	if (!daemon->options.foreground) {
		what = "going to the background";
		error = daemon_begin();
		if (error != 0)
			goto cleanup;
	}
	loop_block_signals();
	raise_descriptor_limit();
	what = "starting";
	error = open_engine(daemon);
	if (error != 0)
		goto cleanup;
	what = "opening the store";
	error = open_store(daemon);
	if (error != 0)
		goto cleanup_engine;
	what = "starting";
	error = open_viewer(daemon);
	if (error == 0)
		error = filesystem_init(filesystem, &daemon->config, daemon->engine);
	if (error != 0)
		goto cleanup_store;
	filesystem->store = daemon->store;
	filesystem->viewer = daemon->viewer;
	filesystem->mountpoint = daemon->mountpoint;
	if (daemon->config.store.kind == STORE_KIND_ZOOKEEPER)
		filesystem->store_statistics = &daemon->store_statistics;
	filesystem->on_ready = on_ready;
	filesystem->context = daemon;
	what = "mounting";
	error = mount_begin(filesystem, daemon->mountpoint, daemon->options.fuse, why, sizeof(why));
	if (error != 0)
		goto cleanup_filesystem;
	what = "starting a thread";
	error = notifier_create(filesystem->session, &filesystem->notifier);
	if (error != 0)
		goto cleanup_mount;
	what = "running";
	error = loop_init(&daemon->loop, filesystem, daemon->engine, daemon->store);
	if (error == 0) {
		error = loop_run(&daemon->loop);
		loop_finish(&daemon->loop);
	} else {
		notifier_stop(filesystem->notifier);
	}
	notifier_destroy(filesystem->notifier);
	filesystem_stop(filesystem);
cleanup_mount:
	/* The kernel is cut off before the claims are given back: nobody may go on believing. */
	mount_end(filesystem);
cleanup_filesystem:
	filesystem_finish(filesystem);
cleanup_store:
	close_store(daemon);
cleanup_engine:
	engine_destroy(daemon->engine);
cleanup:
	if (error != 0 && why[0] != '\0')
		log_error("%s", why);
	else if (error != 0)
		log_error("%s: %s", what, strerror(-error));
	free(daemon->mountpoint);
	return error;
}

int main(int argc, char **argv)
{
	struct daemon daemon = {0};
	enum options_action action = OPTIONS_RUN;
	char why[1024] = "out of memory";
	int error = config_init(&daemon.config);

	if (error == 0)
		error = options_parse(&daemon.options, &daemon.config, argc, argv, &action, why,
				      sizeof(why));
	if (error != 0)
		log_error("%s", why);
	else if (action == OPTIONS_HELP)
		options_help(stdout);
	else if (action == OPTIONS_VERSION)
		puts("dlockfs " DLOCKFS_VERSION);
	else {
		if (daemon.options.verbose)
			log_set_level(LOG_LEVEL_DEBUG);
		error = run(&daemon);
	}
	options_finish(&daemon.options);
	config_finish(&daemon.config);
	return error == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
