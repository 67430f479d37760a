/* SPDX-License-Identifier: Apache-2.0
 *
 * Owns the command line's grammar. Must not know what a key means.
 */
#include "options.h"

#include <errno.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/off_limits.h"
#include "kernel/mount_point.h"

#define DEFAULT_CONFIG_FILE DLOCKFS_SYSCONFDIR "/dlockfs.ini"
#define HELPER_PREFIX	    "mount."

#define EXPECTED_URL                                                                               \
	"expected url = zookeeper://..., etcd://... or redis://..., or url = local: for locks of " \
	"this host alone, in [store]"

enum {
	OPTION_STORE = 256,
	OPTION_CONFIG,
	OPTION_SESSION_TIMEOUT,
	OPTION_REQUIRE_URL,
	OPTION_CHECK,
	OPTION_ASK,
	OPTION_VERSION
};

static const struct option long_options[] = {
	{"store", required_argument, NULL, OPTION_STORE},
	{"config", required_argument, NULL, OPTION_CONFIG},
	{"session-timeout", required_argument, NULL, OPTION_SESSION_TIMEOUT},
	{"require-url", no_argument, NULL, OPTION_REQUIRE_URL},
	{"check", no_argument, NULL, OPTION_CHECK},
	{"ask", no_argument, NULL, OPTION_ASK},
	{"foreground", no_argument, NULL, 'f'},
	{"verbose", no_argument, NULL, 'v'},
	{"version", no_argument, NULL, OPTION_VERSION},
	{"help", no_argument, NULL, 'h'},
	{NULL, 0, NULL, 0},
};

void options_help(FILE *out)
{
	fprintf(out,
		"Usage: dlockfs [options] MOUNTPOINT\n"
		"       dlockfs [options] SOURCE MOUNTPOINT    (as mount -t fuse.dlockfs does)\n"
		"\n"
		"Shows distributed locks as files under MOUNTPOINT.\n"
		"\n"
		"  --store URL              where the locks are kept:\n"
		"                           zookeeper://host:port,host:port/path,\n"
		"                           etcd://host:port,host:port/path,\n"
		"                           redis://host:port/path, or\n"
		"                           local: (this host only; the default);\n"
		"                           for some of them, [store \"prefix\"] in FILE\n"
		"  --config FILE            configuration (default " DEFAULT_CONFIG_FILE
		", if there)\n"
		"  --session-timeout TIME   such as 15s: when a dead host's locks are freed\n"
		"  --require-url            fail if neither FILE nor --store says where the locks\n"
		"                           are kept, instead of local: (as the service does)\n"
		"  --check                  look for errors in all this, and do not mount\n"
		"  --ask                    the same, ask each server by itself how it is, and\n"
		"                           print a line for each\n"
		"  -f, --foreground         stay in the foreground, messages to stderr\n"
		"  -v, --verbose            more messages\n"
		"  -o KEY[=VALUE],...       a key of the configuration, below, or a mount option;\n"
		"                           a comma in a value is written \\,\n"
		"  --version                print the version\n"
		"  -h, --help               print this\n"
		"\n"
		"SOURCE is a store URL, or any word without a colon to leave the store as it is.\n"
		"\n"
		"Keys of the configuration, with their defaults:\n");
	config_describe(out);
}

/* One setting of the command line, which is applied after the file each time the file is read. */
struct setting {
	const char *origin; /* "--store", "-o" */
	char *key;
	char *value; /* NULL: none given */
};

static bool is_config_file(const struct setting *setting)
{
	return strcmp(setting->key, "config") == 0;
}

static int add_setting(struct options *options, const char *origin, const char *key,
		       const char *value)
{
	struct setting *list =
		realloc(options->settings, (options->setting_count + 1) * sizeof(*list));
	if (list == NULL)
		return -ENOMEM;
	options->settings = list;
	struct setting *setting = &list[options->setting_count];
	*setting = (struct setting){
		.origin = origin,
		.key = strdup(key),
		.value = value != NULL ? strdup(value) : NULL,
	};
	if (setting->key == NULL || (value != NULL && setting->value == NULL)) {
		free(setting->key);
		free(setting->value);
		return -ENOMEM;
	}
	options->setting_count++;
	return 0;
}

/* Options of mount(8) and fstab(5) that mean nothing to a file system. */
static bool is_for_mount(const char *option)
{
	static const char *const words[] = {"auto",   "noauto",	  "user",  "nouser",
					    "users",  "owner",	  "group", "_netdev",
					    "nofail", "defaults", "loop",  "rw"};
	for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++) {
		if (strcmp(option, words[i]) == 0)
			return true;
	}
	return strncmp(option, "x-", 2) == 0 || strncmp(option, "X-", 2) == 0 ||
	       strncmp(option, "comment=", 8) == 0 || strncmp(option, "user=", 5) == 0;
}

/* Cuts the next option off at a comma that no backslash precedes, and takes backslashes away. */
static char *next_option(char **rest)
{
	char *start = *rest, *to = *rest, *from;
	if (start == NULL)
		return NULL;
	for (from = start; *from != '\0' && *from != ','; from++) {
		if (*from == '\\' && from[1] != '\0')
			from++;
		*to++ = *from;
	}
	*rest = *from == ',' ? from + 1 : NULL;
	*to = '\0';
	return start;
}

static int add_o_list(struct options *options, const char *list)
{
	char *copy = strdup(list);
	char *rest = copy, *option;
	int error = copy != NULL ? 0 : -ENOMEM;

	while (error == 0 && (option = next_option(&rest)) != NULL) {
		if (option[0] == '\0' || is_for_mount(option))
			continue;
		char *value = strchr(option, '=');
		if (value != NULL)
			*value++ = '\0';
		error = add_setting(options, "-o", option, value);
	}
	free(copy);
	return error;
}

/* getopt_long(3) found an option that it does not know, or one without its argument. */
static void describe_bad_option(const char *word, bool known, char *why, size_t why_bytes)
{
	char letter[] = {'-', (char)optopt, '\0'};
	bool is_long = strncmp(word, "--", 2) == 0 || optopt == 0 || optopt > 127;
	snprintf(why, why_bytes, "%s: %s, see --help", is_long ? word : letter,
		 known ? "expected an argument" : "unknown option");
}

/* Whether mount(8) runs the program as its helper. */
static bool is_helper(const char *program)
{
	const char *slash = strrchr(program, '/');
	const char *name = slash != NULL ? slash + 1 : program;
	return strncmp(name, HELPER_PREFIX, strlen(HELPER_PREFIX)) == 0;
}

static int read_arguments(struct options *options, int argc, char **argv,
			  enum options_action *action, char *why, size_t why_bytes)
{
	bool helper = is_helper(argv[0]);
	int letter, error = 0;

	opterr = 0;
	while (error == 0 && (letter = getopt_long(argc, argv, helper ? ":o:fvhnst:" : ":o:fvh",
						   long_options, NULL)) != -1) {
		switch (letter) {
		case OPTION_STORE:
			error = add_setting(options, "--store", "url", optarg);
			break;
		case OPTION_SESSION_TIMEOUT:
			error = add_setting(options, "--session-timeout", "session_timeout",
					    optarg);
			break;
		case OPTION_CONFIG:
			error = add_setting(options, "--config", "config", optarg);
			break;
		case 'o':
			error = add_o_list(options, optarg);
			break;
		case 'f':
			if (helper && *action != OPTIONS_ASK)
				*action = OPTIONS_CHECK;
			else
				options->foreground = true;
			break;
		case 'v':
			error = add_setting(options, "--verbose", "log_level", "debug");
			break;
		case 'n': /* no mtab: there is none */
		case 's': /* be lenient with options that others know: none is ours */
		case 't':
			break;
		case OPTION_REQUIRE_URL:
			options->requires_url = true;
			break;
		case OPTION_CHECK:
			if (*action != OPTIONS_ASK)
				*action = OPTIONS_CHECK;
			break;
		case OPTION_ASK:
			*action = OPTIONS_ASK;
			break;
		case OPTION_VERSION:
			*action = OPTIONS_VERSION;
			return 0;
		case 'h':
			*action = OPTIONS_HELP;
			return 0;
		default:
			describe_bad_option(argv[optind - 1], letter == ':', why, why_bytes);
			return -EINVAL;
		}
	}
	if (error != 0)
		snprintf(why, why_bytes, "out of memory");
	return error;
}

/* [SOURCE] MOUNTPOINT */
static int read_places(struct options *options, int count, char **places, char *why,
		       size_t why_bytes)
{
	if (count < 1 || count > 2 || places[count - 1][0] == '\0') {
		snprintf(why, why_bytes, "expected a mount point%s%s, see --help",
			 count > 2 ? " and nothing behind it, found " : "",
			 count > 2 ? places[2] : "");
		return -EINVAL;
	}
	options->mountpoint = strdup(places[count - 1]);
	if (options->mountpoint == NULL)
		return -ENOMEM;
	if (count == 2 && strchr(places[0], ':') != NULL)
		return add_setting(options, "SOURCE", "url", places[0]);
	return 0;
}

static int add_mount_option(struct options *options, const struct setting *setting)
{
	bool *ours = strcmp(setting->key, "nonempty") == 0	 ? &options->nonempty
		     : strcmp(setting->key, "auto_unmount") == 0 ? &options->auto_unmount
								 : NULL;
	char *text;
	if (ours != NULL && setting->value == NULL) {
		*ours = true;
		return 0;
	}
	if (asprintf(&text, "%s%s%s", setting->key, setting->value != NULL ? "=" : "",
		     setting->value != NULL ? setting->value : "") < 0)
		return -ENOMEM;
	int failed = fuse_opt_add_opt_escaped(&options->fuse, text);
	free(text);
	return failed ? -ENOMEM : 0;
}

/* The file that is named last; NULL: none is. */
static const char *find_file(const struct options *options)
{
	const char *file = NULL;

	for (size_t i = 0; i < options->setting_count; i++) {
		const struct setting *setting = &options->settings[i];
		if (is_config_file(setting))
			file = setting->value != NULL ? setting->value : "";
	}
	return file;
}

const char *options_config_file(const struct options *options)
{
	const char *file = find_file(options);

	return file == NULL && options->has_default_file ? DEFAULT_CONFIG_FILE : file;
}

/* If no file is named, the usual one is read if it exists; if it did at the start, it has to exist
 * when it is read anew. */
static int read_file(struct options *options, struct config *config, char *why, size_t why_bytes)
{
	const char *file = find_file(options);

	if (file == NULL && (options->has_default_file || access(DEFAULT_CONFIG_FILE, F_OK) == 0 ||
			     errno != ENOENT)) {
		file = DEFAULT_CONFIG_FILE;
		options->has_default_file = true;
	}
	return file != NULL ? config_read(config, file, why, why_bytes) : 0;
}

/* A host whose configuration is gone must not lock alone, if it is to share its locks. */
static int check_url(const struct options *options, const struct config *config, char *why,
		     size_t why_bytes)
{
	const char *file = options_config_file(options);

	if (!options->requires_url || config_has_url(config))
		return 0;
	if (file == NULL)
		snprintf(why, why_bytes, DEFAULT_CONFIG_FILE ": not there, " EXPECTED_URL);
	else
		snprintf(why, why_bytes, "%s: no url in [store], " EXPECTED_URL, file);
	return -EINVAL;
}

/* Options for FUSE are taken over when the daemon starts. */
static int apply(struct options *options, struct config *config, bool starting, char *why,
		 size_t why_bytes)
{
	for (size_t i = 0; i < options->setting_count; i++) {
		const struct setting *setting = &options->settings[i];
		char reason[512];
		if (is_config_file(setting))
			continue;
		int error =
			config_set(config, setting->key, setting->value, reason, sizeof(reason));
		if (error == -ENOENT && strcmp(setting->key, "ro") == 0)
			config->read_only = true;
		if (error == -ENOENT)
			error = starting ? add_mount_option(options, setting) : 0;
		if (error != 0) {
			bool listed = strcmp(setting->origin, "-o") == 0;
			snprintf(why, why_bytes, "%s%s%s: %s", setting->origin, listed ? " " : "",
				 listed ? setting->key : "",
				 error == -ENOMEM ? "out of memory" : reason);
			return error;
		}
	}
	return config_check(config, why, why_bytes);
}

/* Makes the file's name absolute: a relative one counts from the folder in which the program was
 * started. */
static int keep_place(struct options *options)
{
	for (size_t i = 0; i < options->setting_count; i++) {
		struct setting *setting = &options->settings[i];
		if (!is_config_file(setting) || setting->value == NULL || setting->value[0] == '/')
			continue;
		char *folder = getcwd(NULL, 0), *path;
		int length = folder != NULL ? asprintf(&path, "%s/%s", folder, setting->value) : -1;
		free(folder);
		if (length < 0)
			return -errno;
		free(setting->value);
		setting->value = path;
	}
	return 0;
}

/* Nothing is read from below the mount point, which the process before may have mounted already. A
 * mount point that is not there is an error later. */
static int keep_off(const char *mountpoint, char *why, size_t why_bytes)
{
	char *path;

	if (mount_point_find(mountpoint, &path, why, why_bytes) != 0)
		return 0;
	int error = off_limits_set(path);
	if (error != 0)
		snprintf(why, why_bytes, "out of memory");
	free(path);
	return error;
}

int options_parse(struct options *options, struct config *config, int argc, char **argv,
		  enum options_action *ret_action, char *why, size_t why_bytes)
{
	*options = (struct options){0};
	*ret_action = OPTIONS_RUN;
	int error = read_arguments(options, argc, argv, ret_action, why, why_bytes);
	if (error != 0 || *ret_action == OPTIONS_HELP || *ret_action == OPTIONS_VERSION)
		return error;
	error = read_places(options, argc - optind, argv + optind, why, why_bytes);
	if (error == 0)
		error = keep_off(options->mountpoint, why, why_bytes);
	if (error == 0) {
		error = keep_place(options);
		if (error != 0)
			snprintf(why, why_bytes, "the current folder: %s", strerror(-error));
	}
	if (error == 0)
		error = read_file(options, config, why, why_bytes);
	if (error == 0)
		error = apply(options, config, true, why, why_bytes);
	return error == 0 ? check_url(options, config, why, why_bytes) : error;
}

int options_use(struct options *options, struct config *config, const char *text, size_t bytes)
{
	struct config fresh;
	char why[1024];

	if (options->mountpoint == NULL)
		return -EINVAL;
	free(options->fuse);
	options->fuse = NULL;
	int error = config_init(&fresh);
	if (error == 0)
		error = config_read_text(&fresh, "", text, bytes, why, sizeof(why));
	if (error == 0)
		error = apply(options, &fresh, true, why, sizeof(why));
	if (error != 0) {
		config_finish(&fresh);
		return error;
	}
	config_finish(config);
	*config = fresh;
	return 0;
}

int options_configure(struct options *options, struct config *config, char *why, size_t why_bytes)
{
	int error = read_file(options, config, why, why_bytes);
	if (error == 0)
		error = apply(options, config, false, why, why_bytes);
	return error == 0 ? check_url(options, config, why, why_bytes) : error;
}

void options_finish(struct options *options)
{
	for (size_t i = 0; i < options->setting_count; i++) {
		free(options->settings[i].key);
		free(options->settings[i].value);
	}
	free(options->settings);
	free(options->mountpoint);
	free(options->fuse);
}
