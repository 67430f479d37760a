/* SPDX-License-Identifier: Apache-2.0
 *
 * What the codes of answers mean, and the lines about them in the log. The loop's thread only.
 */
#include <errno.h>
#include <string.h>

#include "base/log.h"
#include "stores/zookeeper/operation.h"

/* A message about a claim is limited by its lock: claims are many. */
static bool may_log(const struct operation *operation, int code, const char *doing)
{
	bool of_lock = operation->kind == STORE_LIST || operation->kind == STORE_LOOK;
	size_t bytes = of_lock ? strlen(operation->path)
			       : (size_t)(strrchr(operation->path, '/') - operation->path);

	return log_limit_passes(&operation->store->refusals, histogram_now_us() / 1000, doing,
				operation->path, bytes, code);
}

static const char *reason_of(int code)
{
	if (code == ZOOKEEPER_TOO_LONG)
		return "the data are longer than what the servers take (jute.maxbuffer)";
	return code == ZEPHEMERALONLOCALSESSION
		       ? "the servers give only local sessions, in which nothing can be locked: "
			 "set localSessionsUpgradingEnabled=true there, or "
			 "localSessionsEnabled=false"
		       : zerror(code);
}

/* Requests get ZRUNTIMEINCONSISTENCY when the client drops a connection whose answers do not fit
 * the requests; and ZSESSIONCLOSEDREQUIRESASLAUTH from a server that requires an authentication
 * scheme which the session has not used (enforce.auth.enabled): that server closes the connection,
 * though not the session. */
int operation_error(const struct operation *operation, int code, const char *doing)
{
	switch (code) {
	case ZOK:
		return 0;
	case ZCONNECTIONLOSS:
	case ZOPERATIONTIMEOUT:
	case ZRUNTIMEINCONSISTENCY:
	case ZSESSIONEXPIRED:
	case ZSESSIONMOVED:
	case ZINVALIDSTATE:
	case ZCLOSING:
		return -ECONNRESET;
	case ZSESSIONCLOSEDREQUIRESASLAUTH:
		operation->store->refused |= operation->session == operation->store->session;
		return -ECONNRESET;
	default:
		if (may_log(operation, code, doing))
			log_error("ZooKeeper: %s %s: %s", doing, operation->path, reason_of(code));
		break;
	}
	switch (code) {
	case ZNOAUTH:
	case ZAUTHFAILED:
	case ZINVALIDACL:
		return -EACCES;
	case ZOOKEEPER_TOO_LONG:
		return -EMSGSIZE;
	default:
		return -EIO;
	}
}
