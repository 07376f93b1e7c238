/* SPDX-License-Identifier: Apache-2.0 */
#include "shapes/json_number.h"

#include <math.h>
#include <stdio.h>

enum { KEY_MAX = 96 };

void json_number_set(json_t *object, const char *key, double value, const char *reason)
{
    char reason_key[KEY_MAX];

    if (isfinite(value)) {
        json_object_set_new(object, key, json_real(value));
        return;
    }
    snprintf(reason_key, sizeof reason_key, "%s_unavailable", key);
    json_object_set_new(object, key, json_null());
    json_object_set_new(object, reason_key,
                        json_string(isnan(value) ? reason : "it is out of the range of numbers"));
}
