/* SPDX-License-Identifier: Apache-2.0
 *
 * Owns the names of INFO's fields. Any thread.
 */
#include "stores/redis/wire/info.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Copies the value of the field, cut to what fits and is printable. Returns whether it is there. */
static bool find(const char *text, const char *name, char *value, size_t value_bytes)
{
	size_t name_bytes = strlen(name), bytes = 0;
	const char *line = text;

	while (line != NULL && !(strncmp(line, name, name_bytes) == 0 && line[name_bytes] == ':')) {
		line = strchr(line, '\n');
		if (line != NULL)
			line++;
	}
	value[0] = '\0';
	if (line == NULL)
		return false;
	for (line += name_bytes + 1; isgraph((unsigned char)*line) && bytes + 1 < value_bytes;
	     line++)
		value[bytes++] = *line;
	value[bytes] = '\0';
	return true;
}

static bool is_set(const char *text, const char *name)
{
	char value[8];

	return find(text, name, value, sizeof(value)) && strcmp(value, "1") == 0;
}

static bool is_at_least(const char *version, long major, long minor)
{
	char *end;
	long its_major = strtol(version, &end, 10);
	long its_minor = *end == '.' ? strtol(end + 1, NULL, 10) : 0;

	return its_major > major || (its_major == major && its_minor >= minor);
}

void info_read(struct info *ret, const char *text)
{
	char value[32];

	*ret = (struct info){0};
	if (find(text, "valkey_version", value, sizeof(value))) {
		snprintf(ret->version, sizeof(ret->version), "valkey %s", value);
		if (is_at_least(value, 9, 0))
			ret->delete = INFO_DELETE_DELIFEQ;
	} else if (find(text, "redis_version", value, sizeof(value))) {
		snprintf(ret->version, sizeof(ret->version), "redis %s", value);
		if (is_at_least(value, 8, 4))
			ret->delete = INFO_DELETE_DELEX;
	}
	ret->is_replica = find(text, "role", value, sizeof(value)) && strcmp(value, "slave") == 0;
	ret->is_loading = is_set(text, "loading");
	ret->is_cluster = is_set(text, "cluster_enabled");
	ret->is_known = find(text, "aof_enabled", value, sizeof(value));
	ret->has_aof = is_set(text, "aof_enabled");
	ret->may_evict = find(text, "maxmemory", value, sizeof(value)) && strcmp(value, "0") != 0 &&
			 find(text, "maxmemory_policy", value, sizeof(value)) &&
			 strcmp(value, "noeviction") != 0;
	if (find(text, "connected_slaves", value, sizeof(value)))
		ret->replicas = strtol(value, NULL, 10);
}
