/* SPDX-License-Identifier: Apache-2.0 */
#include "train/program/traceback.h"

#include <ctype.h>
#include <string.h>

static const char header[] = "Traceback (most recent call last):";

static const char *const chains[] = {"During handling of the above exception",
                                     "The above exception was the direct cause"};

/* What a launcher or another rank raises after a process has failed. */
static const char *const relays[] = {"ChildFailedError",
                                     "CalledProcessError",
                                     "ProcessRaisedException",
                                     "ProcessExitedException",
                                     "DistBackendError",
                                     "DistNetworkError",
                                     "RayTaskError",
                                     "WorkerCrashedError",
                                     "ActorDiedError",
                                     "BrokenProcessPool",
                                     "BrokenPipeError",
                                     "ConnectionResetError",
                                     "ConnectionError",
                                     "EOFError",
                                     "Connection closed by",
                                     "Connection reset by",
                                     "KeyboardInterrupt",
                                     "SystemExit",
                                     "NCCL",
                                     "DataLoader worker"};

static bool has_one(const char *line, const char *const *pieces, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (strstr(line, pieces[i]) != NULL)
            return true;
    }
    return false;
}

/*
 * Whether the line begins with an exception's name: "torch.OutOfMemoryError: ..." or "KeyError". A name has
 * letters of both cases, so "INFO: ..." is none.
 */
static bool names_exception(const char *line)
{
    bool upper = false, lower = false;

    for (; isalnum((unsigned char)*line) || *line == '_' || *line == '.'; line++) {
        upper |= isupper((unsigned char)*line) != 0;
        lower |= islower((unsigned char)*line) != 0;
    }
    return upper && lower && (*line == ':' || *line == '\0');
}

static void begin(struct traceback *traceback, const char *line, const char *at)
{
    traceback->prefix_length = (size_t)(at - line);
    traceback->open = traceback->prefix_length <= TRACEBACK_PREFIX_MAX;
    if (traceback->open)
        memcpy(traceback->prefix, line, traceback->prefix_length);
}

enum traceback_line traceback_take(struct traceback *traceback, const char *line)
{
    const char *at = strstr(line, header);
    bool follows;

    if (at != NULL) {
        begin(traceback, line, at);
        return TRACEBACK_CODE;
    }
    traceback->chained |= has_one(line, chains, sizeof chains / sizeof chains[0]);
    if (!traceback->open || strncmp(line, traceback->prefix, traceback->prefix_length) != 0)
        return TRACEBACK_NONE;
    line += traceback->prefix_length;
    if (*line == ' ' || *line == '\t')
        return TRACEBACK_CODE;
    if (!names_exception(line))
        return TRACEBACK_NONE;
    follows = traceback->chained || has_one(line, relays, sizeof relays / sizeof relays[0]);
    traceback->open = traceback->chained = false;
    return follows ? TRACEBACK_RELAY : TRACEBACK_RAISED;
}
