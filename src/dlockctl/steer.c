/* SPDX-License-Identifier: Apache-2.0 */
#include "dlockctl/steer.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "dlockctl/look.h"
#include "dlockctl/output.h"
#include "dlockctl/tree.h"
#include "dlockfs.h"

struct order {
	const struct place *place;
	unsigned long request;
	struct dlockfs_hold_for steer; /* for other orders, a dlockfs_steer */
};

static int ask(const void *what, char **ret_text, size_t *ret_bytes)
{
	const struct order *order = what;
	int failed, fd = tree_open_queue(order->place);

	*ret_text = NULL;
	*ret_bytes = 0;
	if (fd < 0)
		return fd;
	do
		failed = ioctl(fd, order->request, &order->steer);
	while (failed < 0 && errno == EINTR);
	int error = failed < 0 ? -errno : 0;
	close(fd);
	return error;
}

static int send_order(const struct place *place, const struct claim *claim, unsigned long request,
		      long long for_ms)
{
	struct order order = {.place = place, .request = request, .steer.for_ms = for_ms};
	char *text = NULL;
	size_t bytes;

	if (claim->claim == NULL)
		return -EINVAL;
	if (strlen(claim->claim) >= sizeof(order.steer.claim))
		return -ENAMETOOLONG;
	strcpy(order.steer.claim, claim->claim);
	int error = look(place->mount, ask, &order, &text, &bytes);
	free(text);
	return error;
}

/* Whether the mount will not do that to a lock file. */
static bool is_refused(int error)
{
	return error == -ENOTEMPTY || error == -EREMOTE || error == -ESRCH || error == -EOPNOTSUPP;
}

static int refuse_file(const struct place *place, const char *maker, int error)
{
	const char *why = error == -EREMOTE ? "can be asked on its own host only"
			  : error == -ESRCH ? "has ended, or is not known here"
					    : "is not asked, as on_revoke sets no signal";

	if (error == -ENOTEMPTY)
		return fail(EXIT_NO,
			    "%s: the directory is not empty; take away what is in it first, see: "
			    "dlockctl ls %s",
			    place->name, place->name);
	return fail(EXIT_NO, "%s: %s, which made it, %s; to take it away: dlockctl break %s",
		    place->name, maker, why, place->name);
}

static int steer_failed(const struct place *place, const struct claim *claim, int error)
{
	char *holder = claim_holder(claim);
	int status;
	if (claim_is_file(claim) && is_refused(error))
		status = refuse_file(place, holder, error);
	else if (error == -ENOENT)
		status = fail(EX_NOINPUT, "%s: the claim of %s is gone; see: dlockctl show %s",
			      place->name, holder, place->name);
	else if (error == -ENOTTY)
		status = fail(EXIT_NO_MOUNT,
			      "%s: the mount knows no such order; expected this version of dlockfs",
			      place->mount);
	else if (error == -EOPNOTSUPP)
		status =
			fail(EXIT_NO,
			     "%s: the claim of %s is a key of its service; expected to be asked on "
			     "the host that has it, or, of another client, that you delete the key",
			     place->name, holder);
	else if (status_of_errno(error) == EX_NOPERM)
		status = fail(EX_NOPERM, "%s: claim of %s: %s; another user may, such as root",
			      place->name, holder, strerror(-error));
	else
		status = fail(status_of_errno(error), "%s: claim of %s: %s; see: dlockctl show %s",
			      place->name, holder, look_words(error), place->name);
	free(holder);
	return status;
}

int steer(const struct place *place, const struct claim *claim, unsigned long request)
{
	int error = send_order(place, claim, request, 0);
	return error == 0 ? 0 : steer_failed(place, claim, error);
}

int steer_hold(const struct place *place, const struct claim *claim, long long for_ms)
{
	int error = send_order(place, claim, DLOCKFS_IOC_HOLD_FOR, for_ms);
	bool is_done = error == 0 || (error == -ENOENT && for_ms < 0);
	return is_done ? 0 : steer_failed(place, claim, error);
}
