/* SPDX-License-Identifier: Apache-2.0 */
/* An address to listen at: it is shown in a form that reads as the same address. */
#include <string.h>

#include "fuzz.h"
#include "http/listen_address.h"

enum { TEXT_MAX = 300 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char text[TEXT_MAX], shown[LISTEN_TEXT_MAX], again[LISTEN_TEXT_MAX];
    struct listen_address address, second;
    struct fly_error error;
    int code;

    if (size >= TEXT_MAX)
        return 0;
    memcpy(text, data, size);
    text[size] = '\0';
    listen_host_is_here(text);
    code = listen_address_parse(text, &address, &error);
    FUZZ_CHECK(code == 0 || code == FLY_EUSAGE || code == FLY_ELIMIT);
    if (code < 0)
        return 0;
    listen_address_show(&address, shown);
    FUZZ_CHECK(listen_address_parse(shown, &second, &error) == 0);
    FUZZ_CHECK(strcmp(listen_address_show(&second, again), shown) == 0);
    FUZZ_CHECK(second.here == address.here && second.length == address.length);
    return 0;
}
