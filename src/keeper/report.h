/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DLOCKFS_KEEPER_REPORT_H
#define DLOCKFS_KEEPER_REPORT_H

/* One line on stderr, behind the program's name; none if whoever reads there has fallen behind. */
__attribute__((format(printf, 1, 2))) void report(const char *format, ...);

#endif
