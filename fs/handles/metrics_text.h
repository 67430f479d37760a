/* SPDX-License-Identifier: Apache-2.0
 *
 * All metrics of the daemon, as text for Prometheus. Loop thread only; nothing blocks.
 */
#ifndef DLOCKFS_HANDLES_METRICS_TEXT_H
#define DLOCKFS_HANDLES_METRICS_TEXT_H

#include <stdio.h>

struct filesystem;

/* Writes all metrics in Prometheus's text format, version 0.0.4. A metric of stores has a sample
 * for each store, with the label store; the sample of [store] has no label, which to Prometheus is
 * store="". */
void metrics_text_write(const struct filesystem *filesystem, FILE *file);

#endif
