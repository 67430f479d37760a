/* SPDX-License-Identifier: Apache-2.0
 *
 * Going to the background: the parent returns to the shell only when the mount is usable, or with
 * the error.
 */
#ifndef DLOCKFS_DAEMON_H
#define DLOCKFS_DAEMON_H

/* Forks; the child returns with 0. The parent waits for daemon_ready() in the child and exits with
 * 0, or with 1 if the child ends before. stderr stays open until then, for errors. To be called
 * before threads exist. Returns -errno if it cannot fork. */
int daemon_begin(void);

/* The daemon is ready: lets the parent go, closes stdin, stdout and stderr, and sends messages to
 * the journal or to syslog(3) from now on. Does nothing without daemon_begin(). */
void daemon_ready(void);

/* This program goes on in the process of another one, which had gone to the background: messages go
 * where that program's went. */
void daemon_resume(void);

#endif
