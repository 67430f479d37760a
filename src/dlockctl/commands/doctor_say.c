/* SPDX-License-Identifier: Apache-2.0
 *
 * How dlockctl doctor says what it has found: as lines, or for JSON.
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "dlockctl/commands/doctor.h"
#include "dlockctl/output.h"
#include "dlockctl/text.h"

const char *const doctor_words[] = {"ok", "warning", "error"};

void doctor_say(struct doctor *doctor, enum result result, const char *check, const char *format,
		...)
{
	static const enum hue hues[] = {HUE_GREEN, HUE_YELLOW, HUE_RED};
	bool colored = output_colored(doctor->context, STDOUT_FILENO);
	char *text;
	va_list arguments;

	va_start(arguments, format);
	int length = vasprintf(&text, format, arguments);
	va_end(arguments);
	must(length >= 0 ? text : NULL);
	doctor->counts[result]++;
	if (doctor->context->json) {
		json_t *object = must(json_pack("{s:s, s:s, s:o}", "check", check, "result",
						doctor_words[result], "message", text_json(text)));
		json_array_append_new(doctor->checks, object);
	} else {
		char *shown = text_printable(text);
		printf("%s%s%s: %s: %s\n", hue_begin(colored, hues[result]), doctor_words[result],
		       hue_end(colored, hues[result]), check, shown);
		free(shown);
	}
	free(text);
}
