/* SPDX-License-Identifier: Apache-2.0 */
/* The report on a run for people. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "cli/kit/amount.h"
#include "cli/kit/text_layout.h"
#include "cli/measure/run_result.h"
#include "cli/run/run_carbon.h"
#include "cli/run/run_job.h"
#include "cli/run/run_report.h"
#include "cli/run/run_tune.h"
#include "cli/views/reading_view.h"

/* The first lines of a run's report: what a person wants to know of it. */

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

enum { COLUMNS = 5, NOTE_MAX = 512, DEVICE_NAME_WIDTH = 24 };

static const double integral_agrees = 0.1; /* a larger relative difference from the integral is reported */
static const double counter_agrees = 1e-3; /* from this share on the counter alone is reported too */

struct line {
    char cells[COLUMNS][NOTE_MAX];
};

static void put_clause(char note[NOTE_MAX], const char *clause)
{
    size_t length = strlen(note);

    if (clause[0] != '\0')
        snprintf(note + length, NOTE_MAX - length, "%s%s", length > 0 ? "; " : "", clause);
}

static void put_integral(const struct fly_device_energy *energy, char note[NOTE_MAX])
{
    double difference = (energy->integral_j - energy->energy_j) / energy->energy_j;
    char share[AMOUNT_MAX];
    char clause[2 * AMOUNT_MAX];

    if (energy->source != FLY_ENERGY_COUNTER || !isfinite(difference))
        return;
    amount_share(fabs(difference), share);
    if (fabs(difference) < integral_agrees)
        snprintf(clause, sizeof clause, "integral agrees to %s", share);
    else
        snprintf(clause, sizeof clause, "sampled power sums to %s %s", share,
                 difference > 0 ? "more" : "less");
    put_clause(note, clause);
}

/* Says what the counter alone shows, where the power beside it says more. */
static void put_counter(const struct fly_device_energy *energy, char note[NOTE_MAX])
{
    char amount[AMOUNT_MAX];
    char clause[2 * AMOUNT_MAX];

    if (!(fabs(energy->counter_j - energy->energy_j) > counter_agrees * energy->energy_j))
        return;
    snprintf(clause, sizeof clause, "the counter rose by %s",
             amount_energy(energy->counter_j, NAN, amount_plus_minus(), amount));
    put_clause(note, clause);
}

static void put_gain(const struct device_info *info, const struct fly_device_energy *energy,
                     char note[NOTE_MAX])
{
    char share[AMOUNT_MAX];
    char clause[2 * AMOUNT_MAX];

    if (!(energy->gain_error > 0) || !isfinite(energy->energy_j))
        return;
    snprintf(clause, sizeof clause, "%s %s %s not included", info->estimated ? "model" : "board gain",
             amount_plus_minus(), amount_share(energy->gain_error, share));
    put_clause(note, clause);
}

/* The module's energy contains the GPU's, and is in no sum. */
static void put_module(double energy_j, char note[NOTE_MAX])
{
    char text[AMOUNT_MAX], clause[2 * AMOUNT_MAX + 32];

    if (!isfinite(energy_j))
        return;
    snprintf(clause, sizeof clause, "its module, with the CPU on it: %s",
             amount_energy(energy_j, NAN, amount_plus_minus(), text));
    put_clause(note, clause);
}

static void put_note(const struct run_result *result, size_t device, char note[NOTE_MAX])
{
    const struct device_info *info = &result->list->devices[device].info;
    const struct fly_device_energy *energy = &result->measured.devices[device];
    const struct claim *claim = &result->claims->devices[device];
    char label[DEVICE_LABEL_MAX];
    char counted[CLAIM_BY_MAX + 16];

    note[0] = '\0';
    put_clause(note, device_label(info, label));
    if (!claim->counted) {
        snprintf(counted, sizeof counted, "counted by %s", claim->by);
        put_clause(note, counted);
    }
    put_clause(note, energy->note);
    put_counter(energy, note);
    put_gain(info, energy, note);
    put_integral(energy, note);
    put_module(result->module_energies_j[device], note);
    if (info->kind != DEVICE_GPU && isfinite(energy->energy_j))
        put_clause(note, "whole machine");
}

static void fill_line(const struct run_result *result, size_t device, struct line *line)
{
    const struct device_info *info = &result->list->devices[device].info;
    const struct fly_device_energy *energy = &result->measured.devices[device];
    bool known = isfinite(energy->energy_j), least = isfinite(energy->least_energy_j);
    char text[AMOUNT_MAX];

    snprintf(line->cells[0], NOTE_MAX, "%s %u", device_kind_name(info->kind), info->index);
    snprintf(line->cells[1], NOTE_MAX, "%s%s", least ? "at least " : "",
             known   ? amount_energy(energy->energy_j, energy->uncertainty_j, amount_plus_minus(), text)
             : least ? amount_energy(energy->least_energy_j, NAN, amount_plus_minus(), text)
                     : "unavailable");
    snprintf(line->cells[2], NOTE_MAX, "%s", known ? amount_power(energy->mean_power_w, text) : "");
    snprintf(line->cells[3], NOTE_MAX, "%s", known ? fly_energy_source_name(energy->source) : "");
    put_note(result, device, line->cells[4]);
}

static void put_line(const struct line *line, const size_t *widths, struct buffer *out)
{
    size_t last = COLUMNS - 1;

    while (last > 0 && line->cells[last][0] == '\0')
        last--;
    buffer_puts(out, "  ");
    for (size_t i = 0; i <= last; i++) {
        buffer_puts(out, line->cells[i]);
        for (size_t pad = text_width(line->cells[i]); i < last && pad < widths[i] + 2; pad++)
            buffer_puts(out, " ");
    }
    buffer_puts(out, "\n");
}

static void widen(const struct line *line, size_t *widths)
{
    for (size_t i = 0; i < COLUMNS; i++) {
        if (text_width(line->cells[i]) > widths[i])
            widths[i] = text_width(line->cells[i]);
    }
}

static void put_devices(const struct run_result *result, struct buffer *out)
{
    static const struct line heading = {{"device", "energy", "mean", "source", "note"}};
    size_t widths[COLUMNS] = {0};
    struct line line;

    widen(&heading, widths);
    for (size_t i = 0; i < result->list->count; i++) {
        fill_line(result, i, &line);
        widen(&line, widths);
    }
    put_line(&heading, widths, out);
    for (size_t i = 0; i < result->list->count; i++) {
        fill_line(result, i, &line);
        put_line(&line, widths, out);
    }
}

static bool same_model(const struct run_result *result, size_t one, size_t other)
{
    const struct device_info *first = &result->list->devices[one].info;
    const struct device_info *second = &result->list->devices[other].info;
    double limits[] = {result->measured.devices[one].limit_w, result->measured.devices[other].limit_w};

    return second->kind == first->kind && strcmp(first->name, second->name) == 0 &&
           first->emulated == second->emulated &&
           (limits[0] == limits[1] || (isnan(limits[0]) && isnan(limits[1])));
}

/* Writes "2 x NAME (GPU 0, 1), limit 400 W", a line for every model among the GPUs. */
static void put_models(const struct run_result *result, struct buffer *out)
{
    size_t gpus = device_list_count(result->list, DEVICE_GPU);
    size_t next;

    for (size_t i = 0; i < gpus; i = next) {
        const struct device_info *info = &result->list->devices[i].info;
        double limit_w = result->measured.devices[i].limit_w;
        char text[AMOUNT_MAX];

        for (next = i + 1; next < gpus && same_model(result, i, next); next++)
            ;
        buffer_printf(out, "  %zu x %s%s (GPU ", next - i,
                      info->emulated && strcasestr(info->name, "emulated") == NULL ? "emulated " : "",
                      info->name[0] != '\0' ? info->name : "GPU of unknown model");
        for (size_t j = i; j < next; j++)
            buffer_printf(out, "%s%u", j > i ? ", " : "", result->list->devices[j].info.index);
        buffer_puts(out, ")");
        if (isfinite(limit_w) && result->tune == NULL && result->job == NULL)
            buffer_printf(out, ", limit %s", amount_power(limit_w, text));
        buffer_puts(out, "\n");
    }
}

static void put_sum(const struct run_result *result, const struct run_totals *totals, struct buffer *out)
{
    const char *missing[NOT_INCLUDED_MAX];
    size_t count = run_not_included(result, missing);
    bool bounded = totals->devices > totals->without_bound;
    char text[AMOUNT_MAX];

    if (totals->least_energy_j > 0.0)
        buffer_printf(
            out, "  counted   at least %s",
            amount_energy(totals->energy_j + totals->least_energy_j, NAN, amount_plus_minus(), text));
    else if (totals->devices > 0)
        buffer_printf(out, "  counted   %s",
                      amount_energy(totals->energy_j, bounded ? totals->uncertainty_j : NAN,
                                    amount_plus_minus(), text));
    else
        buffer_printf(out, "  counted   %s",
                      totals->elsewhere > 0 && totals->unavailable == 0
                          ? "nothing here: others count these devices"
                          : "no energy is known");
    if (totals->energy_j >= kwh_from * kwh_j)
        buffer_printf(out, " = %.3g kWh", totals->energy_j / kwh_j);
    if (bounded && totals->without_bound > 0)
        buffer_printf(out, " (no bound for %zu of %zu)", totals->without_bound, totals->devices);
    if (totals->emulated > 0)
        buffer_printf(out, ", %s of it emulated", totals->emulated == totals->devices ? "all" : "a part");
    if (totals->estimated > 0)
        buffer_printf(out, ", %s of it estimated", totals->estimated == totals->devices ? "all" : "a part");
    if (totals->unavailable > 0)
        buffer_printf(out, ", %s %zu that %s unavailable",
                      totals->least_energy_j > 0.0 ? "with a part of" : "without", totals->unavailable,
                      totals->unavailable == 1 ? "is" : "are");
    buffer_puts(out, "\n  not included: ");
    for (size_t i = 0; i < count; i++)
        buffer_printf(out, "%s%s", i > 0 ? ", " : "", missing[i]);
    buffer_puts(out, "\n");
}

static void put_shares(const struct run_result *result, const struct run_totals *totals, struct buffer *out)
{
    char idle[AMOUNT_MAX], energy[AMOUNT_MAX], capped[AMOUNT_MAX], heat[AMOUNT_MAX], brake[AMOUNT_MAX];

    if (device_list_count(result->list, DEVICE_GPU) == 0)
        return;
    if (isnan(totals->idle_share) && isnan(totals->capped_share)) {
        buffer_puts(out, "  GPUs: how they were used is unknown\n");
        return;
    }
    buffer_printf(out,
                  "  GPUs idle %s of the time (%s of GPU energy); capped %s, throttled by heat %s, by power "
                  "brake %s\n",
                  amount_share(totals->idle_share, idle), amount_share(totals->idle_energy_share, energy),
                  amount_share(totals->capped_share, capped), amount_share(totals->heat_share, heat),
                  amount_share(totals->brake_share, brake));
}

static void put_idle_boost(const struct idle_boost *boost, struct buffer *out)
{
    buffer_printf(out, "  without idle boost (" IDLE_BOOST_VARIABLE "=1)");
    if (boost->version[0] != '\0')
        buffer_printf(out, ", driver %s", boost->version);
    buffer_printf(out, ": %s\n", idle_boost_text(boost->driver));
}

/* Writes drivers that are present and do not work; absent ones are no fault. */
static void put_drivers(const struct run_result *result, struct buffer *out)
{
    for (size_t i = 0; i < result->list->report_count; i++) {
        const struct backend_report *report = &result->list->reports[i];

        if (report->error.code < 0 && report->error.code != FLY_EUNSUPPORTED && report->found == 0)
            buffer_printf(out, "  %s: %s\n", report->backend->title, report->error.text);
    }
}

static void put_own(const struct run_result *result, struct buffer *out)
{
    buffer_printf(out, "  flyball's own use: %.3g s CPU", result->own_cpu_s);
    if (result->own_memory_bytes >= 0)
        buffer_printf(out, ", %.1f MiB", (double)result->own_memory_bytes / (1 << 20));
    if (result->output != NULL)
        buffer_printf(out, "; report: %s", result->output);
    buffer_puts(out, "\n");
}

/* Returns whether a figure is missing for another reason than that the run was short. */
static bool doctor_helps(const struct run_result *result)
{
    for (size_t i = 0; i < result->list->count; i++) {
        const struct fly_device_energy *energy = &result->measured.devices[i];

        if (!isfinite(energy->energy_j) && strstr(energy->note, "too short") == NULL)
            return true;
    }
    return false;
}

void run_report_text(const struct run_result *result, bool verbose, struct buffer *out)
{
    struct run_totals totals;

    run_totals(result, &totals);
    run_answer_text(result, &totals, !verbose, out);
    if (!verbose)
        return;
    if (result->fault != NULL) {
        buffer_printf(out, "  energy unavailable: %s\n", result->fault);
    } else {
        put_models(result, out);
        put_devices(result, out);
        put_sum(result, &totals, out);
        put_shares(result, &totals, out);
        if (doctor_helps(result))
            buffer_puts(out,
                        "  'flyball doctor' says why figures are unavailable, and what would change it\n");
    }
    if (result->tune != NULL)
        run_tune_text(result->tune, out);
    if (result->job != NULL)
        run_job_text(result->job, out);
    if (result->carbon != NULL)
        run_carbon_text(result->carbon, out);
    if (result->idle_boost != NULL)
        put_idle_boost(result->idle_boost, out);
    put_drivers(result, out);
    if (result->selection[0] != '\0')
        buffer_printf(out, "  %s\n", result->selection);
    put_own(result, out);
}
