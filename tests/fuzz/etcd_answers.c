/* SPDX-License-Identifier: Apache-2.0
 *
 * The answers of etcd_calls.h: bytes of the input, or what has the form of an answer to the
 * request.
 */
#include "etcd_calls.h"

#include "stores/etcd/etcd.pb-c.h"

uint8_t input_take(struct input *in)
{
	return fuzz_byte(&in->data, &in->bytes);
}

static int64_t take_number(struct input *in)
{
	static const int64_t edges[] = {0,	   1,	      2,	 7,	    1000, -1,
					INT64_MIN, INT64_MAX, INT32_MAX, INT32_MIN, 300,  301};
	uint8_t kind = input_take(in);

	if (kind < 200)
		return 1 + kind % 8;
	if (kind < 250)
		return edges[kind % (sizeof(edges) / sizeof(*edges))];
	return (int64_t)fuzz_number(&in->data, &in->bytes);
}

static char *keep(const void *bytes, size_t count)
{
	char *copy = malloc(count + 1);

	REQUIRE(copy);
	memcpy(copy, bytes, count);
	copy[count] = '\0';
	return copy;
}

/* Bytes that lead somewhere, behind what is in `out` already. */
static size_t put_part(struct input *in, char *out, size_t room)
{
	static const char *const parts[] = {
		"/data",
		"write/00000000000000ab.1",
		"read/00000000000000ab.2",
		"/",
		"694d8a1c2f3b5d07",
		"00000000000000ab.3",
		"_c_00000000-0000-0000-0000-0000000000ab-k1-__WRIT__\nkind=flock",
		"ffffffffffffffff",
		"0000000000000001",
		"made=1\ntext",
		"a/b/c",
		"",
	};
	uint8_t kind = input_take(in);
	const char *part = parts[kind % (sizeof(parts) / sizeof(*parts))];
	size_t bytes = strlen(part);

	if (kind >= 230) {
		bytes = input_take(in) % 40;
		bytes = bytes < in->bytes ? bytes : in->bytes;
		part = (const char *)in->data;
	}
	bytes = bytes < room ? bytes : room;
	memcpy(out, part, bytes);
	if (kind >= 230) {
		in->data += bytes;
		in->bytes -= bytes;
	}
	return bytes;
}

static ProtobufCBinaryData make_bytes(struct input *in, const ProtobufCBinaryData *begin)
{
	char text[512];
	size_t count = 0;
	uint8_t kind = input_take(in);

	if (begin && kind < 220) {
		count = begin->len < 256 ? begin->len : 256;
		memcpy(text, begin->data, count);
		count -= kind >= 200 && count > 0;
	}
	for (int i = 0; i < kind % 3; i++)
		count += put_part(in, text + count, sizeof(text) - count);
	return (ProtobufCBinaryData){count, (uint8_t *)keep(text, count)};
}

static Etcd__KeyValue *make_kv(struct input *in, const ProtobufCBinaryData *key)
{
	Etcd__KeyValue *kv = malloc(sizeof(*kv));

	REQUIRE(kv);
	etcd__key_value__init(kv);
	kv->key = make_bytes(in, key);
	kv->value = make_bytes(in, NULL);
	kv->create_revision = take_number(in);
	kv->mod_revision = take_number(in);
	kv->version = take_number(in);
	kv->lease = take_number(in);
	return kv;
}

static Etcd__Header *make_header(struct input *in)
{
	Etcd__Header *header;

	if (input_take(in) >= 250)
		return NULL;
	header = malloc(sizeof(*header));
	REQUIRE(header);
	etcd__header__init(header);
	header->member_id = input_take(in) % 4;
	header->revision = take_number(in);
	header->raft_term = input_take(in) % 4;
	return header;
}

static Etcd__ResponseOp *make_step(struct input *in, const Etcd__RequestOp *asked_for)
{
	Etcd__ResponseOp *step = malloc(sizeof(*step));
	Etcd__RangeResponse *range = malloc(sizeof(*range));
	size_t count = input_take(in) % 4;

	REQUIRE(step && range);
	etcd__response_op__init(step);
	etcd__range_response__init(range);
	if (asked_for->request_case != ETCD__REQUEST_OP__REQUEST_RANGE || input_take(in) >= 250) {
		free(range);
		return step;
	}
	step->response_case = ETCD__RESPONSE_OP__RESPONSE_RANGE;
	step->range = range;
	range->kvs = calloc(count + 1, sizeof(*range->kvs));
	REQUIRE(range->kvs);
	for (size_t i = 0; i < count; i++)
		range->kvs[range->n_kvs++] = make_kv(in, &asked_for->range->key);
	range->more = input_take(in) >= 200;
	return step;
}

/* In the form of what was asked. */
static size_t make_answer(struct input *in, const struct grpc_call *call, uint8_t *out)
{
	Etcd__TxnRequest *request =
		etcd__txn_request__unpack(NULL, call->request_bytes, call->request);
	Etcd__TxnResponse *answer = malloc(sizeof(*answer));
	Etcd__RequestOp **steps;
	size_t count, bytes;

	REQUIRE(request && answer);
	etcd__txn_response__init(answer);
	answer->header = make_header(in);
	answer->succeeded = input_take(in) < 160;
	steps = answer->succeeded ? request->success : request->failure;
	count = answer->succeeded ? request->n_success : request->n_failure;
	if (input_take(in) >= 250)
		count /= 2;
	answer->responses = calloc(count + 1, sizeof(*answer->responses));
	REQUIRE(answer->responses);
	for (size_t i = 0; i < count; i++)
		answer->responses[answer->n_responses++] = make_step(in, steps[i]);
	bytes = etcd__txn_response__get_packed_size(answer);
	if (bytes <= ANSWER_BYTES_MAX)
		etcd__txn_response__pack(answer, out);
	else
		bytes = 0;
	etcd__txn_response__free_unpacked(answer, NULL);
	etcd__txn_request__free_unpacked(request, NULL);
	return bytes;
}

static size_t make_kept(struct input *in, int64_t lease, uint8_t *out)
{
	Etcd__LeaseKeepAliveResponse answer = ETCD__LEASE_KEEP_ALIVE_RESPONSE__INIT;
	int64_t asked_for = net.kept_count > 0 ? net.kept[0] : lease;
	size_t bytes;

	if (net.kept_count > 0)
		memmove(net.kept, net.kept + 1, --net.kept_count * sizeof(net.kept[0]));
	answer.header = make_header(in);
	answer.id = input_take(in) < 240 ? asked_for : take_number(in);
	answer.ttl = input_take(in) < 200 ? (asked_for == lease ? 5 : 0) : take_number(in);
	bytes = etcd__lease_keep_alive_response__pack(&answer, out);
	free(answer.header);
	return bytes;
}

static size_t make_grant(struct input *in, uint8_t *out)
{
	Etcd__LeaseGrantResponse answer = ETCD__LEASE_GRANT_RESPONSE__INIT;

	answer.id = input_take(in) < 240 ? 0xab : take_number(in);
	answer.ttl = input_take(in) < 240 ? 5 : take_number(in);
	return etcd__lease_grant_response__pack(&answer, out);
}

static size_t make_events(struct input *in, uint8_t *out)
{
	static const char begin[] = "/root/a/b/";
	const ProtobufCBinaryData key = {sizeof(begin) - 1, (uint8_t *)begin};
	Etcd__WatchResponse *answer = malloc(sizeof(*answer));
	size_t count = input_take(in) % 3, bytes;

	REQUIRE(answer);
	etcd__watch_response__init(answer);
	answer->header = make_header(in);
	answer->watch_id = input_take(in) % 8;
	answer->canceled = input_take(in) >= 240;
	answer->events = calloc(count + 1, sizeof(*answer->events));
	REQUIRE(answer->events);
	for (size_t i = 0; i < count; i++) {
		Etcd__Event *event = malloc(sizeof(*event));

		REQUIRE(event);
		etcd__event__init(event);
		event->type = (Etcd__Event__Type)(input_take(in) % 3);
		event->kv = input_take(in) < 250 ? make_kv(in, &key) : NULL;
		answer->events[answer->n_events++] = event;
	}
	bytes = etcd__watch_response__get_packed_size(answer);
	if (bytes <= ANSWER_BYTES_MAX)
		etcd__watch_response__pack(answer, out);
	else
		bytes = 0;
	etcd__watch_response__free_unpacked(answer, NULL);
	return bytes;
}

static int take_status(struct input *in, const char **ret_text)
{
	static const struct {
		int status;
		const char *text;
	} refusals[] = {
		{GRPC_NOT_FOUND, "etcdserver: requested lease not found"},
		{GRPC_RESOURCE_EXHAUSTED, "etcdserver: mvcc: database space exceeded"},
		{GRPC_RESOURCE_EXHAUSTED, "too long"},
		{GRPC_PERMISSION_DENIED, "etcdserver: permission denied"},
		{GRPC_INVALID_ARGUMENT, "etcdserver: revision of auth store is old"},
		{GRPC_INVALID_ARGUMENT, "etcdserver: duplicate key given in txn request"},
		{GRPC_UNAVAILABLE, "etcdserver: leader changed"},
		{GRPC_UNKNOWN, "raft proposal dropped"},
	};
	size_t i = input_take(in) % (sizeof(refusals) / sizeof(*refusals));

	*ret_text = refusals[i].text;
	return refusals[i].status;
}

/* Answers one of the calls. */
void answer(struct input *in, int64_t lease)
{
	static uint8_t out[ANSWER_BYTES_MAX];
	struct grpc_call *call = net.calls;
	uint8_t kind = input_take(in);
	const char *text = "";
	size_t bytes = 0;

	for (size_t skip = net.count > 0 ? kind % 4 % net.count : 0; skip > 0; skip--)
		call = call->next;
	if (!call)
		return;
	if (kind >= 235) {
		int status = take_status(in, &text);

		net_deliver(call, true, status, text, NULL, 0);
		return;
	}
	if (kind >= 225) {
		bytes = input_take(in);
		bytes = bytes < in->bytes ? bytes : in->bytes;
		memcpy(out, in->data, bytes);
		in->data += bytes;
		in->bytes -= bytes;
	} else if (call->is_stream) {
		bytes = call->is_keeper ? make_kept(in, lease, out) : make_events(in, out);
	} else if (call->is_transaction) {
		bytes = make_answer(in, call, out);
	} else {
		bytes = make_grant(in, out);
	}
	net_deliver(call, !call->is_stream, GRPC_OK, "", out, bytes);
}
