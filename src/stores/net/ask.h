/* SPDX-License-Identifier: Apache-2.0
 *
 * Asks each server of a store by itself how it is, all at the same time, for people who look for
 * what is wrong. Blocks, for the limit at most; for a program that serves nothing meanwhile. A
 * server is asked by one line, and answers by text: ask_by_line(); or the store has calls of its
 * own, and embeds struct ask_server.
 */
#ifndef DLOCKFS_STORES_NET_ASK_H
#define DLOCKFS_STORES_NET_ASK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "config/access.h"
#include "stores/store.h"

#define ASK_TEXT_BYTES 512

struct ask_server {
	const char *name; /* "host:port" */
	int descriptor;	  /* readable when advance() has something to do */
	void (*advance)(struct ask_server *server);
	bool is_over; /* there is an answer, or there will be none */
	enum store_health health;
	char text[ASK_TEXT_BYTES]; /* for people; begins with the name */
};

/* The answer: "NAME: TEXT, answers in N ms"; `since_us` is when it was asked, histogram_now_us().
 */
void ask_answered(struct ask_server *server, enum store_health health, const char *text,
		  int64_t since_us);

/* There is no answer, for that reason, which begins with the name; it may be tried again. */
void ask_failed(struct ask_server *server, const char *why);

/* Calls advance() of each, until all are over, or for `limit_ms`. */
void ask_advance_all(struct ask_server *const *servers, size_t count, int64_t limit_ms);

/* Tells the answers, in their order. */
void ask_tell_all(struct ask_server *const *servers, size_t count, const struct store_asker *asker);

/* Cuts "host:port,host:port" up; for ask_free_names(). NULL: out of memory. */
char **ask_split_names(const char *servers, size_t *ret_count);
void ask_free_names(char **names);

struct ask_protocol {
	const char *question;
	bool takes_any_name; /* of a certificate: tls.h */
	/* What the text says that has come so far, and is all there will be if `is_end`: fills in
	 * `health`, and returns words for people; NULL: more is to come. */
	const char *(*judge)(const char *text, size_t bytes, bool is_end,
			     enum store_health *health);
};

/* Asks all of "host:port,host:port". With `has_tls` by TLS. Returns 0 or -errno. */
int ask_by_line(const char *servers, const struct store_access *access, bool has_tls,
		const struct ask_protocol *protocol, const struct store_asker *asker);

/* Words for what is no answer of any of these services, or none at all; NULL: it may be one. */
const char *ask_judge_stranger(const char *text, size_t bytes, bool is_end);

#endif
