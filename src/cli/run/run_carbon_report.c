/* SPDX-License-Identifier: Apache-2.0 */
/* The account of a run in its report, in both forms. */
#include <math.h>

#include "cli/run/run_carbon.h"
#include "cli/views/statement_lines.h"
#include "shapes/json_number.h"
#include "shapes/shape_told.h"
#include "shapes/text_value.h"

static const char indent[] = "    ";
static const char *const remark_keys[CARBON_SIGNALS] = {
    [CARBON_INTENSITY] = "intensity_note", [CARBON_PRICE] = "price_note"};

static void put_following(const struct run_carbon *carbon, struct buffer *out)
{
    const struct fly_carbon_report *report = &carbon->report;

    if (!carbon->followed)
        return;
    if (report->size == 0) {
        buffer_printf(out, "%sthe limit did not follow the grid: that never began\n", indent);
        return;
    }
    buffer_printf(out, "%sthe limit: ", indent);
    if (isfinite(report->limit_w))
        buffer_printf(out, "%g W at last, ", report->limit_w);
    buffer_printf(out, "%u decision%s, %u change%s", report->decisions, report->decisions == 1 ? "" : "s",
                  report->changes, report->changes == 1 ? "" : "s");
    if (report->reason[0] != '\0')
        buffer_printf(out, "; %s", report->reason);
    buffer_puts(out, "\n");
    if (report->text[0] != '\0')
        buffer_printf(out, "%s%s\n", indent, report->text);
}

void run_carbon_text(const struct run_carbon *carbon, struct buffer *out)
{
    const char *between = "";

    buffer_puts(out, "  grid: ");
    for (int i = 0; i < CARBON_SIGNALS; i++) {
        if (carbon->sources[i][0] != '\0') {
            buffer_printf(out, "%s%s", between, carbon->sources[i]);
            between = " and ";
        }
    }
    if (carbon->off[0] != '\0') {
        buffer_printf(out, "; no account: %s\n", carbon->off);
        return;
    }
    buffer_puts(out, "\n");
    put_following(carbon, out);
    if (carbon->stated)
        statement_lines(&carbon->view.statement, indent, out);
    else
        buffer_printf(out, "%sno statement: %s\n", indent, carbon->unstated);
    for (int i = 0; carbon->stated && i < CARBON_SIGNALS; i++) {
        if (carbon->view.remarks[i][0] != '\0')
            buffer_printf(out, "%s%s\n", indent, carbon->view.remarks[i]);
    }
    if (carbon->kept.text[0] != '\0')
        buffer_printf(out, "%s%s\n", indent, carbon->kept.text);
    buffer_printf(out, "%saccount: %s; 'flyball carbon report' reads it when more is known\n", indent,
                  carbon->kept.path);
}

static const struct shape_field following_rows[] = {
    {SHAPE_AT(fly_carbon_report, limit_w), TOLD_NUMBER},
    {SHAPE_AT(fly_carbon_report, intensity_g_per_kwh), TOLD_NUMBER},
    {SHAPE_AT(fly_carbon_report, decisions), TOLD_U32},
    {SHAPE_AT(fly_carbon_report, changes), TOLD_U32},
    {SHAPE_AT(fly_carbon_report, finish_s), TOLD_NUMBER},
    {SHAPE_AT(fly_carbon_report, reason), TOLD_CHARS(fly_carbon_report, reason)},
    {SHAPE_AT_AS("note", fly_carbon_report, text), TOLD_CHARS(fly_carbon_report, text)},
};
static const struct shape following_shape = {SHAPE_OF(fly_carbon_report, following_rows)};

static json_t *following_json(const struct run_carbon *carbon)
{
    return carbon->followed && carbon->report.size > 0 ? shape_tell(&following_shape, &carbon->report)
                                                       : json_null();
}

json_t *run_carbon_json(const struct run_carbon *carbon)
{
    json_t *object = json_object();
    bool kept = carbon->off[0] == '\0';

    json_object_set_new(object, "source", text_or_null(carbon->sources[CARBON_INTENSITY]));
    json_object_set_new(object, "price", text_or_null(carbon->sources[CARBON_PRICE]));
    json_object_set_new(object, "account", kept ? text_value(carbon->kept.path) : json_null());
    if (!kept)
        json_object_set_new(object, "account_unavailable", text_value(carbon->off));
    json_object_set_new(object, "slices", json_integer((json_int_t)carbon->kept.slices));
    json_object_set_new(object, "gpu_energy_j",
                        kept ? json_number_or_null(carbon->kept.energy_j) : json_null());
    json_object_set_new(object, "note", text_or_null(carbon->kept.text));
    json_object_set_new(object, "followed", json_boolean(carbon->followed));
    json_object_set_new(object, "following", following_json(carbon));
    json_object_set_new(object, "statement",
                        carbon->stated ? statement_json(&carbon->view.statement) : json_null());
    for (int i = 0; i < CARBON_SIGNALS; i++)
        json_object_set_new(object, remark_keys[i],
                            carbon->stated ? text_or_null(carbon->view.remarks[i]) : json_null());
    if (!carbon->stated)
        json_object_set_new(object, "statement_unavailable",
                            text_value(carbon->unstated[0] != '\0' ? carbon->unstated : carbon->off));
    return object;
}
