/* SPDX-License-Identifier: Apache-2.0
 *
 * TLS and SASL as a library that has them is asked for them, and the keys for them in the
 * configuration of such a build: with a double in place of that library.
 */
#include "zookeeper_double.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>
#include <openssl/pem.h>
#include <openssl/x509.h>

#include "config/config.h"
#include "stores/zookeeper/session/client.h"

static char folder[] = "/tmp/dlockfs-test-client.XXXXXX";
static struct config config;
static char why[512];

/* The path of a file in the folder; valid until the fourth call from now. */
static const char *path(const char *name)
{
	static char paths[4][128];
	static unsigned next;
	char *result = paths[next++ % 4];

	snprintf(result, sizeof(paths[0]), "%s/%s", folder, name);
	return result;
}

static FILE *create(const char *name, mode_t mode)
{
	FILE *out = fopen(path(name), "w");

	assert_non_null(out);
	assert_int_equal(chmod(path(name), mode), 0);
	return out;
}

static void put(const char *name, mode_t mode, const char *text)
{
	FILE *out = create(name, mode);

	assert_true(fputs(text, out) >= 0);
	assert_int_equal(fclose(out), 0);
}

static void put_key(const char *name, EVP_PKEY *key, const char *password)
{
	FILE *out = create(name, 0600);

	assert_int_equal(PEM_write_PKCS8PrivateKey(out, key, password ? EVP_aes_128_cbc() : NULL,
						   password, password ? (int)strlen(password) : 0,
						   NULL, NULL),
			 1);
	assert_int_equal(fclose(out), 0);
}

/* A certificate that is signed by its own key; keys, one with a password; and one of another. */
static int put_files(void **state)
{
	EVP_PKEY *key = EVP_EC_gen("P-256"), *other = EVP_EC_gen("P-256");
	X509 *certificate = X509_new();
	FILE *out;

	if (!mkdtemp(folder))
		return -1;
	X509_gmtime_adj(X509_getm_notBefore(certificate), 0);
	X509_gmtime_adj(X509_getm_notAfter(certificate), 3600);
	X509_set_pubkey(certificate, key);
	assert_true(X509_sign(certificate, key, EVP_sha256()) > 0);
	out = create("certificate", 0644);
	assert_int_equal(PEM_write_X509(out, certificate), 1);
	assert_int_equal(fclose(out), 0);
	put_key("key", key, NULL);
	put_key("locked", key, "word");
	put_key("other", other, NULL);
	put("word", 0600, "word\n");
	put("comma", 0600, "wo,rd");
	X509_free(certificate);
	EVP_PKEY_free(key);
	EVP_PKEY_free(other);
	return 0;
}

static int remove_files(void **state)
{
	static const char *const names[] = {"certificate", "key",  "locked",
					    "other",	   "word", "comma"};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		unlink(path(names[i]));
	return rmdir(folder);
}

static int begin(void **state)
{
	double_call = (struct double_call){0};
	return config_init(&config) < 0 ||
	       config_set(&config, "url", "zookeeper://a", why, sizeof(why)) < 0;
}

static int end(void **state)
{
	config_finish(&config);
	return 0;
}

static void set(const char *key, const char *value)
{
	int error = config_set(&config, key, value, why, sizeof(why));

	if (error)
		print_message("%s\n", why);
	assert_int_equal(error, 0);
}

static void set_bad(const char *key, const char *value, const char *expected)
{
	assert_int_equal(config_set(&config, key, value, why, sizeof(why)), -EINVAL);
	assert_non_null(strstr(why, expected));
}

static void check_bad(const char *expected)
{
	assert_int_equal(config_check(&config, why, sizeof(why)), -EINVAL);
	assert_non_null(strstr(why, expected));
}

/* Makes a handle as the configuration says. Returns what errno was if that failed. */
static int open_handle(struct zookeeper_client **ret)
{
	static int context;
	zhandle_t *handle;

	assert_int_equal(config_check(&config, why, sizeof(why)), 0);
	assert_int_equal(zookeeper_client_create(&config.stores[0].access, ret), 0);
	handle = zookeeper_client_open(*ret, "a:1,b:2", NULL, 4000, NULL, &context);
	if (!handle)
		return errno;
	assert_ptr_equal(double_call.context, &context);
	assert_string_equal(double_call.servers, "a:1,b:2");
	assert_int_equal(double_call.timeout_ms, 4000);
	assert_true(double_call.logs);
	return 0;
}

static void set_tls(const char *key)
{
	set("tls_ca", path("certificate"));
	set("tls_certificate", path("certificate"));
	set("tls_key", path(key));
}

static void test_plain(void **state)
{
	struct zookeeper_client *client;

	assert_int_equal(open_handle(&client), 0);
	assert_string_equal(double_call.function, "zookeeper_init2");
	zookeeper_client_destroy(client);
}

static void test_tls(void **state)
{
	struct zookeeper_client *client;
	char expected[512];

	set_tls("key");
	assert_int_equal(open_handle(&client), 0);
	zookeeper_client_destroy(client);
	assert_string_equal(double_call.function, "zookeeper_init_ssl");
	snprintf(expected, sizeof(expected), "%s,%s,%s,none", path("certificate"),
		 path("certificate"), path("key"));
	assert_string_equal(double_call.certificates, expected);

	set_tls("locked");
	set("tls_password_file", path("word"));
	assert_int_equal(open_handle(&client), 0);
	zookeeper_client_destroy(client);
	snprintf(expected, sizeof(expected), "%s,%s,%s,word", path("certificate"),
		 path("certificate"), path("locked"));
	assert_string_equal(double_call.certificates, expected);
}

/* What the library would try without a pause does not get to it. */
static void test_unusable_tls(void **state)
{
	struct zookeeper_client *client;

	set_tls("other");
	assert_int_equal(open_handle(&client), EINVAL);
	zookeeper_client_destroy(client);
	set_tls("locked"); /* without its password */
	assert_int_equal(open_handle(&client), EINVAL);
	zookeeper_client_destroy(client);
	set_tls("key");
	set("tls_ca", path("word"));
	assert_int_equal(open_handle(&client), EINVAL);
	zookeeper_client_destroy(client);
	assert_null(double_call.function);
}

static void test_sasl(void **state)
{
	const struct store_access *access = &config.stores[0].access;
	const sasl_callback_t *callback;
	struct zookeeper_client *client;
	sasl_secret_t *password = NULL;
	const char *result = NULL;
	unsigned bytes = 0;

	set("sasl_mechanism", "DIGEST-MD5");
	set("sasl_user", "hosts");
	set("sasl_realm", "realm");
	set("sasl_host", "zk-sasl-md5");
	set("sasl_password_file", path("word"));
	assert_true(store_access_has_identity(access));
	assert_int_equal(open_handle(&client), 0);
	assert_string_equal(double_call.function, "zookeeper_init_sasl");
	assert_string_equal(double_call.mechanisms, "DIGEST-MD5");
	assert_string_equal(double_call.service, "zookeeper");
	assert_string_equal(double_call.host, "zk-sasl-md5");
	for (callback = double_call.callbacks; callback->id != SASL_CB_LIST_END; callback++) {
		void (*proc)(void) = (void (*)(void))callback->proc;

		switch (callback->id) {
		case SASL_CB_USER:
		case SASL_CB_AUTHNAME:
			assert_int_equal(((sasl_getsimple_t *)proc)(callback->context,
								    (int)callback->id, &result,
								    &bytes),
					 SASL_OK);
			assert_string_equal(result, "hosts");
			assert_int_equal(bytes, 5);
			break;
		case SASL_CB_GETREALM:
			assert_int_equal(((sasl_getrealm_t *)proc)(callback->context,
								   SASL_CB_GETREALM, NULL, &result),
					 SASL_OK);
			assert_string_equal(result, "realm");
			break;
		case SASL_CB_PASS:
			assert_int_equal(((sasl_getsecret_t *)proc)(NULL, callback->context,
								    SASL_CB_PASS, &password),
					 SASL_OK);
			assert_int_equal(password->len, 4);
			assert_memory_equal(password->data, "word", 4);
			break;
		default:
			fail();
		}
	}
	assert_int_equal(callback - double_call.callbacks, 4);
	zookeeper_client_destroy(client);
}

static void test_bad_keys(void **state)
{
	set_bad("tls_ca", "certificate", "it is relative, expected the absolute path");
	set_bad("tls_ca", "/none/x", "No such file or directory, expected the absolute path");
	set_bad("tls_ca", "/dev/null", "it is no plain file, expected");
	set_bad("tls_certificate", "/a,b", "it has a comma in its name, expected");
	set_bad("tls_key", path("certificate"), "lets others use it, expected 0600");
	set_bad("sasl_password_file", path("certificate"), "its mode 0644 lets others use it");
}

static void test_what_goes_together(void **state)
{
	set("tls_ca", path("certificate"));
	check_bad("[store]: not all of tls_ca, tls_certificate and tls_key, expected all or none");
	set_tls("locked");
	set("tls_password_file", path("comma"));
	check_bad("a password with a comma in tls_password_file, expected");
	set("tls_password_file", "");
	set("sasl_mechanism", "GSSAPI");
	check_bad("tls_ca and sasl_mechanism, expected one of them");
	set("sasl_mechanism", "");
	set("sasl_user", "x");
	check_bad("a key for SASL without sasl_mechanism, expected it as well");
	set("sasl_user", "");
	assert_int_equal(config_check(&config, why, sizeof(why)), 0);
	set("tls_ca", "");
	set("tls_certificate", "");
	set("tls_key", "");
	set("tls_password_file", path("word"));
	check_bad("tls_password_file without tls_key, expected it as well");
}

static void test_copy(void **state)
{
	struct store_access copy;

	set_tls("locked");
	set("tls_password_file", path("word"));
	assert_int_equal(store_access_copy(&copy, &config.stores[0].access), 0);
	config_finish(&config);
	assert_string_equal(copy.tls_key, path("locked"));
	assert_string_equal(secret_next(copy.tls_password.secret, NULL), "word");
	assert_null(copy.sasl_user);
	store_access_finish(&copy);
	assert_null(copy.tls_key);
}

#define CLIENT_TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CLIENT_TEST(test_plain),	CLIENT_TEST(test_tls),
		CLIENT_TEST(test_unusable_tls), CLIENT_TEST(test_sasl),
		CLIENT_TEST(test_bad_keys),	CLIENT_TEST(test_what_goes_together),
		CLIENT_TEST(test_copy),
	};

	return cmocka_run_group_tests(tests, put_files, remove_files);
}
