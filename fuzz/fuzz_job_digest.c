/* SPDX-License-Identifier: Apache-2.0 */
/* A job's digest: any bytes are none, or one that reads the same after it is written again. */
#include <string.h>

#include "base/bytes.h"
#include "fuzz.h"
#include "job/past/history_fold.h"

enum { ARENA_MAX = 64 << 20 };

struct past {
    struct arena arena;
    struct fly_job_hardware machines[JOB_HARDWARE_MAX];
    struct job_history history;
    struct brought_list brought;
    struct digest digest;
};

static int read_past(const void *data, size_t size, struct past *past)
{
    struct fly_error error;
    int code;

    memset(past, 0, sizeof *past);
    arena_init(&past->arena, ARENA_MAX);
    past->history.machines = past->machines;
    code = digest_read(data, size, &past->arena, &past->history, &past->brought, &past->digest, &error);
    FUZZ_CHECK(code == 0 || code == 1 || code == FLY_ENOMEM);
    return code;
}

static void write_past(struct past *past, struct buffer *bytes)
{
    past->history.brought = past->brought.items;
    past->history.brought_count = past->brought.count;
    bytes_put_u64(bytes, past->digest.first);
    digest_put_head(&past->digest.mark, &past->history, bytes);
    digest_put_rows(past->digest.rows, past->digest.count, bytes);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct past past, again;
    struct buffer bytes;

    if (read_past(data, size, &past) == 1) {
        buffer_init(&bytes, ARENA_MAX);
        write_past(&past, &bytes);
        /* From a trial within a block the first row has all texts only where it is written by itself. */
        if ((past.digest.first - 1) % DIGEST_TRIALS == 0) {
            FUZZ_CHECK(read_past(bytes.data, bytes.length, &again) == 1);
            FUZZ_CHECK(again.digest.count == past.digest.count && again.brought.count == past.brought.count);
            arena_deinit(&again.arena);
        }
        buffer_deinit(&bytes);
    }
    arena_deinit(&past.arena);
    return 0;
}
