/* SPDX-License-Identifier: Apache-2.0 */
/* `flyball carbon plan`: how a training would follow the grid, walked forward on paper. */
#include <math.h>
#include <stdio.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/text/iso_time.h"
#include "cli/carbon/carbon_commands.h"
#include "cli/carbon/carbon_view.h"
#include "cli/carbon/period_table.h"
#include "cli/frame/call.h"
#include "cli/kit/amount.h"
#include "cli/options/carbon_options.h"
#include "cli/options/small_options.h"
#include "cli/views/statement_view.h"
#include "grid/forecast.h"
#include "grid/providers.h"
#include "shapes/text_value.h"
#include "sim/carbon/carbon_course.h"
#include "sim/carbon/profile_source.h"
#include "train/account/carbon_statement.h"

/* ---- what is planned ---- */

/*
 * A plan on paper for `flyball carbon plan`: its options, the course of the plan, and its
 * statement. Large: keep it in static storage.
 */
struct carbon_planning {
    struct profile_source source;
    struct carbon_profile profile;
    const char *sources[CARBON_SIGNALS];        /* NULL: none */
    struct grid_answer answers[CARBON_SIGNALS]; /* owned */
    bool has[CARBON_SIGNALS];
    struct grid_answer seen[CARBON_SIGNALS]; /* as the plan sees them; `published` is owned */
    bool saw[CARBON_SIGNALS];
    struct carbon_course_request request;
    struct carbon_course course; /* owned */
    struct ledger_content ledger;
    struct arena arena;
    struct carbon_statement statement;
    struct progress progress;
};

enum { NS_PER_S = 1000000000, DAY_S = 86400, AHEAD_MOST_S = 366 * DAY_S, MEMORY_MAX = 1 << 30 };

/* The values of a live training. */
static const double least_gain = 0.002, dwell_s = 300.0;
static const double hour_s = 3600.0;

/* Reads the work as a time at the fastest limit. */
static int read_work(const struct cli_call *call, struct carbon_planning *planning,
                     struct fly_error *out_error)
{
    double step_s = INFINITY;

    if (cli_set(call, "work") == cli_set(call, "steps"))
        return cli_usage(call, out_error,
                         "how much there is to do has to be said by one of --work and --steps");
    if (cli_set(call, "work"))
        return carbon_read_duration(call, "work", &planning->request.work_s, out_error);
    for (size_t i = 0; i < planning->source.count; i++)
        step_s = fmin(step_s, planning->source.points[i].time_s);
    planning->request.work_s = (double)cli_integer(call, "steps") * step_s;
    return 0;
}

static int read_deadline(const struct cli_call *call, struct carbon_planning *planning,
                         struct fly_error *out_error)
{
    struct carbon_course_request *request = &planning->request;
    const char *finish = cli_text(call, "finish-by");
    int64_t finish_s;
    int code = carbon_read_duration(call, "deadline", &request->bound_s, out_error);

    if (code < 0)
        return code;
    if (finish != NULL) {
        if (!finish_time_parse(finish, request->start_s, &finish_s))
            return cli_value_error(call, "finish-by", finish,
                                   "a time as 07:30, 2026-11-22T07:30 or 2026-11-22T07:30Z", out_error);
        request->bound_s = (double)(finish_s - request->start_s);
    }
    if (request->bound_s < request->work_s)
        return cli_usage(call, out_error,
                         "%g s of work cannot end within %g s even at the fastest limit; give it more time",
                         request->work_s, request->bound_s);
    return 0;
}

static int read_bound(const struct cli_call *call, struct carbon_planning *planning,
                      struct fly_error *out_error)
{
    struct carbon_course_request *request = &planning->request;
    int given = cli_given(call, "max-slowdown") + cli_set(call, "deadline") + cli_set(call, "finish-by");
    double factor = 1.0;
    int code = 0;

    if (given > 1)
        return cli_usage(call, out_error,
                         "--max-slowdown, --deadline and --finish-by all bound the time; give one of them");
    if (cli_set(call, "deadline") || cli_set(call, "finish-by")) {
        code = read_deadline(call, planning, out_error);
    } else {
        code = slowdown_option_read_finite(call, &factor, out_error);
        request->bound_s = request->work_s * factor;
    }
    if (code == 0 && !(request->bound_s <= AHEAD_MOST_S))
        return cli_usage(call, out_error, "a plan reaches at most 366 days; give it less work or time");
    planning->ledger.head.max_slowdown = fmax(request->bound_s / request->work_s, 1.0);
    return code;
}

static int read_times(const struct cli_call *call, struct carbon_planning *planning,
                      struct fly_error *out_error)
{
    struct carbon_course_request *request = &planning->request;
    int code;

    request->now_s = clock_real.date(clock_real.state).ns / NS_PER_S;
    code = carbon_view_time(call, "from", request->now_s, &request->start_s, out_error);
    if (code == 0 && request->start_s > request->now_s + AHEAD_MOST_S)
        return cli_value_error(call, "from", cli_text(call, "from"), "a time at most 366 days ahead",
                               out_error);
    return code;
}

static int read_signal(const struct cli_call *call, struct carbon_planning *planning, int signal,
                       struct fly_error *out_error)
{
    const struct carbon_course_request *plan = &planning->request;
    int64_t known_s = plan->start_s < plan->now_s ? plan->start_s : plan->now_s;
    struct grid_request request = {.quantity = signal == CARBON_PRICE ? GRID_PRICE : GRID_CARBON,
                                   .from_s = known_s - GRID_FORECAST_DAYS * (int64_t)DAY_S,
                                   .to_s = plan->start_s + (int64_t)ceil(plan->bound_s),
                                   .now_s = plan->now_s,
                                   .cached_only = cli_flag(call, "cached")};
    struct grid_answer *answer = &planning->answers[signal];
    int code;

    if (planning->sources[signal] == NULL)
        return 0;
    if (signal == CARBON_INTENSITY)
        carbon_view_choose(call, &request);
    code = grid_read(planning->sources[signal], &request, answer, out_error);
    if (code < 0)
        return code;
    planning->has[signal] = true;
    planning->request.answers[signal] = answer;
    if (answer->remark[0] != '\0')
        cli_warn(call, "%s", answer->remark);
    if (answer->actual.kind.quantity != request.quantity)
        return cli_usage(call, out_error, "'%s' has no %s", planning->sources[signal],
                         signal == CARBON_PRICE ? "prices" : "carbon intensities");
    return 0;
}

static int read_objective(const struct cli_call *call, struct carbon_planning *planning,
                          struct fly_error *out_error)
{
    struct carbon_objective *objective = &planning->request.objective;
    const char *text = cli_text(call, "objective");
    int code;

    if (text == NULL)
        text = planning->has[CARBON_INTENSITY] ? "carbon" : "money";
    code = carbon_read_objective(call, text, objective, out_error);
    if (code < 0)
        return code;
    if (objective->per_g > 0.0 && !planning->has[CARBON_INTENSITY])
        return cli_usage(call, out_error, "the objective counts carbon, but there is no source of it");
    if (objective->per_money > 0.0 && !planning->has[CARBON_PRICE])
        return cli_usage(call, out_error, "the objective counts money, but there is no --price");
    return 0;
}

/* Reads the options' values and the grid's figures. FLY_EUSAGE, and the errors of reading them. */
static int carbon_planning_read(const struct cli_call *call, struct carbon_planning *planning,
                                struct fly_error *out_error)
{
    int code;

    arena_init(&planning->arena, MEMORY_MAX);
    planning->request.profile = &planning->profile;
    planning->request.plan = (struct carbon_plan_settings){
        .least_gain = least_gain, .dwell_s = dwell_s, .doubt = CARBON_USUAL_DOUBT};
    code = carbon_read_profile(call, &planning->source, &planning->profile,
                               &planning->ledger.head.surroundings, out_error);
    planning->sources[CARBON_INTENSITY] =
        cli_operand_count(call) > 0 ? cli_operand(call, 0) : cli_text(call, "source");
    planning->sources[CARBON_PRICE] = cli_text(call, "price");
    if (code == 0 && planning->sources[CARBON_INTENSITY] == NULL && planning->sources[CARBON_PRICE] == NULL)
        code = cli_usage(call, out_error,
                         "no source of the grid's figures given; name one as gb:national or "
                         "electricity-maps:DE, or set carbon.source");
    if (code == 0)
        code = read_work(call, planning, out_error);
    if (code == 0)
        code = read_times(call, planning, out_error);
    if (code == 0)
        code = read_bound(call, planning, out_error);
    if (code == 0)
        code = carbon_read_pause(call, &planning->request.plan.pause, out_error);
    for (int signal = 0; signal < CARBON_SIGNALS && code == 0; signal++)
        code = read_signal(call, planning, signal, out_error);
    return code == 0 ? read_objective(call, planning, out_error) : code;
}

static void tell(void *context, double done_s)
{
    struct carbon_planning *planning = context;

    progress_add(&planning->progress, (uint64_t)(done_s / hour_s) - planning->progress.done);
    progress_tick(&planning->progress);
}

/* Walks the plan and computes what it takes. */
static int carbon_planning_walk(const struct cli_call *call, struct carbon_planning *planning,
                                struct fly_error *out_error)
{
    struct statement_request request = {
        .ledgers = &planning->ledger, .ledger_count = 1, .yearly_means = {NAN, NAN}};
    struct ledger_content *ledger = &planning->ledger;
    int code;

    cli_progress_begin(call, &planning->progress, "hours of work",
                       (uint64_t)ceil(planning->request.work_s / hour_s));
    planning->request.progress = tell;
    planning->request.progress_context = planning;
    code = carbon_course_walk(&planning->request, &planning->course, out_error);
    progress_end(&planning->progress);
    if (code < 0)
        return code;
    for (int signal = 0; signal < CARBON_SIGNALS && code == 0; signal++) {
        if (!planning->has[signal])
            continue;
        code = carbon_course_answer(&planning->course, &planning->answers[signal], signal,
                                    &planning->seen[signal], out_error);
        planning->saw[signal] = code == 0;
        request.answers[signal] = &planning->seen[signal];
    }
    ledger->head.gpus = (uint32_t)planning->source.gpus;
    ledger->head.start_s = planning->request.start_s;
    ledger->slices = planning->course.slices;
    ledger->slice_count = planning->course.count;
    ledger->points = planning->source.points;
    ledger->point_count = planning->source.count;
    if (code == 0)
        code = carbon_statement_make(&request, &planning->arena, &planning->statement, out_error);
    planning->statement.planned = true;
    return code;
}

static void carbon_planning_free(struct carbon_planning *planning)
{
    for (int signal = 0; signal < CARBON_SIGNALS; signal++) {
        if (planning->saw[signal])
            grid_series_deinit(&planning->seen[signal].published);
        if (planning->has[signal])
            grid_answer_deinit(&planning->answers[signal]);
    }
    carbon_course_deinit(&planning->course);
    arena_deinit(&planning->arena);
}

enum { TEXT_MAX = 1 << 16, TITLE_MAX = 320 };

static const struct cli_option options[] = {
    {.name = "work",
     .type = CLI_TEXT,
     .placeholder = "TIME",
     .help = "Length of the training at the fastest limit, as 96h, 4d or 90min."},
    {.name = "steps",
     .type = CLI_INTEGER,
     .placeholder = "N",
     .minimum = 1,
     .maximum = 9007199254740992.0,
     .help = "In place of --work: its steps, of the length that the profile says."},
    {.name = "finish-by",
     .type = CLI_TEXT,
     .placeholder = "TIME",
     .help = "It ends by then: 07:30, 2026-11-22T07:30 of local time or 2026-11-22T07:30Z; likewise."},
    {.name = "from",
     .type = CLI_TEXT,
     .placeholder = "TIME",
     .help = "It starts then, ISO 8601, UTC unless it says otherwise; now unless set."},
    {.name = "price",
     .type = CLI_TEXT,
     .placeholder = "SOURCE",
     .key = "carbon.price",
     .help = "Where prices of electricity come from, likewise."},
    {.name = "objective",
     .type = CLI_TEXT,
     .placeholder = "WHAT",
     .key = "carbon.objective",
     .help = "What to make small: carbon, money, energy, or their weights in g, money and kWh as "
             "carbon=0.0001,money=1; carbon, or money where there are prices alone, unless set."},
    CARBON_OPTIONS_SURROUNDINGS("carbon.host_power", "carbon.pue"),
    {.name = "svg",
     .type = CLI_TEXT,
     .placeholder = "FILE",
     .help = "Draw intensity, limit, energy and grams over time into this file."},
};

static void put_reasons(const struct carbon_course *course, struct buffer *text)
{
    const char *between = ": ";

    buffer_printf(text, "%u decision%s, %u change%s of the limit", course->decisions,
                  course->decisions == 1 ? "" : "s", course->changes, course->changes == 1 ? "" : "s");
    for (int i = 0; i < CARBON_REASON_COUNT; i++) {
        if (course->reasons[i] == 0)
            continue;
        buffer_printf(text, "%s%u %s", between, course->reasons[i],
                      carbon_reason_text((enum carbon_reason)i));
        between = "; ";
    }
    buffer_puts(text, "\n");
}

static int emit_text(const struct cli_call *call, const struct carbon_planning *planning,
                     struct fly_error *out_error)
{
    const struct carbon_course_request *request = &planning->request;
    char start[ISO_TIME_TEXT_MAX], end[ISO_TIME_TEXT_MAX], work[AMOUNT_MAX], bound[AMOUNT_MAX];
    struct buffer text;
    int code;

    buffer_init(&text, TEXT_MAX);
    buffer_printf(&text, "A plan on paper: %s of work at the fastest limit within %s, from %s to %s\n",
                  amount_time(request->work_s, work), amount_time(request->bound_s, bound),
                  iso_time_format(request->start_s, start),
                  iso_time_format(request->start_s + (int64_t)planning->course.finish_s, end));
    statement_lines(&planning->statement, "  ", &text);
    put_reasons(&planning->course, &text);
    buffer_puts(&text, "\n");
    code = text.error < 0 ? error_no_memory(out_error) : cli_emit_text(call, text.data, out_error);
    buffer_deinit(&text);
    return code;
}

static void add_members(struct table *table, const struct cli_call *call,
                        const struct carbon_planning *planning)
{
    const struct carbon_course_request *request = &planning->request;
    const struct carbon_course *course = &planning->course;
    json_t *reasons = json_object();
    char time[ISO_TIME_TEXT_MAX];

    for (int i = 0; i < CARBON_REASON_COUNT; i++) {
        if (course->reasons[i] > 0)
            json_object_set_new(reasons, carbon_reason_text((enum carbon_reason)i),
                                json_integer(course->reasons[i]));
    }
    table_member(table, "profile", text_value(cli_text(call, "profile")));
    table_member(table, "source",
                 planning->sources[CARBON_INTENSITY] != NULL ? text_value(planning->sources[CARBON_INTENSITY])
                                                             : json_null());
    table_member(table, "price",
                 planning->sources[CARBON_PRICE] != NULL ? text_value(planning->sources[CARBON_PRICE])
                                                         : json_null());
    table_member(table, "from", json_string(iso_time_format(request->start_s, time)));
    table_member(table, "known_until", json_string(iso_time_format(request->now_s, time)));
    table_member(table, "work_s", json_real(request->work_s));
    table_member(table, "bound_s", json_real(request->bound_s));
    table_member(table, "finish_s", json_real(course->finish_s));
    table_member(table, "late", json_boolean(course->late));
    table_member(table, "decisions", json_integer(course->decisions));
    table_member(table, "limit_changes", json_integer(course->changes));
    table_member(table, "reasons", reasons);
    table_member(table, "statement", statement_json(&planning->statement));
}

static int draw(const struct cli_call *call, const struct carbon_planning *planning,
                struct fly_error *out_error)
{
    char title[TITLE_MAX];

    if (!cli_set(call, "svg"))
        return 0;
    snprintf(title, sizeof title, "A plan on paper for %.120s: the grid, the power limit, and what it takes",
             cli_text(call, "profile"));
    return statement_plot(&planning->statement, planning->course.slices, planning->course.count, title,
                          cli_text(call, "svg"), out_error);
}

static int show(const struct cli_call *call, const struct carbon_planning *planning,
                struct fly_error *out_error)
{
    bool for_people = cli_format(call) == TABLE_FORMAT_TABLE;
    struct meaning columns[PERIOD_COLUMNS_MAX];
    struct table *table;
    int code = for_people ? emit_text(call, planning, out_error) : 0;

    if (code < 0)
        return code;
    table = period_table_new("flyball.carbon.plan/2", &planning->statement, for_people, columns);
    if (table != NULL)
        add_members(table, call, planning);
    code = cli_emit_table(call, table, out_error);
    table_free(table);
    return code == 0 ? draw(call, planning, out_error) : code;
}

static int carbon_plan_run(const struct cli_call *call, struct fly_error *out_error)
{
    static struct carbon_planning planning; /* large; the program runs one command */
    int code = carbon_planning_read(call, &planning, out_error);

    if (code == 0)
        code = carbon_planning_walk(call, &planning, out_error);
    if (code == 0)
        code = show(call, &planning, out_error);
    carbon_planning_free(&planning);
    return code;
}

const struct cli_command cmd_carbon_plan = {
    .words = "carbon plan",
    .summary = "show how a training would follow the grid",
    .paragraphs =
        {"Walks the carbon plan forward from now, or from --from, as a training that follows the grid does: "
         "asked at each border of a period, by the same code, with time going by as the profile says. "
         "Shows for each period the grid's figure and what it is based on, the power limit, energy, "
         "grams and money, and compares the whole with the highest limit, the best single limit and the best "
         "mixture of two.",
         "What is to come is a forecast: the published one as far as it reaches, then one made from the past "
         "14 days; the plan will be made anew at each period when better is known. Of a start in the past "
         "nothing is looked at before it was known, and grams are those of the actual figures: the policy "
         "'plan' of 'flyball sim carbon'."},
    .options = options,
    .option_count = sizeof options / sizeof options[0],
    .shared = {&carbon_profile_option, &carbon_bound_options, &carbon_view_options, &carbon_pause_option},
    .operands = "[SOURCE]",
    .operand_maximum = 1,
    .examples = {{"flyball carbon plan gb:national --profile profile.json --work 24h --svg plan.svg",
                  "plan a day's work at 3 % more time, and draw it"},
                 {"flyball carbon plan us_ciso_2022.csv --profile profile.json --work 96h --from 2022-06-01",
                  "see what it would have done"}},
    .outputs = {&period_quantities},
    .run = carbon_plan_run,
};
