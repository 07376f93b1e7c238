/* SPDX-License-Identifier: Apache-2.0 */
/* The audit log of the time before: whatever stands there, what is found are leases with ids, each once. */
#include <string.h>

#include "fuzz.h"
#include "node/lease/audit_past.h"

enum { MOST = 8 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct audit_lost lost[MOST];
    size_t count = audit_past_parse((const char *)data, size, lost, MOST);

    FUZZ_CHECK(count <= MOST);
    for (size_t i = 0; i < count; i++) {
        char holder[LEASE_HOLDER_TEXT_MAX];

        FUZZ_CHECK(lost[i].lease[0] != '\0' && strlen(lost[i].lease) < LEASE_ID_MAX);
        FUZZ_CHECK(strlen(lease_holder_text(&lost[i].holder, holder)) < LEASE_HOLDER_TEXT_MAX);
        for (size_t k = 0; k < i; k++)
            FUZZ_CHECK(strcmp(lost[i].lease, lost[k].lease) != 0);
    }
    return 0;
}
