/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A recurring job as a whole program: a small network learns to read handwritten digits, with the batch size
 * and under the power limit that the session chooses.
 *
 *     eval "$(flyball-emulator start --gpus 1 --model v100 --any-user)"
 *     for night in 1 2 3 4 5; do build/examples/digits 3; done
 *     flyball-emulator stop
 *
 * The network, its data and its accuracy are real, the GPU is emulated. The first argument is how many
 * trainings a submission may take; with 1 only limits are explored. The second one is the policy: zeus-server
 * goes on exploring while other submissions run.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include <flyball/flyball.h>

#include "demo/digits_network.h"
#include "emulated_work.h"

static const uint32_t batch_sizes[] = {8, 16, 32, 64, 128, 256};
enum { DEFAULT_BATCH_SIZE = 128, MAX_EPOCHS = 100, TRIES_MAX = 100 };
static const double target = 0.95, default_rate = 0.2;

/* The data, divided anew for each training. */
struct images {
    uint16_t order[DIGITS_COUNT];
    uint64_t random;
};

static uint32_t below(struct images *images, uint32_t bound)
{
    images->random = images->random * 6364136223846793005U + 1442695040888963407U;
    return (uint32_t)((images->random >> 33) % bound);
}

static void shuffle(struct images *images, uint32_t count)
{
    for (uint32_t i = count; i > 1; i--) {
        uint32_t other = below(images, i);
        uint16_t held = images->order[i - 1];

        images->order[i - 1] = images->order[other];
        images->order[other] = held;
    }
}

static void learn(struct digits_weights *weights, const uint16_t *images, uint32_t count, double rate)
{
    struct digits_weights gradient = {0};
    float *to = (float *)weights;
    const float *from = (const float *)&gradient;

    (void)digits_loss(weights, images, count, &gradient);
    for (size_t i = 0; i < sizeof *weights / sizeof *to; i++)
        to[i] -= (float)rate * from[i];
}

/* One training, until the session ends it. */
static enum fly_answer train(struct fly_session *session, struct emulated_work *work, uint64_t luck)
{
    struct digits_weights weights;
    struct images images = {.random = luck};
    uint32_t batch_size = fly_session_batch_size(session);
    double rate = fly_session_learning_rate(session, default_rate, FLY_SCALE_SQUARE_ROOT);
    enum fly_answer answer = FLY_GO_ON;

    for (uint32_t i = 0; i < DIGITS_COUNT; i++)
        images.order[i] = (uint16_t)i;
    shuffle(&images, DIGITS_COUNT);
    digits_weights_init(&weights, &(struct digits_seed){.index = luck});
    while (answer == FLY_GO_ON) {
        double accuracy;

        shuffle(&images, DIGITS_TRAINED);
        fly_session_epoch_begin(session);
        for (uint32_t first = 0; first < DIGITS_TRAINED; first += batch_size) {
            uint32_t left = DIGITS_TRAINED - first;

            if (fly_session_step_begin(session) == FLY_STOP)
                return FLY_STOP;
            learn(&weights, images.order + first, left < batch_size ? left : batch_size, rate);
            emulated_work_step(work, batch_size);
        }
        fly_session_evaluation_begin(session);
        accuracy = (double)digits_count_correct(&weights, images.order + DIGITS_TRAINED, DIGITS_HELD_OUT) /
                   DIGITS_HELD_OUT;
        fly_session_evaluation_end(session);
        answer = fly_session_report(session, accuracy);
    }
    return answer;
}

static void tell(const struct fly_session *session)
{
    struct fly_session_status status = {.size = sizeof status};

    if (fly_session_status(session, &status) < 0)
        return;
    printf("trial %llu: batch size %u, %u epochs, %s", (unsigned long long)status.trial, status.batch_size,
           status.epoch, fly_answer_name(status.answer));
    if (!isnan(status.energy_j))
        printf(", %.0f J in %.1f s", status.energy_j, status.time_s);
    if (!isnan(status.limit_w))
        printf(", at %.0f W", status.limit_w);
    printf("\n");
    if (status.why[0] != '\0')
        printf("    %s\n", status.why);
    if (status.text[0] != '\0')
        printf("    not tuned: %s\n", status.text);
    if (status.limit_text[0] != '\0')
        printf("    limit left alone: %s\n", status.limit_text);
}

int main(int count, char **arguments)
{
    unsigned long tries = count > 1 ? strtoul(arguments[1], NULL, 10) : 1;
    /* When a source is named, an account is kept, and the power limit follows the grid. */
    const char *source = getenv("FLYBALL_CARBON_SOURCE");
    const struct fly_carbon_options carbon = {.size = sizeof carbon, .source = source};
    const struct fly_session_options options = {
        .size = sizeof options,
        .job_name = "digits",
        .batch_sizes = batch_sizes,
        .batch_count = sizeof batch_sizes / sizeof batch_sizes[0],
        .default_batch_size = DEFAULT_BATCH_SIZE,
        .objective = {.kind = FLY_OBJECTIVE_COST, .eta = 0.5},
        .target = FLY_TARGET_AT_LEAST,
        .target_metric = target,
        .max_epochs = MAX_EPOCHS,
        .policy = count > 2 ? arguments[2] : NULL,
        .beta = 3.0,
        .control_every = 5, /* the saving is measured against runs of the default */
        .tries = tries > 0 && tries <= TRIES_MAX ? (uint32_t)tries : 1,
        .samples_per_epoch = DIGITS_TRAINED,
        /* A training of seconds has no time for the usual certainty. */
        .warmup_steps = 2,
        .profile_steps = 40,
        .energy_tolerance = 0.2,
        .carbon = source != NULL ? &carbon : NULL,
    };
    struct emulated_work *work = emulated_work_begin(0);
    struct fly_session *session;
    struct fly_error error;
    int status;

    if (fly_session_open(&options, &session, &error) < 0) {
        fprintf(stderr, "digits: %s\n", error.text);
        emulated_work_end(work);
        return fly_error_exit_status(error.code);
    }
    do {
        struct fly_session_status now = {.size = sizeof now};

        (void)fly_session_status(session, &now);
        (void)train(session, work, now.trial);
        tell(session);
    } while (fly_session_try_again(session));
    status = fly_session_exit_status(session);
    fly_session_close(session, FLY_SESSION_FINISHED);
    emulated_work_end(work);
    return status;
}
