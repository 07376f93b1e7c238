/* SPDX-License-Identifier: Apache-2.0 */
/* A service's address: refused with a reason, or one that means the same after it is written down. */
#include <stdlib.h>
#include <string.h>

#include "base/service_address.h"
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct service_address address, again;
    struct fly_error error = {.text = ""};
    char *text = malloc(size + 1);
    int code;

    if (text == NULL)
        return 0;
    memcpy(text, data, size);
    text[size] = '\0';
    code = service_address_parse(text, &address, &error);
    if (code < 0) {
        FUZZ_CHECK(error.code == code && error.text[0] != '\0');
    } else {
        FUZZ_CHECK(strpbrk(address.url, "@?# \t\r\n") == NULL);
        FUZZ_CHECK(address.secret || !address.local);
        if (address.socket[0] == '\0') {
            FUZZ_CHECK(service_address_parse(address.url, &again, &error) == 0);
            FUZZ_CHECK(strcmp(again.url, address.url) == 0 && again.secret == address.secret);
        }
    }
    free(text);
    return 0;
}
