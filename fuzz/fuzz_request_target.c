/* SPDX-License-Identifier: Apache-2.0 */
/* A request's address: its decoded form has no control characters and is UTF-8. */
#include <string.h>

#include "base/text/utf8.h"
#include "fuzz.h"
#include "http/target.h"

enum { TEXT_MAX = 10000 };

static void check_text(const char *text)
{
    FUZZ_CHECK(text_is_utf8(text, strlen(text)));
    for (; *text != '\0'; text++)
        FUZZ_CHECK((unsigned char)*text >= ' ' && *text != 0x7f);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct serve_request request = {.query_count = 0};
    static char text[TEXT_MAX];
    int code;

    if (size >= TEXT_MAX)
        return 0;
    memcpy(text, data, size);
    text[size] = '\0';
    code = serve_target_parse(text, &request, NULL);
    FUZZ_CHECK(code == 0 || code == FLY_EUSAGE || code == FLY_ELIMIT);
    if (code < 0)
        return 0;
    FUZZ_CHECK(request.path[0] == '/' && request.query_count <= SERVE_QUERY_MAX);
    check_text(request.path);
    for (size_t i = 0; i < request.query_count; i++) {
        check_text(request.query[i].name);
        check_text(request.query[i].value);
        FUZZ_CHECK(serve_query(&request, request.query[i].name) == request.query[i].value);
    }
    return 0;
}
