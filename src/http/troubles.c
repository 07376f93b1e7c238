/* SPDX-License-Identifier: Apache-2.0 */
#include "http/troubles.h"

#include <stdio.h>
#include <string.h>

enum { LINE_MAX = FLY_ERROR_TEXT_MAX + 128 };

void troubles_init(struct troubles *troubles, void (*tell)(void *state, const char *line), void *state)
{
    *troubles = (struct troubles){.tell = tell, .state = state};
    pthread_mutex_init(&troubles->lock, NULL);
}

void troubles_deinit(struct troubles *troubles)
{
    pthread_mutex_destroy(&troubles->lock);
}

void troubles_set(struct troubles *troubles, struct trouble *trouble, const struct fly_error *why)
{
    bool is = why != NULL && why->code != 0;
    char line[LINE_MAX];

    pthread_mutex_lock(&troubles->lock);
    if (is != trouble->is) {
        troubles->untold[0] = '\0';
        trouble->is = is;
        if (is)
            snprintf(line, sizeof line, "%s: %s; %s", trouble->name, why->text, trouble->meaning);
        else
            snprintf(line, sizeof line, "%s: %s", trouble->name, trouble->over);
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
