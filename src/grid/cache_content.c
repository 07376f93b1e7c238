/* SPDX-License-Identifier: Apache-2.0 */
#include "grid/cache_content.h"

#include <string.h>

#include "model/grid_settle.h"

void cache_content_init(struct cache_content *content, const struct grid_kind *kind)
{
    *content = (struct cache_content){.answer = {.remark = ""}};
    grid_series_init(&content->answer.actual, kind, GRID_PERIODS_MAX);
    grid_series_init(&content->answer.published, kind, GRID_PERIODS_MAX);
}

void cache_content_deinit(struct cache_content *content)
{
    grid_answer_deinit(&content->answer);
}

/* Drops the oldest periods beyond the limit; to get them again, the service must be asked again. */
static void trim(struct cache_content *content, struct grid_series *series)
{
    size_t beyond = series->count > CACHE_PERIODS_MAX ? series->count - CACHE_PERIODS_MAX : 0;

    if (beyond == 0)
        return;
    series->count -= beyond;
    memmove(series->periods, series->periods + beyond, series->count * sizeof series->periods[0]);
    for (int i = 0; i < ONLINE_QUERY_COUNT; i++) {
        struct ask_query *query = &content->queries[i];

        if (query->from_s < series->periods[0].start_s)
            query->from_s = series->periods[0].start_s;
        if (query->to_s < query->from_s)
            query->to_s = query->from_s;
    }
}

int cache_content_add(struct cache_content *content, const struct grid_answer *added,
                      struct fly_error *out_error)
{
    int code = grid_series_merge(&content->answer.actual, &added->actual, out_error);

    if (code == 0)
        code = grid_series_merge(&content->answer.published, &added->published, out_error);
    if (code == 0)
        code = grid_series_settle(&content->answer.actual, out_error);
    if (code == 0)
        code = grid_series_settle(&content->answer.published, out_error);
    if (code == 0) {
        trim(content, &content->answer.actual);
        trim(content, &content->answer.published);
    }
    return code;
}
