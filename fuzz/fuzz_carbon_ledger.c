/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Accounts of energy: any bytes are either refused with the line, or read as content that reads the same
 * after it is written again. Every beginning of a readable account reads or is refused.
 */
#include <math.h>
#include <string.h>

#include "fuzz.h"
#include "train/account/carbon_ledger.h"

static bool same_number(double a, double b)
{
    return a == b || (isnan(a) && isnan(b));
}

static bool same_point(const struct fly_power_point *a, const struct fly_power_point *b)
{
    return a->limit_w == b->limit_w && a->power_w == b->power_w && a->time_s == b->time_s;
}

static bool same_slice(const struct energy_slice *a, const struct energy_slice *b)
{
    return a->start_s == b->start_s && a->end_s == b->end_s && same_number(a->gpu_j, b->gpu_j) &&
           same_number(a->host_j, b->host_j) && same_number(a->limit_w, b->limit_w) && a->steps == b->steps &&
           a->jumped == b->jumped;
}

static bool same_head(const struct ledger_head *a, const struct ledger_head *b)
{
    return strcmp(a->run, b->run) == 0 && strcmp(a->job, b->job) == 0 && strcmp(a->host, b->host) == 0 &&
           strcmp(a->program, b->program) == 0 && a->objective.per_g == b->objective.per_g &&
           a->objective.per_money == b->objective.per_money && a->objective.per_kwh == b->objective.per_kwh &&
           a->surroundings.host_w == b->surroundings.host_w && a->surroundings.pue == b->surroundings.pue &&
           same_number(a->max_slowdown, b->max_slowdown) && a->finish_by_s == b->finish_by_s &&
           a->steps == b->steps && a->start_s == b->start_s && a->gpus == b->gpus && a->rank == b->rank &&
           memcmp(a->sources, b->sources, sizeof a->sources) == 0;
}

static void check_content(const struct ledger_content *content, struct arena *arena)
{
    struct ledger_content again;
    struct buffer text;

    buffer_init(&text, LEDGER_FILE_MAX);
    FUZZ_CHECK(ledger_write_head(&content->head, &text, NULL) == 0);
    for (size_t i = 0; i < content->slice_count; i++)
        FUZZ_CHECK(ledger_write_slice(&content->slices[i], &text, NULL) == 0);
    if (content->point_count > 0)
        FUZZ_CHECK(ledger_write_profile(content->points, content->point_count, &text, NULL) == 0);
    FUZZ_CHECK(carbon_ledger_parse("again", text.data, text.length, arena, &again, NULL) == 0);
    FUZZ_CHECK(!again.torn && again.slice_count == content->slice_count &&
               again.point_count == content->point_count && same_head(&again.head, &content->head));
    for (size_t i = 0; i < content->slice_count; i++)
        FUZZ_CHECK(same_slice(&again.slices[i], &content->slices[i]));
    for (size_t i = 0; i < content->point_count; i++)
        FUZZ_CHECK(same_point(&again.points[i], &content->points[i]));
    buffer_deinit(&text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct ledger_content content = {.torn = false};
    struct fly_error error = {.code = 0};
    struct arena arena;

    arena_init(&arena, 256 << 20);
    if (carbon_ledger_parse("name", (const char *)data, size, &arena, &content, &error) == 0)
        check_content(&content, &arena);
    else {
        FUZZ_CHECK(error.code == FLY_EDATA);
        FUZZ_CHECK(strncmp(error.text, "account of energy 'name', line ", 31) == 0);
    }
    arena_deinit(&arena);
    return 0;
}
