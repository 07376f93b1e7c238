/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The digest of a job's past, beside its log: a snapshot for the head, and one for each block of trials. A
 * change whose events fill a round writes it, as the log stands with them: the head, and the blocks of the
 * trials of which the events since the last digest tell.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/adler32.h"
#include "base/bytes.h"
#include "job/local/job_local.h"
#include "job/past/history_fold.h"

enum {
    DIGEST_EVERY = 256,      /* events between two of them */
    DIGEST_EVENTS = 1 << 14, /* that one change reads at most: of a long log the rest is for the next ones */
    MEMORY_MAX = 1 << 30,
    CHECK_BYTES = 8
};

static const char *block_version(uint64_t block, char text[STORE_VERSION_MAX + 1])
{
    snprintf(text, STORE_VERSION_MAX + 1, DIGEST_VERSION " block %" PRIu64, block);
    return text;
}

/* ---- in the store ---- */

/* Where snapshots come from: a change, or the store without a lock. */
struct place {
    struct store *store;
    struct store_change *change; /* NULL: none */
    const char *job;
};

/* Appends a snapshot without its check; whether there is one, and it is whole. */
static int get(const struct place *place, const char *version, struct buffer *bytes,
               struct fly_error *out_error)
{
    size_t before = bytes->length, length;
    struct bytes_reader check;
    uint64_t number = 0;
    int code = place->change != NULL
                   ? store_change_get_snapshot(place->change, version, &number, bytes, out_error)
                   : store_get_snapshot(place->store, place->job, version, &number, bytes, out_error);

    if (code < 0)
        return code;
    if (number == 0 || bytes->length < before + CHECK_BYTES)
        return 0;
    length = bytes->length - before - CHECK_BYTES;
    check = bytes_reader(bytes->data + before + length, CHECK_BYTES);
    if (bytes_u64(&check) != adler32_of(bytes->data + before, length))
        return 0;
    bytes->length = before + length;
    return 1;
}

static int put(struct local_change *change, const char *version, struct buffer *bytes,
               struct fly_error *out_error)
{
    bytes_put_u64(bytes, bytes->error == 0 ? adler32_of(bytes->data, bytes->length) : 0);
    if (bytes->error < 0)
        return error_no_memory(out_error);
    return store_change_put_snapshot(change->change, version, store_change_head(change->change), bytes->data,
                                     bytes->length, out_error);
}

/* ---- reading ---- */

static int append_blocks(const struct place *place, uint64_t from, uint64_t trials, struct buffer *bytes,
                         struct fly_error *out_error)
{
    char version[STORE_VERSION_MAX + 1];
    int code = 1;

    for (uint64_t i = from; i * DIGEST_TRIALS < trials && code == 1; i++)
        code = get(place, block_version(i, version), bytes, out_error);
    return code;
}

int local_digest(void *self, const char *job, uint64_t trials, struct buffer *out_bytes,
                 struct fly_error *out_error)
{
    struct job_local *local = self;
    const struct place place = {local->store, NULL, job};
    struct buffer head;
    int code;

    buffer_init(&head, DIGEST_BYTES_MAX);
    code = get(&place, DIGEST_VERSION, &head, out_error);
    if (code == 1) {
        uint64_t all = digest_mark_of(head.data, head.length).trials;
        uint64_t from = trials == 0 || trials >= all ? 0 : (all - trials) / DIGEST_TRIALS;

        bytes_put_u64(out_bytes, from * DIGEST_TRIALS + 1);
        buffer_append(out_bytes, head.data, head.length);
        code = append_blocks(&place, from, all, out_bytes, out_error);
    }
    buffer_deinit(&head);
    if (code >= 0 && out_bytes->error < 0)
        code = error_no_memory(out_error);
    if (code != 1)
        buffer_clear(out_bytes);
    return code < 0 ? code : 0;
}

/* ---- writing ---- */

/* A block while it is written anew. */
struct block {
    struct job_row rows[DIGEST_TRIALS];
    size_t count;
};

static int read_block(const struct place *place, uint64_t number, uint64_t known, struct arena *arena,
                      struct block *block, struct fly_error *out_error)
{
    uint64_t first = number * DIGEST_TRIALS;
    char version[STORE_VERSION_MAX + 1];
    struct buffer bytes;
    int code;

    block->count = 0;
    if (first >= known)
        return 1;
    block->count = known - first < DIGEST_TRIALS ? (size_t)(known - first) : DIGEST_TRIALS;
    buffer_init(&bytes, STORE_SNAPSHOT_MAX);
    code = get(place, block_version(number, version), &bytes, out_error);
    if (code == 1)
        code = digest_read_rows(bytes.data, bytes.length, first + 1, block->count, arena, block->rows,
                                out_error);
    buffer_deinit(&bytes);
    return code;
}

/* Puts the rows that are new, or differ now, into their block; `at`: of the next row that was read again. */
static void renew_block(const struct history_fold *fold, uint64_t number, size_t *at, struct block *block)
{
    uint64_t first = number * DIGEST_TRIALS + 1, end = first + DIGEST_TRIALS;

    for (; *at < fold->again_count && fold->again[*at].row.trial.trial < end; ++*at)
        block->rows[fold->again[*at].row.trial.trial - first] = fold->again[*at].row;
    for (uint64_t trial = first + block->count; trial <= fold->mark.trials && trial < end; trial++)
        block->rows[block->count++] = fold->history.rows[trial - fold->known - 1];
}

static int write_block(struct local_change *change, uint64_t number, const struct block *block,
                       struct fly_error *out_error)
{
    char version[STORE_VERSION_MAX + 1];
    struct buffer bytes;
    int code;

    buffer_init(&bytes, STORE_SNAPSHOT_MAX);
    digest_put_rows(block->rows, block->count, &bytes);
    code = put(change, block_version(number, version), &bytes, out_error);
    buffer_deinit(&bytes);
    return code < 0 ? code : 1;
}

/* Returns 1, or 0 if a block that the head knows is not there. */
static int write_blocks(struct local_change *change, const struct history_fold *fold, struct arena *arena,
                        struct fly_error *out_error)
{
    const struct place place = {change->local->store, change->change, change->job};
    struct block *block = arena_alloc(arena, 1, sizeof *block);
    uint64_t number = 0, grows_from = fold->known / DIGEST_TRIALS;
    size_t at = 0;
    int code = block != NULL ? 1 : error_no_memory(out_error);

    for (; number * DIGEST_TRIALS < fold->mark.trials && code == 1; number++) {
        if (number < grows_from && at < fold->again_count)
            number = (fold->again[at].row.trial.trial - 1) / DIGEST_TRIALS;
        else if (number < grows_from)
            number = grows_from;
        if (number * DIGEST_TRIALS >= fold->mark.trials)
            break;
        code = read_block(&place, number, fold->known, arena, block, out_error);
        if (code != 1)
            break;
        renew_block(fold, number, &at, block);
        code = write_block(change, number, block, out_error);
    }
    return code;
}

static int write_head(struct local_change *change, const struct history_fold *fold,
                      struct fly_error *out_error)
{
    struct buffer bytes;
    int code;

    buffer_init(&bytes, STORE_SNAPSHOT_MAX);
    digest_put_head(&fold->mark, &fold->history, &bytes);
    code = put(change, DIGEST_VERSION, &bytes, out_error);
    buffer_deinit(&bytes);
    return code < 0 ? code : 1;
}

static int read_change(void *self, const char *job, const struct store_query *query, store_visit *visit,
                       void *state, struct fly_error *out_error)
{
    (void)job;
    return store_change_read(self, query, visit, state, out_error);
}

/*
 * Writes what is new since the digest with that head, before which stands the number of the first trial.
 * Returns 0 if a block of it is not there.
 */
static int write_since(struct local_change *change, const struct buffer *head, uint64_t *out_number,
                       struct fly_error *out_error)
{
    const struct history_source source = {read_change, change->change, change->job, DIGEST_EVENTS};
    const struct history_digest digest = {head->data, head->length};
    struct history_fold fold;
    struct fly_error why;
    struct arena arena;
    int code;

    arena_init(&arena, MEMORY_MAX);
    /* A log that cannot be understood so has no digest; what is recorded in it does not depend on that. */
    if (history_fold(&source, &digest, &arena, &fold, &why) < 0) {
        *out_number = change->state->number;
        code = 1;
    } else {
        *out_number = fold.mark.number;
        code = write_blocks(change, &fold, &arena, out_error);
        if (code == 1)
            code = write_head(change, &fold, out_error);
    }
    arena_deinit(&arena);
    return code;
}

int local_put_digest(struct local_change *change, struct fly_error *out_error)
{
    const struct place place = {change->local->store, change->change, change->job};
    struct local_state *kept = change->kept;
    uint64_t number = change->state->number;
    struct digest_mark mark = {0};
    struct buffer bytes, head;
    int code;

    if (!change->state->defined || number < DIGEST_EVERY || number < kept->digest_due)
        return 0;
    buffer_init(&bytes, STORE_SNAPSHOT_MAX);
    buffer_init(&head, STORE_SNAPSHOT_MAX);
    code = get(&place, DIGEST_VERSION, &bytes, out_error);
    if (code == 1)
        mark = digest_mark_of(bytes.data, bytes.length);
    kept->digest_due = mark.number + DIGEST_EVERY;
    if (code >= 0 && number >= kept->digest_due) {
        if (mark.number > 0) {
            bytes_put_u64(&head, mark.trials + 1);
            buffer_append(&head, bytes.data, bytes.length);
        }
        code = write_since(change, &head, &number, out_error);
        if (code == 0) { /* without the old one */
            buffer_clear(&head);
            code = write_since(change, &head, &number, out_error);
        }
        kept->digest_due = number + DIGEST_EVERY;
    }
    buffer_deinit(&head);
    buffer_deinit(&bytes);
    return code < 0 ? code : 0;
}
