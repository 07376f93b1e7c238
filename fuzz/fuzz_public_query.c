/* SPDX-License-Identifier: Apache-2.0 */
/* Parameters of the public daemon's routes: whatever a client sends, numbers rise and nothing needed is
 * missing. */
#include <string.h>

#include "compat/zeus/node/public_query.h"
#include "fuzz.h"
#include "http/target.h"

enum { TEXT_MAX = 10000 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct serve_request request = {.query_count = 0};
    static char text[TEXT_MAX];
    struct public_query query;
    unsigned needed, optional;

    if (size < 2 || size >= TEXT_MAX)
        return 0;
    needed = data[0];
    optional = data[1];
    memcpy(text, data + 2, size - 2);
    text[size - 2] = '\0';
    if (serve_target_parse(text, &request, NULL) < 0 ||
        public_query_read(&request, needed, optional, &query, NULL) < 0)
        return 0;
    FUZZ_CHECK((query.given & needed) == needed && (query.given & ~(needed | optional)) == 0);
    FUZZ_CHECK(query.id_count <= PUBLIC_IDS_MAX);
    for (size_t i = 1; i < query.id_count; i++)
        FUZZ_CHECK(query.ids[i - 1] < query.ids[i]);
    FUZZ_CHECK(query.values[PUBLIC_BLOCK] <= 1 && query.values[PUBLIC_ENABLED] <= 1);
    return 0;
}
