/* SPDX-License-Identifier: Apache-2.0
 *
 * dlockctl: the table of commands.
 */
#include <locale.h>
#include <stdio.h>
#include <string.h>

#include "dlockctl/commands/commands.h"

static const char run_more[] =
	"  -x, --exclusive         an exclusive lock (the default)\n"
	"  -s, --shared            a shared lock\n"
	"  -n, --nonblock          do not wait: fail if it is held\n"
	"  -w, --wait SECONDS      wait no longer than that\n"
	"      --also NAME         this lock, too: all of them, or none, within that time. May be\n"
	"                          repeated\n"
	"  -E, --conflict-exit-code NUMBER\n"
	"                          the exit status after -n or -w, instead of 1\n"
	"  -v, --verbose           who holds the lock, and the place in the queue, while waiting\n"
	"      --once KEY          skip it if a run for KEY has succeeded, on any host; else wait "
	"as\n"
	"                          a standby. -E NUMBER is the exit status if it is skipped, "
	"instead\n"
	"                          of 0\n"
	"      --every PERIOD      skip it if one that has succeeded began less than 0.9 PERIOD "
	"ago\n"
	"  -q, --quiet             do not say that it is skipped\n"
	"      --min-hold TIME     from when the lock is taken, nobody on any host gets it for so\n"
	"                          long, such as 90s, 5m, 1h or 1d, whatever becomes of COMMAND "
	"and\n"
	"                          of this host\n"
	"      --max-hold TIME     the lock is lost after so long\n"
	"      --on-lost ACTION    if the lock is lost: term (SIGTERM to the command and its\n"
	"                          children, SIGKILL 5 s later; the default), kill (SIGKILL), or\n"
	"                          ignore (only a message)\n"
	"      --on-revoke ACTION  if somebody asks for it with dlockctl revoke: term (the\n"
	"                          default) or ignore\n"
	"  -c, --command TEXT      behind NAME, instead of COMMAND: one text, which the shell "
	"($SHELL,\n"
	"                          else /bin/sh) runs\n"
	"\n"
	"COMMAND finds DLOCK_NAME and DLOCK_TOKEN, the fencing token, in its environment, and\n"
	"DLOCK_NAME_1, DLOCK_TOKEN_1 and so on for --also, in the order of the options. It is a\n"
	"process group of its own; INT, TERM, HUP and QUIT are passed on to the group, USR1 and "
	"USR2\n"
	"to COMMAND. The lock is released when COMMAND ends, whatever it leaves behind. If "
	"dlockctl\n"
	"itself is killed, COMMAND is killed too, unless --on-lost=ignore. The exit status is "
	"that\n"
	"of COMMAND, or 128 and the number of the signal that ended it.\n";

static const char hold_more[] =
	"      --as OWNER          whose it is to be; this machine's id without it\n"
	"      --for TIME          it is over after so long, such as 90s, 5m, 1h or 1d, for who "
	"waits\n"
	"                          for it since\n"
	"  -n, --nonblock          do not wait: fail if others have it\n"
	"  -w, --wait SECONDS      wait no longer than that\n"
	"  -v, --verbose           who holds the lock, and the place in the queue, while waiting\n"
	"\n"
	"The lock stands until dlockctl give, or break, whatever becomes of this host. It is "
	"taken\n"
	"once for an OWNER: where that has it, there is nothing to do but to set the time of "
	"--for.\n"
	"Where the lock has slots, it is one of them. Prints the fencing token.\n";

static const char serve_more[] =
	"      --listen WHERE      an address and a port, instead of 127.0.0.1:8470, such as\n"
	"                          [::1]:8470. Port 0: one that is free\n"
	"      --host NAME         a browser may ask by this name, too, not only by localhost and\n"
	"                          the address. May be repeated\n"
	"      --red TIME          what has been held, or waited for, for so long is red (1h)\n"
	"\n"
	"Prints the address of the page. Nothing can be changed there; whoever reaches the "
	"address\n"
	"sees all locks. The package dlockfs-web has the program for it, and a service.\n";

static const struct command commands[] = {
	{"ls", "[PATTERN]", "the locks that are held or waited for, on all hosts",
	 "PATTERN is a shell pattern, of the whole name or of the first components of it; * "
	 "stands\n"
	 "for no slash.\n",
	 command_ls},
	{"show", "NAME", "who holds a lock and who waits for it, in order", NULL, command_show},
	{"graph", "[--dot]", "who waits for whom, as a tree, on all hosts",
	 "      --dot               for Graphviz: dlockctl graph --dot | dot -Tsvg\n"
	 "\n"
	 "Below each process stand those who wait for it, and for what. An exclusive claim waits "
	 "for\n"
	 "all who hold the lock; one whom no holder is in the way of, for the next in front of "
	 "it.\n",
	 command_graph},
	{"run", "[OPTION...] NAME [--] COMMAND [ARGUMENT...] | -c TEXT",
	 "run a command while holding a lock, as flock(1) does", run_more, command_run},
	{"token", "FD", "the fencing token of what is locked through an inherited descriptor", NULL,
	 command_token},
	{"check", "FD", "whether what is locked through an inherited descriptor is still held",
	 NULL, command_check},
	{"wait", "[-w SECONDS] [-v] NAME", "until nobody holds a lock or waits for it",
	 "  -w, --wait SECONDS      no longer than that\n"
	 "  -v, --verbose           who holds the lock meanwhile\n"
	 "\n"
	 "Takes no place in the queue, so somebody else may have the lock again at once.\n",
	 command_wait},
	{"revoke", "NAME", "ask all who hold a lock to give it up",
	 "Their descriptors report POLLPRI. It is up to them what follows.\n", command_revoke},
	{"break", "NAME [--position NUMBER] --yes", "take a lock away from who holds it",
	 "      --position NUMBER   that claim of the queue, instead of the first that is held\n"
	 "      --yes               do it\n"
	 "\n"
	 "The next in the queue gets the lock at once. A holder that works on without looking at\n"
	 "its descriptor does not notice.\n",
	 command_break},
	{"drain", "[--wait] [-w SECONDS]", "let this host grant nothing new, as before a reboot",
	 "      --wait              until nothing is held here any more\n"
	 "  -w, --timeout SECONDS   the same, no longer than that\n"
	 "\n"
	 "Who holds goes on. Calls that wait do so without a place in a queue, others fail with\n"
	 "ENOLCK. Ends with undrain, and when dlockfs is stopped, but not when it is restarted.\n",
	 command_drain},
	{"undrain", "", "let this host grant again", NULL, command_undrain},
	{"hold", "[OPTION...] NAME [--as OWNER]", "take a lock that outlives this host", hold_more,
	 command_hold},
	{"give", "NAME [--as OWNER]", "give back what dlockctl hold has taken",
	 "      --as OWNER          whose hold it is; this machine's id without it\n"
	 "\n"
	 "Where OWNER has no hold there is nothing to do: the exit status is 0 all the same.\n",
	 command_give},
	{"top", "", "the locks, live; q quits", NULL, command_top},
	{"doctor", "", "look for what is wrong with the mount and the machine", NULL,
	 command_doctor},
	{"hosts", "", "the hosts that use the same stores, and whose settings differ", NULL,
	 command_hosts},
	{"history", "[-n COUNT] NAME [FILE...]", "who has held a lock, by the audit of its hosts",
	 "  -n, --count COUNT       the last so many grants, instead of 20\n"
	 "\n"
	 "Reads the audit (see dlockfs(8)) in the journal of this host; or in FILEs, logs of one "
	 "host or\n"
	 "several, the older first of each; - is stdin.\n",
	 command_history},
	{"jobs", "[PATTERN]", "what has run by dlockctl run --once and --every, on any host", NULL,
	 command_jobs},
	{"metrics", "[--locks]", "what this host counts, for Prometheus",
	 "      --locks             also of each lock, on all hosts: the ages of its oldest "
	 "holder\n"
	 "                          and waiter, and of its job the latest run. Asks the store for\n"
	 "                          all of them: for one host of several\n"
	 "\n"
	 "Prints .dlockfs/metrics; or, where no daemon answers within 5 s, that dlockfs_up is 0: "
	 "the\n"
	 "exit status is 0 as well then.\n",
	 command_metrics},
	{"serve", "[--listen WHERE] [--host NAME] [--red TIME]",
	 "a page with the locks, for a browser, and the same for programs", serve_more,
	 command_serve},
};

static const char statuses[] =
	"Exit status:\n"
	"   0  done; check: held; wait: free; doctor: no error, perhaps warnings\n"
	"   1  no: held by others, or the time is over (run, wait, drain), nothing is locked "
	"(check,\n"
	"      token), an error was found (doctor)\n"
	"  64  wrong arguments\n"
	"  65  what was read, or the descriptor, is not of dlockfs\n"
	"  66  nobody holds or waits for a lock of that name; run: its file cannot be opened\n"
	"  69  run: the command cannot be executed; serve: the program, or the address is taken\n"
	"  71  out of memory or processes; run: the store could not be reached in time\n"
	"  72  there is no mount, or it is dead or does not answer\n"
	"  73  run: the file cannot be created\n"
	"  74  the store does not answer, or the output cannot be written\n"
	"  75  the lock was lost (run, check, token)\n"
	"  77  no permission\n"
	"  78  there are several mounts, and none was chosen\n"
	"For run, any other status is that of the command.\n";

static const struct command *find_command(const char *name)
{
	for (size_t i = 0; i < sizeof(commands) / sizeof(*commands); i++) {
		if (strcmp(commands[i].name, name) == 0)
			return &commands[i];
	}
	return NULL;
}

static void help(void)
{
	puts("Usage: dlockctl [OPTION...] COMMAND [ARGUMENT...]\n"
	     "\n"
	     "Looks at the locks of a dlockfs mount, uses them in scripts, and steers them.\n");
	for (size_t i = 0; i < sizeof(commands) / sizeof(*commands); i++)
		printf("  %s%s%s\n      %s\n", commands[i].name,
		       commands[i].usage[0] != '\0' ? " " : "", commands[i].usage,
		       commands[i].help);
	printf("\nOptions of all commands:\n%s"
	       "\nWithout a command:\n  --version               print the version\n\n%s",
	       common_help, statuses);
}

int main(int argc, char **argv)
{
	static const struct option options[] = {{"version", no_argument, NULL, OPTION_OWN},
						COMMON_OPTIONS};
	struct context context = {0};
	int letter, status = -1;

	setlocale(LC_CTYPE, "");
	opterr = 0;
	while (status < 0 && (letter = getopt_long(argc, argv, "+:h", options, NULL)) != -1) {
		if (letter == OPTION_OWN) {
			puts("dlockctl " DLOCKFS_VERSION);
			return 0;
		}
		if (letter == 'h') {
			help();
			return 0;
		}
		status = common_option(&context, letter, argv);
	}
	if (status >= 0)
		return status;
	if (optind == argc)
		return fail(EX_USAGE, "command: is missing; see dlockctl --help");
	argc -= optind;
	argv += optind;
	context.command = find_command(argv[0]);
	if (context.command == NULL)
		return fail(EX_USAGE, "%s: is no command; see dlockctl --help", argv[0]);
	status = check_store_options(&context);
	if (status >= 0)
		return status;
	optind = 0; /* getopt(3) begins anew */
	return context.command->run(&context, argc, argv);
}
