/* SPDX-License-Identifier: Apache-2.0
 *
 * The files of the page, as they are in this folder: embed.py makes their array.
 */
#ifndef WEB_ASSETS_H
#define WEB_ASSETS_H

#include <stddef.h>

struct asset {
	const char *path; /* in the URL */
	const char *type;
	const char *text;
	size_t bytes;
};

extern const struct asset assets[]; /* ends with one without a path */

#endif
