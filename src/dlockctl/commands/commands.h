/* SPDX-License-Identifier: Apache-2.0
 *
 * The commands, by file. Each gets its own words in argv, its name first, and returns the exit
 * status.
 */
#ifndef DLOCKCTL_COMMANDS_COMMANDS_H
#define DLOCKCTL_COMMANDS_COMMANDS_H

#include "dlockctl/dlockctl.h"

int command_ls(struct context *context, int argc, char **argv);
int command_show(struct context *context, int argc, char **argv);
int command_graph(struct context *context, int argc, char **argv);
int command_run(struct context *context, int argc, char **argv);
int command_token(struct context *context, int argc, char **argv);
int command_check(struct context *context, int argc, char **argv);
int command_wait(struct context *context, int argc, char **argv);
int command_revoke(struct context *context, int argc, char **argv);
int command_break(struct context *context, int argc, char **argv);
int command_hold(struct context *context, int argc, char **argv);
int command_give(struct context *context, int argc, char **argv);
int command_top(struct context *context, int argc, char **argv);
int command_doctor(struct context *context, int argc, char **argv);
int command_drain(struct context *context, int argc, char **argv);
int command_undrain(struct context *context, int argc, char **argv);
int command_history(struct context *context, int argc, char **argv);
int command_hosts(struct context *context, int argc, char **argv);
int command_jobs(struct context *context, int argc, char **argv);
int command_metrics(struct context *context, int argc, char **argv);
int command_serve(struct context *context, int argc, char **argv);

#endif
