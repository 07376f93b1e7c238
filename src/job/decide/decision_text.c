/* SPDX-License-Identifier: Apache-2.0 */
/* Explains to people why a trial was chosen. */
#include "job/decide/decision_text.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "job/core/decision_numbers.h"
#include "job/core/grid_amount.h"
#include "job/decide/line.h"

/* Costs are told at today's size of the data, as all that is known beside them. */
static struct decision_candidate make_candidate(const struct batch_outlook *outlook, uint32_t batch_size,
                                                double growth)
{
    return (struct decision_candidate){
        .batch_size = batch_size,
        .expected_cost_j = growth * outlook->expected_cost,
        .doubt = outlook->doubt,
        .scatter = outlook->scatter,
        .failure = outlook->failure,
        .trial_cost_j = growth * outlook->trial_cost,
        .stop_cost_j = growth * outlook->stop_cost,
        .gain_j = growth * outlook->gain,
        .runs = outlook->runs,
        .worth_j = growth * outlook->worth,
        .may_run = outlook->may_run,
    };
}

/*
 * Gives what the policy expects of each batch size before a new recurrence; false when it has nothing to say:
 * it has no model, no run has reached its target, or the job has none.
 */
static bool decision_candidates(const struct job_state *state, const struct job_line *line,
                                struct decision_outlook *out_outlook)
{
    const struct job_spec *spec = line->spec;
    struct batch_outlook outlooks[DECISION_NUMBERS_MAX];

    if (state->definition.target == FLY_TARGET_NONE || spec->batch_count > DECISION_NUMBERS_MAX ||
        !decider_explain(&line->decider, outlooks))
        return false;
    *out_outlook = (struct decision_outlook){.candidate_count = spec->batch_count,
                                             .following_recurrences = outlooks[0].following};
    for (size_t i = 0; i < spec->batch_count; i++) {
        out_outlook->candidates[i] = make_candidate(&outlooks[i], spec->batches[i].size, line->growth);
        if (outlooks[i].is_best)
            out_outlook->best_batch_size = spec->batches[i].size;
    }
    return true;
}

/* A mean at today's size of the data. */
static double mean(const struct job_line *line, double sum, uint64_t count)
{
    return count > 0 ? line->growth * sum / (double)count : NAN;
}

static struct decision_known know(const struct job_line *line, size_t batch)
{
    const struct batch_facts *facts = &line->facts[batch];

    return (struct decision_known){
        .batch_size = line->spec->batches[batch].size,
        .trials = facts->observed,
        .reached = facts->reached,
        .mean_cost_j = mean(line, facts->cost_j, facts->priced),
        .mean_energy_j = mean(line, facts->reached_energy_j, facts->priced),
        .mean_time_s = mean(line, facts->reached_time_s, facts->reached),
        .crashed = facts->crashed,
        .given_up = decider_gave_up(&line->decider, batch),
        .final_metric = facts->final.count > 0 ? facts->final.mean : NAN,
        .worse = facts->worse,
    };
}

json_t *decision_reasons(const struct job_state *state, const struct job_line *line)
{
    const struct job_spec *spec = line->spec;
    bool money = job_counts_money(&state->definition);
    struct decision_numbers numbers = {
        .best_batch_size = spec->batches[job_line_best(line)].size,
        .reference_time_s = job_line_reference_s(line),
        .max_slowdown = state->objective.max_slowdown,
        .baseline_runs = line->baseline_runs,
        .does_not_fit_from = line->excluded < spec->batch_count ? spec->batches[line->excluded].size : 0,
        .reference_money_per_kwh = money ? state->reference_per_kwh : NAN,
        .reference_g_per_kwh = money ? NAN : state->reference_per_kwh,
    };

    for (size_t i = 0; i < spec->batch_count && numbers.known_count < DECISION_NUMBERS_MAX; i++) {
        if (line->facts[i].observed > 0 || line->facts[i].crashed > 0 || decider_gave_up(&line->decider, i))
            numbers.known[numbers.known_count++] = know(line, i);
    }
    numbers.has_outlook = decision_candidates(state, line, &numbers.outlook);
    return shape_tell(&shape_decision_numbers, &numbers);
}

static uint32_t default_size(const struct job_line *line)
{
    return line->spec->batches[line->spec->default_batch].size;
}

static void tell_held(const struct job_line *line, char text[JOB_WHY_MAX])
{
    const struct guard *guard = &line->decider.guard;
    unsigned dear = guard_dear(guard);
    char what[96];

    if (dear >= GUARD_DEAR_MOST)
        snprintf(what, sizeof what, "%u of the last %d recurrences took over 20 %% more than a run of it",
                 dear, GUARD_WINDOW);
    else
        snprintf(what, sizeof what, "it takes more than it did, and so may all others");
    snprintf(text, JOB_WHY_MAX, "the default batch size %u runs without a cap, since %s%s",
             default_size(line), what,
             guard_begins_anew(guard) ? "; learning begins anew with that run"
                                      : "; the search goes on when they are fewer");
}

static void tell_doubt(const struct job_line *line, bool retry, char text[JOB_WHY_MAX])
{
    const char *why = "the last recurrences took more than those before them";

    if (retry)
        why = "the tries before it failed";
    else if (guard_dear(&line->decider.guard) > 0)
        why = "some of the last recurrences took over 20 % more than it did";
    snprintf(text, JOB_WHY_MAX,
             "the default batch size %u runs without a cap, to see what it takes today, since %s",
             default_size(line), why);
}

/*
 * Why the default runs: with REASON_GUARD, or with REASON_GUARD_DOUBT, where `retry` says that tries of the
 * same recurrence failed before.
 */
static void guard_text(const struct job_line *line, enum reason reason, bool retry, char text[JOB_WHY_MAX])
{
    if (reason == REASON_GUARD)
        tell_held(line, text);
    else
        tell_doubt(line, retry, text);
}

void guard_text_now(const struct job_state *state, const struct job_line *line, char text[JOB_WHY_MAX])
{
    enum reason reason = decider_guard_reason(&line->decider, 0);

    text[0] = '\0';
    if (state->pin_batch_size > 0 || state->definition.target == FLY_TARGET_NONE)
        return;
    if (reason != REASON_COUNT)
        guard_text(line, reason, false, text);
    else if (decider_default_fails(&line->decider))
        snprintf(text, JOB_WHY_MAX,
                 "the default batch size %u no longer reaches its target, so nothing is held against it",
                 default_size(line));
}

enum {
    KNOWN_TEXT_MAX = 384,
    REACHED_TEXT_MAX = 96,
    UNTOLD_TEXT_MAX = 160,
    GIVEN_UP_TEXT_MAX = 224,
    AMOUNT_TEXT_MAX = 2 * GRID_AMOUNT_MAX
};

/* What the sentences are made from. */
struct telling {
    const struct job_state *state;
    const struct job_line *line;
    const struct decision *decision;
    uint32_t size;
    char *why;
};

/* At today's size of the data. */
static double cost_of(const struct telling *telling, const struct batch_facts *facts)
{
    return telling->line->growth * facts->cost_j / (double)facts->priced;
}

/* ", 0.4503 g of CO2 at 230 g/kWh" for a cost that is energy, when a figure of the grid is known. */
static void amount_of(const struct telling *telling, double cost_j, char text[AMOUNT_TEXT_MAX])
{
    const struct job_state *state = telling->state;
    char amount[GRID_AMOUNT_MAX], reference[GRID_AMOUNT_MAX];

    text[0] = '\0';
    if (isnan(state->reference_per_kwh) || telling->line->spec->eta != 1.0)
        return;
    snprintf(
        text, AMOUNT_TEXT_MAX, ", %s at %s",
        job_grid_amount_text(&state->definition, job_grid_amount(cost_j, state->reference_per_kwh), amount),
        job_grid_reference_text(&state->definition, state->reference_per_kwh, reference));
}

/* "its 3 trials crashed, the newest by: exit status 1", of trials that show no score; "" for none. */
static void untold_of(const struct batch_facts *facts, bool alone, char text[UNTOLD_TEXT_MAX])
{
    size_t length = 0;

    text[0] = '\0';
    if (facts->crashed > 0 && strcmp(facts->crash_text, JOB_END_WITHOUT_EPOCH) == 0)
        length = (size_t)snprintf(text, UNTOLD_TEXT_MAX,
                                  "%" PRIu64
                                  " %s told nothing, the newest since it ended without reporting an epoch",
                                  facts->crashed, alone ? "of its trials" : "more");
    else if (facts->crashed > 0)
        length = (size_t)snprintf(text, UNTOLD_TEXT_MAX, "%" PRIu64 " %s crashed%s%s", facts->crashed,
                                  alone ? "of its trials" : "more",
                                  facts->crash_text[0] != '\0' ? ", the newest by: " : "", facts->crash_text);
    if (facts->silent > 0 && length < UNTOLD_TEXT_MAX)
        snprintf(text + length, UNTOLD_TEXT_MAX - length, "%s%" PRIu64 " %s fell silent",
                 length > 0 ? "; " : "", facts->silent, alone && length == 0 ? "of its trials" : "more");
}

/* "12 of its 13 trials reached the target", "its only trial did not reach the target". */
static void reached_of(const struct batch_facts *facts, char text[REACHED_TEXT_MAX])
{
    if (facts->observed == 1)
        snprintf(text, REACHED_TEXT_MAX, "its only trial %s the target",
                 facts->reached > 0 ? "reached" : "did not reach");
    else if (facts->reached == 0)
        snprintf(text, REACHED_TEXT_MAX, "none of its %" PRIu64 " trials reached the target",
                 facts->observed);
    else
        snprintf(text, REACHED_TEXT_MAX, "%" PRIu64 " of its %" PRIu64 " trials reached the target",
                 facts->reached, facts->observed);
}

/* What a choice is compared by, in plain digits with four significant ones: an energy where it is one. */
struct amount {
    char text[40];
};

/* "1204000 J" where energy alone counts, else `score` and "1204000". */
static struct amount amount_with(const struct telling *telling, double value, const char *score)
{
    bool is_energy = telling->line->spec->eta == 1.0;
    struct amount amount;

    snprintf(amount.text, sizeof amount.text,
             fabs(value) >= 1e3 && fabs(value) < 1e15 ? "%s%.0f%s" : "%s%.4g%s", is_energy ? "" : score,
             value, is_energy ? " J" : "");
    return amount;
}

/* ", at 1204000 J each", ", at a score of 1204000 each". */
static void put_cost(const struct telling *telling, double cost_j, bool alone, char *text, size_t size)
{
    char amount[AMOUNT_TEXT_MAX];

    amount_of(telling, cost_j, amount);
    snprintf(text, size, ", at %s%s%s", amount_with(telling, cost_j, "a score of ").text,
             alone ? "" : " each", amount);
}

/* "12 of its 13 trials reached the target, at 1204000 J each", or that there were none. */
static void known_of(const struct telling *telling, char text[KNOWN_TEXT_MAX])
{
    const struct batch_facts *facts = &telling->line->facts[telling->decision->batch];
    char reached[REACHED_TEXT_MAX], untold[UNTOLD_TEXT_MAX];
    size_t length;

    untold_of(facts, facts->observed == 0, untold);
    if (facts->observed == 0 && facts->reached == 0) {
        snprintf(text, KNOWN_TEXT_MAX, "%s", untold[0] != '\0' ? untold : "it was not tried yet");
        return;
    }
    reached_of(facts, reached);
    length = (size_t)snprintf(text, KNOWN_TEXT_MAX, "%s", reached);
    if (facts->reached > 0 && facts->priced == 0)
        snprintf(text + length, KNOWN_TEXT_MAX - length, ", at an energy that is not known");
    else if (facts->reached > 0)
        put_cost(telling, cost_of(telling, facts), facts->observed == 1, text + length,
                 KNOWN_TEXT_MAX - length);
    length = strlen(text);
    if (untold[0] != '\0')
        snprintf(text + length, KNOWN_TEXT_MAX - length, "; %s", untold);
}

static void tell_fixed(const struct telling *telling)
{
    snprintf(telling->why, JOB_WHY_MAX, "the policy '%s' always runs batch size %u",
             telling->state->policy->name, telling->size);
}

static const struct decision_candidate *candidate_of(const struct decision_outlook *outlook, uint32_t size)
{
    size_t i = 0;

    while (i < outlook->candidate_count && outlook->candidates[i].batch_size != size)
        i++;
    return i < outlook->candidate_count ? &outlook->candidates[i] : NULL;
}

enum { TEST_TEXT_MAX = 160 };

/* What so many trials take beyond as many runs of the best: "one run (+229 J)", "2 runs (score +1466)". */
static void price_of(const struct telling *telling, const struct decision_candidate *tested,
                     const struct decision_candidate *best, char text[TEST_TEXT_MAX])
{
    uint32_t runs = tested->runs > 0 ? tested->runs : 1;
    double more_j = runs * (tested->trial_cost_j - best->trial_cost_j);
    char count[32] = "one run";

    if (runs > 1)
        snprintf(count, sizeof count, "%u runs", runs);
    snprintf(text, TEST_TEXT_MAX, "%s (%s%s%s)", count, telling->line->spec->eta == 1.0 ? "" : "score ",
             more_j < 0.0 ? "-" : "+", amount_with(telling, fabs(more_j), "").text);
}

/* What they save in all recurrences to come: "would save about 1049 J over the next 30 runs". */
static void saving_of(const struct telling *telling, const struct decision_candidate *tested,
                      const struct decision_candidate *best, double following, char text[TEST_TEXT_MAX])
{
    static const double nothing_share = 1e-4; /* of what a run takes: less is next to nothing */

    if (following < 1.0)
        snprintf(text, TEST_TEXT_MAX, "no run is expected to follow that could save it");
    else if (tested->gain_j < nothing_share * best->expected_cost_j)
        snprintf(text, TEST_TEXT_MAX, "would save next to nothing");
    else
        snprintf(text, TEST_TEXT_MAX, "would save about %s over the next %.0f run%s",
                 amount_with(telling, following * tested->gain_j, "a score of ").text, following,
                 following < 1.5 ? "" : "s");
}

/* Explains an exploration by what it may bring and takes, if the policy says so. Returns whether it does. */
static bool tell_worth(const struct telling *telling)
{
    struct decision_outlook outlook;
    const struct decision_candidate *chosen, *best;
    char price[TEST_TEXT_MAX], saving[TEST_TEXT_MAX];

    if (!decision_candidates(telling->state, telling->line, &outlook))
        return false;
    chosen = candidate_of(&outlook, telling->size);
    best = candidate_of(&outlook, outlook.best_batch_size);
    if (chosen == NULL || best == NULL || chosen == best || !(chosen->worth_j > 0.0))
        return false;
    price_of(telling, chosen, best, price);
    saving_of(telling, chosen, best, outlook.following_recurrences, saving);
    snprintf(telling->why, JOB_WHY_MAX,
             "testing batch size %u, which takes %s and %s; it is stopped at %s, from where %u, the best so "
             "far, is the cheaper way to a model",
             chosen->batch_size, price, saving, amount_with(telling, chosen->stop_cost_j, "a score of ").text,
             best->batch_size);
    return true;
}

/* The batch size whose trial is worth most, though not what it takes; NULL for none. */
static const struct decision_candidate *next_worth(const struct decision_outlook *outlook)
{
    const struct decision_candidate *next = NULL;

    for (size_t i = 0; i < outlook->candidate_count; i++) {
        const struct decision_candidate *at = &outlook->candidates[i];

        if (at->may_run && at->batch_size != outlook->best_batch_size &&
            (next == NULL || at->worth_j > next->worth_j))
            next = at;
    }
    return next;
}

/* Explains that nothing is explored. Returns whether the policy says so. */
static bool tell_worth_nothing(const struct telling *telling)
{
    struct decision_outlook outlook;
    const struct decision_candidate *best, *next;
    char price[TEST_TEXT_MAX], saving[TEST_TEXT_MAX];
    size_t length;

    if (!decision_candidates(telling->state, telling->line, &outlook) ||
        outlook.best_batch_size != telling->size)
        return false;
    best = candidate_of(&outlook, telling->size);
    next = next_worth(&outlook);
    snprintf(telling->why, JOB_WHY_MAX,
             "kept batch size %u, the best so far at an expected %s with a doubt of %.2g %%", telling->size,
             amount_with(telling, best->expected_cost_j, "score of ").text, 100.0 * best->doubt);
    length = strlen(telling->why);
    if (telling->decision->record.try_number > 0) {
        snprintf(telling->why + length, JOB_WHY_MAX - length, ": nothing is tested after a try that failed");
    } else if (next != NULL) {
        price_of(telling, next, best, price);
        saving_of(telling, next, best, outlook.following_recurrences, saving);
        snprintf(telling->why + length, JOB_WHY_MAX - length, ": testing %u takes %s and %s",
                 next->batch_size, price, saving);
    }
    return true;
}

/* Explains a choice where no batch size has reached its target yet. */
static void tell_first(const struct telling *telling)
{
    bool is_default = telling->decision->batch == telling->line->spec->default_batch;
    char text[KNOWN_TEXT_MAX];

    known_of(telling, text);
    snprintf(telling->why, JOB_WHY_MAX,
             "batch size %u%s runs, since none has reached the target here yet: %s", telling->size,
             !is_default                             ? ""
             : telling->state->definition.no_default ? ", the first one,"
                                                     : ", the default,",
             text);
}

/* Returns whether nothing was observed on these GPUs yet. */
static bool is_first(const struct telling *telling)
{
    uint64_t observed = 0;

    for (size_t i = 0; i < telling->line->spec->batch_count; i++)
        observed += telling->line->facts[i].observed + telling->line->facts[i].reached;
    return observed == 0;
}

static void tell_explore(const struct telling *telling)
{
    size_t best = job_line_best(telling->line), known = 0;
    char text[KNOWN_TEXT_MAX];

    if (!is_first(telling) && tell_worth(telling))
        return;
    for (size_t i = 0; i < telling->line->spec->batch_count; i++)
        known += telling->line->facts[i].reached > 0;
    if (known == 0) {
        tell_first(telling);
        return;
    }
    known_of(telling, text);
    snprintf(
        telling->why, JOB_WHY_MAX,
        "batch size %u is explored to learn what it takes: %s; %zu of %zu batch sizes are known, and %u is "
        "the best so far",
        telling->size, text, known, telling->line->spec->batch_count,
        telling->line->spec->batches[best].size);
}

static void tell_known(const struct telling *telling, const char *what)
{
    char text[KNOWN_TEXT_MAX];

    known_of(telling, text);
    snprintf(telling->why, JOB_WHY_MAX, "batch size %u %s: %s", telling->size, what, text);
}

static void tell_sampled(const struct telling *telling)
{
    tell_known(telling, "won a draw from what is believed of each batch size");
}

static void tell_best(const struct telling *telling)
{
    if (is_first(telling))
        tell_known(telling, "is the best elsewhere");
    else if (!tell_worth_nothing(telling))
        tell_known(telling, "is the best so far, and others are being explored");
}

static void tell_plugin(const struct telling *telling)
{
    snprintf(telling->why, JOB_WHY_MAX, "the plug-in '%s' chose batch size %u", telling->state->policy->name,
             telling->size);
}

static void tell_no_target(const struct telling *telling)
{
    snprintf(telling->why, JOB_WHY_MAX,
             "the job has no target metric, so batch size %u stays and only its power limit is tuned",
             telling->size);
}

static void tell_control(const struct telling *telling)
{
    snprintf(telling->why, JOB_WHY_MAX,
             "a control: each %uth recurrence runs the default batch size %u at the highest power limit, to "
             "measure what is saved",
             telling->state->control_every, telling->size);
}

static void tell_last_try(const struct telling *telling)
{
    bool alone = telling->decision->record.tries == 1 && telling->line->spec->batch_count > 1 &&
                 telling->state->policy != &batch_policy_default;
    size_t length;

    tell_known(telling, "is the last try, and runs to the end");
    length = strlen(telling->why);
    if (alone)
        snprintf(telling->why + length, JOB_WHY_MAX - length,
                 "; with one try no other batch size is ever explored: allow more (--tries 3)");
}

static void tell_deadline(const struct telling *telling)
{
    tell_known(telling, "runs without a cap, since trying another could miss the time to finish by");
}

static void tell_bound(const struct telling *telling)
{
    tell_known(telling, "runs in the place of one that is slower than allowed");
}

static void tell_memory(const struct telling *telling)
{
    tell_known(telling, "runs in the place of one that does not fit into the GPUs' memory");
}

static void tell_no_choice(const struct telling *telling)
{
    uint32_t given_up = telling->decision->given_up, crashing = telling->decision->crashing;
    char what[96];

    if (crashing != 0)
        snprintf(what, sizeof what,
                 "runs in the place of %u, whose last %d trials crashed, to see if others do", crashing,
                 CRASH_STREAK_LEAST);
    else
        snprintf(what, sizeof what, "runs in the place of %u, which is given up", given_up);
    if (crashing != 0 || given_up != 0)
        tell_known(telling, what);
    else
        tell_known(telling, "runs without a cap, since the policy has no choice left");
}

static void tell_quality(const struct telling *telling)
{
    char what[96];

    snprintf(what, sizeof what, "runs in the place of %u, whose models are worse than allowed",
             telling->decision->given_up);
    tell_known(telling, what);
}

static void tell_pinned(const struct telling *telling)
{
    snprintf(telling->why, JOB_WHY_MAX, "batch size %u is pinned", telling->size);
}

static void tell_unasked(const struct telling *telling)
{
    snprintf(telling->why, JOB_WHY_MAX, "batch size %u was run while the job's log was out of reach",
             telling->size);
}

static void tell_guard(const struct telling *telling)
{
    const struct proposed_record *record = &telling->decision->record;

    guard_text(telling->line, record->reason, record->try_number > 0, telling->why);
}

static void (*const tellings[])(const struct telling *telling) = {
    [REASON_FIXED] = tell_fixed,     [REASON_EXPLORE] = tell_explore,   [REASON_SAMPLED] = tell_sampled,
    [REASON_BEST_SEEN] = tell_best,  [REASON_PLUGIN] = tell_plugin,     [REASON_NO_TARGET] = tell_no_target,
    [REASON_CONTROL] = tell_control, [REASON_LAST_TRY] = tell_last_try, [REASON_DEADLINE] = tell_deadline,
    [REASON_BOUND] = tell_bound,     [REASON_MEMORY] = tell_memory,     [REASON_NO_CHOICE] = tell_no_choice,
    [REASON_PINNED] = tell_pinned,   [REASON_QUALITY] = tell_quality,   [REASON_UNASKED] = tell_unasked,
    [REASON_GUARD] = tell_guard,     [REASON_GUARD_DOUBT] = tell_guard,
};
_Static_assert(sizeof tellings / sizeof tellings[0] == REASON_COUNT, "one sentence for every reason");

/* "; batch size 64 is given up: its last 3 trials crashed, while others trained" */
static int gave_up_text(const struct job_line *line, size_t batch, char text[GIVEN_UP_TEXT_MAX])
{
    const struct batch_facts *facts = &line->facts[batch];

    return snprintf(text, GIVEN_UP_TEXT_MAX,
                    "; batch size %u is given up: its trials %s again and again%s%s%s",
                    line->spec->batches[batch].size,
                    facts->crashed == 0                                     ? "failed before their first step"
                    : strcmp(facts->crash_text, JOB_END_WITHOUT_EPOCH) == 0 ? "failed"
                                                                            : "crashed",
                    facts->crash_text[0] != '\0' ? " (" : "", facts->crash_text,
                    facts->crash_text[0] != '\0' ? "), while others trained" : ", while others trained");
}

/* "; batch size 64 is left: its 4 models end at a metric of 0.91, the default's at 0.935" */
static int left_text(const struct job_line *line, size_t batch, char text[GIVEN_UP_TEXT_MAX])
{
    const struct batch_facts *facts = &line->facts[batch];

    return snprintf(text, GIVEN_UP_TEXT_MAX,
                    "; batch size %u is left: its %" PRIu64
                    " models end at a metric of %.4g, the default's at "
                    "%.4g",
                    line->spec->batches[batch].size, facts->final.count, facts->final.mean,
                    line->facts[line->spec->default_batch].final.mean);
}

/* Adds which batch sizes do not run any more, if there is room. */
static void tell_given_up(const struct telling *telling)
{
    const struct job_line *line = telling->line;
    size_t length = strlen(telling->why);
    char text[GIVEN_UP_TEXT_MAX];

    for (size_t i = 0; i < line->spec->batch_count; i++) {
        int added = 0;

        if (line->facts[i].worse)
            added = left_text(line, i, text);
        else if (decider_gave_up(&line->decider, i))
            added = gave_up_text(line, i, text);
        if (added > 0 && length + (size_t)added < JOB_WHY_MAX) {
            memcpy(telling->why + length, text, (size_t)added + 1);
            length += (size_t)added;
        }
    }
}

/* Says that the default fails, if there is room: searches are then held against nothing. */
static void tell_default_fails(const struct telling *telling)
{
    size_t length = strlen(telling->why);
    char text[GIVEN_UP_TEXT_MAX];
    int added;

    if (!decider_default_fails(&telling->line->decider))
        return;
    added =
        snprintf(text, sizeof text,
                 "; the default batch size %u did not reach the target, so that nothing is compared with it",
                 telling->line->spec->batches[telling->line->spec->default_batch].size);
    if (length + (size_t)added < JOB_WHY_MAX)
        memcpy(telling->why + length, text, (size_t)added + 1);
}

void decision_explain(const struct job_state *state, struct decision *decision)
{
    const struct telling telling = {.state = state,
                                    .line = &state->lines[decision->record.line],
                                    .decision = decision,
                                    .size = decision->record.batch_size,
                                    .why = decision->why};

    tellings[decision->record.reason](&telling);
    tell_given_up(&telling);
    tell_default_fails(&telling);
}
