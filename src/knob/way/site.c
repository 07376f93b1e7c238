/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the ways of a site, turns knobs by them, and checks their effect. */
#include "knob/way/site.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/service_address.h"
#include "knob/way/daemon_call.h"
#include "knob/way/operation.h"

enum { HTTP_OK = 200 };

static const char usual_port[] = ":4938";
static const char *const usual_sockets[] = {SITE_FLYBALLD_SOCKET, "/run/zeusd/zeusd.sock"};

static const char *variable(const char *name)
{
    const char *value = getenv(name);

    return value != NULL && value[0] != '\0' ? value : NULL;
}

/* A place is written on a line of the journal. */
static bool is_printable(const char *text)
{
    for (; *text != '\0'; text++) {
        if ((unsigned char)*text < ' ' || *text == 0x7F)
            return false;
    }
    return true;
}

/* Keeps the path; a relative one gets the working directory before it. */
static void keep_path(const char *path, char place[SITE_PLACE_MAX])
{
    char full[SITE_PLACE_MAX * 2] = "";
    int length;

    if (path[0] != '/' && getcwd(full, SITE_PLACE_MAX) == NULL)
        return;
    length = snprintf(full + strlen(full), SITE_PLACE_MAX, "%s%s", path[0] != '/' ? "/" : "", path);
    if (length < SITE_PLACE_MAX && strlen(full) < SITE_PLACE_MAX && is_printable(full))
        memcpy(place, full, strlen(full) + 1);
}

static void keep_address(const char *text, char place[SITE_PLACE_MAX])
{
    const char *rest;
    enum address_form form = address_split(text, &rest);

    if (form == ADDRESS_SOCKET || form == ADDRESS_PATH)
        keep_path(rest, place);
    else if (strlen(text) + strlen("http://") < SITE_PLACE_MAX && is_printable(text))
        snprintf(place, SITE_PLACE_MAX, "%s%s", form == ADDRESS_HOST ? "http://" : "", text);
}

void site_init(const char *daemon, struct site *out_site)
{
    char *place = out_site->daemon;
    const char *address = daemon != NULL ? daemon : variable(SITE_DAEMON_VARIABLE);
    const char *host = variable("ZEUSD_HOST_PORT");

    memset(out_site, 0, sizeof *out_site);
    if (address == NULL)
        address = variable("ZEUSD_SOCK_PATH");
    out_site->named = address != NULL || host != NULL;
    if (address != NULL && address[0] != '\0')
        keep_address(address, place);
    else if (address == NULL && host != NULL && strlen(host) < SITE_PLACE_MAX - 16 && is_printable(host))
        snprintf(place, SITE_PLACE_MAX, "http://%s%s", host, strchr(host, ':') == NULL ? usual_port : "");
    for (size_t i = 0;
         !out_site->named && place[0] == '\0' && i < sizeof usual_sockets / sizeof usual_sockets[0]; i++)
        if (access(usual_sockets[i], F_OK) == 0)
            keep_path(usual_sockets[i], place);
}

int site_check_environment(struct fly_error *out_error)
{
    const char *path = variable(SITE_COMMANDS_VARIABLE);

    if (path == NULL)
        return 0;
    return error_set(out_error, FLY_ECONFIG,
                     SITE_COMMANDS_VARIABLE
                     " names '%.150s', and no command sets limits for users any more: have "
                     "flyballd run, which does it, and unset the variable",
                     path);
}

bool site_offers(const struct site *site, enum way way, const struct device *device)
{
    return way == WAY_DRIVER ? device->backend->set != NULL : site->daemon[0] != '\0';
}

bool site_offers_more(const struct site *site)
{
    return site->daemon[0] != '\0';
}

bool site_passes_on(enum way way, int code, const struct way_result *result)
{
    if (way == WAY_DRIVER || result->uncertain)
        return code == FLY_EPERM && !result->uncertain;
    return code == FLY_EPERM || code == FLY_ECONFIG || code == FLY_ENOTFOUND || code == FLY_EUNSUPPORTED;
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

static int daemon_set(const struct site *site, const struct device *device, enum quantity quantity,
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

/* If a way reports success but the knob is unchanged, it has turned another GPU's knob, or none. */
static int check_effect(const struct site *site, enum way way, const struct device *device,
                        enum quantity quantity, const struct setting *value, const struct setting *before,
                        struct way_result *result, struct fly_error *out_error)
{
    char text[SITE_TEXT_MAX];

    result->state = setting_read(device, quantity, &result->now);
    if (way == WAY_DRIVER || before == NULL || result->state != READING_OK || setting_equals(before, value) ||
        !setting_equals(&result->now, before))
        return 0;
    result->uncertain = true;
    return error_set(out_error, FLY_EREAD,
                     "%s said that the %s of GPU %u was set, and it stands as before; see whether they mean "
                     "this GPU, of UUID %s",
                     site_describe(site, way, text), quantity_facts[quantity].title, device->info.index,
                     device->info.uuid);
}

int site_set(const struct site *site, enum way way, const struct device *device, enum quantity quantity,
             const struct setting *value, struct way_result *out_result, struct fly_error *out_error)
{
    struct setting before;
    bool known;
    int code = setting_check(device, quantity, value, out_error);

    *out_result = (struct way_result){.state = READING_NOT_READ};
    if (code < 0)
        return code;
    if (!site_offers(site, way, device))
        return error_set(out_error, FLY_EUNSUPPORTED,
                         "the %s of GPU %u cannot be set by the %s, which is not there any more",
                         quantity_facts[quantity].title, device->info.index, way_name(way));
    known = setting_read(device, quantity, &before) == READING_OK;
    code = way == WAY_DRIVER ? setting_make(device, quantity, value, out_error)
                             : daemon_set(site, device, quantity, value, &out_result->uncertain, out_error);
    return code < 0 ? code
                    : check_effect(site, way, device, quantity, value, known ? &before : NULL, out_result,
                                   out_error);
}

static const char *const names[] = {[WAY_DRIVER] = "driver", [WAY_DAEMON] = "daemon"};
_Static_assert(sizeof names / sizeof names[0] == WAY_COUNT, "a name for every way");

const char *way_name(enum way way)
{
    return names[way];
}

int way_find(const char *name)
{
    int way = 0;

    while (way < WAY_COUNT && strcmp(names[way], name) != 0)
        way++;
    return way < WAY_COUNT ? way : -1;
}

char *site_describe(const struct site *site, enum way way, char text[SITE_TEXT_MAX])
{
    if (way == WAY_DRIVER)
        snprintf(text, SITE_TEXT_MAX, "the driver");
    else
        snprintf(text, SITE_TEXT_MAX, "the daemon at '%s'", site->daemon);
    return text;
}
