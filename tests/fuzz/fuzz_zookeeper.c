/* SPDX-License-Identifier: Apache-2.0
 *
 * A server of ZooKeeper that says what the input says, to the real client library and the real
 * store: nothing crashes, and each question of the store is answered once at the most. The input is
 * a list of instructions, one for each packet of the client, and for each moment in which it waits:
 *
 *   0x00 to 0x7f        the right answer
 *   0x80 to 0x9f AT N   the right answer, with numbers[N] at the byte AT of it
 *   0xa0 to 0xbf COUNT  the right header, with so many bytes of the input behind it
 *   0xc0 to 0xcf ERROR  a failure, with that code less 128
 *   0xd0 to 0xdf TYPE   an event of that type, less 8
 *   0xe0 to 0xef COUNT  so many bytes of the input, as they are
 *   0xf0 to 0xff        the end of the connection
 */
#include "fuzz.h"
#include "told.h"

#include <arpa/inet.h>
#include <endian.h>
#include <poll.h>
#include <unistd.h>

#include <zookeeper/proto.h>

#include "base/clock.h"
#include "base/log.h"
#include "config/access.h"
#include "config/url.h"
#include "stores/zookeeper/store.h"

#define LENGTH(array) (sizeof(array) / sizeof((array)[0]))
#define SESSION	      0x1234

enum { IDLE_MS = 5, RUN_MS = 1000, END_MS = 200, TIMEOUT_MS = 1000, BYTES_MAX = 1 << 16 };

static const int32_t numbers[] = {-1, -2, 0, 1, 2, 100, 1 << 16, 1 << 24, INT32_MAX, INT32_MIN};

/* What a server has to say, or what it was told. */
struct packet {
	size_t bytes;
	uint8_t text[BYTES_MAX];
};

static struct store *store;
static int listener, connection;
static struct packet received, sent;
static const uint8_t *input;
static size_t input_bytes;
static bool introduced, connected, asked, ending, over;
static unsigned answers[16]; /* to the store's questions, by their tags */

/* To write packets */

static void add(const void *bytes, size_t count)
{
	REQUIRE(sent.bytes + count <= sizeof(sent.text));
	memcpy(sent.text + sent.bytes, bytes, count);
	sent.bytes += count;
}

static void add_int(int32_t value)
{
	uint32_t big = htobe32((uint32_t)value);

	add(&big, sizeof(big));
}

static void add_long(int64_t value)
{
	uint64_t big = htobe64((uint64_t)value);

	add(&big, sizeof(big));
}

static void add_text(const void *text, size_t bytes)
{
	add_int((int32_t)bytes);
	add(text, bytes);
}

static void add_stat(void)
{
	for (int i = 0; i < 4; i++)
		add_long(1000);
	for (int i = 0; i < 3; i++)
		add_int(0);
	add_long(SESSION);
	add_int(0);
	add_int(0);
	add_long(1000);
}

static void add_names(void)
{
	static const char *const names[] = {"x-0000000001", "_c_other-__WRIT__0000000002",
					    "_c_other-__READ__0000000003", "directory"};

	add_int(LENGTH(names));
	for (size_t i = 0; i < LENGTH(names); i++)
		add_text(names[i], strlen(names[i]));
}

/* To read the client's, which are right. */

static int32_t get_int(const uint8_t **at)
{
	uint32_t big;

	memcpy(&big, *at, sizeof(big));
	*at += sizeof(big);
	return (int32_t)be32toh(big);
}

static const uint8_t *get_text(const uint8_t **at, size_t *ret_bytes)
{
	int32_t bytes = get_int(at);
	const uint8_t *text = *at;

	*ret_bytes = bytes > 0 ? (size_t)bytes : 0;
	*at += *ret_bytes;
	return text;
}

static void add_created(const uint8_t **at)
{
	size_t bytes, ignored;
	const uint8_t *path = get_text(at, &bytes);
	bool numbered;

	get_text(at, &ignored);
	for (int32_t count = get_int(at); count > 0; count--) {
		get_int(at);
		get_text(at, &ignored);
		get_text(at, &ignored);
	}
	numbered = get_int(at) == 3;
	add_int((int32_t)(bytes + (numbered ? 10 : 0)));
	add(path, bytes);
	if (numbered)
		add("0000000004", 10);
}

static void add_results(const uint8_t *at)
{
	for (;;) {
		int32_t type = get_int(&at);
		size_t ignored;

		if (*at++ != 0)
			break;
		get_int(&at);
		add_int(type);
		add("\0", 1);
		add_int(0);
		if (type == ZOO_CREATE_OP || type == ZOO_CREATE_CONTAINER_OP) {
			add_created(&at);
			continue;
		}
		get_text(&at, &ignored);
		if (type == ZOO_SETDATA_OP)
			get_text(&at, &ignored);
		get_int(&at);
		if (type == ZOO_SETDATA_OP)
			add_stat();
	}
	add_int(-1);
	add("\1", 1);
	add_int(-1);
}

/* What is behind the header. */
static void add_result(const uint8_t *request)
{
	const uint8_t *at = request;
	int32_t type;
	size_t bytes;

	get_int(&at);
	type = get_int(&at);
	switch (type) {
	case ZOO_CREATE_OP:
	case ZOO_CREATE_CONTAINER_OP:
		add_created(&at);
		break;
	case ZOO_SYNC_OP: {
		const uint8_t *path = get_text(&at, &bytes);

		add_text(path, bytes);
		break;
	}
	case ZOO_GETDATA_OP:
		add_text("dlockfs-names=2\n", 16);
		add_stat();
		break;
	case ZOO_EXISTS_OP:
	case ZOO_SETDATA_OP:
		add_stat();
		break;
	case ZOO_GETACL_OP:
		add_int(1);
		add_int(31);
		add_text("world", 5);
		add_text("anyone", 6);
		add_stat();
		break;
	case ZOO_GETCHILDREN_OP:
	case ZOO_GETCHILDREN2_OP:
		add_names();
		if (type == ZOO_GETCHILDREN2_OP)
			add_stat();
		break;
	case ZOO_MULTI_OP:
		add_results(at);
		break;
	default:
		break;
	}
}

static void add_header(const uint8_t *request, int32_t error)
{
	const uint8_t *at = request;

	add_int(get_int(&at));
	add_long(1000);
	add_int(error);
}

static void add_session(int64_t session)
{
	add_int(0);
	add_int(TIMEOUT_MS);
	add_long(session);
	add_text("0123456789abcdef", 16);
	add("\0", 1);
}

/* The server */

static void hang_up(void)
{
	if (connection >= 0)
		close(connection);
	connection = -1;
	received.bytes = 0;
	introduced = false;
}

static void add_input(void)
{
	size_t count = fuzz_byte(&input, &input_bytes);

	if (count > input_bytes)
		count = input_bytes;
	add(input, count);
	input += count;
	input_bytes -= count;
}

static void say(bool framed)
{
	uint32_t big = htobe32((uint32_t)sent.bytes);

	if (connection < 0)
		return;
	if ((framed && send(connection, &big, sizeof(big), MSG_NOSIGNAL) < 0) ||
	    (sent.bytes > 0 && send(connection, sent.text, sent.bytes, MSG_NOSIGNAL) < 0))
		hang_up();
}

static void add_right(const uint8_t *request)
{
	if (!introduced) {
		add_session(SESSION);
		return;
	}
	add_header(request, 0);
	add_result(request);
}

/* Follows one instruction. */
static void follow(const uint8_t *request)
{
	uint8_t kind = fuzz_byte(&input, &input_bytes);
	size_t at;
	uint32_t big;

	sent.bytes = 0;
	switch (kind >> 4) {
	case 0x8:
	case 0x9:
		add_right(request);
		at = fuzz_byte(&input, &input_bytes);
		big = htobe32((uint32_t)numbers[fuzz_byte(&input, &input_bytes) % LENGTH(numbers)]);
		if (at + sizeof(big) <= sent.bytes)
			memcpy(sent.text + at, &big, sizeof(big));
		break;
	case 0xa:
	case 0xb:
		add_header(request, 0);
		add_input();
		break;
	case 0xc:
		add_header(request, fuzz_byte(&input, &input_bytes) - 128);
		break;
	case 0xd:
		add_int(-1);
		add_long(-1);
		add_int(0);
		add_int(fuzz_byte(&input, &input_bytes) - 8);
		add_int(3);
		add_text("/root/job", 9);
		break;
	case 0xe:
		add_input();
		say(false);
		return;
	case 0xf:
		hang_up();
		return;
	default:
		add_right(request);
		break;
	}
	say(true);
	introduced = true;
}

/* Takes what the client has sent, and follows an instruction for each packet that is whole. */
static void serve(void)
{
	ssize_t count = recv(connection, received.text + received.bytes,
			     sizeof(received.text) - received.bytes, 0);

	if (count <= 0) {
		hang_up();
		return;
	}
	received.bytes += (size_t)count;
	while (received.bytes >= 4 && input_bytes > 0) {
		const uint8_t *at = received.text;
		size_t bytes = 4 + (size_t)get_int(&at);

		if (bytes > received.bytes)
			break;
		follow(at);
		if (connection < 0)
			break;
		received.bytes -= bytes;
		memmove(received.text, received.text + bytes, received.bytes);
	}
}

/* The engine, in the place of which the target stands */

static void note(void *tag)
{
	unsigned *answer = tag;

	REQUIRE(++*answer == 1);
}

static void on_session(void *context, enum store_session session, int64_t timeout_ms)
{
	connected = session == STORE_CONNECTED;
	REQUIRE(!connected || timeout_ms > 0);
	over = session == STORE_LOST;
	if (over && !ending)
		store->ops->renew(store, nobody_is_told());
}

static void on_renewed(void *context)
{
}

/* In the order of the queue, with a name each. */
static void check_entries(const struct store_entry *entries, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		REQUIRE(*entries[i].name && !strchr(entries[i].name, '/'));
		REQUIRE(i == 0 ||
			claim_name_compare(entries[i - 1].claim.order, entries[i - 1].name,
					   entries[i].claim.order, entries[i].name) <= 0);
	}
}

static void on_placed(void *context, void *tag, int error, const char *name, int64_t order,
		      int64_t after, const struct store_entry *entries, size_t count)
{
	struct claim_name claim;

	note(tag);
	REQUIRE(error != 0 || (claim_name_parse(name, &claim) && claim.order == order));
	check_entries(entries, count);
}

static void on_listed(void *context, void *tag, int error, const struct store_entry *entries,
		      size_t count)
{
	note(tag);
	check_entries(entries, count);
}

static void on_changed(void *context, void *tag)
{
}

static void on_read(void *context, void *tag, const char *text, uint32_t version)
{
	REQUIRE(!text || strlen(text) < BYTES_MAX);
}

static void on_done(void *context, void *tag, int error)
{
	note(tag);
}

static void on_aged(void *context, void *tag, int error, int64_t age_ms, const char *text)
{
	note(tag);
	REQUIRE(error < 0 || (age_ms >= 0 && text != NULL));
}

static void on_proved(void *context, void *tag, int error, const char *missing, int64_t stamp)
{
	note(tag);
	REQUIRE(error != 0 || stamp > 0);
}

static void on_touched(void *context)
{
}

static void on_moratorium(void *context, enum store_moratorium why, int64_t until_ms)
{
	(void)context;
	(void)why;
	(void)until_ms;
}

static const struct store_events events = {
	.on_session = on_session,
	.on_moratorium = on_moratorium,
	.on_renewed = on_renewed,
	.on_placed = on_placed,
	.on_listed = on_listed,
	.on_changed = on_changed,
	.on_read = on_read,
	.on_watched = on_done,
	.on_amended = on_done,
	.on_marked = on_done,
	.on_aged = on_aged,
	.on_withdrawn = on_done,
	.on_proved = on_proved,
	.on_touched = on_touched,
};

static void on_looked(struct store_look *look, int error, const char *const *names, size_t count,
		      const struct store_entry *entries, size_t entries_count)
{
	check_entries(entries, entries_count);
}

static void on_file_names(struct store_files *files, int error, const char *const *names,
			  size_t count)
{
}

static void on_claim_read(struct store_read *read, int error, const struct store_claim *claim)
{
}

static void on_change(struct store_change *change, int error)
{
}

static struct store_look look = {on_looked};
static struct store_files files = {on_file_names};
static struct store_read reading = {on_claim_read};
static struct store_change change = {on_change};

/* Everything that can be asked, once. */
static void ask(void)
{
	static const char claim[] = "_c_11111111-1111-8111-8000-000100000001-__WRIT__0000000004";
	static const struct store_proof proofs[] = {{"job", claim, "text", 1},
						    {"a//b", NULL, NULL, 0}};
	static const struct store_step steps[] = {{STEP_TAKE, "a//b", "text", 0},
						  {STEP_CHECK, "a//c", NULL, 0}};
	struct claim_name name = {.mode = CLAIM_EXCLUSIVE,
				  .recipe = CLAIM_CURATOR_RW,
				  .span = CLAIM_SPAN_WHOLE,
				  .id = {1, 1, 1}};
	const struct store_ops *ops = store->ops;
	unsigned *tag = answers;

	asked = true;
	ops->list(store, tag++, "job", true, true);
	ops->place(store, tag++, "job", &name, "text", true, NULL);
	name.recipe = CLAIM_CURATOR_ANY;
	ops->place(store, tag++, "job/below", &name, "text", true, NULL);
	ops->watch(store, tag++, "job", claim);
	ops->amend(store, tag++, "job", claim, "text", 1);
	ops->mark(store, tag++, "job", claim, "text", 1000);
	ops->age(store, tag++, "job", claim);
	ops->withdraw(store, nobody_is_told(), tag++, "job", claim, 4, true);
	ops->prove(store, tag++, proofs, LENGTH(proofs));
	ops->touch(store);
	ops->look(store, &look, "");
	ops->look(store, &look, "job");
	ops->files(store, &files, "a");
	ops->read(store, &reading, "job", claim);
	ops->write(store, &change, "job", claim, "text", 1);
	ops->remove(store, &change, "job", claim, 0);
	ops->alter(store, &change, steps, LENGTH(steps));
	REQUIRE((size_t)(tag - answers) <= LENGTH(answers));
}

static void listen_on_loopback(struct sockaddr_in *address)
{
	socklen_t bytes = sizeof(*address);

	address->sin_family = AF_INET;
	address->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	REQUIRE(listener >= 0 && bind(listener, (struct sockaddr *)address, bytes) == 0);
	REQUIRE(listen(listener, 16) == 0);
	REQUIRE(getsockname(listener, (struct sockaddr *)address, &bytes) == 0);
}

/* Until the input is used up, and both sides have nothing more to do. */
static void run(void)
{
	int64_t end_ms = clock_awake_ms() + RUN_MS;

	while (clock_awake_ms() < end_ms) {
		struct pollfd descriptors[] = {
			{listener, connection < 0 && input_bytes > 0 ? POLLIN : 0, 0},
			{connection, POLLIN, 0},
			{store->ops->descriptor(store), POLLIN, 0},
		};
		static const uint8_t nobody[64];

		if (poll(descriptors, LENGTH(descriptors), IDLE_MS) == 0) {
			if (input_bytes == 0)
				return;
			if (connection >= 0 && introduced)
				follow(nobody);
		}
		if (descriptors[1].revents)
			serve();
		else if (descriptors[0].revents)
			connection = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
		if (descriptors[2].revents)
			store->ops->dispatch(store);
		if (connected && !asked)
			ask();
	}
}

/* The session is over, for the next connection: the client closes at once only what it has lost. */
static void end_session(void)
{
	int64_t end_ms = clock_awake_ms() + END_MS;

	ending = true;
	while (!over && clock_awake_ms() < end_ms) {
		struct pollfd descriptors[] = {
			{listener, POLLIN, 0},
			{store->ops->descriptor(store), POLLIN, 0},
		};

		poll(descriptors, LENGTH(descriptors), IDLE_MS);
		if (descriptors[0].revents) {
			hang_up();
			connection = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
			sent.bytes = 0;
			add_session(0);
			say(true);
		}
		if (descriptors[1].revents)
			store->ops->dispatch(store);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	struct sockaddr_in address = {.sin_port = 0};
	static const struct store_access access;
	char servers[32];
	struct store_url url = {
		.scheme = STORE_SCHEME_ZOOKEEPER, .servers = servers, .root = (char *)"/root"};
	struct store_options options = {
		.url = &url, .access = &access, .session_timeout_ms = TIMEOUT_MS};

	log_set_level(LOG_LEVEL_ERROR);
	listen_on_loopback(&address);
	snprintf(servers, sizeof(servers), "127.0.0.1:%d", ntohs(address.sin_port));
	input = data;
	input_bytes = bytes;
	connection = -1;
	introduced = connected = asked = ending = over = false;
	received.bytes = 0;
	memset(answers, 0, sizeof(answers));
	REQUIRE(store_zookeeper_kind.open(&options, &events, NULL, &store) == 0);
	run();
	hang_up();
	end_session();
	hang_up();
	close(listener);
	store->ops->close(store, nobody_is_told());
	return 0;
}
