/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The inner loops go over hidden units or outputs, whose sums do not meet, so
 * the compiler may take several at once and yet adds in the order written here.
 * Two of five pixels are white, and half the hidden units are off: what is 0 is
 * passed over, which changes no sum.
 */
#include "demo/digits_network.h"

#include <math.h>
#include <string.h>

#include "base/portable_math.h"
#include "base/ziggurat.h"

/* Streams of a training's luck. */
enum { STREAM_SPLIT, STREAM_WEIGHTS, STREAM_ORDER };

/* Of a batch of 32. */
static const float learning_rate_32 = 0.1f;

/* What the network makes of one image. */
struct activation {
    float hidden[DIGITS_HIDDEN];
    float output[DIGITS_OUTPUTS];
};

static void shuffle(uint16_t *items, uint32_t count, struct philox *philox)
{
    for (uint32_t i = count; i > 1; i--) {
        uint32_t other = philox_below(philox, i);
        uint16_t held = items[i - 1];

        items[i - 1] = items[other];
        items[other] = held;
    }
}

static void fill_normal(float *values, size_t count, float deviation, struct philox *philox)
{
    for (size_t i = 0; i < count; i++)
        values[i] =
            deviation * (float)ziggurat_normal(ziggurat_tables(), philox_u64(philox), philox_source, philox);
}

void digits_weights_init(struct digits_weights *weights, const struct digits_seed *seed)
{
    struct philox philox = philox_open(seed->key, STREAM_WEIGHTS, seed->index, 0);

    *weights = (struct digits_weights){0};
    fill_normal(&weights->hidden[0][0], (size_t)DIGITS_PIXELS * DIGITS_HIDDEN, sqrtf(2.0f / DIGITS_PIXELS),
                &philox);
    for (int j = 0; j < DIGITS_HIDDEN; j++)
        fill_normal(weights->output[j], DIGITS_CLASSES, sqrtf(2.0f / DIGITS_HIDDEN), &philox);
}

static void propagate(const struct digits_weights *weights, const uint8_t *pixels, struct activation *out)
{
    struct activation sums;

    memcpy(sums.hidden, weights->hidden_bias, sizeof sums.hidden);
    memcpy(sums.output, weights->output_bias, sizeof sums.output);
    for (int i = 0; i < DIGITS_PIXELS; i++) {
        float pixel = (float)pixels[i] / DIGITS_PIXEL_MAX;

        for (int j = 0; pixels[i] != 0 && j < DIGITS_HIDDEN; j++)
            sums.hidden[j] += pixel * weights->hidden[i][j];
    }
    for (int j = 0; j < DIGITS_HIDDEN; j++) {
        sums.hidden[j] = sums.hidden[j] > 0.0f ? sums.hidden[j] : 0.0f;
        for (int k = 0; sums.hidden[j] > 0.0f && k < DIGITS_OUTPUTS; k++)
            sums.output[k] += sums.hidden[j] * weights->output[j][k];
    }
    *out = sums;
}

static int strongest(const float *output)
{
    int best = 0;

    for (int k = 1; k < DIGITS_CLASSES; k++) {
        if (output[k] > output[best])
            best = k;
    }
    return best;
}

/* Turns outputs into probabilities less the truth, the gradient there; returns the label's probability. */
static double compare_with(int label, float *output)
{
    double likelihood[DIGITS_CLASSES], sum = 0.0;
    float highest = output[strongest(output)];

    for (int k = 0; k < DIGITS_CLASSES; k++) {
        likelihood[k] = portable_exp((double)(output[k] - highest));
        sum += likelihood[k];
    }
    for (int k = 0; k < DIGITS_OUTPUTS; k++)
        output[k] = k < DIGITS_CLASSES ? (float)(likelihood[k] / sum) - (k == label ? 1.0f : 0.0f) : 0.0f;
    return likelihood[label] / sum;
}

/* Adds one image's gradient; `at` holds what compare_with left of its activation. */
static void accumulate(const struct digits_weights *weights, const uint8_t *pixels,
                       const struct activation *at, struct digits_weights *gradient)
{
    float blame[DIGITS_HIDDEN] = {0};

    for (int j = 0; j < DIGITS_HIDDEN; j++) {
        for (int k = 0; at->hidden[j] > 0.0f && k < DIGITS_OUTPUTS; k++) {
            blame[j] += at->output[k] * weights->output[j][k];
            gradient->output[j][k] += at->hidden[j] * at->output[k];
        }
        gradient->hidden_bias[j] += blame[j];
    }
    for (int k = 0; k < DIGITS_OUTPUTS; k++)
        gradient->output_bias[k] += at->output[k];
    for (int i = 0; i < DIGITS_PIXELS; i++) {
        float pixel = (float)pixels[i] / DIGITS_PIXEL_MAX;

        for (int j = 0; pixels[i] != 0 && j < DIGITS_HIDDEN; j++)
            gradient->hidden[i][j] += pixel * blame[j];
    }
}

/* weights += factor * step, all of them. */
static void add_scaled(struct digits_weights *weights, float factor, const struct digits_weights *step)
{
    float *to = (float *)weights;
    const float *from = (const float *)step;

    for (size_t i = 0; i < sizeof *weights / sizeof to[0]; i++)
        to[i] += factor * from[i];
}

/* Sums over the images, not yet divided by their number; training has no use for the loss, which may be NULL.
 */
static void sum_gradient(const struct digits_weights *weights, const uint16_t *images, uint32_t count,
                         struct digits_weights *out_sum, float *loss)
{

    *out_sum = (struct digits_weights){0};
    for (uint32_t i = 0; i < count; i++) {
        struct activation activation;
        double probability;

        propagate(weights, digits_pixels[images[i]], &activation);
        probability = compare_with(digits_labels[images[i]], activation.output);
        if (loss != NULL)
            *loss -= (float)portable_log(probability);
        accumulate(weights, digits_pixels[images[i]], &activation, out_sum);
    }
}

float digits_loss(const struct digits_weights *weights, const uint16_t *images, uint32_t count,
                  struct digits_weights *out_gradient)
{
    struct digits_weights mean = {0}, sum;
    float loss = 0.0f;

    sum_gradient(weights, images, count, &sum, &loss);
    add_scaled(&mean, 1.0f / (float)count, &sum);
    *out_gradient = mean;
    return loss / (float)count;
}

uint32_t digits_count_correct(const struct digits_weights *weights, const uint16_t *images, uint32_t count)
{
    uint32_t correct = 0;

    for (uint32_t i = 0; i < count; i++) {
        struct activation activation;

        propagate(weights, digits_pixels[images[i]], &activation);
        correct += strongest(activation.output) == digits_labels[images[i]];
    }
    return correct;
}

/* One pass over the training images in the order given; the last batch may be smaller. */
static void train_epoch(struct digits_weights *weights, const uint16_t *images, uint32_t batch_size)
{
    float rate = learning_rate_32 * sqrtf((float)batch_size / 32.0f);
    struct digits_weights gradient;

    for (uint32_t first = 0; first < DIGITS_TRAINED; first += batch_size) {
        uint32_t count = first + batch_size <= DIGITS_TRAINED ? batch_size : DIGITS_TRAINED - first;

        sum_gradient(weights, images + first, count, &gradient, NULL);
        add_scaled(weights, -rate / (float)count, &gradient);
    }
}

struct digits_result digits_train(const struct digits_plan *plan)
{
    const struct digits_seed *seed = &plan->seed;
    struct philox split = philox_open(seed->key, STREAM_SPLIT, 0, 0);
    struct philox order = philox_open(seed->key, STREAM_ORDER, seed->index, 0);
    struct digits_result result = {0};
    struct digits_weights weights;
    uint16_t images[DIGITS_COUNT];

    for (uint32_t i = 0; i < DIGITS_COUNT; i++)
        images[i] = (uint16_t)i;
    shuffle(images, DIGITS_COUNT, &split);
    digits_weights_init(&weights, seed);
    while (result.epochs < plan->max_epochs && !result.reached) {
        shuffle(images, DIGITS_TRAINED, &order);
        train_epoch(&weights, images, plan->batch_size);
        result.epochs++;
        result.correct = digits_count_correct(&weights, images + DIGITS_TRAINED, DIGITS_HELD_OUT);
        result.reached = result.correct >= plan->target;
    }
    return result;
}
