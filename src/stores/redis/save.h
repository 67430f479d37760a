/* SPDX-License-Identifier: Apache-2.0
 *
 * What another process goes on with: the keys of this host and their gates, beside what the queues
 * save of its claims. Loop thread.
 */
#ifndef DLOCKFS_STORES_REDIS_SAVE_H
#define DLOCKFS_STORES_REDIS_SAVE_H

#include "journal/journal.h"
#include "journal/text.h"
#include "stores/redis/lock.h"

/* The functions of the table. */
int64_t redis_save_session(const struct store *base);
void redis_save_flag(const struct store *base, FILE *out);
void redis_save_claims(const struct store *base, FILE *out);
int redis_save_restore(struct store *base, struct state_reader *in);
void redis_save_keep(struct store *base, struct state_journal *journal, uint64_t place);

#endif
