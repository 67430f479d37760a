/* SPDX-License-Identifier: Apache-2.0
 *
 * What the engine calls: passed on to the session of this host's claims (stores/local/store.h),
 * once it is known who has the lock's key. The functions of the table. Loop thread.
 */
#ifndef DLOCKFS_STORES_REDIS_CALL_H
#define DLOCKFS_STORES_REDIS_CALL_H

#include "stores/store.h"

void redis_call_place(struct store *base, void *tag, const char *path,
		      const struct claim_name *name, const char *text, bool list, void *attention);
void redis_call_list(struct store *base, void *tag, const char *path, bool sync, bool attend);
void redis_call_amend(struct store *base, void *tag, const char *path, const char *name,
		      const char *text, uint32_t version);
void redis_call_watch(struct store *base, void *tag, const char *path, const char *name);
void redis_call_mark(struct store *base, void *tag, const char *path, const char *name,
		     const char *text, int64_t age_ms);
void redis_call_withdraw(struct store *base, const struct store_told *told, void *tag,
			 const char *path, const char *name, int64_t order, bool marker);

#endif
