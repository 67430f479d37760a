/* SPDX-License-Identifier: Apache-2.0 */
#include "handles/handle_end.h"

#include <errno.h>

#include "handles/audit.h"
#include "handles/brief.h"
#include "handles/holder.h"
#include "handles/parked.h"

void handle_close(struct handle *handle)
{
	/* The call that opened the file has ended. If a request still waits, it is of another
	 * process that asks for the same node (PARKED_BESIDE), and was not interrupted: it looks
	 * again. */
	waiting_refuse_all(handle->parked, &parked_kind, -ESTALE);
	brief_close(handle);
	holder_leave_all(handle);
	audit_closed(handle);
	handle_free(handle);
}

void handle_revoke(struct handle *handle)
{
	holder_tell_revoked(handle);
	audit_revoked(handle);
	handle_wake_poll(handle);
}
