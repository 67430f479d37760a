/* SPDX-License-Identifier: Apache-2.0 */
#include "dlockctl/output.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "dlockctl/text.h"

static const char *const hues[] = {
	[HUE_NONE] = "",	   [HUE_BOLD] = "\033[1m", [HUE_GREEN] = "\033[32m",
	[HUE_YELLOW] = "\033[33m", [HUE_RED] = "\033[31m",
};

bool output_colored(const struct context *context, int fd)
{
	const char *no_color = getenv("NO_COLOR"); /* see no-color.org */
	const char *terminal = getenv("TERM");
	if (context->color != COLOR_AUTO)
		return context->color == COLOR_ALWAYS;
	return isatty(fd) && (no_color == NULL || no_color[0] == '\0') && terminal != NULL &&
	       strcmp(terminal, "dumb") != 0;
}

const char *hue_begin(bool colored, enum hue hue)
{
	return colored ? hues[hue] : "";
}

const char *hue_end(bool colored, enum hue hue)
{
	return colored && hue != HUE_NONE ? "\033[0m" : "";
}

size_t output_width(const struct context *context, int fd)
{
	struct winsize size;
	if (context->wide || !isatty(fd))
		return 0;
	return ioctl(fd, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
}

void table_begin(struct table *table, const struct column *columns, size_t count)
{
	*table = (struct table){.columns_count = count};
	memcpy(table->columns, columns, count * sizeof(*columns));
}

void table_add(struct table *table, char *text, enum hue hue)
{
	size_t count = table->cells_count;
	if ((count & (count - 1)) == 0) {
		size_t room = count == 0 ? 1 : count * 2;
		table->cells = must(reallocarray(table->cells, room, sizeof(*table->cells)));
		table->hues = must(reallocarray(table->hues, room, sizeof(*table->hues)));
	}
	table->cells[count] = text;
	table->hues[count] = hue;
	table->cells_count++;
}

void table_fit(const struct table *table, size_t width, size_t widths[COLUMNS_MAX])
{
	size_t sum = 0, count = table->columns_count;
	for (size_t i = 0; i < count; i++)
		widths[i] = table->columns[i].hidden ? 0 : strlen(table->columns[i].title);
	for (size_t i = 0; i < table->cells_count; i++) {
		size_t cell = text_width(table->cells[i]);
		if (!table->columns[i % count].hidden && cell > widths[i % count])
			widths[i % count] = cell;
	}
	for (size_t i = 0; i < count; i++)
		sum += widths[i] + (table->columns[i].hidden ? 0 : 2);
	sum -= 2;
	while (width > 0 && sum > width) {
		size_t widest = count;
		for (size_t i = 0; i < count; i++) {
			size_t least = table->columns[i].least;
			if (least > 0 && widths[i] > least &&
			    (widest == count || widths[i] > widths[widest]))
				widest = i;
		}
		if (widest == count)
			break; /* a very narrow terminal */
		widths[widest]--;
		sum--;
	}
}

static void print_cell(const char *text, const struct column *column, size_t width, bool last,
		       bool colored, enum hue hue)
{
	char *cut = must(strdup(text));
	text_cut(cut, width);
	size_t pad = width - text_width(cut);
	printf("%*s%s%s%s", column->right ? (int)pad : 0, "", hue_begin(colored, hue), cut,
	       hue_end(colored, hue));
	if (!last)
		printf("%*s", column->right ? 2 : (int)pad + 2, "");
	free(cut);
}

void table_print(const struct table *table, const struct context *context)
{
	size_t widths[COLUMNS_MAX], count = table->columns_count, last = 0;
	bool colored = output_colored(context, STDOUT_FILENO);

	table_fit(table, output_width(context, STDOUT_FILENO), widths);
	for (size_t i = 0; i < count; i++)
		last = table->columns[i].hidden ? last : i;
	for (size_t i = 0; i < count + table->cells_count; i++) {
		const struct column *column = &table->columns[i % count];
		bool title = i < count;
		if (!column->hidden)
			print_cell(title ? column->title : table->cells[i - count], column,
				   widths[i % count], i % count == last, colored,
				   title ? HUE_BOLD : table->hues[i - count]);
		if (i % count == count - 1)
			putchar('\n');
	}
}

void table_finish(struct table *table)
{
	for (size_t i = 0; i < table->cells_count; i++)
		free(table->cells[i]);
	free(table->cells);
	free(table->hues);
	*table = (struct table){0};
}
