/* SPDX-License-Identifier: Apache-2.0 */
#include "job/core/api.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/number.h"
#include "job/core/definition.h"

enum { PARTS_MAX = 8 };

static const char root[] = "/v1/";

/* Routes with the same path are next to each other, so that the methods of a path can be listed. */
const struct api_route api_routes[API_OPERATIONS] = {
    [API_LIST] = {.name = "list",
                  .method = "GET",
                  .path = "/v1/jobs",
                  .about = "All jobs",
                  .right = API_TO_READ,
                  .answers_by = API_JSON,
                  .answers = &shape_list},
    [API_SHOW] = {.name = "show",
                  .method = "GET",
                  .path = "/v1/jobs/{job}",
                  .about = "A job as it stands",
                  .right = API_TO_READ,
                  .answers_by = API_JSON,
                  .answers = &shape_shown},
    [API_DEFINE] = {.name = "define",
                    .method = "PUT",
                    .path = "/v1/jobs/{job}",
                    .about =
                        "Registers a job, or compares with the definition on record; 409 names what differs",
                    .right = API_TO_TRAIN,
                    .asks_by = API_JSON,
                    .asks = &shape_definition_asked,
                    .answers_by = API_JSON,
                    .answers = &shape_registered},
    [API_SET] = {.name = "set",
                 .method = "PATCH",
                 .path = "/v1/jobs/{job}",
                 .about = "Changes what is wanted of a job from now on",
                 .right = API_TO_MANAGE,
                 .asks_by = API_JSON,
                 .asks = &shape_setting},
    [API_REMOVE] = {.name = "remove",
                    .method = "DELETE",
                    .path = "/v1/jobs/{job}",
                    .about = "Removes a job with all that was observed of it",
                    .right = API_TO_MANAGE},
    [API_EXPIRE] = {.name = "expire",
                    .method = "POST",
                    .path = "/v1/jobs/{job}/expire",
                    .about = "Writes down which trials have expired; every other change does so first",
                    .right = API_TO_TRAIN,
                    .answers_by = API_JSON,
                    .answers = &shape_expired},
    [API_READ] = {.name = "read",
                  .method = "GET",
                  .path = "/v1/jobs/{job}/events",
                  .about = "A page of the job's log; ask with the last number as `after` until one is empty",
                  .right = API_TO_READ,
                  .answers_by = API_LINES,
                  .answers = &shape_event},
    [API_DIGEST] = {.name = "digest",
                    .method = "GET",
                    .path = "/v1/jobs/{job}/digest",
                    .about = "What a client of the same version need not read of the log; may be empty",
                    .right = API_TO_READ,
                    .answers_by = API_BYTES},
    [API_IMPORT] = {.name = "import",
                    .method = "POST",
                    .path = "/v1/jobs/{job}/events",
                    .about = "Makes a job from exported lines",
                    .right = API_TO_MANAGE,
                    .asks_by = API_LINES,
                    .asks = &shape_event},
    [API_PROPOSE] = {.name = "propose",
                     .method = "POST",
                     .path = "/v1/jobs/{job}/trials",
                     .about = "What to run: a new trial, or the next attempt at the one of a requeued run",
                     .right = API_TO_TRAIN,
                     .asks_by = API_JSON,
                     .asks = &shape_question,
                     .answers_by = API_JSON,
                     .answers = &shape_proposal},
    [API_PROFILE] = {.name = "profile",
                     .method = "POST",
                     .path = "/v1/jobs/{job}/trials/{trial}/profile",
                     .about = "Takes the power profile of a trial that wanted one, and chooses the limit",
                     .right = API_TO_TRAIN,
                     .asks_by = API_JSON,
                     .asks = &shape_profile,
                     .answers_by = API_JSON,
                     .answers = &shape_choice},
    [API_HEARTBEAT] = {.name = "heartbeat",
                       .method = "POST",
                       .path = "/v1/jobs/{job}/trials/{trial}/heartbeats",
                       .about = "A sign of life, until the first epoch is reported",
                       .right = API_TO_TRAIN,
                       .asks_by = API_JSON,
                       .asks = &shape_beat},
    [API_REPORT] = {.name = "report",
                    .method = "POST",
                    .path = "/v1/jobs/{job}/trials/{trial}/epochs",
                    .about = "An epoch's end: whether to go on. Known by trial, attempt and epoch",
                    .right = API_TO_TRAIN,
                    .asks_by = API_JSON,
                    .asks = &shape_epoch,
                    .answers_by = API_JSON,
                    .answers = &shape_answered},
    [API_END] = {.name = "end",
                 .method = "POST",
                 .path = "/v1/jobs/{job}/trials/{trial}/end",
                 .about = "A trial's end, or the figures of the whole run after a report has ended it",
                 .right = API_TO_TRAIN,
                 .asks_by = API_JSON,
                 .asks = &shape_end,
                 .answers_by = API_JSON,
                 .answers = &shape_ended},
};

const struct api_parameter api_parameters[API_PARAMETERS] = {
    {.name = "after", .about = "Events with numbers above this one"},
    {.name = "trial", .about = "Events of this trial; 0: of all and of none"},
    {.name = "key", .about = "The event with this key", .text = true},
    {.name = "limit", .about = "At most so many; an answer may have fewer, a digest more", .least = 1},
};

int api_number(const char *name, const char *text, uint64_t least, uint64_t *out_value,
               struct fly_error *out_error)
{
    uint64_t value;

    if (!number_parse_u64(text, INT64_MAX, &value) || value < least)
        return error_set(out_error, FLY_EUSAGE,
                         "query '%s=%.40s': expected a whole number of at least %" PRIu64, name, text, least);
    *out_value = value;
    return 0;
}

int api_error_code(const char *word)
{
#define CODE_ROW(name, code, exit_status, http_status, sentence) {#name, (code)},
    static const struct {
        const char *word;
        int code;
    } codes[] = {FLY_ERROR_MAP(CODE_ROW)};
#undef CODE_ROW

    for (size_t i = 0; i < sizeof codes / sizeof codes[0]; i++) {
        if (strcmp(codes[i].word, word) == 0)
            return codes[i].code;
    }
    return 0;
}

/* ---- finding ---- */

bool api_is_below(const char *path)
{
    return strncmp(path, root, sizeof root - 1) == 0 || strcmp(path, "/v1") == 0;
}

static int hex_digit(char c)
{
    static const char digits[] = "0123456789abcdef";
    const char *at = c != '\0' ? strchr(digits, tolower((unsigned char)c)) : NULL;

    return at != NULL ? (int)(at - digits) : -1;
}

/* Decodes a part of a path; returns whether it is valid and fits. */
static bool decode(const char *from, size_t length, char *out, size_t room)
{
    size_t used = 0;

    for (size_t i = 0; i < length; i++) {
        unsigned char c = (unsigned char)from[i];

        if (c == '%') {
            int high = length - i > 2 ? hex_digit(from[i + 1]) : -1;
            int low = length - i > 2 ? hex_digit(from[i + 2]) : -1;

            if (high < 0 || low < 0)
                return false;
            c = (unsigned char)(high << 4 | low);
            i += 2;
        }
        if (c < 0x20 || used + 1 >= room)
            return false;
        out[used++] = (char)c;
    }
    out[used] = '\0';
    return used > 0;
}

/* A part between two slashes. */
struct part {
    const char *text;
    size_t length;
};

static size_t split(const char *path, struct part parts[PARTS_MAX])
{
    size_t count = 0;

    while (*path == '/' && count < PARTS_MAX) {
        size_t length = strcspn(path + 1, "/");

        parts[count++] = (struct part){path + 1, length};
        path += 1 + length;
    }
    return *path == '\0' ? count : 0;
}

static bool is(const struct part *part, const char *text)
{
    return part->length == strlen(text) && strncmp(part->text, text, part->length) == 0;
}

/* Whether the parts match the route, except for its placeholders. */
static bool fits(const struct api_route *route, const struct part *parts, size_t count)
{
    struct part wanted[PARTS_MAX] = {{NULL, 0}};

    if (split(route->path, wanted) != count)
        return false;
    for (size_t i = 0; i < count; i++) {
        if (wanted[i].text[0] != '{' && (wanted[i].length != parts[i].length ||
                                         strncmp(wanted[i].text, parts[i].text, parts[i].length) != 0))
            return false;
    }
    return true;
}

static int fill(const struct api_route *route, const struct part *parts, struct api_place *place,
                struct fly_error *out_error)
{
    struct part wanted[PARTS_MAX] = {{NULL, 0}};
    size_t count = split(route->path, wanted);
    char number[32];

    for (size_t i = 0; i < count; i++) {
        if (is(&wanted[i], "{job}") &&
            (!decode(parts[i].text, parts[i].length, place->job, sizeof place->job) ||
             !job_name_fits(place->job)))
            return error_set(
                out_error, FLY_ENOTFOUND,
                "job '%.*s' cannot be: expected 1 to %d of a-z A-Z 0-9 - _ . without a dot in front",
                parts[i].length < 100 ? (int)parts[i].length : 100, parts[i].text, JOB_NAME_MAX);
        if (is(&wanted[i], "{trial}") &&
            (!decode(parts[i].text, parts[i].length, number, sizeof number) ||
             !number_parse_u64(number, INT64_MAX, &place->trial) || place->trial == 0))
            return error_set(out_error, FLY_ENOTFOUND,
                             "trial '%.*s' cannot be: expected a whole number from 1",
                             parts[i].length < 40 ? (int)parts[i].length : 40, parts[i].text);
    }
    return 0;
}

/* The methods of a path, in the table's order. */
static const char *allowed_at(const struct api_route *like)
{
    static const struct {
        const char *path, *methods;
    } rows[] = {{"/v1/jobs/{job}", "GET, PUT, PATCH, DELETE"}, {"/v1/jobs/{job}/events", "GET, POST"}};

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        if (strcmp(rows[i].path, like->path) == 0)
            return rows[i].methods;
    }
    return like->method;
}

int api_find(const char *method, const char *path, struct api_place *out_place, const char **out_allowed,
             struct fly_error *out_error)
{
    const struct api_route *near = NULL;
    struct part parts[PARTS_MAX] = {{NULL, 0}};
    size_t count = split(path, parts);

    for (size_t i = 0; i < API_OPERATIONS && count > 0; i++) {
        struct api_place place = {.operation = (enum api_operation)i};
        int code;

        if (!fits(&api_routes[i], parts, count))
            continue;
        near = &api_routes[i];
        if (strcmp(near->method, method) != 0)
            continue;
        code = fill(near, parts, &place, out_error);
        if (code == 0)
            *out_place = place;
        return code;
    }
    if (near == NULL)
        return error_set(out_error, FLY_EUNSUPPORTED, "there is nothing at '%.200s'; see /v1/openapi.json",
                         path);
    *out_allowed = allowed_at(near);
    return error_set(out_error, FLY_EUSAGE, "'%.200s' does not take %.16s; it takes %s", path, method,
                     *out_allowed);
}

/* ---- asking ---- */

static void put_encoded(struct buffer *out, const char *text)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.~";

    for (; *text != '\0'; text++) {
        if (strchr(plain, *text) != NULL)
            buffer_append(out, text, 1);
        else
            buffer_printf(out, "%%%02X", (unsigned)(unsigned char)*text);
    }
}

void api_put_path(const struct api_place *place, struct buffer *out)
{
    const char *path = api_routes[place->operation].path;

    while (*path != '\0') {
        size_t length = strcspn(path, "{");

        buffer_append(out, path, length);
        path += length;
        if (strncmp(path, "{job}", strlen("{job}")) == 0)
            put_encoded(out, place->job);
        else if (*path == '{')
            buffer_printf(out, "%" PRIu64, place->trial);
        path += strcspn(path, "}");
        path += *path == '}';
    }
}

void api_put_query(const struct store_query *query, struct buffer *out)
{
    buffer_printf(out, "?after=%" PRIu64, query->after);
    if (query->trial > 0)
        buffer_printf(out, "&trial=%" PRIu64, query->trial);
    if (query->limit > 0)
        buffer_printf(out, "&limit=%" PRIu64, query->limit);
    if (query->key != NULL) {
        buffer_puts(out, "&key=");
        put_encoded(out, query->key);
    }
}
