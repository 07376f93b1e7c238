/* SPDX-License-Identifier: Apache-2.0 */
#include "train/program/step_place.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/number.h"

/* Above the descriptors to which programs give fixed numbers. */
enum { LOWEST = 10 };

char *step_place_write(const struct step_place *place, char text[STEP_PLACE_MAX])
{
    snprintf(text, STEP_PLACE_MAX, "%s:%llu:%llu", place->path, (unsigned long long)place->device,
             (unsigned long long)place->inode);
    return text;
}

/* Cuts the number after the last colon off the text. */
static bool cut_number(char *text, uint64_t *out_number)
{
    char *colon = strrchr(text, ':');

    if (colon == NULL || !number_parse_u64(colon + 1, UINT64_MAX, out_number))
        return false;
    *colon = '\0';
    return true;
}

bool step_place_read(const char *text, struct step_place *out_place)
{
    char copy[STEP_PLACE_MAX];
    struct step_place place;

    if (text[0] != '/' || strlen(text) >= sizeof copy)
        return false;
    memcpy(copy, text, strlen(text) + 1);
    if (!cut_number(copy, &place.inode) || !cut_number(copy, &place.device) ||
        strlen(copy) >= sizeof place.path)
        return false;
    memcpy(place.path, copy, strlen(copy) + 1);
    *out_place = place;
    return true;
}

static bool is_it(const struct step_place *place, const struct stat *status)
{
    return S_ISREG(status->st_mode) && status->st_dev == place->device && status->st_ino == place->inode;
}

bool step_place_is(const struct step_place *place, int fd)
{
    struct stat status;

    return fd >= 0 && fstat(fd, &status) == 0 && is_it(place, &status);
}

int step_place_open(const struct step_place *place)
{
    struct stat status;
    int low, file = -1;

    /* Opening another file may have effects: a device, or a FIFO at which a process waits. */
    if (stat(place->path, &status) < 0 || !is_it(place, &status))
        return -1;
    low = open(place->path, O_WRONLY | O_APPEND | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    if (step_place_is(place, low))
        file = fcntl(low, F_DUPFD_CLOEXEC, LOWEST);
    if (low >= 0)
        close(low);
    return file;
}
