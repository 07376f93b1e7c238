/* SPDX-License-Identifier: Apache-2.0 */
#include "train/account/carbon_ledger_text.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/number.h"
#include "shapes/members.h"

enum { VERSION = 1 };
static const double latest_s = 253402300800.0; /* the year 10000 */

static const char *const source_names[CARBON_SIGNALS] = {
    [CARBON_INTENSITY] = "source", [CARBON_PRICE] = "price"};

/* --- writing --- */

static void put_number(struct buffer *out, const char *before, double value)
{
    char text[NUMBER_TEXT_MAX];

    buffer_printf(out, "%s%s", before, isfinite(value) ? number_format(value, text) : "null");
}

/* A name may be any bytes; what is no UTF-8 becomes '?'. */
static void put_text(struct buffer *out, const char *before, const char *value)
{
    json_t *json = json_string(value);
    char plain[LEDGER_TEXT_MAX], *text;

    if (json == NULL) {
        snprintf(plain, sizeof plain, "%s", value);
        for (char *at = plain; *at != '\0'; at++) {
            if ((unsigned char)*at >= 0x80)
                *at = '?';
        }
        json = json_string(plain);
    }
    text = json != NULL ? json_dumps(json, JSON_ENCODE_ANY | JSON_ENSURE_ASCII) : NULL;
    if (text != NULL)
        buffer_printf(out, "%s%s", before, text);
    else
        out->error = FLY_ENOMEM;
    free(text);
    json_decref(json);
}

static int written(const struct buffer *out, struct fly_error *out_error)
{
    return out->error < 0 ? error_no_memory(out_error) : 0;
}

static bool is_head_sound(const struct ledger_head *head)
{
    const struct carbon_objective *objective = &head->objective;

    return isfinite(objective->per_g) && isfinite(objective->per_money) && isfinite(objective->per_kwh) &&
           head->surroundings.host_w >= 0.0 && isfinite(head->surroundings.host_w) &&
           isfinite(head->surroundings.pue) && head->start_s >= 0 && (double)head->start_s < latest_s &&
           head->finish_by_s >= 0 && (double)head->finish_by_s < latest_s && head->steps <= INT64_MAX;
}

int ledger_write_head(const struct ledger_head *head, struct buffer *out, struct fly_error *out_error)
{
    if (!is_head_sound(head))
        return error_set(out_error, FLY_EUSAGE,
                         "account of energy: a number of what ran is out of range; correct the options");
    buffer_printf(out, "{\"flyball_carbon\":%d", VERSION);
    put_text(out, ",\"run\":", head->run);
    put_text(out, ",\"job\":", head->job);
    put_text(out, ",\"host\":", head->host);
    put_text(out, ",\"program\":", head->program);
    for (int i = 0; i < CARBON_SIGNALS; i++) {
        buffer_printf(out, ",\"%s\":", source_names[i]);
        put_text(out, "", head->sources[i]);
    }
    put_number(out, ",\"per_g\":", head->objective.per_g);
    put_number(out, ",\"per_money\":", head->objective.per_money);
    put_number(out, ",\"per_kwh\":", head->objective.per_kwh);
    put_number(out, ",\"host_w\":", head->surroundings.host_w);
    put_number(out, ",\"pue\":", fmax(head->surroundings.pue, 1.0));
    put_number(out, ",\"max_slowdown\":", head->max_slowdown);
    buffer_printf(out,
                  ",\"finish_by_s\":%" PRId64 ",\"steps\":%" PRIu64 ",\"start_s\":%" PRId64
                  ",\"gpus\":%" PRIu32 ",\"rank\":%" PRIu32 "}\n",
                  head->finish_by_s, head->steps, head->start_s, head->gpus, head->rank);
    return written(out, out_error);
}

static bool is_slice_sound(const struct energy_slice *slice)
{
    return slice->start_s >= 0.0 && slice->end_s > slice->start_s && slice->end_s < latest_s &&
           !(slice->gpu_j < 0.0) && !(slice->host_j < 0.0) && !(slice->limit_w < 0.0) &&
           slice->steps >= 0.0 && isfinite(slice->steps);
}

int ledger_write_slice(const struct energy_slice *slice, struct buffer *out, struct fly_error *out_error)
{
    if (!is_slice_sound(slice))
        return error_set(out_error, FLY_EUSAGE,
                         "account of energy: a stretch of %g J from %.3f to %.3f s cannot be", slice->gpu_j,
                         slice->start_s, slice->end_s);
    put_number(out, "{\"slice\":{\"start_s\":", slice->start_s);
    put_number(out, ",\"end_s\":", slice->end_s);
    put_number(out, ",\"gpu_j\":", slice->gpu_j);
    put_number(out, ",\"host_j\":", slice->host_j);
    put_number(out, ",\"limit_w\":", slice->limit_w);
    put_number(out, ",\"steps\":", slice->steps);
    buffer_printf(out, ",\"jumped\":%s}}\n", slice->jumped ? "true" : "false");
    return written(out, out_error);
}

static bool is_point_sound(const struct fly_power_point *point)
{
    return point->limit_w > 0.0 && isfinite(point->limit_w) && point->power_w > 0.0 &&
           isfinite(point->power_w) && point->time_s > 0.0 && isfinite(point->time_s);
}

int ledger_write_profile(const struct fly_power_point *points, size_t count, struct buffer *out,
                         struct fly_error *out_error)
{
    if (count == 0 || count > CARBON_POINTS_MAX)
        return error_set(out_error, FLY_EUSAGE, "account of energy: a power profile has 1 to %d points",
                         CARBON_POINTS_MAX);
    for (size_t i = 0; i < count; i++) {
        if (!is_point_sound(&points[i]))
            return error_set(out_error, FLY_EUSAGE,
                             "account of energy: a point of a power profile is not above 0");
        put_number(out, i == 0 ? "{\"profile\":[[" : ",[", points[i].limit_w);
        put_number(out, ",", points[i].power_w);
        put_number(out, ",", points[i].time_s);
        buffer_puts(out, "]");
    }
    buffer_puts(out, "]}\n");
    return written(out, out_error);
}

/* --- reading --- */

static void copy_text(struct members *members, const char *name, char out[LEDGER_TEXT_MAX])
{
    const char *text = members_text(members, name, LEDGER_TEXT_MAX - 1);

    memcpy(out, text, strlen(text) + 1);
}

static double number_from(struct members *members, const char *name, double least)
{
    double value = members_number(members, name);

    if (value < least)
        members_refuse(members, name, "a number that is large enough");
    return value;
}

/* From 0 on, or null. */
static double amount_or_null(struct members *members, const char *name)
{
    double value = members_number_or_null(members, name, NAN);

    if (value < 0.0)
        members_refuse(members, name, "a number from 0 on, or null");
    return value;
}

static void read_head(struct members *members, struct ledger_head *head)
{
    if (members_u64(members, "flyball_carbon", 0, INT64_MAX) != VERSION)
        members_refuse(members, "flyball_carbon", "version 1; use a newer flyball");
    copy_text(members, "run", head->run);
    copy_text(members, "job", head->job);
    copy_text(members, "host", head->host);
    copy_text(members, "program", head->program);
    for (int i = 0; i < CARBON_SIGNALS; i++)
        copy_text(members, source_names[i], head->sources[i]);
    head->objective.per_g = members_number(members, "per_g");
    head->objective.per_money = members_number(members, "per_money");
    head->objective.per_kwh = members_number(members, "per_kwh");
    head->surroundings.host_w = number_from(members, "host_w", 0.0);
    head->surroundings.pue = number_from(members, "pue", 1.0);
    head->max_slowdown = amount_or_null(members, "max_slowdown");
    head->finish_by_s = (int64_t)members_u64(members, "finish_by_s", 0, (uint64_t)latest_s);
    head->steps = members_u64(members, "steps", 0, INT64_MAX);
    head->start_s = (int64_t)members_u64(members, "start_s", 0, (uint64_t)latest_s);
    head->gpus = (uint32_t)members_u64(members, "gpus", 0, UINT32_MAX);
    head->rank = (uint32_t)members_u64(members, "rank", 0, UINT32_MAX);
}

static void read_slice(struct members *members, struct energy_slice *slice)
{
    *slice = (struct energy_slice){.start_s = number_from(members, "start_s", 0.0),
                                   .end_s = members_number(members, "end_s"),
                                   .gpu_j = amount_or_null(members, "gpu_j"),
                                   .host_j = amount_or_null(members, "host_j"),
                                   .limit_w = amount_or_null(members, "limit_w"),
                                   .steps = number_from(members, "steps", 0.0),
                                   .jumped = members_bool(members, "jumped")};
    if (!(slice->end_s > slice->start_s && slice->end_s < latest_s))
        members_refuse(members, "end_s", "a time after the start");
}

static bool read_point(const json_t *entry, struct fly_power_point *point)
{
    if (!json_is_array(entry) || json_array_size(entry) != 3)
        return false;
    *point = (struct fly_power_point){json_number_value(json_array_get(entry, 0)),
                                      json_number_value(json_array_get(entry, 1)),
                                      json_number_value(json_array_get(entry, 2))};
    return is_point_sound(point);
}

static int read_profile(struct members *members, struct arena *arena, struct ledger_content *content)
{
    const json_t *entries = members_array(members, "profile", CARBON_POINTS_MAX);
    size_t count = json_array_size(entries);

    if (count == 0)
        members_refuse(members, "profile", "one point at least");
    if (content->points == NULL)
        content->points = arena_alloc(arena, CARBON_POINTS_MAX, sizeof content->points[0]);
    if (content->points == NULL)
        return FLY_ENOMEM;
    for (size_t i = 0; i < count; i++) {
        if (!read_point(json_array_get(entries, i), &content->points[i]))
            members_refuse(members, "profile", "points of three numbers above 0");
    }
    content->point_count = count;
    return 0;
}

/* What is being read, and where. */
struct reading {
    const char *name;
    size_t line;
    struct arena *arena;
    struct ledger_content content;
};

static int refuse(const struct reading *reading, const char *why, struct fly_error *out_error)
{
    return error_set(out_error, FLY_EDATA,
                     "account of energy '%.200s', line %zu: %s; it is none, or it was changed", reading->name,
                     reading->line, why);
}

static int take_line(struct reading *reading, json_t *json, struct fly_error *out_error)
{
    struct members members = members_of(json), inside;
    struct ledger_content *content = &reading->content;
    const struct members *wrong = &members;
    char why[160];
    int code = 0;

    if (reading->line == 1)
        read_head(&members, &content->head);
    else if (members_has(&members, "slice")) {
        inside = members_inside(&members, "slice");
        read_slice(&inside, &content->slices[content->slice_count++]);
        wrong = &inside;
    } else if (members_has(&members, "profile"))
        code = read_profile(&members, reading->arena, content);
    else
        members_refuse(&members, "slice", "an object, or a profile");
    if (code < 0)
        return error_no_memory(out_error);
    if (wrong->wrong == NULL)
        return 0;
    snprintf(why, sizeof why, "member '%s': expected %s", wrong->wrong, wrong->expected);
    return refuse(reading, why, out_error);
}

static size_t count_lines(const char *text, size_t length)
{
    const char *end = text + length, *at = text;
    size_t count = 0;

    while (at < end && (at = memchr(at, '\n', (size_t)(end - at))) != NULL) {
        count++;
        at++;
    }
    return count;
}

int carbon_ledger_parse(const char *name, const char *text, size_t length, struct arena *arena,
                        struct ledger_content *out_content, struct fly_error *out_error)
{
    struct reading reading = {.name = name, .arena = arena};
    size_t lines = count_lines(text, length);
    const char *end = text + length;
    int code = 0;

    if (length > LEDGER_FILE_MAX)
        return error_set(out_error, FLY_ELIMIT, "account of energy '%.200s' is longer than %d MiB", name,
                         LEDGER_FILE_MAX >> 20);
    reading.content.slices = arena_alloc(arena, lines + 1, sizeof reading.content.slices[0]);
    if (reading.content.slices == NULL)
        return error_no_memory(out_error);
    for (reading.line = 1; reading.line <= lines && code == 0; reading.line++) {
        size_t size = (size_t)((const char *)memchr(text, '\n', (size_t)(end - text)) - text);
        json_t *json = json_loadb(text, size, JSON_REJECT_DUPLICATES, NULL);

        code = json != NULL ? take_line(&reading, json, out_error)
                            : refuse(&reading, "expected an object of JSON", out_error);
        json_decref(json);
        text += size + 1;
    }
    if (code == 0 && lines == 0) {
        reading.line = 1;
        code = refuse(&reading, "expected what ran", out_error);
    }
    if (code < 0)
        return code;
    reading.content.torn = text < end;
    *out_content = reading.content;
    return 0;
}
