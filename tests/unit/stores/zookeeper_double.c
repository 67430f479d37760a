/* SPDX-License-Identifier: Apache-2.0
 *
 * Owns what was noted last.
 */
#include "zookeeper_double.h"

#include <stdio.h>

struct double_call double_call;

static zhandle_t *note(const char *function, const char *servers, int timeout_ms, void *context)
{
	double_call.function = function;
	double_call.timeout_ms = timeout_ms;
	double_call.context = context;
	snprintf(double_call.servers, sizeof(double_call.servers), "%s", servers);
	return (zhandle_t *)&double_call;
}

zhandle_t *zookeeper_init2(const char *servers, watcher_fn watcher, int timeout_ms,
			   const clientid_t *id, void *context, int flags, log_callback_fn log)
{
	double_call.logs = log;
	return note("zookeeper_init2", servers, timeout_ms, context);
}

zhandle_t *zookeeper_init_ssl(const char *servers, const char *certificates, watcher_fn watcher,
			      int timeout_ms, const clientid_t *id, void *context, int flags)
{
	snprintf(double_call.certificates, sizeof(double_call.certificates), "%s", certificates);
	return note("zookeeper_init_ssl", servers, timeout_ms, context);
}

zhandle_t *zookeeper_init_sasl(const char *servers, watcher_fn watcher, int timeout_ms,
			       const clientid_t *id, void *context, int flags, log_callback_fn log,
			       zoo_sasl_params_t *parameters)
{
	double_call.logs = log;
	double_call.callbacks = parameters->callbacks;
	snprintf(double_call.service, sizeof(double_call.service), "%s", parameters->service);
	snprintf(double_call.host, sizeof(double_call.host), "%s", parameters->host);
	snprintf(double_call.mechanisms, sizeof(double_call.mechanisms), "%s",
		 parameters->mechlist);
	return note("zookeeper_init_sasl", servers, timeout_ms, context);
}

void zoo_set_log_callback(zhandle_t *handle, log_callback_fn log)
{
	double_call.logs = log;
}
