/* SPDX-License-Identifier: Apache-2.0 */
/* The array of all providers, and which one a source means. */
#include "grid/providers.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/words.h"

const struct grid_provider *const grid_providers[] = {
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

int grid_read(const char *source, struct grid_request *request, struct grid_answer *out_answer,
              struct fly_error *out_error)
{
    const char *colon = strchr(source, ':');
    char word[WORD_MAX];

    for (size_t i = 0; colon != NULL && grid_providers[i] != NULL; i++) {
        const char *name = grid_providers[i]->name;

        if (strlen(name) == (size_t)(colon - source) && strncmp(source, name, strlen(name)) == 0) {
            request->place = colon + 1;
            return grid_providers[i]->read(request, out_answer, out_error);
        }
    }
    take_word(source, word);
    if (word[0] != '\0' && access(source, F_OK) != 0)
        return refuse(source, word, out_error);
    /* Anything else can be the name of a file. */
    request->place = source;
    return grid_provider_csv.read(request, out_answer, out_error);
}
