/* SPDX-License-Identifier: Apache-2.0
 *
 * Owns the table of configuration keys, decides which values count for a lock, and replaces the
 * configuration by one that was read anew. Must not act on what is configured. Loop thread only.
 */
#include "config/internal.h"

#include <errno.h>
#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

#include "claim/data.h"
#include "claim/name.h"

/* Twice as many ranges of one process (engine/engine.h) must fit into the data of a znode, 1 MiB at
 * most, with up to 41 bytes each (claim/data.h). */
#define PROCESS_RANGES_MAX 8192
#define FILE_RANGES_MAX	   65536
#define USER_SHARE_MAX	   1000000
#define ACCOUNT_MAX	   (UINT32_MAX - INT64_C(1)) /* the last one means none: chown(2) */

#define IN_CONFIG(member) offsetof(struct config, member)
#define IN_STORE(member)  offsetof(struct config_store, member)
#define IN_POLICY(member) offsetof(struct lock_policy, member)

const struct config_key config_keys[] = {
	{"mount", "mode", MODE, IN_CONFIG(mode), 0, 0777, "0777", true,
	 "permissions of the root directory and of directories, never sticky"},
	{"mount", "idle", DURATION, IN_CONFIG(idle_ms), SECOND, 30 * DAY, "60s", false,
	 "an unused name disappears from the mount after so long"},
	{"mount", "directories", DIRECTORIES, IN_CONFIG(directories), 0, 0, "", false,
	 "directories that are made in the mount"},
	{"mount", "allow_other", YES_OR_NO, IN_CONFIG(allow_other), 0, 1, "yes", true,
	 "other users than the one who mounts may use the locks"},
	{"mount", "user", WORD, IN_CONFIG(user), 0, 0, "", true,
	 "as whom a daemon of root goes on; unless given, dlockfs if there is such a user"},
	{"mount", "user_waiters", NUMBER, IN_CONFIG(user_waiters), 1, USER_SHARE_MAX, "4096", false,
	 "a call that asks for a lock fails with ENOLCK if so many of its user wait already"},
	{"mount", "user_files", NUMBER, IN_CONFIG(user_files), 1, USER_SHARE_MAX, "16384", false,
	 "open fails with ENFILE if the user has so many open files of the mount"},
	{"mount", "user_names", NUMBER, IN_CONFIG(user_names), 1, USER_SHARE_MAX, "16384", false,
	 "open and mkdir fail with EDQUOT if the user has made so many names that are there"},
	{"mount", "user_ranges", NUMBER, IN_CONFIG(user_ranges), 1, USER_SHARE_MAX, "65536", false,
	 "fcntl and lockf fail with ENOLCK if files of the user hold so many byte ranges"},
	{"mount", "user_writes", NUMBER, IN_CONFIG(user_writes), 1, USER_SHARE_MAX, "20000", false,
	 "calls of a user that change something on the servers in a second; more of them wait"},
	{"mount", "peers", ADDRESS, IN_CONFIG(peers), 0, 0, "", false,
	 "address of this host at which other hosts tell it at once that a lock is released"},
	{"mount", "log_level", LOG_LEVEL, IN_CONFIG(log_level), 0, 0, "info", false,
	 "the most detailed messages that are written"},
	{"mount", "audit", YES_OR_NO, IN_CONFIG(audit), 0, 1, "no", false,
	 "a line in the log for each lock that is granted, refused, released or lost"},
	{"store", "url", STORE_URL, IN_STORE(url), 0, 0, "local:", true,
	 "where the locks are kept"},
	{"store", "session_timeout", DURATION, IN_STORE(session_timeout_ms), SECOND, 10 * MINUTE,
	 "15s", true, "the locks of a host that died are free after so long"},
	{"store", "new_root", YES_OR_NO, IN_STORE(new_root), 0, 1, "no", true,
	 "nobody holds locks there yet, which is new: at the start nothing waits to find out"},
	{"store", "digest_file", DIGEST_FILE, IN_STORE(access.digest), 0, 0, "", true,
	 "user:password for ZooKeeper's digest scheme, one a line, in a file of mode 0600"},
	{"store", "acl", ACL, IN_STORE(access.acl), 0, 0, "auto", true,
	 "what others may do with what is created in the store"},
	{"store", "tls_ca", TLS_FILE, IN_STORE(access.tls_ca), 0, 0, "", true,
	 "certificates of those who sign the servers'; with it the connection is by TLS"},
	{"store", "tls_certificate", TLS_FILE, IN_STORE(access.tls_certificate), 0, 0, "", true,
	 "certificate that this host shows to the servers"},
	{"store", "tls_key", TLS_KEY_FILE, IN_STORE(access.tls_key), 0, 0, "", true,
	 "key of that certificate, in a file of mode 0600"},
	{"store", "tls_password_file", PASSWORD_FILE, IN_STORE(access.tls_password), 0, 0, "", true,
	 "password of the key, in a file of mode 0600"},
	{"store", "sasl_mechanism", WORD, IN_STORE(access.sasl_mechanism), 0, 0, "", true,
	 "such as DIGEST-MD5 or GSSAPI; with it the connection begins with SASL"},
	{"store", "sasl_user", WORD, IN_STORE(access.sasl_user), 0, 0, "", true,
	 "who this host is to SASL"},
	{"store", "sasl_password_file", PASSWORD_FILE, IN_STORE(access.sasl_password), 0, 0, "",
	 true, "password of the SASL user, in a file of mode 0600"},
	{"store", "sasl_realm", WORD, IN_STORE(access.sasl_realm), 0, 0, "", true,
	 "realm of the SASL user"},
	{"store", "sasl_service", WORD, IN_STORE(access.sasl_service), 0, 0, "", true,
	 "service that the servers are to SASL; zookeeper unless given"},
	{"store", "sasl_host", WORD, IN_STORE(access.sasl_host), 0, 0, "", true,
	 "host that the servers are to SASL; their address unless given"},
	{"store", "etcd_user", WORD, IN_STORE(access.user), 0, 0, "", true,
	 "user that this host is to etcd"},
	{"store", "etcd_password_file", PASSWORD_FILE, IN_STORE(access.password), 0, 0, "", true,
	 "password of the etcd user, in a file of mode 0600"},
	{"store", "redis_user", WORD, IN_STORE(access.redis_user), 0, 0, "", true,
	 "user that this host is to Redis"},
	{"store", "redis_password_file", PASSWORD_FILE, IN_STORE(access.redis_password), 0, 0, "",
	 true, "password of the Redis user, or of Redis itself, in a file of mode 0600"},
	{"store", "sentinel_user", WORD, IN_STORE(access.sentinel_user), 0, 0, "", true,
	 "user that this host is to Redis' Sentinels"},
	{"store", "sentinel_password_file", PASSWORD_FILE, IN_STORE(access.sentinel_password), 0, 0,
	 "", true, "password of that user, or of the Sentinels, in a file of mode 0600"},
	{"store", "redis_replicas", NUMBER, IN_STORE(redis_replicas), 0, 100, "0", true,
	 "so many replicas of a server of Redis must have a lock before it is granted (WAIT)"},
	{"store", "redis_on_disk", YES_OR_NO, IN_STORE(redis_on_disk), 0, 1, "no", true,
	 "a server of Redis, and those replicas, must have a lock on their disks (WAITAOF)"},
	{"store", "retry_delay", DURATION, IN_STORE(contention.retry_delay_ms), 1, MINUTE, "15ms",
	 true, "Redis is asked again for a lock that others hold after so long"},
	{"store", "retry_jitter", DURATION, IN_STORE(contention.retry_jitter_ms), 1, MINUTE, "15ms",
	 true, "and up to so much later, at random"},
	{"store", "turn_grants", NUMBER, IN_STORE(contention.turn_grants), 1, 1000000, "32", true,
	 "a host gives a lock of Redis back to others after so many claims in a row"},
	{"store", "turn_time", DURATION, IN_STORE(contention.turn_time_ms), 1, HOUR, "500ms", true,
	 "or after so long, as soon as its callers are done"},
	{"store", "turn_pause", DURATION, IN_STORE(contention.turn_pause_ms), 1, MINUTE, "120ms",
	 true, "and asks for it again so long after that"},
	{"locks", "wait_limit", DURATION_OR_FOREVER, IN_POLICY(wait_limit_ms), SECOND,
	 CONFIG_FOREVER - 1, "forever", false,
	 "a waiting call fails with ENOLCK after so long without the store"},
	{"locks", "try_limit", DURATION, IN_POLICY(try_limit_ms), 100, HOUR, "5s", false,
	 "a call that does not wait fails with ENOLCK after so long without an answer"},
	{"locks", "try_grace", DURATION_OR_AUTO, IN_POLICY(try_grace_ms), 0, 10 * SECOND, "auto",
	 false, "a call that does not wait gives another host's release so long to arrive"},
	{"locks", "linger", DURATION, IN_POLICY(linger_ms), 0, 10 * SECOND, "50ms", false,
	 "an interrupted waiter keeps its place so long for the restarted call"},
	{"locks", "handoff", NUMBER, IN_POLICY(handoff), 0, 1000000, "0", false,
	 "a claim goes on to so many callers of this host in a row while another host waits"},
	{"locks", "keep", DURATION, IN_POLICY(keep_ms), 0, DAY, "0ms", false,
	 "an unused claim is kept so long, unless another host waits"},
	{"locks", "slots", NUMBER, IN_POLICY(slots), 1, CLAIM_DATA_SLOTS_MAX, "1", false,
	 "so many may hold the lock at once, on all hosts; of flock and open, exclusive ones "
	 "alone"},
	{"locks", "lock_delay", DURATION, IN_POLICY(lock_delay_ms), 0, CONFIG_LOCK_DELAY_MAX_MS,
	 "0ms", false,
	 "nobody gets the lock for so long after its holder was lost without releasing it"},
	{"locks", "min_hold", DURATION, IN_POLICY(min_hold_ms), 0, CONFIG_MIN_HOLD_MAX_MS, "0ms",
	 false, "from a grant on nobody else gets the lock for so long, even if it is released"},
	{"locks", "max_hold", DURATION, IN_POLICY(max_hold_ms), 0, 30 * DAY, "0ms", false,
	 "who holds the lock for so long loses it; 0ms: it may be held for any time"},
	{"locks", "process_ranges", NUMBER, IN_POLICY(process_ranges), 1, PROCESS_RANGES_MAX,
	 "4096", false,
	 "fcntl fails with ENOLCK if the process would hold more byte ranges, in all files"},
	{"locks", "file_ranges", NUMBER, IN_POLICY(file_ranges), 1, FILE_RANGES_MAX, "16384", false,
	 "fcntl fails with ENOLCK if this host would hold more byte ranges in the file"},
	{"locks", "text_limit", NUMBER_OR_AUTO, IN_POLICY(text_limit), 0, CONFIG_TEXT_LIMIT_MAX,
	 "auto", false,
	 "a write that would make the file longer than so many bytes fails with EFBIG"},
	{"locks", "on_lost", EIO_OR_SIGNAL, IN_POLICY(on_lost), 0, 0, "eio", false,
	 "what a process gets that has lost its lock: EIO alone, or this signal too"},
	{"locks", "on_revoke", NONE_OR_SIGNAL, IN_POLICY(on_revoke), 0, 0, "none", false,
	 "the signal for a process that is asked to release its lock, besides POLLPRI"},
	{"locks", "recipe", RECIPE, IN_POLICY(recipe), 0, 0, "curator-rw", false,
	 "which other clients of ZooKeeper or Redis share the lock"},
	{"locks", "exclusive_open", EXCLUSIVE_OPEN, IN_POLICY(exclusive_open), 0, 0, "wait", false,
	 "open(O_CREAT|O_EXCL) waits for the lock, is refused if it is held, or takes no lock"},
	{"locks", "style", STYLE, IN_POLICY(style), 0, 0, "lock", false,
	 "what names in the directory are: locks, or lock files"},
	{"locks", "file_owner", FILE_OWNER, IN_POLICY(file_owner), 0, 0, "host", false,
	 "with style = file: a name goes with its host, or with the process that made it"},
	{"locks", "steal", STEAL, IN_POLICY(steal), 0, 0, "yes", false,
	 "with style = file: names of other hosts can be removed and replaced"},
	{"locks", "owner", USER, IN_POLICY(owner), 0, ACCOUNT_MAX, "creator", false,
	 "the user whose the file is, on all hosts"},
	{"locks", "group", GROUP, IN_POLICY(group), 0, ACCOUNT_MAX, "creator", false,
	 "the group whose the file is"},
	{"locks", "mode", MODE_OR_CREATOR, IN_POLICY(mode), 0, 0777, "creator", false,
	 "permissions of the file, whatever it is created with; to read is to lock"},
};

const size_t config_key_count = sizeof(config_keys) / sizeof(config_keys[0]);

static bool is_of_locks(const struct config_key *key)
{
	return strcmp(key->section, CONFIG_LOCKS_SECTION) == 0;
}

static bool is_of_store(const struct config_key *key)
{
	return strcmp(key->section, CONFIG_STORE_SECTION) == 0;
}

int config_set_key(struct config *config, const struct config_key *key, size_t place,
		   const char *text, char *why, size_t why_bytes)
{
	struct config_section *section;
	int error;

	if (is_of_store(key)) {
		error = config_value_set(key, &config->stores[place], text, why, why_bytes);
		if (!error)
			config->stores[place].set |= CONFIG_KEY_BIT(key);
		return error;
	}
	if (!is_of_locks(key))
		return config_value_set(key, config, text, why, why_bytes);
	section = &config->sections[place];
	error = config_value_set(key, &section->policy, text, why, why_bytes);
	if (!error)
		section->set |= CONFIG_KEY_BIT(key);
	return error;
}

const struct config_key *config_find_key(const char *section, const char *name)
{
	for (size_t i = 0; i < config_key_count; i++) {
		if ((section == NULL || strcmp(config_keys[i].section, section) == 0) &&
		    strcmp(config_keys[i].name, name) == 0)
			return &config_keys[i];
	}
	return NULL;
}

static size_t count_slashes(const char *path)
{
	size_t count = 0;

	for (; *path != '\0'; path++)
		count += *path == '/';
	return count;
}

int config_add_section(struct config *config, const char *pattern, size_t pattern_bytes)
{
	struct config_section section = {0}, *grown;

	if (pattern != NULL) {
		section.pattern = strndup(pattern, pattern_bytes);
		if (section.pattern == NULL)
			return -ENOMEM;
		section.slashes = count_slashes(section.pattern);
	}
	grown = realloc(config->sections, (config->section_count + 1) * sizeof(*grown));
	if (grown == NULL) {
		free(section.pattern);
		return -ENOMEM;
	}
	config->sections = grown;
	config->sections[config->section_count++] = section;
	return 0;
}

int config_add_store(struct config *config, const char *prefix)
{
	struct config_store store = {.prefix = strdup(prefix)}, *grown;

	if (store.prefix == NULL)
		return -ENOMEM;
	grown = realloc(config->stores, (config->store_count + 1) * sizeof(*grown));
	if (grown == NULL) {
		free(store.prefix);
		return -ENOMEM;
	}
	config->stores = grown;
	config->stores[config->store_count++] = store;
	return 0;
}

int config_init(struct config *config)
{
	char why[CONFIG_EXPECTED_BYTES];
	int error;

	*config = (struct config){0};
	error = config_add_store(config, "");
	while (!error && config->section_count < CONFIG_FIRST_PATTERN)
		error = config_add_section(config, NULL, 0);
	for (size_t i = 0; !error && i < config_key_count; i++)
		error = config_set_key(config, &config_keys[i], CONFIG_ALL_LOCKS,
				       config_keys[i].fallback, why, sizeof(why));
	if (error)
		config_finish(config);
	else
		config->stores[0].set = 0;
	return error;
}

void config_finish(struct config *config)
{
	for (size_t i = 0; i < config->section_count; i++)
		free(config->sections[i].pattern);
	free(config->sections);
	for (size_t i = 0; i < config->store_count; i++) {
		free(config->stores[i].prefix);
		store_url_finish(&config->stores[i].url);
		store_access_finish(&config->stores[i].access);
	}
	free(config->stores);
	config_value_free_strings(config->directories);
	free(config->user);
	free(config->peers);
	free(config->text);
	free(config->file);
	*config = (struct config){0};
}

int config_set(struct config *config, const char *key, const char *value, char *why,
	       size_t why_bytes)
{
	const struct config_key *found = config_find_key(NULL, key);
	char detail[CONFIG_WHY_BYTES];
	int error;

	if (found == NULL) {
		snprintf(why, why_bytes, "no such key");
		return -ENOENT;
	}
	if (value == NULL && found->type != YES_OR_NO) {
		config_value_describe(found, detail, sizeof(detail));
		snprintf(why, why_bytes, "no value, expected %s", detail);
		return -EINVAL;
	}
	error = config_set_key(config, found, is_of_locks(found) ? CONFIG_OPTIONS : 0,
			       value != NULL ? value : "yes", detail, sizeof(detail));
	if (error)
		snprintf(why, why_bytes, "%s", error == -ENOMEM ? "out of memory" : detail);
	return error;
}

/* Copies the keys that the section sets into `policy`. */
static void apply_section(struct lock_policy *policy, const struct config_section *section)
{
	for (const struct config_key *key = config_keys; key < config_keys + config_key_count;
	     key++) {
		if (is_of_locks(key) && section->set & CONFIG_KEY_BIT(key))
			memcpy((char *)policy + key->offset,
			       (const char *)&section->policy + key->offset, sizeof(int64_t));
	}
}

/* Whether locks of a store may have it. Without a service it is but a name, and the url may come
 * later. */
static bool has_recipe(const char *scheme, int64_t recipe)
{
	if (recipe == CLAIM_CURATOR_RW || strcmp(scheme, STORE_SCHEME_LOCAL) == 0)
		return true;
	return strcmp(scheme,
		      recipe == CLAIM_REDISSON ? STORE_SCHEME_REDIS : STORE_SCHEME_ZOOKEEPER) == 0;
}

bool config_lacks_recipe(const struct config *config, int64_t *ret)
{
	for (size_t i = 0; i < config->section_count; i++) {
		struct lock_policy policy = {.recipe = CLAIM_CURATOR_RW};
		size_t j = 0;

		apply_section(&policy, &config->sections[i]);
		while (j < config->store_count &&
		       !has_recipe(config->stores[j].url.scheme, policy.recipe))
			j++;
		if (j == config->store_count) {
			*ret = policy.recipe;
			return true;
		}
	}
	return false;
}

void config_explain_recipe(int64_t recipe, char *why, size_t why_bytes)
{
	const char *store = recipe == CLAIM_REDISSON ? "Redis" : "ZooKeeper";

	snprintf(why, why_bytes,
		 "recipe = %s is for %s, expected it left out where %s keeps no locks",
		 claim_recipe_names[recipe], store, store);
}

int config_check(const struct config *config, char *why, size_t why_bytes)
{
	char detail[CONFIG_WHY_BYTES];
	int64_t recipe;
	const char *key;

	for (size_t i = 0; i < config->store_count; i++) {
		const struct config_store *store = &config->stores[i];

		if (store_access_check(&store->access, &store->url, &key, detail, sizeof(detail)))
			continue;
		snprintf(why, why_bytes, "[" CONFIG_STORE_SECTION "%s%s%s]: %s",
			 *store->prefix ? " \"" : "", store->prefix, *store->prefix ? "\"" : "",
			 detail);
		return -EINVAL;
	}
	if (config_lacks_recipe(config, &recipe)) {
		config_explain_recipe(recipe, detail, sizeof(detail));
		snprintf(why, why_bytes, "[locks]: %s", detail);
		return -EINVAL;
	}
	return 0;
}

bool config_has_url(const struct config *config)
{
	const struct config_key *url = config_find_key(CONFIG_STORE_SECTION, "url");

	return config->stores[0].set & CONFIG_KEY_BIT(url);
}

static const struct config_store *find_store(const struct config *config, const char *prefix)
{
	for (size_t i = 0; i < config->store_count; i++) {
		if (strcmp(config->stores[i].prefix, prefix) == 0)
			return &config->stores[i];
	}
	return NULL;
}

/* Calls on_fixed() for each fixed key of the store that has another value in `others`, or if the
 * store is not there. */
static void compare_store(const struct config_store *store, const struct config *others,
			  void (*on_fixed)(const char *section, const char *key))
{
	const struct config_store *other = find_store(others, store->prefix);
	char section[CONFIG_WHY_BYTES];

	if (*store->prefix)
		snprintf(section, sizeof(section), CONFIG_STORE_SECTION " \"%s\"", store->prefix);
	else
		snprintf(section, sizeof(section), CONFIG_STORE_SECTION);
	if (other == NULL)
		on_fixed(section, "url");
	for (const struct config_key *key = config_keys;
	     other != NULL && key < config_keys + config_key_count; key++) {
		if (is_of_store(key) && !config_value_equal(key, store, other))
			on_fixed(section, key->name);
	}
}

static void swap(void *a, void *b, size_t bytes)
{
	char kept[bytes];

	memcpy(kept, a, bytes);
	memcpy(a, b, bytes);
	memcpy(b, kept, bytes);
}

void config_reload(struct config *config, struct config *fresh,
		   void (*on_fixed)(const char *section, const char *key))
{
	for (const struct config_key *key = config_keys; key < config_keys + config_key_count;
	     key++) {
		void *old = (char *)config + key->offset, *new = (char *)fresh + key->offset;

		if (is_of_locks(key) || is_of_store(key))
			continue;
		if (!key->fixed)
			swap(old, new, config_value_bytes(key));
		else if (!config_value_equal(key, config, fresh))
			on_fixed(key->section, key->name);
	}
	for (size_t i = 0; i < config->store_count; i++)
		compare_store(&config->stores[i], fresh, on_fixed);
	for (size_t i = 0; i < fresh->store_count; i++) {
		if (find_store(config, fresh->stores[i].prefix) == NULL)
			compare_store(&fresh->stores[i], config, on_fixed);
	}
	swap(&config->sections, &fresh->sections, sizeof(config->sections));
	swap(&config->section_count, &fresh->section_count, sizeof(config->section_count));
	swap(&config->text, &fresh->text, sizeof(config->text));
	swap(&config->text_bytes, &fresh->text_bytes, sizeof(config->text_bytes));
	swap(&config->file, &fresh->file, sizeof(config->file));
	config->file_time = fresh->file_time;
	config_finish(fresh);
}

/* A section with STYLE_FILE matches a directory, and all that is in it. */
static bool section_matches(const struct config_section *section, const char *path, size_t slashes)
{
	if (section->policy.style == STYLE_FILE)
		return fnmatch(section->pattern, path, FNM_PATHNAME | FNM_LEADING_DIR) == 0;
	return slashes <= section->slashes && fnmatch(section->pattern, path, FNM_PATHNAME) == 0;
}

struct lock_policy config_policy(const struct config *config, const char *path)
{
	struct lock_policy policy = config->sections[CONFIG_ALL_LOCKS].policy;
	size_t slashes = count_slashes(path);

	for (size_t i = CONFIG_FIRST_PATTERN; i < config->section_count; i++) {
		const struct config_section *section = &config->sections[i];

		if (section_matches(section, path, slashes))
			apply_section(&policy, section);
	}
	apply_section(&policy, &config->sections[CONFIG_OPTIONS]);
	return policy;
}

int64_t config_text_limit(const struct lock_policy *policy)
{
	if (policy->text_limit != CONFIG_AUTO)
		return policy->text_limit;
	return policy->style == STYLE_FILE ? CONFIG_TEXT_LIMIT_FILE : CONFIG_TEXT_LIMIT_LOCK;
}

size_t config_slashes_max(const struct config *config)
{
	size_t max = 0;

	for (size_t i = CONFIG_FIRST_PATTERN; i < config->section_count; i++) {
		if (config->sections[i].slashes > max)
			max = config->sections[i].slashes;
	}
	return max;
}

bool config_has_files(const struct config *config)
{
	for (size_t i = 0; i < config->section_count; i++) {
		if (config->sections[i].policy.style == STYLE_FILE)
			return true;
	}
	return false;
}

bool config_has_access(const struct config *config)
{
	struct lock_policy policy;

	for (size_t i = 0; i < config->section_count; i++) {
		policy = (struct lock_policy){
			.owner = CONFIG_CREATOR, .group = CONFIG_CREATOR, .mode = CONFIG_CREATOR};
		apply_section(&policy, &config->sections[i]);
		if (policy.owner != CONFIG_CREATOR || policy.group != CONFIG_CREATOR ||
		    policy.mode != CONFIG_CREATOR)
			return true;
	}
	return false;
}

bool config_has_remains(const struct config *config)
{
	for (size_t i = 0; i < config->section_count; i++) {
		struct lock_policy policy = {0};
		apply_section(&policy, &config->sections[i]);
		if (policy.lock_delay_ms > 0 || policy.min_hold_ms > 0)
			return true;
	}
	return false;
}

/* Whether `above` is `path`, or a path above it. */
static bool is_at_or_above(const char *above, const char *path)
{
	size_t bytes = strlen(above);

	return bytes == 0 ||
	       (strncmp(above, path, bytes) == 0 && (path[bytes] == '/' || path[bytes] == '\0'));
}

size_t config_store_of(const struct config *config, const char *path)
{
	size_t found = 0;

	for (size_t i = 1; i < config->store_count; i++) {
		const char *prefix = config->stores[i].prefix;

		if (is_at_or_above(prefix, path) &&
		    strlen(prefix) > strlen(config->stores[found].prefix))
			found = i;
	}
	return found;
}

bool config_leads_to_store(const struct config *config, const char *path)
{
	for (size_t i = 1; i < config->store_count; i++) {
		if (is_at_or_above(path, config->stores[i].prefix))
			return true;
	}
	return false;
}

static int64_t own_or(int64_t own, int64_t fallback)
{
	return own > 0 ? own : fallback;
}

int64_t config_session_timeout_ms(const struct config *config, size_t store)
{
	return own_or(config->stores[store].session_timeout_ms,
		      config->stores[0].session_timeout_ms);
}

bool config_has_new_root(const struct config *config, size_t store)
{
	return config->stores[store].new_root || config->stores[0].new_root;
}

struct store_contention config_contention(const struct config *config, size_t store)
{
	const struct store_contention *all = &config->stores[0].contention;
	const struct store_contention *own = &config->stores[store].contention;

	return (struct store_contention){
		.retry_delay_ms = own_or(own->retry_delay_ms, all->retry_delay_ms),
		.retry_jitter_ms = own_or(own->retry_jitter_ms, all->retry_jitter_ms),
		.turn_grants = own_or(own->turn_grants, all->turn_grants),
		.turn_time_ms = own_or(own->turn_time_ms, all->turn_time_ms),
		.turn_pause_ms = own_or(own->turn_pause_ms, all->turn_pause_ms),
	};
}

void config_describe(FILE *out)
{
	char setting[CONFIG_EXPECTED_BYTES], expected[CONFIG_EXPECTED_BYTES];
	const char *section = "";

	for (const struct config_key *key = config_keys; key < config_keys + config_key_count;
	     key++) {
		if (strcmp(key->section, section) != 0)
			fprintf(out, "[%s]\n", key->section);
		section = key->section;
		snprintf(setting, sizeof(setting), "%s = %s", key->name, key->fallback);
		config_value_describe(key, expected, sizeof(expected));
		fprintf(out, "  %-24s  %s\n      %s\n", setting, expected, key->meaning);
	}
}
