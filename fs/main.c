/* SPDX-License-Identifier: Apache-2.0
 *
 * dlockfs: the parts in the order in which they begin, and in reverse.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sysexits.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/log_queue.h"
#include "base/off_limits.h"
#include "config/config.h"
#include "daemon.h"
#include "files/filesystem.h"
#include "files/names.h"
#include "files/peering.h"
#include "files/shard.h"
#include "handles/answers.h"
#include "handles/audit.h"
#include "handles/steer.h"
#include "kernel/confine.h"
#include "kernel/folder_below.h"
#include "kernel/lease_board.h"
#include "kernel/memory_lock.h"
#include "kernel/mount.h"
#include "kernel/mount_point.h"
#include "kernel/nosymfollow.h"
#include "kernel/notifier.h"
#include "kernel/notifier_process.h"
#include "kernel/warden.h"
#include "kernel/warden_process.h"
#include "loop.h"
#include "ops/running.h"
#include "ops/serving.h"
#include "options.h"
#include "restart/keeping.h"
#include "restart/restart.h"
#include "restart/supervisor.h"
#include "restart/takeover.h"

#define DEFAULT_USER "dlockfs"

#define STATUS_OLD_CONFIG "Serving the mount; the new configuration has an error"

struct daemon {
	struct config config;
	struct options options;
	struct shards shards;
	struct fuse_session *session; /* NULL: nothing is mounted */
	struct serving serving;
	struct loop loop;
	struct takeover takeover; /* the state that this process goes on with */
	struct restart restart;
	struct keeping keeping; /* for the process that goes on after this one */
	bool taken_over;	/* the mount was made by another process */
	char *mountpoint;
	bool made;     /* the folder: by this process */
	bool stood_in; /* the configuration of the process before, for one with an error */
};

/* Each holder that is to be sent a signal takes a descriptor (handles/holder.h). */
static void raise_descriptor_limit(void)
{
	struct rlimit limit;
	if (getrlimit(RLIMIT_NOFILE, &limit) < 0 || limit.rlim_cur == limit.rlim_max)
		return;
	limit.rlim_cur = limit.rlim_max;
	if (setrlimit(RLIMIT_NOFILE, &limit) < 0)
		log_warning("raising the limit of open files: %m");
}

static void on_ready(void *context)
{
	struct daemon *daemon = context;
	const struct shard *shard = daemon->shards.list;
	char where[512];

	shard->store->ops->describe(shard->store, where, sizeof(where));
	log_info("%s is ready; %s", daemon->mountpoint, where);
	for (size_t i = 1; i < daemon->shards.count; i++) {
		shard = &daemon->shards.list[i];
		shard->store->ops->describe(shard->store, where, sizeof(where));
		log_info("%s/%s is in a store of its own; %s", daemon->mountpoint, shard->prefix,
			 where);
	}
	daemon_ready();
	keeping_publish(&daemon->keeping);
	supervisor_ready("Serving the mount");
}

static void on_fixed_key(const char *section, const char *key)
{
	if (strcmp(section, "mount") == 0) /* the kernel and existing names have the old value */
		log_warning("[%s] %s: needs stop and start to change", section, key);
	else
		log_warning("[%s] %s: needs a restart to change", section, key);
}

/* SIGHUP. A configuration with an error changes nothing. */
static void on_reload(void *context)
{
	struct daemon *daemon = context;
	struct config fresh;
	char why[1024] = "out of memory";

	supervisor_reloading();
	int error = config_init(&fresh);
	if (error == 0)
		error = options_configure(&daemon->options, &fresh, why, sizeof(why));
	if (error == 0) {
		config_reload(&daemon->config, &fresh, on_fixed_key);
		log_set_level((enum log_level)daemon->config.log_level);
		restart_note_config(&daemon->restart);
		peering_listen(&daemon->shards, &daemon->config, clock_now_ms());
		names_reload(&daemon->serving.filesystem);
		audit_reload(&daemon->serving.filesystem);
		daemon->stood_in = false;
		log_info("the configuration has been read anew; a lock that is in use keeps what "
			 "was said of it");
	} else {
		log_error("%s; the configuration stays as it was", why);
		config_finish(&fresh);
	}
	supervisor_ready(error == 0 ? "Serving the mount" : STATUS_OLD_CONFIG);
}

/* Returns in a child, which has to lock the secrets in memory anew. */
static int go_to_background(const struct config *config)
{
	int error = daemon_begin();

	for (size_t i = 0; error == 0 && i < config->store_count; i++) {
		store_access_lock(&config->stores[i].access);
		secret_lock(config->stores[i].url.password);
	}
	return error;
}

/* Makes the mount point ready, or takes that of the former program over. Goes to the background. */
static int prepare(struct daemon *daemon, const char **what, char *why, size_t why_bytes)
{
	struct takeover *takeover = &daemon->takeover;

	*what = "taking over";
	int error = keeping_check(&daemon->keeping, takeover, daemon->options.mountpoint,
				  &daemon->config, why, why_bytes);
	if (error != 0)
		return error;
	if (takeover->file != NULL) {
		daemon->mountpoint = strdup(takeover->process.mountpoint);
		if (daemon->mountpoint == NULL)
			return -ENOMEM;
		log_set_mountpoint(daemon->mountpoint);
		if (takeover->process.background && !takeover->rehearsal)
			daemon_resume();
		if (daemon->keeping.found)
			return 0;
		return takeover_check(takeover, &daemon->config, why, why_bytes);
	}
	*what = "preparing the mount";
	error = mount_point_prepare(daemon->options.mountpoint, daemon->keeping.abandoned,
				    daemon->options.nonempty, &daemon->mountpoint, &daemon->made,
				    why, why_bytes);
	if (error != 0)
		return error;
	log_set_mountpoint(daemon->mountpoint);
	*what = "going to the background";
	return daemon->options.foreground ? 0 : go_to_background(&daemon->config);
}

static struct mount_plan plan_mount(struct daemon *daemon)
{
	return (struct mount_plan){
		.config = &daemon->config,
		.fuse_options = daemon->options.fuse,
		.ops = &serving_ops,
		.userdata = &daemon->serving.filesystem,
	};
}

static int begin_mount(struct daemon *daemon, char *why, size_t why_bytes)
{
	struct mount_plan plan = plan_mount(daemon);
	struct folder_below folder = {.descriptor = -1};

	if (mount_point_is_link(daemon->options.mountpoint))
		log_warning(
			"%s: is a symbolic link: the folder below the mount stays as it is, and "
			"without the mount, files in it are locked on this host only",
			daemon->options.mountpoint);
	else if (!daemon->options.nonempty)
		folder_below_begin(&folder, daemon->mountpoint);
	int error = mount_begin(&plan, daemon->mountpoint, &daemon->session, why, why_bytes);
	folder_below_end(&folder, error == 0);
	return error;
}

/* Goes on with the mount of the process that was taken over. */
static int resume_mount(struct daemon *daemon, char *why, size_t why_bytes)
{
	const struct takeover_process *process = &daemon->takeover.process;
	struct fuse_buf greeting = {.mem = (void *)process->init, .size = process->init_bytes};
	struct mount_plan plan = plan_mount(daemon);
	int error = mount_resume(&plan, process->fuse, &daemon->session, why, why_bytes);

	if (error != 0)
		return error;
	daemon->serving.filesystem.session = daemon->session;
	request_handle(&daemon->serving.filesystem, &greeting);
	return 0;
}

/* Makes the file system: a new one, or that of the state that was taken over. */
static int begin_filesystem(struct daemon *daemon, char *why, size_t why_bytes)
{
	struct filesystem *filesystem = &daemon->serving.filesystem;
	struct takeover *takeover = &daemon->takeover;
	int error = serving_init(&daemon->serving, &daemon->config, &daemon->shards);

	if (error != 0)
		return error;
	filesystem->mountpoint = daemon->mountpoint;
	filesystem->session = daemon->session;
	if (!daemon->taken_over) {
		filesystem->calls->on_ready = on_ready;
		filesystem->calls->context = daemon;
	}
	if (!takeover->rehearsal)
		error = lease_board_create(daemon->shards.count, &filesystem->board);
	if (error == 0)
		error = keeping_open(&daemon->keeping, filesystem, takeover);
	if (error != 0 || !daemon->taken_over)
		return error;
	error = takeover_restore(takeover, filesystem, why, why_bytes);
	if (error != 0 && daemon->keeping.found)
		keeping_refuse(&daemon->keeping, takeover, error, why);
	return error;
}

/* What would go wrong, as far as that is seen without a mount and servers. */
static int check(struct daemon *daemon, char *why, size_t why_bytes)
{
	struct mount_plan plan = plan_mount(daemon);
	int error = mount_check(&plan, why, why_bytes);

	return error == 0 ? shards_check(&daemon->config, why, why_bytes) : error;
}

#define ASK_LIMIT_MS 3000

/* Returns 0, or -EHOSTDOWN if a server does not serve, which is said. */
static int ask(const struct daemon *daemon)
{
	signal(SIGPIPE, SIG_IGN);
	return shards_ask(&daemon->config, ASK_LIMIT_MS, stdout) ? 0 : -EHOSTDOWN;
}

static void log_end(int error, const char *what, const char *why)
{
	if (why[0] != '\0')
		log_error("%s", why);
	else
		log_error("%s: %s", what, strerror(-error));
}

/* Whether an error has ended the start, before the loop runs. Does not return if the state that
 * this process was to take over is still there for the next process, for which the error may have
 * passed: this process then ends as if it was killed. */
static bool has_failed(const struct daemon *daemon, int error, const char *what, const char *why)
{
	if (error == 0)
		return false;
	if (keeping_is_left(&daemon->keeping, &daemon->takeover)) {
		log_end(error, what, why);
		_exit(EXIT_FAILURE);
	}
	return true;
}

static int run_loop(struct daemon *daemon)
{
	struct filesystem *filesystem = &daemon->serving.filesystem;
	bool background = daemon->taken_over ? daemon->takeover.process.background
					     : !daemon->options.foreground;
	int error = keeping_start(&daemon->keeping);

	if (error == 0)
		error = peering_open(&daemon->shards);
	if (error == 0)
		error = loop_init(&daemon->loop, filesystem);
	if (has_failed(daemon, error, "running", ""))
		return error;
	restart_set(&daemon->restart, filesystem, background, &daemon->takeover);
	daemon->loop.restart = &daemon->restart;
	daemon->loop.keeping = &daemon->keeping;
	daemon->loop.on_reload = on_reload;
	daemon->loop.context = daemon;
	peering_listen(&daemon->shards, &daemon->config, clock_now_ms());
	if (daemon->taken_over) {
		takeover_resume(&daemon->takeover, filesystem);
		keeping_resume(&daemon->keeping);
		log_info("%s goes on with version " DLOCKFS_VERSION, daemon->mountpoint);
		supervisor_ready(daemon->stood_in ? STATUS_OLD_CONFIG : "Serving the mount");
	}
	takeover_finish(&daemon->takeover);
	error = loop_run(&daemon->loop);
	supervisor_stopping();
	if (daemon->loop.left && keeping_is_possible(&daemon->keeping)) {
		keeping_settle(&daemon->keeping);
		log_info("%s is left to the next process", daemon->mountpoint);
		log_queue_flush();
		_exit(EX_TEMPFAIL); /* after any signal: the service manager starts the next process
				     */
	}
	loop_finish(&daemon->loop);
	return error;
}

/* Unmounts, if anything is mounted, and removes the folder that this process made, unless somebody
 * else may have mounted there by now. */
static void end_mount(struct daemon *daemon)
{
	bool is_free = daemon->session == NULL ||
		       mount_end(daemon->session, daemon->mountpoint, daemon->taken_over);

	daemon->session = daemon->serving.filesystem.session = NULL;
	if (daemon->made && is_free)
		mount_point_remove(daemon->mountpoint);
	daemon->made = false;
}

/* Serves the mount until its end. */
static int serve(struct daemon *daemon, const char **what)
{
	struct filesystem *filesystem = &daemon->serving.filesystem;

	memory_lock_used();
	filesystem->calls->follows_links = !nosymfollow_set(daemon->mountpoint);
	/* Before the new guard starts: the former guard leaves the restored leases to it. */
	shards_conclude(&daemon->shards);
	*what = "starting a process";
	const struct notifier_mount mount = {
		.fuse = fuse_session_fd(daemon->session),
		.mountpoint = daemon->mountpoint,
		.unmounts = daemon->options.auto_unmount,
	};
	int error = notifier_create(&mount, filesystem->journal, filesystem->board,
				    &filesystem->notifier);
	if (has_failed(daemon, error, *what, ""))
		return error;
	names_make_directories(filesystem);
	*what = "running";
	error = run_loop(daemon);
	takeover_commit(filesystem, 0);
	answers_end(filesystem);
	keeping_end(&daemon->keeping);
	/* The writer has the connection with the kernel open, too. */
	notifier_destroy(filesystem->notifier);
	serving_stop(filesystem);
	return error;
}

/* The files that the configuration names, and the command line. NULL: out of memory; the caller
 * frees the array alone. */
static const char **list_files(const struct daemon *daemon)
{
	const struct config *config = &daemon->config;
	const char **files = calloc(7 * config->store_count + 1, sizeof(*files));
	size_t count = 0;

	if (files == NULL)
		return NULL;
	for (size_t i = 0; i < config->store_count; i++) {
		const struct store_access *access = &config->stores[i].access;
		const char *const named[] = {access->digest.file,	access->tls_ca,
					     access->tls_certificate,	access->tls_key,
					     access->tls_password.file, access->sasl_password.file,
					     access->password.file};
		for (size_t j = 0; j < sizeof(named) / sizeof(*named); j++) {
			if (named[j] != NULL)
				files[count++] = named[j];
		}
	}
	return files;
}

/* Looks the user up to go on as. Returns 0, and in *ret_changes whether it is another one; or
 * -errno and one line in `why`. */
static int choose_user(const struct daemon *daemon, struct confine_user *ret, bool *ret_changes,
		       char *why, size_t why_bytes)
{
	const char *user = daemon->config.user != NULL ? daemon->config.user : DEFAULT_USER;

	*ret_changes = false;
	if (geteuid() != 0 || daemon->takeover.rehearsal || strcmp(user, "root") == 0)
		return 0;
	if (confine_find_user(user, ret) != 0) {
		if (daemon->config.user == NULL)
			return 0;
		snprintf(why, why_bytes, "user: no user \"%s\" on this host, expected one, or root",
			 user);
		return -ENOENT;
	}
	*ret_changes = ret->uid != 0 && confine_may_change_user();
	/* Not an end: who goes on with the locks of a daemon that has given that up would lose
	 * them. */
	if (ret->uid != 0 && !*ret_changes)
		log_warning(
			"cannot go on as user %s, without CAP_SETUID and CAP_SETGID: goes on as "
			"root",
			user);
	return 0;
}

/* Before the mount, for which its loader might ask. */
static int start_warden(const struct daemon *daemon, char *why, size_t why_bytes)
{
	const char **files = list_files(daemon);
	const struct warden_plan plan = {
		.mountpoint = daemon->mountpoint,
		.unmounts = daemon->options.auto_unmount,
		.made = daemon->made,
		.has_files = config_has_files(&daemon->config),
		.config = options_config_file(&daemon->options),
		.files = files,
	};
	int error = files != NULL ? warden_start(&plan) : -ENOMEM;

	free(files);
	if (error != 0)
		snprintf(why, why_bytes, "starting the process with root's rights: %s",
			 strerror(-error));
	return error;
}

/* Before anything that a server says is read. */
static int give_up_rights(const struct confine_user *user, bool changes, char *why,
			  size_t why_bytes)
{
	if (changes)
		return confine_to_user(user, why, why_bytes);
	confine_self(); /* nothing, if root has become another user already */
	return 0;
}

/* Runs the daemon from the mount to its end. Returns 0 or -errno, the error told. */
static int run(struct daemon *daemon)
{
	struct filesystem *filesystem = &daemon->serving.filesystem;
	struct confine_user user;
	bool changes = false;
	char why[1024] = "";
	const char *what = "";
	int error = prepare(daemon, &what, why, sizeof(why));
	if (has_failed(daemon, error, what, why))
		goto cleanup;
	daemon->taken_over = daemon->takeover.file != NULL;
	loop_block_signals();
	raise_descriptor_limit();
	error = choose_user(daemon, &user, &changes, why, sizeof(why));
	if (error == 0 && changes)
		error = start_warden(daemon, why, sizeof(why));
	what = "mounting"; /* before the stores begin their threads: see mount_begin() */
	if (error == 0 && !daemon->taken_over)
		error = begin_mount(daemon, why, sizeof(why));
	if (has_failed(daemon, error, what, why))
		goto cleanup;
	what = "giving up rights";
	error = give_up_rights(&user, changes, why, sizeof(why));
	if (has_failed(daemon, error, what, why))
		goto cleanup;
	what = "opening the store";
	error = shards_open(&daemon->config, &serving_events, daemon->takeover.former,
			    &daemon->shards);
	if (has_failed(daemon, error, what, why))
		goto cleanup;
	what = "starting";
	error = begin_filesystem(daemon, why, sizeof(why));
	if (has_failed(daemon, error, what, why))
		goto cleanup_filesystem;
	if (daemon->takeover.rehearsal) {
		fputs(TAKEOVER_UNDERSTOOD, stdout);
		goto cleanup_filesystem;
	}
	what = "mounting";
	if (daemon->taken_over)
		error = resume_mount(daemon, why, sizeof(why));
	if (has_failed(daemon, error, what, why))
		goto cleanup_filesystem;
	error = serve(daemon, &what);
cleanup_filesystem:
	/* The connection ends before the claims are released: no holder may go on believing that it
	 * has the lock. */
	end_mount(daemon);
	lease_board_clear(filesystem->board);
	answers_finish(filesystem);
	serving_finish(filesystem);
	lease_board_destroy(filesystem->board);
	filesystem->board = NULL;
	peering_close(&daemon->shards);
	shards_close(&daemon->shards);
	steer_finish(filesystem);
	running_finish(filesystem);
cleanup:
	end_mount(daemon);
	keeping_finish(&daemon->keeping);
	if (error != 0 && !daemon->keeping.gave_up)
		log_end(error, what, why);
	free(daemon->mountpoint);
	daemon->mountpoint = NULL;
	return error;
}

/* Names in the command line count from the folder in which the first program was started. That must
 * not be below the mount by now, which nobody answers for yet. */
static int enter_folder(const struct takeover_process *process, char *why, size_t why_bytes)
{
	int error = off_limits_set(process->mountpoint);

	if (error == 0 && off_limits_has(process->folder))
		error = -EBUSY;
	else if (error == 0 && chdir(process->folder) < 0 &&
		 (errno != EACCES || warden_socket() < 0)) /* then it is root's */
		error = -errno;
	if (error != 0)
		snprintf(why, why_bytes, "%s, where it was started: %s", process->folder,
			 error == -EBUSY ? "is below the mount point itself, expected a start in "
					   "another folder"
					 : strerror(-error));
	return error;
}

static int begin(struct daemon *daemon, char **argv, char *why, size_t why_bytes)
{
	struct takeover *takeover = &daemon->takeover;
	int error = takeover_begin(takeover, why, why_bytes);

	if (error == 0 && takeover->process.warden >= 0)
		warden_resume(takeover->process.warden);
	if (error == 0)
		error = keeping_begin(&daemon->keeping, takeover, why, why_bytes);
	if (error == 0 && takeover->file != NULL && !daemon->keeping.found)
		error = enter_folder(&takeover->process, why, why_bytes);
	restart_init(&daemon->restart, argv);
	return error;
}

/* A process that goes on with locks does not end for want of a configuration: that of the process
 * before stands in for one with the error `why`. Returns the error, if there was no such one. */
static int stand_in(struct daemon *daemon, int error, const char *why)
{
	const struct takeover_process *process = &daemon->takeover.process;

	if (process->config == NULL || options_use(&daemon->options, &daemon->config,
						   process->config, process->config_bytes) != 0)
		return error;
	log_error("%s; the configuration of the process before is in use", why);
	daemon->stood_in = true;
	return 0;
}

int main(int argc, char **argv)
{
	struct daemon daemon = {0};
	enum options_action action = OPTIONS_RUN;
	char why[1024] = "out of memory";
	int error;

	if (notifier_process_is_meant(argv))
		notifier_process_run(argv);
	if (warden_process_is_meant(argv))
		warden_process_run(argv);
	error = config_init(&daemon.config);
	if (error == 0)
		error = begin(&daemon, argv, why, sizeof(why));
	if (error == 0) {
		error = options_parse(&daemon.options, &daemon.config, argc, argv, &action, why,
				      sizeof(why));
		if (error != 0)
			error = stand_in(&daemon, error, why);
	}
	if (error == 0 && (action == OPTIONS_CHECK || action == OPTIONS_ASK))
		error = check(&daemon, why, sizeof(why));
	if (error != 0)
		log_error("%s", why);
	else if (action == OPTIONS_HELP)
		options_help(stdout);
	else if (action == OPTIONS_VERSION)
		puts("dlockfs " DLOCKFS_VERSION);
	else if (action == OPTIONS_ASK)
		error = ask(&daemon);
	else if (action == OPTIONS_RUN) {
		if (log_stderr_is_journal())
			log_to_journal();
		if (daemon.takeover.process.background && chdir("/") < 0)
			log_warning("going to the background: %m");
		log_set_level((enum log_level)daemon.config.log_level);
		error = run(&daemon);
		if (keeping_gave_up(&daemon.keeping))
			error = run(&daemon);
	}
	keeping_finish(&daemon.keeping);
	restart_finish(&daemon.restart);
	takeover_finish(&daemon.takeover);
	options_finish(&daemon.options);
	config_finish(&daemon.config);
	log_queue_flush();
	return error == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
