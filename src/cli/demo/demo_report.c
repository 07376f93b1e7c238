/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/demo/demo_report.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#include "base/error.h"
#include "cli/views/saving_words.h"
#include "shapes/json_number.h"

enum { TEXT_MAX = 1 << 16, PLACE_MAX = 32, INTERVAL_MAX = 80 };

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

static const struct meaning columns[] = {
    {"job", "job", MEANING_TEXT, 0, NULL, MEANING_FACT, "Name of the job."},
    {"figure", "figure", MEANING_TEXT, 0, NULL, MEANING_FACT,
     "What is compared: energy, time, cost (the score) or accuracy."},
    {"unit", "unit", MEANING_TEXT, 0, NULL, MEANING_FACT, "Unit of the two means."},
    {"basis", "basis", MEANING_TEXT, 0, NULL, MEANING_FACT, "What of the figure is real, and what emulated."},
    {"span", "span", MEANING_TEXT, 0, NULL, MEANING_FACT,
     "'last' for the last recurrences, 'all' for the whole run."},
    {"recurrences", "recurrences", MEANING_WHOLE, 0, NULL, MEANING_COUNTER,
     "Recurrences that the means are of."},
    {"default_mean", "default", MEANING_REAL, 3, NULL, MEANING_GAUGE,
     "Mean with the default batch size at the highest limit."},
    {"chosen_mean", "chosen", MEANING_REAL, 3, NULL, MEANING_GAUGE, "Mean with what the policy chose."},
    {"change_percent", "change (%)", MEANING_REAL, 1, "%", MEANING_GAUGE,
     "Change from the one to the other."},
    {"change_low_percent", "low (%)", MEANING_REAL, 1, "%", MEANING_GAUGE,
     "Lower end of the 95 % interval of the change."},
    {"change_high_percent", "high (%)", MEANING_REAL, 1, "%", MEANING_GAUGE,
     "Upper end of the 95 % interval of the change."},
    {"claimed", "claimed", MEANING_TEXT, 0, NULL, MEANING_FACT,
     "Whether the change is claimed as a saving: yes or no."},
};
const struct quantities demo_quantities = {"a figure of a job", QUANTITIES(columns)};

static void add_figure(struct table *table, const char *job, const struct findings *findings,
                       enum demo_measure measure, enum demo_span span)
{
    static const char alone[] = "one recurrence alone has no spread";
    const struct paired *figure = &findings->figures[measure][span];

    table_add_text(table, job);
    table_add_text(table, measures[measure].name);
    table_add_text(table, measures[measure].unit);
    table_add_text(table, measures[measure].basis);
    table_add_text(table, span_names[span]);
    table_add_integer(table, (int64_t)figure->count);
    table_add_real(table, figure->theirs / (double)figure->count);
    table_add_real(table, figure->ours / (double)figure->count);
    table_add_real(table, 100.0 * figure->change);
    table_add_real_or(table, 100.0 * figure->low, NULL, alone);
    table_add_real_or(table, 100.0 * figure->high, NULL, alone);
    table_add_text(table, findings_claims(findings, measure, span) ? "yes" : "no");
}

static void set_choice(json_t *object, const struct demo_job *job, const char *prefix, size_t batch,
                       size_t limit)
{
    char key[64];

    snprintf(key, sizeof key, "%s_batch_size", prefix);
    json_object_set_new(object, key, json_integer(job->workload.spec.batches[batch].size));
    snprintf(key, sizeof key, "%s_power_limit_w", prefix);
    json_object_set_new(object, key, json_real(job->workload.batches[batch].points[limit].limit_w));
}

static json_t *describe_job(const struct demo_job *job, const struct findings *findings)
{
    json_t *object = json_object();

    json_object_set_new(object, "job", json_string(job->name));
    set_choice(object, job, "default", job->workload.spec.default_batch, demo_limit_count(job) - 1);
    json_object_set_new(object, "completed_recurrences", json_integer((json_int_t)findings->completed));
    json_object_set_new(object, "tries", json_integer((json_int_t)job->chosen.count));
    json_object_set_new(object, "claimed", json_boolean(findings_claim_any(findings)));
    json_object_set_new(object, "error",
                        job->chosen.ended < 0 ? json_string(job->chosen.end.text) : json_null());
    if (job->chosen.ended == 0)
        json_object_set_new(object, "error_unavailable", json_string("the job went to its end"));
    json_known_set(object, "paid_off_after_recurrences",
                   findings->paid_off > 0 ? (double)findings->paid_off : NAN,
                   "the total score did not come to stay below the default's");
    if (findings->completed == 0)
        return object;
    set_choice(object, job, "chosen", findings->ours.batch, findings->ours.limit);
    json_object_set_new(object, "choices_measured", json_integer((json_int_t)findings->choices));
    json_object_set_new(object, "seeds_per_choice", json_integer(DEMO_CHECK_SEEDS));
    json_object_set_new(object, "rank", json_integer((json_int_t)findings->rank));
    json_object_set_new(object, "rank_shared_with", json_integer((json_int_t)findings->sharing));
    set_choice(object, job, "best", findings->best.batch, findings->best.limit);
    json_known_set(object, "above_best_percent", 100.0 * findings->above.change, "a training failed");
    json_known_set(object, "above_best_low_percent", 100.0 * findings->above.low, "a training failed");
    json_known_set(object, "above_best_high_percent", 100.0 * findings->above.high, "a training failed");
    return object;
}

static struct table *make_table(const struct demo_report *report)
{
    const struct demo_plan *plan = &report->demo->plan;
    struct table *table = table_new("flyball.demo/1", columns, sizeof columns / sizeof columns[0]);
    json_t *settings = json_object(), *jobs = json_array();

    json_object_set_new(settings, "policy", json_string(report->policy));
    json_object_set_new(settings, "recurrences", json_integer((json_int_t)plan->recurrences));
    json_object_set_new(settings, "seed", json_integer(plan->seed));
    json_object_set_new(settings, "eta", json_real(demo_eta));
    json_object_set_new(settings, "beta", json_real(demo_beta));
    json_object_set_new(settings, "gpu", json_string(demo_gpu));
    json_object_set_new(settings, "target_accuracy", json_real((double)DEMO_TARGET / DIGITS_HELD_OUT));
    json_object_set_new(settings, "real", json_string("network, data, accuracy, epochs"));
    json_object_set_new(settings, "emulated", json_string("seconds and watts of an epoch"));
    for (size_t i = 0; i < DEMO_JOBS; i++) {
        const struct findings *findings = &report->findings[i];

        json_array_append_new(jobs, describe_job(&report->demo->jobs[i], findings));
        for (int s = 0; s < DEMO_SPANS && findings->completed > 0; s++) {
            for (int m = 0; m < DEMO_MEASURES; m++)
                add_figure(table, report->demo->jobs[i].name, findings, (enum demo_measure)m,
                           (enum demo_span)s);
        }
    }
    table_member(table, "settings", settings);
    table_member(table, "jobs", jobs);
    return table;
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

static void put_figure(struct buffer *text, const struct findings *findings, enum demo_measure measure,
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
    buffer_printf(text, "%s  %-19s %8.2f %-2s  %8.2f %-2s  ", measures[measure].gutter, name,
                  figure->theirs * scale, measures[measure].people_unit, figure->ours * scale,
                  measures[measure].people_unit);
    buffer_printf(text, "%7s %%  %-16s %s\n", signed_percent(figure->change, change),
                  interval_of(figure, interval), verdict);
}

static void put_choice(struct buffer *text, const struct demo_job *job, struct demo_choice choice)
{
    buffer_printf(text, "batch %u, %g W", job->workload.spec.batches[choice.batch].size,
                  job->workload.batches[choice.batch].points[choice.limit].limit_w);
}

static void put_check(struct buffer *text, const struct demo_job *job, const struct findings *findings)
{
    char change[PLACE_MAX], interval[INTERVAL_MAX];

    buffer_printf(text, "BOTH  all %zu choices x %d fresh seeds: ours is %zu%s by score", findings->choices,
                  DEMO_CHECK_SEEDS, findings->rank, ordinal_end(findings->rank));
    if (findings->sharing > 0)
        buffer_printf(text, ", with %zu like it", findings->sharing);
    if (findings->rank > 1) {
        buffer_printf(text, ", %s %% %s above the best, ", signed_percent(findings->above.change, change),
                      interval_of(&findings->above, interval));
        put_choice(text, job, findings->best);
    }
    buffer_puts(text, "\n");
}

static void put_end(struct buffer *text, const struct demo_job *job, const struct findings *findings)
{
    if (findings->paid_off > 0)
        buffer_printf(text, "BOTH  exploration paid off after recurrence %zu\n", findings->paid_off);
    else
        buffer_puts(text, "BOTH  exploration did not pay off: the total score is not below the default's\n");
    put_check(text, job, findings);
    if (!findings_claim_any(findings))
        buffer_puts(text, "      No saving of score beyond chance: nothing claimed.\n");
}

/* Writes it as one word of a shell command. */
static void put_word(struct buffer *text, const char *word)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./+:@%,";

    if (word[strspn(word, plain)] == '\0') {
        buffer_puts(text, word);
        return;
    }
    buffer_puts(text, "'");
    for (; *word != '\0'; word++)
        buffer_puts(text, *word == '\'' ? "'\\''" : (char[]){*word, '\0'});
    buffer_puts(text, "'");
}

/*
 * Returns the program as the user just called it, so that the printed command works whether
 * Flyball is installed or not.
 */
static const char *invoked_as(void)
{
    return strchr(program_invocation_name, '/') != NULL ? program_invocation_name : "flyball";
}

/* "flyball job show digits --store flyball-demo/store.sqlite"; not of an address, which may hold a password.
 */
static void put_log_command(struct buffer *text, const struct demo_report *report, const char *words)
{
    if (strstr(report->store, "://") != NULL)
        return;
    put_word(text, invoked_as());
    buffer_printf(text, " %s --store ", words);
    put_word(text, report->store);
}

static void put_job(struct buffer *text, const struct demo_report *report, size_t number)
{
    const struct demo_job *job = &report->demo->jobs[number];
    const struct findings *findings = &report->findings[number];
    const struct demo_choice standard = {job->workload.spec.default_batch, demo_limit_count(job) - 1};

    buffer_printf(text, "\n      Job %s: %s\n", job->name,
                  number == 0 ? "by default a large batch at the highest limit"
                              : "its default is already the best choice");
    buffer_printf(text, "REAL  %zu of %llu recurrences reached %.1f %%, in %zu tries\n", findings->completed,
                  (unsigned long long)report->demo->plan.recurrences, 100.0 * DEMO_TARGET / DIGITS_HELD_OUT,
                  job->chosen.count);
    if (job->chosen.ended < 0)
        buffer_printf(text, "      ended early: %s\n", job->chosen.end.text);
    if (findings->completed == 0)
        return;
    buffer_puts(text, "BOTH  now ");
    put_choice(text, job, findings->ours);
    buffer_puts(text, "   (default ");
    put_choice(text, job, standard);
    buffer_printf(text, ")\n      %-19s %8s     %8s      change   95 %% interval\n", "per recurrence",
                  "default", report->policy);
    for (int s = 0; s < DEMO_SPANS; s++) {
        for (int m = 0; m < DEMO_MEASURES; m++)
            put_figure(text, findings, (enum demo_measure)m, (enum demo_span)s);
    }
    put_end(text, job, findings);
}

/* What 'flyball job show' says of the job, from its log. */
static void put_saving(struct buffer *text, const struct job_savings *savings)
{
    if (!savings->known) {
        buffer_puts(text, "saving ");
        saving_words_unknown(text, savings);
        return;
    }
    saving_words_change(text, &savings->energy, "energy");
    buffer_puts(text, ", ");
    saving_words_change(text, &savings->time, "time");
}

/* A line for each job: what its log says is saved, and by which choice. */
static void put_answer(struct buffer *text, const struct demo_report *report, size_t number)
{
    const struct demo_job *job = &report->demo->jobs[number];
    const struct findings *findings = &report->findings[number];
    const struct demo_choice standard = {job->workload.spec.default_batch, demo_limit_count(job) - 1};

    buffer_printf(text, "%s: ", job->name);
    put_saving(text, &job->savings);
    if (findings->completed > 0) {
        buffer_puts(text, ": now ");
        put_choice(text, job, findings->ours);
        buffer_puts(text, ", by default ");
        put_choice(text, job, standard);
    }
    if (job->savings.known && saving_words_by_chance(&job->savings.energy))
        buffer_puts(text, "; nothing is claimed");
    if (job->chosen.ended < 0)
        buffer_printf(text, "; ended early: %s", job->chosen.end.text);
    buffer_puts(text, "\n");
}

/* How good the choice is, and what the search took. */
static void put_brief_check(struct buffer *text, const struct findings *findings)
{
    if (findings->completed == 0)
        return;
    buffer_printf(text, "  Of all %zu choices, each trained with %d fresh seeds, ours is the %zu%s by score",
                  findings->choices, DEMO_CHECK_SEEDS, findings->rank, ordinal_end(findings->rank));
    if (findings->rank > 1)
        buffer_printf(text, ", %.1f %% above the best", 100.0 * findings->above.change);
    if (findings->paid_off > 0)
        buffer_printf(text, "; exploring paid off after run %zu", findings->paid_off);
    buffer_puts(text, ".\n");
}

/* Six lines. */
static void put_brief(struct buffer *text, const struct demo_report *report)
{
    put_answer(text, report, 0);
    put_brief_check(text, &report->findings[0]);
    put_answer(text, report, 1);
    buffer_printf(
        text,
        "  REAL: network, data, accuracy, epochs. EMULATED: seconds and watts, of a GPU of the shape %s.\n"
        "The same from the log: ",
        demo_gpu);
    put_log_command(text, report, "job show digits");
    buffer_printf(text, "\nPicture: %s   Details: ", report->picture_path);
    put_word(text, invoked_as());
    buffer_puts(text, " demo -v\n");
}

static void put_whole(struct buffer *text, const struct demo_report *report)
{
    buffer_printf(text,
                  "\nREAL  network, data, accuracy, epochs: a small network learns 1,437 images of digits.\n"
                  "EMUL  seconds and watts of an epoch: a GPU of the shape %s, a load of 2.5 ms a sample.\n"
                  "BOTH  real epochs, emulated seconds and watts: energy, time and score.\n",
                  demo_gpu);
    for (size_t i = 0; i < DEMO_JOBS; i++)
        put_job(text, report, i);
    buffer_printf(text, "\n      Recompute: %s   Picture: %s   More: ", report->tries_path,
                  report->picture_path);
    put_word(text, invoked_as());
    buffer_puts(text, " help demo\n      The log: ");
    put_log_command(text, report, "job why digits");
    buffer_puts(text, "\n");
}

static int emit_text(const struct cli_call *call, const struct demo_report *report,
                     struct fly_error *out_error)
{
    struct buffer text;
    int code;

    buffer_init(&text, TEXT_MAX);
    put_brief(&text, report);
    if (cli_flag(call, "verbose"))
        put_whole(&text, report);
    code = text.error < 0 ? error_no_memory(out_error) : cli_emit_text(call, text.data, out_error);
    buffer_deinit(&text);
    return code;
}

int demo_report_emit(const struct cli_call *call, const struct demo_report *report,
                     struct fly_error *out_error)
{
    struct table *table;
    int code;

    if (cli_format(call) == TABLE_FORMAT_TABLE)
        return emit_text(call, report, out_error);
    table = make_table(report);
    code = cli_emit_table(call, table, out_error);
    table_free(table);
    return code;
}
