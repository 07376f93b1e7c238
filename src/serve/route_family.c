/* SPDX-License-Identifier: Apache-2.0 */
#include "serve/route_family.h"

#include <string.h>

#include "base/error.h"

static bool says_place(const char *text)
{
    return strstr(text, "store '") != NULL || strstr(text, "'/") != NULL || strstr(text, "'postgres") != NULL;
}

const char *serve_error_text(struct serve_answer *answer, int status, int code, const char *text)
{
    if (status < 500 || !says_place(text))
        return text;
    error_set(&answer->untold, code, "%s", text);
    return fly_error_sentence(code);
}
