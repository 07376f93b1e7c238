/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/sim/sim_plot.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "base/error.h"
#include "sim/standing.h"
#include "sim/statistics.h"

enum { JOB_MEMORY_MAX = 1 << 30, COMPARE_MEMORY_MAX = 256 << 20, COMPARE_PANELS_MAX = 128 };
enum { DESCRIPTION_MAX = 4096, WORST_RUNS = 30 };

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

static const struct chart_series faint = {.color = SVG_FAINT, .dash = SVG_DASHED};

static struct chart_series look_of(size_t asked)
{
    return (struct chart_series){.color = looks[asked % LOOK_COUNT].color,
                                 .dash = looks[asked % LOOK_COUNT].dash};
}

static struct picture_row *add_row(struct picture *picture, struct picture_panel *panel,
                                   const struct chart_series *look, enum chart_kind kind, const char *name)
{
    struct chart_series series = *look;

    series.kind = kind;
    series.name = name;
    return picture_row(picture, panel, &series);
}

/* ---- flyball sim job ---- */

/* The three panels of one workload while they are drawn. */
struct scene {
    const struct campaign_plan *plan;
    const struct campaign *campaign;
    struct picture *picture;
    size_t workload;
    struct picture_panel *regret, *batch, *limit;
    struct buffer *text; /* what is said of the last values */
};

/* Adds the mean of the regret after each sample, over the completed runs, and the band from p10 to p90. */
static int add_regret(struct scene *scene, size_t policy, const struct chart_series *look,
                      struct fly_error *out_error)
{
    const struct campaign_plan *plan = scene->plan;
    const struct comparison *runs = campaign_cell(plan, scene->campaign, scene->workload, policy);
    const struct curve *curves = campaign_curves(plan, scene->campaign, scene->workload, policy);
    const struct curve *first = campaign_curves(plan, scene->campaign, scene->workload, 0);
    const char *name = plan->policies[policy].name;
    struct picture_row *band = add_row(scene->picture, scene->regret, look, CHART_BAND, NULL);
    struct picture_row *line = add_row(scene->picture, scene->regret, look, CHART_LINE, name);
    double *values = calloc(plan->seed_count, sizeof values[0]), last = NAN;

    if (values == NULL)
        return error_no_memory(out_error);
    for (size_t i = 0; i < first->count; i++) {
        struct statistics statistics;
        double at = (double)first->positions[i];

        for (size_t s = 0; s < plan->seed_count; s++)
            values[s] = runs[s].ended == 0 && i < curves[s].taken ? curves[s].regret[i] : NAN;
        statistics = statistics_of(values, plan->seed_count);
        last = statistics.mean;
        picture_point(scene->picture, line, at, last, NULL);
        picture_between(scene->picture, band, at, statistics.count > 1 ? statistics.p10 : NAN,
                        statistics.count > 1 ? statistics.p90 : NAN);
    }
    free(values);
    if (isfinite(last))
        buffer_printf(scene->text, ", %s %.2f", name, last);
    else
        buffer_printf(scene->text, ", %s not known", name);
    return 0;
}

/* Adds the knobs of the first seed's run, as far as it went. */
static void add_path(struct scene *scene, size_t policy, const struct chart_series *look)
{
    const struct job_spec *spec = &scene->plan->workloads[scene->workload].spec;
    const struct curve *curve = campaign_curves(scene->plan, scene->campaign, scene->workload, policy);
    const struct curve *first = campaign_curves(scene->plan, scene->campaign, scene->workload, 0);
    struct picture_row *batch = add_row(scene->picture, scene->batch, look, CHART_STEPS, NULL);
    struct picture_row *limit = add_row(scene->picture, scene->limit, look, CHART_STEPS, NULL);

    for (size_t i = 0; i < curve->taken; i++) {
        double at = (double)first->positions[i];

        picture_point(scene->picture, batch, at, spec->batches[curve->batch[i]].size, NULL);
        picture_point(scene->picture, limit, at, curve->limit_w[i], NULL);
    }
}

/* Adds a faint line at the optimum. */
static void add_optimum(struct scene *scene)
{
    static const struct chart_series look = {.color = SVG_FAINT, .dash = SVG_DOTTED};
    const struct workload *workload = &scene->plan->workloads[scene->workload];
    const struct optimum *optimum = &scene->campaign->optima[scene->workload];
    const struct curve *first = campaign_curves(scene->plan, scene->campaign, scene->workload, 0);
    struct picture_row *batch = add_row(scene->picture, scene->batch, &look, CHART_LINE, "optimum");
    struct picture_row *limit = add_row(scene->picture, scene->limit, &look, CHART_LINE, NULL);

    for (int end = 0; end < 2 && !isinf(optimum->cost_j); end++) {
        double at = (double)first->positions[end == 0 ? 0 : first->count - 1];

        picture_point(scene->picture, batch, at, workload->spec.batches[optimum->batch].size, NULL);
        picture_point(scene->picture, limit, at,
                      workload->batches[optimum->batch].points[optimum->point].limit_w, NULL);
    }
}

static int add_policies(struct scene *scene, struct fly_error *out_error)
{
    const struct campaign_plan *plan = scene->plan;
    size_t asked = 0;
    int code = 0;

    add_optimum(scene);
    for (size_t p = 0; p < plan->policy_count && code == 0; p++) {
        if (plan->policies[p].writes_tries) {
            const struct chart_series look = look_of(asked++);

            code = add_regret(scene, p, &look, out_error);
            add_path(scene, p, &look);
        } else if (plan->policies[p].policy == &batch_policy_default)
            code = add_regret(scene, p, &faint, out_error);
    }
    return code;
}

static int add_workload(struct scene *scene, struct fly_error *out_error)
{
    const struct workload *job = &scene->plan->workloads[scene->workload];
    const struct job_spec *spec = &job->spec;
    /* Beyond the samples taken one by one, positions are in equal ratios. */
    const struct chart_axis x = {.label = "recurrences",
                                 .logarithmic =
                                     scene->campaign->recurrences[scene->workload] >
                                     campaign_curves(scene->plan, scene->campaign, scene->workload, 0)->count,
                                 .tight = true};
    double *sizes = arena_alloc(&scene->picture->arena, spec->batch_count, sizeof sizes[0]);

    if (sizes == NULL)
        return error_no_memory(out_error);
    for (size_t i = 0; i < spec->batch_count; i++)
        sizes[i] = spec->batches[i].size;
    scene->regret = picture_panel(
        scene->picture,
        &(struct chart_panel){.title = picture_text(scene->picture,
                                                    "%.80s on %.40s: regret, mean over seeds and p10 to p90",
                                                    job->job.name, job->gpu),
                              .height = 220,
                              .x = x,
                              .y = {.label = "regret so far (optimal runs)", .from_zero = true}});
    /* Batch sizes and limits of the job are the ticks, since no other values occur. */
    scene->batch = picture_panel(
        scene->picture,
        &(struct chart_panel){.title = picture_text(scene->picture, "%.80s on %.40s: choices with seed %u",
                                                    job->job.name, job->gpu, scene->plan->seeds[0]),
                              .height = 130,
                              .x = x,
                              .y = {.label = "batch size",
                                    .logarithmic = true,
                                    .ticks = sizes,
                                    .tick_count = spec->batch_count}});
    scene->limit = picture_panel(
        scene->picture,
        &(struct chart_panel){.height = 90,
                              .x = x,
                              .y = {.label = "power limit (W)",
                                    .ticks = spec->batches[spec->default_batch].limits_w,
                                    .tick_count = spec->batches[spec->default_batch].limit_count}});
    return add_policies(scene, out_error);
}

int sim_plot_commit(const struct campaign_plan *plan, const struct campaign *campaign,
                    struct atomic_file *file, struct fly_error *out_error)
{
    struct picture picture;
    struct buffer text;
    struct scene scene = {.plan = plan, .campaign = campaign, .picture = &picture, .text = &text};
    int code = 0;

    picture_begin(&picture, JOB_MEMORY_MAX);
    buffer_init(&text, DESCRIPTION_MAX);
    buffer_puts(&text, "Regret after the last recurrence, in optimal runs, mean over the seeds:");
    for (; scene.workload < plan->workload_count && code == 0; scene.workload++) {
        buffer_printf(&text, "%s %.80s", scene.workload > 0 ? ";" : "",
                      plan->workloads[scene.workload].job.name);
        code = add_workload(&scene, out_error);
    }
    buffer_puts(&text, ".");
    if (code == 0)
        code = picture_commit(&picture, "Cumulative regret and choices over the recurrences", text.data, file,
                              out_error);
    else {
        atomic_file_discard(file);
        picture_drop(&picture);
    }
    buffer_deinit(&text);
    return code;
}

/* ---- flyball sim compare ---- */

static const double bar_width = 0.8; /* of all policies together, in jobs */

/* One panel while its rows are made. */
struct canvas {
    struct picture *picture;
    struct picture_panel *panel;
    const struct compare_run *run;
    const struct compare_set *set;
    size_t drawn; /* policies */
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

static struct picture_row *add_look(struct canvas *canvas, size_t policy, const struct chart_series *look,
                                    enum chart_kind kind)
{
    return add_row(canvas->picture, canvas->panel, look, kind,
                   kind != CHART_BAND ? canvas->run->plan->policies[policy].name : NULL);
}

/* Adds the mean regret of a policy after each sample, and the band up to the p90 of one that was asked for.
 */
static int add_course(struct canvas *canvas, size_t policy, const struct chart_series *look,
                      struct fly_error *out_error)
{
    const struct campaign_plan *plan = canvas->run->plan;
    struct picture_row *band = add_look(canvas, policy, look, CHART_BAND);
    struct picture_row *line = add_look(canvas, policy, look, CHART_LINE);

    for (size_t i = 0; i < plan->horizon_count; i++) {
        const struct standing_question question = ask(canvas, policy, i);
        double at = (double)plan->horizons[i];
        struct standing standing;
        int code = standing_find(plan, canvas->run->campaign, &question, &standing, out_error);

        if (code < 0)
            return code;
        picture_point(canvas->picture, line, at, standing.regret, NULL);
        if (plan->policies[policy].writes_tries)
            picture_between(canvas->picture, band, at, standing.regret,
                            fmax(standing.regret, standing.regret_p90));
    }
    return 0;
}

/* Adds a bar from 1 to the ratio for each job, with the interval as a line. */
static int add_ratios(struct canvas *canvas, size_t policy, const struct chart_series *look,
                      struct fly_error *out_error)
{
    const struct campaign_plan *plan = canvas->run->plan;
    const struct chart_series solid = {.color = look->color};
    struct picture_row *bars = add_look(canvas, policy, &solid, CHART_BAND);
    struct picture_row *intervals = add_look(canvas, policy, &solid, CHART_LINE);
    double width = bar_width / (double)(plan->policy_count - 1);

    for (size_t job = 0; job < canvas->set->count; job++) {
        struct standing_question question = ask(canvas, policy, plan->horizon_count - 1);
        double left = (double)(job + 1) - 0.5 * bar_width + width * (double)canvas->drawn;
        struct standing_ratio ratio;
        int code;

        question.first += job;
        question.count = 1;
        code = standing_ratio_of_job(plan, canvas->run->campaign, &question, &ratio, out_error);
        if (code < 0)
            return code;
        for (int end = 0; end < 3; end++) { /* the third place parts a bar from the next */
            double at = end == 0 ? left : end == 1 ? left + width : NAN;

            picture_between(canvas->picture, bars, at, fmin(1.0, ratio.ratio), fmax(1.0, ratio.ratio));
            picture_point(canvas->picture, intervals, end < 2 ? left + 0.5 * width : NAN,
                          end == 0 ? ratio.low : ratio.high, NULL);
        }
    }
    canvas->drawn++;
    return 0;
}

static int add_worst(struct canvas *canvas, size_t policy, const struct chart_series *look,
                     struct fly_error *out_error)
{
    const struct campaign_plan *plan = canvas->run->plan;
    const struct standing_question question = ask(canvas, policy, plan->horizon_count - 1);
    struct chart_series dotted = *look;
    struct picture_row *row;
    double worst[WORST_RUNS];
    size_t count = 0;
    int code =
        standing_worst_runs(plan, canvas->run->campaign, &question, WORST_RUNS, worst, &count, out_error);

    dotted.shape = SVG_CIRCLE;
    dotted.radius = 2.0;
    row = add_look(canvas, policy, &dotted, CHART_LINE);
    for (size_t i = 0; i < count && code == 0; i++)
        picture_point(canvas->picture, row, (double)(i + 1), worst[i], NULL);
    return code;
}

/* The panels of a set of jobs, in their order. */
static const struct kind {
    const char *title;
    double height;
    struct chart_axis x, y;
    bool has_default, has_rival;
    int (*add)(struct canvas *canvas, size_t policy, const struct chart_series *look,
               struct fly_error *out_error);
} kinds[] = {
    {"regret so far, mean over jobs, and band to the p90 of all runs",
     200.0,
     {.label = "recurrences", .tight = true},
     {.label = "regret (optimal runs)", .from_zero = true},
     true,
     true,
     add_course},
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

static int draw_panel(struct compare_plot *plot, const struct compare_run *run, const struct compare_set *set,
                      const struct kind *kind, struct fly_error *out_error)
{
    const struct chart_panel panel = {
        .title = picture_text(&plot->picture, "%s, %s jobs: %s", run->scenario, set->name, kind->title),
        .height = kind->height,
        .x = kind->x,
        .y = kind->y};
    struct canvas canvas = {
        .picture = &plot->picture, .panel = picture_panel(&plot->picture, &panel), .run = run, .set = set};
    size_t asked = 0;
    int code = 0;

    plot->panel_count++;
    for (size_t policy = 0; policy < run->plan->policy_count && code == 0; policy++) {
        bool ours = run->plan->policies[policy].writes_tries;
        const struct chart_series look = ours ? look_of(asked++) : faint;

        if (ours ? kind->has_rival || policy != run->rival : kind->has_default && policy == run->standard)
            code = kind->add(&canvas, policy, &look, out_error);
    }
    return code;
}

void compare_plot_begin(struct compare_plot *plot)
{
    plot->panel_count = 0;
    picture_begin(&plot->picture, COMPARE_MEMORY_MAX);
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

int compare_plot_commit(struct compare_plot *plot, struct atomic_file *file, struct fly_error *out_error)
{
    return picture_commit(
        &plot->picture, "Policies side by side",
        "For each scenario and set of jobs: the mean regret over the recurrences, the ratio "
        "of each job's regret to that of the policy compared with, and the regret of the "
        "worst runs. The table of flyball sim compare has the figures.",
        file, out_error);
}
