/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The constants are those that did best on jobs drawn at random (bench/limit_worlds.h);
 * docs/explanation/tuning_how.md has the figures.
 */
#include "policy/limit_belief.h"

#include <math.h>

#include "base/math/cholesky.h"
#include "base/math/normal.h"
#include "base/math/portable_math.h"

enum { PLACES = LIMIT_BELIEF_PLACES, FIGURES = LIMIT_BELIEF_FIGURES, BATCHES = LIMIT_BELIEF_BATCHES };

/* Standard deviations in logarithms. */
static const double common_level = 1.0, own_level = 0.3, shape = 0.3;
static const double changes[] = {0.01, 0.03, 0.1};
static const double roughnesses[] = {0.002, 0.007, 0.02, 0.06}; /* of batch 0 */
static const double growths[] = {-0.4, 0.0, 0.4}; /* of the logarithm of the roughness, in an octave */
/* How far what is smooth is alike: in the logarithm of limits, and in octaves. */
static const double limit_length = 0.5, octave_length = 4.0;
static const double compressed_from = 0.1;

enum {
    CHANGES = sizeof changes / sizeof changes[0],
    ROUGHNESSES = sizeof roughnesses / sizeof roughnesses[0],
    GROWTHS = sizeof growths / sizeof growths[0],
};

/* One combination of what is not known. */
struct scales {
    double change, roughness, growth;
};

/* What the covariances are made of. */
struct likeness {
    double places[PLACES][PLACES], batches[BATCHES][BATCHES];
};

/* Matrices by rows. */
struct room {
    struct likeness like;
    double covariance[FIGURES * FIGURES];
    double right[FIGURES * (PLACES + 1)]; /* y first, then the places that are asked about */
};

static double compress(double y)
{
    return y > 0.0 ? compressed_from * portable_log(1.0 + y / compressed_from) : y;
}

static double matern(double distance, double length)
{
    double r = sqrt(3.0) * fabs(distance) / length;

    return (1.0 + r) * portable_exp(-r);
}

static void compare_all(const struct limit_evidence *evidence, struct likeness *like)
{
    double logs[PLACES];

    for (size_t i = 0; i < evidence->place_count; i++)
        logs[i] = portable_log(evidence->limits[i]);
    for (size_t i = 0; i < evidence->place_count; i++) {
        for (size_t k = 0; k < evidence->place_count; k++)
            like->places[i][k] = matern(logs[i] - logs[k], limit_length);
    }
    for (size_t i = 0; i < BATCHES; i++) {
        for (size_t k = 0; k < BATCHES; k++)
            like->batches[i][k] = matern(evidence->octaves[i] - evidence->octaves[k], octave_length);
    }
}

/* Of the smooth parts of two figures. */
static double covariance(const struct likeness *like, const struct scales *scales, size_t place, size_t batch,
                         size_t other_place, size_t other_batch)
{
    double smooth = shape * shape + scales->change * scales->change * like->batches[batch][other_batch];

    return common_level * common_level + (batch == other_batch ? own_level * own_level : 0.0) +
           smooth * like->places[place][other_place];
}

static double roughness_of(const struct limit_evidence *evidence, const struct scales *scales, size_t batch)
{
    double sd = scales->roughness * portable_exp(scales->growth * evidence->octaves[batch]);

    return sd * sd;
}

static void fill(const struct limit_evidence *evidence, const struct scales *scales, const size_t *places,
                 size_t count, struct room *room)
{
    size_t figures = evidence->figure_count;
    double rough[BATCHES];

    for (size_t i = 0; i < BATCHES; i++)
        rough[i] = roughness_of(evidence, scales, i);
    for (size_t i = 0; i < figures; i++) {
        const struct limit_figure *one = &evidence->figures[i];
        double *row = &room->covariance[i * figures], *right = &room->right[i * (count + 1)];

        for (size_t k = 0; k <= i; k++) {
            const struct limit_figure *other = &evidence->figures[k];

            row[k] = covariance(&room->like, scales, one->place, one->batch, other->place, other->batch);
        }
        row[i] += rough[one->batch];
        right[0] = compress(one->y);
        for (size_t k = 0; k < count; k++)
            right[k + 1] = covariance(&room->like, scales, one->place, one->batch, places[k], 0);
    }
}

/* Fits the evidence with these scales; returns its log likelihood, less a constant. */
static double fit(const struct limit_evidence *evidence, const struct scales *scales, const size_t *places,
                  size_t count, struct room *room)
{
    size_t figures = evidence->figure_count;
    double likelihood;

    fill(evidence, scales, places, count, room);
    likelihood = -cholesky_factor(room->covariance, figures);
    cholesky_forward(room->covariance, figures, room->right, count + 1);
    for (size_t i = 0; i < figures; i++)
        likelihood -= 0.5 * room->right[i * (count + 1)] * room->right[i * (count + 1)];
    return likelihood;
}

/* What a fit says of the place in a column of `right`. */
static struct limit_belief say(const struct limit_evidence *evidence, const struct scales *scales,
                               const double *right, size_t columns, size_t column, double below)
{
    double rough = roughness_of(evidence, scales, 0), mean = 0.0;
    double variance = common_level * common_level + own_level * own_level + shape * shape +
                      scales->change * scales->change + rough;

    for (size_t i = 0; i < evidence->figure_count; i++) {
        const double *row = &right[i * columns];

        mean += row[0] * row[column];
        variance -= row[column] * row[column];
    }
    return (struct limit_belief){mean, normal_below((below - mean) / sqrt(fmax(variance, rough)))};
}

static struct scales scales_at(size_t i)
{
    return (struct scales){changes[i / (GROWTHS * ROUGHNESSES)], roughnesses[i / GROWTHS % ROUGHNESSES],
                           growths[i % GROWTHS]};
}

void limit_belief_of(const struct limit_evidence *evidence, const size_t *places, size_t count, double below,
                     struct limit_belief *out_beliefs)
{
    struct room room;
    double most = -INFINITY, weights = 0.0;

    compare_all(evidence, &room.like);
    for (size_t i = 0; i < count; i++)
        out_beliefs[i] = (struct limit_belief){0.0, 0.0};
    for (size_t i = 0; i < CHANGES * ROUGHNESSES * GROWTHS; i++) {
        struct scales scales = scales_at(i);
        double likelihood = fit(evidence, &scales, places, count, &room);
        double fades =
            portable_exp(fmin(most - likelihood, 0.0)); /* what came before counts by the newest most */
        double weight = portable_exp(fmin(likelihood - most, 0.0));

        most = fmax(most, likelihood);
        weights = weights * fades + weight;
        for (size_t k = 0; k < count; k++) {
            struct limit_belief said = say(evidence, &scales, room.right, count + 1, k + 1, compress(below));

            out_beliefs[k].expected = out_beliefs[k].expected * fades + weight * said.expected;
            out_beliefs[k].chance = out_beliefs[k].chance * fades + weight * said.chance;
        }
    }
    for (size_t i = 0; i < count; i++) {
        out_beliefs[i].expected /= weights;
        out_beliefs[i].chance /= weights;
    }
}
