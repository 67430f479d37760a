/* SPDX-License-Identifier: Apache-2.0
 *
 * Owns the reading of the INI file. Must not know what a key means. Loop thread only.
 *
 * inih splits the lines with keys. next_line() first checks each line for faults that inih would
 * pass over in silence: inih cuts long lines, stops at NUL bytes, takes any indented line as more
 * of the value, shortens section names, and does not report a section without keys. Section
 * headers, which inih would also end at the first ']' of a pattern, never reach it.
 *
 * inih's lines are short (INI_MAX_LINE: 200 bytes in Debian 12). A longer one reaches it in parts,
 * which look like lines that go on with a value: on_key() joins what belongs together, and
 * finish_key() takes the whole.
 */
#include "claim/name.h"
#include "config/internal.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <ini.h>

#include "base/off_limits.h"
#include "base/opener.h"
#include "config/line.h"

#define BYTE_ORDER_MARK "\xef\xbb\xbf"
#define COMMENT_BEHIND                                                                             \
	"\"%s\" is no comment here, expected one behind \";\", or \"#\" in a line of its own"
#define SECTIONS "[mount], [store], [store \"prefix\"], [locks] or [locks \"pattern\"]"

/* A key whose value may have more lines. */
struct open_key {
	const struct config_key *key; /* NULL: none */
	char value[CONFIG_VALUE_MAX + 1];
};

/* The line that inih gets next. */
struct part {
	const char *rest;      /* what is left of a long line; NULL: nothing */
	bool goes_on;	       /* it is more of the value of the key that is open, */
	bool is_cut;	       /* from the middle of a word */
	size_t bytes, longest; /* of the whole line, and what inih takes of it */
};

struct reading {
	struct config *config;
	const char *file;
	FILE *stream;
	char *text; /* the line, for getline(3) */
	size_t text_bytes;
	int line;
	int error; /* the first error; its message is in why */
	char *why;
	size_t why_bytes;
	const char *section;		 /* NULL before the first header */
	int header;			 /* its line, */
	size_t place;			 /* and which of that name it is, for config_set_key() */
	size_t first_pattern;		 /* the first section with a pattern that this file made, */
	size_t first_prefix;		 /* and the first store with a prefix */
	uint64_t keys_seen;		 /* since the header, as CONFIG_KEY_BITs, */
	int key_lines[64];		 /* and where; by the key's place in config_keys */
	int recipe_lines[CLAIM_RECIPES]; /* the first in the file with each of them; 0: none */
	bool is_indented;		 /* the line */
	struct part part;
	struct open_key open;
	uint64_t opened; /* [mount], [store], [locks]: CONFIG_KEY_BITs of their first keys */
};

static void __attribute__((format(printf, 4, 0)))
tell(struct reading *reading, int line, int error, const char *format, va_list arguments)
{
	char what[1024];

	vsnprintf(what, sizeof(what), format, arguments);
	snprintf(reading->why, reading->why_bytes, "%s:%d: %s", reading->file, line, what);
	reading->error = error;
}

static int __attribute__((format(printf, 3, 4)))
fail(struct reading *reading, int error, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	tell(reading, reading->line, error, format, arguments);
	va_end(arguments);
	return error;
}

/* What is wrong with a line before this one. */
static int __attribute__((format(printf, 3, 4)))
fail_above(struct reading *reading, int line, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	tell(reading, line, -EINVAL, format, arguments);
	va_end(arguments);
	return -EINVAL;
}

/* Whether a component is "**", which elsewhere stands for any number of them. */
static bool has_double_star(const char *pattern, size_t bytes)
{
	const char *end = pattern + bytes;

	for (const char *component = pattern; component < end;) {
		const char *slash = memchr(component, '/', (size_t)(end - component));
		const char *stop = slash != NULL ? slash : end;

		if (stop - component == 2 && memcmp(component, "**", 2) == 0)
			return true;
		component = stop + 1;
	}
	return false;
}

static int open_pattern(struct reading *reading, const char *pattern, size_t bytes)
{
	struct config *config = reading->config;

	if (bytes == 0 || *pattern == '/')
		return fail(reading, -EINVAL,
			    "bad pattern \"%.*s\", expected a path like \"backup/*\"", (int)bytes,
			    pattern);
	if (has_double_star(pattern, bytes))
		return fail(reading, -EINVAL,
			    "bad pattern \"%.*s\": ** is one level, as * is, expected * and a "
			    "section for each level",
			    (int)bytes, pattern);
	for (size_t i = reading->first_pattern; i < config->section_count; i++) {
		const char *other = config->sections[i].pattern;

		if (strlen(other) == bytes && memcmp(other, pattern, bytes) == 0)
			return fail(reading, -EINVAL,
				    "section [locks \"%s\"] a second time, expected it once",
				    other);
	}
	if (config_add_section(config, pattern, bytes))
		return fail(reading, -ENOMEM, "out of memory");
	reading->place = config->section_count - 1;
	return 0;
}

static int add_prefix(struct reading *reading, const char *prefix)
{
	struct config *config = reading->config;

	if (!config_is_path(prefix) || strpbrk(prefix, "*?[") != NULL)
		return fail(reading, -EINVAL,
			    "bad prefix \"%s\", expected the path of a directory like \"backup\" "
			    "or \"backup/daily\", without a slash at its ends and no pattern",
			    prefix);
	for (size_t i = reading->first_prefix; i < config->store_count; i++) {
		if (strcmp(config->stores[i].prefix, prefix) == 0)
			return fail(reading, -EINVAL,
				    "section [store \"%s\"] a second time, expected it once",
				    prefix);
	}
	if (config_add_store(config, prefix))
		return fail(reading, -ENOMEM, "out of memory");
	reading->place = config->store_count - 1;
	return 0;
}

static int open_prefix(struct reading *reading, const char *text, size_t bytes)
{
	char *prefix = strndup(text, bytes);
	int error = prefix != NULL ? add_prefix(reading, prefix)
				   : fail(reading, -ENOMEM, "out of memory");

	free(prefix);
	return error;
}

static int end_locks(struct reading *reading)
{
	const struct config_section *section = &reading->config->sections[reading->place];
	const char *name = config_find_clash(section);

	if (name == NULL)
		return 0;
	return fail_above(
		reading, reading->key_lines[config_find_key(reading->section, name) - config_keys],
		"%s with slots = %lld: those claims are not handed on, expected one of the two",
		name, (long long)section->policy.slots);
}

/* A store below a prefix has no address unless one is given: it must not be left to a default that
 * shares nothing. */
static int end_store(struct reading *reading)
{
	const struct config_key *url = config_find_key(CONFIG_STORE_SECTION, "url");
	const struct config_key *key;
	const struct config_store *store;
	const char *name = NULL;
	char why[CONFIG_WHY_BYTES];
	int line = reading->header;

	store = &reading->config->stores[reading->place];
	if (reading->place > 0 && !(reading->keys_seen & CONFIG_KEY_BIT(url)))
		return fail_above(reading, line,
				  "section [store \"%s\"] without a url, expected url = "
				  "zookeeper://..., etcd://... or redis://...",
				  store->prefix);
	if (store_access_check(&store->access, &store->url, &name, why, sizeof(why)))
		return 0;
	key = name != NULL ? config_find_key(CONFIG_STORE_SECTION, name) : NULL;
	/* Unless the configuration had it before the file. */
	if (key != NULL && reading->keys_seen & CONFIG_KEY_BIT(key))
		line = reading->key_lines[key - config_keys];
	return fail_above(reading, line, "%s", why);
}

/* The keys of a section are complete. */
static int end_section(struct reading *reading)
{
	if (reading->section == NULL)
		return 0;
	if (strcmp(reading->section, CONFIG_STORE_SECTION) == 0)
		return end_store(reading);
	return strcmp(reading->section, CONFIG_LOCKS_SECTION) == 0 ? end_locks(reading) : 0;
}

static int open_section(struct reading *reading, const char *name, size_t bytes, bool is_part)
{
	const struct config_key *key = config_keys, *end = config_keys + config_key_count;

	while (key < end &&
	       (strlen(key->section) != bytes || memcmp(key->section, name, bytes) != 0))
		key++;
	if (key == end)
		return fail(reading, -EINVAL, "unknown section \"%.*s\", expected " SECTIONS,
			    (int)bytes, name);
	reading->section = key->section;
	reading->header = reading->line;
	reading->keys_seen = 0;
	reading->place = 0;
	if (is_part)
		return 0;
	if (reading->opened & CONFIG_KEY_BIT(key))
		return fail(reading, -EINVAL, "section [%s] a second time, expected it once",
			    key->section);
	reading->opened |= CONFIG_KEY_BIT(key);
	return 0;
}

static bool is_section(const char *name, size_t bytes, const char *section)
{
	return bytes == strlen(section) && memcmp(name, section, bytes) == 0;
}

/* Reads a line that begins with '['. */
static int read_header(struct reading *reading, const char *header)
{
	const char *name = header + 1 + strspn(header + 1, CONFIG_BLANKS);
	size_t name_bytes = strcspn(name, CONFIG_BLANKS "\"]"), part_bytes = 0;
	const char *rest = name + name_bytes, *part = NULL;
	bool is_store = is_section(name, name_bytes, CONFIG_STORE_SECTION);
	bool valid = true;
	int error = end_section(reading);

	if (error)
		return error;

	rest += strspn(rest, CONFIG_BLANKS);
	if (*rest == '"') {
		part = rest + 1;
		part_bytes = strcspn(part, "\"");
		rest = part + part_bytes;
		valid = *rest == '"' &&
			(is_store || is_section(name, name_bytes, CONFIG_LOCKS_SECTION));
		rest += valid;
		rest += strspn(rest, CONFIG_BLANKS);
	}
	valid = valid && *rest++ == ']';
	rest += valid ? strspn(rest, CONFIG_BLANKS) : 0;
	if (valid && *rest == '#')
		return fail(reading, -EINVAL, COMMENT_BEHIND, rest);
	if (!valid || (*rest != '\0' && *rest != ';'))
		return fail(reading, -EINVAL, "bad section header %s, expected " SECTIONS, header);

	error = open_section(reading, name, name_bytes, part != NULL);
	if (!error && part != NULL && is_store)
		error = open_prefix(reading, part, part_bytes);
	else if (!error && part != NULL)
		error = open_pattern(reading, part, part_bytes);
	return error;
}

/* Reads a line without the blanks around it, or NULL at the end of the file or after an error. */
static char *read_line(struct reading *reading)
{
	ssize_t bytes;
	char *text;

	reading->line++;
	bytes = getline(&reading->text, &reading->text_bytes, reading->stream);
	if (bytes < 0) {
		if (!feof(reading->stream))
			fail(reading, -ENOMEM, "out of memory");
		return NULL;
	}
	text = reading->text;
	if (strlen(text) != (size_t)bytes) {
		fail(reading, -EINVAL, "a NUL byte, expected text");
		return NULL;
	}
	if (reading->line == 1 && strncmp(text, BYTE_ORDER_MARK, strlen(BYTE_ORDER_MARK)) == 0)
		text += strlen(BYTE_ORDER_MARK);
	reading->is_indented = strspn(text, CONFIG_BLANKS) > 0;
	text += strspn(text, CONFIG_BLANKS);
	for (char *end = text + strlen(text); end > text && strchr(CONFIG_BLANKS, end[-1]) != NULL;
	     end--)
		end[-1] = '\0';
	return text;
}

/* What is in front of the '=' or ':' is a key: anything that has '=', as an unknown key is to be
 * found; with ':', which addresses have, what is known. */
static bool reads_as_key(const char *text)
{
	size_t bytes = strcspn(text, "=:");
	const char *sign = text + bytes;
	const struct config_key *key = config_keys, *end = config_keys + config_key_count;

	while (bytes > 0 && strchr(CONFIG_BLANKS, text[bytes - 1]) != NULL)
		bytes--;
	while (key < end && (strlen(key->name) != bytes || memcmp(key->name, text, bytes) != 0))
		key++;
	return *sign == '=' || (*sign == ':' && key < end);
}

static bool ends_in_comma(const char *value)
{
	return *value && value[strlen(value) - 1] == ',';
}

/* Whether the line is more of the value of the key above it. */
static bool goes_on(const struct reading *reading, const char *text)
{
	const struct open_key *open = &reading->open;

	if (!reading->is_indented || open->key == NULL || !config_value_is_list(open->key))
		return false;
	return ends_in_comma(open->value) || (*text != '[' && !reads_as_key(text));
}

/* Sets the key whose value is complete. */
static int finish_key(struct reading *reading)
{
	const struct config_key *key = reading->open.key;
	char why[CONFIG_WHY_BYTES];
	int error;

	reading->open.key = NULL;
	if (key == NULL)
		return 0;
	error = config_set_key(reading->config, key, reading->place, reading->open.value, why,
			       sizeof(why));
	if (error == -ENOMEM)
		return fail(reading, error, "out of memory");
	return error ? fail_above(reading, reading->key_lines[key - config_keys], "%s: %s",
				  key->name, why)
		     : 0;
}

/* Returns the next line if inih is to have it, "" for any other, and NULL at the end of the file or
 * after an error. */
static const char *next_text(struct reading *reading)
{
	char *text = read_line(reading);

	if (text == NULL)
		return NULL;
	if (*text == '#' || *text == ';' || *text == '\0')
		return "";
	reading->part.goes_on = goes_on(reading, text);
	if (!reading->part.goes_on && finish_key(reading))
		return NULL;
	if (*text == '[' && !reading->part.goes_on)
		return read_header(reading, text) ? NULL : "";
	line_end_at_comment(text);
	if (!reading->part.goes_on && text[strcspn(text, "=:")] == '\0') {
		fail(reading, -EINVAL, "a line without '=', expected key = value");
		return NULL;
	}
	return text;
}

static int fail_long(struct reading *reading)
{
	return fail(reading, -EINVAL, "a line of %zu bytes, expected at most %zu",
		    reading->part.bytes, reading->part.longest);
}

/* inih's reader: puts the next line with a key into `line`, or a part of one, and an empty one for
 * every other. */
static char *next_line(char *line, int line_bytes, void *user)
{
	struct reading *reading = user;
	struct part *part = &reading->part;
	const char *text = part->rest;
	size_t longest = (size_t)line_bytes - strlen("\r\n") - 1, bytes;

	if (reading->error)
		return NULL;
	part->goes_on = text != NULL;
	part->is_cut = text != NULL && strchr(CONFIG_BLANKS, text[-1]) == NULL;
	if (text == NULL) {
		text = next_text(reading);
		part->bytes = text != NULL ? strlen(text) : 0;
		part->longest = longest;
	}
	if (text == NULL)
		return NULL;
	bytes = line_measure_part(text, longest - part->goes_on, &part->rest);
	if (*text && (bytes == 0 || (!part->goes_on && strcspn(text, "=:") >= bytes))) {
		fail_long(reading);
		return NULL;
	}
	snprintf(line, (size_t)line_bytes, "%s%.*s\n", part->goes_on ? "\t" : "", (int)bytes, text);
	return line;
}

static int reject_unknown_key(struct reading *reading, const char *name)
{
	char known[256] = "";
	const struct config_key *elsewhere = config_find_key(NULL, name);

	if (elsewhere != NULL)
		return fail(reading, -EINVAL, "key \"%s\" in section [%s], expected it in [%s]",
			    name, reading->section, elsewhere->section);
	for (size_t i = 0, used = 0; i < config_key_count && used < sizeof(known); i++) {
		if (strcmp(config_keys[i].section, reading->section) == 0)
			used += (size_t)snprintf(known + used, sizeof(known) - used, "%s%s",
						 used ? ", " : "", config_keys[i].name);
	}
	return fail(reading, -EINVAL, "unknown key \"%s\" in section [%s], expected one of %s",
		    name, reading->section, known);
}

/* Adds a part to the value of the key that is open. Parts of a word, and what follows a comma, are
 * joined as they are; others by a blank. */
static int add_value(struct reading *reading, const char *part)
{
	char *value = reading->open.value;
	size_t had = strlen(value);
	bool is_joined = reading->part.is_cut || had == 0 || ends_in_comma(value);
	const char *comment = line_find_comment(part);

	if (comment != NULL)
		return fail(reading, -EINVAL, COMMENT_BEHIND, comment);
	if (had + !is_joined + strlen(part) > CONFIG_VALUE_MAX)
		return fail(reading, -EINVAL, "a value of more than %d bytes, expected less",
			    CONFIG_VALUE_MAX);
	stpcpy(stpcpy(value + had, is_joined ? "" : " "), part);
	return 0;
}

/* inih's handler; its own idea of the section is not used. Returns 0 for an error. */
static int on_key(void *user, const char *section, const char *name, const char *value)
{
	struct reading *reading = user;
	const struct config_key *key;

	(void)section;
	if (reading->error)
		return 0;
	if (reading->part.goes_on)
		return !add_value(reading, value);
	if (reading->section == NULL)
		return !fail(reading, -EINVAL,
			     "key \"%s\" before any section, expected " SECTIONS " first", name);
	key = config_find_key(reading->section, name);
	if (key == NULL)
		return !reject_unknown_key(reading, name);
	if (reading->keys_seen & CONFIG_KEY_BIT(key))
		return !fail(reading, -EINVAL,
			     "key \"%s\" a second time in its section, expected it once", name);
	if (reading->part.rest != NULL && !config_value_is_list(key))
		return !fail_long(reading);
	reading->keys_seen |= CONFIG_KEY_BIT(key);
	reading->key_lines[key - config_keys] = reading->line;
	for (int i = 0; key->type == RECIPE && i < CLAIM_RECIPES; i++) {
		if (strcmp(value, claim_recipe_names[i]) == 0 && reading->recipe_lines[i] == 0)
			reading->recipe_lines[i] = reading->line;
	}
	reading->open.key = key;
	reading->open.value[0] = '\0';
	return !add_value(reading, value);
}

static int compare_prefixes(const void *a, const void *b)
{
	const struct config_store *first = a, *second = b;

	return strcmp(first->prefix, second->prefix);
}

/* Reads the stream over the configuration. */
static int parse(struct reading *reading)
{
	struct config *config = reading->config;
	char detail[CONFIG_WHY_BYTES];
	int64_t recipe;
	int result;

	reading->first_pattern = config->section_count;
	reading->first_prefix = config->store_count;
	result = ini_parse_stream(next_line, reading, on_key, reading);
	if (result != 0 && !reading->error)
		fail(reading, -ENOMEM, "out of memory");
	else if (!reading->error && finish_key(reading) == 0)
		end_section(reading);
	if (!reading->error && config_lacks_recipe(config, &recipe) &&
	    reading->recipe_lines[recipe] > 0) {
		config_explain_recipe(recipe, detail, sizeof(detail));
		fail_above(reading, reading->recipe_lines[recipe], "%s", detail);
	}
	/* In one order, whatever that in the file: another process, which may read another file,
	 * goes on with the stores by their place. */
	qsort(config->stores + 1, config->store_count - 1, sizeof(*config->stores),
	      compare_prefixes);
	free(reading->text);
	return reading->error;
}

/* Takes over the text, which was allocated, and reads it. */
static int read_owned(struct config *config, const char *file, char *text, size_t bytes, char *why,
		      size_t why_bytes)
{
	struct reading reading = {
		.config = config,
		.file = file,
		.stream = fmemopen(text, bytes, "r"),
		.why = why,
		.why_bytes = why_bytes,
	};
	int error;

	free(config->text);
	config->text = text;
	config->text_bytes = bytes;
	if (reading.stream == NULL) {
		snprintf(why, why_bytes, "%s: out of memory", file);
		return -ENOMEM;
	}
	error = parse(&reading);
	fclose(reading.stream);
	return error;
}

int config_read_text(struct config *config, const char *file, const char *text, size_t bytes,
		     char *why, size_t why_bytes)
{
	char *copy = malloc(bytes + 1);

	if (copy == NULL) {
		snprintf(why, why_bytes, "%s: out of memory", file);
		return -ENOMEM;
	}
	memcpy(copy, text, bytes);
	copy[bytes] = '\0';
	return read_owned(config, file, copy, bytes, why, why_bytes);
}

/* Reads the whole file. Returns 0, and *ret for free(3); or -errno. */
static int load(FILE *stream, char **ret, size_t *ret_bytes)
{
	FILE *copy = open_memstream(ret, ret_bytes);
	char part[4096];
	size_t got;
	int error = 0;

	if (copy == NULL)
		return -ENOMEM;
	errno = 0;
	while ((got = fread(part, 1, sizeof(part), stream)) > 0) {
		if (fwrite(part, 1, got, copy) != got)
			error = -ENOMEM;
	}
	if (ferror(stream))
		error = errno ? -errno : -EIO;
	if (fclose(copy) && !error)
		error = -ENOMEM;
	if (error) {
		free(*ret);
		*ret = NULL;
	}
	return error;
}

/* Returns 0 or -ENOMEM. */
static int note_file(struct config *config, const char *file, const struct stat *attr)
{
	free(config->file);
	config->file = strdup(file);
	config->file_time = attr->st_mtim;
	return config->file != NULL ? 0 : -ENOMEM;
}

int config_read(struct config *config, const char *file, char *why, size_t why_bytes)
{
	char *text = NULL;
	size_t bytes = 0;
	FILE *stream;
	struct stat attr;
	int descriptor, error;

	if (off_limits_refuses(file, why, why_bytes))
		return -EINVAL;
	descriptor = opener_open(file, 0);
	stream = descriptor >= 0 ? fdopen(descriptor, "r") : NULL;
	if (stream == NULL) {
		error = -errno;
		if (descriptor >= 0)
			close(descriptor);
		snprintf(why, why_bytes, "%s: %s", file, strerror(-error));
		return error;
	}
	if (fstat(descriptor, &attr) != 0)
		attr = (struct stat){0};
	error = load(stream, &text, &bytes);
	fclose(stream);
	if (!error)
		error = note_file(config, file, &attr);
	if (!error)
		return read_owned(config, file, text, bytes, why, why_bytes);
	free(text);
	snprintf(why, why_bytes, "%s: cannot read it: %s", file, strerror(-error));
	return error;
}
