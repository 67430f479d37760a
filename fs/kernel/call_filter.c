/* SPDX-License-Identifier: Apache-2.0
 *
 * Keeps no state. The lists are of all architectures: a name that this one does not have, or that
 * libseccomp does not know yet, is passed over.
 */
#include "kernel/call_filter.h"

#if HAVE_LIBSECCOMP

#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <linux/fuse.h>
#include <linux/netlink.h>
#include <linux/sockios.h>
#include <sched.h>
#include <seccomp.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

/* What the program, the guard and the writer, the C library, its resolver, ZooKeeper's library,
 * c-ares, OpenSSL and libsystemd need to start and to run. */
static const char passed[] =
	/* memory */
	"brk madvise membarrier mincore mlock mlock2 mlockall mmap2 mremap munlock "
	"munlockall munmap "
	/* threads and processes */
	"arch_prctl arm_fadvise64_64 cacheflush capget execve exit exit_group fork futex "
	"futex_time64 futex_waitv get_robust_list get_thread_area getcpu getegid "
	"getegid32 geteuid geteuid32 getgid getgid32 getgroups getgroups32 getpgid "
	"getpgrp getpid getppid getrandom getresgid getresgid32 getresuid getresuid32 "
	"getrlimit getrusage getsid gettid getuid getuid32 pidfd_open pidfd_send_signal "
	"prlimit64 riscv_flush_icache riscv_hwprobe rseq sched_get_priority_max "
	"sched_get_priority_min sched_getaffinity sched_getparam sched_getscheduler "
	"sched_yield seccomp set_robust_list set_thread_area set_tid_address set_tls "
	"setpgid setrlimit setsid setuid setuid32 sysinfo times ugetrlimit umask uname "
	"vfork wait4 waitid waitpid "
	/* signals */
	"kill restart_syscall rt_sigaction rt_sigpending rt_sigprocmask rt_sigqueueinfo "
	"rt_sigreturn rt_sigsuspend rt_sigtimedwait rt_sigtimedwait_time64 sigaltstack "
	"signalfd signalfd4 sigprocmask sigreturn tgkill "
	/* time */
	"clock_getres clock_getres_time64 clock_gettime clock_gettime64 clock_nanosleep "
	"clock_nanosleep_time64 gettimeofday nanosleep time timerfd_create "
	"timerfd_gettime timerfd_gettime64 timerfd_settime timerfd_settime64 "
	/* files, and what is open */
	"_llseek access chdir close close_range copy_file_range dup dup2 dup3 eventfd "
	"eventfd2 faccessat faccessat2 fadvise64 fadvise64_64 fallocate fchdir fcntl "
	"fcntl64 fdatasync flock fstat fstat64 fstatat64 fstatfs fstatfs64 fsync "
	"ftruncate ftruncate64 getcwd getdents getdents64 inotify_add_watch inotify_init1 "
	"inotify_rm_watch lseek lstat lstat64 memfd_create newfstatat open openat openat2 "
	"pipe pipe2 pread64 preadv preadv2 pwrite64 pwritev pwritev2 read readlink "
	"readlinkat readv sendfile sendfile64 splice stat stat64 statfs statfs64 statx "
	"tee vmsplice write writev "
	/* waiting */
	"_newselect epoll_create epoll_create1 epoll_ctl epoll_pwait epoll_pwait2 "
	"epoll_wait poll ppoll ppoll_time64 pselect6 pselect6_time64 select "
	/* the network */
	"bind connect getpeername getsockname getsockopt recv recvfrom recvmmsg "
	"recvmmsg_time64 recvmsg send sendmmsg sendmsg sendto setsockopt shutdown "
	"socketpair "
#if defined(__SANITIZE_ADDRESS__)
	"mkdir personality process_vm_readv ptrace sched_setaffinity "
#endif
	;

/* What takes rights: to unmount, the folder below the mount, the precedence of a guard. */
static const char privileged[] =
	"capset fchmod mkdir mkdirat mount mount_setattr rmdir sched_setscheduler umount2 ";

/* Other programs and the kernel itself: whoever makes one of these has taken the process over. */
static const char deadly[] =
	"acct bpf chroot delete_module finit_module init_module ioperm iopl "
	"kexec_file_load kexec_load modify_ldt open_by_handle_at perf_event_open "
	"pivot_root process_madvise process_vm_writev reboot setns settimeofday swapoff "
	"swapon unshare userfaultfd vhangup "
#if !defined(__SANITIZE_ADDRESS__)
	"process_vm_readv ptrace "
#endif
	;

/* What libraries try, and do without, as the filter could not see its flags. The kernel logs none
 * of these. */
static const char missing[] = "clone3";

/* Requests of ioctl(2). Not those that put something into the input of a terminal. */
static const uint32_t requests[] = {
	FIOCLEX,	 FIONBIO,	  FIONCLEX,	FIONREAD,
	FS_IOC_GETFLAGS, FS_IOC_SETFLAGS, SIOCGIFINDEX, SIOCGIFNAME,
	SIOCGIFCONF,	 SIOCGIFADDR,	  SIOCGIFFLAGS, SIOCINQ,
	SIOCOUTQ,	 TCGETS,	  TIOCGWINSZ,	FUSE_DEV_IOC_CLONE,
};

#if defined(__s390__) || defined(__s390x__)
#define CLONE_FLAGS 1
#else
#define CLONE_FLAGS 0
#endif
#define NAMESPACES                                                                                 \
	(CLONE_NEWCGROUP | CLONE_NEWIPC | CLONE_NEWNET | CLONE_NEWNS | CLONE_NEWPID |              \
	 CLONE_NEWUSER | CLONE_NEWUTS)

/* An option of prctl(2) that no kernel has. With a filter its error is another one. */
#define ASK	 0x646c6f63
#define ANSWER	 EUSERS
#define ARGUMENT 0xffffffff /* the part of an argument that is an int */

#if UNKNOWN_CALLS_TRAPPED
#define UNKNOWN SCMP_ACT_TRAP
#else
#define UNKNOWN SCMP_ACT_ERRNO(ENOSYS)
#endif

bool call_filter_is_set(void)
{
	return prctl(ASK, 0, 0, 0, 0) < 0 && errno == ANSWER;
}

/* `names` are divided by blanks. */
static int add_list(scmp_filter_ctx filter, uint32_t action, const char *names)
{
	char name[32];
	int length, error = 0;

	for (; error == 0 && sscanf(names, "%31s%n", name, &length) == 1; names += length) {
		int number = seccomp_syscall_resolve_name(name);
		if (number != __NR_SCMP_ERROR)
			error = seccomp_rule_add_array(filter, action, number, 0, NULL);
	}
	return error;
}

/* Lets the call pass if those bits of the argument have that value. */
static int pass_if(scmp_filter_ctx filter, int number, unsigned int argument, uint32_t bits,
		   uint32_t value)
{
	const struct scmp_arg_cmp comparison = {argument, SCMP_CMP_MASKED_EQ, bits, value};
	return seccomp_rule_add_array(filter, SCMP_ACT_ALLOW, number, 1, &comparison);
}

static int pass_memory(scmp_filter_ctx filter)
{
	static const uint32_t protections[] = {0, PROT_WRITE, PROT_EXEC};
	int error = pass_if(filter, SCMP_SYS(mprotect), 2, PROT_EXEC, 0);

	/* Not both to be written to and to be executed. */
	for (size_t i = 0; error == 0 && i < sizeof(protections) / sizeof(*protections); i++)
		error = pass_if(filter, SCMP_SYS(mmap), 2, PROT_WRITE | PROT_EXEC, protections[i]);
	return error;
}

static int pass_sockets(scmp_filter_ctx filter)
{
	static const uint32_t families[] = {AF_UNIX, AF_INET, AF_INET6};
	const struct scmp_arg_cmp routes[] = {
		{0, SCMP_CMP_MASKED_EQ, ARGUMENT, AF_NETLINK},
		{2, SCMP_CMP_MASKED_EQ, ARGUMENT, NETLINK_ROUTE},
	};
	int error = seccomp_rule_add_array(filter, SCMP_ACT_ALLOW, SCMP_SYS(socket), 2, routes);

	for (size_t i = 0; error == 0 && i < sizeof(families) / sizeof(*families); i++)
		error = pass_if(filter, SCMP_SYS(socket), 0, ARGUMENT, families[i]);
	return error;
}

/* Those that pass only with certain arguments. */
static int pass_some(scmp_filter_ctx filter)
{
	int error = pass_if(filter, SCMP_SYS(clone), CLONE_FLAGS, NAMESPACES, 0);

	if (error == 0)
		error = pass_memory(filter);
	if (error == 0)
		error = pass_sockets(filter);
	for (size_t i = 0; error == 0 && i < sizeof(requests) / sizeof(*requests); i++)
		error = pass_if(filter, SCMP_SYS(ioctl), 1, ARGUMENT, requests[i]);
	return error;
}

static int fill_unprivileged(scmp_filter_ctx filter)
{
	int error = add_list(filter, SCMP_ACT_ALLOW, passed);

	if (error == 0)
		error = add_list(filter, SCMP_ACT_ALLOW, missing);
	if (error == 0)
		error = seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(prctl), 0);
	if (error == 0)
		error = add_list(filter, SCMP_ACT_KILL_PROCESS, deadly);
	if (error == 0)
		error = pass_some(filter);
	if (error == 0)
		error = seccomp_attr_set(filter, SCMP_FLTATR_CTL_LOG, 1);
	return error;
}

static int fill_privileged(scmp_filter_ctx filter)
{
	int error = fill_unprivileged(filter);

	if (error == 0)
		error = add_list(filter, SCMP_ACT_ALLOW, privileged);
	if (error == 0)
		error = pass_if(filter, SCMP_SYS(unlinkat), 2, ARGUMENT, AT_REMOVEDIR);
	return error;
}

/* The calls that are missing, of which the kernel is not to log anything; and the sign that there
 * is a filter. */
static int fill_silent(scmp_filter_ctx filter)
{
	const struct scmp_arg_cmp asked = {0, SCMP_CMP_MASKED_EQ, ARGUMENT, ASK};
	int error = add_list(filter, SCMP_ACT_ERRNO(ENOSYS), missing);

	if (error == 0)
		error = seccomp_rule_add_array(filter, SCMP_ACT_ERRNO(ANSWER), SCMP_SYS(prctl), 1,
					       &asked);
	return error;
}

static int load(uint32_t otherwise, int (*fill_in)(scmp_filter_ctx filter))
{
	scmp_filter_ctx filter = seccomp_init(otherwise);
	int error = filter != NULL ? 0 : -ENOMEM;

	if (error == 0)
		error = seccomp_attr_set(filter, SCMP_FLTATR_ACT_BADARCH, SCMP_ACT_KILL_PROCESS);
	if (error ==
	    0) /* no mitigations for code of others, which is not here: before Linux 5.16 */
		error = seccomp_attr_set(filter, SCMP_FLTATR_CTL_SSB, 1);
	if (error == 0) /* a tree, not a list */
		error = seccomp_attr_set(filter, SCMP_FLTATR_CTL_OPTIMIZE, 2);
	if (error == 0)
		error = fill_in(filter);
	if (error == 0)
		error = seccomp_load(filter);
	if (filter != NULL)
		seccomp_release(filter);
	return error;
}

#if UNKNOWN_CALLS_TRAPPED
static void on_trap(int signal_number, siginfo_t *info, void *context)
{
	char line[128];
	char *name = seccomp_syscall_resolve_num_arch(SCMP_ARCH_NATIVE, info->si_syscall);
	int length = snprintf(line, sizeof(line),
			      "dlockfs: error: violation: the filter does not have %s (%d)\n",
			      name != NULL ? name : "system call", info->si_syscall);
	ssize_t written = write(STDERR_FILENO, line, (size_t)length);

	(void)written;
	(void)context;
	signal(signal_number, SIG_DFL);
	raise(signal_number);
}

static void catch_traps(void)
{
	const struct sigaction action = {.sa_sigaction = on_trap,
					 .sa_flags = SA_SIGINFO | SA_NODEFER};
	sigaction(SIGSYS, &action, NULL);
}
#endif

int call_filter_set(bool is_privileged)
{
#if UNKNOWN_CALLS_TRAPPED
	catch_traps();
#endif
	if (call_filter_is_set())
		return 0;
	int error = load(SCMP_ACT_ALLOW, fill_silent);
	return error == 0 ? load(UNKNOWN, is_privileged ? fill_privileged : fill_unprivileged)
			  : error;
}

#else

int call_filter_set(bool is_privileged)
{
	(void)is_privileged;
	return 0;
}

bool call_filter_is_set(void)
{
	return false;
}

#endif
