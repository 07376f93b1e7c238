/* SPDX-License-Identifier: Apache-2.0 */
#include "statement_fixture.h"
#include "model/grid_series.h"

enum { MEMORY_MAX = 64 << 20 };

const double statement_start_s = 1.7e9;
const int64_t statement_hours_s = 1699999200;

const struct fly_power_point statement_points[3] = {{200, 150, 1.25}, {250, 200, 1.1}, {300, 300, 1.0}};

void statement_begin(struct statement_fixture *fixture)
{
    memset(fixture, 0, sizeof *fixture);
    arena_init(&fixture->arena, MEMORY_MAX);
    memcpy(fixture->points, statement_points, sizeof fixture->points);
    for (int i = 0; i < 2; i++) {
        struct ledger_content *ledger = &fixture->ledgers[i];
        struct grid_kind kind = {.quantity = i == CARBON_PRICE ? GRID_PRICE : GRID_CARBON};

        ledger->head.max_slowdown = NAN;
        ledger->head.surroundings.pue = 1.0;
        ledger->head.gpus = 1;
        ledger->head.rank = (uint32_t)i;
        ledger->slices = fixture->slices[i];
        ledger->points = fixture->points;
        grid_series_init(&fixture->answers[i].actual, &kind, STATEMENT_PERIODS_MAX);
        grid_series_init(&fixture->answers[i].published, &kind, STATEMENT_PERIODS_MAX);
        fixture->request.yearly_means[i] = NAN;
    }
    fixture->ledgers[0].point_count = 3;
    fixture->request.ledgers = fixture->ledgers;
    fixture->request.ledger_count = 1;
}

void statement_end(struct statement_fixture *fixture)
{
    for (int i = 0; i < CARBON_SIGNALS; i++)
        grid_answer_deinit(&fixture->answers[i]);
    arena_deinit(&fixture->arena);
}

void statement_add_value(struct statement_fixture *fixture, int signal, int64_t from_s, int64_t to_s,
                         double value)
{
    const struct grid_period period = {from_s, to_s, value, GRID_MEASURED, 0};

    assert_int_equal(grid_series_add(&fixture->answers[signal].actual, &period, NULL), 0);
    fixture->request.answers[signal] = &fixture->answers[signal];
}

void statement_add_slice(struct statement_fixture *fixture, int ledger, double from_s, double length_s,
                         double gpu_j, double limit_w)
{
    struct ledger_content *content = &fixture->ledgers[ledger];

    fixture->slices[ledger][content->slice_count++] = (struct energy_slice){
        statement_start_s + from_s, statement_start_s + from_s + length_s, gpu_j, NAN, limit_w, 0.0, false};
}

void statement_make(struct statement_fixture *fixture)
{
    struct fly_error error = {.text = ""};

    for (int i = 0; i < CARBON_SIGNALS; i++) {
        assert_int_equal(grid_series_settle(&fixture->answers[i].actual, NULL), 0);
        assert_int_equal(grid_series_settle(&fixture->answers[i].published, NULL), 0);
    }
    if (carbon_statement_make(&fixture->request, &fixture->arena, &fixture->statement, &error) < 0)
        fail_msg("%s", error.text);
}
