/* SPDX-License-Identifier: Apache-2.0
 *
 * By TCP_INFO, tcp(7).
 */
#include "stores/link.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

bool link_is_stuck(int socket)
{
	struct tcp_info info = {0};
	socklen_t bytes = sizeof(info);

	if (getsockopt(socket, IPPROTO_TCP, TCP_INFO, &info, &bytes) != 0)
		return false;
	return info.tcpi_state == TCP_SYN_SENT ||
	       (info.tcpi_state == TCP_ESTABLISHED && info.tcpi_retransmits > 0);
}
