/* SPDX-License-Identifier: Apache-2.0 */
/* The array of all providers, and which one a source means. */
#include "grid/providers.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/number.h"
#include "base/words.h"
#include "grid/online.h"

/* ---- one figure for all time ---- */

/* One figure for all time, for a site with a contract or a grid without data. */

/* From 1970 to 2106, in periods of ten years, since the figure never changes. */
static const int64_t last_s = INT64_C(4294967296);

static int constant_read(const struct grid_request *request, struct grid_answer *out_answer,
                         struct fly_error *out_error)
{
    struct grid_kind kind = {.quantity = request->quantity, .scope = request->scope, .provider = "constant"};
    struct grid_answer answer = {.remark = ""};
    struct grid_period period = {
        .start_s = 0, .end_s = last_s, .quality = GRID_FALL_BACK, .issued_s = GRID_TIME_UNKNOWN};
    bool carbon = request->quantity == GRID_CARBON;
    int code;

    if (!number_parse_double(request->place, &period.value) ||
        (carbon ? period.value <= 0.0 || period.value > GRID_CARBON_MOST
                : period.value < -GRID_PRICE_MOST || period.value > GRID_PRICE_MOST))
        return error_set(out_error, FLY_EDATA, "constant '%.60s': expected %s; write it as constant:380",
                         request->place,
                         carbon ? "a carbon intensity above 0 and up to 5000 g/kWh" : "a price per kWh");
    grid_series_init(&answer.actual, &kind, GRID_PERIODS_MAX);
    grid_series_init(&answer.published, &kind, GRID_PERIODS_MAX);
    code = grid_series_add(&answer.actual, &period, out_error);
    if (code == 0)
        code = grid_series_settle(&answer.actual, out_error);
    if (code == 0)
        *out_answer = answer;
    else
        grid_answer_deinit(&answer);
    return code;
}

const struct grid_provider grid_provider_constant = {
    .name = "constant",
    .read = constant_read,
};

static const struct grid_provider *const grid_providers[] = {
    &grid_provider_carbon_aware,
    &grid_provider_constant,
    &grid_provider_csv,
    &grid_provider_electricity_maps,
    &grid_provider_gb,
    &grid_provider_watttime,
    NULL,
};

enum { WORD_MAX = 64, PROVIDERS_MAX = sizeof grid_providers / sizeof grid_providers[0] };

/* Gives "foo" of "foo:bar", if that looks like a provider's name; "" if it is a path. */
static void take_word(const char *source, char word[WORD_MAX])
{
    size_t length = strspn(source, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_");

    word[0] = '\0';
    if (length > 0 && length < WORD_MAX && source[length] == ':')
        snprintf(word, length + 1, "%s", source);
}

static int refuse(const char *source, const char *word, struct fly_error *out_error)
{
    const char *names[PROVIDERS_MAX];
    char all[FLY_ERROR_TEXT_MAX / 2] = "";
    size_t length = 0, count = 0;
    int nearest;

    for (; grid_providers[count] != NULL; count++) {
        names[count] = grid_providers[count]->name;
        length +=
            (size_t)snprintf(all + length, sizeof all - length, "%s%s", count > 0 ? ", " : "", names[count]);
    }
    nearest = word_nearest(word, names, count);
    if (nearest >= 0)
        return error_set(out_error, FLY_EUSAGE, "unknown provider '%s' in '%s'; did you mean '%s'?", word,
                         source, names[nearest]);
    return error_set(
        out_error, FLY_EUSAGE,
        "unknown provider '%s' in '%s', and there is no file of that name; expected one of %s, or "
        "the path of a CSV file",
        word, source, all);
}

const struct grid_provider *grid_provider_of(const char *source)
{
    size_t length = strcspn(source, ":");

    for (size_t i = 0; source[length] == ':' && grid_providers[i] != NULL; i++) {
        if (strlen(grid_providers[i]->name) == length &&
            strncmp(source, grid_providers[i]->name, length) == 0)
            return grid_providers[i];
    }
    return NULL;
}

bool grid_is_local(const char *source)
{
    const struct grid_provider *provider = grid_provider_of(source);

    return provider == NULL || provider->read != NULL;
}

int grid_read(const char *source, struct grid_request *request, struct grid_answer *out_answer,
              struct fly_error *out_error)
{
    const struct grid_provider *provider = grid_provider_of(source);
    char word[WORD_MAX];

    /* Anything else can be the name of a file. */
    request->place = provider != NULL ? strchr(source, ':') + 1 : source;
    if (provider == NULL) {
        take_word(source, word);
        if (word[0] != '\0' && access(source, F_OK) != 0)
            return refuse(source, word, out_error);
        provider = &grid_provider_csv;
    }
    return provider->read != NULL ? provider->read(request, out_answer, out_error)
                                  : online_read(provider, request, out_answer, out_error);
}

int grid_read_signal(const char *source, int signal, struct grid_request *request,
                     struct grid_answer *out_answer, const char *remedy, struct fly_error *out_error)
{
    int code;

    request->quantity = signal == CARBON_PRICE ? GRID_PRICE : GRID_CARBON;
    code = grid_read(source, request, out_answer, out_error);
    if (code < 0 || out_answer->actual.kind.quantity == request->quantity)
        return code;
    grid_answer_deinit(out_answer);
    return error_set(out_error, FLY_EUSAGE, "'%.255s' has no %s%s", source,
                     signal == CARBON_PRICE ? "prices" : "carbon intensities", remedy);
}
