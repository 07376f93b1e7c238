/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/job/why_plot.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "base/error.h"
#include "base/math/portable_math.h"
#include "cli/kit/chart_dots.h"

enum { MEMORY_MAX = 64 << 20, TEXT_MAX = 256, SERIES_MAX = 6, BANDS = 2, LISTS = 6 };

/* Normal deviates within which 90 and 50 % lie. */
static const double deviates[BANDS] = {1.6448536269514722, 0.6744897501960817};
static const char *const band_names[BANDS] = {"90 % of the belief", "50 %"};

/* Above this ratio of the largest to the smallest expected cost the axis is logarithmic. */
static const double logarithmic_from = 8.0;

struct picture {
    const struct why_plot *plot;
    struct arena *arena;
    struct chart_unit unit;
    double *sizes, *expected, *low[BANDS], *high[BANDS];
    struct chart_dots reached, stopped, chosen;
    struct chart_series series[SERIES_MAX];
    struct chart_note note;
    struct chart_panel panel;
    char title[TEXT_MAX], description[2 * TEXT_MAX], y[TEXT_MAX];
};

/* Returns the unit of the least cost that is expected. */
static struct chart_unit unit_of(const struct decision_outlook *outlook)
{
    double least = INFINITY;

    for (size_t at = 0; at < outlook->candidate_count; at++)
        least = fmin(least, outlook->candidates[at].expected_cost_j);
    return chart_unit_for(chart_energy_units, least);
}

/* Fills in the curve and its bands, and the point of the choice. */
static int draw_belief(struct picture *picture, struct fly_error *out_error)
{
    const struct decision_outlook *outlook = picture->plot->outlook;
    size_t count = outlook->candidate_count;
    double **lists[LISTS] = {&picture->sizes,  &picture->expected, &picture->low[0],
                             &picture->low[1], &picture->high[0],  &picture->high[1]};

    for (size_t i = 0; i < LISTS; i++) {
        *lists[i] = arena_alloc(picture->arena, count + 1, sizeof(double));
        if (*lists[i] == NULL)
            return error_no_memory(out_error);
    }
    if (!chart_dots_init(&picture->chosen, picture->arena, 1))
        return error_no_memory(out_error);
    for (size_t i = 0; i < count; i++) {
        const struct decision_candidate *at = &outlook->candidates[i];

        picture->sizes[i] = at->batch_size;
        picture->expected[i] = at->expected_cost_j / picture->unit.size;
        for (size_t band = 0; band < BANDS; band++) {
            double factor = portable_exp(deviates[band] * at->doubt);

            picture->low[band][i] = picture->expected[i] / factor;
            picture->high[band][i] = picture->expected[i] * factor;
        }
        if (at->batch_size == picture->plot->chosen)
            chart_dots_add(&picture->chosen, at->batch_size, picture->expected[i], NULL);
    }
    return 0;
}

/* Returns the trial; NULL if it is not on record. */
static const struct job_row *row_of(const struct why_plot *plot)
{
    const struct job_history *history = plot->history;

    for (size_t i = 0; i < history->count; i++) {
        if (history->rows[i].trial == plot->trial)
            return &history->rows[i];
    }
    return NULL;
}

/* Returns whether the belief at the choice of `chosen` rests on that trial: it ended with a cost before. */
static bool counts(const struct job_row *row, const struct job_row *chosen)
{
    return row->machine == chosen->machine && row->revision == chosen->revision &&
           row->trial < chosen->trial && !row->running && isfinite(row->cost_j) &&
           (row->outcome == TRIAL_REACHED || row->outcome == TRIAL_STOPPED ||
            row->outcome == TRIAL_NOT_REACHED);
}

/* Adds the trials on that hardware, under that revision, that had a cost before this one was chosen. */
static int add_trials(struct picture *picture, struct fly_error *out_error)
{
    const struct job_history *history = picture->plot->history;
    const struct job_row *chosen = row_of(picture->plot);
    char text[TEXT_MAX];

    if (!chart_dots_init(&picture->reached, picture->arena, history->count) ||
        !chart_dots_init(&picture->stopped, picture->arena, history->count))
        return error_no_memory(out_error);
    for (size_t i = 0; i < history->count; i++) {
        const struct job_row *row = &history->rows[i];
        bool reached = row->outcome == TRIAL_REACHED;

        if (chosen == NULL || !counts(row, chosen))
            continue;
        snprintf(text, sizeof text, "trial %" PRIu64 ", batch %u: %s%.3g %s", row->trial, row->batch_size,
                 reached ? "" : "more than ", row->cost_j / picture->unit.size, picture->unit.name);
        chart_dots_add(reached ? &picture->reached : &picture->stopped, row->batch_size,
                       row->cost_j / picture->unit.size, arena_strdup(picture->arena, text));
    }
    return 0;
}

/* Leaves out series without points, from the legend too. */
static size_t make_series(struct picture *picture)
{
    const struct chart_series dots[] = {
        chart_dots_series(&picture->reached, "trials", CHART_POINTS, SVG_GREEN, SVG_CIRCLE, 0),
        chart_dots_series(&picture->stopped, "stopped: it costs more", CHART_POINTS, SVG_ORANGE, SVG_TRIANGLE,
                          4.5),
        chart_dots_series(&picture->chosen, "chosen", CHART_POINTS, SVG_PURPLE, SVG_STAR, 7),
    };
    struct chart_series belief = {
        .color = SVG_BLUE, .x = picture->sizes, .count = picture->plot->outlook->candidate_count};
    size_t count = 0;

    for (size_t band = 0; band < BANDS; band++) {
        belief.name = band_names[band];
        belief.kind = CHART_BAND;
        belief.y = picture->low[band];
        belief.y_high = picture->high[band];
        picture->series[count++] = belief;
    }
    belief.name = "expected";
    belief.kind = CHART_LINE;
    belief.y = picture->expected;
    picture->series[count++] = belief;
    for (size_t i = 0; i < sizeof dots / sizeof dots[0]; i++) {
        if (dots[i].count > 0)
            picture->series[count++] = dots[i];
    }
    return count;
}

static bool far_apart(const struct picture *picture)
{
    size_t count = picture->plot->outlook->candidate_count;
    double least = INFINITY, greatest = 0.0;

    for (size_t i = 0; i < count; i++) {
        least = fmin(least, picture->low[0][i]);
        greatest = fmax(greatest, picture->high[0][i]);
    }
    return greatest > logarithmic_from * least;
}

static void put_texts(struct picture *picture)
{
    const struct why_plot *plot = picture->plot;

    snprintf(picture->y, sizeof picture->y, "cost to the target (%s)", picture->unit.name);
    snprintf(picture->title, sizeof picture->title, "%.80s: what was believed before trial %" PRIu64,
             plot->history->definition.name, plot->trial);
    snprintf(picture->description, sizeof picture->description,
             "Expected cost of a run of each of %zu batch sizes, with bands of 50 and 90 %% belief, and %zu "
             "trials before, %zu of them stopped. Batch size %u was chosen; %u was the best known.",
             plot->outlook->candidate_count, picture->reached.count + picture->stopped.count,
             picture->stopped.count, plot->chosen, plot->outlook->best_batch_size);
}

static int compose(void *context, struct arena *arena, struct chart *out_chart, struct fly_error *out_error)
{
    struct picture *picture = context;
    char text[TEXT_MAX];
    int code;

    picture->arena = arena;
    code = draw_belief(picture, out_error);
    if (code == 0)
        code = add_trials(picture, out_error);
    if (code < 0)
        return code;
    snprintf(text, sizeof text, "chosen: batch %u", picture->plot->chosen);
    picture->note =
        (struct chart_note){picture->plot->chosen, picture->chosen.count > 0 ? picture->chosen.y[0] : NAN,
                            arena_strdup(arena, text)};
    picture->panel = (struct chart_panel){
        .height = 340,
        .x = {.label = "batch size",
              .logarithmic = true,
              .ticks = picture->sizes,
              .tick_count = picture->plot->outlook->candidate_count},
        .y = {.label = picture->y, .logarithmic = far_apart(picture)},
        .series = picture->series,
        .series_count = make_series(picture),
        .notes = &picture->note,
        .note_count = picture->chosen.count > 0 && picture->note.text != NULL,
    };
    put_texts(picture);
    *out_chart = (struct chart){.title = picture->title,
                                .description = picture->description,
                                .panels = &picture->panel,
                                .panel_count = 1};
    return 0;
}

int why_plot_commit(const struct why_plot *plot, struct atomic_file *file, struct fly_error *out_error)
{
    struct picture picture = {.plot = plot, .unit = unit_of(plot->outlook)};

    return chart_compose_commit(compose, &picture, MEMORY_MAX, file, out_error);
}
