/* SPDX-License-Identifier: Apache-2.0
 *
 * Owns what was noted.
 */
#include "notifier_double.h"

#include <stdlib.h>

struct notifier_double notifier_double;

void notifier_forget_name(struct notifier *notifier, fuse_ino_t parent, fuse_ino_t node,
			  const char *name)
{
	(void)notifier;
	notifier_double.calls++;
	if (notifier_double.on_forget != NULL)
		notifier_double.on_forget(parent, node, name);
}

void notifier_renew_name(struct notifier *notifier, fuse_ino_t parent, const char *name)
{
	(void)notifier;
	(void)parent;
	(void)name;
	notifier_double.calls++;
}

void notifier_forget_attributes(struct notifier *notifier, fuse_ino_t node)
{
	(void)notifier;
	notifier_double.calls++;
	if (notifier_double.on_forget != NULL)
		notifier_double.on_forget(0, node, NULL);
}

size_t notifier_backlog(const struct notifier *notifier)
{
	(void)notifier;
	return notifier_double.backlog;
}

void notifier_keep_name(struct notifier *notifier, fuse_ino_t parent, const char *name)
{
	(void)notifier;
	(void)parent;
	(void)name;
	notifier_double.calls++;
}

void notifier_save_orders(const struct notifier *notifier, FILE *out)
{
	(void)notifier;
	(void)out;
	abort(); /* no file system here has one */
}

bool notifier_has_ended(const struct notifier *notifier)
{
	(void)notifier;
	return false;
}
