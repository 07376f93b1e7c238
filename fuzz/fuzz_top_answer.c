/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two answers of the daemon, the first line and the rest: whatever they say, rows put together by any key are
 * as many as the answer's, or fewer, and lose no process.
 */
#include <stdlib.h>
#include <string.h>

#include "cli/top/top_group.h"
#include "fuzz.h"

enum { ARENA_BYTES = 16 << 20 };

static void check_groups(const struct top_answer *answer, enum top_by by, struct arena *arena)
{
    const struct top_wish wish = {.by = by, .sort = TOP_SORT_ENERGY, .ended = true};
    struct top_groups groups;
    char text[TOP_GPUS_TEXT_MAX];
    size_t rows = 0;

    if (top_group_make(answer, &wish, arena, &groups, NULL) < 0)
        return;
    for (size_t i = 0; i < groups.count; i++) {
        rows += groups.groups[i].processes;
        FUZZ_CHECK(groups.groups[i].living <= groups.groups[i].processes);
        FUZZ_CHECK(strlen(top_gpus_text(&groups.groups[i], text)) < sizeof text);
    }
    FUZZ_CHECK(rows == answer->row_count && groups.hidden == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *text = (const char *)data;
    const char *end = size > 0 ? memchr(data, '\n', size) : NULL;
    struct top_answer answer;
    struct arena arena;
    size_t first;

    if (end == NULL)
        return 0;
    first = (size_t)(end - text);
    arena_init(&arena, ARENA_BYTES);
    if (top_answer_read(text, first, end + 1, size - first - 1, &arena, &answer, NULL) == 0) {
        FUZZ_CHECK(answer.gpu_count <= TOP_GPUS_MAX && answer.row_count <= TOP_ROWS_MAX);
        for (int by = 0; by < TOP_BYS; by++)
            check_groups(&answer, (enum top_by)by, &arena);
    }
    arena_deinit(&arena);
    return 0;
}
