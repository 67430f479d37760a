/* SPDX-License-Identifier: Apache-2.0
 *
 * What the audit (audit.h) remembers of each lock from the line that says "granted" to the line
 * that says "released" or "lost": by flock or exclusive open, one for each open file; by record
 * locks, one for each process (or open file description) and path. Where `audit` is off there is
 * none.
 *
 * Notes are kept for the next process in the line of their open file, as one text that a program
 * which does not know them ignores. Loop thread only.
 */
#ifndef DLOCKFS_HANDLES_AUDIT_NOTE_H
#define DLOCKFS_HANDLES_AUDIT_NOTE_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

#define HASH_NONFATAL_OOM 1
#include <uthash.h>

#include "engine/engine.h"

struct audit_note {
	UT_hash_handle by_handle; /* in handles->audited, unless the note is of record locks, */
	struct audit_note *prev, *next; /* and else in holders->audited */
	uint64_t handle;		/* the number of the open file */
	uint64_t owner;			/* of record locks: the kernel's number */
	enum lock_kind kind;
	enum claim_mode mode; /* not of record locks, which may be of both */
	pid_t pid;	      /* 0: of another pid namespace */
	uid_t uid;
	char command[16];
	int64_t since_us; /* histogram_now_us(), which goes on in the next process */
	uint64_t token;	  /* told to the holder; 0: none was */
	bool revoked;	  /* somebody has asked for it; not kept for the next process */
};

/* The note of flock or exclusive open through the open file of that number; NULL: there is none. */
struct audit_note *audit_note_of_file(struct audit_note *by_handle, uint64_t handle);

/* The note of the owner's record locks in the list; NULL: there is none. */
struct audit_note *audit_note_of_owner(struct audit_note *list, uint64_t owner);

/* Adds a copy of the note to those of its kind. Returns false when out of memory. */
bool audit_note_add(struct audit_note **notes, const struct audit_note *note);

void audit_note_remove(struct audit_note **notes, struct audit_note *note);

/* Writes the notes of the open file of that number into its line: the one that is found by the
 * number, and those in the list of its path. */
void audit_notes_save(struct audit_note *by_handle, const struct audit_note *of_path,
		      uint64_t handle, FILE *out);

/* Reads the next note from the text that audit_notes_save() wrote, and moves *text behind that
 * note. Returns false at the end, or where the text makes no sense. */
bool audit_note_read(const char **text, struct audit_note *ret);

#endif
