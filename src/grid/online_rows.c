/* SPDX-License-Identifier: Apache-2.0 */
#include "grid/online_rows.h"

#include <math.h>
#include <string.h>
#include <strings.h>

#include "base/error.h"
#include "base/text/iso_time.h"

bool online_time(const json_t *row, const char *name, int64_t *out_s)
{
    const char *text = json_string_value(json_object_get(row, name));

    return text != NULL && iso_time_parse_utc(text, true, out_s);
}

bool online_value(const json_t *row, const char *name, enum grid_unit unit, double *out_value)
{
    const json_t *value = json_object_get(row, name);

    if (value == NULL || json_is_null(value))
        *out_value = NAN;
    else if (json_is_number(value))
        *out_value = grid_unit_convert(unit, json_number_value(value));
    else
        return false;
    return true;
}

const char *online_text(const json_t *row, const char *name)
{
    const char *text = json_string_value(json_object_get(row, name));

    return text != NULL ? text : "";
}

int online_refuse(const char *member, const char *expected, struct fly_error *out_error)
{
    return error_set(out_error, FLY_EDATA, "'%s': expected %s", member, expected);
}

int online_same(const json_t *row, const char *name, const char *word, struct fly_error *out_error)
{
    const char *text = online_text(row, name);

    if (strcasecmp(text, word) == 0)
        return 0;
    return error_set(out_error, FLY_EDATA, "'%s' is '%.40s' where '%.40s' was asked for", name, text, word);
}

char *online_minute(int64_t s, char *text)
{
    iso_time_format(s - ((s % 60) + 60) % 60, text);
    /* "2026-11-22T07:30:00Z" without its seconds. */
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
