/* SPDX-License-Identifier: Apache-2.0 */
/* Lines of the record of who used the GPUs: a line that was read can be written, and reads the same again. */
#include <string.h>

#include "fuzz.h"
#include "node/share/share_record.h"

static int expect_same(void *state, const struct usage_line *line, const char *text, size_t length)
{
    const struct usage_line *first = state;

    (void)text;
    (void)length;
    FUZZ_CHECK(strcmp(line->what, first->what) == 0 && strcmp(line->row.uuid, first->row.uuid) == 0);
    FUZZ_CHECK(line->row.energy_uj == first->row.energy_uj && line->row.pid == first->row.pid);
    FUZZ_CHECK(line->serial == first->serial && line->ended_uj == first->ended_uj);
    FUZZ_CHECK(line->row.sharer_count == first->row.sharer_count && line->row.kind == first->row.kind);
    return 1;
}

static int take(void *state, const struct usage_line *line, const char *text, size_t length)
{
    struct usage_line copy = *line;
    struct buffer again;
    size_t bad;

    (void)state;
    FUZZ_CHECK(length > 0 && memchr(text, '\n', length) == NULL);
    buffer_init(&again, 4 * RECORD_LINE_MAX);
    if (share_record_put(line, &again, NULL) == 0) {
        FUZZ_CHECK(again.length > 0 && again.data[again.length - 1] == '\n');
        FUZZ_CHECK(memchr(again.data, '\n', again.length - 1) == NULL);
        FUZZ_CHECK(share_record_each(again.data, again.length, expect_same, &copy, &bad) == 1 || bad == 1);
    }
    buffer_deinit(&again);
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    size_t bad = 0;

    FUZZ_CHECK(share_record_each((const char *)data, size, take, NULL, &bad) == 0);
    FUZZ_CHECK(bad <= size);
    return 0;
}
