/* SPDX-License-Identifier: Apache-2.0 */
/* Objectives and bounds on the slowdown: accepted ones are in the documented range. */
#include <flyball/objective.h>

#include <math.h>
#include <string.h>

#include "fuzz.h"

enum { TEXT_MAX = 256 };

static void check_objective(const char *text)
{
    struct fly_objective objective = {.eta = -1.0, .max_slowdown = -1.0};
    struct fly_error error = {.code = 0};
    int code = fly_objective_parse(text, &objective, &error);

    if (code == 0) {
        FUZZ_CHECK(objective.kind >= FLY_OBJECTIVE_ENERGY && objective.kind <= FLY_OBJECTIVE_MONEY);
        FUZZ_CHECK(objective.eta >= 0.0 && objective.eta <= 1.0);
        FUZZ_CHECK(isinf(objective.max_slowdown) && objective.max_slowdown > 0.0);
        FUZZ_CHECK(objective.kind == FLY_OBJECTIVE_COST || strchr(text, ':') == NULL);
    } else {
        FUZZ_CHECK(code == FLY_EUSAGE && error.code == code && error.text[0] != '\0');
        FUZZ_CHECK(objective.eta == -1.0 && objective.max_slowdown == -1.0); /* unchanged */
    }
    FUZZ_CHECK(fly_objective_parse(text, &objective, NULL) == code);
}

static void check_slowdown(const char *text)
{
    struct fly_error error = {.code = 0};
    double factor = -1.0;
    int code = fly_slowdown_parse(text, &factor, &error);

    if (code == 0) {
        char last = text[strlen(text) - 1];

        FUZZ_CHECK(factor >= 1.0);
        /* A bare number could mean either. */
        FUZZ_CHECK(isfinite(factor) ? last == '%' || last == 'x' : strcmp(text, "none") == 0);
    } else {
        FUZZ_CHECK(code == FLY_EUSAGE && error.code == code && error.text[0] != '\0');
        FUZZ_CHECK(factor == -1.0);
    }
    FUZZ_CHECK(fly_slowdown_parse(text, &factor, NULL) == code);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char text[TEXT_MAX] = "";

    if (size > 0)
        memcpy(text, data, size < TEXT_MAX ? size : TEXT_MAX - 1);
    check_objective(text);
    check_slowdown(text);
    return 0;
}
