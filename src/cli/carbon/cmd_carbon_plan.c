/* SPDX-License-Identifier: Apache-2.0 */
/* `flyball carbon plan`: how a training would follow the grid, walked forward on paper. */
#include <stdio.h>

#include "base/error.h"
#include "base/text/iso_time.h"
#include "cli/carbon/carbon_commands.h"
#include "cli/carbon/carbon_planning.h"
#include "cli/carbon/carbon_view.h"
#include "cli/carbon/period_table.h"
#include "cli/kit/amount.h"
#include "cli/options/carbon_options.h"
#include "cli/views/statement_view.h"
#include "shapes/text_value.h"

enum { TEXT_MAX = 1 << 16, TITLE_MAX = 320 };

static const struct cli_option options[] = {
    CARBON_OPTION_PROFILE,
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
    CARBON_OPTIONS_BOUND,
    {.name = "finish-by",
     .type = CLI_TEXT,
     .placeholder = "TIME",
     .help = "It ends by then: 07:30, 2026-11-22T07:30 of local time or 2026-11-22T07:30Z; likewise."},
    {.name = "from",
     .type = CLI_TEXT,
     .placeholder = "TIME",
     .help = "It starts then, ISO 8601, UTC unless it says otherwise; now unless set."},
    CARBON_OPTIONS,
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
    CARBON_OPTION_PAUSE,
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
    .operands = "[SOURCE]",
    .operand_maximum = 1,
    .examples = {{"flyball carbon plan gb:national --profile profile.json --work 24h --svg plan.svg",
                  "plan a day's work at 3 % more time, and draw it"},
                 {"flyball carbon plan us_ciso_2022.csv --profile profile.json --work 96h --from 2022-06-01",
                  "see what it would have done"}},
    .outputs = {&period_quantities},
    .run = carbon_plan_run,
};
