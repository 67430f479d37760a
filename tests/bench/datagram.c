/* SPDX-License-Identifier: Apache-2.0
 *
 * datagram: a driver (driver.py) for what it takes at least that one process tells another one
 * something.
 *
 *     oneway    a packet by UDP, on loopback, to a process that sleeps until it comes. GRANTED is
 *               when that process has it. The next one is sent when it has said so
 */
#include "order.h"

#include <arpa/inet.h>
#include <err.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

/* Returns a socket that is bound to a free port of loopback, whose address is *ret. */
static int open_socket(struct sockaddr_in *ret)
{
	socklen_t bytes = sizeof(*ret);
	int descriptor = socket(AF_INET, SOCK_DGRAM, 0);

	*ret = (struct sockaddr_in){.sin_family = AF_INET,
				    .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	if (descriptor < 0 || bind(descriptor, (struct sockaddr *)ret, sizeof(*ret)) < 0 ||
	    getsockname(descriptor, (struct sockaddr *)ret, &bytes) < 0)
		err(1, "socket");
	return descriptor;
}

static void join(int descriptor, const struct sockaddr_in *address)
{
	if (connect(descriptor, (const struct sockaddr *)address, sizeof(*address)) < 0)
		err(1, "connect");
}

/* Answers each packet with the time at which it has come. */
static void answer(int descriptor)
{
	int64_t time_us;

	while (recv(descriptor, &time_us, sizeof(time_us), 0) == sizeof(time_us)) {
		time_us = now_us();
		send(descriptor, &time_us, sizeof(time_us), 0);
	}
	_exit(1);
}

static void start_other(int other)
{
	pid_t parent = getpid();
	pid_t child = fork();

	if (child < 0)
		err(1, "fork");
	if (child > 0)
		return;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() == parent)
		answer(other);
	_exit(1);
}

static void send_one(int descriptor)
{
	struct record record = {.kind = 'x', .asked = now_us()};
	int64_t time_us = record.asked;

	if (send(descriptor, &time_us, sizeof(time_us), 0) != sizeof(time_us) ||
	    recv(descriptor, &time_us, sizeof(time_us), 0) != sizeof(time_us))
		err(1, "send");
	record.granted = record.releasing = record.released = time_us;
	record_print(0, &record);
}

int main(void)
{
	char line[256];
	struct sockaddr_in address, other_address;
	int descriptor = open_socket(&address), other = open_socket(&other_address);

	join(descriptor, &other_address);
	join(other, &address);
	start_other(other);
	while (order_read(line, sizeof(line))) {
		long cycles = order_number(line, "cycles", 1000);
		int64_t end = now_us() + order_number(line, "seconds_ms", 1000) * 1000;

		if (!order_is(line, "oneway"))
			errx(1, "no such order: %s", line);
		while (cycles-- > 0 && now_us() < end)
			send_one(descriptor);
		order_done();
	}
	return 0;
}
