/* SPDX-License-Identifier: Apache-2.0
 *
 * The INI file, and `-o key=value` (an input that begins with "-o", one a line). What is taken is
 * within its limits, directories do not leave the mount, and an error is one line that names the
 * file and the line.
 */
#include "fuzz.h"

#include <errno.h>
#include <stdbool.h>
#include <sys/mman.h>
#include <unistd.h>

#include "config/internal.h"

#define WHY_BYTES 2048

/* The path of a file with this content, which is there until the next call. */
static const char *write_file(const uint8_t *data, size_t bytes)
{
	static char path[64];
	static int file = -1;

	if (file < 0) {
		file = memfd_create("fuzz", MFD_CLOEXEC);
		snprintf(path, sizeof(path), "/proc/self/fd/%d", file);
	}
	REQUIRE(file >= 0 && ftruncate(file, 0) == 0);
	REQUIRE(pwrite(file, data, bytes, 0) == (ssize_t)bytes);
	return path;
}

static void check_number(const struct config_key *key, const void *base)
{
	const void *member = (const char *)base + key->offset;
	int64_t number = key->type == MODE	  ? (int64_t) * (const mode_t *)member
			 : key->type == YES_OR_NO ? *(const bool *)member
						  : *(const int64_t *)member;

	if (key->type == MODE || key->type == NUMBER || key->type == DURATION)
		REQUIRE(number >= key->min && number <= key->max);
	if (key->type == DURATION_OR_FOREVER)
		REQUIRE(number >= key->min && (number <= key->max || number == CONFIG_FOREVER));
	if (key->type == EIO_OR_SIGNAL || key->type == NONE_OR_SIGNAL)
		REQUIRE(number >= 0 && number < 32);
}

static void check_directory(const char *path)
{
	REQUIRE(*path != '\0' && *path != '/' && path[strlen(path) - 1] != '/');
	for (const char *part = path; part; part = strchr(part, '/')) {
		size_t length;

		part += *part == '/';
		length = strcspn(part, "/");
		REQUIRE(length > 0 && length <= 255);
		REQUIRE(!(length == 1 && part[0] == '.'));
		REQUIRE(!(length == 2 && part[0] == '.' && part[1] == '.'));
	}
}

static void check_values(const struct config *config, const char *path)
{
	struct lock_policy policy = config_policy(config, path);

	for (size_t i = 0; i < config_key_count; i++) {
		const struct config_key *key = &config_keys[i];

		if (strcmp(key->section, CONFIG_LOCKS_SECTION) == 0)
			check_number(key, &policy);
		else if (strcmp(key->section, CONFIG_STORE_SECTION) != 0)
			check_number(key, config);
		else
			for (size_t j = 0; j < config->store_count; j++) {
				struct config_store store = config->stores[j];

				store.session_timeout_ms = config_session_timeout_ms(config, j);
				store.contention = config_contention(config, j);
				check_number(key, &store);
			}
	}
	REQUIRE(config_store_of(config, path) < config->store_count);
	for (char **directory = config->directories; directory && *directory; directory++)
		check_directory(*directory);
}

/* "file:line: what", with a line that is there. */
static void check_why(const char *why, const char *file, const uint8_t *data, size_t bytes)
{
	unsigned long line, lines = 1;
	char *end;

	for (size_t i = 0; i < bytes; i++)
		lines += data[i] == '\n';
	REQUIRE(strlen(why) < WHY_BYTES && !strchr(why, '\n'));
	REQUIRE(strncmp(why, file, strlen(file)) == 0 && why[strlen(file)] == ':');
	line = strtoul(why + strlen(file) + 1, &end, 10);
	REQUIRE(line >= 1 && line <= lines && strncmp(end, ": ", 2) == 0 && end[2] != '\0');
}

/* Returns whether the file was taken; if not, it is undefined what is set. */
static bool read_file(struct config *config, const uint8_t *data, size_t bytes)
{
	char why[WHY_BYTES] = "untouched";
	const char *file = write_file(data, bytes);
	int error = config_read(config, file, why, sizeof(why));

	REQUIRE(error == 0 || error == -EINVAL);
	if (error != 0)
		check_why(why, file, data, bytes);
	else
		REQUIRE(strcmp(why, "untouched") == 0);
	return error == 0;
}

static void set_options(struct config *config, char *text)
{
	char *line;

	while ((line = strsep(&text, "\n"))) {
		char why[WHY_BYTES] = "";
		char *key = strsep(&line, "=");
		int error = config_set(config, key, line, why, sizeof(why));

		REQUIRE(error == 0 || error == -ENOENT || error == -EINVAL);
		REQUIRE((error == 0) == (why[0] == '\0'));
		REQUIRE(!strchr(why, '\n'));
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	char *text = fuzz_text(data, bytes);
	struct config config;

	REQUIRE(config_init(&config) == 0);
	bool taken = true;
	if (strncmp(text, "-o", 2) == 0)
		set_options(&config, text + 2);
	else
		taken = read_file(&config, data, bytes);
	if (taken) {
		check_values(&config, "a");
		check_values(&config, text);
	}
	config_finish(&config);
	free(text);
	return 0;
}
