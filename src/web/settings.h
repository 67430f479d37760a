/* SPDX-License-Identifier: Apache-2.0
 *
 * What the command line of dlockctl serve asks for.
 */
#ifndef WEB_SETTINGS_H
#define WEB_SETTINGS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/socket.h>

struct settings {
	char *mount; /* its folder */
	struct sockaddr_storage address;
	socklen_t address_bytes;
	const char **names; /* of --host */
	size_t names_count;
	long long red_s; /* what is older than that is red */
};

/* Reads the options, and finds the mount. Returns -1; or the status to end with, after --help or an
 * error that was told. settings_finish() frees *settings in any case. */
int settings_read(struct settings *settings, int argc, char **argv);

void settings_finish(struct settings *settings);

/* Whether a request with that value of the header Host is for this page: by localhost, by a
 * loopback address, by the address that is listened on, or by a name of --host; with any port. If
 * all addresses are listened on, by any of them. A page of others whose name was made to mean this
 * address (DNS rebinding) asks by that name. */
bool settings_have_host(const struct settings *settings, const char *host);

#endif
