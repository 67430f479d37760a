/* SPDX-License-Identifier: Apache-2.0 */
#include "web/answer.h"

#include <stdlib.h>
#include <string.h>

#include "dlockctl/dlockctl.h"

#define STREAM_BLOCK 65536

static const struct {
	const char *name, *value;
} headers[] = {
	{"Content-Security-Policy",
	 "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
	 "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
	 "require-trusted-types-for 'script'; trusted-types 'none'"},
	{"X-Content-Type-Options", "nosniff"},
	{"X-Frame-Options", "DENY"},
	{"Referrer-Policy", "no-referrer"},
	{"Cross-Origin-Resource-Policy", "same-origin"},
	{"Cross-Origin-Opener-Policy", "same-origin"},
	{"Cache-Control", "no-store"},
};

/* Sends the answer, and drops it. */
static enum MHD_Result send_answer(struct MHD_Connection *connection, unsigned status,
				   struct MHD_Response *answer, const char *type)
{
	if (answer == NULL)
		return MHD_NO;
	for (size_t i = 0; i < sizeof(headers) / sizeof(*headers); i++)
		MHD_add_response_header(answer, headers[i].name, headers[i].value);
	MHD_add_response_header(answer, "Content-Type", type);
	if (status == MHD_HTTP_METHOD_NOT_ALLOWED)
		MHD_add_response_header(answer, "Allow", "GET, HEAD");
	enum MHD_Result result = MHD_queue_response(connection, status, answer);
	MHD_destroy_response(answer);
	return result;
}

static void drop(void *text)
{
	shared_drop(text);
}

enum MHD_Result answer_send_text(struct MHD_Connection *connection, unsigned status,
				 struct shared *text, const char *type)
{
	struct MHD_Response *answer = MHD_create_response_from_buffer_with_free_callback_cls(
		text->bytes, text->text, drop, shared_use(text));

	if (answer == NULL)
		shared_drop(text);
	return send_answer(connection, status, answer, type);
}

enum MHD_Result answer_send_static(struct MHD_Connection *connection, const char *text,
				   size_t bytes, const char *type)
{
	return send_answer(connection, MHD_HTTP_OK,
			   MHD_create_response_from_buffer(bytes, (void *)(uintptr_t)text,
							   MHD_RESPMEM_PERSISTENT),
			   type);
}

enum MHD_Result answer_say(struct MHD_Connection *connection, unsigned status, const char *line)
{
	char *text = must_format("%s\n", line);

	return send_answer(
		connection, status,
		MHD_create_response_from_buffer_with_free_callback(strlen(text), text, free),
		"text/plain; charset=utf-8");
}

enum MHD_Result answer_send_stream(struct MHD_Connection *connection,
				   MHD_ContentReaderCallback read, void *context,
				   MHD_ContentReaderFreeCallback end, const char *type)
{
	struct MHD_Response *answer = MHD_create_response_from_callback(
		MHD_SIZE_UNKNOWN, STREAM_BLOCK, read, context, end);

	if (answer == NULL)
		end(context);
	return send_answer(connection, MHD_HTTP_OK, answer, type);
}
