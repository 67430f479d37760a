/* SPDX-License-Identifier: Apache-2.0
 *
 * Owns the command line's grammar. What a key means is the configuration's business.
 */
#include "options.h"

#include <errno.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define DEFAULT_CONFIG_FILE "/etc/dlockfs.ini"

enum { OPTION_STORE = 256, OPTION_CONFIG, OPTION_SESSION_TIMEOUT, OPTION_VERSION };

static const struct option long_options[] = {
	{"store", required_argument, NULL, OPTION_STORE},
	{"config", required_argument, NULL, OPTION_CONFIG},
	{"session-timeout", required_argument, NULL, OPTION_SESSION_TIMEOUT},
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
		"                           zookeeper://host:port,host:port/path, or\n"
		"                           local: (this host only; the default);\n"
		"                           for some of them, [store \"prefix\"] in FILE\n"
		"  --config FILE            configuration (default " DEFAULT_CONFIG_FILE
		", if there)\n"
		"  --session-timeout TIME   such as 15s: when a dead host's locks are freed\n"
		"  -f, --foreground         stay in the foreground, messages to stderr\n"
		"  -v, --verbose            more messages\n"
		"  -o KEY[=VALUE],...       a key of the configuration, below, or a mount option;\n"
		"                           a comma in a value is written \\,\n"
		"  --version                print the version\n"
		"  -h, --help               print this\n"
		"\n"
		"SOURCE is a store URL, or any word without a colon to leave the store as it is.\n"
		"\n"
		"Keys (section, key, default, values, meaning):\n");
	config_describe(out);
}

/* One setting of the command line, kept until the file has been read. */
struct setting {
	const char *origin; /* "--store", "-o" */
	char *key;
	char *value; /* NULL: none given */
};

struct settings {
	struct setting *list;
	size_t count;
};

static void settings_finish(struct settings *settings)
{
	for (size_t i = 0; i < settings->count; i++) {
		free(settings->list[i].key);
		free(settings->list[i].value);
	}
	free(settings->list);
}

static int settings_add(struct settings *settings, const char *origin, const char *key,
			const char *value)
{
	struct setting *list =
		realloc(settings->list, (settings->count + 1) * sizeof(*settings->list));
	if (list == NULL)
		return -ENOMEM;
	settings->list = list;
	struct setting *setting = &list[settings->count];
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
	settings->count++;
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

static int add_o_list(struct settings *settings, const char *list)
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
		error = settings_add(settings, "-o", option, value);
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

static int read_arguments(struct options *options, struct settings *settings, int argc, char **argv,
			  enum options_action *action, char *why, size_t why_bytes)
{
	int letter, error = 0;

	opterr = 0;
	while (error == 0 &&
	       (letter = getopt_long(argc, argv, ":o:fvh", long_options, NULL)) != -1) {
		switch (letter) {
		case OPTION_STORE:
			error = settings_add(settings, "--store", "url", optarg);
			break;
		case OPTION_SESSION_TIMEOUT:
			error = settings_add(settings, "--session-timeout", "session_timeout",
					     optarg);
			break;
		case OPTION_CONFIG:
			error = settings_add(settings, "--config", "config", optarg);
			break;
		case 'o':
			error = add_o_list(settings, optarg);
			break;
		case 'f':
			options->foreground = true;
			break;
		case 'v':
			options->verbose = true;
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
static int read_places(struct options *options, struct settings *settings, int count, char **places,
		       char *why, size_t why_bytes)
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
		return settings_add(settings, "SOURCE", "url", places[0]);
	return 0;
}

static int add_fuse_option(struct options *options, const struct setting *setting)
{
	char *text;
	if (asprintf(&text, "%s%s%s", setting->key, setting->value != NULL ? "=" : "",
		     setting->value != NULL ? setting->value : "") < 0)
		return -ENOMEM;
	int failed = fuse_opt_add_opt_escaped(&options->fuse, text);
	free(text);
	return failed ? -ENOMEM : 0;
}

static int read_file(const struct settings *settings, struct config *config, char *why,
		     size_t why_bytes)
{
	const char *file = NULL;
	for (size_t i = 0; i < settings->count; i++) {
		if (strcmp(settings->list[i].key, "config") == 0)
			file = settings->list[i].value != NULL ? settings->list[i].value : "";
	}
	if (file == NULL && access(DEFAULT_CONFIG_FILE, F_OK) == 0)
		file = DEFAULT_CONFIG_FILE;
	return file != NULL ? config_read(config, file, why, why_bytes) : 0;
}

static int apply(struct options *options, const struct settings *settings, struct config *config,
		 char *why, size_t why_bytes)
{
	for (size_t i = 0; i < settings->count; i++) {
		const struct setting *setting = &settings->list[i];
		char reason[512];
		if (strcmp(setting->key, "config") == 0)
			continue;
		int error =
			config_set(config, setting->key, setting->value, reason, sizeof(reason));
		if (error == -ENOENT)
			error = add_fuse_option(options, setting);
		if (error != 0) {
			bool listed = strcmp(setting->origin, "-o") == 0;
			snprintf(why, why_bytes, "%s%s%s: %s", setting->origin, listed ? " " : "",
				 listed ? setting->key : "",
				 error == -ENOMEM ? "out of memory" : reason);
			return error;
		}
	}
	return 0;
}

int options_parse(struct options *options, struct config *config, int argc, char **argv,
		  enum options_action *ret_action, char *why, size_t why_bytes)
{
	struct settings settings = {0};

	*options = (struct options){0};
	*ret_action = OPTIONS_RUN;
	int error = read_arguments(options, &settings, argc, argv, ret_action, why, why_bytes);
	if (error == 0 && *ret_action == OPTIONS_RUN) {
		error = read_places(options, &settings, argc - optind, argv + optind, why,
				    why_bytes);
		if (error == 0)
			error = read_file(&settings, config, why, why_bytes);
		if (error == 0)
			error = apply(options, &settings, config, why, why_bytes);
	}
	settings_finish(&settings);
	return error;
}

void options_finish(struct options *options)
{
	free(options->mountpoint);
	free(options->fuse);
}
