/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Written with vectors of four, which all supported compilers have and which add in the order
 * written here, so that speed changes no bit. Two of five pixels are white: the others are listed
 * once for each image, and white ones are skipped.
 */
#include "demo/digits_network.h"

#include <math.h>
#include <pthread.h>
#include <string.h>

/* Random streams of a training. */
enum { STREAM_SPLIT, STREAM_WEIGHTS, STREAM_ORDER };

typedef float four __attribute__((vector_size(16), may_alias));
typedef int32_t four_ints __attribute__((vector_size(16), may_alias));

enum {
    LANES = 4,
    HIDDEN_FOURS = DIGITS_HIDDEN / LANES,
    OUTPUT_FOURS = (DIGITS_CLASSES + LANES - 1) / LANES,
    WEIGHT_FOURS = sizeof(struct digits_weights) / sizeof(four),
};

/* For a batch of 32. */
static const float learning_rate_32 = 0.1f;

/* The pixels of an image that are not white. */
struct ink {
    uint32_t count;
    struct {
        uint32_t pixel;
        float value; /* above 0, at most 1 */
    } at[DIGITS_PIXELS];
};

static struct ink inks[DIGITS_COUNT];
static pthread_once_t inks_once = PTHREAD_ONCE_INIT;

static void find_inks(void)
{
    for (int image = 0; image < DIGITS_COUNT; image++) {
        struct ink *ink = &inks[image];

        for (uint32_t i = 0; i < DIGITS_PIXELS; i++) {
            if (digits_pixels[image][i] == 0)
                continue;
            ink->at[ink->count].pixel = i;
            ink->at[ink->count++].value = (float)digits_pixels[image][i] / DIGITS_PIXEL_MAX;
        }
    }
}

/* The network's values for one image. */
struct activation {
    four hidden[HIDDEN_FOURS];
    union {
        four fours[OUTPUT_FOURS];
        float values[OUTPUT_FOURS * LANES];
    } output;
};

static const four *fours_of(const float *values)
{
    return (const four *)values;
}

static void shuffle(uint16_t *items, uint32_t count, struct luck *luck)
{
    for (uint32_t i = count; i > 1; i--) {
        uint32_t other = luck_below(luck, i);
        uint16_t held = items[i - 1];

        items[i - 1] = items[other];
        items[other] = held;
    }
}

static void fill_normal(float *values, size_t count, float deviation, struct luck *luck)
{
    for (size_t i = 0; i < count; i++)
        values[i] = deviation * (float)luck_normal(luck);
}

void digits_weights_init(struct digits_weights *weights, const struct digits_seed *seed)
{
    struct luck luck = luck_open(seed->key, STREAM_WEIGHTS, seed->index);

    *weights = (struct digits_weights){.hidden_bias = {0}};
    fill_normal(&weights->hidden[0][0], (size_t)DIGITS_PIXELS * DIGITS_HIDDEN, sqrtf(2.0f / DIGITS_PIXELS),
                &luck);
    fill_normal(&weights->output[0][0], (size_t)DIGITS_CLASSES * DIGITS_HIDDEN, sqrtf(2.0f / DIGITS_HIDDEN),
                &luck);
}

static float sum_of(four values)
{
    return (values[0] + values[1]) + (values[2] + values[3]);
}

static void propagate(const struct digits_weights *weights, const struct ink *ink, struct activation *out)
{
    const four zero = {0}, *bias = fours_of(weights->hidden_bias);
    four sums[HIDDEN_FOURS];

    for (int j = 0; j < HIDDEN_FOURS; j++)
        sums[j] = bias[j];
    for (uint32_t i = 0; i < ink->count; i++) {
        const four *row = fours_of(weights->hidden[ink->at[i].pixel]);

        for (int j = 0; j < HIDDEN_FOURS; j++)
            sums[j] += ink->at[i].value * row[j];
    }
    for (int j = 0; j < HIDDEN_FOURS; j++)
        out->hidden[j] = (four)((four_ints)sums[j] & (sums[j] > zero));
    for (int k = 0; k < DIGITS_CLASSES; k++) {
        const four *row = fours_of(weights->output[k]);
        four sum = {weights->output_bias[k]};

        for (int j = 0; j < HIDDEN_FOURS; j++)
            sum += out->hidden[j] * row[j];
        out->output.values[k] = sum_of(sum);
    }
}

static int strongest(const float *output)
{
    int best = 0;
    float most = output[0];

    for (int k = 1; k < DIGITS_CLASSES; k++) {
        bool more = output[k] > most;

        most = more ? output[k] : most;
        best = more ? k : best;
    }
    return best;
}

/*
 * exp of values up to 0, with a relative error of about 1e-7: 2^n times a polynomial on half an
 * octave, whose coefficients are those of the series up to the sixth power. Adding `magic` leaves
 * n in the last bits.
 */
static four exp_of(four x)
{
    const four lowest = x * 0.0f - 80.0f, magic = lowest * 0.0f + 12582912.0f;
    const four_ints low = x < lowest;
    four_ints bits;
    four n, sum;

    x = (four)(((four_ints)lowest & low) | ((four_ints)x & ~low));
    n = x * 1.44269504f + magic;
    bits = ((four_ints)n - (four_ints)magic + 127) << 23;
    n -= magic;
    x -= n * 0.693359375f;
    x += n * 2.12194440e-4f;
    sum = x * (1.0f / 720.0f) + 1.0f / 120.0f;
    sum = sum * x + 1.0f / 24.0f;
    sum = sum * x + 1.0f / 6.0f;
    sum = sum * x + 0.5f;
    sum = sum * x + 1.0f;
    sum = sum * x + 1.0f;
    return sum * (four)bits;
}

/*
 * Subtracts the truth from the outputs' probabilities, which gives the gradient there; returns
 * the label's probability.
 */
static float compare_with(int label, struct activation *at)
{
    float *output = at->output.values;
    float highest = output[strongest(output)], sum = 0.0f, probability;

    for (int k = DIGITS_CLASSES; k < OUTPUT_FOURS * LANES; k++)
        output[k] = highest;
    for (int k = 0; k < OUTPUT_FOURS; k++)
        at->output.fours[k] = exp_of(at->output.fours[k] - highest);
    for (int k = 0; k < DIGITS_CLASSES; k++)
        sum += output[k];
    for (int k = 0; k < OUTPUT_FOURS; k++)
        at->output.fours[k] /= sum;
    probability = output[label];
    output[label] -= 1.0f;
    return probability;
}

/* Adds one image's gradient; `at` is its activation as compare_with left it. */
static void accumulate(const struct digits_weights *weights, const struct ink *ink,
                       const struct activation *at, struct digits_weights *gradient)
{
    const four zero = {0};
    four blame[HIDDEN_FOURS] = {{0}}, *bias = (four *)gradient->hidden_bias;

    for (int k = 0; k < DIGITS_CLASSES; k++) {
        const four *row = fours_of(weights->output[k]);
        four *to = (four *)gradient->output[k];
        float output = at->output.values[k];

        for (int j = 0; j < HIDDEN_FOURS; j++) {
            blame[j] += output * row[j];
            to[j] += output * at->hidden[j];
        }
        gradient->output_bias[k] += output;
    }
    for (int j = 0; j < HIDDEN_FOURS; j++) {
        blame[j] = (four)((four_ints)blame[j] & (at->hidden[j] > zero));
        bias[j] += blame[j];
    }
    for (uint32_t i = 0; i < ink->count; i++) {
        four *to = (four *)gradient->hidden[ink->at[i].pixel];

        for (int j = 0; j < HIDDEN_FOURS; j++)
            to[j] += ink->at[i].value * blame[j];
    }
}

/* weights += factor * step, for all weights. */
static void add_scaled(struct digits_weights *weights, float factor, const struct digits_weights *step)
{
    four *to = (four *)weights;
    const four *from = (const four *)step;

    for (size_t i = 0; i < WEIGHT_FOURS; i++)
        to[i] += factor * from[i];
}

/*
 * Sums over the images, without dividing by their number. The loss may be NULL, since training
 * does not use it.
 */
static void sum_gradient(const struct digits_weights *weights, const uint16_t *images, uint32_t count,
                         struct digits_weights *out_sum, double *loss)
{
    *out_sum = (struct digits_weights){.hidden_bias = {0}};
    for (uint32_t i = 0; i < count; i++) {
        const struct ink *ink = &inks[images[i]];
        struct activation activation;
        float probability;

        propagate(weights, ink, &activation);
        probability = compare_with(digits_labels[images[i]], &activation);
        if (loss != NULL)
            *loss -= same_log((double)probability);
        accumulate(weights, ink, &activation, out_sum);
    }
}

float digits_loss(const struct digits_weights *weights, const uint16_t *images, uint32_t count,
                  struct digits_weights *out_gradient)
{
    struct digits_weights mean = {.hidden_bias = {0}}, sum;
    double loss = 0.0;

    pthread_once(&inks_once, find_inks);
    sum_gradient(weights, images, count, &sum, &loss);
    add_scaled(&mean, 1.0f / (float)count, &sum);
    *out_gradient = mean;
    return (float)(loss / count);
}

uint32_t digits_count_correct(const struct digits_weights *weights, const uint16_t *images, uint32_t count)
{
    uint32_t correct = 0;

    pthread_once(&inks_once, find_inks);
    for (uint32_t i = 0; i < count; i++) {
        struct activation activation;

        propagate(weights, &inks[images[i]], &activation);
        correct += strongest(activation.output.values) == digits_labels[images[i]];
    }
    return correct;
}

void digits_begin(struct digits_training *training, const struct digits_seed *seed, uint32_t batch_size)
{
    struct luck split = luck_open(seed->key, STREAM_SPLIT, 0);

    pthread_once(&inks_once, find_inks);
    for (uint32_t i = 0; i < DIGITS_COUNT; i++)
        training->images[i] = (uint16_t)i;
    shuffle(training->images, DIGITS_COUNT, &split);
    digits_weights_init(&training->weights, seed);
    training->order = luck_open(seed->key, STREAM_ORDER, seed->index);
    training->batch_size = batch_size;
    training->next = DIGITS_TRAINED;
}

void digits_epoch(struct digits_training *training)
{
    shuffle(training->images, DIGITS_TRAINED, &training->order);
    training->next = 0;
}

bool digits_step(struct digits_training *training)
{
    uint32_t size = training->batch_size, left = DIGITS_TRAINED - training->next;
    float rate = learning_rate_32 * sqrtf((float)size / 32.0f);
    uint32_t count = left < size ? left : size;
    struct digits_weights gradient;

    if (left == 0)
        return false;
    sum_gradient(&training->weights, training->images + training->next, count, &gradient, NULL);
    add_scaled(&training->weights, -rate / (float)count, &gradient);
    training->next += count;
    return true;
}

uint32_t digits_evaluate(const struct digits_training *training)
{
    return digits_count_correct(&training->weights, training->images + DIGITS_TRAINED, DIGITS_HELD_OUT);
}

struct digits_result digits_train(const struct digits_plan *plan)
{
    struct digits_result result = {.reached = false};
    struct digits_training training;

    digits_begin(&training, &plan->seed, plan->batch_size);
    while (result.epochs < plan->max_epochs && !result.reached) {
        digits_epoch(&training);
        while (digits_step(&training)) {
        }
        result.epochs++;
        result.correct = digits_evaluate(&training);
        result.reached = result.correct >= plan->target;
    }
    return result;
}
