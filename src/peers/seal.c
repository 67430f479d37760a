/* SPDX-License-Identifier: Apache-2.0
 *
 * Owns the keys, which are in OpenSSL's memory. Loop thread.
 */
#include "peers/seal.h"

#if HAVE_PEERS

#include <stdlib.h>
#include <string.h>

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/params.h>

#define HASH_BYTES 32

static const char label[] = "dlockfs peers 1";

struct seal {
	EVP_MAC_CTX *context; /* has the key */
	uint64_t store;
};

const bool seal_is_possible = true;

static EVP_MAC_CTX *begin(const void *key, size_t bytes)
{
	char hash[] = "SHA256";
	const OSSL_PARAM parameters[] = {OSSL_PARAM_construct_utf8_string("digest", hash, 0),
					 OSSL_PARAM_construct_end()};
	EVP_MAC *mac = EVP_MAC_fetch(NULL, "HMAC", NULL);
	EVP_MAC_CTX *context = mac != NULL ? EVP_MAC_CTX_new(mac) : NULL;

	EVP_MAC_free(mac); /* the context has it, too */
	if (context != NULL && EVP_MAC_init(context, key, bytes, parameters) == 1)
		return context;
	EVP_MAC_CTX_free(context);
	return NULL;
}

static bool end(EVP_MAC_CTX *context, uint8_t hash[HASH_BYTES])
{
	size_t bytes;

	return EVP_MAC_final(context, hash, &bytes, HASH_BYTES) == 1 && bytes == HASH_BYTES;
}

/* With the NUL behind it, so that two texts are never one. */
static bool add_text(EVP_MAC_CTX *context, const char *text)
{
	return EVP_MAC_update(context, (const uint8_t *)text, strlen(text) + 1) == 1;
}

static bool derive(const char *scheme, const char *root, const char *user, const char *secret,
		   uint8_t key[HASH_BYTES])
{
	EVP_MAC_CTX *context = begin(label, strlen(label));
	bool done = context != NULL && add_text(context, scheme) && add_text(context, root) &&
		    add_text(context, user) && add_text(context, secret) && end(context, key);

	EVP_MAC_CTX_free(context);
	return done;
}

/* Of the first bytes. */
static bool hash(struct seal *seal, const void *data, size_t bytes, uint8_t ret[HASH_BYTES])
{
	/* Without a key: once more with the one that it has. */
	return EVP_MAC_init(seal->context, NULL, 0, NULL) == 1 &&
	       EVP_MAC_update(seal->context, data, bytes) == 1 && end(seal->context, ret);
}

static bool name_store(struct seal *seal)
{
	uint8_t number[HASH_BYTES];

	if (!hash(seal, "store", strlen("store"), number))
		return false;
	for (size_t i = 0; i < sizeof(seal->store); i++)
		seal->store = seal->store << 8 | number[i];
	return true;
}

struct seal *seal_create(const char *scheme, const char *root, const char *user, const char *secret)
{
	uint8_t key[HASH_BYTES];
	struct seal *seal = calloc(1, sizeof(*seal));

	if (seal == NULL)
		return NULL;
	if (derive(scheme, root, user != NULL ? user : "", secret, key))
		seal->context = begin(key, sizeof(key));
	OPENSSL_cleanse(key, sizeof(key));
	if (seal->context != NULL && name_store(seal))
		return seal;
	seal_destroy(seal);
	return NULL;
}

void seal_destroy(struct seal *seal)
{
	if (seal == NULL)
		return;
	EVP_MAC_CTX_free(seal->context);
	free(seal);
}

uint64_t seal_store(const struct seal *seal)
{
	return seal->store;
}

bool seal_put(struct seal *seal, uint8_t *packet, size_t bytes)
{
	uint8_t sum[HASH_BYTES];

	if (!hash(seal, packet, bytes - PACKET_SEAL_BYTES, sum))
		return false;
	memcpy(packet + bytes - PACKET_SEAL_BYTES, sum, PACKET_SEAL_BYTES);
	return true;
}

bool seal_number(struct seal *seal, const char *const *texts, size_t count,
		 uint8_t ret[PACKET_NONCE_BYTES])
{
	uint8_t sum[HASH_BYTES];
	bool done = EVP_MAC_init(seal->context, NULL, 0, NULL) == 1;

	for (size_t i = 0; done && i < count; i++)
		done = add_text(seal->context, texts[i]);
	if (!done || !end(seal->context, sum))
		return false;
	memcpy(ret, sum, PACKET_NONCE_BYTES);
	return true;
}

bool seal_holds(struct seal *seal, const uint8_t *packet, size_t bytes)
{
	uint8_t sum[HASH_BYTES];

	return hash(seal, packet, bytes - PACKET_SEAL_BYTES, sum) &&
	       CRYPTO_memcmp(packet + bytes - PACKET_SEAL_BYTES, sum, PACKET_SEAL_BYTES) == 0;
}

bool seal_same_nonce(const struct packet_nonce *a, const struct packet_nonce *b)
{
	return CRYPTO_memcmp(a->bytes, b->bytes, PACKET_NONCE_BYTES) == 0;
}

#else

const bool seal_is_possible = false;

struct seal *seal_create(const char *scheme, const char *root, const char *user, const char *secret)
{
	(void)scheme, (void)root, (void)user, (void)secret;
	return NULL;
}

void seal_destroy(struct seal *seal)
{
	(void)seal;
}

uint64_t seal_store(const struct seal *seal)
{
	(void)seal;
	return 0;
}

bool seal_put(struct seal *seal, uint8_t *packet, size_t bytes)
{
	(void)seal, (void)packet, (void)bytes;
	return false;
}

bool seal_number(struct seal *seal, const char *const *texts, size_t count,
		 uint8_t ret[PACKET_NONCE_BYTES])
{
	(void)seal, (void)texts, (void)count, (void)ret;
	return false;
}

bool seal_holds(struct seal *seal, const uint8_t *packet, size_t bytes)
{
	(void)seal, (void)packet, (void)bytes;
	return false;
}

bool seal_same_nonce(const struct packet_nonce *a, const struct packet_nonce *b)
{
	(void)a, (void)b;
	return false;
}

#endif
