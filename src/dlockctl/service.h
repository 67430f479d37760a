/* SPDX-License-Identifier: Apache-2.0
 *
 * The service that mounts, as systemd has it.
 */
#ifndef DLOCKCTL_SERVICE_H
#define DLOCKCTL_SERVICE_H

/* What is to be said of it where there is no mount, such as " (dlockfs.service has failed:
 * exit-code; see: journalctl -u dlockfs)"; "" where there is no systemd, or no such service. To be
 * freed. Waits for two seconds at most. */
char *service_words(void);

#endif
