/* SPDX-License-Identifier: Apache-2.0 */
#include "serve/troubles.h"

#include <stdio.h>
#include <string.h>

enum { LINE_MAX = FLY_ERROR_TEXT_MAX + 128 };

static const struct {
    const char *name, *meaning, *over;
} words[] = {
    [TROUBLE_TOKENS] = {"tokens", "nobody gets in until that is mended", "their file can be read again"},
    [TROUBLE_STORE] = {"store", "requests are answered with 503 until it is back", "it answers again"},
    [TROUBLE_DISK] = {"disk", "reports are answered with 503 or 507 until that is mended",
                      "it takes data again"},
    [TROUBLE_CERTIFICATE] = {"certificate", "clients refuse it; put another in its place, and send SIGHUP",
                             "one that holds is in use"},
};
_Static_assert(sizeof words / sizeof words[0] == TROUBLE_COUNT, "words for each");

void troubles_init(struct troubles *troubles, void (*tell)(void *state, const char *line), void *state)
{
    *troubles = (struct troubles){.tell = tell, .state = state};
    pthread_mutex_init(&troubles->lock, NULL);
}

void troubles_deinit(struct troubles *troubles)
{
    pthread_mutex_destroy(&troubles->lock);
}

void troubles_set(struct troubles *troubles, enum trouble which, const struct fly_error *why)
{
    bool is = why != NULL && why->code != 0;
    char line[LINE_MAX];

    pthread_mutex_lock(&troubles->lock);
    if (is != troubles->is[which]) {
        troubles->untold[0] = '\0';
        troubles->is[which] = is;
        if (is)
            snprintf(line, sizeof line, "%s: %s; %s", words[which].name, why->text, words[which].meaning);
        else
            snprintf(line, sizeof line, "%s: %s", words[which].name, words[which].over);
        if (troubles->tell != NULL)
            troubles->tell(troubles->state, line);
    }
    pthread_mutex_unlock(&troubles->lock);
}

void troubles_untold(struct troubles *troubles, const struct fly_error *untold)
{
    char line[LINE_MAX];

    if (untold->code == 0)
        return;
    pthread_mutex_lock(&troubles->lock);
    if (strcmp(troubles->untold, untold->text) != 0) {
        snprintf(troubles->untold, sizeof troubles->untold, "%s", untold->text);
        snprintf(line, sizeof line, "answer: %s", untold->text);
        if (troubles->tell != NULL)
            troubles->tell(troubles->state, line);
    }
    pthread_mutex_unlock(&troubles->lock);
}

void troubles_tell(struct troubles *troubles, const char *line)
{
    pthread_mutex_lock(&troubles->lock);
    if (troubles->tell != NULL)
        troubles->tell(troubles->state, line);
    pthread_mutex_unlock(&troubles->lock);
}
