/* SPDX-License-Identifier: Apache-2.0
 *
 * What other clients of etcd do, by etcdctl.
 */
#include "etcd_fixture.h"

#include "store_program.h"

bool etcdctl_may_fail;

const char *etcdctl_with(const char *input, size_t bytes, const char *const *given)
{
	const char *argv[16] = {"etcdctl"};

	for (int words = 1; given[words - 1] && words < 15; words++)
		argv[words] = given[words - 1];
	return run_program(argv, input, bytes, etcdctl_may_fail);
}

const char *key_of(const char *path)
{
	static char text[1024];

	snprintf(text, sizeof(text), "%s/%s", top, path);
	return text;
}

const char *grant_lease(const char *seconds)
{
	static char lease[17];

	assert_int_equal(sscanf(etcdctl("lease", "grant", seconds), "lease %16s granted", lease),
			 1);
	return lease;
}

static void begin(void)
{
	char endpoint[256];

	snprintf(endpoint, sizeof(endpoint), "http://%s", server);
	setenv("ETCDCTL_ENDPOINTS", endpoint, 1);
	setenv("ETCDCTL_API", "3", 1);
}

static void end(void)
{
}

static void make_claim(const char *path, enum claim_mode mode)
{
	static int number;
	char key[2048], option[64];
	const char *lease = grant_lease("60");

	snprintf(option, sizeof(option), "--lease=%s", lease);
	if (mode == CLAIM_SHARED)
		snprintf(key, sizeof(key), "%s/read/%d", key_of(path), number++);
	else
		snprintf(key, sizeof(key), "%s/%s", key_of(path), lease);
	etcdctl("put", option, key, "");
}

static const char *child(const char *path, const char *name)
{
	static char key[2048];

	snprintf(key, sizeof(key), "%s/%s", key_of(path), name);
	return key;
}

static void make_other(const char *path, const char *name)
{
	etcdctl("put", child(path, name), "");
}

static void remove_other(const char *path, const char *name)
{
	etcdctl("del", child(path, name));
}

static void change(const char *path, const char *name, const void *data, size_t bytes)
{
	struct etcd_named claim = etcd_key_of_claim(top, path, name);
	struct etcd_key key;

	assert_non_null(claim.key.bytes);
	assert_true(etcd_key_of_data(&key, &claim.key));
	if (bytes > 0)
		etcdctl_with(data, bytes, ETCDCTL_WORDS("put", key.bytes));
	else
		etcdctl("put", key.bytes, "");
	free(claim.key.bytes);
	free(key.bytes);
}

static void remove_claim(const char *path, const char *name)
{
	struct etcd_named claim = etcd_key_of_claim(top, path, name);

	assert_non_null(claim.key.bytes);
	etcdctl("del", claim.key.bytes);
	free(claim.key.bytes);
}

static size_t count_keys(const char *prefix)
{
	const char *at = etcdctl("get", "--prefix", "--keys-only", prefix);
	size_t number = 0;

	for (; (at = strchr(at, '/')); number++) {
		size_t bytes = strcspn(at, "\n");

		number -= etcd_key_is_data(at, bytes); /* it goes with another one */
		at += bytes;
	}
	return number;
}

static size_t count(const char *path)
{
	char prefix[512];

	snprintf(prefix, sizeof(prefix), "%s%sheld/%s/", top, ETCD_PRIVATE, path);
	return count_keys(child(path, "")) + count_keys(prefix);
}

static uint64_t make_file(const char *path, bool lockfile)
{
	struct etcd_key key;
	char option[32];
	const char *lease = lockfile ? "0" : grant_lease("60");

	assert_true(etcd_key_of_file(&key, top, path));
	snprintf(option, sizeof(option), "--lease=%s", lease);
	etcdctl("put", option, key.bytes, "");
	free(key.bytes);
	return strtoull(lease, NULL, 16);
}

const struct backend backend_etcd = {
	.scheme = STORE_SCHEME_ETCD,
	.begin = begin,
	.end = end,
	.make_claim = make_claim,
	.make_other = make_other,
	.remove_other = remove_other,
	.change = change,
	.remove = remove_claim,
	.count = count,
	.make_file = make_file,
};

bool is_connected_by(struct host *host, const char *address)
{
	char text[256];
	const char *at;

	host->store->ops->describe(host->store, text, sizeof(text));
	at = strstr(text, "connected to");
	return at && strstr(at, address);
}

struct host *open_host_by_proxy(int i)
{
	char servers[128];
	struct host *host;

	snprintf(servers, sizeof(servers), "%s,%s", proxy.address, server);
	host = open_host(i, servers);
	for (int attempt = 0; !is_connected_by(host, proxy.address); attempt++) {
		assert_true(attempt < 20);
		host->store->ops->nudge(host->store);
		WAIT_FOR(host->session == STORE_SUSPENDED);
		WAIT_FOR(host->session == STORE_CONNECTED);
	}
	return host;
}
