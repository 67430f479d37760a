/* SPDX-License-Identifier: Apache-2.0
 *
 * The server of the page: one thread, which waits for clients, and for the readers. It only tells:
 * other methods than GET and HEAD are refused, and so is a request with a body.
 */
#ifndef WEB_SERVER_H
#define WEB_SERVER_H

#include "web/settings.h"

/* Serves until a signal ends the program. Returns only after an error, which was told, with the
 * status to end with. */
int server_run(const struct settings *settings);

#endif
