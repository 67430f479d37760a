/* SPDX-License-Identifier: Apache-2.0
 *
 * Owns the order of questions. Loop thread only.
 */
#include "files/questions.h"

#include <errno.h>
#include <stdlib.h>
#include <utlist.h>

int questions_join(struct questions *questions, struct question *question, uid_t uid)
{
	struct asker *user;

	HASH_FIND(by_uid, questions->by_uid, &uid, sizeof(uid), user);
	if (user == NULL) {
		user = calloc(1, sizeof(*user));
		if (user == NULL)
			return -ENOMEM;
		user->uid = uid;
		HASH_ADD(by_uid, questions->by_uid, uid, sizeof(user->uid), user);
		if (user->by_uid.tbl == NULL) {
			free(user);
			return -ENOMEM;
		}
		DL_APPEND(questions->first, user);
	}
	question->user = user;
	DL_APPEND(user->waiting, question);
	return 0;
}

static void stop_waiting(struct questions *questions, struct question *question)
{
	struct asker *user = question->user;

	DL_DELETE(user->waiting, question);
	question->user = NULL;
	if (user->waiting != NULL)
		return;
	DL_DELETE(questions->first, user);
	HASH_DELETE(by_uid, questions->by_uid, user);
	free(user);
}

struct question *questions_next(struct questions *questions)
{
	struct asker *user = questions->first;

	if (user == NULL || questions->under_way >= QUESTIONS_AT_ONCE)
		return NULL;
	struct question *question = user->waiting;
	DL_DELETE(questions->first, user);
	DL_APPEND(questions->first, user);
	stop_waiting(questions, question);
	question->under_way = true;
	questions->under_way++;
	return question;
}

void questions_leave(struct questions *questions, struct question *question)
{
	if (question->user != NULL)
		stop_waiting(questions, question);
	questions->under_way -= question->under_way;
	question->under_way = false;
}
