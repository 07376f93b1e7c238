/* SPDX-License-Identifier: Apache-2.0 */
/*
 * FLYBALL_COUNTED_BY: with any value, an entry's parts lie within the text, reading ends, and devices are
 * still claimed under a name that can be part of a file's name.
 */
#include <string.h>
#include <unistd.h>

#include "fuzz.h"
#include "meter/claim.h"

enum { TEXT_MAX = 1 << 12 };

static void check_entries(const char *text)
{
    const char *rest = text;
    const char *end = text + strlen(text);
    struct claim_entry entry;

    while (rest != NULL) {
        const char *before = rest;

        if (claim_entry_next(&rest, &entry)) {
            FUZZ_CHECK(entry.job >= before && entry.devices + entry.devices_length <= end);
            FUZZ_CHECK(entry.job_length >= 0 && entry.node == entry.job + entry.job_length + 1);
            FUZZ_CHECK(memchr(entry.job, '|', (size_t)(entry.devices + entry.devices_length - entry.job)) ==
                       NULL);
        }
        FUZZ_CHECK(rest == NULL || rest > before);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct device_list list;
    static struct claims claims;
    static char text[TEXT_MAX];
    static char value[CLAIM_VARIABLE_MAX];
    struct identity identity = {.rank = -1, .node = "n1"};
    /* No directory, so that nothing is written. */
    struct claim_options options = {
        .identity = &identity, .inherited = text, .fallback = "/dev/null", .pid = 1};

    if (size >= TEXT_MAX)
        return 0;
    memcpy(text, data, size);
    text[size] = '\0';
    check_entries(text);
    list.count = 1;
    memcpy(list.devices[0].info.uuid, "GPU-a", sizeof "GPU-a");
    claims_take(&options, &list, &claims);
    FUZZ_CHECK(claims.job[0] != '\0' && strspn(claims.job, identity_alphabet) == strlen(claims.job));
    FUZZ_CHECK(claims.devices[0].counted ==
               (claims.devices[0].by[0] == '\0' || strstr(text, "GPU.GPU-a") == NULL));
    FUZZ_CHECK(strlen(claims_variable(&claims, &list, value)) < CLAIM_VARIABLE_MAX);
    claims_release(&claims);
    return 0;
}
