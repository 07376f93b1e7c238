/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/open/sim_call.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/math/order.h"
#include "base/words.h"
#include "model/objective_check.h"
#include "sim/open/sim_objective.h"

enum { MEMORY_MAX = 256 << 20, SEEDS_MAX = 100000, BOOTSTRAP_MAX = 2000 };

static const double recurrences_max = 1e12, transfer_max = 1e6;

static int check_numbers(const struct fly_sim_options *options, struct fly_error *out_error)
{
    const struct {
        bool wrong;
        const char *what;
    } checks[] = {
        {isnan(options->beta) || options->beta < 0.0, "beta is above 0, or infinite"},
        {options->window > POLICY_WINDOW_MAX, "window is at most 65536"},
        {!(options->profile_window >= 0.0 && options->profile_window <= 1.0),
         "profile_window is from 0 to 1"},
        {(double)options->recurrences > recurrences_max, "recurrences are at most 1e12"},
        {(double)options->transfer_recurrences > transfer_max, "transfer_recurrences are at most 1e6"},
        {options->threads > CREW_THREADS_MAX, "threads are at most 256"},
        {options->bootstrap > BOOTSTRAP_MAX, "bootstrap is at most 2000"},
    };

    for (size_t i = 0; i < sizeof checks / sizeof checks[0]; i++) {
        if (checks[i].wrong)
            return error_set(out_error, FLY_EUSAGE, "sim: %s", checks[i].what);
    }
    return 0;
}

/* Finds a word among those known; NULL is the first of them. */
static int find_word(const char *what, const char *word, const char *const *known, int *out_index,
                     struct fly_error *out_error)
{
    size_t count = 0;
    int index, nearest;

    while (known[count] != NULL)
        count++;
    index = word != NULL ? word_index(word, known, count) : 0;
    if (index >= 0) {
        *out_index = index;
        return 0;
    }
    nearest = word_nearest(word, known, count);
    return error_set(out_error, FLY_EUSAGE, "sim: unknown %s '%.60s'; %s '%s'", what, word,
                     nearest >= 0 ? "did you mean" : "one is", known[nearest >= 0 ? nearest : 0]);
}

static int read_objective(struct sim_call *call, struct fly_error *out_error)
{
    static const double some_power_w = 1.0; /* what the jobs' GPUs draw is not known yet */
    const struct fly_objective *given = call->options.objective;

    call->objective = given != NULL ? *given : (struct fly_objective){FLY_OBJECTIVE_COST, 0.5, INFINITY};
    if (call->objective.kind == FLY_OBJECTIVE_LOWEST_LIMIT)
        return error_set(out_error, FLY_EUSAGE,
                         "sim: the objective 'lowest-limit' says nothing about a batch size; take energy, "
                         "time or cost");
    return objective_check(&call->objective, some_power_w, out_error);
}

int sim_call_open(const struct fly_sim_options *options, struct sim_call **out_call,
                  struct fly_error *out_error)
{
    struct sim_call *call;
    int drift = 0, code;

    if (options->size < sizeof *options)
        return error_set(out_error, FLY_EUSAGE, "sim: options.size is %zu; set it to sizeof options",
                         options->size);
    code = check_numbers(options, out_error);
    if (code == 0)
        code = find_word("drift", options->drift, drift_names, &drift, out_error);
    if (code < 0)
        return code;
    call = calloc(1, sizeof *call);
    if (call == NULL)
        return error_no_memory(out_error);
    call->options = *options;
    call->drift = (enum drift_kind)drift;
    arena_init(&call->arena, MEMORY_MAX);
    sim_set_init(&call->set);
    sim_policies_init(&call->policies);
    code = read_objective(call, out_error);
    if (code < 0)
        sim_call_close(call);
    else
        *out_call = call;
    return code;
}

void sim_call_close(struct sim_call *call)
{
    if (call == NULL)
        return;
    sim_policies_close(&call->policies);
    sim_set_close(&call->set);
    arena_deinit(&call->arena);
    free(call);
}

void sim_call_note(const struct sim_call *call, const char *text)
{
    if (call->options.note != NULL)
        call->options.note(call->options.note_data, text);
}

static void pass_note(const void *context, const char *text)
{
    sim_call_note(context, text);
}

/* ---- the jobs ---- */

static int take_sizes(struct sim_call *call, const struct fly_sim_job *given, struct job_description *job,
                      struct fly_error *out_error)
{
    uint32_t *sizes = arena_alloc(&call->arena, given->batch_count, sizeof sizes[0]);

    if (given->batch_count > JOB_BATCHES_MAX)
        return error_set(out_error, FLY_ELIMIT, "sim: job '%.60s' has more than %d batch sizes", job->name,
                         JOB_BATCHES_MAX);
    if (sizes == NULL)
        return error_no_memory(out_error);
    memcpy(sizes, given->batch_sizes, given->batch_count * sizeof sizes[0]);
    qsort(sizes, given->batch_count, sizeof sizes[0], order_u32);
    for (size_t i = 0; i < given->batch_count; i++) {
        if (sizes[i] == 0 || (i > 0 && sizes[i] == sizes[i - 1]))
            return error_set(out_error, FLY_EUSAGE,
                             "sim: job '%.60s': batch size %u is no batch size, or stands there twice",
                             job->name, sizes[i]);
    }
    job->batch_sizes = sizes;
    job->batch_count = given->batch_count;
    return 0;
}

/* Adds a job that the caller describes; it wins over one of the paper's. */
static int describe(struct sim_call *call, const struct fly_sim_job *given, struct sim_set *set,
                    struct fly_error *out_error)
{
    struct job_description *job;
    int code = 0;

    if (given->size < sizeof *given)
        return error_set(out_error, FLY_EUSAGE, "sim: job.size is %zu; set it to sizeof job", given->size);
    if (given->name == NULL || given->name[0] == '\0')
        return error_set(out_error, FLY_EUSAGE, "sim: a described job has no name");
    job = job_list_find(&set->list, given->name);
    if (job == NULL)
        code = job_list_add(&set->list, given->name, &job, out_error);
    if (code < 0 || job == NULL)
        return code;
    *job = (struct job_description){.name = job->name,
                                    .dataset = given->dataset,
                                    .network = given->network,
                                    .optimizer = given->optimizer,
                                    .target_metric = given->target_metric,
                                    .max_epochs = given->max_epochs,
                                    .default_batch_size = given->default_batch_size,
                                    .untold = given->untold};
    if (given->batch_count > 0)
        code = take_sizes(call, given, job, out_error);
    return code == 0 ? job_list_check(job, "sim", FLY_EUSAGE, out_error) : code;
}

static int select_job(struct sim_set *set, const char *name, struct fly_error *out_error)
{
    const struct job_description *job = job_list_find(&set->list, name);
    const char *nearest = job_list_nearest(&set->list, name);

    for (size_t i = 0; i < set->count; i++) {
        if (strcmp(set->items[i].job.name, name) == 0)
            return error_set(out_error, FLY_EUSAGE, "sim: job '%.60s' is named twice", name);
    }
    if (job != NULL)
        return sim_set_add(set, job, out_error);
    return error_set(out_error, FLY_ENOTFOUND,
                     "sim: unknown job '%.60s'%s%s%s; describe it, or correct its name", name,
                     nearest != NULL ? "; did you mean '" : "", nearest != NULL ? nearest : "",
                     nearest != NULL ? "'?" : "");
}

int sim_call_traces(struct sim_call *call, const char *gpu, struct sim_set *set, struct fly_error *out_error)
{
    const struct fly_sim_options *options = &call->options;
    int code = 0;

    sim_set_init(set);
    set->eta = call->objective.eta;
    set->note = pass_note;
    set->note_context = call;
    if (options->traces == NULL || gpu == NULL)
        return error_set(out_error, FLY_EUSAGE,
                         "sim: no %s given; name the traces' directory and one of their GPUs, as v100",
                         options->traces == NULL ? "traces" : "gpu_model");
    for (size_t i = 0; i < options->described_count && code == 0; i++)
        code = describe(call, &options->described[i], set, out_error);
    return code == 0 ? sim_set_traces(set, options->traces, gpu, out_error) : code;
}

int sim_call_jobs(struct sim_call *call, const char *gpu, struct sim_set *set, struct fly_error *out_error)
{
    const struct fly_sim_options *options = &call->options;
    int code = sim_call_traces(call, gpu, set, out_error);

    if (code == 0 && options->job_count == 0)
        code = sim_set_add_all(set, out_error);
    for (size_t i = 0; i < options->job_count && code == 0; i++)
        code = select_job(set, options->jobs[i], out_error);
    if (code == 0)
        sim_objective_set(&call->objective, set->items, set->count);
    return code;
}

/* ---- the policies ---- */

static bool is_path(const char *name)
{
    size_t length = strlen(name);

    return strchr(name, '/') != NULL || (length > 3 && strcmp(name + length - 3, ".so") == 0);
}

static int add_policy(struct sim_call *call, const struct fly_sim_policy *policy, struct fly_error *out_error)
{
    const char *name = policy->name != NULL ? policy->name : "";
    int index = 0, code;

    if (policy->table != NULL)
        return sim_policies_add_table(&call->policies, policy->table, policy->data, out_error);
    if (is_path(name))
        return sim_policies_add_plugin(&call->policies, name, out_error);
    code = find_word("policy", name, sim_policy_names, &index, out_error);
    if (code < 0)
        return code;
    for (size_t i = 0; i < call->policies.count; i++) {
        if (strcmp(call->policies.items[i].name, name) == 0)
            return error_set(out_error, FLY_EUSAGE, "sim: policy '%s' is named twice", name);
    }
    return sim_policies_add(&call->policies, (enum sim_policy)index, out_error);
}

static int add_policies(struct sim_call *call, struct fly_error *out_error)
{
    const struct fly_sim_options *options = &call->options;
    int code = 0;

    if (options->policy_count == 0 && call->policies.count == 0)
        code = sim_policies_add(&call->policies, SIM_POLICY_ZEUS, out_error);
    for (size_t i = 0; i < options->policy_count && code == 0; i++)
        code = add_policy(call, &options->policies[i], out_error);
    if (code == 0 && options->power_policy != NULL)
        code = sim_policies_load_power(&call->policies, options->power_policy, out_error);
    if (code == 0)
        sim_policies_complete(&call->policies);
    return code;
}

static unsigned choose_threads(const struct sim_call *call)
{
    long processors = sysconf(_SC_NPROCESSORS_ONLN);

    if (call->policies.own_tables > 0)
        return 0; /* what is the caller's is called on the calling thread */
    if (call->options.threads > 0)
        return call->options.threads;
    return processors < 1 ? 1 : processors > CREW_THREADS_MAX ? CREW_THREADS_MAX : (unsigned)processors;
}

int sim_call_policies(struct sim_call *call, struct policy_parameters *out_parameters,
                      struct fly_error *out_error)
{
    const struct fly_sim_options *options = &call->options;
    int generator = 0, guard = 0;
    int code = find_word("generator", options->generator, sim_generator_names, &generator, out_error);

    if (code == 0)
        code = find_word("guard", options->guard, sim_guard_names, &guard, out_error);
    if (code == 0)
        code = add_policies(call, out_error);
    if (code < 0)
        return code;
    call->threads = choose_threads(call);
    *out_parameters = (struct policy_parameters){
        .beta = options->beta > 0.0 ? options->beta : 2.0,
        .window = options->window,
        .generator = (enum generator)generator,
        .guard = (enum guard_choice)guard,
        .profile_window = options->profile_window,
        .overlapping = options->overlapping,
        .power = sim_policies_power(&call->policies),
    };
    return 0;
}

/* ---- the histories ---- */

int sim_call_seeds(struct sim_call *call, uint32_t otherwise, const uint32_t **out_seeds, size_t *out_count,
                   struct fly_error *out_error)
{
    size_t given = call->options.seed_count, count = given > 0 ? given : otherwise;
    uint32_t *seeds = arena_alloc(&call->arena, count, sizeof seeds[0]);
    uint32_t *sorted = arena_alloc(&call->arena, count, sizeof sorted[0]);

    if (count > SEEDS_MAX)
        return error_set(out_error, FLY_ELIMIT, "sim: more than %d seeds", SEEDS_MAX);
    if (seeds == NULL || sorted == NULL)
        return error_no_memory(out_error);
    for (size_t i = 0; i < count; i++)
        sorted[i] = seeds[i] = given > 0 ? call->options.seeds[i] : (uint32_t)i + 1;
    qsort(sorted, count, sizeof sorted[0], order_u32);
    for (size_t i = 1; i < count; i++) {
        if (sorted[i] == sorted[i - 1])
            return error_set(out_error, FLY_EUSAGE, "sim: seed %u stands there twice", sorted[i]);
    }
    *out_seeds = seeds;
    *out_count = count;
    return 0;
}

int sim_call_progress(void *context, uint64_t done, uint64_t total)
{
    const struct sim_call *call = context;
    uint64_t so_far = call->units_done + done;

    (void)total;
    if (call->options.progress == NULL)
        return 0;
    return call->options.progress(call->options.progress_data, so_far < call->units ? so_far : call->units,
                                  call->units);
}
