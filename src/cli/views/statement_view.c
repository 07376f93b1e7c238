/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/views/statement_view.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "grid/forecast.h"
#include "grid/providers.h"

/* Room for a ledger of the largest size, its slices in each way, and its periods. */
enum { MEMORY_MAX = 1 << 30, DAY_S = 86400 };

static int read_ledgers(struct statement_view *view, const struct statement_wish *wish,
                        struct fly_error *out_error)
{
    int code = 0;

    view->ledgers = arena_alloc(&view->arena, wish->path_count, sizeof view->ledgers[0]);
    if (view->ledgers == NULL)
        return error_no_memory(out_error);
    for (size_t i = 0; i < wish->path_count && code == 0; i++) {
        code = carbon_ledger_read(wish->paths[i], &view->arena, &view->ledgers[i], out_error);
        view->ledger_count += code == 0;
    }
    return code;
}

static const char *source_of(const struct statement_view *view, const struct statement_wish *wish, int signal)
{
    const char *source = wish->sources[signal];

    if (source == NULL && view->ledger_count > 0)
        source = view->ledgers[0].head.sources[signal];
    return source != NULL && source[0] != '\0' ? source : NULL;
}

/* Reads what one source says of that time; if it says nothing, sets its remark. */
static void read_source(struct statement_view *view, const struct statement_wish *wish, int signal,
                        int64_t from_s, int64_t to_s)
{
    static const enum grid_quantity quantities[CARBON_SIGNALS] = {GRID_CARBON, GRID_PRICE};
    struct grid_request request = {.quantity = quantities[signal],
                                   .from_s = from_s - GRID_FORECAST_DAYS * (int64_t)DAY_S,
                                   .to_s = to_s,
                                   .now_s = wish->now_s,
                                   .cached_only = wish->cached_only};
    struct grid_answer *answer = &view->answers[signal];
    struct fly_error error = {.text = ""};

    view->sources[signal] = source_of(view, wish, signal);
    if (view->sources[signal] == NULL)
        return;
    if (grid_read(view->sources[signal], &request, answer, &error) < 0) {
        snprintf(view->remarks[signal], sizeof view->remarks[signal], "%s", error.text);
        return;
    }
    view->has[signal] = true;
    memcpy(view->remarks[signal], answer->remark, sizeof answer->remark);
    if (answer->actual.kind.quantity == quantities[signal])
        return;
    snprintf(view->remarks[signal], sizeof view->remarks[signal], "'%s' has no %s; they are left out",
             view->sources[signal], signal == CARBON_PRICE ? "prices" : "carbon intensities");
    view->has[signal] = false;
    grid_answer_deinit(answer);
}

int statement_view_open(struct statement_view *view, const struct statement_wish *wish,
                        struct fly_error *out_error)
{
    struct statement_request request = {.yearly_means = {NAN, NAN}};
    int64_t from_s = 0, to_s = 0;
    int code;

    memset(view, 0, sizeof *view);
    arena_init(&view->arena, MEMORY_MAX);
    code = read_ledgers(view, wish, out_error);
    if (code < 0)
        return code;
    request.ledgers = view->ledgers;
    request.ledger_count = view->ledger_count;
    if (carbon_statement_span(&request, &from_s, &to_s)) {
        for (int signal = 0; signal < CARBON_SIGNALS; signal++) {
            read_source(view, wish, signal, from_s, to_s);
            request.answers[signal] = view->has[signal] ? &view->answers[signal] : NULL;
        }
    }
    return carbon_statement_make(&request, &view->arena, &view->statement, out_error);
}

void statement_view_close(struct statement_view *view)
{
    for (int signal = 0; signal < CARBON_SIGNALS; signal++) {
        if (view->has[signal])
            grid_answer_deinit(&view->answers[signal]);
        view->has[signal] = false;
    }
    arena_deinit(&view->arena);
}
