/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_EXAMPLES_DEMO_DIGITS_NETWORK_H
#define FLYBALL_EXAMPLES_DEMO_DIGITS_NETWORK_H

#include <stdbool.h>
#include <stdint.h>

#include "demo/digits_data.h"
#include "demo/portable.h"

/*
 * A small neural network that learns to read handwritten digits. The demo really trains it.
 *
 * 64 pixels, DIGITS_HIDDEN rectified linear units, ten classes; softmax and cross entropy;
 * mini-batch stochastic gradient descent. The learning rate grows with the square root of the
 * batch size, a common rule (Krizhevsky, "One Weird Trick for Parallelizing Convolutional Neural
 * Networks", 2014). Of the 1,797 images, 1,437 are trained on and 360 held out; all trainings
 * with one key share the split.
 *
 * The same (seed, batch size, epochs) gives the same bits on every machine: sums run in a fixed
 * order, in single precision without contraction, and exp is this module's own.
 *
 *     digits_begin(&training, &seed, batch_size);
 *     do {
 *         digits_epoch(&training);
 *         while (digits_step(&training))
 *             ;
 *     } while (digits_evaluate(&training) < target);
 */
enum {
    DIGITS_HIDDEN = 32,
    DIGITS_TRAINED = 1437,
    DIGITS_HELD_OUT = DIGITS_COUNT - DIGITS_TRAINED,
    DIGITS_BATCH_MAX = 1024,
};

/* Weights and biases, or their gradient, all in single precision. */
struct digits_weights {
    _Alignas(16) float hidden[DIGITS_PIXELS][DIGITS_HIDDEN];
    float hidden_bias[DIGITS_HIDDEN];
    float output[DIGITS_CLASSES][DIGITS_HIDDEN];
    float output_bias[DIGITS_CLASSES + 2]; /* and padding, so that loops divide by four */
};

/* The random numbers of a training: the key determines the split; with the index, first weights and order. */
struct digits_seed {
    struct luck_key key;
    uint64_t index; /* of the training under that key */
};

/* A training under way. It has no pointers: a copy is another training that continues the same way. */
struct digits_training {
    struct digits_weights weights;
    struct luck order;
    uint16_t images[DIGITS_COUNT]; /* those to train on, in this epoch's order, then those held out */
    uint32_t batch_size;
    uint32_t next; /* image to train on in this epoch */
};

/* Draws first weights and splits the data. A batch has 1 .. DIGITS_BATCH_MAX images. */
void digits_begin(struct digits_training *training, const struct digits_seed *seed, uint32_t batch_size);

/* Shuffles the training images for the next pass over them. */
void digits_epoch(struct digits_training *training);

/* Trains on the next batch of the pass, the last of which may be smaller. Returns false if none is left. */
bool digits_step(struct digits_training *training);

/* Returns how many of the DIGITS_HELD_OUT held-out images the network reads correctly. */
uint32_t digits_evaluate(const struct digits_training *training);

struct digits_plan {
    struct digits_seed seed;
    uint32_t batch_size;
    uint32_t max_epochs; /* >= 1 */
    uint32_t target;     /* held-out images to read correctly; reaching it ends the training */
};

struct digits_result {
    bool reached;
    uint32_t epochs;  /* trained: to the target, or max_epochs */
    uint32_t correct; /* held-out images that the network reads correctly at the end */
};

/* Trains a network. All functions here are pure and thread-safe; this one takes some 40 KiB of stack. */
struct digits_result digits_train(const struct digits_plan *plan);

/* The parts, for tests. */

/* Draws first weights: normal with variance 2 / inputs (He et al., 2015), biases 0. */
void digits_weights_init(struct digits_weights *weights, const struct digits_seed *seed);

/*
 * Returns the mean cross entropy over `count` images, and its gradient. `images` are indices
 * below DIGITS_COUNT; count is at least 1.
 */
float digits_loss(const struct digits_weights *weights, const uint16_t *images, uint32_t count,
                  struct digits_weights *out_gradient);

/* Returns how many of `count` images the network reads correctly. */
uint32_t digits_count_correct(const struct digits_weights *weights, const uint16_t *images, uint32_t count);

#endif
