/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the ways of a site, and checks their effect on a knob. */
#include "knob/way/site.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/service_address.h"
#include "knob/way/command_file.h"
#include "knob/way/way.h"

static const char usual_commands[] = "/etc/flyball/commands.toml", usual_port[] = ":4938";
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

static void find_commands(const char *given, struct site *site)
{
    char *place = site->places[WAY_COMMANDS];
    const char *path = given != NULL ? given : variable(SITE_COMMANDS_VARIABLE);

    site->named[WAY_COMMANDS] = path != NULL;
    if (path != NULL && path[0] != '\0')
        keep_path(path, place);
    else if (path == NULL && access(usual_commands, F_OK) == 0)
        keep_path(usual_commands, place);
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

static void find_daemon(const char *given, struct site *site)
{
    char *place = site->places[WAY_DAEMON];
    const char *address = given != NULL ? given : variable(SITE_DAEMON_VARIABLE);
    const char *host = variable("ZEUSD_HOST_PORT");

    if (address == NULL)
        address = variable("ZEUSD_SOCK_PATH");
    site->named[WAY_DAEMON] = address != NULL || host != NULL;
    if (address != NULL && address[0] != '\0')
        keep_address(address, place);
    else if (address == NULL && host != NULL && strlen(host) < SITE_PLACE_MAX - 16 && is_printable(host))
        snprintf(place, SITE_PLACE_MAX, "http://%s%s", host, strchr(host, ':') == NULL ? usual_port : "");
    for (size_t i = 0;
         !site->named[WAY_DAEMON] && place[0] == '\0' && i < sizeof usual_sockets / sizeof usual_sockets[0];
         i++)
        if (access(usual_sockets[i], F_OK) == 0)
            keep_path(usual_sockets[i], place);
}

void site_init(const struct site_options *options, struct site *out_site)
{
    memset(out_site, 0, sizeof *out_site);
    out_site->commands_first = options->commands_first;
    find_commands(options->commands, out_site);
    find_daemon(options->daemon, out_site);
}

void site_deinit(struct site *site)
{
    command_file_free(site->commands);
    site->commands = NULL;
}

bool site_offers(const struct site *site, enum way way, const struct device *device)
{
    return ways[way]->offers(site, device);
}

bool site_offers_more(const struct site *site, const struct device *device)
{
    for (int way = WAY_DRIVER + 1; way < WAY_COUNT; way++) {
        if (site_offers(site, (enum way)way, device))
            return true;
    }
    return false;
}

int site_replaces_driver(struct site *site, const struct device *device, enum quantity quantity,
                         const struct setting *value, bool *out_replaces, struct fly_error *out_error)
{
    *out_replaces = false;
    if (!site->commands_first || !site_offers(site, WAY_COMMANDS, device))
        return 0;
    return ways[WAY_COMMANDS]->covers(site, device, quantity, value, out_replaces, out_error);
}

bool site_passes_on(enum way way, int code, const struct way_result *result)
{
    if (way == WAY_DRIVER || result->uncertain)
        return code == FLY_EPERM && !result->uncertain;
    return code == FLY_EPERM || code == FLY_ECONFIG || code == FLY_ENOTFOUND || code == FLY_EUNSUPPORTED;
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

int site_set(struct site *site, enum way way, const struct device *device, enum quantity quantity,
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
                         "the %s of GPU %u cannot be set by the site's %s, which are not there any more",
                         quantity_facts[quantity].title, device->info.index, way_name(way));
    known = setting_read(device, quantity, &before) == READING_OK;
    code = ways[way]->set(site, device, quantity, value, &out_result->uncertain, out_error);
    return code < 0 ? code
                    : check_effect(site, way, device, quantity, value, known ? &before : NULL, out_result,
                                   out_error);
}

static const char *const names[] = {
    [WAY_DRIVER] = "driver", [WAY_COMMANDS] = "commands", [WAY_DAEMON] = "daemon"};
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
        snprintf(text, SITE_TEXT_MAX, "the %s %s '%s'", way_name(way), way == WAY_COMMANDS ? "of" : "at",
                 site->places[way]);
    return text;
}
