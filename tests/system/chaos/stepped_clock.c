/* SPDX-License-Identifier: Apache-2.0
 *
 * Steps the clocks of one running program, whatever it is written in:
 *
 *     stepped_clock run COMMAND [ARGUMENT...]    becomes the program; its clocks are right at first
 *     stepped_clock set PID REALTIME MONOTONIC   so many seconds they are ahead from now on
 *
 * A program in Go finds the functions of the kernel's vDSO by itself, without the C library
 * (vdsoauxv in src/runtime/vdso_linux.go; nanotime1 in sys_linux_amd64.s and time.now in
 * time_linux_amd64.s call them), so LD_PRELOAD, as of wall_clock.c and libfaketime, does not reach
 * it. A time namespace has no CLOCK_REALTIME, and its offsets are fixed before the first process is
 * in it (time_namespaces(7)). To stop the program at each call, by a seccomp filter with ptrace or
 * with a notification, would take two switches of processes each time, for which a busy machine
 * lets the program wait.
 *
 * So `run` replaces the functions in the program's own copy of the vDSO, when exec(2) has mapped it
 * and nothing of the program has run: they make the system call and add what `set` writes beside
 * them. Both write through /proc/PID/mem, as a debugger does its breakpoints. All threads have the
 * same memory, so they see one clock; nothing stays attached to the program.
 *
 * What is not stepped: what the program executes or forks, bare system calls, and the timers of the
 * kernel. Who waits until a time of a clock, and not for a while, wakes up at the right one: so
 * CLOCK_MONOTONIC is of use for programs in Go only, as HotSpot waits until a time of that.
 */
#include <dlfcn.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <link.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

/* What replaces the functions, in one piece that can stand anywhere. They change no other registers
 * than a function may. Seconds to be added stand in two slots, of which one counts: so what is read
 * meanwhile is either what was or what is to be. Bits by number of the clock: CLOCK_REALTIME,
 * REALTIME_COARSE, REALTIME_ALARM and TAI are 0x921; CLOCK_MONOTONIC, MONOTONIC_RAW,
 * MONOTONIC_COARSE, BOOTTIME and BOOTTIME_ALARM are 0x2d2.
 */
__asm__(".pushsection .rodata\n"
	".balign 16\n"
	"code_begin:\n" /* clock_gettime(edi, rsi) */
	"	mov $228, %eax\n"
	"	syscall\n"
	"	test %eax, %eax\n"
	"	jnz 2f\n"
	"	cmp $11, %edi\n"
	"	ja 2f\n"
	"	movzbl code_slot(%rip), %ecx\n"
	"	shl $4, %ecx\n"
	"	lea code_slots(%rip), %rdx\n"
	"	add %rcx, %rdx\n"
	"	mov $0x921, %ecx\n"
	"	bt %edi, %ecx\n"
	"	jc 1f\n"
	"	mov $0x2d2, %ecx\n"
	"	bt %edi, %ecx\n"
	"	jnc 2f\n"
	"	add $8, %rdx\n"
	"1:	mov (%rdx), %rdx\n"
	"	add %rdx, (%rsi)\n"
	"2:	ret\n"
	"code_gettimeofday:\n" /* (rdi, rsi) */
	"	mov $96, %eax\n"
	"	syscall\n"
	"	test %eax, %eax\n"
	"	jnz 3f\n"
	"	test %rdi, %rdi\n"
	"	jz 3f\n"
	"	movzbl code_slot(%rip), %ecx\n"
	"	shl $4, %ecx\n"
	"	lea code_slots(%rip), %rdx\n"
	"	mov (%rdx, %rcx), %rdx\n"
	"	add %rdx, (%rdi)\n"
	"3:	ret\n"
	"code_time:\n" /* (rdi) */
	"	mov %rdi, %rsi\n"
	"	xor %edi, %edi\n"
	"	mov $201, %eax\n"
	"	syscall\n"
	"	movzbl code_slot(%rip), %ecx\n"
	"	shl $4, %ecx\n"
	"	lea code_slots(%rip), %rdx\n"
	"	add (%rdx, %rcx), %rax\n"
	"	test %rsi, %rsi\n"
	"	jz 4f\n"
	"	mov %rax, (%rsi)\n"
	"4:	ret\n"
	".balign 16\n"
	"code_slots: .quad 0, 0, 0, 0\n"
	"code_slot: .byte 0\n"
	"code_end:\n"
	".balign 8\n"
	"code_parts: .quad code_gettimeofday - code_begin, code_time - code_begin\n"
	"	.quad code_slots - code_begin, code_slot - code_begin, code_end - code_begin\n"
	".popsection\n");

extern const char code_begin[];

/* Where parts of it begin, counted from its begin, and how long it is. */
extern const struct {
	uint64_t gettimeofday, time, slots, slot, bytes;
} code_parts;

/* Another process's memory, at an address that begins with its vDSO's. */
struct memory {
	int file; /* /proc/PID/mem */
	uintptr_t vdso;
};

static void fail(const char *what)
{
	fprintf(stderr, "stepped_clock: %s%s%s\n", what, errno ? ": " : "",
		errno ? strerror(errno) : "");
	exit(1);
}

static int open_proc(pid_t process, const char *name, int flags)
{
	char path[64];
	int file;

	snprintf(path, sizeof(path), "/proc/%d/%s", process, name);
	file = open(path, flags | O_CLOEXEC);
	if (file < 0)
		fail(path);
	return file;
}

static struct memory memory_of(pid_t process)
{
	struct memory memory = {.file = open_proc(process, "mem", O_RDWR)};
	int file = open_proc(process, "auxv", O_RDONLY);
	Elf64_auxv_t entry;

	while (memory.vdso == 0 && read(file, &entry, sizeof(entry)) == sizeof(entry))
		if (entry.a_type == AT_SYSINFO_EHDR)
			memory.vdso = entry.a_un.a_val;
	close(file);
	errno = 0;
	if (memory.vdso == 0)
		fail("no vDSO in that process");
	return memory;
}

static void get(const struct memory *memory, size_t offset, void *ret, size_t bytes)
{
	errno = 0;
	if (pread(memory->file, ret, bytes, (off_t)(memory->vdso + offset)) != (ssize_t)bytes)
		fail("cannot read the vDSO");
}

static void put(const struct memory *memory, size_t offset, const void *data, size_t bytes)
{
	errno = 0;
	if (pwrite(memory->file, data, bytes, (off_t)(memory->vdso + offset)) != (ssize_t)bytes)
		fail("cannot write to the vDSO");
}

/* Where a function stands in the vDSO of every process, with so much room. */
static size_t offset_of(const char *name, size_t bytes)
{
	void *vdso = dlopen("linux-vdso.so.1", RTLD_NOW | RTLD_NOLOAD);
	void *function = vdso ? dlsym(vdso, name) : NULL;
	const ElfW(Sym) *symbol = NULL;
	Dl_info info;

	errno = 0;
	if (!function || !dladdr1(function, &info, (void **)&symbol, RTLD_DL_SYMENT) || !symbol)
		fail(name);
	if (symbol->st_size < bytes)
		fail("the kernel's function is too short to be replaced");
	return (uintptr_t)function - getauxval(AT_SYSINFO_EHDR);
}

static size_t code_offset(void)
{
	return offset_of("__vdso_clock_gettime", code_parts.bytes);
}

/* The function becomes a jump to that part of the code. */
static void put_jump(const struct memory *memory, const char *name, size_t part)
{
	unsigned char jump[5] = {0xe9};
	size_t from = offset_of(name, sizeof(jump));
	int32_t distance = (int32_t)(code_offset() + part - from - sizeof(jump));

	memcpy(jump + 1, &distance, sizeof(distance));
	put(memory, from, jump, sizeof(jump));
}

/* Runs beside the process until that has become the program. If it fails the program is killed. */
static void replace_functions(pid_t process, int ready)
{
	struct memory memory;
	int status;

	if (ptrace(PTRACE_SEIZE, process, NULL, PTRACE_O_TRACEEXEC | PTRACE_O_EXITKILL) != 0)
		fail("ptrace");
	if (write(ready, "", 1) != 1)
		fail("pipe");
	for (;;) {
		if (waitpid(process, &status, __WALL) < 0)
			fail("waitpid");
		if (!WIFSTOPPED(status))
			exit(1); /* it could not be executed, and has said so */
		if (status >> 8 == (SIGTRAP | PTRACE_EVENT_EXEC << 8))
			break;
		ptrace(PTRACE_CONT, process, NULL, status >> 16 ? 0 : WSTOPSIG(status));
	}
	memory = memory_of(process);
	put(&memory, code_offset(), code_begin, code_parts.bytes);
	put_jump(&memory, "__vdso_gettimeofday", code_parts.gettimeofday);
	put_jump(&memory, "__vdso_time", code_parts.time);
	if (ptrace(PTRACE_DETACH, process, NULL, NULL) != 0)
		fail("detach");
	exit(0);
}

static void run(char **command)
{
	pid_t self = getpid(), child;
	int ready[2];
	char byte;

	prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY);
	if (pipe2(ready, O_CLOEXEC) != 0)
		fail("pipe");
	child = fork();
	if (child == 0) {
		/* Its own child is nobody's, least of all the program's. */
		child = fork();
		if (child == 0)
			replace_functions(self, ready[1]);
		_exit(child < 0);
	}
	if (child < 0 || waitpid(child, NULL, 0) < 0)
		fail("fork");
	close(ready[1]);
	if (read(ready[0], &byte, 1) != 1)
		exit(1); /* the reason was said there */
	execvp(command[0], command);
	fail(command[0]);
}

static int64_t seconds(const char *text)
{
	char *end;
	int64_t number;

	errno = 0;
	number = strtoll(text, &end, 10);
	if (end == text || *end || errno)
		fail(text);
	return number;
}

static void set(pid_t process, int64_t realtime, int64_t monotonic)
{
	const int64_t ahead[2] = {realtime, monotonic};
	size_t code = code_offset(), unchanged = code_parts.slots;
	struct memory memory = memory_of(process);
	char found[4096];
	unsigned char slot;

	get(&memory, code, found, unchanged);
	errno = 0;
	if (memcmp(found, code_begin, unchanged) != 0)
		fail("not a program that was started by this one");
	get(&memory, code + code_parts.slot, &slot, 1);
	slot = !slot;
	put(&memory, code + unchanged + slot * sizeof(ahead), ahead, sizeof(ahead));
	put(&memory, code + code_parts.slot, &slot, 1);
}

int main(int argc, char **argv)
{
	if (argc >= 3 && strcmp(argv[1], "run") == 0)
		run(argv + 2);
	if (argc == 5 && strcmp(argv[1], "set") == 0) {
		set((pid_t)seconds(argv[2]), seconds(argv[3]), seconds(argv[4]));
		return 0;
	}
	fprintf(stderr, "usage: stepped_clock run COMMAND... | set PID REALTIME MONOTONIC\n");
	return 2;
}
