/* SPDX-License-Identifier: Apache-2.0
 *
 * What another process has left, read by a program that takes over: whatever it is, it is
 * understood or refused with one line, and can be ended. Locks are not looked at: those of a text
 * that was made up may exclude each other.
 */
#include "fuzz.h"

#include "filesystem.h"
#include "log.h"
#include "notifier.h"
#include "rehearsal.h"

/* The process that lets the kernel forget names is not there in a rehearsal. */

void notifier_forget_name(struct notifier *notifier, fuse_ino_t parent, fuse_ino_t node,
			  const char *name)
{
	(void)notifier;
	(void)parent;
	(void)node;
	(void)name;
	REQUIRE(false);
}

void notifier_forget_attributes(struct notifier *notifier, fuse_ino_t node)
{
	(void)notifier;
	(void)node;
	REQUIRE(false);
}

void notifier_keep_name(struct notifier *notifier, fuse_ino_t parent, const char *name)
{
	(void)notifier;
	(void)parent;
	(void)name;
	REQUIRE(false);
}

void notifier_save_orders(const struct notifier *notifier, FILE *out)
{
	(void)notifier;
	(void)out;
	REQUIRE(false);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	log_set_level(LOG_LEVEL_ERROR);
	rehearsal_read((const char *)data, bytes);
	return 0;
}
