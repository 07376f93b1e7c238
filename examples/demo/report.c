/* SPDX-License-Identifier: Apache-2.0 */
#include "demo/report.h"

#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    PLACE_MAX = 32,
    INTERVAL_MAX = 80,
    RUNS_NEEDED = 4 /* of each side, for a saving (docs/savings.md) */
};
static const char schema[] = "flyball.demo/1";

/* How each measure is shown: JSON and CSV in the plain unit, people in the scaled one. */
static const struct {
    const char *name, *unit;
    const char *people_name, *people_unit;
    double people_scale;
    const char *gutter; /* which part of it is real */
    const char *basis;
} measures[DEMO_MEASURES] = {
    [DEMO_ENERGY] = {"energy", "J", "energy", "kJ", 1e-3, "BOTH", "real epochs, emulated time and power"},
    [DEMO_TIME] = {"time", "s", "time", "s", 1.0, "BOTH", "real epochs, emulated time"},
    [DEMO_COST] = {"cost", "J", "score", "", 1.0, "BOTH", "real epochs, emulated time and power"},
    [DEMO_ACCURACY] = {"accuracy", "%", "accuracy", "%", 1.0, "REAL", "real"},
};

static const char *const span_names[DEMO_SPANS] = {[DEMO_LAST] = "last", [DEMO_WHOLE] = "all"};

static const char *const columns[] = {"job",
                                      "figure",
                                      "unit",
                                      "basis",
                                      "span",
                                      "recurrences",
                                      "default_mean",
                                      "chosen_mean",
                                      "change_percent",
                                      "change_low_percent",
                                      "change_high_percent",
                                      "claimed"};

/* A value that is not known is null, with the reason beside it. */
static void set_known(json_t *object, const char *key, double value, const char *reason)
{
    char reason_key[64];

    json_object_set_new(object, key, isfinite(value) ? json_real(value) : json_null());
    if (isfinite(value))
        return;
    snprintf(reason_key, sizeof reason_key, "%s_unavailable", key);
    json_object_set_new(object, reason_key, json_string(reason));
}

static json_t *row_of(const struct demo_job *job, const struct findings *findings, enum demo_measure measure,
                      enum demo_span span)
{
    static const char alone[] = "one recurrence alone has no spread";
    const struct paired *figure = &findings->figures[measure][span];
    const char *texts[] = {job->name, measures[measure].name, measures[measure].unit, measures[measure].basis,
                           span_names[span]};
    json_t *row = json_object();

    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        json_object_set_new(row, columns[i], json_string(texts[i]));
    json_object_set_new(row, "recurrences", json_integer((json_int_t)figure->count));
    json_object_set_new(row, "default_mean", json_real(figure->theirs / (double)figure->count));
    json_object_set_new(row, "chosen_mean", json_real(figure->ours / (double)figure->count));
    json_object_set_new(row, "change_percent", json_real(100.0 * figure->change));
    set_known(row, "change_low_percent", 100.0 * figure->low, alone);
    set_known(row, "change_high_percent", 100.0 * figure->high, alone);
    json_object_set_new(row, "claimed", json_string(findings_claims(findings, measure, span) ? "yes" : "no"));
    return row;
}

static json_t *rows_of(const struct demo_report *report)
{
    json_t *rows = json_array();

    for (size_t i = 0; i < DEMO_JOBS; i++) {
        for (int s = 0; s < DEMO_SPANS && report->findings[i].completed > 0; s++) {
            for (int m = 0; m < DEMO_MEASURES; m++)
                json_array_append_new(rows, row_of(&report->demo->jobs[i], &report->findings[i],
                                                   (enum demo_measure)m, (enum demo_span)s));
        }
    }
    return rows;
}

static unsigned batch_size_of(struct demo_choice choice)
{
    return (unsigned)DEMO_SMALLEST_BATCH << choice.batch;
}

static double limit_w_of(struct demo_choice choice)
{
    return GPU_LOWEST_W + GPU_LIMIT_STEP_W * (double)choice.limit;
}

static struct demo_choice default_of(const struct demo_job *job)
{
    return (struct demo_choice){job->default_batch, GPU_LIMITS - 1};
}

static void set_choice(json_t *object, const char *prefix, struct demo_choice choice)
{
    char key[64];

    snprintf(key, sizeof key, "%s_batch_size", prefix);
    json_object_set_new(object, key, json_integer(batch_size_of(choice)));
    snprintf(key, sizeof key, "%s_power_limit_w", prefix);
    json_object_set_new(object, key, json_real(limit_w_of(choice)));
}

static json_t *describe_job(const struct demo_job *job, const struct findings *findings)
{
    json_t *object = json_object();

    json_object_set_new(object, "job", json_string(job->name));
    set_choice(object, "default", default_of(job));
    json_object_set_new(object, "completed_recurrences", json_integer((json_int_t)findings->completed));
    json_object_set_new(object, "tries", json_integer((json_int_t)job->chosen.count));
    json_object_set_new(object, "claimed", json_boolean(findings_claim_any(findings)));
    json_object_set_new(object, "error", job->chosen.ended < 0 ? json_string(job->chosen.end) : json_null());
    if (job->chosen.ended == 0)
        json_object_set_new(object, "error_unavailable", json_string("the job went to its end"));
    set_known(object, "paid_off_after_recurrences", findings->paid_off > 0 ? (double)findings->paid_off : NAN,
              "the total score did not come to stay below the default's");
    if (findings->completed == 0)
        return object;
    set_choice(object, "chosen", findings->ours);
    json_object_set_new(object, "choices_measured", json_integer((json_int_t)findings->choices));
    json_object_set_new(object, "seeds_per_choice", json_integer(DEMO_CHECK_SEEDS));
    json_object_set_new(object, "rank", json_integer((json_int_t)findings->rank));
    json_object_set_new(object, "rank_shared_with", json_integer((json_int_t)findings->sharing));
    set_choice(object, "best", findings->best);
    set_known(object, "above_best_percent", 100.0 * findings->above.change, "a training failed");
    set_known(object, "above_best_low_percent", 100.0 * findings->above.low, "a training failed");
    set_known(object, "above_best_high_percent", 100.0 * findings->above.high, "a training failed");
    return object;
}

void report_json(FILE *out, const struct demo_report *report)
{
    const struct demo_plan *plan = &report->demo->plan;
    json_t *document = json_object(), *settings = json_object(), *jobs = json_array();

    json_object_set_new(settings, "policy", json_string(plan->policy));
    json_object_set_new(settings, "recurrences", json_integer((json_int_t)plan->recurrences));
    json_object_set_new(settings, "seed", json_integer(plan->seed));
    json_object_set_new(settings, "eta", json_real(DEMO_ETA));
    json_object_set_new(settings, "beta", json_real(DEMO_BETA));
    json_object_set_new(settings, "gpu", json_string(gpu_shape_name));
    json_object_set_new(settings, "target_accuracy", json_real((double)DEMO_TARGET / DIGITS_HELD_OUT));
    json_object_set_new(settings, "real", json_string("network, data, accuracy, epochs"));
    json_object_set_new(settings, "emulated", json_string("seconds and watts of an epoch"));
    for (size_t i = 0; i < DEMO_JOBS; i++)
        json_array_append_new(jobs, describe_job(&report->demo->jobs[i], &report->findings[i]));
    json_object_set_new(document, "schema", json_string(schema));
    json_object_set_new(document, "settings", settings);
    json_object_set_new(document, "jobs", jobs);
    json_object_set_new(document, "rows", rows_of(report));
    json_dumpf(document, out, JSON_INDENT(2) | JSON_REAL_PRECISION(17));
    fputs("\n", out);
    json_decref(document);
}

/* With as many digits as read back. */
static void put_number(FILE *out, double value)
{
    char text[32];

    for (int digits = 15; digits <= 17; digits++) {
        snprintf(text, sizeof text, "%.*g", digits, value);
        if (strtod(text, NULL) == value)
            break;
    }
    fputs(text, out);
}

void report_csv(FILE *out, const struct demo_report *report)
{
    json_t *rows = rows_of(report);
    const json_t *row, *value;
    size_t place;

    fputs("schema", out);
    for (size_t i = 0; i < sizeof columns / sizeof columns[0]; i++)
        fprintf(out, ",%s", columns[i]);
    fputs("\n", out);
    json_array_foreach(rows, place, row)
    {
        fputs(schema, out);
        for (size_t i = 0; i < sizeof columns / sizeof columns[0]; i++) {
            value = json_object_get(row, columns[i]);
            fputs(",", out);
            if (json_is_string(value))
                fprintf(out, strchr(json_string_value(value), ',') != NULL ? "\"%s\"" : "%s",
                        json_string_value(value));
            else if (json_is_integer(value))
                fprintf(out, "%lld", (long long)json_integer_value(value));
            else if (json_is_real(value))
                put_number(out, json_real_value(value));
        }
        fputs("\n", out);
    }
    json_decref(rows);
}

static void write_run(FILE *out, const struct demo_report *report, const struct demo_job *job,
                      const char *policy, const char *role, const struct demo_try *tries, size_t count)
{
    for (const struct demo_try *at = tries; at < tries + count; at++)
        fprintf(out, "%s,%s,%s,%u,%llu,%llu,%u,%.17g,%d,%.17g,%.17g,%.17g,%u,%.17g,%s\n", gpu_shape_name,
                job->name, policy, report->demo->plan.seed, (unsigned long long)at->recurrence,
                (unsigned long long)at->number, at->batch_size, at->power_limit_w, at->reached, at->energy_j,
                at->time_s, at->cost_j, at->epochs, (double)at->correct / DIGITS_HELD_OUT, role);
}

/* The columns of `flyball sim job`, then those that only a real training has. */
void report_tries(FILE *out, const struct demo_report *report)
{
    fputs("gpu,dataset,policy,seed,recurrence,try,batch_size,power_limit_w,reached,energy_j,time_s,"
          "cost_j,epochs,accuracy,role\n",
          out);
    for (size_t i = 0; i < DEMO_JOBS; i++) {
        const struct demo_job *job = &report->demo->jobs[i];

        write_run(out, report, job, report->demo->plan.policy, "chosen", job->chosen.tries,
                  job->chosen.count);
        write_run(out, report, job, "default", "baseline", job->baseline.tries, job->baseline.count);
        write_run(out, report, job, "fixed", "check", job->checks[0][0],
                  (size_t)DEMO_BATCHES * GPU_LIMITS * DEMO_CHECK_SEEDS);
    }
}

/* "1st", "2nd", "11th" */
static const char *ordinal_end(size_t number)
{
    if (number % 100 / 10 == 1)
        return "th";
    return number % 10 == 1 ? "st" : number % 10 == 2 ? "nd" : number % 10 == 3 ? "rd" : "th";
}

/* Writes a percentage with a sign and one decimal; a value that rounds to zero is +0.0. */
static char *signed_percent(double fraction, char text[PLACE_MAX])
{
    double percent = 100.0 * fraction;

    snprintf(text, PLACE_MAX, "%+.1f", fabs(percent) < 0.05 ? 0.0 : percent);
    return text;
}

/* "[-0.5, +2.1]" */
static char *interval_of(const struct paired *paired, char text[INTERVAL_MAX])
{
    char low[PLACE_MAX], high[PLACE_MAX];

    if (isfinite(paired->low))
        snprintf(text, INTERVAL_MAX, "[%s, %s]", signed_percent(paired->low, low),
                 signed_percent(paired->high, high));
    else
        snprintf(text, INTERVAL_MAX, "[unavailable]");
    return text;
}

static void put_figure(FILE *out, const struct findings *findings, enum demo_measure measure,
                       enum demo_span span)
{
    const struct paired *figure = &findings->figures[measure][span];
    double scale = measures[measure].people_scale / (double)figure->count;
    const char *verdict = "no change shown";
    char name[PLACE_MAX], change[PLACE_MAX], interval[INTERVAL_MAX];

    if (findings_claims(findings, measure, span))
        verdict = "saved";
    else if (figure->low > 0.0)
        verdict = measure == DEMO_ACCURACY ? "higher" : "more than the default";
    else if (figure->high < 0.0)
        verdict = measure == DEMO_ACCURACY ? "lower" : "less, but not claimed: score";
    snprintf(name, sizeof name, "%s, %s %zu", measures[measure].people_name, span_names[span], figure->count);
    fprintf(out, "%s  %-19s %8.2f %-2s  %8.2f %-2s  ", measures[measure].gutter, name, figure->theirs * scale,
            measures[measure].people_unit, figure->ours * scale, measures[measure].people_unit);
    fprintf(out, "%7s %%  %-16s %s\n", signed_percent(figure->change, change), interval_of(figure, interval),
            verdict);
}

static void put_choice(FILE *out, struct demo_choice choice)
{
    fprintf(out, "batch %u, %g W", batch_size_of(choice), limit_w_of(choice));
}

static void put_check(FILE *out, const struct findings *findings)
{
    char change[PLACE_MAX], interval[INTERVAL_MAX];

    fprintf(out, "BOTH  all %zu choices x %d fresh seeds: ours is %zu%s by score", findings->choices,
            DEMO_CHECK_SEEDS, findings->rank, ordinal_end(findings->rank));
    if (findings->sharing > 0)
        fprintf(out, ", with %zu like it", findings->sharing);
    if (findings->rank > 1) {
        fprintf(out, ", %s %% %s above the best, ", signed_percent(findings->above.change, change),
                interval_of(&findings->above, interval));
        put_choice(out, findings->best);
    }
    fputs("\n", out);
}

static void put_end(FILE *out, const struct findings *findings)
{
    if (findings->paid_off > 0)
        fprintf(out, "BOTH  exploration paid off after recurrence %zu\n", findings->paid_off);
    else
        fputs("BOTH  exploration did not pay off: the total score is not below the default's\n", out);
    put_check(out, findings);
    if (!findings_claim_any(findings))
        fputs("      No saving of score beyond chance: nothing claimed.\n", out);
}

/* Writes it as one word of a shell command. */
static void put_word(FILE *out, const char *word)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./+:@%,";

    if (word[strspn(word, plain)] == '\0') {
        fputs(word, out);
        return;
    }
    fputs("'", out);
    for (; *word != '\0'; word++)
        fputs(*word == '\'' ? "'\\''" : (char[]){*word, '\0'}, out);
    fputs("'", out);
}

/* "flyball job show digits --store flyball-demo/store.sqlite"; not of an address, which may hold a password.
 */
static void put_log_command(FILE *out, const struct demo_report *report, const char *words)
{
    if (strstr(report->demo->plan.store, "://") != NULL)
        return;
    put_word(out, report->command);
    fprintf(out, " %s --store ", words);
    put_word(out, report->demo->plan.store);
}

static void put_job(FILE *out, const struct demo_report *report, size_t number)
{
    const struct demo_job *job = &report->demo->jobs[number];
    const struct findings *findings = &report->findings[number];

    fprintf(out, "\n      Job %s: %s\n", job->name,
            number == 0 ? "by default a large batch at the highest limit"
                        : "its default is already the best choice");
    fprintf(out, "REAL  %zu of %llu recurrences reached %.1f %%, in %zu tries\n", findings->completed,
            (unsigned long long)report->demo->plan.recurrences, 100.0 * DEMO_TARGET / DIGITS_HELD_OUT,
            job->chosen.count);
    if (job->chosen.ended < 0)
        fprintf(out, "      ended early: %s\n", job->chosen.end);
    if (findings->completed == 0)
        return;
    fputs("BOTH  now ", out);
    put_choice(out, findings->ours);
    fputs("   (default ", out);
    put_choice(out, default_of(job));
    fprintf(out, ")\n      %-19s %8s     %8s      change   95 %% interval\n", "per recurrence", "default",
            report->demo->plan.policy);
    for (int s = 0; s < DEMO_SPANS; s++) {
        for (int m = 0; m < DEMO_MEASURES; m++)
            put_figure(out, findings, (enum demo_measure)m, (enum demo_span)s);
    }
    put_end(out, findings);
}

static void put_change(FILE *out, const struct fly_job_range *saving, const char *what)
{
    double sign = saving->value < 0.0 ? -100.0 : 100.0;
    double one = sign * saving->low, other = sign * saving->high;

    fprintf(out, "%.1f %% %s %s (%.1f to %.1f %%)", sign * saving->value,
            saving->value < 0.0 ? "more" : "less", what, fmin(one, other), fmax(one, other));
}

/* What 'flyball job show' says of the job, from its log. */
static void put_saving(FILE *out, const struct demo_job *job)
{
    const struct fly_job_saving *saving = &job->saving;

    if (saving->known) {
        put_change(out, &saving->energy, "energy");
        fputs(", ", out);
        put_change(out, &saving->time, "time");
    } else if (saving->baseline.runs < RUNS_NEEDED) {
        fprintf(out, "saving unknown; your default was measured in %llu of %d runs needed",
                (unsigned long long)saving->baseline.runs, RUNS_NEEDED);
    } else if (saving->tuned.runs < RUNS_NEEDED) {
        fprintf(out, "saving unknown; what was chosen was measured in %llu of %d runs needed",
                (unsigned long long)saving->tuned.runs, RUNS_NEEDED);
    } else {
        fprintf(out, "saving unknown; %s", job->doubt);
    }
}

/* A line for each job: what its log says is saved, and by which choice. */
static void put_answer(FILE *out, const struct demo_report *report, size_t number)
{
    const struct demo_job *job = &report->demo->jobs[number];
    const struct findings *findings = &report->findings[number];

    fprintf(out, "%s: ", job->name);
    put_saving(out, job);
    if (findings->completed > 0) {
        fputs(": now ", out);
        put_choice(out, findings->ours);
        fputs(", by default ", out);
        put_choice(out, default_of(job));
    }
    if (job->saving.known && job->saving.energy.low <= 0.0 && job->saving.energy.high >= 0.0)
        fputs("; nothing is claimed", out);
    if (job->chosen.ended < 0)
        fprintf(out, "; ended early: %s", job->chosen.end);
    fputs("\n", out);
}

/* How good the choice is, and what the search took. */
static void put_brief_check(FILE *out, const struct findings *findings)
{
    if (findings->completed == 0)
        return;
    fprintf(out, "  Of all %zu choices, each trained with %d fresh seeds, ours is the %zu%s by score",
            findings->choices, DEMO_CHECK_SEEDS, findings->rank, ordinal_end(findings->rank));
    if (findings->rank > 1)
        fprintf(out, ", %.1f %% above the best", 100.0 * findings->above.change);
    if (findings->paid_off > 0)
        fprintf(out, "; exploring paid off after run %zu", findings->paid_off);
    fputs(".\n", out);
}

/* Six lines. */
static void put_brief(FILE *out, const struct demo_report *report)
{
    put_answer(out, report, 0);
    put_brief_check(out, &report->findings[0]);
    put_answer(out, report, 1);
    fprintf(
        out,
        "  REAL: network, data, accuracy, epochs. EMULATED: seconds and watts, of a GPU of the shape %s.\n"
        "The same from the log: ",
        gpu_shape_name);
    put_log_command(out, report, "job show digits");
    fprintf(out, "\nPicture: %s   Details: ", report->picture_path);
    put_word(out, report->command);
    fputs(" demo -v\n", out);
}

static void put_whole(FILE *out, const struct demo_report *report)
{
    fprintf(out,
            "\nREAL  network, data, accuracy, epochs: a small network learns 1,437 images of digits.\n"
            "EMUL  seconds and watts of an epoch: a GPU of the shape %s, a load of 2.5 ms a sample.\n"
            "BOTH  real epochs, emulated seconds and watts: energy, time and score.\n",
            gpu_shape_name);
    for (size_t i = 0; i < DEMO_JOBS; i++)
        put_job(out, report, i);
    fprintf(out, "\n      Recompute: %s   Picture: %s   More: ", report->tries_path, report->picture_path);
    put_word(out, report->command);
    fputs(" help demo\n      The log: ", out);
    put_log_command(out, report, "job why digits");
    fputs("\n", out);
}

void report_text(FILE *out, const struct demo_report *report, bool whole)
{
    put_brief(out, report);
    if (whole)
        put_whole(out, report);
}
