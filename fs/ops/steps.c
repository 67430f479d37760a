/* SPDX-License-Identifier: Apache-2.0
 *
 * The steps of one transaction about names of lock files. Loop thread only.
 */
#include "ops/steps.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

static void add(struct steps *steps, enum store_step_kind kind, const char *path, const char *text,
		uint32_t version)
{
	assert(steps->count < STORE_STEPS_MAX);
	steps->list[steps->count++] = (struct store_step){kind, path, text, version};
}

static void add_text(struct steps *steps, enum store_step_kind kind, const struct inode *inode,
		     nlink_t links, uint32_t version)
{
	const char *text = lockfile_text_format(inode, links);

	if (text != NULL)
		add(steps, kind, inode->lockfile->path, text, version);
	else
		steps->error = -ENOMEM;
}

void steps_make(struct steps *steps, enum store_step_kind kind, const struct inode *inode,
		nlink_t links)
{
	add_text(steps, kind, inode, links, STORE_ANY_VERSION);
}

void steps_replace(struct steps *steps, const struct inode *inode, nlink_t links, uint32_t version)
{
	add_text(steps, STEP_REPLACE, inode, links, version);
}

void steps_renumber(struct steps *steps, struct inode *inode, const struct inode *except,
		    nlink_t links)
{
	struct inode *link;

	LINKS_FOREACH (link, inode) {
		if (link->parent == NULL || link == except || !link->lockfile->is_ours)
			continue;
		link->lockfile->dates = true; /* the number is no change of the text */
		inode_mark(link);
		steps_replace(steps, link, links, STORE_ANY_VERSION);
	}
}

void steps_remove(struct steps *steps, const struct inode *inode)
{
	const struct lockfile *lockfile = inode->lockfile;
	steps_remove_path(steps, lockfile->path,
			  lockfile->is_ours ? STORE_ANY_VERSION : lockfile->version);
}

void steps_remove_path(struct steps *steps, const char *path, uint32_t version)
{
	add(steps, STEP_REMOVE, path, NULL, version);
}

void steps_check(struct steps *steps, const struct inode *inode)
{
	add(steps, STEP_CHECK, inode->lockfile->path, NULL, 0);
}

void steps_ask(struct steps *steps, struct asking *asking)
{
	if (steps->error == 0) {
		asking_alter(asking, steps->list, steps->count);
	} else {
		asking->alter_error = steps->error;
		asking_skip(asking);
	}
	steps_finish(steps);
}

void steps_finish(struct steps *steps)
{
	for (size_t i = 0; i < steps->count; i++)
		free((char *)steps->list[i].text);
	steps->count = 0;
}
