/* SPDX-License-Identifier: Apache-2.0 */
/* What `flyball run --tune` tried and chose, for programs: the member "tune" of the report. */
#include <math.h>

#include "cli/run/run_tune.h"
#include "shapes/shape_told.h"

static const double w_per_mw = 1e-3;

static const char *const bound_names[] = {
    [FLY_TUNER_BOUND_UNKNOWN] = "unknown", [FLY_TUNER_UNBOUND] = "no", [FLY_TUNER_BOUND] = "yes"};
static const char *const state_names[] = {[FLY_TUNER_SEARCHING] = "searching",
                                          [FLY_TUNER_CHECKING] = "checking",
                                          [FLY_TUNER_SETTLED] = "settled",
                                          [FLY_TUNER_STOPPED] = "stopped"};
static const char *const back_names[KNOB_STATE_COUNT] = {
    [KNOB_DENIED] = "not turned", [KNOB_UNTURNED] = "put back",
    [KNOB_TURNED] = "turned",     [KNOB_FOREIGN] = "left to another program",
    [KNOB_OWED] = "owed",         [KNOB_STUCK] = "stuck"};

static const char unmeasured[] = "it was not measured", no_choice[] = "no setting was chosen";
static const char not_begun[] = "tuning did not begin";
static const char no_search[] = "no search has ended, or its energy is not known";

/* Of limit, ceiling and profile, here and below, what is not turned is left out. */
struct told_point {
    double ceiling_mhz, limit_w, enforced_w;
    char profile[WORKLOAD_SETTING_MAX];
    bool has_profile;
    const char *mark, *bound;
    double power_w, step_time_s, step_time_standard_error_s, step_energy_j, step_energy_uncertainty_j;
    const char *no_uncertainty; /* why it is not known */
};

static const struct shape_field point_rows[] = {
    {SHAPE_AT(told_point, ceiling_mhz), TOLD_NUMBER, .need = SHAPE_SPARING},
    {SHAPE_AT(told_point, limit_w), TOLD_NUMBER, .need = SHAPE_SPARING},
    {SHAPE_AT(told_point, enforced_w), TOLD_NUMBER, .need = SHAPE_SPARING},
    {SHAPE_AT(told_point, profile), TOLD_CHARS(told_point, profile), SHAPE_IF(told_point, has_profile)},
    {SHAPE_AT(told_point, mark), TOLD_ANY_TEXT},
    {SHAPE_AT(told_point, bound), TOLD_ANY_TEXT},
    {SHAPE_AT(told_point, power_w), TOLD_NUMBER, TOLD_ELSE(unmeasured)},
    {SHAPE_AT(told_point, step_time_s), TOLD_NUMBER, TOLD_ELSE(unmeasured)},
    {SHAPE_AT(told_point, step_time_standard_error_s), TOLD_NUMBER, TOLD_ELSE(unmeasured)},
    {SHAPE_AT(told_point, step_energy_j), TOLD_NUMBER, TOLD_ELSE(unmeasured)},
    {SHAPE_AT(told_point, step_energy_uncertainty_j), TOLD_NUMBER, TOLD_ELSE_AT(told_point, no_uncertainty)},
};
static const struct shape point_shape = {SHAPE_OF(told_point, point_rows)};

static struct told_point told_point(const struct fly_tuner_point *point)
{
    bool valid = point->mark == FLY_TUNER_VALID;
    double power_w = valid ? point->power_w : NAN, time_s = valid ? point->time_s : NAN;

    return (struct told_point){
        .ceiling_mhz = point->ceiling_mhz,
        .limit_w = point->limit_w,
        .mark = fly_tuner_mark_name(point->mark),
        .bound = bound_names[point->bound],
        .power_w = power_w,
        .step_time_s = time_s,
        .step_time_standard_error_s = time_s * point->time_error,
        .step_energy_j = power_w * time_s,
        .step_energy_uncertainty_j = power_w * time_s * point->energy_error,
        .no_uncertainty = valid ? "the meter does not say" : unmeasured,
    };
}

struct told_gpu {
    uint32_t index;
    enum knob_state end;
    double limit_before_w;
};

static const struct shape_field gpu_rows[] = {
    {SHAPE_AT(told_gpu, index), TOLD_U32},
    {SHAPE_AT(told_gpu, end), SHAPE_IS_WORD(back_names, KNOB_STATE_COUNT)},
    {SHAPE_AT(told_gpu, limit_before_w), TOLD_NUMBER, TOLD_ELSE("the driver does not say")},
};
static const struct shape gpu_shape = {SHAPE_OF(told_gpu, gpu_rows)};

static struct told_gpu told_gpu(const struct device *gpu, const struct knob_report *report)
{
    return (struct told_gpu){gpu->info.index, report->state,
                             report->previous_mw > 0 ? (double)report->previous_mw * w_per_mw : NAN};
}

static const struct shape_field search_rows[] = {
    {SHAPE_AT_AS("steps", fly_tuner_report, search_steps), TOLD_U64},
    {SHAPE_AT_AS("time_s", fly_tuner_report, search_time_s), TOLD_NUMBER, TOLD_ELSE(no_search)},
    {SHAPE_AT_AS("energy_j", fly_tuner_report, search_energy_j), TOLD_NUMBER, TOLD_ELSE(no_search)},
    {SHAPE_AT(fly_tuner_report, extra_time_s), TOLD_NUMBER, TOLD_ELSE(no_search)},
    {SHAPE_AT(fly_tuner_report, extra_energy_j), TOLD_NUMBER, TOLD_ELSE(no_search)},
};
static const struct shape search_shape = {SHAPE_OF(fly_tuner_report, search_rows)};

struct told_tune {
    const char *state, *off, *reason, *reason_text, *objective;
    double eta, max_slowdown;
    uint64_t steps, malformed_lines;
    char hook[STEP_HOOK_SENTENCE_MAX];
    const char *knob, *knob_note;
    bool of_clock, of_power, of_profile;
    char start_profile[WORKLOAD_SETTING_MAX], chosen_profile[WORKLOAD_SETTING_MAX];
    double start_ceiling_mhz, chosen_ceiling_mhz, start_limit_w, chosen_limit_w;
    double promised_slowdown, measured_slowdown;
    const char *pace;
    uint64_t pauses;
    double pause_share, idle_share;
    uint32_t searches, backoffs, give_backs;
    int64_t ties; /* below 0: nothing was chosen */
    const struct fly_tuner_report *search;
    const char *profile;
    struct told_point points[FLY_POWER_SEARCH_LIMITS_MAX];
    struct told_gpu gpus[DEVICES_MAX];
    size_t point_count, gpu_count;
};

static const struct shape_field tune_rows[] = {
    {SHAPE_AT(told_tune, state), TOLD_ANY_TEXT},
    {SHAPE_AT(told_tune, off), TOLD_TEXT},
    {SHAPE_AT(told_tune, reason), TOLD_TEXT},
    {SHAPE_AT(told_tune, reason_text), TOLD_TEXT},
    {SHAPE_AT(told_tune, objective), TOLD_ANY_TEXT},
    {SHAPE_AT(told_tune, eta), TOLD_NUMBER},
    {SHAPE_AT(told_tune, max_slowdown), TOLD_NUMBER, TOLD_ELSE("there is no bound")},
    {SHAPE_AT(told_tune, steps), TOLD_U64},
    {SHAPE_AT(told_tune, malformed_lines), TOLD_U64},
    {SHAPE_AT(told_tune, hook), TOLD_CHARS(told_tune, hook)},
    {SHAPE_AT(told_tune, knob), TOLD_ANY_TEXT},
    {SHAPE_AT(told_tune, knob_note), TOLD_TEXT},
    {SHAPE_AT(told_tune, start_ceiling_mhz), TOLD_NUMBER, TOLD_ELSE(not_begun),
     SHAPE_IF(told_tune, of_clock)},
    {SHAPE_AT(told_tune, chosen_ceiling_mhz), TOLD_NUMBER, TOLD_ELSE(no_choice),
     SHAPE_IF(told_tune, of_clock)},
    {SHAPE_AT(told_tune, start_limit_w), TOLD_NUMBER, TOLD_ELSE(not_begun), SHAPE_IF(told_tune, of_power)},
    {SHAPE_AT(told_tune, chosen_limit_w), TOLD_NUMBER, TOLD_ELSE(no_choice), SHAPE_IF(told_tune, of_power)},
    {SHAPE_AT(told_tune, start_profile), TOLD_CHARS(told_tune, start_profile), TOLD_ELSE(not_begun),
     SHAPE_IF(told_tune, of_profile)},
    {SHAPE_AT(told_tune, chosen_profile), TOLD_CHARS(told_tune, chosen_profile), TOLD_ELSE(no_choice),
     SHAPE_IF(told_tune, of_profile)},
    {SHAPE_AT(told_tune, promised_slowdown), TOLD_NUMBER, TOLD_ELSE(no_choice)},
    {SHAPE_AT(told_tune, measured_slowdown), TOLD_NUMBER, TOLD_ELSE("the chosen limit was not checked")},
    {SHAPE_AT(told_tune, pace), TOLD_TEXT},
    {SHAPE_AT(told_tune, pauses), TOLD_U64},
    {SHAPE_AT(told_tune, pause_share), TOLD_NUMBER, TOLD_ELSE(not_begun)},
    {SHAPE_AT(told_tune, idle_share), TOLD_NUMBER, TOLD_ELSE("the driver does not say")},
    {SHAPE_AT(told_tune, searches), TOLD_U32},
    {SHAPE_AT(told_tune, ties), TOLD_I64, TOLD_ELSE(no_choice)},
    {SHAPE_AT(told_tune, backoffs), TOLD_U32},
    {SHAPE_AT(told_tune, give_backs), TOLD_U32},
    {SHAPE_AT(told_tune, search), TOLD_POINTED(&search_shape)},
    {SHAPE_AT(told_tune, profile), TOLD_TEXT},
    {SHAPE_AT(told_tune, points), SHAPE_IS_STRUCTS_HERE(&point_shape, told_tune, points, point_count)},
    {SHAPE_AT(told_tune, gpus), SHAPE_IS_STRUCTS_HERE(&gpu_shape, told_tune, gpus, gpu_count)},
};
static const struct shape tune_shape = {SHAPE_OF(told_tune, tune_rows)};

json_t *run_tune_json(const struct run_tune *tune)
{
    const struct fly_tuner_report *report = &tune->report; /* zero unless reported */
    const struct fly_tuner_point *chosen = run_tune_chosen(tune);
    enum fly_tuner_knob knob = run_tune_knob(tune);
    struct told_tune told = {
        .state = !tune->reported || tune->off[0] != '\0' ? "off" : state_names[report->state],
        .off = tune->off,
        .reason = tune->reported ? fly_tuner_reason_name(report->reason) : NULL,
        .reason_text = report->text,
        .objective = run_tune_objective_name(tune->objective.kind),
        .eta = tune->objective.eta,
        .max_slowdown = tune->objective.max_slowdown,
        .steps = tune->lines.events[STEP_BEGIN],
        .malformed_lines = tune->lines.events[STEP_MALFORMED],
        .knob = fly_tuner_knob_name(knob),
        .knob_note = tune->report.knob_note,
        .of_clock = knob == FLY_TUNER_CLOCK || knob == FLY_TUNER_BOTH,
        .of_power = knob != FLY_TUNER_CLOCK && knob != FLY_TUNER_PROFILE,
        .of_profile = knob == FLY_TUNER_PROFILE,
        .start_ceiling_mhz = tune->reported ? report->start_ceiling_mhz : NAN,
        .chosen_ceiling_mhz = chosen != NULL ? chosen->ceiling_mhz : NAN,
        .start_limit_w = tune->reported ? report->start_limit_w : NAN,
        .chosen_limit_w = chosen != NULL ? chosen->limit_w : NAN,
        .promised_slowdown = run_tune_promised(tune, chosen),
        .measured_slowdown = chosen != NULL && report->slowdown > 0 ? report->slowdown : NAN,
        .pace = tune->reported ? fly_tuner_pace_name(report->pace) : NULL,
        .pauses = report->pauses,
        .pause_share = tune->reported ? report->pause_share : NAN,
        .idle_share = tune->reported ? report->idle_share : NAN,
        .searches = report->searches,
        .backoffs = report->backoffs,
        .give_backs = report->give_backs,
        .ties = chosen != NULL ? (int64_t)report->ties : -1,
        .search = report,
        .profile = report->profile,
        .point_count = tune->point_count,
        .gpu_count = tune->knob_opened ? tune->gpu_count : 0,
    };

    step_hook_sentence(&tune->lines.hook, told.steps, told.hook);
    if (tune->reported)
        workload_setting_text(workload_setting(report->start_workload_profile), told.start_profile);
    if (chosen != NULL)
        workload_setting_text(workload_setting(report->workload_profile), told.chosen_profile);
    for (size_t i = 0; i < told.point_count; i++) {
        told.points[i] = told_point(&tune->points[i]);
        told.points[i].enforced_w = tune->enforced_w[i];
        told.points[i].has_profile = told.of_profile;
        workload_setting_text(workload_setting(tune->profiles[i]), told.points[i].profile);
    }
    for (size_t i = 0; i < told.gpu_count; i++)
        told.gpus[i] = told_gpu(tune->gpus[i], &tune->knob_reports[i]);
    return shape_tell(&tune_shape, &told);
}
