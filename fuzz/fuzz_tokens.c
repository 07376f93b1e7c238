/* SPDX-License-Identifier: Apache-2.0 */
/* A file of tokens: what was read reads the same after it is written again. */
#include <string.h>

#include "fuzz.h"
#include "http/tokens.h"

enum { TEXT_MAX = 10000, AGAIN_MAX = 1 << 20 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct token_list list, second;
    static char text[TEXT_MAX];
    struct buffer again;
    int code;

    if (size >= TEXT_MAX)
        return 0;
    memcpy(text, data, size);
    text[size] = '\0';
    code = token_list_parse(text, "file", &list, NULL);
    FUZZ_CHECK(code == 0 || code == FLY_ECONFIG || code == FLY_ELIMIT || code == FLY_ENOMEM);
    if (code < 0)
        return 0;
    buffer_init(&again, AGAIN_MAX);
    for (size_t i = 0; i < list.count; i++) {
        FUZZ_CHECK(token_name_is_good(list.tokens[i].name));
        FUZZ_CHECK(list.tokens[i].scope >= SERVE_READ && list.tokens[i].scope <= SERVE_MANAGE);
        token_line_put(&list.tokens[i], &again);
    }
    FUZZ_CHECK(token_list_parse(again.data, "file", &second, NULL) == 0 && second.count == list.count);
    for (size_t i = 0; i < list.count; i++) {
        const struct token *one = &list.tokens[i], *other = &second.tokens[i];

        FUZZ_CHECK(strcmp(one->name, other->name) == 0 && one->scope == other->scope);
        FUZZ_CHECK(one->expires_s == other->expires_s);
        FUZZ_CHECK(memcmp(one->hash, other->hash, sizeof one->hash) == 0);
    }
    token_list_deinit(&list);
    token_list_deinit(&second);
    buffer_deinit(&again);
    return 0;
}
