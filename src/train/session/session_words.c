/* SPDX-License-Identifier: Apache-2.0 */
/* Reads what a program says of a training in words: its target, its optimizer, its exceptions. */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include <flyball/session.h>

#include "base/error.h"
#include "base/number.h"
#include "train/program/memory_words.h"

int fly_target_parse(const char *text, enum fly_target *out_target, double *out_metric,
                     struct fly_error *out_error)
{
    bool at_most = strncmp(text, "<=", 2) == 0;
    const char *number = text + (at_most || strncmp(text, ">=", 2) == 0 ? 2 : 0);
    double metric;

    number += strspn(number, " ");
    if (!number_parse_double(number, &metric) || !isfinite(metric))
        return error_set(out_error, FLY_EUSAGE,
                         "target '%.60s': expected a number, as in '>=0.79' or '<=0.3'", text);
    *out_target = at_most ? FLY_TARGET_AT_MOST : FLY_TARGET_AT_LEAST;
    *out_metric = metric;
    return 0;
}

/* Pieces of optimizers' names in any case; the first row that a name contains decides. */
static const struct {
    const char *piece;
    enum fly_scaling scaling;
} scalings[] = {
    {"linear", FLY_SCALE_LINEAR},
    {"square-root", FLY_SCALE_SQUARE_ROOT},
    /* Steps divided by a running size of the gradient. */
    {"ada", FLY_SCALE_SQUARE_ROOT}, /* Adam, AdamW, NAdam, Adagrad, Adadelta, Adafactor, Adamax, ... */
    {"rmsprop", FLY_SCALE_SQUARE_ROOT},
    {"lamb", FLY_SCALE_SQUARE_ROOT},
    {"lion", FLY_SCALE_SQUARE_ROOT},
    {"novograd", FLY_SCALE_SQUARE_ROOT},
    /* Steps along the gradient itself. */
    {"sgd", FLY_SCALE_LINEAR},
    {"momentum", FLY_SCALE_LINEAR},
    {"nesterov", FLY_SCALE_LINEAR},
    {"lars", FLY_SCALE_LINEAR},
};

/* Whether `name` contains the piece, which is in small letters. */
static bool has_piece(const char *name, const char *piece)
{
    size_t length = strlen(piece);

    for (; *name != '\0'; name++) {
        if (strncasecmp(name, piece, length) == 0)
            return true;
    }
    return false;
}

int fly_scaling_parse(const char *optimizer, enum fly_scaling *out_scaling, struct fly_error *out_error)
{
    const char *dot = strrchr(optimizer, '.'), *name = dot != NULL ? dot + 1 : optimizer;

    for (size_t i = 0; i < sizeof scalings / sizeof scalings[0]; i++) {
        if (has_piece(name, scalings[i].piece)) {
            *out_scaling = scalings[i].scaling;
            return 0;
        }
    }
    return error_set(out_error, FLY_EUSAGE,
                     "optimizer '%.60s': how its learning rate follows the batch size is not known; say "
                     "'linear' or 'square-root'",
                     optimizer);
}

/* As an interpreter writes it at the end of a traceback. */
bool fly_out_of_memory(const char *exception, const char *text)
{
    char line[MEMORY_LINE_MAX];
    const char *words;

    snprintf(line, sizeof line, "%.500s%s%s", exception, exception[0] != '\0' ? ": " : "", text);
    return memory_words_in(line, &words) != MEMORY_NONE;
}
