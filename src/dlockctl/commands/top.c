/* SPDX-License-Identifier: Apache-2.0
 *
 * dlockctl top: the locks on the whole screen, read anew each second.
 */
#include <curses.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "dlockctl/commands/commands.h"
#include "dlockctl/output.h"
#include "dlockctl/text.h"
#include "dlockctl/tree.h"

#define INTERVAL_MS 1000

enum { COLUMN_KIND = 4, COLUMNS = 7 };

static const struct column columns[COLUMNS] = {
	{.title = "NAME", .least = 8},
	{.title = "WAITERS", .right = true},
	{.title = "STATE"},
	{.title = "MODE"},
	{.title = "KIND"},
	{.title = "HOLDER", .least = 12},
	{.title = "SINCE", .right = true},
};

/* The result of the latest reading. */
struct view {
	struct queues queues;
	char *status; /* the text of .dlockfs/status, or NULL */
	int error;
};

static int64_t queue_seconds(const struct queue *queue)
{
	const struct claim *holder = queue_holder(queue);
	if (holder == NULL && queue->count > 0)
		holder = &queue->claims[0];
	return holder != NULL ? claim_seconds(holder) : -1;
}

/* Queues with most waiters first; of equal ones the oldest. */
static int compare(const void *left, const void *right)
{
	const struct queue *a = left, *b = right;
	if (a->waiters != b->waiters)
		return a->waiters > b->waiters ? -1 : 1;
	int64_t age_a = queue_seconds(a), age_b = queue_seconds(b);
	if (age_a != age_b)
		return age_a > age_b ? -1 : 1;
	return strcmp(a->name, b->name);
}

static void view_finish(struct view *view)
{
	queues_finish(&view->queues);
	free(view->status);
	*view = (struct view){0};
}

static void view_read(const char *mount, struct view *view)
{
	size_t bytes;
	view_finish(view);
	if (tree_read(mount, "status", &view->status, &bytes) != 0)
		view->status = NULL;
	view->error = tree_queues(mount, &view->queues);
	if (view->queues.count > 0)
		qsort(view->queues.list, view->queues.count, sizeof(*view->queues.list), compare);
}

/* Writes a line of the screen, cut to it. Takes the text. */
static void put_line(int row, char *text, attr_t attributes)
{
	text_cut(text, (size_t)COLS);
	attrset(attributes);
	move(row, 0);
	addstr(text);
	attrset(A_NORMAL);
	free(text);
}

static char *status_value(const char *status, const char *key)
{
	char *value = status != NULL ? tree_value(status, key) : NULL;
	char *shown = text_printable(value != NULL ? value : "-");
	free(value);
	return shown;
}

/* The line of one store: of the mount, or below a prefix. */
static char *status_line(const char *status, const char *where)
{
	char *session = status_value(status, "session");
	char *lease = status_value(status, "lease_left_ms"), *store = status_value(status, "store");
	char *line = must_format("%s  session %s  lease %s ms  %s", where, session, lease, store);
	free(session);
	free(lease);
	free(store);
	return line;
}

/* A line for each store. Returns the row after them. */
static int draw_status(const struct view *view, const char *mount)
{
	const char *status = view->status;
	int row = 0;

	put_line(row++, status_line(status, mount), A_BOLD);
	while (status != NULL && (status = tree_next_block(status)) != NULL && row < LINES) {
		char *prefix = status_value(status, "prefix");
		put_line(row++, status_line(status, prefix), A_BOLD);
		free(prefix);
	}
	return row;
}

/* Takes both texts. */
static char *append(char *line, char *more)
{
	char *longer = must_format("%s%s", line, more);
	free(line);
	free(more);
	return longer;
}

static char *counts_line(const struct view *view)
{
	size_t locks = 0, holders = 0, kept = 0, resting = 0, lost = 0, waiters = 0;
	bool silent = false;
	if (view->error != 0)
		return must_format("The queues cannot be read: %s", strerror(-view->error));
	for (size_t i = 0; i < view->queues.count; i++) {
		const struct queue *queue = &view->queues.list[i];
		locks += queue->count > 0;
		holders += queue->holders;
		kept += queue->kept;
		resting += queue->resting;
		lost += queue->lost;
		waiters += queue->waiters;
		silent = silent || queue_is_silent_store(queue);
	}
	char *line =
		must_format("%zu lock%s, %zu holder%s, %zu waiter%s", locks, text_plural(locks),
			    holders, text_plural(holders), waiters, text_plural(waiters));
	if (kept > 0)
		line = append(line, must_format(", %zu kept", kept));
	if (resting > 0)
		line = append(line, must_format(", %zu resting", resting));
	if (lost > 0)
		line = append(line, must_format(", %zu lost", lost));
	return silent ? append(line, must(strdup("; a store does not answer"))) : line;
}

static void fill_table(struct table *table, const struct view *view, size_t rows)
{
	table_begin(table, columns, COLUMNS);
	table->columns[COLUMN_KIND].hidden = true;
	for (size_t i = 0; i < view->queues.count && rows > 0; i++) {
		const struct queue *queue = &view->queues.list[i];
		if (queue->count == 0)
			continue;
		const struct claim *holder = queue_holder(queue);
		const struct claim *first = holder != NULL ? holder : &queue->claims[0];
		if (queue_has_file(queue))
			table->columns[COLUMN_KIND].hidden = false;
		table_add(table, text_printable(queue->name), HUE_NONE);
		table_add(table, must_format("%zu", queue->waiters), HUE_NONE);
		table_add(table, must(strdup(claim_state(first))), HUE_NONE);
		table_add(table, claim_mode_words(first), HUE_NONE);
		table_add(table, claim_kind(first), HUE_NONE);
		table_add(table, queue_holders(queue), HUE_NONE);
		table_add(table, claim_age(first), HUE_NONE);
		rows--;
	}
}

/* A row of the table as one text. */
static char *row_text(const struct table *table, const size_t *widths, char *const *cells)
{
	char *line = must(strdup(""));
	for (size_t i = 0; i < table->columns_count; i++) {
		if (table->columns[i].hidden)
			continue;
		char *cut = must(strdup(cells != NULL ? cells[i] : table->columns[i].title));
		text_cut(cut, widths[i]);
		int pad = (int)(widths[i] - text_width(cut));
		bool right = table->columns[i].right, last = i == table->columns_count - 1;
		char *longer = must_format("%s%*s%s%*s", line, right ? pad : 0, "", cut,
					   (right ? 0 : pad) + (last ? 0 : 2), "");
		free(line);
		free(cut);
		line = longer;
	}
	return line;
}

static void draw(const struct view *view, const char *mount)
{
	struct table table;
	size_t widths[COLUMNS_MAX];

	erase();
	int row = draw_status(view, mount);
	put_line(row, counts_line(view), view->error != 0 ? A_BOLD : A_NORMAL);
	row += 2;
	fill_table(&table, view, LINES > row + 1 ? (size_t)(LINES - row - 1) : 0);
	table_fit(&table, (size_t)COLS, widths);
	put_line(row++, row_text(&table, widths, NULL), A_REVERSE);
	for (size_t i = 0; i < table.cells_count; i += table.columns_count)
		put_line(row++, row_text(&table, widths, &table.cells[i]), A_NORMAL);
	table_finish(&table);
	refresh();
}

static void loop(const char *mount)
{
	struct view view = {0};
	long long next_ms = 0;
	int key = ERR;

	while (key != 'q' && key != 'Q') {
		if (now_ms() >= next_ms) {
			view_read(mount, &view);
			next_ms = now_ms() + INTERVAL_MS;
		}
		draw(&view, mount);
		long long left_ms = next_ms - now_ms();
		timeout(left_ms > 0 ? (int)left_ms : 0);
		key = getch(); /* KEY_RESIZE is just a reason to draw again */
	}
	view_finish(&view);
}

int command_top(struct context *context, int argc, char **argv)
{
	struct place place;

	int status = only_common_options(context, argc, argv, 0, 0);
	if (status >= 0)
		return status;
	if (!isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO))
		return fail(EX_USAGE, "top: is for a terminal; elsewhere use dlockctl ls --json");
	status = place_find(context, NULL, &place);
	if (status != 0)
		goto cleanup;
	SCREEN *screen = newterm(NULL, stdout, stdin);
	if (screen == NULL) {
		status = fail(EX_USAGE, "top: the terminal is not known; set TERM");
		goto cleanup;
	}
	cbreak();
	noecho();
	curs_set(0);
	keypad(stdscr, TRUE);
	loop(place.mount);
	endwin();
	delscreen(screen);
cleanup:
	place_finish(&place);
	return status;
}
