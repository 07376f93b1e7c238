/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/number.h"
#include "base/text/iso_time.h"
#include "cli/job/job_show.h"
#include "cli/job/job_view.h"
#include "cli/kit/amount.h"
#include "cli/views/saving_words.h"
#include "job/core/definition.h"
#include "job/core/grid_amount.h"
#include "job/core/job_owner.h"

static void put_target(struct buffer *text, const struct fly_job_definition *definition)
{
    buffer_printf(text, "; a metric of at %s %g",
                  definition->target == FLY_TARGET_AT_LEAST ? "least" : "most", definition->target_metric);
    if (definition->target_hold > 1)
        buffer_printf(text, " in %u reports in a row", definition->target_hold);
    buffer_printf(text, " within %u epochs%s%s.\n", definition->max_epochs,
                  definition->best_so_far ? ", where the best so far counts" : "",
                  definition->trains_on ? ", and training goes on after it" : "");
    if (definition->report_every_steps > 0)
        buffer_printf(text, "An epoch is %u samples; the program evaluates after every %u steps.\n",
                      definition->report_every_samples, definition->report_every_steps);
    else if (definition->report_every_samples > 0)
        buffer_printf(text, "An epoch is %u samples, whenever the program evaluates.\n",
                      definition->report_every_samples);
    if (!isnan(definition->max_metric_loss))
        buffer_printf(
            text, "A batch size whose final metric is worse than the default's by more than %g is left.\n",
            definition->max_metric_loss);
}

static void put_definition(struct buffer *text, const struct job_shown *shown)
{
    const struct fly_job_definition *definition = &shown->definition;

    buffer_printf(text,
                  "Job '%s', policy %s: %" PRIu64 " recurrence%s in %" PRIu64 " trial%s, %" PRIu64
                  " running.\nBatch sizes ",
                  definition->name, job_shown_policy(shown), shown->recurrences,
                  shown->recurrences == 1 ? "" : "s", shown->trials, shown->trials == 1 ? "" : "s",
                  shown->running);
    for (size_t i = 0; i < definition->batch_count; i++)
        buffer_printf(text, "%s%u%s", i > 0 ? ", " : "", definition->batch_sizes[i],
                      definition->batch_sizes[i] != definition->default_batch_size ? ""
                      : definition->no_default                                     ? " (the first)"
                                                                                   : " (default)");
    if (definition->target == FLY_TARGET_NONE)
        buffer_printf(text, "; %u epoch%s, no target: only the power limit is chosen.\n",
                      definition->max_epochs, definition->max_epochs == 1 ? "" : "s");
    else
        put_target(text, definition);
    if (shown->owners != NULL && shown->owners[0] != '\0' && strcmp(shown->owners, JOB_OWNERS_NONE) != 0)
        buffer_printf(text, "In a service %s may change it.\n", shown->owners);
}

static void put_past(struct buffer *text, const struct job_shown *shown)
{
    if (shown->revision != NULL && shown->revision[0] != '\0')
        buffer_printf(text, "Revision '%s'.\n", shown->revision);
    if (shown->past != NULL && shown->past[0] != '\0')
        buffer_printf(text, "It learns from %s too.\n", shown->past);
}

/* A pin comes first. */
static void put_controls(struct buffer *text, const struct job_shown *shown)
{
    if (shown->control_every == 0)
        return;
    if (shown->pin_batch_size > 0)
        buffer_printf(text,
                      "The pin leaves out the controls, which without it are one of each %u recurrences.\n",
                      shown->control_every);
    else
        buffer_printf(text, "Each %u recurrences one runs the default, to measure what is saved.\n",
                      shown->control_every);
}

static void put_left(struct buffer *text, const struct job_shown *shown)
{
    if (shown->recurrences_left > 0)
        buffer_printf(text,
                      "%" PRIu64 " more recurrence%s expected; only what pays within them is explored.\n",
                      shown->recurrences_left, shown->recurrences_left == 1 ? " is" : "s are");
}

/* Where tries are stopped: `bayes` weighs what each is still worth, the others have beta. */
static void put_stop(struct buffer *text, const struct job_shown *shown)
{
    if (shown->definition.target == FLY_TARGET_NONE)
        return;
    if (shown->policy != NULL && strcmp(shown->policy, "bayes") == 0)
        buffer_puts(text, " A try is stopped where going on takes more than it is worth.");
    else if (isfinite(shown->definition.beta))
        buffer_printf(text, " A try is stopped at %g times the lowest score.", shown->definition.beta);
}

static void put_wishes(struct buffer *text, const struct job_shown *shown)
{
    char objective[JOB_HARDWARE_TEXT_MAX], limit[NUMBER_TEXT_MAX];

    buffer_printf(text, "Chosen for: %s", job_view_objective(&shown->objective, objective));
    if (shown->definition.grid != NULL && shown->definition.grid[0] != '\0')
        buffer_printf(text, ", counted by the %s of '%s'",
                      job_counts_money(&shown->definition) ? "prices" : "intensities",
                      shown->definition.grid);
    buffer_puts(text, ".");
    put_stop(text, shown);
    buffer_puts(text, "\n");
    if (shown->pin_batch_size > 0 && isnan(shown->pin_limit_w))
        buffer_printf(text, "Pinned: batch size %u at its profile's best limit.\n", shown->pin_batch_size);
    else if (shown->pin_batch_size > 0)
        buffer_printf(text, "Pinned: batch size %u at %s W.\n", shown->pin_batch_size,
                      number_format(shown->pin_limit_w, limit));
    put_controls(text, shown);
    put_left(text, shown);
}

/* Writes "12.64 kJ and 1 min 08 s on average", or per model if some runs delivered none. */
static void put_group(struct buffer *text, const struct fly_job_runs *group)
{
    char energy[AMOUNT_MAX], time[AMOUNT_MAX];

    if (group->failed == group->runs) {
        buffer_puts(text, "none delivered a model");
        return;
    }
    buffer_printf(text, "%s and %s %s",
                  amount_energy(group->model_energy_j, NAN, amount_plus_minus(), energy),
                  amount_time(group->model_time_s, time),
                  group->failed == 0 ? "on average" : "for each model delivered");
    if (group->failed > 0)
        buffer_printf(text, ", with what the %zu took that delivered none", group->failed);
}

static void put_baseline(struct buffer *text, const struct job_history *history,
                         const struct fly_job_runs *baseline)
{
    double amount = job_grid_amount(baseline->model_energy_j, history->reference_per_kwh);
    char words[GRID_AMOUNT_MAX];
    char share[AMOUNT_MAX], date[ISO_TIME_TEXT_MAX];

    if (baseline->runs == 0)
        return;
    buffer_printf(text, "  Default, measured in %zu run%s: ", baseline->runs, baseline->runs == 1 ? "" : "s");
    put_group(text, baseline);
    if (isfinite(baseline->spread))
        buffer_printf(text, ", energies differ by %s", amount_share(baseline->spread, share));
    if (isfinite(amount))
        buffer_printf(text, "; %s at the newest reference",
                      job_grid_amount_text(&history->definition, amount, words));
    buffer_printf(text, "; the newest on %s.\n",
                  iso_time_format_us(llround(baseline->newest_unix_s * 1e6), date));
}

static void put_tuned(struct buffer *text, const struct fly_job_runs *tuned)
{
    if (tuned->runs == 0)
        return;
    buffer_printf(text, "  All that was chosen, mean of %zu run%s: ", tuned->runs,
                  tuned->runs == 1 ? "" : "s");
    put_group(text, tuned);
    buffer_puts(text, ".\n");
}

/* Recurrences are counted from 1 for people. */
static void put_failures(struct buffer *text, const struct job_savings *savings)
{
    if (savings->failed > 0)
        buffer_printf(text, "  Without a model: %zu run%s%s: ", savings->failed,
                      savings->failed == 1 ? "" : "s",
                      savings->failed > savings->failure_count ? ", the newest of them" : "");
    for (size_t i = 0; i < savings->failure_count; i++) {
        const struct saving_failure *failure = &savings->failures[i];

        buffer_printf(text, "%srecurrence %" PRIu64 " (%s%u, %s)", i > 0 ? ", " : "", failure->recurrence + 1,
                      failure->of_baseline ? "the default, " : "batch size ", failure->batch_size,
                      failure->without_epoch ? "ended without reporting an epoch"
                                             : job_outcome_name(failure->outcome));
    }
    if (savings->failed > 0)
        buffer_puts(text, ".\n");
    if (savings->unknown > 0)
        buffer_printf(text, "  Left out: %zu run%s of which some energy is not known.\n", savings->unknown,
                      savings->unknown == 1 ? "" : "s");
}

/* Writes since when the saving is counted, if not from the beginning. */
static void put_outdated(struct buffer *text, const struct job_history *history,
                         const struct job_savings *savings)
{
    char date[ISO_TIME_TEXT_MAX];

    if (savings->outdated > 0)
        buffer_printf(text,
                      "  Since %s another choice is wanted; %zu recurrence%s chosen before that %s not "
                      "counted as saving.\n",
                      iso_time_format_us(history->wanted_us, date), savings->outdated,
                      savings->outdated == 1 ? "" : "s", savings->outdated == 1 ? "is" : "are");
}

/* Writes "12.3 kJ less" than something. */
static void put_less(struct buffer *text, double less_j)
{
    char energy[AMOUNT_MAX];

    buffer_printf(text, "%s %s", amount_energy(fabs(less_j), NAN, amount_plus_minus(), energy),
                  less_j >= 0.0 ? "less" : "more");
}

/* Writes what was saved before the revision that holds, from which all other figures count. */
static void put_earlier(struct buffer *text, const struct saving_earlier *earlier)
{
    size_t all = earlier->recurrences + earlier->unknown;

    if (all == 0)
        return;
    buffer_printf(text, "  Before the revision: %zu recurrence%s", all, all == 1 ? "" : "s");
    if (earlier->recurrences == 0) {
        buffer_puts(text, "; what they saved is not known");
    } else {
        if (earlier->unknown > 0)
            buffer_printf(text, ", of which %zu, whose saving is known,", earlier->recurrences);
        buffer_puts(text, " took ");
        put_less(text, earlier->ahead_j);
        buffer_puts(text, " than as many models of the default of then");
    }
    buffer_puts(text, ". What stands here counts from the revision on.\n");
}

/* Says how the saving comes to be known, if that takes more than time. */
static void put_remedy(struct buffer *text, const struct job_shown *shown, const struct job_savings *savings)
{
    bool few_controls = savings->doubt == SAVING_FEW_BASELINE || savings->doubt == SAVING_NOT_SPANNED;

    if (few_controls && shown->pin_batch_size > 0)
        buffer_printf(text, "  'flyball job set JOB --pin none%s' lets the job measure the default.\n",
                      shown->control_every == 0 ? " --control-every 10" : "");
    else if (few_controls && shown->control_every == 0)
        buffer_puts(text, "  'flyball job set JOB --control-every 10' lets the job measure the default.\n");
}

static void put_saving(struct buffer *text, const struct job_shown *shown, const struct job_savings *savings)
{
    if (!savings->known) {
        buffer_puts(text, "  Saving: ");
        saving_words_unknown(text, savings);
        buffer_puts(text, ".\n");
        put_remedy(text, shown, savings);
        return;
    }
    buffer_puts(text, "  Saving for each model delivered: ");
    saving_words_change(text, &savings->energy, "energy");
    buffer_puts(text, ", ");
    saving_words_change(text, &savings->time, "time");
    buffer_puts(text, "; 95 % intervals, from each run of the default and those around it.\n");
    if (saving_words_by_chance(&savings->energy))
        buffer_printf(text, "  %s\n", saving_words_chance);
}

static void put_balance(struct buffer *text, const struct job_savings *savings)
{
    const struct saving_balance *balance = &savings->balance;

    if (!savings->known || balance->recent == 0)
        return;
    if (balance->paid_off) {
        buffer_printf(text,
                      "  Paid off: since recurrence %" PRIu64 " all of them together took less than as "
                      "many models of the default; now it is ",
                      balance->paid_off_at + 1);
        put_less(text, balance->ahead_j);
        buffer_puts(text, ".\n");
        return;
    }
    buffer_puts(text, balance->recent_ahead_j < 0.0 && balance->ahead_j > 0.0 ? "  It no longer pays: "
                      : balance->ahead_j > 0.0 ? "  Whether it has paid off cannot be told from chance: "
                                               : "  It has not paid off yet: ");
    buffer_printf(text, "the newest %zu recurrences took ", balance->recent);
    put_less(text, balance->recent_ahead_j);
    buffer_puts(text, " than as many models of the default around them, all of them together ");
    put_less(text, balance->ahead_j);
    buffer_puts(text, ".\n");
}

static void put_searching(struct buffer *text, const struct job_savings *savings)
{
    if (savings->searching > 0 && isfinite(savings->exploration_j)) {
        buffer_printf(text, "  Searching: %zu recurrence%s, which took ", savings->searching,
                      savings->searching == 1 ? "" : "s");
        put_less(text, -savings->exploration_j);
        buffer_puts(text, " than as many models of the chosen ones.\n");
    } else if (savings->searching > 0) {
        buffer_printf(text, "  Searching: %zu recurrence%s; what that took beyond others is not known.\n",
                      savings->searching, savings->searching == 1 ? "" : "s");
    }
}

static void put_metric(struct buffer *text, const struct job_savings *savings)
{
    if (isfinite(savings->tuned.mean_metric) && isfinite(savings->baseline.mean_metric))
        buffer_printf(text, "  Metric at the end: %.5g, and %.5g of the default.\n",
                      savings->tuned.mean_metric, savings->baseline.mean_metric);
}

/* Writes what the guard does at present, and since when learning has begun anew. */
static void put_guard(struct buffer *text, const struct job_guard *guard)
{
    char date[ISO_TIME_TEXT_MAX];

    if (guard->text[0] != '\0')
        buffer_printf(text, "  At present %s.\n", guard->text);
    if (guard->anew_trial > 0)
        buffer_printf(text,
                      "  Learning began anew with trial %" PRIu64 ", on %s%s; 'flyball job why JOB --trial "
                      "%" PRIu64 "' says why.\n",
                      guard->anew_trial, iso_time_format_us(guard->anew_us, date),
                      guard->anew_times > 1 ? ", not for the first time" : "", guard->anew_trial);
}

static uint64_t count_trials(const struct job_history *history, size_t machine)
{
    uint64_t count = 0;

    for (size_t i = 0; i < history->count; i++)
        count += history->rows[i].machine == machine;
    return count;
}

/* Adds up each trial by its own reference, so it says what they amounted to and compares nothing. */
static void put_grid_sum(struct buffer *text, const struct job_history *history)
{
    struct job_grid_sum sum = job_history_grid_sum(history);
    char amount[GRID_AMOUNT_MAX], reference[GRID_AMOUNT_MAX];

    if (history->definition.grid == NULL || history->definition.grid[0] == '\0' ||
        sum.known + sum.unknown == 0)
        return;
    if (sum.known == 0) {
        buffer_printf(text, "What its trials came to is not known: no figure of the grid was there at their "
                            "ends.\n");
        return;
    }
    buffer_printf(text, "In all: %s in %" PRIu64 " trial%s, the newest at %s",
                  job_grid_amount_text(&history->definition, sum.amount, amount), sum.known,
                  sum.known == 1 ? "" : "s",
                  job_grid_reference_text(&history->definition, history->reference_per_kwh, reference));
    if (sum.unknown > 0)
        buffer_printf(text, "; of %" PRIu64 " more it is not known", sum.unknown);
    buffer_puts(text, ".\n");
}

void job_show_text(const struct job_shown *shown, const struct job_history *history,
                   const struct job_savings *savings, struct buffer *text)
{
    char hardware[JOB_HARDWARE_TEXT_MAX];

    put_definition(text, shown);
    put_past(text, shown);
    put_wishes(text, shown);
    put_grid_sum(text, history);
    for (size_t i = 0; i < history->machine_count; i++) {
        uint64_t trials = count_trials(history, i);

        buffer_printf(text, "\nHardware %zu: %s, %" PRIu64 " trial%s\n", i + 1,
                      job_view_hardware(&history->machines[i], hardware), trials, trials == 1 ? "" : "s");
        if (i < shown->guard_count)
            put_guard(text, &shown->guards[i]);
        put_baseline(text, history, &savings[i].baseline);
        put_tuned(text, &savings[i].tuned);
        put_outdated(text, history, &savings[i]);
        put_failures(text, &savings[i]);
        put_saving(text, shown, &savings[i]);
        put_searching(text, &savings[i]);
        put_balance(text, &savings[i]);
        put_metric(text, &savings[i]);
        put_earlier(text, &savings[i].earlier);
    }
}

/* ---- at a first look ---- */

/* Writes "batch 32, 175 W"; without a limit if it is not known. */
static void put_pair(struct buffer *text, uint32_t batch_size, double limit_w)
{
    char limit[NUMBER_TEXT_MAX];

    buffer_printf(text, "batch %u", batch_size);
    if (limit_w > 0.0)
        buffer_printf(text, ", %s W", number_format(limit_w, limit));
}

/* Writes ". Mean of 31 runs: 10.96 kJ, 63 s" for sums over so many runs. */
static void put_mean(struct buffer *text, uint64_t runs, double energy_j, double time_s)
{
    char energy[AMOUNT_MAX], time[AMOUNT_MAX];

    if (runs > 0)
        buffer_printf(text, ". Mean of %" PRIu64 " run%s: %s, %s", runs, runs == 1 ? "" : "s",
                      amount_energy(energy_j / (double)runs, NAN, amount_plus_minus(), energy),
                      amount_time(time_s / (double)runs, time));
    buffer_puts(text, "\n");
}

/* What the job runs now, and what the runs of that took which reached their target. */
static void put_now(struct buffer *text, const struct job_history *history, size_t machine)
{
    const struct job_row *now = job_view_now(history, machine);
    double energy_j = 0.0, time_s = 0.0, limit_w;
    uint64_t runs = 0;

    if (now == NULL) {
        buffer_puts(text, "Now: searching; what is chosen has not run yet\n");
        return;
    }
    limit_w = job_history_limit_w(history, now);
    for (size_t i = 0; i < history->count; i++) {
        const struct job_row *row = &history->rows[i];

        if (row->running || row->outcome != TRIAL_REACHED || row->trial.profiled ||
            !(row->trial.energy_j > 0.0) || row->machine != machine || row->revision != history->revision ||
            row->trial.batch_size != now->trial.batch_size || job_history_limit_w(history, row) != limit_w)
            continue;
        runs++;
        energy_j += row->trial.energy_j;
        time_s += row->trial.time_s;
    }
    buffer_puts(text, "Now: ");
    put_pair(text, now->trial.batch_size, limit_w);
    put_mean(text, runs, energy_j, time_s);
}

static void put_first_saving(struct buffer *text, const struct job_savings *savings)
{
    buffer_puts(text, "Saving: ");
    if (savings->known) {
        saving_words_change(text, &savings->energy, "energy");
        buffer_puts(text, ", ");
        saving_words_change(text, &savings->time, "time");
    } else {
        saving_words_unknown(text, savings);
    }
    buffer_puts(text, "\n");
    if (savings->known && saving_words_by_chance(&savings->energy))
        buffer_printf(text, "  %s\n", saving_words_chance);
}

void job_show_first(const struct job_shown *shown, const struct job_history *history,
                    const struct job_savings *savings, struct buffer *text)
{
    const struct fly_job_definition *definition = &shown->definition;
    char hardware[JOB_HARDWARE_TEXT_MAX];
    const struct fly_job_runs *baseline;
    size_t machine;

    if (history->count == 0) {
        buffer_printf(text, "Saving: unknown; job '%s' has not run yet\n", definition->name);
        return;
    }
    machine = history->rows[history->count - 1].machine;
    baseline = &savings[machine].baseline;
    put_first_saving(text, &savings[machine]);
    if (!savings[machine].known)
        put_remedy(text, shown, &savings[machine]);
    put_now(text, history, machine);
    if (!definition->no_default && baseline->runs > baseline->failed) {
        double models = (double)(baseline->runs - baseline->failed);

        buffer_puts(text, "Default: ");
        put_pair(text, definition->default_batch_size, history->machines[machine].highest_limit_w);
        put_mean(text, baseline->runs, baseline->model_energy_j * models, baseline->model_time_s * models);
    }
    if (machine < shown->guard_count && shown->guards[machine].text[0] != '\0')
        buffer_printf(text, "At present %s\n", shown->guards[machine].text);
    buffer_printf(text, "%s: %" PRIu64 " recurrence%s, %" PRIu64 " running", definition->name,
                  shown->recurrences, shown->recurrences == 1 ? "" : "s", shown->running);
    if (history->machine_count > 1)
        buffer_printf(text, "; this is of %s, the newest of %zu kinds of hardware",
                      job_view_hardware(&history->machines[machine], hardware), history->machine_count);
    buffer_printf(text, ". More: flyball job show %s -v\n", definition->name);
}
