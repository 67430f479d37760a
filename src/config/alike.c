/* SPDX-License-Identifier: Apache-2.0
 *
 * Loop thread only.
 */
#include "config/alike.h"

#include <inttypes.h>
#include <stdlib.h>

#include "claim/name.h"
#include "config/internal.h"

static const char *const names[] = {"slots", "lock_delay", "min_hold", "recipe",
				    "style", "owner",	   "group",    "mode"};

static void write_value(FILE *out, const struct config_key *key, int64_t value)
{
	if (key->type == RECIPE)
		fputs(claim_recipe_names[value], out);
	else if (key->type == STYLE)
		fputs(value == STYLE_FILE ? "file" : "lock", out);
	else if (value == CONFIG_CREATOR)
		fputs("creator", out);
	else if (key->type == MODE_OR_CREATOR)
		fprintf(out, "%04" PRIo64, value);
	else if (key->type != DURATION)
		fprintf(out, "%" PRId64, value);
	else if (value % SECOND == 0)
		fprintf(out, "%" PRId64 "s", value / SECOND);
	else
		fprintf(out, "%" PRId64 "ms", value);
}

struct saying {
	void (*say)(void *context, const char *line);
	void *context;
};

/* Without memory nothing is said. */
static void say(const struct saying *saying, const char *section, const char *pattern,
		const struct config_key *key, int64_t value)
{
	char *line = NULL;
	size_t bytes;
	FILE *out = open_memstream(&line, &bytes);

	if (out == NULL)
		return;
	fprintf(out, "[%s", section);
	if (pattern != NULL && *pattern != '\0')
		fprintf(out, " \"%s\"", pattern);
	fprintf(out, "] %s=", key->name);
	write_value(out, key, value);
	if (fclose(out) == 0)
		saying->say(saying->context, line);
	free(line);
}

static int64_t value_in(const struct config_section *section, const struct config_key *key)
{
	return *(const int64_t *)((const char *)&section->policy + key->offset);
}

static void say_key(const struct saying *saying, const struct config *config,
		    const struct config_key *key)
{
	const struct config_section *options = &config->sections[CONFIG_OPTIONS];
	bool is_option = (options->set & CONFIG_KEY_BIT(key)) != 0;
	const struct config_section *all =
		is_option ? options : &config->sections[CONFIG_ALL_LOCKS];

	say(saying, CONFIG_LOCKS_SECTION, NULL, key, value_in(all, key));
	for (size_t i = CONFIG_FIRST_PATTERN; !is_option && i < config->section_count; i++) {
		const struct config_section *section = &config->sections[i];

		if ((section->set & CONFIG_KEY_BIT(key)) != 0)
			say(saying, CONFIG_LOCKS_SECTION, section->pattern, key,
			    value_in(section, key));
	}
}

void config_alike_each(const struct config *config, size_t store,
		       void (*say_line)(void *context, const char *line), void *context)
{
	const struct saying saying = {say_line, context};

	say(&saying, CONFIG_STORE_SECTION, config->stores[store].prefix,
	    config_find_key(CONFIG_STORE_SECTION, "session_timeout"),
	    config_session_timeout_ms(config, store));
	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		say_key(&saying, config, config_find_key(CONFIG_LOCKS_SECTION, names[i]));
}

/* FNV-1a, 64 bits: nobody gains by settings of the same number. */
static void add_to_hash(void *context, const char *line)
{
	uint64_t *hash = context;

	for (const unsigned char *at = (const unsigned char *)line;; at++) {
		*hash = (*hash ^ *at) * UINT64_C(0x100000001b3);
		if (*at == '\0')
			return;
	}
}

uint64_t config_alike_hash(const struct config *config, size_t store)
{
	uint64_t hash = UINT64_C(0xcbf29ce484222325);

	config_alike_each(config, store, add_to_hash, &hash);
	return hash;
}
