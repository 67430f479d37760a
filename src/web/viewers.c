/* SPDX-License-Identifier: Apache-2.0 */
#include "web/viewers.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "dlockctl/dlockctl.h"
#include "web/answer.h"
#include "web/connections.h"
#include "web/shared.h"

#define REMIND_MS 15000
#define TAKE_MS	  30000 /* for an event */

struct viewer {
	struct viewer *next, **link;
	struct viewers *viewers;
	struct MHD_Connection *connection;
	struct shared *event, *next_event; /* that it is taking, and the one behind; or NULL */
	size_t taken;
	bool is_suspended;
};

static struct shared *make_event(char *text)
{
	return shared_make(text, strlen(text));
}

static void take_next(struct viewer *viewer)
{
	shared_drop(viewer->event);
	viewer->event = viewer->next_event;
	viewer->next_event = NULL;
	viewer->taken = 0;
}

/* The library asks for more; there is none until viewers_tell(). */
static ssize_t read_events(void *context, uint64_t position, char *to, size_t most)
{
	struct viewer *viewer = context;

	if (viewer->event != NULL && viewer->taken == viewer->event->bytes)
		take_next(viewer);
	if (viewer->event == NULL) {
		connections_allow(viewer->connection, -1);
		MHD_suspend_connection(viewer->connection);
		viewer->is_suspended = true;
		return 0;
	}
	if (viewer->taken == 0)
		connections_allow(viewer->connection, TAKE_MS);
	size_t bytes = viewer->event->bytes - viewer->taken;
	bytes = bytes < most ? bytes : most;
	memcpy(to, viewer->event->text + viewer->taken, bytes);
	viewer->taken += bytes;
	return (ssize_t)bytes;
}

static void end(void *context)
{
	struct viewer *viewer = context;

	*viewer->link = viewer->next;
	if (viewer->next != NULL)
		viewer->next->link = viewer->link;
	viewer->viewers->count--;
	shared_drop(viewer->event);
	shared_drop(viewer->next_event);
	free(viewer);
}

/* By the clock of this host the page knows how old what it shows is. */
static char *first_event(void)
{
	return must_format("retry: 3000\nevent: clock\ndata: %lld\n\n", (long long)time(NULL));
}

enum MHD_Result viewers_add(struct viewers *viewers, struct MHD_Connection *connection)
{
	if (viewers->count == VIEWERS_MAX)
		return answer_say(connection, MHD_HTTP_SERVICE_UNAVAILABLE,
				  "so many look at this page that no more can");
	struct viewer *viewer = must(malloc(sizeof(*viewer)));
	*viewer = (struct viewer){.next = viewers->first,
				  .link = &viewers->first,
				  .viewers = viewers,
				  .connection = connection,
				  .event = make_event(first_event()),
				  .next_event = shared_use(viewers->latest)};
	if (viewer->next != NULL)
		viewer->next->link = &viewer->next;
	viewers->first = viewer;
	viewers->count++;
	return answer_send_stream(connection, read_events, viewer, end, "text/event-stream");
}

static void tell(struct viewer *viewer, struct shared *event)
{
	shared_drop(viewer->next_event);
	viewer->next_event = shared_use(event);
	if (viewer->event == NULL)
		take_next(viewer);
	if (!viewer->is_suspended)
		return;
	viewer->is_suspended = false;
	MHD_resume_connection(viewer->connection);
}

void viewers_tell(struct viewers *viewers, const char *name, const char *data)
{
	viewers_forget(viewers);
	viewers->latest = make_event(must_format("event: %s\ndata: %s\n\n", name, data));
	for (struct viewer *viewer = viewers->first; viewer != NULL; viewer = viewer->next)
		tell(viewer, viewers->latest);
	viewers->told_ms = now_ms();
}

void viewers_forget(struct viewers *viewers)
{
	shared_drop(viewers->latest);
	viewers->latest = NULL;
}

void viewers_remind(struct viewers *viewers)
{
	if (viewers->count == 0)
		viewers->told_ms = now_ms();
	if (now_ms() - viewers->told_ms < REMIND_MS)
		return;
	struct shared *nothing = make_event(must(strdup(":\n\n")));
	for (struct viewer *viewer = viewers->first; viewer != NULL; viewer = viewer->next) {
		if (viewer->event == NULL)
			tell(viewer, nothing);
	}
	viewers->told_ms = now_ms();
	shared_drop(nothing);
}
