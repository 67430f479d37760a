/* SPDX-License-Identifier: Apache-2.0
 *
 * What views show of the runs of jobs: see view_runs() of view.h. For the view's own files. Loop
 * thread only.
 */
#ifndef DLOCKFS_VIEW_RUNS_H
#define DLOCKFS_VIEW_RUNS_H

#include "view/shelf.h"

extern const struct view_shelf view_runs_shelf;

#endif
