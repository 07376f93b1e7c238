/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/job/why_plot.h"

#include <inttypes.h>
#include <math.h>

#include "base/math/portable_math.h"
#include "cli/kit/picture.h"
#include "shapes/table.h"

enum { MEMORY_MAX = 64 << 20 };

/* Normal deviates within which 90 and 50 % lie. */
static const double deviate_90 = 1.6448536269514722, deviate_50 = 0.6744897501960817;

/* Above this ratio of the largest to the smallest expected score the axis is logarithmic. */
static const double logarithmic_from = 8.0;

enum { BELIEF_90, BELIEF_50, EXPECTED, REACHED, STOPPED, CHOSEN, ROWS };
static const struct chart_series looks[ROWS] = {
    [BELIEF_90] = {.name = "90 % of the belief", .kind = CHART_BAND, .color = SVG_BLUE},
    [BELIEF_50] = {.name = "50 %", .kind = CHART_BAND, .color = SVG_BLUE},
    [EXPECTED] = {.name = "expected", .kind = CHART_LINE, .color = SVG_BLUE},
    [REACHED] = {.name = "trials", .kind = CHART_POINTS, .color = SVG_GREEN, .shape = SVG_CIRCLE},
    [STOPPED] = {.name = "stopped: it takes more",
                 .kind = CHART_POINTS,
                 .color = SVG_ORANGE,
                 .shape = SVG_TRIANGLE,
                 .radius = 4.5},
    [CHOSEN] = {.name = "chosen", .kind = CHART_POINTS, .color = SVG_PURPLE, .shape = SVG_STAR, .radius = 7},
};

struct drawing {
    const struct why_plot *plot;
    struct picture picture;
    struct picture_panel *panel;
    struct picture_row *rows[ROWS];
};

static void add_band(struct drawing *drawing, int row, const struct decision_candidate *at, double deviate)
{
    double expected = at->expected_cost_j, factor = portable_exp(deviate * at->doubt);

    picture_between(&drawing->picture, drawing->rows[row], at->batch_size, expected / factor,
                    expected * factor);
}

/* Adds the curve and its bands, and the point of the choice. */
static void add_belief(struct drawing *drawing)
{
    const struct decision_outlook *outlook = drawing->plot->outlook;

    for (size_t i = 0; i < outlook->candidate_count; i++) {
        const struct decision_candidate *at = &outlook->candidates[i];
        double expected = at->expected_cost_j;

        add_band(drawing, BELIEF_90, at, deviate_90);
        add_band(drawing, BELIEF_50, at, deviate_50);
        picture_point(&drawing->picture, drawing->rows[EXPECTED], at->batch_size, expected, NULL);
        if (at->batch_size != drawing->plot->chosen)
            continue;
        picture_point(&drawing->picture, drawing->rows[CHOSEN], at->batch_size, expected, NULL);
        picture_note(drawing->panel, at->batch_size, expected,
                     picture_text(&drawing->picture, "chosen: batch %u", at->batch_size));
    }
}

/* Returns the trial; NULL if it is not on record. */
static const struct job_row *row_of(const struct why_plot *plot)
{
    const struct job_history *history = plot->history;

    for (size_t i = 0; i < history->count; i++) {
        if (history->rows[i].trial.trial == plot->trial)
            return &history->rows[i];
    }
    return NULL;
}

/* Returns whether the belief at the choice of `chosen` rests on that trial: it ended with a score before. */
static bool counts(const struct job_row *row, const struct job_row *chosen)
{
    return row->machine == chosen->machine && row->revision == chosen->revision &&
           row->trial.trial < chosen->trial.trial && !row->running && isfinite(row->trial.cost_j) &&
           (row->outcome == TRIAL_REACHED || row->outcome == TRIAL_STOPPED ||
            row->outcome == TRIAL_NOT_REACHED);
}

/* Adds the trials on that hardware, under that revision, that had a score before this one was chosen. */
static void add_trials(struct drawing *drawing)
{
    const struct job_history *history = drawing->plot->history;
    const struct job_row *chosen = row_of(drawing->plot);

    for (size_t i = 0; i < history->count && chosen != NULL; i++) {
        const struct job_row *row = &history->rows[i];
        bool reached = row->outcome == TRIAL_REACHED;

        if (counts(row, chosen))
            picture_point(&drawing->picture, drawing->rows[reached ? REACHED : STOPPED],
                          row->trial.batch_size, row->trial.cost_j,
                          picture_text(&drawing->picture, "trial %" PRIu64 ", batch %u: a score of %s%.*f",
                                       row->trial.trial, row->trial.batch_size, reached ? "" : "more than ",
                                       table_decimals(MEANING_DIGITS(3), row->trial.cost_j),
                                       row->trial.cost_j));
    }
}

/* Begins the picture, with a tick for each batch size. */
static void begin(struct drawing *drawing)
{
    const struct decision_outlook *outlook = drawing->plot->outlook;
    double low = INFINITY, high = 0.0;
    double *sizes;

    picture_begin(&drawing->picture, MEMORY_MAX);
    sizes = arena_alloc(&drawing->picture.arena, outlook->candidate_count + 1, sizeof sizes[0]);
    for (size_t i = 0; i < outlook->candidate_count; i++) {
        const struct decision_candidate *at = &outlook->candidates[i];
        double factor = portable_exp(deviate_90 * at->doubt);

        low = fmin(low, at->expected_cost_j / factor);
        high = fmax(high, at->expected_cost_j * factor);
        if (sizes != NULL)
            sizes[i] = at->batch_size;
    }
    drawing->panel =
        picture_panel(&drawing->picture,
                      &(struct chart_panel){.height = 340,
                                            .x = {.label = "batch size",
                                                  .logarithmic = true,
                                                  .ticks = sizes,
                                                  .tick_count = sizes != NULL ? outlook->candidate_count : 0},
                                            .y = {.label = "score to the target",
                                                  .logarithmic = high > logarithmic_from * low}});
    for (int i = 0; i < ROWS; i++)
        drawing->rows[i] = picture_row(&drawing->picture, drawing->panel, &looks[i]);
}

int why_plot_commit(const struct why_plot *plot, struct atomic_file *file, struct fly_error *out_error)
{
    struct drawing drawing = {.plot = plot};
    size_t stopped;

    begin(&drawing);
    add_belief(&drawing);
    add_trials(&drawing);
    stopped = drawing.rows[STOPPED]->series.count;
    return picture_commit(
        &drawing.picture,
        picture_text(&drawing.picture, "%.80s: what was believed before trial %" PRIu64,
                     plot->history->definition.name, plot->trial),
        picture_text(
            &drawing.picture,
            "Expected score of a run of each of %zu batch sizes, with bands of 50 and 90 %% belief, and "
            "%zu trials before, %zu of them stopped. Batch size %u was chosen; %u was the best known.",
            plot->outlook->candidate_count, drawing.rows[REACHED]->series.count + stopped, stopped,
            plot->chosen, plot->outlook->best_batch_size),
        file, out_error);
}
