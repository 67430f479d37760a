/* SPDX-License-Identifier: Apache-2.0 */
#include "dlockctl/service.h"

#include <stdlib.h>
#include <string.h>

#include "dlockctl/dlockctl.h"
#include "dlockctl/program.h"
#include "dlockctl/text.h"

#define SERVICE	 "dlockfs.service"
#define LIMIT_MS 2000

/* The value of the line KEY=VALUE, to be freed; "" if there is none. */
static char *value_of(const char *text, const char *key)
{
	size_t bytes = strlen(key);

	for (; *text != '\0'; text += strcspn(text, "\n"), text += *text == '\n') {
		if (strncmp(text, key, bytes) == 0 && text[bytes] == '=')
			return must(strndup(text + bytes + 1, strcspn(text + bytes + 1, "\n")));
	}
	return must(strdup(""));
}

/* By what `systemctl show` says; the states are those of systemd(1). */
static char *words_of(const char *text)
{
	char *loaded = value_of(text, "LoadState"), *state = value_of(text, "ActiveState");
	char *result = value_of(text, "Result"), *words;

	if (strcmp(loaded, "loaded") != 0)
		words = must(strdup(""));
	else if (strcmp(state, "failed") == 0)
		words = must_format(" (" SERVICE " has failed: %s; see: journalctl -u dlockfs)",
				    result);
	else if (strcmp(state, "active") == 0)
		words = must_format(" (" SERVICE " is active: its mount was unmounted while "
				    "programs have files of it open, or is not to be seen from "
				    "here; end those, or: systemctl stop dlockfs)");
	else
		words = must_format(" (" SERVICE " is %s; to start it: systemctl start dlockfs)",
				    state);
	free(loaded);
	free(state);
	free(result);
	return words;
}

char *service_words(void)
{
	static const char *const show[] = {
		"systemctl", "show", "--property=LoadState,ActiveState,Result", SERVICE, NULL};
	char *text;

	if (program_run(show[0], show, LIMIT_MS, &text) != 0) {
		free(text);
		return must(strdup(""));
	}
	char *words = words_of(text), *printable = text_printable(words);
	free(words);
	free(text);
	return printable;
}
