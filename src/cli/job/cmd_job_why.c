/* SPDX-License-Identifier: Apache-2.0 */
/* Says why a trial was chosen: the sentence and the numbers that the log recorded at the time. */
#include <ctype.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "base/buffer.h"
#include "base/file/atomic_file.h"
#include "base/math/portable_math.h"
#include "base/number.h"
#include "base/text/iso_time.h"
#include "cli/job/job_commands.h"
#include "cli/job/job_view.h"
#include "cli/kit/amount.h"
#include "cli/kit/picture.h"
#include "cli/options/output_path.h"
#include "cli/options/store_option.h"
#include "job/core/decision_numbers.h"
#include "job/core/trial_past.h"
#include "job/past/history.h"
#include "shapes/table.h"

/*
 * The belief with which a trial was chosen, as a picture: what a run of each batch size was expected to cost,
 * with bands that hold the mean cost with a probability of 50 and 90 %, the trials before it, and the choice.
 */
struct why_plot {
    const struct decision_outlook *outlook;
    const struct job_history *history;
    uint64_t trial;  /* its number */
    uint32_t chosen; /* its batch size */
};

enum { MEMORY_MAX = 64 << 20 };

/* Normal deviates within which 90 and 50 % lie. */
static const double deviate_90 = 1.6448536269514722, deviate_50 = 0.6744897501960817;

/* Above this ratio of the largest to the smallest expected score the axis is logarithmic. */
static const double logarithmic_from = 8.0;

enum { BELIEF_90, BELIEF_50, EXPECTED, REACHED, STOPPED, CHOSEN, ROWS };
static const struct chart_series looks[ROWS] = {
    [BELIEF_90] = {.name = "90 % of the belief", .kind = CHART_BAND, .color = SVG_BLUE},
    [BELIEF_50] = {.name = "50 %", .kind = CHART_BAND, .color = SVG_BLUE},
    [EXPECTED] = {.name = "expected", .kind = CHART_LINE, .color = SVG_BLUE},
    [REACHED] = {.name = "trials", .kind = CHART_POINTS, .color = SVG_GREEN, .shape = SVG_CIRCLE},
    [STOPPED] = {.name = "stopped: it takes more",
                 .kind = CHART_POINTS,
                 .color = SVG_ORANGE,
                 .shape = SVG_TRIANGLE,
                 .radius = 4.5},
    [CHOSEN] = {.name = "chosen", .kind = CHART_POINTS, .color = SVG_PURPLE, .shape = SVG_STAR, .radius = 7},
};

struct drawing {
    const struct why_plot *plot;
    struct picture picture;
    struct picture_panel *panel;
    struct picture_row *rows[ROWS];
};

static void add_band(struct drawing *drawing, int row, const struct decision_candidate *at, double deviate)
{
    double expected = at->expected_cost_j, factor = portable_exp(deviate * at->doubt);

    picture_between(&drawing->picture, drawing->rows[row], at->batch_size, expected / factor,
                    expected * factor);
}

/* Adds the curve and its bands, and the point of the choice. */
static void add_belief(struct drawing *drawing)
{
    const struct decision_outlook *outlook = drawing->plot->outlook;

    for (size_t i = 0; i < outlook->candidate_count; i++) {
        const struct decision_candidate *at = &outlook->candidates[i];
        double expected = at->expected_cost_j;

        add_band(drawing, BELIEF_90, at, deviate_90);
        add_band(drawing, BELIEF_50, at, deviate_50);
        picture_point(&drawing->picture, drawing->rows[EXPECTED], at->batch_size, expected, NULL);
        if (at->batch_size != drawing->plot->chosen)
            continue;
        picture_point(&drawing->picture, drawing->rows[CHOSEN], at->batch_size, expected, NULL);
        picture_note(drawing->panel, at->batch_size, expected,
                     picture_text(&drawing->picture, "chosen: batch %u", at->batch_size));
    }
}

/* Returns the trial; NULL if it is not on record. */
static const struct job_row *row_of(const struct why_plot *plot)
{
    const struct job_history *history = plot->history;

    for (size_t i = 0; i < history->count; i++) {
        if (history->rows[i].trial.trial == plot->trial)
            return &history->rows[i];
    }
    return NULL;
}

/* Returns whether the belief at the choice of `chosen` rests on that trial: it ended with a score before. */
static bool counts(const struct job_row *row, const struct job_row *chosen)
{
    return row->machine == chosen->machine && row->revision == chosen->revision &&
           row->trial.trial < chosen->trial.trial && !row->running && isfinite(row->trial.cost_j) &&
           (row->outcome == TRIAL_REACHED || row->outcome == TRIAL_STOPPED ||
            row->outcome == TRIAL_NOT_REACHED);
}

/* Adds the trials on that hardware, under that revision, that had a score before this one was chosen. */
static void add_trials(struct drawing *drawing)
{
    const struct job_history *history = drawing->plot->history;
    const struct job_row *chosen = row_of(drawing->plot);

    for (size_t i = 0; i < history->count && chosen != NULL; i++) {
        const struct job_row *row = &history->rows[i];
        bool reached = row->outcome == TRIAL_REACHED;

        if (counts(row, chosen))
            picture_point(&drawing->picture, drawing->rows[reached ? REACHED : STOPPED],
                          row->trial.batch_size, row->trial.cost_j,
                          picture_text(&drawing->picture, "trial %" PRIu64 ", batch %u: a score of %s%.*f",
                                       row->trial.trial, row->trial.batch_size, reached ? "" : "more than ",
                                       table_decimals(MEANING_DIGITS(3), row->trial.cost_j),
                                       row->trial.cost_j));
    }
}

/* Begins the picture, with a tick for each batch size. */
static void begin(struct drawing *drawing)
{
    const struct decision_outlook *outlook = drawing->plot->outlook;
    double low = INFINITY, high = 0.0;
    double *sizes;

    picture_begin(&drawing->picture, MEMORY_MAX);
    sizes = arena_alloc(&drawing->picture.arena, outlook->candidate_count + 1, sizeof sizes[0]);
    for (size_t i = 0; i < outlook->candidate_count; i++) {
        const struct decision_candidate *at = &outlook->candidates[i];
        double factor = portable_exp(deviate_90 * at->doubt);

        low = fmin(low, at->expected_cost_j / factor);
        high = fmax(high, at->expected_cost_j * factor);
        if (sizes != NULL)
            sizes[i] = at->batch_size;
    }
    drawing->panel =
        picture_panel(&drawing->picture,
                      &(struct chart_panel){.height = 340,
                                            .x = {.label = "batch size",
                                                  .logarithmic = true,
                                                  .ticks = sizes,
                                                  .tick_count = sizes != NULL ? outlook->candidate_count : 0},
                                            .y = {.label = "score to the target",
                                                  .logarithmic = high > logarithmic_from * low}});
    for (int i = 0; i < ROWS; i++)
        drawing->rows[i] = picture_row(&drawing->picture, drawing->panel, &looks[i]);
}

/* Draws it into the open file and commits that, or discards it on failure. */
static int why_plot_commit(const struct why_plot *plot, struct atomic_file *file, struct fly_error *out_error)
{
    struct drawing drawing = {.plot = plot};
    size_t stopped;

    begin(&drawing);
    add_belief(&drawing);
    add_trials(&drawing);
    stopped = drawing.rows[STOPPED]->series.count;
    return picture_commit(
        &drawing.picture,
        picture_text(&drawing.picture, "%.80s: what was believed before trial %" PRIu64,
                     plot->history->definition.name, plot->trial),
        picture_text(
            &drawing.picture,
            "Expected score of a run of each of %zu batch sizes, with bands of 50 and 90 %% belief, and "
            "%zu trials before, %zu of them stopped. Batch size %u was chosen; %u was the best known.",
            plot->outlook->candidate_count, drawing.rows[REACHED]->series.count + stopped, stopped,
            plot->chosen, plot->outlook->best_batch_size),
        file, out_error);
}

enum { TEXT_MAX = 1 << 16, TITLE_MAX = 160, HISTORY_MAX = 512 << 20 };

static const struct cli_option options[] = {
    {.name = "trial",
     .type = CLI_INTEGER,
     .placeholder = "N",
     .minimum = 1,
     .maximum = 1e12,
     .help = "The trial to explain; if not given, the newest."},
    {.name = "svg",
     .type = CLI_TEXT,
     .placeholder = "FILE",
     .help =
         "Draw what was believed of each batch size, with bands of 50 and 90 %, the trials before and the "
         "choice into this SVG file; for policies that model scores, as bayes does."},
};

static const struct meaning columns[] = {
    {"batch_size", "batch", MEANING_WHOLE, 0, NULL, MEANING_FACT, "Global batch size."},
    {"trials", "trials", MEANING_WHOLE, 0, NULL, MEANING_COUNTER,
     "Trials with this batch size that were known when it was decided."},
    {"reached", "reached", MEANING_WHOLE, 0, NULL, MEANING_COUNTER, "Those that reached the target."},
    {"crashed", "crashed", MEANING_WHOLE, 0, NULL, MEANING_COUNTER, "Those that crashed."},
    {"mean_cost_j", "mean score", MEANING_REAL, MEANING_DIGITS(3), "J", MEANING_GAUGE,
     "Mean score of those that reached the target."},
    {"mean_energy_j", "mean energy (J)", MEANING_REAL, MEANING_DIGITS(3), "J", MEANING_GAUGE,
     "Mean energy of those that reached the target."},
    {"mean_time_s", "mean time (s)", MEANING_REAL, MEANING_DIGITS(3), "s", MEANING_GAUGE,
     "Mean time of those that reached the target."},
};
static const struct quantities quantities = {"a batch size of the job", QUANTITIES(columns)};

static const struct meaning outlook_columns[] = {
    {"batch_size", "batch", MEANING_WHOLE, 0, NULL, MEANING_FACT, "Global batch size."},
    {"expected_cost_j", "expected score", MEANING_REAL, MEANING_DIGITS(4), "J", MEANING_GAUGE,
     "Expected score of a run to the target."},
    {"doubt_percent", "doubt (%)", MEANING_REAL, MEANING_DIGITS(2), "%", MEANING_GAUGE,
     "Standard deviation of what is believed of the mean score."},
    {"trial_cost_j", "trial's score", MEANING_REAL, MEANING_DIGITS(4), "J", MEANING_GAUGE,
     "Expected score of a trial, and of what makes the model when it is stopped."},
    {"stop_cost_j", "stopped at", MEANING_REAL, MEANING_DIGITS(4), "J", MEANING_GAUGE,
     "Score at which it is stopped."},
    {"gain_j", "saves each", MEANING_REAL, MEANING_DIGITS(3), "J", MEANING_GAUGE,
     "Expected score saved in each following recurrence."},
    {"worth_j", "worth", MEANING_REAL, MEANING_DIGITS(3), "J", MEANING_GAUGE,
     "What it saves in all of them, less what it takes beyond the best; above 0 it is tried."},
};

struct why {
    const char *job;
    uint64_t trial;
    uint32_t max_epochs; /* of the job */
    struct trial_past past;
    struct decision_numbers numbers;
};

/* Gives the trial that --trial or the second operand names; 0 for none. */
static int read_number(const struct cli_call *call, uint64_t *out_trial, struct fly_error *out_error)
{
    const char *operand = cli_operand_count(call) > 1 ? cli_operand(call, 1) : NULL;

    *out_trial = cli_set(call, "trial") ? (uint64_t)cli_integer(call, "trial") : 0;
    if (operand == NULL)
        return 0;
    if (*out_trial != 0)
        return cli_usage(call, out_error, "the trial is named twice, by --trial and by '%s'", operand);
    return number_parse_u64(operand, INT64_MAX, out_trial) && *out_trial > 0
               ? 0
               : cli_usage(call, out_error, "'%s' is no trial's number; expected a whole number from 1",
                           operand);
}

static int read_trial(const struct cli_call *call, const struct jobs *jobs, struct why *why,
                      struct fly_error *out_error)
{
    int code = read_number(call, &why->trial, out_error);

    return code < 0 ? code
                    : job_trial_read(jobs, why->job, why->trial, &why->trial, &why->max_epochs, &why->past,
                                     out_error);
}

static double startup_energy_j(const struct trial_past *past)
{
    return past->ended ? past->how.startup_energy_j : past->past_startup_energy_j + past->startup_energy_j;
}

static double startup_time_s(const struct trial_past *past)
{
    return past->ended ? past->how.startup_time_s : past->past_startup_time_s + past->startup_time_s;
}

static void add_mean(struct table *table, const struct decision_known *known, double mean)
{
    table_add_known(table, mean,
                    known->reached == 0 ? "no trial of it reached the target"
                                        : "the energy of none that reached the target is known");
}

static void add_known(struct table *table, const struct decision_numbers *numbers)
{
    for (size_t i = 0; i < numbers->known_count; i++) {
        const struct decision_known *known = &numbers->known[i];

        table_add_integer(table, known->batch_size);
        table_add_integer(table, (int64_t)known->trials);
        table_add_integer(table, (int64_t)known->reached);
        table_add_integer(table, (int64_t)known->crashed);
        add_mean(table, known, known->mean_cost_j);
        add_mean(table, known, known->mean_energy_j);
        add_mean(table, known, known->mean_time_s);
    }
}

static void put_limit(struct buffer *text, const struct why *why)
{
    const struct trial_past *past = &why->past;
    char limit[NUMBER_TEXT_MAX];

    if (isnan(past->limit_w) && past->record.wants_profile)
        buffer_puts(text, "Its power limit follows from a profile that it measures first.\n");
    else if (isnan(past->limit_w))
        buffer_puts(text, "Its power limit is not set.\n");
    else if (past->record.limit_rule == LIMIT_FIXED)
        buffer_printf(text, "Its power limit of %s W comes with that choice.\n",
                      number_format(past->limit_w, limit));
    else
        buffer_printf(
            text, "Its power limit of %s W is the best of the batch size's profile%s for the objective%s.\n",
            number_format(past->limit_w, limit), past->profiled ? ", which it measured itself," : "",
            isnan(why->numbers.max_slowdown) ? "" : " within the bound");
}

static void put_epochs(struct buffer *text, const struct why *why)
{
    const struct trial_past *past = &why->past;

    if (!past->record.capped)
        buffer_puts(text, "It is not stopped for its score.\n");
    else if (past->epochs >= why->max_epochs)
        buffer_printf(text, "It may run %u epoch%s, as many as the job allows.\n", past->epochs,
                      past->epochs == 1 ? "" : "s");
    else if (past->epochs > 0)
        buffer_printf(text, "It may run %u epoch%s, beyond which its score would be too high.\n",
                      past->epochs, past->epochs == 1 ? "" : "s");
    else
        buffer_puts(text, "How many epochs it may run follows from what they take.\n");
}

/* What came of it: what belongs to its epochs, and what does not. */
static void put_taken(struct buffer *text, const struct why *why)
{
    const struct trial_past *past = &why->past;
    const struct ended_record *how = &past->how;
    uint32_t epochs = past->ended ? how->epochs : past->epochs_done;
    double energy_j = past->ended ? how->energy_j : past->past_energy_j + past->energy_j,
           time_s = past->ended ? how->time_s : past->past_time_s + past->time_s;
    double startup_j = startup_energy_j(past), startup_s = startup_time_s(past);
    char energy[AMOUNT_MAX], time[AMOUNT_MAX];

    if (startup_s > 0.0)
        buffer_printf(text, "Its start-up took %s%s%s, which counts for no epoch.\n",
                      amount_time(startup_s, time), startup_j > 0.0 ? " and " : "",
                      startup_j > 0.0 ? amount_energy(startup_j, NAN, "", energy) : "");
    if (epochs > 0 && startup_s > 0.0 && startup_j > 0.0 && !isnan(energy_j))
        buffer_printf(text, "Its %u epoch%s took %s and %s each.\n", epochs, epochs == 1 ? "" : "s",
                      amount_time((time_s - startup_s) / epochs, time),
                      amount_energy((energy_j - startup_j) / epochs, NAN, "", energy));
    if (past->ended && how->nothing_learnt)
        buffer_printf(text, "Nothing is learnt from it: %s.\n", how->text);
    else if (past->ended && how->stop == JOB_STOP_COST)
        buffer_printf(text, "It was stopped after epoch %u, as its score would be too high after one more.\n",
                      how->epochs);
}

static void put_bound(struct buffer *text, const struct decision_numbers *numbers)
{
    if (!isnan(numbers->max_slowdown) && !isnan(numbers->reference_time_s))
        buffer_printf(text, "At most %g times the default's %.4g s are allowed.\n", numbers->max_slowdown,
                      numbers->reference_time_s);
    else if (!isnan(numbers->max_slowdown))
        buffer_printf(text, "At most %g times the default's time are allowed, which was not known yet.\n",
                      numbers->max_slowdown);
    if (!isnan(numbers->reference_g_per_kwh))
        buffer_printf(text, "A kWh came to %.4g g of CO2 then, as was frozen last.\n",
                      numbers->reference_g_per_kwh);
    else if (!isnan(numbers->reference_money_per_kwh))
        buffer_printf(text, "A kWh came to %.4g in money then, as was frozen last.\n",
                      numbers->reference_money_per_kwh);
    if (numbers->does_not_fit_from > 0)
        buffer_printf(text, "Batch sizes from %u on do not fit into the memory.\n",
                      numbers->does_not_fit_from);
}

static int emit_text(const struct cli_call *call, const struct why *why, struct fly_error *out_error)
{
    const struct trial_past *past = &why->past;
    char date[ISO_TIME_TEXT_MAX];
    struct buffer text;
    int code;

    buffer_init(&text, TEXT_MAX);
    buffer_printf(&text, "%c%s.\n", toupper((unsigned char)past->record.why[0]),
                  past->record.why[0] != '\0' ? past->record.why + 1 : "");
    put_limit(&text, why);
    buffer_printf(&text, "This is trial %" PRIu64 " of job '%s' (recurrence %" PRIu64 ", try %u, %s).\n",
                  why->trial, why->job, past->record.recurrence + 1, past->record.try_number + 1,
                  iso_time_format_us(past->proposed_us, date));
    put_epochs(&text, why);
    put_taken(&text, why);
    put_bound(&text, &why->numbers);
    if (why->numbers.known_count > 0 && cli_flag(call, "verbose"))
        buffer_puts(&text,
                    "\nWhat was known of each batch size then; failed tries count in the mean score:\n\n");
    code = text.error < 0 ? error_no_memory(out_error) : cli_emit_text(call, text.data, out_error);
    buffer_deinit(&text);
    return code;
}

/* A saving that is nothing beside the greatest, or beside a run's cost, is told as none, not in more digits.
 */
static double told_gain(const struct decision_outlook *outlook, const struct decision_candidate *candidate)
{
    double greatest = 0.0;

    for (size_t i = 0; i < outlook->candidate_count; i++)
        greatest = fmax(greatest, outlook->candidates[i].gain_j);
    return candidate->gain_j < fmax(0.01 * greatest, 1e-4 * candidate->expected_cost_j) ? 0.0
                                                                                        : candidate->gain_j;
}

static void add_candidates(struct table *table, const struct decision_outlook *outlook)
{
    for (size_t i = 0; i < outlook->candidate_count; i++) {
        const struct decision_candidate *at = &outlook->candidates[i];
        bool is_best = at->batch_size == outlook->best_batch_size;

        table_add_integer(table, at->batch_size);
        table_add_real(table, at->expected_cost_j);
        table_add_real(table, 100.0 * at->doubt);
        table_add_real(table, at->trial_cost_j);
        table_add_real(table, at->stop_cost_j);
        table_add_real(table, told_gain(outlook, at));
        if (is_best)
            table_add_unavailable(table, "the best", "the others are compared with it");
        else if (!at->may_run)
            table_add_unavailable(table, "not yet",
                                  "too far from what was tried, it does not fit, or enough others are tried");
        else
            table_add_real(table, at->worth_j);
    }
}

/* For people: what the policy expected. JSON has it among the numbers. */
static int emit_outlook(const struct cli_call *call, const struct why *why, struct fly_error *out_error)
{
    const struct decision_outlook *outlook = &why->numbers.outlook;
    struct table *table;
    char text[TITLE_MAX];
    int code;

    if (!why->numbers.has_outlook)
        return 0;
    snprintf(
        text, sizeof text,
        "\nWhat was expected of each batch size, and what a trial of it was worth with %.0f recurrence%s "
        "to follow:\n\n",
        outlook->following_recurrences, outlook->following_recurrences == 1.0 ? "" : "s");
    code = cli_emit_text(call, text, out_error);
    if (code < 0)
        return code;
    table = table_new("flyball.job.why.outlook/1", outlook_columns,
                      sizeof outlook_columns / sizeof outlook_columns[0]);
    add_candidates(table, outlook);
    code = cli_emit_table(call, table, out_error);
    table_free(table);
    return code;
}

static void add_figure(struct table *table, const char *name, double value)
{
    char reason[TITLE_MAX];

    table_member(table, name, isnan(value) ? json_null() : json_real(value));
    snprintf(reason, sizeof reason, "%s_unavailable", name);
    if (isnan(value))
        table_member(table, reason, json_string("no report said when its first step began"));
}

static void add_members(struct table *table, const struct why *why)
{
    const struct trial_past *past = &why->past;
    const json_t *numbers = past->record.numbers;
    char date[ISO_TIME_TEXT_MAX];

    table_member(table, "job", json_string(why->job));
    table_member(table, "trial", json_integer((json_int_t)why->trial));
    table_member(table, "recurrence", json_integer((json_int_t)past->record.recurrence));
    table_member(table, "try", json_integer(past->record.try_number));
    table_member(table, "proposed", json_string(iso_time_format_us(past->proposed_us, date)));
    table_member(table, "batch_size", json_integer(past->record.batch_size));
    if (isnan(past->limit_w)) {
        table_member(table, "power_limit_w", json_null());
        table_member(table, "power_limit_w_unavailable",
                     json_string(past->record.wants_profile
                                     ? "it follows from a profile that the trial measures"
                                     : "it is not set"));
    } else {
        table_member(table, "power_limit_w", json_real(past->limit_w));
    }
    add_figure(table, "startup_energy_j", startup_energy_j(past));
    add_figure(table, "startup_time_s", startup_time_s(past));
    table_member(table, "policy", json_string(past->record.policy));
    table_member(table, "policy_version", json_integer(past->record.policy_version));
    table_member(table, "reason", json_string(job_reason_name(past->record.reason)));
    table_member(table, "why", json_string(past->record.why));
    table_member(table, "capped", json_boolean(past->record.capped));
    table_member(table, "last_try", json_boolean(past->record.last_try));
    table_member(table, "numbers", numbers != NULL ? json_deep_copy(numbers) : json_object());
}

static int emit(const struct cli_call *call, const struct why *why, struct fly_error *out_error)
{
    bool for_people = cli_format(call) == TABLE_FORMAT_TABLE;
    bool details = for_people && cli_flag(call, "verbose");
    struct table *table = table_new("flyball.job.why/2", columns, quantities.count);
    int code = for_people ? emit_text(call, why, out_error) : 0;

    add_known(table, &why->numbers);
    add_members(table, why);
    if (code == 0 && (!for_people || (details && table_row_count(table) > 0)))
        code = cli_emit_table(call, table, out_error);
    table_free(table);
    return code == 0 && details ? emit_outlook(call, why, out_error) : code;
}

/* Draws the belief into the file of --svg. */
static int draw(const struct cli_call *call, const struct jobs *jobs, const struct why *why,
                struct fly_error *out_error)
{
    struct job_history history;
    struct why_plot plot = {.outlook = &why->numbers.outlook,
                            .history = &history,
                            .trial = why->trial,
                            .chosen = why->past.record.batch_size};
    struct atomic_file file;
    struct arena arena;
    int code;

    if (!why->numbers.has_outlook)
        return error_set(out_error, FLY_EEXHAUSTED,
                         "trial %" PRIu64
                         " of job '%s' was chosen without a model of scores (policy '%s'), or "
                         "before a run reached its target; there is no belief to draw",
                         why->trial, why->job, why->past.record.policy);
    arena_init(&arena, HISTORY_MAX);
    code = job_history_read(jobs, why->job, &arena, &history, out_error);
    if (code == 0)
        code = output_path_open(cli_text(call, "svg"), &file, out_error);
    if (code == 0)
        code = why_plot_commit(&plot, &file, out_error);
    arena_deinit(&arena);
    return code;
}

static int job_why_run(const struct cli_call *call, struct fly_error *out_error)
{
    struct why why;
    struct jobs jobs;
    int code = job_view_name(call, &why.job, out_error);

    if (code == 0)
        code = store_option_open(call, &jobs, out_error);
    if (code != 0)
        return code;
    job_view_deliver(call, &jobs);
    code = read_trial(call, &jobs, &why, out_error);
    if (code == 0) {
        decision_numbers_read(why.past.record.numbers, &why.numbers);
        code = cli_set(call, "svg") ? draw(call, &jobs, &why, out_error) : 0;
        if (code == 0)
            code = emit(call, &why, out_error);
        trial_past_deinit(&why.past);
    }
    jobs_close(&jobs);
    return code;
}

const struct cli_command cmd_job_why = {
    .words = "job why",
    .summary = "say why a recurring job's last choice was made",
    .paragraphs =
        {"Says in a sentence, and with -v in numbers, why a trial got its batch size and its power limit. "
         "Both "
         "were written down when the choice was made, and tell what was known then. JSON counts recurrence "
         "and "
         "try from 0, the text from 1."},
    .options = options,
    .option_count = sizeof options / sizeof options[0],
    .shared = {&store_options},
    .operands = "JOB [TRIAL]",
    .operand_maximum = 2,
    .examples = {{"flyball job why digits", "explain the last choice"},
                 {"flyball job why digits 3 --format json", "explain an earlier one to a program"},
                 {"flyball job why digits --svg belief.svg", "draw what was believed of each batch size"}},
    .outputs = {&quantities},
    .run = job_why_run,
};
