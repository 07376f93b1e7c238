/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A store's address: read, or refused in words that repeat nothing of an address with a scheme; and shown
 * without the part before its last '@'.
 */
#include <string.h>

#include "fuzz.h"
#include "store/store_address.h"

enum { TEXT_MAX = 5000 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static char text[TEXT_MAX];
    char shown[STORE_SHOWN_MAX], masked[STORE_ADDRESS_MAX + 1];
    struct store_address address;
    struct fly_error error;
    int code;

    if (size >= TEXT_MAX)
        return 0;
    memcpy(text, data, size);
    text[size] = '\0';
    code = store_address_parse(text, &address, &error);
    FUZZ_CHECK(code == 0 || code == FLY_EUSAGE || code == FLY_ELIMIT);
    if (code == 0 && address.place == STORE_ON_SERVER)
        FUZZ_CHECK(strncmp(text, "postgres", 8) == 0 && strstr(text, "://") != NULL);
    store_address_mask(text, masked);
    FUZZ_CHECK(strlen(masked) <= STORE_ADDRESS_MAX);
    if (code == 0 && address.place == STORE_ON_SERVER)
        FUZZ_CHECK(strcmp(masked, text) == 0 || strstr(masked, "***") != NULL ||
                   strstr(masked, "...") != NULL);
    store_address_show(text, shown);
    FUZZ_CHECK(strncmp(shown, "postgresql://", 13) == 0);
    FUZZ_CHECK(strpbrk(shown + 13, "@?#") == NULL);
    return 0;
}
