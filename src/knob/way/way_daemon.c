/* SPDX-License-Identifier: Apache-2.0 */
/* Turns knobs through a daemon that runs as root and takes requests over HTTP: flyballd, or the public one
 * (zeusd). */
#include <inttypes.h>
#include <stdio.h>

#include "knob/way/daemon_call.h"
#include "knob/way/operation.h"
#include "knob/way/way.h"

enum { HTTP_OK = 200 };

static bool daemon_offers(const struct site *site, const struct device *device)
{
    (void)device;
    return site->places[WAY_DAEMON][0] != '\0';
}

static void write_query(const struct operation_call *call, unsigned id, char query[DAEMON_URL_MAX])
{
    int length = snprintf(query, DAEMON_URL_MAX, "/gpu/%s?gpu_ids=%u&block=true",
                          operation_facts[call->operation].name, id);

    switch (operation_facts[call->operation].parameter) {
    case PARAMETER_LIMIT:
        snprintf(query + length, DAEMON_URL_MAX - (size_t)length, "&power_limit_mw=%" PRId64, call->limit_mw);
        break;
    case PARAMETER_ENABLED:
        snprintf(query + length, DAEMON_URL_MAX - (size_t)length, "&enabled=%s",
                 call->enabled != 0 ? "true" : "false");
        break;
    case PARAMETER_CLOCKS:
        snprintf(query + length, DAEMON_URL_MAX - (size_t)length,
                 "&min_clock_mhz=%" PRId64 "&max_clock_mhz=%" PRId64, call->min_clock_mhz,
                 call->max_clock_mhz);
        break;
    case PARAMETER_NONE:
        break;
    }
}

static int post(struct daemon_call *daemon, const struct operation_call *call, unsigned id,
                bool *out_uncertain, struct fly_error *out_error)
{
    char query[DAEMON_URL_MAX];
    struct http_answer answer;
    int code;

    write_query(call, id, query);
    code = daemon_call_ask(daemon, "POST", query, &answer, out_error);
    if (code < 0) {
        *out_uncertain = code == FLY_EREAD;
        return code;
    }
    if (answer.status != HTTP_OK)
        code = daemon_call_refused(daemon, &answer, out_error);
    http_answer_deinit(&answer);
    return code;
}

static int daemon_set(struct site *site, const struct device *device, enum quantity quantity,
                      const struct setting *value, bool *out_uncertain, struct fly_error *out_error)
{
    struct operation_call call;
    struct daemon_call daemon;
    unsigned id = 0;
    int code = operation_for(device, quantity, value, &call, out_error);

    if (code < 0)
        return code;
    code = daemon_call_open(site, device, &daemon, out_error);
    if (code == 0)
        code = daemon_call_discover(&daemon, &id, out_error);
    if (code == 0)
        code = post(&daemon, &call, id, out_uncertain, out_error);
    daemon_call_close(&daemon);
    return code;
}

const struct way_calls way_daemon = {
    .offers = daemon_offers,
    .set = daemon_set,
};
