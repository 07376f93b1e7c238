/* SPDX-License-Identifier: Apache-2.0 */
/* The self-test's report as tables and sentences, for people. */
#include "cli/machine/selftest_report.h"

#include <math.h>
#include <stdio.h>

#include "base/buffer.h"
#include "base/error.h"
#include "device/device_meanings.h"

enum { TEXT_MAX = 1 << 20, LABEL_MAX = 32 };

static const char *label(const struct device_info *info, char text[LABEL_MAX])
{
    snprintf(text, LABEL_MAX, "%s %u", device_kind_name(info->kind), info->index);
    return text;
}

static void add_window(struct table *table, const struct device_info *info, enum selftest_stage stage,
                       const struct selftest_window *window)
{
    const char *reason = window->note[0] != '\0' ? window->note : "the device does not offer it";
    char name[LABEL_MAX];

    table_add_text(table, label(info, name));
    table_add_text(table, selftest_stage_name(stage));
    table_add_known(table, window->time_s, reason);
    table_add_known(table, window->counter_j, reason);
    table_add_known(table, window->counter_uncertainty_j, reason);
    table_add_known(table, window->integral_j, "the device does not offer power readings");
    table_add_known(table, 100 * window->integral_excess, "one of the two is not known");
    table_add_known(table, window->mean_power_w, reason);
    table_add_known(table, 100 * window->utilization, "the device does not offer it");
    table_add_known(table, window->temperature_max_c, "the device does not offer it");
}

static int emit_windows(const struct cli_call *call, const struct selftest_report *report,
                        struct fly_error *out_error)
{
    static const struct meaning columns[] = {
        TABLE_SHOWN("device", MEANING_TEXT, 0),   TABLE_SHOWN("stage", MEANING_TEXT, 0),
        TABLE_SHOWN("time (s)", MEANING_REAL, 1), TABLE_SHOWN("counter (J)", MEANING_REAL, 1),
        TABLE_SHOWN("+- (J)", MEANING_REAL, 1),   TABLE_SHOWN("integral (J)", MEANING_REAL, 1),
        TABLE_SHOWN("off (%)", MEANING_REAL, 1),  TABLE_SHOWN("power (W)", MEANING_REAL, 1),
        TABLE_SHOWN("use (%)", MEANING_REAL, 0),  TABLE_SHOWN("heat (C)", MEANING_REAL, 0),
    };
    struct table *table =
        table_new("flyball.selftest.windows/1", columns, sizeof columns / sizeof columns[0]);
    int code;

    for (size_t i = 0; i < report->devices->count; i++) {
        for (int s = 0; s < SELFTEST_STAGE_COUNT; s++) {
            if (report->results[i].windows[s].measured)
                add_window(table, &report->devices->devices[i].info, (enum selftest_stage)s,
                           &report->results[i].windows[s]);
        }
    }
    code = cli_emit_table(call, table, out_error);
    table_free(table);
    return code;
}

static void add_call(struct table *table, const struct device_info *info,
                     const struct selftest_result *result, int quantity)
{
    const struct selftest_latency *latency = &result->latencies[quantity];
    char name[LABEL_MAX];

    table_add_text(table, label(info, name));
    table_add_text(table, quantity_facts[quantity].title);
    table_add_integer(table, (int64_t)latency->seconds.count);
    table_add_known(table, 1e6 * latency->seconds.lowest, "it was not called");
    table_add_known(table, 1e6 * latency->seconds.median, "it was not called");
    table_add_known(table, 1e6 * latency->seconds.p99, "it was not called");
    table_add_known(table, 1e6 * latency->seconds.highest, "it was not called");
}

/* Prints what the device answers; the rest is in the report for programs. */
static int emit_calls(const struct cli_call *call, const struct selftest_report *report,
                      struct fly_error *out_error)
{
    static const struct meaning columns[] = {
        TABLE_SHOWN("device", MEANING_TEXT, 0),      TABLE_SHOWN("reading", MEANING_TEXT, 0),
        TABLE_SHOWN("calls", MEANING_WHOLE, 0),      TABLE_SHOWN("least (us)", MEANING_REAL, 1),
        TABLE_SHOWN("median (us)", MEANING_REAL, 1), TABLE_SHOWN("99 % (us)", MEANING_REAL, 1),
        TABLE_SHOWN("most (us)", MEANING_REAL, 1),
    };
    struct table *table = table_new("flyball.selftest.calls/1", columns, sizeof columns / sizeof columns[0]);
    int code;

    for (size_t i = 0; i < report->devices->count; i++) {
        for (int q = 0; q < QUANTITY_COUNT; q++) {
            if (report->results[i].latencies[q].reading.state == READING_OK)
                add_call(table, &report->devices->devices[i].info, &report->results[i], q);
        }
    }
    code = cli_emit_table(call, table, out_error);
    table_free(table);
    return code;
}

static void add_updates(struct table *table, const struct device_info *info, const char *stage, int place,
                        const struct update_finding *updates)
{
    double assumed_s = place == 0 ? info->sensor.counter_period_s : info->sensor.power_period_s;
    const char *reason = updates->changes == 0 ? "the value never changed, which hides updates"
                                               : "the value changed too seldom to tell";
    char name[LABEL_MAX];

    table_add_text(table, label(info, name));
    table_add_text(table, stage);
    table_add_text(table, quantity_facts[selftest_watched[place]].title);
    table_add_known(table, 1e3 * updates->poll_s, "it was polled once");
    table_add_integer(table, (int64_t)updates->changes);
    table_add_known(table, 1e3 * updates->period_s.lowest, reason);
    table_add_known(table, 1e3 * updates->period_s.median, reason);
    table_add_known(table, 1e3 * updates->period_s.p99, reason);
    table_add_known(table, assumed_s > 0 ? 1e3 * assumed_s : NAN, "the table does not know it");
}

/* Prints how often readings change, for those that the device offers. */
static int emit_updates(const struct cli_call *call, const struct selftest_report *report,
                        struct fly_error *out_error)
{
    static const struct meaning columns[] = {
        TABLE_SHOWN("device", MEANING_TEXT, 0),      TABLE_SHOWN("stage", MEANING_TEXT, 0),
        TABLE_SHOWN("reading", MEANING_TEXT, 0),     TABLE_SHOWN("polled (ms)", MEANING_REAL, 1),
        TABLE_SHOWN("changes", MEANING_WHOLE, 0),    TABLE_SHOWN("least (ms)", MEANING_REAL, 1),
        TABLE_SHOWN("median (ms)", MEANING_REAL, 1), TABLE_SHOWN("99 % (ms)", MEANING_REAL, 1),
        TABLE_SHOWN("table (ms)", MEANING_REAL, 1),
    };
    struct table *table =
        table_new("flyball.selftest.updates/1", columns, sizeof columns / sizeof columns[0]);
    int code;

    for (size_t i = 0; i < report->devices->count; i++) {
        for (int s = 0; s < SELFTEST_STAGE_COUNT * SELFTEST_WATCHED; s++) {
            const struct selftest_window *window = &report->results[i].windows[s / SELFTEST_WATCHED];

            if (window->measured && window->updates[s % SELFTEST_WATCHED].polls > 0)
                add_updates(table, &report->devices->devices[i].info,
                            selftest_stage_name((enum selftest_stage)(s / SELFTEST_WATCHED)),
                            s % SELFTEST_WATCHED, &window->updates[s % SELFTEST_WATCHED]);
        }
    }
    code = cli_emit_table(call, table, out_error);
    table_free(table);
    return code;
}

static void add_level(struct table *table, const struct device_info *info, const struct selftest_level *level)
{
    char name[LABEL_MAX];

    table_add_text(table, label(info, name));
    table_add_known(table, level->limit_w, "the driver does not say what it set");
    table_add_known(table, level->mean_power_w, "the device's energy is not known");
    table_add_known(table, level->uncertainty_w, "the device's energy is not known");
    table_add_known(table, level->settled_s, "the readings did not stay under the limit");
    table_add_known(table, level->clock_mhz, "the device does not offer it");
    table_add_known(table, level->work_per_s / 1e6, "no load of the test's own ran throughout");
    table_add_known(table, 100 * level->capped_share, "the device does not offer it");
}

/* Prints the limits that were tried; no table if there are none. */
static int emit_levels(const struct cli_call *call, const struct selftest_report *report,
                       struct fly_error *out_error)
{
    static const struct meaning columns[] = {
        TABLE_SHOWN("device", MEANING_TEXT, 0),
        TABLE_SHOWN("limit (W)", MEANING_REAL, 0),
        TABLE_SHOWN("power (W)", MEANING_REAL, 1),
        TABLE_SHOWN("+- (W)", MEANING_REAL, 1),
        TABLE_SHOWN("under it after (s)", MEANING_REAL, 3),
        TABLE_SHOWN("clock (MHz)", MEANING_REAL, 0),
        TABLE_SHOWN("work (/us)", MEANING_REAL, 3),
        TABLE_SHOWN("capped (%)", MEANING_REAL, 0),
    };
    struct table *table = table_new("flyball.selftest.limits/1", columns, sizeof columns / sizeof columns[0]);
    int code = 0;

    for (size_t i = 0; i < report->devices->count; i++) {
        const struct selftest_turning *turning = &report->results[i].turning;

        for (int level = 0; level < SELFTEST_LEVELS && turning->tried; level++)
            add_level(table, &report->devices->devices[i].info, &turning->levels[level]);
    }
    if (table_row_count(table) > 0) {
        code = cli_emit_text(call, "\n", out_error);
        if (code == 0)
            code = cli_emit_table(call, table, out_error);
    }
    table_free(table);
    return code;
}

static void put_device(struct buffer *text, const struct selftest_report *report, size_t index)
{
    static const char *const marks[] = {[SELFTEST_AS_EXPECTED] = "as expected",
                                        [SELFTEST_DIFFERS] = "DIFFERS",
                                        [SELFTEST_NOT_KNOWN] = "not known"};
    const struct device_info *info = &report->devices->devices[index].info;
    const struct selftest_load *load = &report->loads[index];
    struct selftest_finding findings[SELFTEST_FINDINGS_MAX];
    size_t count = selftest_findings(info, &report->results[index], findings);
    char name[LABEL_MAX];

    buffer_printf(text, "\n%s: %s%s%s%s\n", label(info, name),
                  info->name[0] != '\0' ? info->name : "(nameless)", info->emulated ? " (emulated)" : "",
                  info->driver[0] != '\0' ? ", driver " : "", info->driver);
    if (info->kind == DEVICE_GPU)
        buffer_printf(text, "  loaded by %s%s%s\n", load->started ? "a CUDA kernel" : "whatever ran",
                      load->text[0] != '\0' ? ": " : "", load->text);
    for (size_t i = 0; i < count; i++)
        buffer_printf(text, "  %-12s %s\n", marks[findings[i].outcome], findings[i].text);
}

int selftest_report_text(const struct cli_call *call, const struct selftest_report *report,
                         struct fly_error *out_error)
{
    struct buffer text;
    static int (*const tables[])(const struct cli_call *call, const struct selftest_report *report,
                                 struct fly_error *out_error) = {emit_calls, emit_updates, emit_windows};
    int code = 0;

    for (size_t i = 0; code == 0 && i < sizeof tables / sizeof tables[0]; i++) {
        code = tables[i](call, report, out_error);
        if (code == 0 && i + 1 < sizeof tables / sizeof tables[0])
            code = cli_emit_text(call, "\n", out_error);
    }
    if (code == 0)
        code = emit_levels(call, report, out_error);
    buffer_init(&text, TEXT_MAX);
    for (size_t i = 0; i < report->devices->count; i++)
        put_device(&text, report, i);
    if (code == 0 && text.error < 0)
        code = error_no_memory(out_error);
    if (code == 0)
        code = cli_emit_text(call, text.data, out_error);
    buffer_deinit(&text);
    return code;
}

static const struct meaning findings_columns[] = {
    DEVICE_KIND,
    DEVICE_INDEX("index"),
    {"check", "check", MEANING_TEXT, 0, NULL, MEANING_FACT, "What was checked."},
    {"outcome", "outcome", MEANING_TEXT, 0, NULL, MEANING_FACT, "What came of it."},
    {"text", "text", MEANING_TEXT, 0, NULL, MEANING_FACT, "The finding, in words."},
};
const struct quantities selftest_quantities = {"a finding of the CSV", QUANTITIES(findings_columns)};

int selftest_report_csv(const struct cli_call *call, const struct selftest_report *report,
                        struct fly_error *out_error)
{
    struct table *table =
        table_new("flyball.selftest.findings/1", findings_columns, selftest_quantities.count);
    int code;

    for (size_t i = 0; i < report->devices->count; i++) {
        const struct device_info *info = &report->devices->devices[i].info;
        struct selftest_finding findings[SELFTEST_FINDINGS_MAX];
        size_t count = selftest_findings(info, &report->results[i], findings);

        for (size_t f = 0; f < count; f++) {
            table_add_text(table, device_kind_name(info->kind));
            table_add_integer(table, info->index);
            table_add_text(table, findings[f].check);
            table_add_text(table, selftest_outcome_word(findings[f].outcome));
            table_add_text(table, findings[f].text);
        }
    }
    code = cli_emit_table(call, table, out_error);
    table_free(table);
    return code;
}
