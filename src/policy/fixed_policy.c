/* SPDX-License-Identifier: Apache-2.0 */
/* The policies whose choice never changes: `default`, and `fixed` for a known choice. */
#include "policy/batch_policy.h"

struct fixed_state {
    struct proposal choice;
    void (*at)(const void *context, uint64_t recurrence, size_t *out_batch, double *out_limit_w);
    const void *context;
};

static int choice_create(size_t batch, double limit_w, struct arena *arena, void **out_state,
                         struct fly_error *out_error)
{
    struct fixed_state *state = arena_alloc(arena, 1, sizeof *state);

    if (state == NULL)
        return error_no_memory(out_error);
    state->choice = (struct proposal){.batch = batch,
                                      .limit_rule = LIMIT_FIXED,
                                      .limit_w = limit_w,
                                      .reason = REASON_FIXED,
                                      .policy_version = 1};
    *out_state = state;
    return 0;
}

static int default_create(const struct batch_policy *self, const struct job_spec *spec,
                          const struct policy_parameters *parameters, struct arena *arena, void **out_state,
                          struct fly_error *out_error)
{
    (void)self;
    (void)parameters;
    return choice_create(spec->default_batch, batch_highest_limit_w(&spec->batches[spec->default_batch]),
                         arena, out_state, out_error);
}

static int fixed_create(const struct batch_policy *self, const struct job_spec *spec,
                        const struct policy_parameters *parameters, struct arena *arena, void **out_state,
                        struct fly_error *out_error)
{
    int code;

    (void)self;
    if (parameters->fixed_batch >= spec->batch_count)
        return error_set(out_error, FLY_EUSAGE,
                         "policy 'fixed': batch index %zu is beyond the job's %zu batch sizes",
                         parameters->fixed_batch, spec->batch_count);
    code = choice_create(parameters->fixed_batch, parameters->fixed_limit_w, arena, out_state, out_error);
    if (code == 0) {
        struct fixed_state *state = *out_state;

        state->at = parameters->fixed_at;
        state->context = parameters->fixed_context;
    }
    return code;
}

static int fixed_propose(const void *state, const struct batch_question *question,
                         struct proposal *out_proposal, struct fly_error *out_error)
{
    const struct fixed_state *fixed = state;

    (void)out_error;
    *out_proposal = fixed->choice;
    if (fixed->at != NULL)
        fixed->at(fixed->context, question->recurrence, &out_proposal->batch, &out_proposal->limit_w);
    return 0;
}

/* The parameters say everything. */
static void fixed_save(const void *state, struct buffer *bytes)
{
    (void)state, (void)bytes;
}

static bool fixed_load(void *state, struct bytes_reader *bytes)
{
    (void)state;
    return !bytes->failed;
}

const struct batch_policy batch_policy_default = {
    .name = "default",
    .summary = "the default batch size at the highest power limit, always",
    .version = 1,
    .unguarded = true,
    .create = default_create,
    .propose = fixed_propose,
    .save = fixed_save,
    .load = fixed_load,
};

const struct batch_policy batch_policy_fixed = {
    .name = "fixed",
    .summary = "one given batch size and power limit, always",
    .version = 1,
    .unguarded = true,
    .create = fixed_create,
    .propose = fixed_propose,
    .save = fixed_save,
    .load = fixed_load,
};
