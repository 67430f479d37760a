/* SPDX-License-Identifier: Apache-2.0
 *
 * What other clients of ZooKeeper do. What is created is left to the server's reaper.
 */
#include "zookeeper_fixture.h"

zhandle_t *raw;

const char *znode(const char *path)
{
	static char text[512];

	snprintf(text, sizeof(text), "%s/%s", top, path);
	return text;
}

static const char *child(const char *path, const char *name)
{
	static char text[512];

	snprintf(text, sizeof(text), "%s/%s/%s", top, path, name);
	return text;
}

static void begin(void)
{
	zoo_set_debug_level(ZOO_LOG_LEVEL_WARN);
	raw = zookeeper_init(server, NULL, TIMEOUT_MS * 4, NULL, NULL, ZOO_NO_LOG_CLIENTENV);
}

static void end(void)
{
	zookeeper_close(raw);
}

static void make_claim(const char *path, enum claim_mode mode)
{
	const char *name = mode == CLAIM_SHARED ? "_c_9b2d3c1e-6f0a-4d5b-8c7d-0123456789ab-__READ__"
						: "_c_9b2d3c1e-6f0a-4d5b-8c7d-0123456789ab-lock-";

	assert_int_equal(zoo_create(raw, child(path, name), "", 0, &ZOO_OPEN_ACL_UNSAFE,
				    ZOO_EPHEMERAL_SEQUENTIAL, NULL, 0),
			 ZOK);
}

static void make_other(const char *path, const char *name)
{
	assert_int_equal(
		zoo_create(raw, child(path, name), "", 0, &ZOO_OPEN_ACL_UNSAFE, 0, NULL, 0), ZOK);
}

static void remove_child(const char *path, const char *name)
{
	assert_int_equal(zoo_delete(raw, child(path, name), -1), ZOK);
}

static void change(const char *path, const char *name, const void *data, size_t bytes)
{
	assert_int_equal(zoo_set(raw, child(path, name), data, data ? (int)bytes : -1, -1), ZOK);
}

static size_t count(const char *path)
{
	struct String_vector names;
	size_t number;

	assert_int_equal(zoo_get_children(raw, znode(path), 0, &names), ZOK);
	number = (size_t)names.count;
	deallocate_String_vector(&names);
	return number;
}

static uint64_t make_file(const char *path, bool lockfile)
{
	char *file = znode_path_encode(top, path);

	assert_non_null(file);
	assert_int_equal(zoo_create(raw, file, "", 0, &ZOO_OPEN_ACL_UNSAFE,
				    lockfile ? 0 : ZOO_EPHEMERAL, NULL, 0),
			 ZOK);
	free(file);
	return lockfile ? 0 : (uint64_t)zoo_client_id(raw)->client_id;
}

const struct backend backend_zookeeper = {
	.scheme = STORE_SCHEME_ZOOKEEPER,
	.begin = begin,
	.end = end,
	.make_claim = make_claim,
	.make_other = make_other,
	.remove_other = remove_child,
	.change = change,
	.remove = remove_child,
	.count = count,
	.make_file = make_file,
};
