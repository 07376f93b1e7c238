/* SPDX-License-Identifier: Apache-2.0 */
/* The first lines of a run's report: what a person wants to know of it. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "cli/kit/amount.h"
#include "cli/run/run_carbon.h"
#include "cli/run/run_job.h"
#include "cli/run/run_report.h"
#include "cli/run/run_tune.h"

enum { COUNTED_MAX = CLAIM_BY_MAX + 16, COMMAND_WIDTH = 60 };

static const double kwh_j = 3.6e6;
static const double kwh_from = 0.001; /* from this value on the unit is useful */

/* Why no energy is known. */
static const char *unknown_reason(const struct run_result *result, const struct run_totals *totals,
                                  char by[COUNTED_MAX])
{
    if (result->fault != NULL)
        return result->fault;
    for (size_t i = 0; i < result->list->count && totals->unavailable > 0; i++) {
        if (result->claims->devices[i].counted && result->measured.devices[i].note[0] != '\0')
            return result->measured.devices[i].note;
    }
    for (size_t i = 0; i < result->list->count; i++) {
        if (!result->claims->devices[i].counted) {
            snprintf(by, COUNTED_MAX, "counted by %s", result->claims->devices[i].by);
            return by;
        }
    }
    for (size_t i = 0; i < result->list->report_count; i++) {
        const struct backend_report *report = &result->list->reports[i];

        if (report->error.code < 0 && report->error.code != FLY_EUNSUPPORTED && report->found == 0)
            return report->error.text;
    }
    return "no device was found that can be measured; see 'flyball doctor'";
}

/* How it ended, and where the rest of the report is. */
static void put_end(const struct run_result *result, bool brief, struct buffer *out)
{
    if (result->signal != 0)
        buffer_printf(out, ", signal %d (%s)", result->signal, strsignal(result->signal));
    else
        buffer_printf(out, ", exit %d", result->status);
    if (brief)
        buffer_puts(out, " (details: -v)");
    if (brief && result->output != NULL)
        buffer_printf(out, "; report: %s", result->output);
}

/* The command, cut and without what a terminal would take for its own. */
static void put_command(const struct run_result *result, struct buffer *out)
{
    size_t begin = out->length;

    for (size_t i = 0; result->arguments[i] != NULL && out->length - begin < COMMAND_WIDTH; i++) {
        const char *slash = i == 0 ? strrchr(result->arguments[i], '/') : NULL;

        buffer_printf(out, "%s%.*s", i > 0 ? " " : "", COMMAND_WIDTH,
                      slash != NULL ? slash + 1 : result->arguments[i]);
    }
    if (out->length - begin > COMMAND_WIDTH) {
        out->length = begin + COMMAND_WIDTH - 3;
        buffer_puts(out, "...");
    }
    for (size_t i = begin; i < out->length; i++) {
        if ((unsigned char)out->data[i] < ' ' || out->data[i] == 0x7F)
            out->data[i] = '?';
    }
}

/* "train.py: 15.3 kJ ± 0.1 kJ in 1 min 02 s, exit 0" */
static void put_took(const struct run_result *result, const struct run_totals *totals, bool brief,
                     struct buffer *out)
{
    bool bounded = totals->devices > totals->without_bound, least = totals->least_energy_j > 0.0;
    double energy_j = totals->energy_j + totals->least_energy_j;
    char energy[AMOUNT_MAX], time[AMOUNT_MAX], by[COUNTED_MAX];

    put_command(result, out);
    amount_time(result->measured.time_s, time);
    if (totals->devices == 0 && !least) {
        buffer_printf(out, ": %s", time);
        put_end(result, false, out);
        buffer_printf(out, "; energy unavailable: %s\n", unknown_reason(result, totals, by));
        return;
    }
    buffer_printf(out, ": %s%s", least ? "at least " : "",
                  amount_energy(energy_j, bounded && !least ? totals->uncertainty_j : NAN,
                                amount_plus_minus(), energy));
    if (energy_j >= kwh_from * kwh_j)
        buffer_printf(out, " = %.3g kWh", energy_j / kwh_j);
    if (totals->emulated > 0)
        buffer_printf(out, " (%semulated)", totals->emulated == totals->devices ? "" : "partly ");
    buffer_printf(out, " in %s", time);
    put_end(result, brief, out);
    buffer_puts(out, "\n");
}

static double energy_of_kind(const struct run_result *result, enum device_kind kind)
{
    double sum_j = 0.0;

    for (size_t i = 0; i < result->list->count; i++) {
        double energy_j = result->measured.devices[i].energy_j;

        if (result->list->devices[i].info.kind == kind && result->claims->devices[i].counted &&
            isfinite(energy_j))
            sum_j += energy_j;
    }
    return sum_j;
}

/* What the sum is made of, and what it lacks. */
static void put_parts(const struct run_result *result, const struct run_totals *totals, struct buffer *out)
{
    const char *between = "  ";
    char text[AMOUNT_MAX];
    int kinds = 0;

    for (int kind = 0; kind < DEVICE_KIND_COUNT; kind++)
        kinds += energy_of_kind(result, (enum device_kind)kind) > 0.0;
    for (int kind = 0; kinds > 1 && kind < DEVICE_KIND_COUNT; kind++) {
        double energy_j = energy_of_kind(result, (enum device_kind)kind);

        if (!(energy_j > 0.0))
            continue;
        buffer_printf(out, "%s%s %s", between, device_kind_name((enum device_kind)kind),
                      amount_energy(energy_j, NAN, amount_plus_minus(), text));
        between = ", ";
    }
    between = kinds > 1 ? "; " : between;
    if (isfinite(totals->idle_share)) {
        buffer_printf(out, "%sGPUs idle %s of the time", between, amount_share(totals->idle_share, text));
        between = "; ";
    }
    if (totals->unavailable > 0 && (totals->devices > 0 || totals->least_energy_j > 0.0)) {
        buffer_printf(out, "%s%s %zu of %zu devices: 'flyball doctor' says why", between,
                      totals->least_energy_j > 0.0 ? "with a part of" : "without", totals->unavailable,
                      totals->unavailable + totals->devices);
        between = "; ";
    }
    if (between[0] == ';')
        buffer_puts(out, "\n");
}

static void put_grid(const struct run_carbon *carbon, struct buffer *out)
{
    buffer_puts(out, "  grid:");
    if (carbon->off[0] != '\0') {
        buffer_printf(out, " no account: %s\n", carbon->off);
        return;
    }
    if (carbon->stated)
        run_carbon_amounts(carbon, out);
    else
        buffer_printf(out, " no statement, since %s", carbon->unstated);
    buffer_printf(out, "; account: %s\n", carbon->kept.path);
}

/* What makes figures wrong, or needs somebody to act. */
static void put_alerts(const struct run_result *result, struct buffer *out)
{
    char text[AMOUNT_MAX];

    if (result->early_s > 0)
        buffer_printf(out,
                      "  its first %s are not measured: opening the devices took longer than "
                      "--start-within allows\n",
                      amount_time(result->early_s, text));
    if (result->claims->fault[0] != '\0')
        buffer_printf(out, "  %s\n", result->claims->fault);
}

void run_answer_text(const struct run_result *result, const struct run_totals *totals, bool brief,
                     struct buffer *out)
{
    bool asked = result->tune != NULL || result->job != NULL;

    buffer_puts(out, "flyball: ");
    if (result->tune != NULL)
        run_tune_answer(result->tune, brief, out);
    else if (result->job != NULL)
        run_job_answer(result->job, brief, out);
    buffer_puts(out, asked ? "  " : "");
    put_took(result, totals, brief, out);
    if (brief && !asked && totals->devices > 0)
        put_parts(result, totals, out);
    if (brief && result->carbon != NULL)
        put_grid(result->carbon, out);
    put_alerts(result, out);
}
