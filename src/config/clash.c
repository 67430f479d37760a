/* SPDX-License-Identifier: Apache-2.0
 *
 * Keys of one section that do not go together. Pure.
 */
#include "config/internal.h"

static bool has(const struct config_section *section, const char *name)
{
	return section->set & CONFIG_KEY_BIT(config_find_key(CONFIG_LOCKS_SECTION, name));
}

const char *config_find_clash(const struct config_section *section)
{
	const struct lock_policy *policy = &section->policy;

	if (!has(section, "slots") || policy->slots <= 1)
		return NULL;
	if (has(section, "handoff") && policy->handoff > 0)
		return "handoff";
	return has(section, "keep") && policy->keep_ms > 0 ? "keep" : NULL;
}
