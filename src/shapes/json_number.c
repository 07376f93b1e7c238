/* SPDX-License-Identifier: Apache-2.0 */
#include "shapes/json_number.h"

#include <math.h>
#include <stdio.h>

enum { KEY_MAX = 96 };

json_t *json_number_or_null(double value)
{
    return isfinite(value) ? json_real(value) : json_null();
}

void json_known_set(json_t *object, const char *key, double value, const char *reason)
{
    char reason_key[KEY_MAX];

    json_object_set_new(object, key, json_number_or_null(value));
    if (isfinite(value))
        return;
    snprintf(reason_key, sizeof reason_key, "%s_unavailable", key);
    json_object_set_new(object, reason_key, json_string(reason));
}

void json_number_set(json_t *object, const char *key, double value, const char *reason)
{
    json_known_set(object, key, value, isinf(value) ? "it is out of the range of numbers" : reason);
}
