/* SPDX-License-Identifier: Apache-2.0 */
/* Parses JSON, reads structs from texts, and finds the line of a fault. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "shapes/json_place.h"
#include "shapes/shape_private.h"

static int parse(const char *text, size_t length, enum shape_manners manners, int code, json_t **out_json,
                 struct shape_fault *out_fault, struct fly_error *out_error)
{
    json_error_t why;
    json_t *json = json_loadb(text, length, manners == SHAPE_FOREIGN ? 0 : JSON_REJECT_DUPLICATES, &why);

    if (json == NULL && json_error_code(&why) == json_error_out_of_memory)
        return error_no_memory(out_error);
    if (json == NULL && out_fault != NULL) {
        *out_fault = (struct shape_fault){.no_json = true,
                                          .line = why.line > 0 ? (size_t)why.line : 1,
                                          .column = why.column > 0 ? (size_t)why.column : 0};
        snprintf(out_fault->expected, sizeof out_fault->expected, "%s", why.text);
    }
    if (json == NULL)
        return error_set(out_error, code, "line %d, column %d is no JSON: %.120s", why.line, why.column,
                         why.text);
    *out_json = json;
    return 0;
}

int shape_parse(const char *text, size_t length, json_t **out_json, struct fly_error *out_error)
{
    return parse(text, length, SHAPE_STRICT, FLY_EUSAGE, out_json, NULL, out_error);
}

int shape_parse_as(const char *text, size_t length, enum shape_manners manners, json_t **out_json,
                   struct shape_fault *out_fault, struct fly_error *out_error)
{
    return parse(text, length, manners, FLY_EDATA, out_json, out_fault, out_error);
}

/* Finds the line: json_place.h writes "/devices/1/energy_j" for "devices[1].energy_j". */
void shape_fault_locate(struct shape_fault *fault, const char *text, size_t length)
{
    char place[SHAPE_PATH_SHOWN + 1] = "";
    char *copy = strndup(text, length);
    size_t used = 0;

    fault->line = 1;
    if (copy == NULL)
        return;
    for (const char *at = fault->path; *at != '\0' && used + 1 < sizeof place; at++) {
        if (used == 0 && *at != '[')
            place[used++] = '/';
        if (*at == '.' || *at == '[')
            place[used++] = '/';
        else if (*at != ']')
            place[used++] = *at;
    }
    place[used] = '\0';
    fault->line = json_place_line(copy, place);
    free(copy);
}

int shape_read_text(const struct shape *shape, const char *text, size_t length, enum shape_manners manners,
                    struct arena *arena, void *out_struct, struct shape_fault *out_fault,
                    struct fly_error *out_error)
{
    json_t *json = NULL;
    int code = shape_parse_as(text, length, manners, &json, out_fault, out_error);

    if (code < 0)
        return code;
    code = shape_read_as(shape, json, manners, arena, out_struct, out_fault, out_error);
    if (code < 0 && out_fault != NULL)
        shape_fault_locate(out_fault, text, length);
    json_decref(json);
    return code;
}
