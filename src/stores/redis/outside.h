/* SPDX-License-Identifier: Apache-2.0
 *
 * Questions of views, and steering from outside: the functions of the table. Who holds a lock
 * elsewhere is known as far as the key's value tells, and cannot be asked for anything: his key can
 * only be taken away. Loop thread.
 */
#ifndef DLOCKFS_STORES_REDIS_OUTSIDE_H
#define DLOCKFS_STORES_REDIS_OUTSIDE_H

#include "stores/store.h"

int redis_outside_look(struct store *base, struct store_look *look, const char *path);
int redis_outside_read(struct store *base, struct store_read *read, const char *path,
		       const char *name);
int redis_outside_write(struct store *base, struct store_change *change, const char *path,
			const char *name, const char *text, uint32_t version);
int redis_outside_remove(struct store *base, struct store_change *change, const char *path,
			 const char *name, uint64_t session);
int redis_outside_files(struct store *base, struct store_files *files, const char *directory);
int redis_outside_alter(struct store *base, struct store_change *change,
			const struct store_step *steps, size_t count);

#endif
