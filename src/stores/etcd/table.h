/* SPDX-License-Identifier: Apache-2.0
 *
 * The functions of struct store_ops (stores/store.h) that are not store.c's own, each in the file
 * of its name or of its subject. Loop thread.
 */
#ifndef DLOCKFS_STORES_ETCD_TABLE_H
#define DLOCKFS_STORES_ETCD_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "claim/name.h"
#include "stores/store.h"

struct store_etcd;

void etcd_place(struct store *base, void *tag, const char *path, const struct claim_name *name,
		const char *text, bool list, void *attention);
void etcd_withdraw(struct store *base, const struct store_told *told, void *tag, const char *path,
		   const char *name, int64_t order, bool marker);
void etcd_withdraw_for(struct store *base, const struct store_told *told, void *tag,
		       const char *path, const char *name, int64_t order, const char *heir);
void etcd_list(struct store *base, void *tag, const char *path, bool sync, bool attend);
void etcd_watch(struct store *base, void *tag, const char *path, const char *name);

/* claim.c */
void etcd_amend(struct store *base, void *tag, const char *path, const char *name, const char *text,
		uint32_t version);
void etcd_prove(struct store *base, void *tag, const struct store_proof *proofs, size_t count);
/* Sends an empty transaction to the quorum: its answer is a proof (lease.h). */
void etcd_touch(struct store_etcd *store);

void etcd_mark(struct store *base, void *tag, const char *path, const char *name, const char *text,
	       int64_t age_ms);
void etcd_age(struct store *base, void *tag, const char *path, const char *name); /* mark.c */

/* hold.c */
void etcd_hold(struct store *base, void *tag, const char *path, const char *name,
	       const struct claim_name *hold, const char *text, bool marker);
void etcd_outlast(struct store *base, const struct store_told *told, void *tag, const char *path,
		  const char *name, uint32_t version);

/* look.c */
int etcd_look(struct store *base, struct store_look *look, const char *path);
int etcd_read(struct store *base, struct store_read *read, const char *path, const char *name);
int etcd_write(struct store *base, struct store_change *change, const char *path, const char *name,
	       const char *text, uint32_t version);
int etcd_remove(struct store *base, struct store_change *change, const char *path, const char *name,
		uint64_t session);

/* files.c */
int etcd_read_file(struct store *base, struct store_read *read, const char *path);
int etcd_files(struct store *base, struct store_files *files, const char *directory);
int etcd_alter(struct store *base, struct store_change *change, const struct store_step *steps,
	       size_t count);

/* epoch.c */
void etcd_settle(struct store *base);

void etcd_space(const struct store *base, struct store_space *ret);

#endif
