/* SPDX-License-Identifier: Apache-2.0
 *
 * The configuration: built-in defaults, then the INI file, then options of the command line.
 *
 * The table in config.c is the one list of keys: the parser, `-o key=value`, the check of
 * etc/dlockfs.ini and the generated key list of the documentation all read it.
 *
 * Sections: [mount]; [store] for all locks and [store "prefix"] for the lock of that path and all
 * below it, whole components only, of which the longest wins; [locks] for all locks and
 * [locks "pattern"] for those whose path matches the fnmatch(3) pattern with FNM_PATHNAME: "*"
 * stands for no slash, and a leading dot is like any other character. With `style = file` a section
 * is of directories, and counts for all that is in them, too. A pattern is more specific
 * than plain [locks], wherever that stands in the file; of several patterns that match, the last
 * one in the file that sets a key wins. An option of the command line wins over everything, for all
 * locks.
 *
 * The file: `key = value`, one a line, blanks around ignored; comments begin a line with '#' or
 * ';', or follow a value as " ; ...". Each section stands once, each key once in its section, a
 * line with a key has at most 197 bytes (inih's limit); but a value that is a list (url,
 * directories) may have 4096, and go on in indented lines: behind a comma as they stand, else after
 * a blank. An indented line that reads as a key is one, except behind a comma. Values: durations
 * are a whole number with a unit (ms, s, m, h, d): "15s"; numbers are decimal; switches are yes or
 * no; signals have their full names: "SIGTERM"; users and groups are numbers, or names, which are
 * looked up when they are read (getpwnam(3), getgrnam(3): that may block).
 *
 * Not thread-safe: the loop's thread, and before it starts.
 */
#ifndef DLOCKFS_CONFIG_CONFIG_H
#define DLOCKFS_CONFIG_CONFIG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>
#include <time.h>

#include "config/access.h"
#include "config/contention.h"
#include "config/url.h"

#define CONFIG_FOREVER INT64_MAX
#define CONFIG_CREATOR INT64_C(-1)
#define CONFIG_AUTO    INT64_C(-1)

#define CONFIG_LOCK_DELAY_MAX_MS (60 * 60 * 1000)
#define CONFIG_MIN_HOLD_MAX_MS	 (24 * 60 * 60 * 1000)
#define CONFIG_TEXT_LIMIT_MAX	 (1024 * 1024)

/* What `text_limit = auto` is: enough for what programs say of themselves in a lock file; and, with
 * STYLE_FILE, enough for what programs keep beside it, such as git's hooks or a database of SQLite
 * with one table, which are longer than 4 KiB. */
#define CONFIG_TEXT_LIMIT_LOCK 4096
#define CONFIG_TEXT_LIMIT_FILE 65536

/* The port of `peers`, unless given. */
#define CONFIG_PEERS_PORT 7263

/* What a name in a directory is. A pattern of a section with STYLE_FILE is of directories, and its
 * keys count for all names in them, at any depth. */
enum lock_style {
	STYLE_LOCK, /* a lock, which a caller holds while it has the file open */
	STYLE_FILE, /* a lock file: it exists for all hosts or for none */
};

enum file_owner {
	FILE_OWNER_HOST,    /* its host's session */
	FILE_OWNER_PROCESS, /* that, and the process that made it */
};

enum { STEAL_YES, STEAL_NO };

/* What open(O_CREAT|O_EXCL) does with STYLE_LOCK. */
enum exclusive_open {
	EXCLUSIVE_OPEN_WAIT,   /* waits for the lock; with O_NONBLOCK as REFUSE */
	EXCLUSIVE_OPEN_REFUSE, /* fails with EEXIST while the lock is held */
	EXCLUSIVE_OPEN_OPEN,   /* takes no lock, as without O_EXCL */
};

/* The keys that may differ from lock to lock. */
struct lock_policy {
	int64_t wait_limit_ms; /* a blocking call fails with ENOLCK after so long without the store;
				  CONFIG_FOREVER: it waits */
	int64_t try_limit_ms;  /* a non-blocking call fails with ENOLCK after so long undecided */
	int64_t try_grace_ms;  /* a non-blocking call is not refused because of another host's claim
				  before so long; CONFIG_AUTO: two measured round trips */
	int64_t linger_ms; /* an interrupted waiter's place is kept so long for a restarted call */
	int64_t handoff;   /* a claim of flock or open goes on to so many callers of this host, one
			      after the other, while another host waits; without limit while none
			      does. 0: each caller gets a claim of its own */
	int64_t keep_ms;   /* such a claim that nobody uses is kept so long, unless another host
			      waits; 0: it goes at once */
	int64_t slots;	   /* so many may hold the lock at once, all of them exclusively; 1 */
	int64_t lock_delay_ms; /* nobody is granted the lock for so long after a holder was lost
				  without having released it; 0: no delay */
	int64_t min_hold_ms; /* from a grant of flock or open on nobody else is granted the lock for
				so long, however it ends; 0: no such time */
	int64_t max_hold_ms; /* who holds the lock for so long has lost it; 0: for any time */
	/* Record locks fail with ENOLCK beyond: */
	int64_t process_ranges; /* so many ranges of one process, in all files of this host */
	int64_t file_ranges;	/* so many ranges in one file, of all processes of this host */
	int64_t text_limit; /* a write that would make the file longer, in bytes, fails with EFBIG;
			       CONFIG_AUTO: config_text_limit() */
	int64_t on_lost;   /* the signal for a process that has lost its lock; 0: none, EIO alone */
	int64_t on_revoke; /* the signal for a process that is asked to release it; 0: none */
	int64_t recipe;	   /* enum claim_recipe: which other clients the lock is shared with */
	int64_t exclusive_open; /* enum exclusive_open */
	int64_t style;		/* enum lock_style */
	/* In a directory of STYLE_FILE: */
	int64_t file_owner; /* enum file_owner: with whom a name goes that nobody takes away */
	int64_t steal; /* whether names of other hosts may be taken away: STEAL_YES, STEAL_NO */
	/* Who may use the lock, as for a file. CONFIG_CREATOR: as the file is created; but if any
	 * of the three is set, as fs/files/access.h says. */
	int64_t owner; /* a user id, */
	int64_t group; /* a group id, */
	int64_t mode;  /* permissions */
};

/* [store], or one [store "prefix"]. */
struct config_store {
	char *prefix;		    /* a path without slashes at its ends; "" for [store] */
	struct store_url url;	    /* local: */
	int64_t session_timeout_ms; /* asked of the store; 15s. 0: as that of [store] */
	bool new_root; /* when the daemon starts, nobody holds anything there; no. Or as [store] */
	struct store_access access; /* nobody, auto. Of this store alone */
	int64_t redis_replicas;	    /* that must have a lock, too; 0. Of this store alone */
	bool redis_on_disk;	    /* they, and the server; no. Of this store alone */
	struct store_contention contention;
	uint64_t set; /* which keys a file or an option has set; for config.c */
};

struct config_section; /* one [locks "pattern"] */

struct config {
	/* [mount] */
	mode_t mode;	    /* of the root and of directories; 0777 */
	int64_t idle_ms;    /* an unused name disappears after so long; 60s */
	char **directories; /* made in the mount, NULL-terminated, may be NULL */
	bool allow_other;   /* other users may use the mount; yes */
	char *user; /* as whom a daemon of root goes on; NULL: dlockfs if there is one, or root */
	/* Limits for each user but root (fs/files/user.h): */
	int64_t user_waiters; /* calls that wait for a lock; 4096 */
	int64_t user_files;   /* open files; 16384 */
	int64_t user_names;   /* names that it made; 16384 */
	int64_t user_ranges;  /* byte ranges that it holds; 65536 */
	int64_t user_writes;  /* what it makes the servers write, a second; 20000 */
	char *peers;	      /* where this host listens to others, as address_parse() reads it, by
				 default at CONFIG_PEERS_PORT; NULL: it does not */
	int64_t log_level;    /* enum log_level, the most detailed one that is written; info */
	bool read_only;	      /* the mount option ro, which is no key: servers are only read; no */
	bool audit;	      /* a line in the log for each grant, release, refusal and loss; no */
	/* [store], which is the first, and [store "prefix"] in the file's order */
	struct config_store *stores;
	size_t store_count;
	/* [locks] and [locks "pattern"], in the file's order */
	struct config_section *sections;
	size_t section_count;
	/* What the file had; NULL: none was read */
	char *text;
	size_t text_bytes;
	char *file;		   /* its name; NULL: the text is one that another process had */
	struct timespec file_time; /* its st_mtim when it was read */
};

/* Whether this build can have `peers`. */
extern const bool config_can_have_peers;

/* Fills in the defaults. Returns 0 or -ENOMEM. */
int config_init(struct config *config);

/* Frees what the configuration owns. */
void config_finish(struct config *config);

/* Reads an INI file over what is there. Returns 0, or -errno (-EINVAL: what is written is wrong)
 * and in `why` one line "file:line: what, expected what" about the first error, or "file: ..." if
 * it cannot be opened. After an error it is undefined which keys were set. */
int config_read(struct config *config, const char *file, char *why, size_t why_bytes);

/* As config_read(), with the text that another file had. */
int config_read_text(struct config *config, const char *file, const char *text, size_t bytes,
		     char *why, size_t why_bytes);

/* Sets one key as `-o key=value` does, after the files were read. Keys of [locks] then count for
 * all locks, and win over every pattern; keys of [store] count for that section alone. `mode` is
 * that of [mount]. A NULL `value` (`-o key`) is "yes" where that is possible. Returns 0; or with
 * one line in `why` -ENOENT if there is no such key, -EINVAL, -ENOMEM; the key is then as it was.
 */
int config_set(struct config *config, const char *key, const char *value, char *why,
	       size_t why_bytes);

/* Whether the keys of each store go together. To be called after files and options. Returns 0, or
 * -EINVAL and one line in `why`. */
int config_check(const struct config *config, char *why, size_t why_bytes);

/* Whether a file or an option says where the locks are kept that no [store "prefix"] has. */
bool config_has_url(const struct config *config);

/* Takes over from `fresh` every key that may change while the daemon runs; calls on_fixed() for
 * each other key (`fixed`) that differs. Finishes *fresh. */
void config_reload(struct config *config, struct config *fresh,
		   void (*on_fixed)(const char *section, const char *key));

/* The policy of the lock at `path`. */
struct lock_policy config_policy(const struct config *config, const char *path);

/* lock_policy.text_limit, never CONFIG_AUTO. */
int64_t config_text_limit(const struct lock_policy *policy);

/* Whether any directory is of STYLE_FILE. */
bool config_has_files(const struct config *config);

/* Whether any lock may have lock_policy.lock_delay_ms or min_hold_ms: holders that are lost leave
 * something. */
bool config_has_remains(const struct config *config);

/* A lock with more slashes in its path matches no pattern but those of directories: config_policy()
 * is the same for all such locks of one directory. */
size_t config_slashes_max(const struct config *config);

/* Whether `owner`, `group` or `mode` is set for any lock. */
bool config_has_access(const struct config *config);

/* Which of the stores keeps the lock at `path`: an index of config->stores. */
size_t config_store_of(const struct config *config, const char *path);

/* Whether `path` ("": above all) is the prefix of a [store "prefix"], or above one. */
bool config_leads_to_store(const struct config *config, const char *path);

/* The session timeout to ask a store for: its own, or that of [store]. */
int64_t config_session_timeout_ms(const struct config *config, size_t store);

/* How to contend in a store: as its own section says, or [store]. */
struct store_contention config_contention(const struct config *config, size_t store);

/* Whether the root of a store is said to be new: in its own section, or in [store]. */
bool config_has_new_root(const struct config *config, size_t store);

/* Writes all keys for `--help`, section by section: "[section]", and for each key
 * "  key = default    what it may be" and a line with its meaning. Tests and the completion read
 * it.
 */
void config_describe(FILE *out);

#endif
