/* SPDX-License-Identifier: Apache-2.0
 *
 * The configuration: defaults, files good and bad, options, what holds for a lock, and that
 * etc/dlockfs.ini shows every key as it is. DLOCKFS_SOURCE_DIR says where that file's tree is.
 */
#include <errno.h>
#include <fnmatch.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/log.h"
#include "claim/name.h"
#include "config/config.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

#define X50  "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"
#define X200 X50 X50 X50 X50
#define H50  "##################################################"
#define H200 H50 H50 H50 H50

static struct config config;
static char why[1024];

static int setup(void **state)
{
	(void)state;
	why[0] = '\0';
	return config_init(&config);
}

static int teardown(void **state)
{
	(void)state;
	config_finish(&config);
	return 0;
}

/* Reads `bytes` of text as a file. What is said of it is in `why`, without the file's name. */
static int read_bytes(const char *text, size_t bytes)
{
	char file[] = "/tmp/dlockfs-test-config.XXXXXX";
	int fd = mkstemp(file), result;

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, bytes), bytes);
	close(fd);
	result = config_read(&config, file, why, sizeof(why));
	unlink(file);
	if (result) {
		assert_memory_equal(why, file, strlen(file));
		assert_int_equal(why[strlen(file)], ':');
		memmove(why, why + strlen(file) + 1, strlen(why + strlen(file) + 1) + 1);
		assert_null(strchr(why, '\n'));
	}
	return result;
}

static void read_good(const char *text)
{
	int result = read_bytes(text, strlen(text));

	if (result)
		print_message("%s\n", why);
	assert_int_equal(result, 0);
}

static void check_defaults(void)
{
	struct lock_policy policy = config_policy(&config, "any");

	assert_int_equal(config.mode, 0777);
	assert_int_equal(config.idle_ms, 60000);
	assert_true(!config.directories || !config.directories[0]);
	assert_true(config.allow_other);
	assert_false(config.audit);
	assert_int_equal(config.log_level, LOG_LEVEL_INFO);
	assert_int_equal(config.user_waiters, 4096);
	assert_int_equal(config.user_files, 16384);
	assert_int_equal(config.user_names, 16384);
	assert_int_equal(config.user_ranges, 65536);
	assert_int_equal(config.user_writes, 20000);
	assert_null(config.peers);
	assert_string_equal(config.stores[0].url.scheme, STORE_SCHEME_LOCAL);
	assert_int_equal(config.stores[0].session_timeout_ms, 15000);
	assert_int_equal(policy.wait_limit_ms, CONFIG_FOREVER);
	assert_int_equal(policy.try_limit_ms, 5000);
	assert_int_equal(policy.try_grace_ms, CONFIG_AUTO);
	assert_int_equal(policy.linger_ms, 50);
	assert_int_equal(policy.handoff, 0);
	assert_int_equal(policy.keep_ms, 0);
	assert_int_equal(policy.slots, 1);
	assert_int_equal(policy.lock_delay_ms, 0);
	assert_int_equal(policy.min_hold_ms, 0);
	assert_int_equal(policy.max_hold_ms, 0);
	assert_int_equal(policy.process_ranges, 4096);
	assert_int_equal(policy.file_ranges, 16384);
	assert_int_equal(policy.text_limit, CONFIG_AUTO);
	assert_int_equal(config_text_limit(&policy), 4096);
	assert_int_equal(policy.on_lost, 0);
	assert_int_equal(policy.recipe, CLAIM_CURATOR_RW);
	assert_int_equal(policy.exclusive_open, EXCLUSIVE_OPEN_WAIT);
	assert_int_equal(policy.style, STYLE_LOCK);
	assert_int_equal(policy.file_owner, FILE_OWNER_HOST);
	assert_int_equal(policy.steal, STEAL_YES);
	assert_int_equal(policy.owner, CONFIG_CREATOR);
	assert_int_equal(policy.group, CONFIG_CREATOR);
	assert_int_equal(policy.mode, CONFIG_CREATOR);
	assert_false(config_has_access(&config));
}

static void test_defaults(void **state)
{
	(void)state;
	check_defaults();
	read_good("");
	read_good("[mount]\n[store]\n[locks]\n[locks \"x\"]\n");
	check_defaults();
}

static void test_recipes(void **state)
{
	static const char *const names[] = {
		[CLAIM_CURATOR_RW] = "curator-rw", [CLAIM_CURATOR_MUTEX] = "curator-mutex",
		[CLAIM_KAZOO] = "kazoo",	   [CLAIM_CURATOR_ANY] = "curator-any",
		[CLAIM_PLAIN] = "plain",	   [CLAIM_REDISSON] = "redisson",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		assert_int_equal(config_set(&config, "recipe", names[i], why, sizeof(why)), 0);
		assert_int_equal(config_policy(&config, "a").recipe, i);
	}
}

static void test_every_key(void **state)
{
	struct lock_policy policy;

	(void)state;
	read_good("# a comment\n"
		  "; another\n"
		  "\n"
		  "[mount]\n"
		  "mode = 0750\n"
		  "idle=2m\n"
		  "   directories =  a  b/c#\t.d/..e ; but # not this\n"
		  "allow_other = no\r\n"
		  "log_level = debug\naudit = yes\n"
		  "[ store ] ; comment\n"
		  "url: zookeeper://zk:2191/x;y\n"
		  "session_timeout = 10m\n"
		  "[locks]\n"
		  "  # indented\n"
		  "wait_limit = 1h\n"
		  "try_limit = 100ms\n"
		  "try_grace = 10s\n"
		  "linger = 0ms\n"
		  "handoff = 1000000\n"
		  "keep = 1d\n"
		  "lock_delay = 30s\n"
		  "min_hold = 50s\n"
		  "max_hold = 30d\n"
		  "process_ranges = 1\n"
		  "file_ranges = 65536\n"
		  "text_limit = 1048576\n"
		  "on_lost = SIGTERM\n"
		  "[locks \"any\"]\n"
		  "slots = 4096\n");
	policy = config_policy(&config, "any");
	assert_int_equal(config.mode, 0750);
	assert_int_equal(config.idle_ms, 120000);
	assert_string_equal(config.directories[0], "a");
	assert_string_equal(config.directories[1], "b/c#");
	assert_string_equal(config.directories[2], ".d/..e");
	assert_null(config.directories[3]);
	assert_false(config.allow_other);
	assert_int_equal(config.log_level, LOG_LEVEL_DEBUG);
	assert_true(config.audit);
	assert_string_equal(config.stores[0].url.scheme, STORE_SCHEME_ZOOKEEPER);
	assert_string_equal(config.stores[0].url.servers, "zk:2191");
	assert_string_equal(config.stores[0].url.root, "/x;y");
	assert_int_equal(config.stores[0].session_timeout_ms, 600000);
	assert_int_equal(policy.wait_limit_ms, 3600000);
	assert_int_equal(policy.try_limit_ms, 100);
	assert_int_equal(policy.try_grace_ms, 10000);
	assert_int_equal(policy.linger_ms, 0);
	assert_int_equal(policy.handoff, 1000000);
	assert_int_equal(policy.keep_ms, 86400000);
	assert_int_equal(policy.slots, 4096);
	assert_int_equal(policy.lock_delay_ms, 30000);
	assert_int_equal(policy.min_hold_ms, 50000);
	assert_int_equal(policy.max_hold_ms, INT64_C(30) * 86400000);
	assert_int_equal(policy.process_ranges, 1);
	assert_int_equal(policy.file_ranges, 65536);
	assert_int_equal(policy.text_limit, 1048576);
	assert_int_equal(policy.on_lost, SIGTERM);
}

static void test_signals(void **state)
{
	static const struct {
		const char *name;
		int number;
	} signals[] = {
		{"SIGHUP", SIGHUP},   {"SIGINT", SIGINT},   {"SIGQUIT", SIGQUIT},
		{"SIGTERM", SIGTERM}, {"SIGKILL", SIGKILL}, {"SIGUSR1", SIGUSR1},
		{"SIGUSR2", SIGUSR2}, {"eio", 0},
	};

	(void)state;
	for (size_t i = 0; i < COUNT(signals); i++) {
		assert_int_equal(config_set(&config, "on_lost", signals[i].name, why, sizeof(why)),
				 0);
		assert_int_equal(config_policy(&config, "a").on_lost, signals[i].number);
		/* What is expected instead of a bad value names them all. */
		assert_int_equal(config_set(&config, "on_lost", "x", why, sizeof(why)), -EINVAL);
		assert_non_null(strstr(why, signals[i].name));
	}
}

static void test_odd_but_good_files(void **state)
{
	(void)state;
	read_good("\xef\xbb\xbf[mount]\nmode = 700\n");
	assert_int_equal(config.mode, 0700);
	read_good("\xef\xbb\xbf# only a comment");
	read_good("# " X200 X200 X200 "\n[mount]\nmode = 755\n");
	assert_int_equal(config.mode, 0755);
	read_good("[locks \"" X200 "\"]\nlinger = 1s\n");
	assert_int_equal(config_policy(&config, X200).linger_ms, 1000);
	assert_int_equal(config_policy(&config, X200 "y").linger_ms, 50);
	/* A second file goes on where the first one ended. */
	read_good("[locks \"" X200 "\"]\nlinger = 2s\n");
	assert_int_equal(config_policy(&config, X200).linger_ms, 2000);
	read_good("[mount]\ndirectories =\n");
	assert_null(config.directories[0]);
}

#define SECTIONS "expected [mount], [store], [store \"prefix\"], [locks] or [locks \"pattern\"]"
#define DURATION(min, max)                                                                         \
	"expected a duration from " min " to " max ", a number with ms, s, m, h or d"

#define NUMBER(min, max) "expected a number from " min " to " max
#define ACCOUNT(kind)	 "expected the name or number of a " kind ", or creator"
#define SIGNAL		 "expected eio, SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGKILL, SIGUSR1 or SIGUSR2"

static const struct {
	const char *text, *why;
} bad_files[] = {
	/* keys */
	{"mode = 0700\n[mount]\n", "1: key \"mode\" before any section, " SECTIONS " first"},
	{"[mount]\n\nspeed = 1\n",
	 "3: unknown key \"speed\" in section [mount], expected one of "
	 "mode, idle, directories, allow_other, user, user_waiters, user_files, "
	 "user_names, user_ranges, user_writes, peers, log_level, audit"},
	{"[mount]\nMode = 0700\n", "2: unknown key \"Mode\""},
	{"[mount]\n= 0700\n", "2: unknown key \"\""},
	{"[mount]\nurl = local:\n", "2: key \"url\" in section [mount], expected it in [store]"},
	{"[locks \"a\"]\nidle = 5s\n",
	 "2: key \"idle\" in section [locks], expected it in [mount]"},
	{"[mount]\nidle = 1s\nmode = 0700\nidle = 2s\n",
	 "4: key \"idle\" a second time in its section, expected it once"},
	{"[mount]\nmode\n", "2: a line without '=', expected key = value"},
	{"[mount]\nmode = 0700\n  0600\n", "3: a line without '='"},
	{"[mount]\nmode ; = 0700\n", "2: a line without '='"},
	{"[mount]\nmode = 0700\n  idle = 5\n", "3: idle: bad value \"5\""},
	/* only the first error is told */
	{"[mount]\nmode\nidle = 5\n", "2: a line without '='"},
	{"[mount]\nidle = 5\nmode\n", "2: idle: bad value"},
	{"[mount]\nmode\n[bogus]\n", "2: a line without '='"},
	{"[bogus]\nmode\n", "1: unknown section"},
	{"# x\n\n[mount]\n\nmode\n", "5: a line without '='"},
	/* sections */
	{"[bogus]\n", "1: unknown section \"bogus\", " SECTIONS},
	{"[mount]\nmode = 0700\n[bogus]", "3: unknown section \"bogus\""},
	{"[]\n", "1: unknown section \"\""},
	{"[Mount]\n", "1: unknown section \"Mount\""},
	{"[mount\n", "1: bad section header [mount, " SECTIONS},
	{"[mount] x\n", "1: bad section header [mount] x"},
	{"[mount] mode = 0700\n", "1: bad section header"},
	{"[mount x]\n", "1: bad section header"},
	{"[mount \"x\"]\n", "1: bad section header"},
	{"[locks \"x]\n", "1: bad section header"},
	{"[locks \"x\" y]\n", "1: bad section header"},
	{"[locks x]\n", "1: bad section header"},
	{"[locks \"x\"\n", "1: bad section header"},
	{"[", "1: bad section header [, expected"},
	{"[locks \"\"]\n", "1: bad pattern \"\", expected a path like \"backup/*\""},
	{"[locks \"/a\"]\n", "1: bad pattern \"/a\""},
	{"[mount]\n[store]\n[mount]\n", "3: section [mount] a second time, expected it once"},
	{"[locks \"a\"]\n[locks]\n[locks \"a\"]\n",
	 "3: section [locks \"a\"] a second time, expected it once"},
	/* stores */
	{"[store \"\"]\nurl = local:\n",
	 "1: bad prefix \"\", expected the path of a directory like "
	 "\"backup\" or \"backup/daily\""},
	{"[store \"/a\"]\nurl = local:\n", "1: bad prefix \"/a\""},
	{"[store \"a/\"]\nurl = local:\n", "1: bad prefix \"a/\""},
	{"[store \"a//b\"]\nurl = local:\n", "1: bad prefix \"a//b\""},
	{"[store \"a/../b\"]\nurl = local:\n", "1: bad prefix \"a/../b\""},
	{"[store \".dlockfs\"]\nurl = local:\n", "1: bad prefix \".dlockfs\""},
	{"[store \"a/*\"]\nurl = local:\n", "1: bad prefix \"a/*\""},
	{"[store \"a?\"]\nurl = local:\n", "1: bad prefix \"a?\""},
	{"[store \"[ab]\"]\nurl = local:\n", "1: bad prefix \"[ab]\""},
	{"[store \"a\"]\nurl = local:\n[store]\n[store \"a\"]\n",
	 "4: section [store \"a\"] a second time, expected it once"},
	{"[store \"a\"]\n", "1: section [store \"a\"] without a url, expected url = zookeeper://"},
	{"[mount]\n[store \"a\"]\nsession_timeout = 5s\n[locks]\n",
	 "2: section [store \"a\"] without a url"},
	{"[store \"a\"]\nsession_timeout = 5s\n[bogus]\n",
	 "1: section [store \"a\"] without a url"},
	{"[store \"a\"]\nurl\n[locks]\n", "2: a line without '='"},
	{"[store \"a\"]\nurl = local:\nurl = local:\n", "3: key \"url\" a second time"},
	{"[store \"a\"]\nurl = etcd:\n", "2: url: bad store \"etcd:\", expected local:, or"},
	{"[store \"a\"]\nmode = 0700\n",
	 "2: key \"mode\" in section [store], expected it in [mount]"},
	{"[store \"a\"]\nhosts = b\n",
	 "2: unknown key \"hosts\" in section [store], expected one of url, session_timeout"},
	{"[store]\nacl = all\n",
	 "2: acl: bad value \"all\", expected auto, open, creator or private"},
	{"[locks]\n[store]\nacl = creator\n[mount]\n",
	 "2: acl = creator, but nothing says who the creator is, expected digest_file, "
	 "tls_certificate or sasl_mechanism"},
	{"[store \"a\"]\nurl = local:\nacl = private\n",
	 "1: acl = private, but nothing says who the creator is, expected digest_file, "
	 "tls_certificate or sasl_mechanism"},
	{"[mount]\n[store]\nsasl_realm = x\n",
	 "3: sasl_realm: the ZooKeeper library of this build has no SASL, expected one that has, "
	 "or this key left out"},
	{"[store]\nsession_timeout = 5s\nsasl_user = x\nsasl_mechanism = x\nurl = zookeeper://a\n",
	 "4: sasl_mechanism: the ZooKeeper library of this build has no SASL, expected one that"},
	{"[store]\ntls_ca = /etc/passwd\n[locks]\n[store \"a\"]\ntls_ca = /etc/passwd"
	 "\nurl = zookeeper://a\n",
	 "5: tls_ca: the ZooKeeper library of this build has no TLS, expected one that"},
	{"[store]\nurl = zookeeper://a\netcd_user = x\n",
	 "3: etcd_user is for etcd, expected it left out where ZooKeeper is the store"},
	{"[store]\ndigest_file = x/y\n",
	 "2: digest_file: bad file \"x/y\", expected an absolute path"},
	{"[store]\ndigest_file = /none/x\n", "2: digest_file: /none/x: No such file or directory, "
					     "expected a plain file of mode 0600"},
	{"[store]\ndigest_file = /dev/null\n",
	 "2: digest_file: /dev/null: not a plain file, expected one"},
	{"[store a]\nurl = local:\n", "1: bad section header [store a], " SECTIONS},
	{"[store \"a]\n", "1: bad section header"},
	/* values */
	{"[mount]\nmode = 1777\n",
	 "2: mode: bad value \"1777\", expected an octal mode from 0 to 0777"},
	{"[mount]\nmode = 0778\n", "2: mode: bad value \"0778\""},
	{"[mount]\nmode = -1\n", "2: mode: bad value \"-1\""},
	{"[mount]\nmode = rwx\n", "2: mode: bad value \"rwx\""},
	{"[mount]\nmode =\n", "2: mode: bad value \"\""},
	{"[mount]\nmode = 0700 # x\n", "2: \"# x\" is no comment here"},
	{"[mount]\nmode = 77777777777777777777777777\n", "2: mode: bad value"},
	{"[mount]\npeers = host\n",
	 "2: peers: bad address \"host\": it is no numeric address, expected the address of this "
	 "host that other hosts reach, such as 10.0.0.7, 10.0.0.7:7263 or [2001:db8::7]"},
	{"[mount]\npeers = 0.0.0.0\n",
	 "2: peers: bad address \"0.0.0.0\": it is that of all interfaces"},
	{"[mount]\npeers = [::]:7000\n", "2: peers: bad address \"[::]:7000\""},
	{"[mount]\npeers = 10.0.0.7:0\n", "2: peers: bad address \"10.0.0.7:0\""},
	{"[mount]\nidle = 999ms\n", "2: idle: bad value \"999ms\", " DURATION("1s", "30d")},
	{"[mount]\nidle = 31d\n", "2: idle: bad value \"31d\""},
	{"[mount]\nidle = 60\n", "2: idle: bad value \"60\""},
	{"[mount]\nidle = 60 s\n", "2: idle: bad value \"60 s\""},
	{"[mount]\nidle = 60S\n", "2: idle: bad value"},
	{"[mount]\nidle = 60sec\n", "2: idle: bad value"},
	{"[mount]\nidle = 1.5s\n", "2: idle: bad value"},
	{"[mount]\nidle = +5s\n", "2: idle: bad value"},
	{"[mount]\nidle = -5s\n", "2: idle: bad value"},
	{"[mount]\nidle = s\n", "2: idle: bad value"},
	{"[mount]\nidle = forever\n", "2: idle: bad value \"forever\""},
	{"[mount]\nidle = 9223372036854775807d\n", "2: idle: bad value"},
	{"[mount]\nidle = 18446744073709551617s\n", "2: idle: bad value"},
	{"[mount]\nallow_other = true\n", "2: allow_other: bad value \"true\", expected yes or no"},
	{"[mount]\nallow_other = Yes\n", "2: allow_other: bad value"},
	{"[mount]\nlog_level = Info\n",
	 "2: log_level: bad value \"Info\", expected error, warning, info or debug"},
	{"[mount]\nuser_waiters = 0\n",
	 "2: user_waiters: bad value \"0\", " NUMBER("1", "1000000")},
	{"[mount]\nuser_files = none\n", "2: user_files: bad value \"none\""},
	{"[mount]\nuser_names = 1000001\n", "2: user_names: bad value \"1000001\""},
	{"[mount]\nlog_level = 3\n", "2: log_level: bad value"},
	{"[mount]\ndirectories = a /b\n",
	 "2: directories: bad directory \"/b\", expected a path like"},
	{"[mount]\ndirectories = a/\n", "2: directories: bad directory \"a/\""},
	{"[mount]\ndirectories = a//b\n", "2: directories: bad directory \"a//b\""},
	{"[mount]\ndirectories = .\n", "2: directories: bad directory \".\""},
	{"[mount]\ndirectories = a/../b\n", "2: directories: bad directory \"a/../b\""},
	{"[mount]\ndirectories = .dlockfs/x\n", "2: directories: bad directory \".dlockfs/x\""},
	{"[mount]\ndirectories = a, b\n",
	 "2: directories: a comma in \"a,\", expected paths divided by blanks alone"},
	{"[mount]\ndirectories = a,b\n", "2: directories: a comma in \"a,b\""},
	{"[mount]\ndirectories = a b # those of cron\n",
	 "2: \"# those of cron\" is no comment here, expected one behind \";\", or \"#\" in a "
	 "line of its own"},
	{"[mount]\nidle = 60s\t# short\n", "2: \"# short\" is no comment here"},
	{"[store]\nsasl_realm = # none\n", "2: \"# none\" is no comment here"},
	{"[locks \"a#b\"] # cron\n", "1: \"# cron\" is no comment here"},
	{"[store]\nurl = etcd:\n", "2: url: bad store \"etcd:\", expected local:, or"},
	{"[store]\nurl = zookeeper://a:x\n", "2: url: bad port \"x\" in store"},
	{"[store]\nsession_timeout = 11m\n",
	 "2: session_timeout: bad value \"11m\", " DURATION("1s", "10m")},
	{"[locks]\nwait_limit = 0s\n", "2: wait_limit: bad value \"0s\", expected a duration of at "
				       "least 1s, a number with ms, s, m, h or d, or forever"},
	{"[locks]\ntry_limit = 99ms\n",
	 "2: try_limit: bad value \"99ms\", " DURATION("100ms", "1h")},
	{"[locks]\ntry_grace = 11s\n",
	 "2: try_grace: bad value \"11s\", " DURATION("0ms", "10s") ", or auto"},
	{"[locks]\ntry_grace = -1ms\n", "2: try_grace: bad value \"-1ms\", "},
	{"[locks \"a\"]\nlinger = 11s\n", "2: linger: bad value \"11s\", " DURATION("0ms", "10s")},
	{"[locks]\nprocess_ranges = 0\n",
	 "2: process_ranges: bad value \"0\", " NUMBER("1", "8192")},
	{"[locks \"a\"]\nfile_ranges = 65537\n",
	 "2: file_ranges: bad value \"65537\", " NUMBER("1", "65536")},
	{"[locks \"a\"]\ntext_limit = 1048577\n",
	 "2: text_limit: bad value \"1048577\", " NUMBER("0", "1048576") ", or auto"},
	{"[locks]\ntext_limit = 4k\n", "2: text_limit: bad value \"4k\""},
	{"[locks]\nfile_ranges = 100s\n", "2: file_ranges: bad value \"100s\""},
	{"[locks]\nfile_ranges = 0x10\n", "2: file_ranges: bad value \"0x10\""},
	{"[locks]\nfile_ranges = +1\n", "2: file_ranges: bad value \"+1\""},
	{"[locks]\nfile_ranges = -1\n", "2: file_ranges: bad value \"-1\""},
	{"[locks]\nfile_ranges = 1.5\n", "2: file_ranges: bad value \"1.5\""},
	{"[locks]\nfile_ranges = 1 000\n", "2: file_ranges: bad value \"1 000\""},
	{"[locks]\nfile_ranges = forever\n", "2: file_ranges: bad value \"forever\""},
	{"[locks]\nhandoff = -1\n", "2: handoff: bad value \"-1\""},
	{"[locks]\nhandoff = 1000001\n",
	 "2: handoff: bad value \"1000001\", expected a number from 0 to 1000000"},
	{"[locks]\nmin_hold = 25h\n", "2: min_hold: bad value \"25h\", " DURATION("0ms", "1d")},
	{"[locks]\nslots = 0\n", "2: slots: bad value \"0\", expected a number from 1 to 4096"},
	{"[locks]\nslots = 4097\n", "2: slots: bad value \"4097\""},
	{"[locks]\nlock_delay = 61m\n", "2: lock_delay: bad value \"61m\", " DURATION("0ms", "1h")},
	{"[locks]\nkeep = 25h\n", "2: keep: bad value \"25h\", " DURATION("0ms", "1d")},
	{"[locks]\nfile_ranges =\n", "2: file_ranges: bad value \"\""},
	{"[locks]\nfile_ranges = 18446744073709551617\n", "2: file_ranges: bad value"},
	{"[locks]\non_lost = SIGSTOP\n", "2: on_lost: bad value \"SIGSTOP\", " SIGNAL},
	{"[locks \"a\"]\non_lost = TERM\n", "2: on_lost: bad value \"TERM\""},
	{"[locks]\non_lost = sigterm\n", "2: on_lost: bad value \"sigterm\""},
	{"[locks]\non_lost = SIGTERMS\n", "2: on_lost: bad value \"SIGTERMS\""},
	{"[locks]\non_lost = SIGTERM SIGKILL\n", "2: on_lost: bad value"},
	{"[locks]\non_lost = 15\n", "2: on_lost: bad value \"15\""},
	{"[locks]\non_lost = EIO\n", "2: on_lost: bad value \"EIO\""},
	{"[locks]\non_lost =\n", "2: on_lost: bad value \"\""},
	{"[locks]\nrecipe = curator\n",
	 "2: recipe: bad value \"curator\", expected curator-rw, curator-mutex, kazoo, "
	 "curator-any, plain or redisson"},
	{"[locks]\nslots = 2\nhandoff = 3\n",
	 "3: handoff with slots = 2: those claims are not handed on, expected one of the two"},
	{"[locks \"a\"]\nkeep = 1s\nslots = 2\n[locks \"b\"]\n", "2: keep with slots = 2"},
	{"[locks]\nexclusive_open = no\n",
	 "2: exclusive_open: bad value \"no\", expected wait, refuse or open"},
	{"[locks \"a\"]\nstyle = files\n", "2: style: bad value \"files\", expected lock or file"},
	{"[locks]\nstyle =\n", "2: style: bad value \"\""},
	{"[locks]\nfile_owner = user\n",
	 "2: file_owner: bad value \"user\", expected host or process"},
	{"[locks]\nsteal = maybe\n", "2: steal: bad value \"maybe\", expected yes or no"},
	{"[locks]\nowner = no-such-user\n",
	 "2: owner: no user \"no-such-user\" on this host, " ACCOUNT("user")},
	{"[locks \"a\"]\n\ngroup = no-such-group\n",
	 "3: group: no group \"no-such-group\" on this host, " ACCOUNT("group")},
	{"[locks]\nowner =\n", "2: owner: bad value \"\", " ACCOUNT("user")},
	{"[locks]\nowner = 4294967295\n", "2: owner: bad value \"4294967295\", "},
	{"[locks]\ngroup = 99999999999999999999\n", "2: group: bad value \"99999"},
	{"[locks]\nowner = -1\n", "2: owner: no user \"-1\" on this host, "},
	{"[locks]\nowner = 0x1\n", "2: owner: no user \"0x1\" on this host, "},
	{"[locks]\nowner = Creator\n", "2: owner: no user \"Creator\" on this host, "},
	{"[locks \"a\"]\nmode = 1777\n",
	 "2: mode: bad value \"1777\", expected an octal mode from 0 to 0777, or creator"},
	{"[locks]\nmode = rw\n", "2: mode: bad value \"rw\""},
	{"[store]\non_lost = eio\n",
	 "2: key \"on_lost\" in section [store], expected it in [locks]"},
	{"[locks]\nranges = 1\n",
	 "2: unknown key \"ranges\" in section [locks], expected one of wait_limit, try_limit, "
	 "try_grace, linger, handoff, keep, slots, lock_delay, min_hold, max_hold, "
	 "process_ranges, file_ranges, "
	 "text_limit, "
	 "on_lost, on_revoke, "
	 "recipe, exclusive_open, style, file_owner, steal, owner, "
	 "group, mode"},
	{"[mount]\nfile_ranges = 1\n",
	 "2: key \"file_ranges\" in section [mount], expected it in [locks]"},
	/* lines */
	{"[mount]\nmode = 0700\nidle = " X200 "\n", "3: a line of 207 bytes, expected at most 197"},
	{"[mount]\n" X200 " = 5\n", "2: a line of 204 bytes, expected at most 197"},
	{"[mount]\ndirectories = a" H200 "\n", "2: a line of 215 bytes, expected at most 197"},
	{"[mount]\ndirectories = " X200 " #b\n", "2: \"#b\" is no comment here"},
	{"[mount]\ndirectories = a\n  b #c\n", "3: \"#c\" is no comment here"},
	{"[mount]\ndirectories = a\n  idel = 5s\n", "3: unknown key \"idel\""},
	{"[mount]\ndirectories = a\n  mode: 5s\n", "3: mode: "},
	{"[mount]\ndirectories = /\n  b\nidle = x\n", "2: directories: bad directory \"/\""},
	{"[mount]\ndirectories = a\nb\n", "3: a line without '='"},
	{"[mount]\n  b\n", "2: a line without '='"},
	{"[mount]\ndirectories = a\n[locks]\n  b\n", "4: a line without '='"},
	{"[store]\nurl = zookeeper://a,\n[locks]\n", "2: url: "},
	{"[store]\nurl = zookeeper://a,\n b,\n session_timeout=5s\n", "2: url: "},
	{"[locks \"cron/**\"]\n",
	 "1: bad pattern \"cron/**\": ** is one level, as * is, expected * and a section for each "
	 "level"},
	{"[locks \"**/x\"]\n", "1: bad pattern \"**/x\""},
};

static void test_bad_files(void **state)
{
	for (size_t i = 0; i < COUNT(bad_files); i++) {
		int result;

		teardown(state);
		setup(state);
		result = read_bytes(bad_files[i].text, strlen(bad_files[i].text));
		if (result != -EINVAL ||
		    strncmp(why, bad_files[i].why, strlen(bad_files[i].why)) != 0)
			print_message("read:     %s\nexpected: %s\n", why, bad_files[i].why);
		assert_int_equal(result, -EINVAL);
		assert_memory_equal(why, bad_files[i].why, strlen(bad_files[i].why));
		assert_non_null(strstr(why, ", expected "));
	}
}

/* Names of users and groups; "mode" is another key in [mount], and the one that -o means. */
static void test_lock_access(void **state)
{
	struct lock_policy policy;

	(void)state;
	read_good("[mount]\nmode = 0755\n[locks]\nowner = root\nmode = 0640\n"
		  "[locks \"a\"]\nowner = 1234\ngroup = daemon\nmode = 0\n"
		  "[locks \"b\"]\nowner = creator\ngroup = creator\nmode = creator\n"
		  "[locks \"c\"]\ngroup = 4294967294\n");
	assert_true(config_has_access(&config));
	assert_int_equal(config.mode, 0755);
	policy = config_policy(&config, "x");
	assert_int_equal(policy.owner, 0);
	assert_int_equal(policy.group, CONFIG_CREATOR);
	assert_int_equal(policy.mode, 0640);
	policy = config_policy(&config, "a");
	assert_int_equal(policy.owner, 1234);
	assert_int_equal(policy.group, 1);
	assert_int_equal(policy.mode, 0);
	policy = config_policy(&config, "b");
	assert_int_equal(policy.owner, CONFIG_CREATOR);
	assert_int_equal(policy.group, CONFIG_CREATOR);
	assert_int_equal(policy.mode, CONFIG_CREATOR);
	assert_int_equal(config_policy(&config, "c").group, 4294967294);

	assert_int_equal(config_set(&config, "owner", "creator", why, sizeof(why)), 0);
	assert_int_equal(config_set(&config, "mode", "0700", why, sizeof(why)), 0);
	assert_int_equal(config_policy(&config, "a").owner, CONFIG_CREATOR);
	assert_int_equal(config_policy(&config, "a").mode, 0);
	assert_int_equal(config.mode, 0700);
	assert_int_equal(config_set(&config, "owner", "nobody-", why, sizeof(why)), -EINVAL);
	assert_string_equal(why, "no user \"nobody-\" on this host, " ACCOUNT("user"));
}

/* Also where only a pattern, or only an option, sets it; and not where all is as by default. */
static void test_has_access(void **state)
{
	(void)state;
	read_good("[locks]\nowner = creator\nlinger = 1s\n[locks \"a\"]\nmode = creator\n");
	assert_false(config_has_access(&config));
	read_good("[locks \"b\"]\nmode = 0600\n");
	assert_true(config_has_access(&config));
	teardown(state);
	setup(state);
	assert_int_equal(config_set(&config, "group", "0", why, sizeof(why)), 0);
	assert_true(config_has_access(&config));
}

static void test_stores(void **state)
{
	static const struct {
		const char *path;
		size_t store;
	} paths[] = {
		{"a", 0},	    {"cro", 0},
		{"cronx", 0},	    {"cron b", 0},
		{"x/cron", 0},	    {"cron", 1},
		{"cron/", 1},	    {"cron/a", 1},
		{"cron/daily", 2},  {"cron/daily/b", 2},
		{"cron/dailyb", 1}, {"x/y", 3},
		{"x/y/z", 3},	    {"x", 0},
		{"/", 0},	    {"", 0},
	};
	static const char *const ways[] = {"", "cron", "cron/daily", "x", "x/y"};
	static const char *const no_ways[] = {"c", "cro", "cronx", "cron/a", "y", "x/y/z", "x/"};

	(void)state;
	read_good("[store \"cron\"]\nurl = zookeeper://c/jobs\nsession_timeout = 5s\n"
		  "[store]\nurl = zookeeper://a\nsession_timeout = 20s\n"
		  "[store \"cron/daily\"]\nurl = zookeeper://d:1/\n"
		  "[store \"x/y\"] ; of this host\nurl = local:\n");
	assert_int_equal(config.store_count, 4);
	assert_string_equal(config.stores[0].url.servers, "a:2181");
	assert_string_equal(config.stores[1].prefix, "cron");
	assert_string_equal(config.stores[1].url.servers, "c:2181");
	assert_string_equal(config.stores[1].url.root, "/jobs");
	assert_string_equal(config.stores[2].url.servers, "d:1");
	assert_string_equal(config.stores[3].url.scheme, STORE_SCHEME_LOCAL);
	for (size_t i = 0; i < COUNT(paths); i++)
		assert_int_equal(config_store_of(&config, paths[i].path), paths[i].store);
	for (size_t i = 0; i < COUNT(ways); i++)
		assert_true(config_leads_to_store(&config, ways[i]));
	for (size_t i = 0; i < COUNT(no_ways); i++)
		assert_false(config_leads_to_store(&config, no_ways[i]));

	/* Options are those of [store]; a store that says nothing of the timeout follows it. */
	assert_int_equal(config_session_timeout_ms(&config, 0), 20000);
	assert_int_equal(config_session_timeout_ms(&config, 1), 5000);
	assert_int_equal(config_session_timeout_ms(&config, 2), 20000);
	assert_int_equal(config_set(&config, "url", "zookeeper://b", why, sizeof(why)), 0);
	assert_int_equal(config_set(&config, "session_timeout", "30s", why, sizeof(why)), 0);
	assert_string_equal(config.stores[0].url.servers, "b:2181");
	assert_string_equal(config.stores[1].url.servers, "c:2181");
	assert_int_equal(config_session_timeout_ms(&config, 0), 30000);
	assert_int_equal(config_session_timeout_ms(&config, 1), 5000);
	assert_int_equal(config_session_timeout_ms(&config, 2), 30000);
}

/* Without a prefix, whatever the path is. */
static void test_one_store(void **state)
{
	(void)state;
	assert_int_equal(config.store_count, 1);
	assert_int_equal(config_store_of(&config, "a/b"), 0);
	assert_false(config_leads_to_store(&config, ""));
}

static void test_longest_line(void **state)
{
	char text[512] = "[mount]\ndirectories = ";

	memset(text + strlen(text), 'x', 197 - strlen("directories = "));
	read_good(text);
	assert_int_equal(strlen(config.directories[0]), 197 - strlen("directories = "));
	for (size_t longest = 255;
	     strlen(text) < sizeof("[mount]\ndirectories = ") - 1 + longest;) {
		strcat(text, "x");
		teardown(state);
		setup(state);
		read_good(text);
		assert_string_equal(config.directories[0], strchr(text, 'x'));
	}
}

#define KUBERNETES(name) name ".zookeeper-headless.coordination.svc.cluster.local:2181"

/* Five servers with such names do not fit into a line of inih's. */
static const char *const long_urls[] = {
	"url = zookeeper://" KUBERNETES("zk-0") "," KUBERNETES("zk-1") "," KUBERNETES(
		"zk-2") "," KUBERNETES("zk-3") "," KUBERNETES("zk-4") "/dlockfs ; five\n",
	"url = zookeeper://" KUBERNETES("zk-0") ",\n\t" KUBERNETES(
		"zk-1") ",\n  # one\n  " KUBERNETES("zk-2") ", ; two\n\n  " KUBERNETES("zk-3") ",\n"
											       " "
											       " " KUBERNETES(
												       "zk-4") "/dlockfs\n",
	"url =\n  zookeeper://" KUBERNETES("zk-0") "," KUBERNETES("zk-1") "," KUBERNETES(
		"zk-2") ",\n  " KUBERNETES("zk-3") "," KUBERNETES("zk-4") "/dlockfs\n",
	"  url = zookeeper://" KUBERNETES("zk-0") "," KUBERNETES("zk-1") ",\n  " KUBERNETES(
		"zk-2") "," KUBERNETES("zk-3") "," KUBERNETES("zk-4") "/dlockfs\n  new_root = no\n",
};

static void test_long_urls(void **state)
{
	struct store_url whole;
	char text[1024];

	assert_int_equal(
		store_url_parse(
			"zookeeper://" KUBERNETES("zk-0") "," KUBERNETES("zk-1") "," KUBERNETES(
				"zk-2") "," KUBERNETES("zk-3") "," KUBERNETES("zk-4") "/dlockfs",
			&whole, why, sizeof(why)),
		0);
	for (size_t i = 0; i < COUNT(long_urls); i++) {
		teardown(state);
		setup(state);
		snprintf(text, sizeof(text), "[store]\n%ssession_timeout = 7s\n[locks]\n",
			 long_urls[i]);
		read_good(text);
		assert_true(store_url_equal(&config.stores[0].url, &whole));
		assert_int_equal(config.stores[0].session_timeout_ms, 7000);
		assert_true(config_has_url(&config));
	}
	store_url_finish(&whole);
}

/* At each place where a line may be cut, what is read is the same. */
static void test_long_lists(void **state)
{
	for (size_t shift = 0; shift < 200; shift++) {
		char text[1024] = "[mount]\ndirectories = ", name[201] = "";

		teardown(state);
		setup(state);
		memset(name, 'x', shift);
		snprintf(text + strlen(text), sizeof(text) - strlen(text),
			 "y%s  a#b \t a;b " X200 "/z\n c\n  d ; e\n\tmode=0700", name);
		read_good(text);
		assert_string_equal(config.directories[0] + 1, name);
		assert_string_equal(config.directories[1], "a#b");
		assert_string_equal(config.directories[2], "a;b");
		assert_string_equal(config.directories[3], X200 "/z");
		assert_string_equal(config.directories[4], "c");
		assert_string_equal(config.directories[5], "d");
		assert_null(config.directories[6]);
		assert_int_equal(config.mode, 0700);
	}
}

static void test_longest_value(void **state)
{
	char text[8192] = "[mount]\ndirectories =";

	(void)state;
	for (size_t i = 0; i < 2048; i++)
		strcat(text, " d");
	read_good(text);
	strcat(text, "\n e\n");
	assert_int_equal(read_bytes(text, strlen(text)), -EINVAL);
	assert_non_null(strstr(why, "3: a value of more than 4096 bytes, expected less"));
}

/* Of a line that goes on, and of a file or an option. */
static void test_has_url(void **state)
{
	(void)state;
	read_good("[mount]\nidle = 5s\n[store]\nsession_timeout = 5s\n"
		  "[store \"a\"]\nurl = local:\n");
	assert_false(config_has_url(&config));
	assert_int_equal(config_set(&config, "url", "local:", why, sizeof(why)), 0);
	assert_true(config_has_url(&config));
}

static void test_nul_bytes(void **state)
{
	static const char in_value[] = "[mount]\nmode = 07\0"
				       "00\n";
	static const char in_comment[] = "# \0\n";
	static const char at_end[] = "[mount]\n\0";

	(void)state;
	assert_int_equal(read_bytes(in_value, sizeof(in_value) - 1), -EINVAL);
	assert_string_equal(why, "2: a NUL byte, expected text");
	assert_int_equal(read_bytes(in_comment, sizeof(in_comment) - 1), -EINVAL);
	assert_string_equal(why, "1: a NUL byte, expected text");
	assert_int_equal(read_bytes(at_end, sizeof(at_end) - 1), -EINVAL);
	assert_string_equal(why, "2: a NUL byte, expected text");
}

static void test_unreadable_files(void **state)
{
	(void)state;
	assert_int_equal(config_read(&config, "/nonexistent/x", why, sizeof(why)), -ENOENT);
	assert_string_equal(why, "/nonexistent/x: No such file or directory");
	assert_int_equal(config_read(&config, "/", why, sizeof(why)), -EISDIR);
	assert_string_equal(why, "/: cannot read it: Is a directory");
}

/* The text of a file is kept, and can be read again without the file. */
static void test_text(void **state)
{
	static const char text[] = "[mount]\nidle = 7s\n[locks \"a/*\"]\nlinger = 9ms";
	struct config copy;

	(void)state;
	assert_null(config.text);
	read_good(text);
	assert_int_equal(config.text_bytes, strlen(text));
	assert_memory_equal(config.text, text, strlen(text));
	assert_int_equal(config_init(&copy), 0);
	assert_int_equal(
		config_read_text(&copy, "copy", config.text, config.text_bytes, why, sizeof(why)),
		0);
	assert_int_equal(copy.idle_ms, 7000);
	assert_int_equal(config_policy(&copy, "a/b").linger_ms, 9);
	assert_memory_equal(copy.text, text, strlen(text));
	/* It goes with the rest at a reload. */
	config_reload(&config, &copy, NULL);
	assert_memory_equal(config.text, text, strlen(text));
	assert_int_equal(config_read_text(&config, "other", "[lock]", 6, why, sizeof(why)),
			 -EINVAL);
	assert_memory_equal(why, "other:1: ", 9);
	read_good("");
	assert_int_equal(config.text_bytes, 0);
}

static void expect_text_limit(const char *path, int64_t expected)
{
	const struct lock_policy policy = config_policy(&config, path);
	assert_int_equal(config_text_limit(&policy), expected);
}

/* By itself it depends on the style. */
static void test_text_limit(void **state)
{
	(void)state;
	read_good("[locks \"files\"]\nstyle = file\n"
		  "[locks \"files/set/*\"]\ntext_limit = 7\n"
		  "[locks \"files/set/auto\"]\ntext_limit = auto\n");
	expect_text_limit("a", 4096);
	expect_text_limit("files/a", 65536);
	expect_text_limit("files/a/b", 65536);
	expect_text_limit("files/set/a", 7);
	expect_text_limit("files/set/auto", 65536);
}

static void test_patterns(void **state)
{
	struct lock_policy policy;

	(void)state;
	read_good("[locks \"backup/*\"]\nwait_limit = 1m\nlinger = 1s\n"
		  "[locks \"*/daily\"]\nwait_limit = 2m\n"
		  "[locks]\nwait_limit = 9m\ntry_limit = 9s\ntry_grace = 0ms\n"
		  "[locks \"x[0-9]\"]\nlinger = 2s\ntry_grace = auto\n"
		  "[locks \"backup/never\"]\non_lost = SIGKILL\n"
		  "[locks \"a ;b\"]\nlinger = 3s\n"
		  "[locks \"deep/*/*\"]\nlinger = 4s\nfile_ranges = 7\n");

	policy = config_policy(&config, "backup/weekly");
	assert_int_equal(policy.wait_limit_ms, 60000);
	assert_int_equal(policy.try_limit_ms, 9000);
	assert_int_equal(policy.linger_ms, 1000);
	policy = config_policy(&config, "backup/daily");
	assert_int_equal(policy.wait_limit_ms, 120000);
	assert_int_equal(policy.linger_ms, 1000);
	policy = config_policy(&config, "backup/a/daily");
	assert_int_equal(policy.wait_limit_ms, 540000);
	assert_int_equal(policy.linger_ms, 50);
	assert_int_equal(config_policy(&config, "backup/.hidden").linger_ms, 1000);
	assert_int_equal(config_policy(&config, "backup/never").on_lost, SIGKILL);
	assert_int_equal(config_policy(&config, "backup/never").linger_ms, 1000);
	assert_int_equal(config_policy(&config, "backup/daily").on_lost, 0);
	assert_int_equal(config_policy(&config, "x5").linger_ms, 2000);
	assert_int_equal(config_policy(&config, "x5").try_grace_ms, CONFIG_AUTO);
	assert_int_equal(config_policy(&config, "xx").try_grace_ms, 0);
	assert_int_equal(config_policy(&config, "xx").linger_ms, 50);
	assert_int_equal(config_policy(&config, "a ;b").linger_ms, 3000);
	assert_int_equal(config_policy(&config, "deep/a/b").linger_ms, 4000);
	assert_int_equal(config_policy(&config, "deep/a/b").file_ranges, 7);
	assert_int_equal(config_policy(&config, "deep/a/b").process_ranges, 4096);
	assert_int_equal(config_policy(&config, "deep/a").file_ranges, 16384);
	assert_int_equal(config_policy(&config, "deep/a").linger_ms, 50);
}

/* One to `most` pieces, some perhaps more than once; a text that does not begin with a slash. */
static void write_random(char *text, const char *const *pieces, size_t count, size_t most)
{
	size_t left = (size_t)random() % most;

	strcpy(text, pieces[0]);
	while (left-- > 0)
		strcat(text, pieces[(size_t)random() % count]);
}

/* The last pattern that matches wins, and those that are not looked at do not match. */
static void test_random_patterns(void **state)
{
	static const char *const of_pattern[] = {"a",	 "*",  "?", "/",     "/a",  "/*", "/?",
						 "[!a]", "\\", "[", "[a/b]", "\\/", "]"};
	static const char *const of_path[] = {"a", "b", "/", "/a", "/b", "/", "["};
	enum { PATTERNS = 6 };
	size_t matching = 0, others = 0;

	srandom(1);
	for (int round = 0; round < 200; round++) {
		char patterns[PATTERNS][64], path[64], text[512];

		teardown(state);
		setup(state);
		for (size_t i = 0; i < PATTERNS; i++) {
			do {
				write_random(patterns[i], of_pattern + i % 3,
					     COUNT(of_pattern) - i % 3, 7);
			} while (strstr(patterns[i], "**") != NULL);
			snprintf(text, sizeof(text), "[locks \"%s\"]\nlinger = %zus\n", patterns[i],
				 i + 1);
			read_good(text);
		}
		for (int i = 0; i < 500; i++) {
			int64_t expected_ms = 50;

			write_random(path, of_path, COUNT(of_path), 9);
			for (size_t j = 0; j < PATTERNS; j++) {
				if (fnmatch(patterns[j], path, FNM_PATHNAME) == 0)
					expected_ms = 1000 * (int64_t)(j + 1);
			}
			assert_int_equal(config_policy(&config, path).linger_ms, expected_ms);
			matching += expected_ms != 50;
			others += expected_ms == 50;
		}
	}
	assert_true(matching > 1000 && others > 1000);
}

static void test_slashes_max(void **state)
{
	(void)state;
	assert_int_equal(config_slashes_max(&config), 0);
	read_good("[locks \"a\"]\nlinger = 1s\n[locks]\nlinger = 2s\n");
	assert_int_equal(config_slashes_max(&config), 0);
	read_good("[locks \"a/*/b\"]\nlinger = 1s\n[locks \"*/*\"]\nlinger = 1s\n");
	assert_int_equal(config_slashes_max(&config), 2);
}

/* A section with style = file is of directories, and covers all that is in them. */
static void test_style(void **state)
{
	static const struct {
		const char *path;
		int style;
		int64_t linger_ms;
	} cases[] = {
		{"", STYLE_LOCK, 50},
		{"files", STYLE_FILE, 1000},
		{"files/a", STYLE_FILE, 1000},
		{"files/a/b", STYLE_FILE, 1000},
		{"files/a/b/c/d", STYLE_FILE, 1000},
		{"files2", STYLE_LOCK, 50},
		{"file", STYLE_LOCK, 50},
		{"x/files", STYLE_LOCK, 50},
		{"x/files/a", STYLE_LOCK, 50},
		{"mail/ann", STYLE_FILE, 50},
		{"mail/ann/lock", STYLE_FILE, 50},
		{"mail", STYLE_LOCK, 50},
		{"plain/a", STYLE_LOCK, 2000},
		{"plain/a/b", STYLE_LOCK, 50},
	};

	(void)state;
	read_good("[locks \"files\"]\nstyle = file\nlinger = 1s\nsteal = no\n"
		  "file_owner = process\n"
		  "[locks \"mail/*\"]\nstyle = file\n"
		  "[locks \"plain/*\"]\nlinger = 2s\nstyle = lock\n");
	for (size_t i = 0; i < COUNT(cases); i++) {
		struct lock_policy policy = config_policy(&config, cases[i].path);

		assert_int_equal(policy.style, cases[i].style);
		assert_int_equal(policy.linger_ms, cases[i].linger_ms);
	}
	assert_int_equal(config_policy(&config, "files/a").steal, STEAL_NO);
	assert_int_equal(config_policy(&config, "files/a").file_owner, FILE_OWNER_PROCESS);
	assert_int_equal(config_policy(&config, "mail/ann/lock").steal, STEAL_YES);
	assert_int_equal(config_slashes_max(&config), 1);

	/* Of the whole mount; and a directory that is not of it. */
	teardown(state);
	setup(state);
	read_good("[locks]\nstyle = file\n[locks \"plain/*\"]\nstyle = lock\n");
	assert_int_equal(config_policy(&config, "").style, STYLE_FILE);
	assert_int_equal(config_policy(&config, "a/b").style, STYLE_FILE);
	assert_int_equal(config_policy(&config, "plain/b").style, STYLE_LOCK);

	teardown(state);
	setup(state);
	read_good("[locks \"*\"]\nstyle = file\n");
	assert_int_equal(config_policy(&config, "").style, STYLE_FILE);
	assert_int_equal(config_policy(&config, "a").style, STYLE_FILE);
	assert_int_equal(config_policy(&config, "a/b/c").style, STYLE_FILE);
}

static char fixed_keys[512];

static void on_fixed_key(const char *section, const char *key)
{
	size_t used = strlen(fixed_keys);

	snprintf(fixed_keys + used, sizeof(fixed_keys) - used, "[%s] %s\n", section, key);
}

/* Reads `text` into a fresh configuration, as a reload does, and takes it over. */
static void reload(const char *text)
{
	struct config old = config;

	assert_int_equal(config_init(&config), 0);
	read_good(text);
	fixed_keys[0] = '\0';
	config_reload(&old, &config, on_fixed_key);
	config = old;
}

static void test_reload(void **state)
{
	(void)state;
	read_good("[mount]\nmode = 0700\ndirectories = a\n[locks \"x\"]\nlinger = 1s\n"
		  "[store]\nurl = zookeeper://zk/x\n");
	reload("[mount]\nmode = 0700\nuser_files = 9\npeers = [::1]:7\nidle = 5s\ndirectories = b "
	       "c\nlog_level = "
	       "error\n"
	       "[locks \"y\"]\nlinger = 2s\n[store]\nurl = zookeeper://zk:2181/x\n");
	assert_string_equal(fixed_keys, "");
	assert_string_equal(config.peers, "[::1]:7");
	assert_int_equal(config.idle_ms, 5000);
	assert_int_equal(config.user_files, 9);
	assert_string_equal(config.directories[1], "c");
	assert_int_equal(config.log_level, LOG_LEVEL_ERROR);
	assert_int_equal(config_policy(&config, "x").linger_ms, 50);
	assert_int_equal(config_policy(&config, "y").linger_ms, 2000);

	/* What is fixed stays, and is named; what was set is at its default if it is set no more.
	 */
	reload("[mount]\nallow_other = no\n[store]\nurl = zookeeper://zk/y\n"
	       "session_timeout = 5s\n");
	assert_string_equal(fixed_keys, "[mount] mode\n[mount] allow_other\n[store] url\n"
					"[store] session_timeout\n");
	assert_int_equal(config.mode, 0700);
	assert_true(config.allow_other);
	assert_string_equal(config.stores[0].url.root, "/x");
	assert_int_equal(config.stores[0].session_timeout_ms, 15000);
	assert_int_equal(config.idle_ms, 60000);
	assert_true(!config.directories || !config.directories[0]);
	assert_null(config.peers);
	assert_int_equal(config.log_level, LOG_LEVEL_INFO);
	assert_int_equal(config_policy(&config, "y").linger_ms, 50);
	reload("");
	assert_string_equal(fixed_keys, "[mount] mode\n[store] url\n");

	/* So are the stores of prefixes, new and old. */
	reload("[mount]\nmode = 0700\n[store]\nurl = zookeeper://zk/x\n"
	       "[store \"a/b\"]\nurl = local:\n");
	assert_string_equal(fixed_keys, "[store \"a/b\"] url\n");
	assert_int_equal(config.store_count, 1);
}

static void test_reload_of_stores(void **state)
{
	(void)state;
	read_good("[store \"a\"]\nurl = local:\n[store \"b\"]\nurl = local:\n");
	reload("[store \"b\"]\nurl = local:\nsession_timeout = 1m\n");
	assert_string_equal(fixed_keys, "[store \"a\"] url\n[store \"b\"] session_timeout\n");
}

static char secret_file[] = "/tmp/dlockfs-test-config.XXXXXX";

/* What the file of secrets has. */
static void put_secret(const char *text)
{
	FILE *out = fopen(secret_file, "w");

	assert_non_null(out);
	assert_true(fputs(text, out) >= 0);
	assert_int_equal(fclose(out), 0);
}

static void read_access(const char *begin, const char *rest)
{
	char text[512];

	snprintf(text, sizeof(text), "%sdigest_file = %s\n%s", begin, secret_file, rest);
	read_good(text);
}

static void test_access(void **state)
{
	int fd = mkstemp(secret_file);
	char text[512];

	(void)state;
	assert_true(fd >= 0);
	close(fd);
	put_secret("hosts:a\n");
	assert_int_equal(store_access_acl(&config.stores[0].access), STORE_ACL_OPEN);

	/* Of a store by itself: the servers of another one are told nothing. */
	read_access("[store]\n", "[store \"a\"]\nurl = local:\n[store \"b\"]\nurl = local:\n"
				 "acl = open\n");
	assert_string_equal(secret_next(config.stores[0].access.digest.secret, NULL), "hosts:a");
	assert_int_equal(store_access_acl(&config.stores[0].access), STORE_ACL_CREATOR);
	assert_false(store_access_has_identity(&config.stores[1].access));
	assert_int_equal(store_access_acl(&config.stores[1].access), STORE_ACL_OPEN);
	assert_int_equal(config_set(&config, "acl", "private", why, sizeof(why)), 0);
	assert_int_equal(store_access_acl(&config.stores[0].access), STORE_ACL_PRIVATE);

	/* Another secret in the same file is another value. */
	config_finish(&config);
	assert_int_equal(config_init(&config), 0);
	read_access("[store]\n", "");
	snprintf(text, sizeof(text), "[store]\ndigest_file = %s\n", secret_file);
	reload(text);
	assert_string_equal(fixed_keys, "");
	put_secret("hosts:b\n");
	reload(text);
	assert_string_equal(fixed_keys, "[store] digest_file\n");
	assert_string_equal(secret_next(config.stores[0].access.digest.secret, NULL), "hosts:a");
	reload("[store]\nacl = open\n");
	assert_string_equal(fixed_keys, "[store] digest_file\n[store] acl\n");

	/* Options can take away what others need. */
	assert_int_equal(config_set(&config, "acl", "creator", why, sizeof(why)), 0);
	assert_int_equal(config_check(&config, why, sizeof(why)), 0);
	assert_int_equal(config_set(&config, "digest_file", "", why, sizeof(why)), 0);
	assert_int_equal(config_check(&config, why, sizeof(why)), -EINVAL);
	assert_string_equal(why, "[store]: acl = creator, but nothing says who the creator is, "
				 "expected digest_file, tls_certificate or sasl_mechanism");
	unlink(secret_file);
}

static void test_options(void **state)
{
	static const struct {
		const char *key, *value;
		int result;
		const char *why;
	} bad[] = {
		{"speed", "1", -ENOENT, "no such key"},
		{"", "1", -ENOENT, "no such key"},
		{"ro", NULL, -ENOENT, "no such key"},
		{"idle", NULL, -EINVAL, "no value, " DURATION("1s", "30d")},
		{"idle", "5", -EINVAL, "bad value \"5\", " DURATION("1s", "30d")},
		{"file_ranges", NULL, -EINVAL, "no value, " NUMBER("1", "65536")},
		{"file_ranges", "5s", -EINVAL, "bad value \"5s\", " NUMBER("1", "65536")},
		{"on_lost", NULL, -EINVAL, "no value, " SIGNAL},
		{"on_lost", "yes", -EINVAL, "bad value \"yes\", " SIGNAL},
		{"url", "x", -EINVAL,
		 "bad store \"x\", expected local:, or zookeeper://, etcd://, redis://, "
		 "rediss:// or redis+sentinel:// with "
		 "host[:port][,host[:port]...][/path]"},
		{"directories", "..", -EINVAL,
		 "bad directory \"..\", expected a path like \"backup/daily\", not "
		 "\"/\", \".\", \"..\" or .dlockfs"},
	};

	(void)state;
	read_good("[locks \"a\"]\nlinger = 1s\ntry_limit = 1s\n[mount]\nallow_other = no\n");
	assert_int_equal(config_set(&config, "linger", "2s", why, sizeof(why)), 0);
	assert_int_equal(config_policy(&config, "a").linger_ms, 2000);
	assert_int_equal(config_policy(&config, "a").try_limit_ms, 1000);
	assert_int_equal(config_policy(&config, "b").linger_ms, 2000);
	assert_int_equal(config_policy(&config, "b").try_limit_ms, 5000);
	assert_int_equal(config_set(&config, "file_ranges", "5", why, sizeof(why)), 0);
	assert_int_equal(config_policy(&config, "b").file_ranges, 5);
	assert_int_equal(config_set(&config, "allow_other", NULL, why, sizeof(why)), 0);
	assert_true(config.allow_other);
	assert_int_equal(config_set(&config, "url", "zookeeper://a/b", why, sizeof(why)), 0);
	assert_int_equal(config_set(&config, "url", "zookeeper://c/d", why, sizeof(why)), 0);
	assert_int_equal(config_set(&config, "directories", X200 "/" X200, why, sizeof(why)), 0);

	for (size_t i = 0; i < COUNT(bad); i++) {
		assert_int_equal(config_set(&config, bad[i].key, bad[i].value, why, sizeof(why)),
				 bad[i].result);
		assert_string_equal(why, bad[i].why);
	}
	assert_string_equal(config.stores[0].url.servers, "c:2181");
	assert_string_equal(config.directories[0], X200 "/" X200);
	assert_int_equal(config.idle_ms, 60000);
}

/* Random bytes, in lines that look like the real thing: nothing but 0 and -EINVAL comes of it. */
static void test_random_files(void **state)
{
	static const char *const pieces[] = {
		"[mount]",     "[locks]",
		"[locks \"",   "\"]",
		"[",	       "]",
		"\n",	       "\n",
		"\n",	       " ",
		"\t",	       "=",
		":",	       "mode",
		"idle",	       "directories",
		"url",	       "linger",
		"file_ranges", "60s",
		"forever",     "0700",
		"local:",      "zookeeper://",
		"a",	       "[::1]",
		",",	       "/",
		"..",	       ";",
		"#",	       "\"",
		"\r",	       "\xef\xbb\xbf",
		X50,	       "\xff",
		"\x01",	       "999999999999999999999",
	};

	srandom(1);
	for (int i = 0; i < 3000; i++) {
		char text[4096] = "";
		int count = (int)(random() % 30), result;

		while (count-- > 0)
			strcat(text, pieces[(size_t)random() % COUNT(pieces)]);
		teardown(state);
		setup(state);
		result = read_bytes(text, strlen(text));
		assert_true(result == 0 || result == -EINVAL);
	}
}

/* The example */

static FILE *open_example(void)
{
	const char *tree = getenv("DLOCKFS_SOURCE_DIR");
	char file[4096];
	FILE *stream;

	snprintf(file, sizeof(file), "%s/etc/dlockfs.ini", tree ? tree : ".");
	stream = fopen(file, "re");
	if (!stream)
		print_message("%s: not found; DLOCKFS_SOURCE_DIR says where etc/ is\n", file);
	assert_non_null(stream);
	return stream;
}

static bool is_commented_out(const char *line)
{
	return line[0] == '#' && (line[1] == '[' || (line[1] >= 'a' && line[1] <= 'z'));
}

static void read_example(bool uncomment)
{
	FILE *stream = open_example();
	char text[16384] = "", line[512];

	while (fgets(line, sizeof(line), stream))
		strcat(text, uncomment && is_commented_out(line) ? line + 1 : line);
	fclose(stream);
	read_good(text);
}

static void test_example_changes_nothing(void **state)
{
	(void)state;
	read_example(false);
	check_defaults();
}

static void test_example_uncommented(void **state)
{
	(void)state;
	read_example(true);
	check_defaults();
	assert_int_equal(config_policy(&config, "backup/x").wait_limit_ms, 600000);
	assert_int_equal(config_policy(&config, "backup/x").try_limit_ms, 30000);
	assert_int_equal(config_policy(&config, "backup/x").on_lost, SIGTERM);
	assert_int_equal(config.store_count, 2);
	assert_int_equal(config_store_of(&config, "backup/x"), 1);
	assert_string_equal(config.stores[1].url.scheme, STORE_SCHEME_ZOOKEEPER);
	assert_int_equal(config_session_timeout_ms(&config, 1), 30000);
}

/* Whether the example has the line under the header of the section. */
static bool example_has(const char *section, const char *wanted)
{
	FILE *stream = open_example();
	char header[64], line[512];
	bool inside = false, found = false;

	snprintf(header, sizeof(header), "[%s]", section);
	while (!found && fgets(line, sizeof(line), stream)) {
		line[strcspn(line, "\n")] = '\0';
		if (line[0] == '[' || strncmp(line, "#[", 2) == 0)
			inside = strcmp(line, header) == 0;
		else
			found = inside && strcmp(line, wanted) == 0;
	}
	fclose(stream);
	return found;
}

static void test_example_has_every_key(void **state)
{
	char *text = NULL, *line, *rest, *names[64], section[32] = "", wanted[256];
	size_t bytes, count = 0;
	FILE *stream = open_memstream(&text, &bytes);

	(void)state;
	config_describe(stream);
	fclose(stream);
	rest = text;
	while ((line = strsep(&rest, "\n")) && *line) {
		char key[32], fallback[32] = "", *values, *meaning;

		if (sscanf(line, "[%31[^]]]", section) == 1)
			continue;
		values = strstr(line + 2, "  ");
		meaning = strsep(&rest, "\n");
		assert_non_null(values);
		assert_non_null(meaning);
		*values = '\0';
		assert_true(values[strspn(values + 1, " ") + 1]);
		assert_int_equal(strspn(meaning, " "), 6);
		assert_true(meaning[6]);
		assert_true(sscanf(line, "  %31[a-z_] = %31s", key, fallback) >= 1);
		snprintf(wanted, sizeof(wanted), "#%s =%s%s", key, *fallback ? " " : "", fallback);
		print_message("[%s] %s\n", section, wanted);
		/* The service needs the url: it stands there without "#". */
		assert_true(example_has(section, wanted + (strcmp(key, "url") == 0)));
		/* An option has no section: its name must say which key it is, except that "mode"
		 * is that of [mount]. */
		for (size_t i = 0; i < count; i++)
			assert_true(strcmp(names[i], key) != 0 || strcmp(key, "mode") == 0);
		names[count] = strdup(key);
		assert_non_null(names[count++]);
	}
	assert_int_equal(count, 64);
	while (count > 0)
		free(names[--count]);
	free(text);
}

#define CONFIG_TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

/* How to contend is that of [store], wherever it stands, but for the keys that a store has itself.
 */
static void test_contention(void **state)
{
	static const char text[] = "[store \"a\"]\nurl = redis://a\nturn_grants = 5\n"
				   "[store]\nretry_delay = 20ms\nturn_grants = 7\n";
	struct store_contention first, second;
	struct config other;

	assert_int_equal(config_init(&other), 0);
	assert_int_equal(config_read_text(&other, "file", text, strlen(text), why, sizeof(why)), 0);
	first = config_contention(&other, 0);
	second = config_contention(&other, 1);
	assert_int_equal(first.turn_grants, 7);
	assert_int_equal(second.turn_grants, 5);
	assert_int_equal(second.retry_delay_ms, 20);
	assert_int_equal(second.retry_jitter_ms, 15);
	assert_int_equal(second.turn_time_ms, 500);
	assert_int_equal(second.turn_pause_ms, 120);
	config_finish(&other);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		CONFIG_TEST(test_defaults),
		CONFIG_TEST(test_recipes),
		CONFIG_TEST(test_every_key),
		CONFIG_TEST(test_signals),
		CONFIG_TEST(test_lock_access),
		CONFIG_TEST(test_has_access),
		CONFIG_TEST(test_odd_but_good_files),
		CONFIG_TEST(test_bad_files),
		CONFIG_TEST(test_contention),
		CONFIG_TEST(test_stores),
		CONFIG_TEST(test_one_store),
		CONFIG_TEST(test_longest_line),
		CONFIG_TEST(test_long_urls),
		CONFIG_TEST(test_long_lists),
		CONFIG_TEST(test_longest_value),
		CONFIG_TEST(test_has_url),
		CONFIG_TEST(test_nul_bytes),
		CONFIG_TEST(test_unreadable_files),
		CONFIG_TEST(test_text),
		CONFIG_TEST(test_text_limit),
		CONFIG_TEST(test_patterns),
		CONFIG_TEST(test_random_patterns),
		CONFIG_TEST(test_slashes_max),
		CONFIG_TEST(test_style),
		CONFIG_TEST(test_reload),
		CONFIG_TEST(test_reload_of_stores),
		CONFIG_TEST(test_access),
		CONFIG_TEST(test_options),
		CONFIG_TEST(test_random_files),
		CONFIG_TEST(test_example_changes_nothing),
		CONFIG_TEST(test_example_uncommented),
		CONFIG_TEST(test_example_has_every_key),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
