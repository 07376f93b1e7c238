/* SPDX-License-Identifier: Apache-2.0 */
#include "grid/online_rows.h"

#include <math.h>
#include <string.h>
#include <strings.h>

#include "base/error.h"
#include "base/text/iso_time.h"

int online_read_body(const struct shape *shape, json_t *body, struct arena *arena, void *out_answer,
                     struct fly_error *out_error)
{
    struct shape_fault fault;
    int code = shape_read_as(shape, body, SHAPE_BORROWING, arena, out_answer, &fault, NULL);

    if (code == 0)
        return 0;
    if (code == FLY_ENOMEM)
        return error_no_memory(out_error);
    if (fault.path[0] != '\0')
        return online_refuse(fault.path, fault.expected, out_error);
    /* A text that is not an object has no first member. */
    return shape->bare ? error_set(out_error, FLY_EDATA, "expected %s", fault.expected)
                       : online_refuse(shape->fields[0].name, shape->fields[0].expected, out_error);
}

bool online_time(const char *text, int64_t *out_s)
{
    return iso_time_parse_utc(text, true, out_s);
}

double online_value(double value, enum grid_unit unit)
{
    return isnan(value) ? NAN : grid_unit_convert(unit, value);
}

int online_refuse(const char *member, const char *expected, struct fly_error *out_error)
{
    return error_set(out_error, FLY_EDATA, "'%s': expected %s", member, expected);
}

int online_same(const char *name, const char *text, const char *word, struct fly_error *out_error)
{
    if (strcasecmp(text, word) == 0)
        return 0;
    return error_set(out_error, FLY_EDATA, "'%s' is '%.40s' where '%.40s' was asked for", name, text, word);
}

char *online_minute(int64_t s, char *text)
{
    iso_time_format(s - ((s % 60) + 60) % 60, text);
    /* Removes the seconds of "2026-11-22T07:30:00Z". */
    if (strlen(text) == strlen("2026-11-22T07:30:00Z"))
        memcpy(text + strlen("2026-11-22T07:30"), "Z", 2);
    return text;
}

int online_choose(const char *who, const struct grid_request *request, enum grid_signal signal,
                  enum grid_scope scope, struct grid_kind *kind, struct fly_error *out_error)
{
    if (request->quantity != GRID_CARBON)
        return error_set(out_error, FLY_EUNSUPPORTED, "%s has no prices; take them from a file", who);
    if (request->signal != GRID_SIGNAL_UNKNOWN && request->signal != signal)
        return error_set(out_error, FLY_EUNSUPPORTED, "%s has no %s intensities, only %s ones", who,
                         grid_signal_name(request->signal), grid_signal_name(signal));
    if (request->scope != GRID_SCOPE_UNKNOWN && request->scope != scope)
        return error_set(out_error, FLY_EUNSUPPORTED, "%s has no %s intensities, only %s ones", who,
                         grid_scope_name(request->scope), grid_scope_name(scope));
    kind->signal = signal;
    kind->scope = scope;
    return 0;
}
