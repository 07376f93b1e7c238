/* SPDX-License-Identifier: Apache-2.0 */
#include "fake_jobs.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

void fake_jobs_init(struct fake_jobs *fake)
{
    memset(fake, 0, sizeof *fake);
    fake->proposals[0] = (struct job_proposal){.trial = 1,
                                               .attempt = 1,
                                               .batch_size = 32,
                                               .local_batch_size = 32,
                                               .limit_w = NAN,
                                               .stops_at_target = true,
                                               .epochs = 10,
                                               .why = "told so"};
    fake->proposal_count = 1;
    fake->choice = (struct job_choice){.limit_w = NAN, .epochs = 10};
}

struct jobs fake_jobs_handle(struct fake_jobs *fake)
{
    return (struct jobs){&fake_jobs_backend, fake};
}

void fake_jobs_fail(struct fake_jobs *fake, enum fake_call call, int code, unsigned from, unsigned to)
{
    fake->faults[call].code = code;
    fake->faults[call].from = from;
    fake->faults[call].to = to;
}

/* Counts the call; its fault, or 0. */
static int fault(struct fake_jobs *fake, enum fake_call call, struct fly_error *out_error)
{
    unsigned number = ++fake->calls[call];

    while (fake->held[call])
        usleep(500);

    if (fake->faults[call].from == 0 || number < fake->faults[call].from ||
        (fake->faults[call].to != 0 && number > fake->faults[call].to))
        return 0;
    return error_set(out_error, fake->faults[call].code, "the log said %s",
                     fly_error_name(fake->faults[call].code));
}

static int define(void *self, const struct fly_job_definition *definition,
                  struct job_registered *out_registered, struct fly_error *out_error)
{
    struct fake_jobs *fake = self;
    int code = fault(fake, FAKE_DEFINE, out_error);

    if (code < 0)
        return code;
    fake->definition = *definition;
    snprintf(fake->name, sizeof fake->name, "%s", definition->name);
    snprintf(fake->policy, sizeof fake->policy, "%s", definition->policy != NULL ? definition->policy : "");
    fake->definition.name = fake->name;
    fake->definition.policy = fake->policy;
    memcpy(fake->batch_sizes, definition->batch_sizes, definition->batch_count * sizeof fake->batch_sizes[0]);
    *out_registered = (struct job_registered){.known = fake->calls[FAKE_DEFINE] > 1};
    return 0;
}

static int propose(void *self, const struct job_question *question, struct job_proposal *out_proposal,
                   struct fly_error *out_error)
{
    struct fake_jobs *fake = self;
    int code = fault(fake, FAKE_PROPOSE, out_error);
    unsigned number = fake->calls[FAKE_PROPOSE] - 1;

    fake->question = *question;
    if (question->ran_batch_size != 0) {
        fake->ran_batch_size = question->ran_batch_size;
        fake->ran_limit_w = question->ran_limit_w;
    }
    snprintf(fake->request, sizeof fake->request, "%s", question->request);
    if (number == 0)
        snprintf(fake->first_request, sizeof fake->first_request, "%s", question->request);
    snprintf(fake->run, sizeof fake->run, "%s", question->run);
    snprintf(fake->submission, sizeof fake->submission, "%s", question->submission);
    snprintf(fake->gpu_model, sizeof fake->gpu_model, "%s", question->hardware.gpu_model);
    memcpy(fake->limits_w, question->hardware.limits_w,
           question->hardware.limit_count * sizeof fake->limits_w[0]);
    if (code < 0)
        return code;
    *out_proposal = fake->proposals[number < fake->proposal_count ? number : fake->proposal_count - 1];
    return 0;
}

static int profile(void *self, const struct job_profile *measured, struct job_choice *out_choice,
                   struct fly_error *out_error)
{
    struct fake_jobs *fake = self;
    int code = fault(fake, FAKE_PROFILE, out_error);

    if (code < 0)
        return code;
    fake->profile = *measured;
    memcpy(fake->points, measured->points, measured->point_count * sizeof fake->points[0]);
    *out_choice = fake->choice;
    return 0;
}

static int heartbeat(void *self, const struct job_beat *beat, struct fly_error *out_error)
{
    (void)beat;
    return fault(self, FAKE_HEARTBEAT, out_error);
}

static int report(void *self, const struct job_epoch *epoch, struct job_answered *out_answered,
                  struct fly_error *out_error)
{
    struct fake_jobs *fake = self;
    int code = fault(fake, FAKE_REPORT, out_error);

    if (code == 0 || fake->deaf)
        fake->reports[fake->report_count++] = *epoch;
    if (code < 0)
        return code;
    *out_answered =
        epoch->epoch <= fake->answer_count
            ? fake->answers[epoch->epoch - 1]
            : (struct job_answered){.epochs = 10, .energy_j = epoch->energy_j, .time_s = epoch->time_s};
    return 0;
}

static int end(void *self, const struct job_end *told, struct job_ended *out_ended,
               struct fly_error *out_error)
{
    struct fake_jobs *fake = self;
    int code = fault(fake, FAKE_END, out_error);

    if (code < 0)
        return code;
    fake->ends[fake->end_count++] = *told;
    *out_ended = (struct job_ended){.outcome = told->outcome};
    return 0;
}

const struct job_backend fake_jobs_backend = {
    .name = "fake",
    .define = define,
    .propose = propose,
    .profile = profile,
    .heartbeat = heartbeat,
    .report = report,
    .end = end,
};
