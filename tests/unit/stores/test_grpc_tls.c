/* SPDX-License-Identifier: Apache-2.0
 *
 * gRPC over TLS: who is trusted, who we are, and what is said when that does not fit.
 */
#include "grpc_fixture.h"

#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <openssl/pem.h>
#include <openssl/x509v3.h>

static char folder[] = "/tmp/dlockfs-test-tls.XXXXXX";
static EVP_PKEY *server_key, *client_key;
static X509 *server_certificate, *wrong_certificate, *nameless_certificate, *client_certificate;
static struct told told;

/* The path of a file in the folder; valid until the fourth call from now. */
static char *path(const char *name)
{
	static char paths[4][128];
	static unsigned next;
	char *result = paths[next++ % 4];

	snprintf(result, sizeof(paths[0]), "%s/%s", folder, name);
	return result;
}

/* A certificate for the host, signed by its own key, which those who trust it have as CA. */
static X509 *make_certificate(EVP_PKEY *key, const char *name, const char *alternative)
{
	X509 *certificate = X509_new();
	X509_EXTENSION *extension;

	X509_set_version(certificate, X509_VERSION_3);
	X509_gmtime_adj(X509_getm_notBefore(certificate), -60);
	X509_gmtime_adj(X509_getm_notAfter(certificate), 3600);
	X509_set_pubkey(certificate, key);
	X509_NAME_add_entry_by_txt(X509_get_subject_name(certificate), "CN", MBSTRING_ASC,
				   (const unsigned char *)name, -1, -1, 0);
	X509_set_issuer_name(certificate, X509_get_subject_name(certificate));
	extension = X509V3_EXT_conf_nid(NULL, NULL, NID_subject_alt_name, alternative);
	assert_non_null(extension);
	X509_add_ext(certificate, extension, -1);
	X509_EXTENSION_free(extension);
	assert_true(X509_sign(certificate, key, EVP_sha256()) > 0);
	return certificate;
}

static void put_certificate(const char *name, X509 *certificate)
{
	FILE *out = fopen(path(name), "w");

	assert_non_null(out);
	assert_int_equal(PEM_write_X509(out, certificate), 1);
	assert_int_equal(fclose(out), 0);
}

static void put_key(const char *name, EVP_PKEY *key, const char *password)
{
	FILE *out = fopen(path(name), "w");

	assert_non_null(out);
	assert_int_equal(PEM_write_PKCS8PrivateKey(out, key, password ? EVP_aes_128_cbc() : NULL,
						   password, password ? (int)strlen(password) : 0,
						   NULL, NULL),
			 1);
	assert_int_equal(fclose(out), 0);
}

static int make_files(void **state)
{
	FILE *out;

	if (!mkdtemp(folder))
		return -1;
	server_key = EVP_EC_gen("P-256");
	client_key = EVP_EC_gen("P-256");
	server_certificate =
		make_certificate(server_key, "server", "IP:127.0.0.1,IP:::1,DNS:localhost");
	wrong_certificate = make_certificate(server_key, "localhost", "IP:127.0.0.2,DNS:elsewhere");
	nameless_certificate = make_certificate(server_key, "localhost", "IP:127.0.0.1");
	client_certificate = make_certificate(client_key, "client", "DNS:client");
	put_certificate("ca", server_certificate);
	put_certificate("wrong", wrong_certificate);
	put_certificate("nameless", nameless_certificate);
	put_certificate("client", client_certificate);
	put_key("key", client_key, NULL);
	put_key("locked", client_key, "password");
	out = fopen(path("password"), "w");
	assert_non_null(out);
	assert_int_equal(fchmod(fileno(out), 0600), 0);
	fputs("password\n", out);
	return fclose(out);
}

static int remove_files(void **state)
{
	static const char *const names[] = {"ca",  "wrong",  "nameless", "client",
					    "key", "locked", "password"};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		unlink(path(names[i]));
	X509_free(server_certificate);
	X509_free(wrong_certificate);
	X509_free(wrong_certificate);
	X509_free(nameless_certificate);
	X509_free(client_certificate);
	EVP_PKEY_free(server_key);
	EVP_PKEY_free(client_key);
	return rmdir(folder);
}

static int choose_http2(SSL *session, const unsigned char **out, unsigned char *out_bytes,
			const unsigned char *in, unsigned in_bytes, void *context)
{
	static const unsigned char http2[] = "\2h2";

	return SSL_select_next_proto((unsigned char **)out, out_bytes, http2, 3, in, in_bytes) ==
			       OPENSSL_NPN_NEGOTIATED
		       ? SSL_TLSEXT_ERR_OK
		       : SSL_TLSEXT_ERR_NOACK;
}

/* The first server is by TLS, with that certificate, for clients whose certificate it trusts. */
static void serve(X509 *certificate, X509 *trusted)
{
	server.tls = SSL_CTX_new(TLS_server_method());
	SSL_CTX_set_verify(server.tls, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, NULL);
	SSL_CTX_set_alpn_select_cb(server.tls, choose_http2, NULL);
	assert_int_equal(SSL_CTX_use_certificate(server.tls, certificate), 1);
	assert_int_equal(SSL_CTX_use_PrivateKey(server.tls, server_key), 1);
	assert_int_equal(X509_STORE_add_cert(SSL_CTX_get_cert_store(server.tls), trusted), 1);
	access_of_test = (struct store_access){.tls_ca = strdup(path("ca")),
					       .tls_certificate = strdup(path("client")),
					       .tls_key = strdup(path("key"))};
}

static int finish(void **state)
{
	int error = fixture_end(state);

	store_access_finish(&access_of_test);
	return error;
}

static void set_file(char **file, const char *name)
{
	free(*file);
	*file = strdup(path(name));
}

static void exchange(void)
{
	size_t number = server.count;

	fixture_call(&told, "question", 0);
	grpc_flush(grpc);
	WAIT_UNTIL(server.count == number + 1 && server.streams[number].body_bytes == 13);
	http2_double_message(&server, &server.streams[number], "answer", 6);
	http2_double_end(&server, &server.streams[number], "0", "");
	WAIT_UNTIL(told.ends == 1);
	assert_int_equal(told.status, GRPC_OK);
}

static void test_good(void **state)
{
	static uint8_t message[3 * 1000 * 1000];

	serve(server_certificate, client_certificate);
	fixture_connect(5000);
	exchange();
	assert_int_equal(SSL_version(server.tls_session), TLS1_3_VERSION);
	/* Longer ones, both ways. */
	fixture_call_bytes(&told, message, sizeof(message), 0);
	grpc_flush(grpc);
	WAIT_UNTIL(server.received >= sizeof(message));
	http2_double_message(&server, &server.streams[1], message, sizeof(message));
	http2_double_end(&server, &server.streams[1], "0", "");
	WAIT_UNTIL(told.ends == 1);
	assert_int_equal(told.status, GRPC_OK);
	assert_int_equal(told.bytes, sizeof(message));
}

static void test_password(void **state)
{
	char why[256];

	serve(server_certificate, client_certificate);
	set_file(&access_of_test.tls_key, "locked");
	assert_int_equal(secret_read(path("password"), SECRET_PASSWORD,
				     &access_of_test.tls_password.secret, why, sizeof(why)),
			 0);
	fixture_connect(5000);
	exchange();
}

/* By name: the names of the certificate count, not its address. */
static void test_name(void **state)
{
	char servers[64];

	serve(server_certificate, client_certificate);
	snprintf(servers, sizeof(servers), "localhost:%u", server.port);
	fixture_create(servers, 5000);
	WAIT_UNTIL(connected == 1);
	exchange();
}

static void expect_failure(const char *text)
{
	fixture_create(NULL, 5000);
	WAIT_UNTIL(disconnected == 1);
	if (!strstr(why_lost, text))
		fail_msg("%s, expected %s", why_lost, text);
	assert_int_equal(connected, 0);
}

static void test_unknown_server(void **state)
{
	serve(server_certificate, client_certificate);
	set_file(&access_of_test.tls_ca, "client");
	expect_failure(": TLS: the server's certificate is refused: self-signed certificate");
}

static void test_wrong_host(void **state)
{
	serve(wrong_certificate, client_certificate);
	set_file(&access_of_test.tls_ca, "wrong");
	expect_failure(": TLS: the server's certificate is refused: IP address mismatch");
}

/* What a certificate says of its subject is no name of a host, whether it has names or not. */
static void test_subject(void **state)
{
	static const char *const names[] = {"wrong", "nameless"};
	X509 *const certificates[] = {wrong_certificate, nameless_certificate};
	char servers[64];

	serve(wrong_certificate, client_certificate);
	for (size_t i = 0; i < 2; i++) {
		assert_int_equal(SSL_CTX_use_certificate(server.tls, certificates[i]), 1);
		set_file(&access_of_test.tls_ca, names[i]);
		snprintf(servers, sizeof(servers), "localhost:%u", server.port);
		fixture_create(servers, 5000);
		WAIT_UNTIL(disconnected == 1);
		assert_non_null(strstr(
			why_lost, ": TLS: the server's certificate is refused: hostname mismatch"));
		if (i == 0)
			grpc_destroy(grpc);
		disconnected = 0;
	}
	assert_int_equal(connected, 0);
}

static void test_unknown_client(void **state)
{
	serve(server_certificate, server_certificate);
	expect_failure(": TLS: the server refuses us: unknown ca");
}

static void test_no_client(void **state)
{
	serve(server_certificate, client_certificate);
	free(access_of_test.tls_certificate);
	free(access_of_test.tls_key);
	access_of_test.tls_certificate = access_of_test.tls_key = NULL;
	expect_failure(
		": TLS: the server refuses us: certificate required; tls_certificate is not set");
}

static void test_old_version(void **state)
{
	serve(server_certificate, client_certificate);
	SSL_CTX_set_security_level(server.tls, 0);
	SSL_CTX_set_max_proto_version(server.tls, TLS1_1_VERSION);
	expect_failure(": TLS: ");
}

static void test_no_http2(void **state)
{
	serve(server_certificate, client_certificate);
	SSL_CTX_set_alpn_select_cb(server.tls, NULL, NULL);
	expect_failure(": TLS: the server does not offer h2");
}

static void test_no_tls(void **state)
{
	serve(server_certificate, client_certificate);
	SSL_CTX_free(server.tls);
	server.tls = NULL;
	expect_failure(
		": the server answers without TLS, expected its port by TLS, or none in [store]");
}

static void test_plain(void **state)
{
	serve(server_certificate, client_certificate);
	store_access_finish(&access_of_test);
	expect_failure("(is it by TLS?)");
}

static void test_bad_files(void **state)
{
	serve(server_certificate, client_certificate);
	set_file(&access_of_test.tls_ca, "none");
	expect_failure("/none: No such file or directory");
	grpc_destroy(grpc);
	disconnected = 0;
	set_file(&access_of_test.tls_ca, "ca");
	set_file(&access_of_test.tls_certificate, "key");
	expect_failure("/key: no start line");
	grpc_destroy(grpc);
	disconnected = 0;
	set_file(&access_of_test.tls_certificate, "ca");
	expect_failure("/key: key values mismatch");
}

/* Certificates are renewed: what was refused is not, with the next connection. */
static void test_renewed(void **state)
{
	serve(server_certificate, client_certificate);
	put_certificate("ca", client_certificate);
	expect_failure("certificate is refused");
	put_certificate("ca", server_certificate);
	WAIT_UNTIL(connected == 1);
	exchange();
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, fixture_begin, finish)
	const struct CMUnitTest tests[] = {
		TEST(test_good),	   TEST(test_password),	   TEST(test_name),
		TEST(test_unknown_server), TEST(test_wrong_host),  TEST(test_unknown_client),
		TEST(test_no_client),	   TEST(test_old_version), TEST(test_no_http2),
		TEST(test_no_tls),	   TEST(test_plain),	   TEST(test_bad_files),
		TEST(test_renewed),	   TEST(test_subject),
	};

	return cmocka_run_group_tests(tests, make_files, remove_files);
}
