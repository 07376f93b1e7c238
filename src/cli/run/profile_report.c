/* SPDX-License-Identifier: Apache-2.0 */
/* A profile as text and as rows. */
#include <math.h>
#include <stdio.h>

#include "base/buffer.h"
#include "base/error.h"
#include "cli/kit/amount.h"
#include "cli/run/profile_result.h"
#include "shapes/shape_told.h"
#include "shapes/table.h"

/* Why a change is not known. */
#define PROFILE_NO_HIGHEST "the highest limit has no valid point"

static const double percent = 100, normal_95 = 1.96;

static double step_energy_j(const struct fly_tuner_point *point)
{
    return point->power_w * point->time_s;
}

/* Changes of a step's time and energy against the highest limit, in percent; NAN if that has no valid point.
 */
static double profile_time_change(const struct profile_result *result, const struct fly_tuner_point *point)
{
    return result->highest == NULL ? NAN : (point->time_s / result->highest->time_s - 1) * percent;
}

static double profile_energy_change(const struct profile_result *result, const struct fly_tuner_point *point)
{
    if (result->highest == NULL)
        return NAN;
    return (step_energy_j(point) / step_energy_j(result->highest) - 1) * percent;
}

/*
 * Return the half widths of the changes' 95 % intervals, from both points'; 0 for the highest
 * limit against itself.
 */
static double profile_time_change_error(const struct profile_result *result,
                                        const struct fly_tuner_point *point)
{
    if (result->highest == NULL || point == result->highest)
        return result->highest == NULL ? NAN : 0;
    return normal_95 * percent * point->time_s / result->highest->time_s *
           hypot(point->time_error, result->highest->time_error);
}

static double profile_energy_change_error(const struct profile_result *result,
                                          const struct fly_tuner_point *point)
{
    if (result->highest == NULL || point == result->highest)
        return result->highest == NULL ? NAN : 0;
    return percent * step_energy_j(point) / step_energy_j(result->highest) *
           hypot(point->energy_error, result->highest->energy_error);
}

struct told_choice {
    const char *name;
    double max_slowdown, limit_w, tied_limit_w, ceiling_mhz, tied_ceiling_mhz;
    double time_change_percent, time_change_uncertainty_percent;
    double energy_change_uncertainty_percent, energy_change_percent;
    const char *no_choice; /* why there is none */
};

#define CHOICE(member) SHAPE_AT(told_choice, member), TOLD_NUMBER
#define OF_CHOSEN(member) CHOICE(member), TOLD_ELSE_AT(told_choice, no_choice)

static const struct shape_field choice_rows[] = {
    {SHAPE_AT(told_choice, name), TOLD_ANY_TEXT},
    {CHOICE(max_slowdown), TOLD_ELSE("there is no bound")},
    {OF_CHOSEN(limit_w)},
    {CHOICE(tied_limit_w), TOLD_ELSE("no limit ties with the highest")},
    {CHOICE(ceiling_mhz), .need = SHAPE_SPARING},
    {CHOICE(tied_ceiling_mhz), .need = SHAPE_SPARING},
    {OF_CHOSEN(time_change_percent)},
    {OF_CHOSEN(time_change_uncertainty_percent)},
    {OF_CHOSEN(energy_change_uncertainty_percent)},
    {OF_CHOSEN(energy_change_percent)},
};

static const struct shape choice_shape = {SHAPE_OF(told_choice, choice_rows)};

static struct told_choice told_choice(const struct profile_result *result,
                                      const struct profile_choice *choice)
{
    const struct fly_tuner_point *point = choice->point;

    return (struct told_choice){
        .name = choice->name,
        .max_slowdown = choice->objective.max_slowdown,
        .limit_w = point != NULL ? point->limit_w : NAN,
        .tied_limit_w = choice->tied != NULL ? choice->tied->limit_w : NAN,
        .ceiling_mhz = point != NULL ? point->ceiling_mhz : NAN,
        .tied_ceiling_mhz = choice->tied != NULL ? choice->tied->ceiling_mhz : NAN,
        .time_change_percent = point != NULL ? profile_time_change(result, point) : NAN,
        .time_change_uncertainty_percent = point != NULL ? profile_time_change_error(result, point) : NAN,
        .energy_change_uncertainty_percent = point != NULL ? profile_energy_change_error(result, point) : NAN,
        .energy_change_percent = point != NULL ? profile_energy_change(result, point) : NAN,
        .no_choice = point != NULL        ? "the clock alone was turned"
                     : result->valid == 0 ? "no limit has a valid point"
                     : choice->tied != NULL
                         ? "no limit differs from the highest by more than both are uncertain"
                         : PROFILE_NO_HIGHEST,
    };
}

struct told_choices {
    struct told_choice of[PROFILE_SELECTOR_COUNT];
};

#define CHOICE_BY(title, selector) \
    SHAPE_AT_AS(title, told_choices, of[selector]), SHAPE_IS_STRUCT(&choice_shape)

static const struct shape_field choices_rows[] = {
    {CHOICE_BY("energy", PROFILE_LEAST_ENERGY)},
    {CHOICE_BY("time", PROFILE_LEAST_TIME)},
    {CHOICE_BY("cost", PROFILE_LEAST_COST)},
    {CHOICE_BY("energy_within", PROFILE_ENERGY_WITHIN)},
    {CHOICE_BY("cost_within", PROFILE_COST_WITHIN)},
    {CHOICE_BY("lowest_limit_within", PROFILE_LOWEST_LIMIT_WITHIN)},
};

static const struct shape choices_shape = {SHAPE_OF(told_choices, choices_rows)};

static const struct shape_field info_rows[] = {
    {SHAPE_AT(device_info, index), TOLD_U32},
    {SHAPE_AT(device_info, name), TOLD_ANY_CHARS(device_info, name)},
    {SHAPE_AT(device_info, uuid), TOLD_ANY_CHARS(device_info, uuid)},
    {SHAPE_AT(device_info, driver), TOLD_ANY_CHARS(device_info, driver)},
    {SHAPE_AT(device_info, emulated), TOLD_BOOL},
};

static const struct shape info_shape = {SHAPE_OF(device_info, info_rows)};

struct told_gpu {
    const struct device_info *info;
};

static const struct shape_field gpu_rows[] = {{SHAPE_AT(told_gpu, info), TOLD_MERGED(&info_shape)}};
static const struct shape gpu_shape = {SHAPE_OF(told_gpu, gpu_rows)};

struct told_cost {
    uint64_t steps;
    double time_s, energy_j;
};

static const char not_complete[] = "the profile is not complete";

static const struct shape_field cost_rows[] = {
    {SHAPE_AT(told_cost, steps), TOLD_U64},
    {SHAPE_AT(told_cost, time_s), TOLD_NUMBER, TOLD_ELSE(not_complete)},
    {SHAPE_AT(told_cost, energy_j), TOLD_NUMBER, TOLD_ELSE(not_complete)},
};

static const struct shape cost_shape = {SHAPE_OF(told_cost, cost_rows)};

/* What stands beside the points. */
struct told_profile {
    bool complete;
    const char *not_complete_because, *job; /* NULL: there is none */
    struct told_gpu gpus[DEVICES_MAX];
    size_t gpu_count;
    uint64_t batch_size;
    const char *knob, *knob_note;
    size_t limits, limits_valid;
    double start_limit_w, eta, max_power_w;
    struct told_choices optimum;
    struct told_cost cost;
};

static const struct shape_field profile_rows[] = {
    {SHAPE_AT(told_profile, complete), TOLD_BOOL},
    {SHAPE_AT(told_profile, not_complete_because), TOLD_TEXT},
    {SHAPE_AT(told_profile, gpus), SHAPE_IS_STRUCTS_HERE(&gpu_shape, told_profile, gpus, gpu_count)},
    {SHAPE_AT(told_profile, job), TOLD_ANY_TEXT, .null = SHAPE_OR_NULL},
    {SHAPE_AT(told_profile, batch_size), TOLD_U64, .null = SHAPE_ZERO},
    {SHAPE_AT(told_profile, knob), TOLD_ANY_TEXT},
    {SHAPE_AT(told_profile, knob_note), TOLD_TEXT},
    {SHAPE_AT(told_profile, limits), TOLD_SIZE},
    {SHAPE_AT(told_profile, limits_valid), TOLD_SIZE},
    {SHAPE_AT(told_profile, start_limit_w), TOLD_NUMBER, TOLD_ELSE("no limit was turned")},
    {SHAPE_AT(told_profile, eta), TOLD_NUMBER},
    {SHAPE_AT(told_profile, max_power_w), TOLD_NUMBER},
    {SHAPE_AT(told_profile, optimum), SHAPE_IS_STRUCT(&choices_shape)},
    {SHAPE_AT(told_profile, cost), SHAPE_IS_STRUCT(&cost_shape)},
};

static const struct shape profile_shape = {SHAPE_OF(told_profile, profile_rows)};

/* Adds the members that "flyball.profile/3" has beside the points. */
static void profile_members_add(struct table *table, const struct profile_result *result)
{
    const struct run_tune *tune = result->tune;
    const struct fly_tuner_report *report = &tune->report;
    struct told_profile told = {
        .complete = result->complete,
        .not_complete_because = result->why,
        .gpu_count = tune->gpu_count,
        .job = tune->job_name,
        .batch_size = tune->batch_size,
        .knob = fly_tuner_knob_name(run_tune_knob(tune)),
        .knob_note = report->knob_note,
        .limits = tune->point_count,
        .limits_valid = result->valid,
        .start_limit_w = tune->reported ? report->start_limit_w : NAN,
        .eta = tune->objective.eta,
        .max_power_w = result->max_power_w > 0 ? result->max_power_w : NAN,
        .cost = {report->search_steps, result->complete ? report->search_time_s : NAN,
                 result->complete ? report->search_energy_j : NAN},
    };

    for (size_t i = 0; i < tune->gpu_count; i++)
        told.gpus[i].info = &tune->gpus[i]->info;
    for (int i = 0; i < PROFILE_SELECTOR_COUNT; i++)
        told.optimum.of[i] = told_choice(result, &result->choices[i]);
    table_members(table, &profile_shape, &told);
}

enum { TEXT_MAX = 1 << 18, WORD_MAX = 128 };

static const double ms_per_s = 1e3;
static const char schema[] = "flyball.profile/3";

static const char *const bound_names[] = {
    [FLY_TUNER_BOUND_UNKNOWN] = "unknown", [FLY_TUNER_UNBOUND] = "no", [FLY_TUNER_BOUND] = "yes"};

/* Returns a value of a valid point; NAN if it is not known. */
static double power_w(const struct profile_result *result, const struct fly_tuner_point *point)
{
    (void)result;
    return point->power_w;
}

static double time_s(const struct profile_result *result, const struct fly_tuner_point *point)
{
    (void)result;
    return point->time_s;
}

static double time_ms(const struct profile_result *result, const struct fly_tuner_point *point)
{
    (void)result;
    return point->time_s * ms_per_s;
}

static double time_error_s(const struct profile_result *result, const struct fly_tuner_point *point)
{
    (void)result;
    return point->time_s * point->time_error;
}

static double energy_j(const struct profile_result *result, const struct fly_tuner_point *point)
{
    (void)result;
    return point->power_w * point->time_s;
}

static double energy_error_j(const struct profile_result *result, const struct fly_tuner_point *point)
{
    return energy_j(result, point) * point->energy_error;
}

static double capped_share(const struct profile_result *result, const struct fly_tuner_point *point)
{
    (void)result;
    return point->capped_share;
}

static double capped_percent(const struct profile_result *result, const struct fly_tuner_point *point)
{
    (void)result;
    return point->capped_share * percent;
}

/* The forms of output in which a column appears. */
enum part { PART_BOTH, PART_PEOPLE, PART_PROGRAMS };

struct field {
    struct meaning column;
    enum part part;
    double (*value)(const struct profile_result *result, const struct fly_tuner_point *point);
    const char *missing; /* why a valid point has none */
};

static const char no_highest[] = PROFILE_NO_HIGHEST, no_reason[] = "it was not measured";

/* The columns at both ends. */
static const struct meaning ends[] = {
    {"limit_w", "limit (W)", MEANING_REAL, 0, "W", MEANING_GAUGE, "Power limit of each GPU."},
    {"enforced_w", "enforced (W)", MEANING_REAL, 0, "W", MEANING_GAUGE,
     "The least power limit that a board enforced meanwhile, which may be lower."},
    {"ceiling_mhz", "ceiling (MHz)", MEANING_REAL, 0, "MHz", MEANING_GAUGE,
     "Ceiling on the clock of each GPU; the highest means none."},
    {"mark", "", MEANING_TEXT, 0, NULL, MEANING_FACT, "What became of the limit's measurement."},
    {"bound", "bound", MEANING_TEXT, 0, NULL, MEANING_FACT,
     "Whether the limit held the GPUs down: 'yes', 'no' or 'unknown'."},
};

enum { END_LIMIT, END_ENFORCED, END_CEILING, END_MARK, END_BOUND, END_COUNT };

const struct quantities profile_ends_quantities = {"a power limit", QUANTITIES(ends)};

/* The columns between the limit and its word. */
static const struct field fields[] = {
    {{"power_w", "power (W)", MEANING_REAL, 1, "W", MEANING_GAUGE, "Mean power of all GPUs at this limit."},
     PART_BOTH,
     power_w,
     no_reason},
    {{"step_time_s", "", MEANING_REAL, 0, "s", MEANING_GAUGE, "Time of a step."},
     PART_PROGRAMS,
     time_s,
     no_reason},
    {TABLE_SHOWN("step (ms)", MEANING_REAL, 3), PART_PEOPLE, time_ms, no_reason},
    {{"step_time_standard_error_s", "", MEANING_REAL, 0, "s", MEANING_GAUGE, "Standard error of that time."},
     PART_PROGRAMS,
     time_error_s,
     no_reason},
    {{"step_energy_j", "energy (J)", MEANING_REAL, 3, "J", MEANING_GAUGE, "Energy of a step."},
     PART_BOTH,
     energy_j,
     no_reason},
    {{"step_energy_uncertainty_j", "+- (J)", MEANING_REAL, 3, "J", MEANING_GAUGE,
      "Half width of the 95 % interval of that energy."},
     PART_BOTH,
     energy_error_j,
     "the meter does not say"},
    {{"time_change_percent", "time %", MEANING_REAL, 1, "%", MEANING_GAUGE,
      "Change of the time against the highest limit."},
     PART_BOTH,
     profile_time_change,
     no_highest},
    {{"energy_change_percent", "energy %", MEANING_REAL, 1, "%", MEANING_GAUGE,
      "Change of the energy against the highest limit."},
     PART_BOTH,
     profile_energy_change,
     no_highest},
    {{"capped_share", "", MEANING_REAL, 0, NULL, MEANING_GAUGE,
      "Share of the time for which the limit held the GPU down that it held least, from 0 to 1."},
     PART_PROGRAMS,
     capped_share,
     "the driver does not say"},
    {TABLE_SHOWN("capped %", MEANING_REAL, 0), PART_PEOPLE, capped_percent, "the driver does not say"},
};

const struct quantities profile_quantities = {"a power limit", QUANTITIES_IN(fields, column)};

enum { FIELD_COUNT = sizeof fields / sizeof fields[0], COLUMN_MAX = FIELD_COUNT + END_COUNT };

static bool is_shown(const struct field *field, bool for_people)
{
    return field->part == PART_BOTH || (field->part == PART_PEOPLE) == for_people;
}

/* A profile of one knob has the column of that one. */
static bool has_limits(const struct profile_result *result)
{
    return result->of_power || !result->of_clock;
}

static size_t make_columns(const struct profile_result *result, bool for_people, struct meaning *columns)
{
    size_t count = 0;

    if (has_limits(result)) {
        columns[count++] = ends[END_LIMIT];
        columns[count++] = ends[END_ENFORCED];
    }
    if (result->of_clock)
        columns[count++] = ends[END_CEILING];
    for (int i = 0; i < FIELD_COUNT; i++) {
        if (is_shown(&fields[i], for_people))
            columns[count++] = fields[i].column;
    }
    columns[count++] = ends[END_MARK];
    if (!for_people)
        columns[count++] = ends[END_BOUND];
    return count;
}

/* Returns "" for a valid point that bound: there is nothing to say of it. */
static const char *word_of(const struct fly_tuner_point *point)
{
    if (point->mark != FLY_TUNER_VALID)
        return fly_tuner_mark_name(point->mark);
    return point->bound == FLY_TUNER_UNBOUND ? "it never bound" : "";
}

/* The limit that was asked for, and what the boards made of it. */
static void add_limits(struct table *table, const struct profile_result *result,
                       const struct fly_tuner_point *point, bool for_people)
{
    double enforced_w = result->tune->enforced_w[point - result->tune->points];

    table_add_real(table, point->limit_w);
    if (isfinite(enforced_w))
        table_add_real(table, enforced_w);
    else
        table_add_unavailable(table, for_people ? "-" : NULL,
                              !isnan(point->ceiling_mhz)              ? "it is a ceiling's"
                              : point->mark == FLY_TUNER_NOT_MEASURED ? no_reason
                                                                      : "the driver does not say");
}

static void add_row(struct table *table, const struct profile_result *result,
                    const struct fly_tuner_point *point, bool for_people)
{
    bool valid = point->mark == FLY_TUNER_VALID;
    char reason[WORD_MAX];

    snprintf(reason, sizeof reason, "the limit's mark is '%s'", fly_tuner_mark_name(point->mark));
    if (has_limits(result))
        add_limits(table, result, point, for_people);
    if (result->of_clock && isnan(point->ceiling_mhz))
        table_add_unavailable(table, for_people ? "-" : NULL, "it stood without a ceiling");
    else if (result->of_clock)
        table_add_real(table, point->ceiling_mhz);
    for (int i = 0; i < FIELD_COUNT; i++) {
        double value = valid ? fields[i].value(result, point) : NAN;

        if (!is_shown(&fields[i], for_people))
            continue;
        if (isfinite(value))
            table_add_real(table, value);
        else
            table_add_unavailable(table, for_people ? "-" : NULL, valid ? fields[i].missing : reason);
    }
    table_add_text(table, for_people ? word_of(point) : fly_tuner_mark_name(point->mark));
    if (!for_people)
        table_add_text(table, bound_names[point->bound]);
}

static void put_heading(struct buffer *text, const struct profile_result *result)
{
    const struct run_tune *tune = result->tune;

    buffer_printf(text, "Profile of a step on %zu x %s (GPU ", tune->gpu_count,
                  tune->gpu_count > 0 ? tune->gpus[0]->info.name : "GPU");
    for (size_t i = 0; i < tune->gpu_count; i++)
        buffer_printf(text, "%s%u", i > 0 ? ", " : "", tune->gpus[i]->info.index);
    buffer_printf(text, "): %zu of %zu %ss measured, of at least %u steps each.\n", result->valid,
                  tune->point_count, profile_noun(result), tune->profile_steps);
    if (tune->reported && tune->report.knob_note[0] != '\0')
        buffer_printf(text, "One knob: %s.\n", tune->report.knob_note);
    if (result->why != NULL)
        buffer_printf(text, "Not complete: %s.\n", result->why);
    if (result->why != NULL && tune->reported && tune->report.reason == FLY_TUNER_NO_FIGURE)
        buffer_puts(text, "More --profile-steps make windows longer.\n");
    if (result->highest != NULL)
        buffer_printf(text, "Changes are against the highest %s.\n",
                      result->of_power ? "limit" : profile_noun(result));
    buffer_puts(text, "\n");
}

/* A change within its uncertainty counts as none. */
static void put_change(struct buffer *text, double change, double error, const char *what)
{
    if (fabs(change) < 0.05)
        buffer_printf(text, "the same %s", what);
    else if (fabs(change) <= error)
        buffer_printf(text, "the same %s within %.1f %%", what, error);
    else
        buffer_printf(text, "%.1f %% %s %s", fabs(change), change > 0 ? "more" : "less", what);
}

static void put_choices(struct buffer *text, const struct profile_result *result)
{
    buffer_puts(text, "\n");
    for (int i = 0; i < PROFILE_SELECTOR_COUNT; i++) {
        const struct profile_choice *choice = &result->choices[i];
        char best[PROFILE_SETTING_MAX], highest[PROFILE_SETTING_MAX];

        buffer_printf(text, "%s: ", choice->name);
        if (choice->tied != NULL) {
            buffer_printf(
                text,
                "no choice: the best, %s, differs from the highest, %s, by no more than both are uncertain\n",
                profile_setting(choice->tied, best), profile_setting(result->highest, highest));
            continue;
        }
        if (choice->point == NULL) {
            buffer_printf(text, "not known, since %s\n", no_highest);
            continue;
        }
        buffer_puts(text, profile_setting(choice->point, best));
        if (result->highest != NULL) {
            buffer_puts(text, ", ");
            put_change(text, profile_time_change(result, choice->point),
                       profile_time_change_error(result, choice->point), "time");
            buffer_puts(text, ", ");
            put_change(text, profile_energy_change(result, choice->point),
                       profile_energy_change_error(result, choice->point), "energy");
        }
        buffer_puts(text, "\n");
    }
}

static void put_cost(struct buffer *text, const struct profile_result *result)
{
    const struct fly_tuner_report *report = &result->tune->report;
    char time[AMOUNT_MAX], energy[AMOUNT_MAX];

    if (result->complete)
        buffer_printf(text, "Measuring took %llu steps, %s and %s.\n",
                      (unsigned long long)report->search_steps, amount_time(report->search_time_s, time),
                      amount_energy(report->search_energy_j, NAN, amount_plus_minus(), energy));
}

static int emit_text(const struct cli_call *call, const struct profile_result *result, struct table *table,
                     struct fly_error *out_error)
{
    struct buffer head, tail;
    int code = 0;

    buffer_init(&head, TEXT_MAX);
    buffer_init(&tail, TEXT_MAX);
    put_heading(&head, result);
    if (result->valid > 0)
        put_choices(&tail, result);
    put_cost(&tail, result);
    run_tune_put_back_text(result->tune, "    ", &tail);
    if (head.error < 0 || tail.error < 0)
        code = error_no_memory(out_error);
    if (code == 0)
        code = cli_emit_text(call, head.data, out_error);
    if (code == 0 && result->tried > 0)
        code = cli_emit_table(call, table, out_error);
    if (code == 0 && tail.length > 0)
        code = cli_emit_text(call, tail.data, out_error);
    buffer_deinit(&head);
    buffer_deinit(&tail);
    return code;
}

int profile_report_emit(const struct cli_call *call, const struct profile_result *result,
                        struct fly_error *out_error)
{
    bool for_people = cli_format(call) == TABLE_FORMAT_TABLE;
    struct meaning columns[COLUMN_MAX];
    struct table *table = table_new(schema, columns, make_columns(result, for_people, columns));
    int code;

    for (size_t i = 0; i < result->tune->point_count; i++) {
        const struct fly_tuner_point *point = &result->tune->points[i];

        if (!for_people || point->mark != FLY_TUNER_NOT_MEASURED)
            add_row(table, result, point, for_people);
    }
    if (!for_people)
        profile_members_add(table, result);
    code = for_people ? emit_text(call, result, table, out_error) : cli_emit_table(call, table, out_error);
    table_free(table);
    return code;
}
