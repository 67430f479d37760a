/* SPDX-License-Identifier: Apache-2.0
 *
 * The epoch of a session (operation.h), in the session's key; and how far the service was seen to
 * have gone. epoch.c has the rules. Loop thread.
 */
#ifndef DLOCKFS_STORES_ETCD_EPOCH_H
#define DLOCKFS_STORES_ETCD_EPOCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "stores/etcd/etcd.pb-c.h"
#include "stores/etcd/keys.h"

struct store_etcd;

struct etcd_epoch {
	struct etcd_key key; /* the session's */
	uint64_t number;
	bool is_keyless; /* the key may be deleted, for want of space */
	bool makes_key;	 /* the attempt under way takes it that there is no key; that which deletes
			    the key, that there may be none */
	void (*done)(struct store_etcd *store, int status, const char *text);
	int64_t asked_ms;   /* when the session's last question was sent, */
	int64_t asked_seen; /* and what was the greatest revision then */
	int64_t seen;	    /* the greatest revision that this host has seen of the service, */
	uint64_t cluster;   /* and of which cluster; 0: none */
	bool new_root;	    /* as in struct store_options, until the first session */
	bool read_only;	    /* as there: the session has no key, and is keyless from the first on */
};

/* Raises the epoch. done() is called when it is, or the key is deleted for want of space
 * (is_keyless), with GRPC_OK, or else with the status that a server has answered; but not if the
 * session is_over, nor after a grpc_cancel() of `asking`. */
void etcd_epoch_raise(struct store_etcd *store,
		      void (*done)(struct store_etcd *store, int status, const char *text));

/* Asks what `asking` is then. Returns false when out of memory. */
bool etcd_epoch_ask(struct store_etcd *store, const char *method, const ProtobufCMessage *request,
		    void (*done)(void *, int, const char *, const void *, size_t));

#endif
