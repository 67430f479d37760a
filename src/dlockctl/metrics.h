/* SPDX-License-Identifier: Apache-2.0
 *
 * What is said of a daemon that does not answer, in the text format of Prometheus.
 */
#ifndef DLOCKCTL_METRICS_H
#define DLOCKCTL_METRICS_H

#include <stdbool.h>
#include <stdio.h>

#include "dlockctl/probe.h"

/* Whether what was found says that nobody serves the mount. */
bool metrics_is_down(const struct probe *probe);

/* As fs/files/metrics.c says it of a daemon that answers. */
void metrics_down_write(FILE *out);

#endif
