/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/sim/sim_plot.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/buffer.h"
#include "base/error.h"
#include "cli/kit/chart.h"
#include "sim/statistics.h"

enum { MEMORY_MAX = 1 << 30, TEXT_MAX = 256, DESCRIPTION_MAX = 4096 };
enum { PANELS_EACH = 3, REGRET = 0, BATCH = 1, LIMIT = 2 };

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

/* The picture of a campaign while it is drawn. */
struct drawing {
    const struct campaign_plan *plan;
    const struct campaign *campaign;
    struct arena *arena; /* owns every list */
};

/* The three panels of one workload while they are drawn. */
struct scene {
    struct drawing *drawing;
    size_t workload;
    double *x; /* recurrences done at each sample */
    size_t count;
    struct chart_series *series[PANELS_EACH];
    size_t series_count[PANELS_EACH];
};

/* Computes mean, p10 and p90 of the regret at each sample, over the completed runs. */
static int make_means(const struct scene *scene, size_t policy, double *mean, double *p10, double *p90,
                      struct fly_error *out_error)
{
    const struct campaign_plan *plan = scene->drawing->plan;
    const struct comparison *runs = campaign_cell(plan, scene->drawing->campaign, scene->workload, policy);
    const struct curve *curves = campaign_curves(plan, scene->drawing->campaign, scene->workload, policy);
    double *values = calloc(plan->seed_count, sizeof values[0]);

    if (values == NULL)
        return error_no_memory(out_error);
    for (size_t i = 0; i < scene->count; i++) {
        struct statistics statistics;

        for (size_t s = 0; s < plan->seed_count; s++)
            values[s] = runs[s].ended == 0 && i < curves[s].taken ? curves[s].regret[i] : NAN;
        statistics = statistics_of(values, plan->seed_count);
        mean[i] = statistics.mean;
        p10[i] = statistics.count > 1 ? statistics.p10 : NAN;
        p90[i] = statistics.count > 1 ? statistics.p90 : NAN;
    }
    free(values);
    return 0;
}

static struct chart_series *next_series(struct scene *scene, int panel)
{
    return &scene->series[panel][scene->series_count[panel]++];
}

static int add_regret(struct scene *scene, size_t policy, enum svg_color color, enum svg_dash dash,
                      struct fly_error *out_error)
{
    struct arena *arena = scene->drawing->arena;
    double *mean = arena_alloc(arena, scene->count, sizeof mean[0]);
    double *p10 = arena_alloc(arena, scene->count, sizeof p10[0]);
    double *p90 = arena_alloc(arena, scene->count, sizeof p90[0]);
    int code;

    if (mean == NULL || p10 == NULL || p90 == NULL)
        return error_no_memory(out_error);
    code = make_means(scene, policy, mean, p10, p90, out_error);
    if (code < 0)
        return code;
    *next_series(scene, REGRET) = (struct chart_series){
        .kind = CHART_BAND, .color = color, .x = scene->x, .y = p10, .y_high = p90, .count = scene->count};
    *next_series(scene, REGRET) = (struct chart_series){.name = scene->drawing->plan->policies[policy].name,
                                                        .kind = CHART_LINE,
                                                        .color = color,
                                                        .dash = dash,
                                                        .x = scene->x,
                                                        .y = mean,
                                                        .count = scene->count};
    return 0;
}

/* Adds the knobs of the first seed's run, as far as it went. */
static int add_path(struct scene *scene, size_t policy, enum svg_color color, enum svg_dash dash,
                    struct fly_error *out_error)
{
    const struct campaign_plan *plan = scene->drawing->plan;
    const struct job_spec *spec = &plan->workloads[scene->workload].spec;
    const struct curve *curve = campaign_curves(plan, scene->drawing->campaign, scene->workload, policy);
    double *sizes = arena_alloc(scene->drawing->arena, scene->count, sizeof sizes[0]);
    struct chart_series path = {
        .kind = CHART_STEPS, .color = color, .dash = dash, .x = scene->x, .count = curve->taken};

    if (sizes == NULL)
        return error_no_memory(out_error);
    for (size_t i = 0; i < curve->taken; i++)
        sizes[i] = spec->batches[curve->batch[i]].size;
    path.y = sizes;
    *next_series(scene, BATCH) = path;
    path.y = curve->limit_w;
    *next_series(scene, LIMIT) = path;
    return 0;
}

/* Adds a faint line at the optimum. */
static int add_optimum(struct scene *scene, struct fly_error *out_error)
{
    const struct workload *workload = &scene->drawing->plan->workloads[scene->workload];
    const struct optimum *optimum = &scene->drawing->campaign->optima[scene->workload];
    double *values = arena_alloc(scene->drawing->arena, 6, sizeof values[0]);
    struct chart_series line = {.name = "optimum",
                                .kind = CHART_LINE,
                                .color = SVG_FAINT,
                                .dash = SVG_DOTTED,
                                .x = values,
                                .count = 2};

    if (values == NULL)
        return error_no_memory(out_error);
    if (isinf(optimum->cost_j))
        return 0;
    values[0] = scene->x[0];
    values[1] = scene->x[scene->count - 1];
    values[2] = values[3] = workload->spec.batches[optimum->batch].size;
    values[4] = values[5] = workload->batches[optimum->batch].points[optimum->point].limit_w;
    line.y = values + 2;
    *next_series(scene, BATCH) = line;
    line.y = values + 4;
    line.name = NULL;
    *next_series(scene, LIMIT) = line;
    return 0;
}

static int add_policies(struct scene *scene, struct fly_error *out_error)
{
    const struct campaign_plan *plan = scene->drawing->plan;
    int code = add_optimum(scene, out_error);
    size_t look = 0;

    for (size_t p = 0; p < plan->policy_count && code == 0; p++) {
        bool asked = plan->policies[p].writes_tries;

        if (asked) {
            code = add_regret(scene, p, looks[look].color, looks[look].dash, out_error);
            if (code == 0)
                code = add_path(scene, p, looks[look].color, looks[look].dash, out_error);
            look = (look + 1) % LOOK_COUNT;
        } else if (plan->policies[p].policy == &batch_policy_default)
            code = add_regret(scene, p, SVG_FAINT, SVG_DASHED, out_error);
    }
    return code;
}

/* Uses the job's batch sizes as ticks, since no other values occur. */
static int batch_ticks(struct drawing *drawing, const struct job_spec *spec, struct chart_axis *axis,
                       struct fly_error *out_error)
{
    double *ticks = arena_alloc(drawing->arena, spec->batch_count, sizeof ticks[0]);

    if (ticks == NULL)
        return error_no_memory(out_error);
    for (size_t i = 0; i < spec->batch_count; i++)
        ticks[i] = spec->batches[i].size;
    axis->ticks = ticks;
    axis->tick_count = spec->batch_count;
    return 0;
}

static int make_panels(struct drawing *drawing, size_t workload, struct chart_panel *panels,
                       struct fly_error *out_error)
{
    const struct campaign_plan *plan = drawing->plan;
    const struct workload *job = &plan->workloads[workload];
    const struct curve *curve = campaign_curves(plan, drawing->campaign, workload, 0);
    struct scene scene = {.drawing = drawing, .workload = workload, .count = curve->count};
    /* Beyond the samples taken one by one, positions are in equal ratios. */
    bool logarithmic = drawing->campaign->recurrences[workload] > curve->count;
    char title[TEXT_MAX];
    int code;

    scene.x = arena_alloc(drawing->arena, scene.count, sizeof scene.x[0]);
    for (int i = 0; i < PANELS_EACH; i++)
        scene.series[i] = arena_alloc(drawing->arena, 2 * plan->policy_count + 1, sizeof scene.series[0][0]);
    if (scene.x == NULL || scene.series[REGRET] == NULL || scene.series[BATCH] == NULL ||
        scene.series[LIMIT] == NULL)
        return error_no_memory(out_error);
    for (size_t i = 0; i < scene.count; i++)
        scene.x[i] = (double)curve->positions[i];
    code = add_policies(&scene, out_error);
    for (int i = 0; i < PANELS_EACH; i++)
        panels[i] =
            (struct chart_panel){.height = i == REGRET  ? 220
                                           : i == BATCH ? 130
                                                        : 90,
                                 .x = {.label = "recurrences", .logarithmic = logarithmic, .tight = true},
                                 .series = scene.series[i],
                                 .series_count = scene.series_count[i]};
    panels[REGRET].y = (struct chart_axis){.label = "regret so far (optimal runs)", .from_zero = true};
    panels[BATCH].y = (struct chart_axis){.label = "batch size", .logarithmic = true};
    panels[LIMIT].y = (struct chart_axis){.label = "power limit (W)"};
    snprintf(title, sizeof title, "%.80s on %.40s: regret, mean over seeds and p10 to p90", job->job.name,
             job->gpu);
    panels[REGRET].title = arena_strdup(drawing->arena, title);
    snprintf(title, sizeof title, "%.80s on %.40s: choices with seed %u", job->job.name, job->gpu,
             plan->seeds[0]);
    panels[BATCH].title = arena_strdup(drawing->arena, title);
    panels[LIMIT].y.ticks = job->spec.batches[job->spec.default_batch].limits_w;
    panels[LIMIT].y.tick_count = job->spec.batches[job->spec.default_batch].limit_count;
    return code == 0 ? batch_ticks(drawing, &job->spec, &panels[BATCH].y, out_error) : code;
}

/* Describes the last values in words. */
static void describe(const struct drawing *drawing, const struct chart_panel *panels, struct buffer *text)
{
    buffer_puts(text, "Regret after the last recurrence, in optimal runs, mean over the seeds:");
    for (size_t w = 0; w < drawing->plan->workload_count; w++) {
        const struct chart_panel *panel = &panels[w * PANELS_EACH + REGRET];

        buffer_printf(text, "%s %.80s", w > 0 ? ";" : "", drawing->plan->workloads[w].job.name);
        for (size_t s = 0; s < panel->series_count; s++) {
            const struct chart_series *series = &panel->series[s];
            double last = series->count > 0 ? series->y[series->count - 1] : NAN;

            if (series->name != NULL && isfinite(last))
                buffer_printf(text, ", %s %.2f", series->name, last);
            else if (series->name != NULL)
                buffer_printf(text, ", %s not known", series->name);
        }
    }
    buffer_puts(text, ".");
}

static int compose(void *context, struct arena *arena, struct chart *out_chart, struct fly_error *out_error)
{
    struct drawing *drawing = context;
    size_t workloads = drawing->plan->workload_count;
    struct chart_panel *panels = arena_alloc(arena, workloads * PANELS_EACH, sizeof panels[0]);
    struct buffer description;
    int code = panels == NULL ? error_no_memory(out_error) : 0;

    drawing->arena = arena;
    for (size_t w = 0; w < workloads && code == 0; w++)
        code = make_panels(drawing, w, &panels[w * PANELS_EACH], out_error);
    if (code < 0)
        return code;
    buffer_init(&description, DESCRIPTION_MAX);
    describe(drawing, panels, &description);
    *out_chart = (struct chart){.title = "Cumulative regret and choices over the recurrences",
                                .description = arena_strdup(arena, description.data),
                                .panels = panels,
                                .panel_count = workloads * PANELS_EACH};
    buffer_deinit(&description);
    return out_chart->description != NULL ? 0 : error_no_memory(out_error);
}

int sim_plot_commit(const struct campaign_plan *plan, const struct campaign *campaign,
                    struct atomic_file *file, struct fly_error *out_error)
{
    struct drawing drawing = {.plan = plan, .campaign = campaign};

    return chart_compose_commit(compose, &drawing, MEMORY_MAX, file, out_error);
}
