/* SPDX-License-Identifier: Apache-2.0 */
#include "shapes/text_value.h"

#include <stdlib.h>
#include <string.h>

json_t *text_value(const char *text)
{
    json_t *value = json_string(text);
    char *copy;

    if (value != NULL)
        return value;
    copy = strdup(text);
    for (char *byte = copy; byte != NULL && *byte != '\0'; byte++) {
        if ((unsigned char)*byte >= 0x80)
            *byte = '?';
    }
    value = copy == NULL ? NULL : json_string(copy);
    free(copy);
    return value;
}

json_t *text_or_null(const char *text)
{
    return text != NULL && text[0] != '\0' ? text_value(text) : json_null();
}
