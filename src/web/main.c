/* SPDX-License-Identifier: Apache-2.0
 *
 * dlockfs-web: what dlockctl serve runs. A program of its own, so that only hosts that have it need
 * a library for HTTP; it knows the mount by the code of dlockctl, and by nothing else.
 *
 *     main        the life of the process
 *     settings    its options
 *     server      requests of HTTP, and the loop
 *     requests    who waits for which document    viewers  who has the page open
 *     reader      the processes that make documents
 *     document    what is asked for, made of what the mount says
 *     answer, connections, shared                 what all answers have; by when; texts of several
 *     page.html, page.js, page.css                the page itself, which assets has
 */
#include <locale.h>
#include <stdlib.h>

#include "web/server.h"

int main(int argc, char **argv)
{
	struct settings settings;

	/* What is shown does not depend on the locale of who has started it. */
	setlocale(LC_CTYPE, "C.UTF-8");
	int status = settings_read(&settings, argc, argv);
	if (status < 0)
		status = server_run(&settings);
	settings_finish(&settings);
	return status;
}
