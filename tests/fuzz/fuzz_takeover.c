/* SPDX-License-Identifier: Apache-2.0
 *
 * What another process has left, read by a program that takes over: whatever it is, it is
 * understood or refused with one line, and can be ended. Locks are not looked at: those of a text
 * that was made up may exclude each other.
 */
#include "fuzz.h"

#include "base/log.h"
#include "notifier_double.h"
#include "rehearsal.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	log_set_level(LOG_LEVEL_ERROR);
	rehearsal_read((const char *)data, bytes);
	REQUIRE(notifier_double.calls == 0); /* the kernel is not told anything */
	return 0;
}
