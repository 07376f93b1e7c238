/* SPDX-License-Identifier: Apache-2.0 */
#include "compat/zeus/node/public_query.h"

#include <string.h>

#include "base/error.h"
#include "base/number.h"

enum kind { PUBLIC_IDS, PUBLIC_BOOL, PUBLIC_NUMBER };

enum { NUMBER_MAX = 32 };

static const struct {
    const char *name;
    enum kind kind;
} parameters[PUBLIC_PARAMETER_COUNT] = {
#define PUBLIC_PARAMETER_ROW(name, text, kind) {text, kind},
    PUBLIC_PARAMETER_MAP(PUBLIC_PARAMETER_ROW)
#undef PUBLIC_PARAMETER_ROW
};

static bool read_number(const char *text, size_t length, uint32_t *out_number)
{
    char digits[NUMBER_MAX];
    uint64_t number;

    if (length == 0 || length >= sizeof digits)
        return false;
    memcpy(digits, text, length);
    digits[length] = '\0';
    if (!number_parse_u64(digits, UINT32_MAX, &number))
        return false;
    *out_number = (uint32_t)number;
    return true;
}

/* Puts an id at its place among those before it; false if there is no room. */
static bool add_id(struct public_query *query, uint32_t id)
{
    size_t at = 0;

    while (at < query->id_count && query->ids[at] < id)
        at++;
    if (at < query->id_count && query->ids[at] == id)
        return true;
    if (query->id_count == PUBLIC_IDS_MAX)
        return false;
    memmove(&query->ids[at + 1], &query->ids[at], (query->id_count - at) * sizeof query->ids[0]);
    query->ids[at] = id;
    query->id_count++;
    return true;
}

static int read_ids(const char *name, const char *text, struct public_query *query,
                    struct fly_error *out_error)
{
    for (const char *at = text;;) {
        size_t length = strcspn(at, ","), blank = strspn(at, " "), end = length;
        uint32_t id;

        while (end > blank && at[end - 1] == ' ')
            end--;
        if (end <= blank || !read_number(at + blank, end - blank, &id))
            return error_set(out_error, FLY_EUSAGE,
                             "invalid '%s': expected numbers with commas between them, as in 0,1", name);
        if (!add_id(query, id))
            return error_set(out_error, FLY_EUSAGE, "invalid '%s': it has more than %d numbers", name,
                             PUBLIC_IDS_MAX);
        if (at[length] == '\0')
            return 0;
        at += length + 1;
    }
}

static int read_bool(const char *name, const char *text, uint32_t *out_value, struct fly_error *out_error)
{
    bool is_true = strcmp(text, "true") == 0;

    if (!is_true && strcmp(text, "false") != 0)
        return error_set(out_error, FLY_EUSAGE, "invalid '%s': expected true or false", name);
    *out_value = is_true;
    return 0;
}

static int read_value(int parameter, const char *text, struct public_query *query,
                      struct fly_error *out_error)
{
    const char *name = parameters[parameter].name;
    uint32_t *value = &query->values[parameter];

    if (parameters[parameter].kind == PUBLIC_IDS)
        return read_ids(name, text, query, out_error);
    if (parameters[parameter].kind == PUBLIC_BOOL)
        return read_bool(name, text, value, out_error);
    if (!read_number(text, strlen(text), value))
        return error_set(out_error, FLY_EUSAGE, "invalid '%s': expected a whole number from 0 to %u", name,
                         UINT32_MAX);
    return 0;
}

/* Returns the parameter of that name among those of the set, or -1. */
static int find(const char *name, unsigned among)
{
    for (int i = 0; i < PUBLIC_PARAMETER_COUNT; i++) {
        if ((among & PUBLIC_BIT(i)) != 0 && strcmp(parameters[i].name, name) == 0)
            return i;
    }
    return -1;
}

int public_query_read(const struct serve_request *request, unsigned needed, unsigned optional,
                      struct public_query *out_query, struct fly_error *out_error)
{
    struct public_query query = {.given = 0};

    for (size_t i = 0; i < request->query_count; i++) {
        int parameter = find(request->query[i].name, needed | optional), code;

        if (parameter < 0)
            return error_set(out_error, FLY_EUSAGE, "unknown field '%.60s'", request->query[i].name);
        code = read_value(parameter, request->query[i].value, &query, out_error);
        if (code < 0)
            return code;
        query.given |= PUBLIC_BIT(parameter);
    }
    for (int i = 0; i < PUBLIC_PARAMETER_COUNT; i++) {
        if ((needed & ~query.given & PUBLIC_BIT(i)) != 0)
            return error_set(out_error, FLY_EUSAGE, "missing field '%s'", parameters[i].name);
    }
    *out_query = query;
    return 0;
}
