/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/sim/compare_plot.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "sim/standing.h"

enum { MEMORY_MAX = 256 << 20, TITLE_MAX = 256, WORST_RUNS = 30, SERIES_EACH = 3 };

static const double bar_width = 0.8; /* of all policies together, in jobs */

/* What distinguishes policies, in the order in which they were asked for. */
static const struct {
    enum svg_color color;
    enum svg_dash dash;
} looks[] = {{SVG_BLUE, SVG_SOLID},
             {SVG_ORANGE, SVG_DASHED},
             {SVG_GREEN, SVG_DASH_DOT},
             {SVG_PURPLE, SVG_DOTTED},
             {SVG_YELLOW, SVG_DASHED}};
enum { LOOK_COUNT = sizeof looks / sizeof looks[0] };

/* One panel while its series are made. */
struct canvas {
    struct arena *arena;
    const struct compare_run *run;
    const struct compare_set *set;
    struct chart_series *series;
    size_t count;
};

static struct standing_question ask(const struct canvas *canvas, size_t policy, size_t horizon)
{
    return (struct standing_question){.first = canvas->set->first,
                                      .count = canvas->set->count,
                                      .policy = policy,
                                      .rival = canvas->run->rival,
                                      .standard = canvas->run->standard,
                                      .horizon = horizon};
}

static bool was_asked_for(const struct canvas *canvas, size_t policy)
{
    return canvas->run->plan->policies[policy].writes_tries;
}

static void add_series(struct canvas *canvas, const struct chart_series *series)
{
    canvas->series[canvas->count++] = *series;
}

/* Adds the mean regret of a policy after each sample, and the band up to the p90. */
static int add_regret(struct canvas *canvas, size_t policy, struct chart_series *look,
                      struct fly_error *out_error)
{
    const struct campaign_plan *plan = canvas->run->plan;
    size_t count = plan->horizon_count;
    double *lists = arena_alloc(canvas->arena, 3 * count, sizeof lists[0]);

    if (lists == NULL)
        return error_no_memory(out_error);
    look->x = lists;
    look->y = lists + count;
    look->y_high = lists + 2 * count;
    look->count = count;
    for (size_t i = 0; i < count; i++) {
        const struct standing_question question = ask(canvas, policy, i);
        struct standing standing;
        int code = standing_find(plan, canvas->run->campaign, &question, &standing, out_error);

        if (code < 0)
            return code;
        lists[i] = (double)plan->horizons[i];
        lists[count + i] = standing.regret;
        lists[2 * count + i] = fmax(standing.regret, standing.regret_p90);
    }
    look->kind = CHART_BAND;
    if (was_asked_for(canvas, policy))
        add_series(canvas, look);
    look->kind = CHART_LINE;
    look->name = plan->policies[policy].name;
    add_series(canvas, look);
    return 0;
}

/* The bars of a policy: three places for each job, of which the last parts it from the next. */
struct bars {
    double *edges, *low, *high; /* of the bars */
    double *middle, *interval;  /* of the lines over them */
};

static bool make_bars(struct canvas *canvas, struct bars *bars)
{
    double **lists[] = {&bars->edges, &bars->low, &bars->high, &bars->middle, &bars->interval};
    bool fits = true;

    for (size_t i = 0; i < sizeof lists / sizeof lists[0]; i++) {
        *lists[i] = arena_alloc(canvas->arena, 3 * canvas->set->count, sizeof(double));
        fits = fits && *lists[i] != NULL;
    }
    return fits;
}

static void set_bar(struct bars *bars, size_t job, double left, double width,
                    const struct standing_ratio *ratio)
{
    size_t at = 3 * job;

    for (size_t i = at; i < at + 2; i++) {
        bars->edges[i] = i == at ? left : left + width;
        bars->low[i] = fmin(1.0, ratio->ratio);
        bars->high[i] = fmax(1.0, ratio->ratio);
        bars->middle[i] = left + 0.5 * width;
        bars->interval[i] = i == at ? ratio->low : ratio->high;
    }
    bars->edges[at + 2] = bars->low[at + 2] = bars->high[at + 2] = NAN;
    bars->middle[at + 2] = bars->interval[at + 2] = NAN;
}

/* Adds a bar from 1 to the ratio for each job, with the interval as a line. */
static int add_ratios(struct canvas *canvas, size_t policy, struct chart_series *look,
                      struct fly_error *out_error)
{
    const struct campaign_plan *plan = canvas->run->plan;
    size_t rank = canvas->count / 2;
    double width = bar_width / (double)(plan->policy_count - 1);
    struct bars bars;

    if (!make_bars(canvas, &bars))
        return error_no_memory(out_error);
    for (size_t job = 0; job < canvas->set->count; job++) {
        struct standing_question question = ask(canvas, policy, plan->horizon_count - 1);
        struct standing_ratio ratio;
        int code;

        question.first += job;
        question.count = 1;
        code = standing_ratio_of_job(plan, canvas->run->campaign, &question, &ratio, out_error);
        if (code < 0)
            return code;
        set_bar(&bars, job, (double)(job + 1) - 0.5 * bar_width + width * (double)rank, width, &ratio);
    }
    look->dash = SVG_SOLID;
    look->kind = CHART_BAND;
    look->x = bars.edges;
    look->y = bars.low;
    look->y_high = bars.high;
    look->count = 3 * canvas->set->count;
    add_series(canvas, look);
    look->kind = CHART_LINE;
    look->name = plan->policies[policy].name;
    look->x = bars.middle;
    look->y = bars.interval;
    add_series(canvas, look);
    return 0;
}

static int add_worst(struct canvas *canvas, size_t policy, struct chart_series *look,
                     struct fly_error *out_error)
{
    const struct campaign_plan *plan = canvas->run->plan;
    const struct standing_question question = ask(canvas, policy, plan->horizon_count - 1);
    double *lists = arena_alloc(canvas->arena, 2 * WORST_RUNS, sizeof lists[0]);
    int code;

    if (lists == NULL)
        return error_no_memory(out_error);
    code = standing_worst_runs(plan, canvas->run->campaign, &question, WORST_RUNS, lists + WORST_RUNS,
                               &look->count, out_error);
    for (size_t i = 0; i < WORST_RUNS; i++)
        lists[i] = (double)(i + 1);
    look->kind = CHART_LINE;
    look->shape = SVG_CIRCLE;
    look->radius = 2.0;
    look->name = plan->policies[policy].name;
    look->x = lists;
    look->y = lists + WORST_RUNS;
    add_series(canvas, look);
    return code;
}

/* The panels of a set of jobs, in their order. */
static const struct kind {
    const char *title;
    double height;
    struct chart_axis x, y;
    bool has_default, has_rival;
    int (*add)(struct canvas *canvas, size_t policy, struct chart_series *look, struct fly_error *out_error);
} kinds[] = {
    {"regret so far, mean over jobs, and band to the p90 of all runs",
     200.0,
     {.label = "recurrences", .tight = true},
     {.label = "regret (optimal runs)", .from_zero = true},
     true,
     true,
     add_regret},
    {"regret of each job, relative to the policy compared with",
     160.0,
     {.label = "job, in the order of --each"},
     {.label = "ratio", .logarithmic = true},
     false,
     false,
     add_ratios},
    {"regret of the worst runs",
     130.0,
     {.label = "rank"},
     {.label = "regret (optimal runs)", .from_zero = true},
     false,
     true,
     add_worst},
};

/* Fills in one panel. */
static int draw_panel(struct compare_plot *plot, const struct compare_run *run, const struct compare_set *set,
                      const struct kind *kind, struct fly_error *out_error)
{
    struct canvas canvas = {.arena = &plot->arena, .run = run, .set = set};
    char title[TITLE_MAX];
    size_t asked = 0;
    int code = 0;

    canvas.series = arena_alloc(&plot->arena, SERIES_EACH * run->plan->policy_count, sizeof canvas.series[0]);
    snprintf(title, sizeof title, "%s, %s jobs: %s", run->scenario, set->name, kind->title);
    plot->panels[plot->panel_count] = (struct chart_panel){
        .title = arena_strdup(&plot->arena, title), .height = kind->height, .x = kind->x, .y = kind->y};
    if (canvas.series == NULL || plot->panels[plot->panel_count].title == NULL)
        return error_no_memory(out_error);
    for (size_t policy = 0; policy < run->plan->policy_count && code == 0; policy++) {
        bool ours = was_asked_for(&canvas, policy);
        struct chart_series look = {.color = ours ? looks[asked].color : SVG_FAINT,
                                    .dash = ours ? looks[asked].dash : SVG_DASHED};

        if (ours)
            asked = (asked + 1) % LOOK_COUNT;
        if (ours ? kind->has_rival || policy != run->rival : kind->has_default && policy == run->standard)
            code = kind->add(&canvas, policy, &look, out_error);
    }
    plot->panels[plot->panel_count].series = canvas.series;
    plot->panels[plot->panel_count++].series_count = canvas.count;
    return code;
}

void compare_plot_begin(struct compare_plot *plot)
{
    plot->panel_count = 0;
    arena_init(&plot->arena, MEMORY_MAX);
}

void compare_plot_end(struct compare_plot *plot)
{
    arena_deinit(&plot->arena);
}

int compare_plot_add(struct compare_plot *plot, const struct compare_run *run, struct fly_error *out_error)
{
    int code = 0;

    for (size_t i = 0; i < run->set_count && code == 0; i++) {
        if (strcmp(run->sets[i].name, "traces") != 0 && strcmp(run->sets[i].name, "synthetic") != 0)
            continue;
        for (size_t k = 0; k < sizeof kinds / sizeof kinds[0] && code == 0; k++) {
            if (plot->panel_count == COMPARE_PANELS_MAX)
                return 0;
            code = draw_panel(plot, run, &run->sets[i], &kinds[k], out_error);
        }
    }
    return code;
}

int compare_plot_commit(const struct compare_plot *plot, struct atomic_file *file,
                        struct fly_error *out_error)
{
    const struct chart chart = {
        .title = "Policies side by side",
        .description =
            "For each scenario and set of jobs: the mean regret over the recurrences, the ratio of "
            "each job's regret to that of the policy compared with, and the regret of the worst "
            "runs. The table of flyball sim compare has the figures.",
        .panels = plot->panels,
        .panel_count = plot->panel_count};

    return chart_commit(&chart, file, out_error);
}
