/* SPDX-License-Identifier: Apache-2.0
 *
 * Answers to requests, with the headers that all of them have: a browser loads nothing from
 * elsewhere, shows the page in no frame, and lets no other page read it.
 */
#ifndef WEB_ANSWER_H
#define WEB_ANSWER_H

#include <microhttpd.h>
#include <stddef.h>

#include "web/shared.h"

/* Answers with the text, of which it is a user until it is sent. */
enum MHD_Result answer_send_text(struct MHD_Connection *connection, unsigned status,
				 struct shared *text, const char *type);

/* Answers with what lasts as long as the program. */
enum MHD_Result answer_send_static(struct MHD_Connection *connection, const char *text,
				   size_t bytes, const char *type);

/* Answers with a line of text. */
enum MHD_Result answer_say(struct MHD_Connection *connection, unsigned status, const char *line);

/* Answers with a text comes by and by; `read` and `end` as of MHD_create_response_from_callback().
 */
enum MHD_Result answer_send_stream(struct MHD_Connection *connection,
				   MHD_ContentReaderCallback read, void *context,
				   MHD_ContentReaderFreeCallback end, const char *type);

#endif
