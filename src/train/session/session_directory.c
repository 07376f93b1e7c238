/* SPDX-License-Identifier: Apache-2.0 */
/* A directory for each try. Attempts of one trial share it; tries with different batch sizes never do. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "train/program/run_variables.h"
#include "train/session/session_private.h"

static const char usual[] = "flyball-tries";

/* Of directories of one name that other logs left behind. */
enum { COPIES_MAX = 10000 };

/* 52 bits, which a double holds: numbers are what ranks can share. */
static uint64_t mixed(uint64_t hash, const char *text)
{
    for (; *text != '\0'; text++)
        hash = (hash ^ (unsigned char)*text) * 0x100000001b3U;
    return hash & 0xfffffffffffffU;
}

void session_directory_open(struct fly_session *session)
{
    const char *given = session->options.tries_directory;
    const char *below = given != NULL && given[0] != '\0' ? given : usual;
    char here[SESSION_PATH_MAX] = "";
    int length;

    if (below[0] != '/' && getcwd(here, sizeof here) == NULL)
        return;
    length = snprintf(session->tries_directory, sizeof session->tries_directory, "%s%s%s", here,
                      below[0] != '/' ? "/" : "", below);
    if (length < 0 || (size_t)length >= sizeof session->tries_directory)
        session->tries_directory[0] = '\0';
}

/* Names the directory of a trial, or of a training that the log does not know; false: too long. */
static bool name(const struct fly_session *session, uint64_t number, uint64_t copy,
                 char out_path[SESSION_PATH_MAX])
{
    char suffix[24] = "";
    int length;

    if (copy > 1)
        snprintf(suffix, sizeof suffix, "-%" PRIu64, copy);
    length = snprintf(out_path, SESSION_PATH_MAX,
                      session->known ? "%s/%s/trial-%" PRIu64 "%s" : "%s/%s/run-%" PRIx64 "%s",
                      session->tries_directory, session->options.job.name, number, suffix);
    return length >= 0 && length < SESSION_PATH_MAX;
}

static bool is_there(const struct fly_session *session, uint64_t number, uint64_t copy)
{
    char path[SESSION_PATH_MAX];
    struct stat status;

    return name(session, number, copy, path) && stat(path, &status) == 0;
}

/*
 * A trial's number comes again when its log was deleted. So a first attempt takes a name that is not there,
 * and later ones take the newest.
 */
static uint64_t copy_of(const struct fly_session *session, uint64_t number)
{
    uint64_t copy = 1;

    if (!session->known)
        return copy;
    while (copy < COPIES_MAX && is_there(session, number, copy))
        copy++;
    return session->proposal.attempt > 1 && copy > 1 ? copy - 1 : copy;
}

/* Without a trial: of the run, which stays when it is requeued, or of this request. */
static uint64_t number_of(const struct fly_session *session)
{
    char batch_size[16];

    if (session->known)
        return session->proposal.trial;
    snprintf(batch_size, sizeof batch_size, "/%" PRIu32, session->proposal.batch_size);
    return mixed(mixed(0xcbf29ce484222U, session->run[0] != '\0' ? session->run : session->request),
                 batch_size);
}

void session_directory_choose(struct fly_session *session)
{
    const char *told = session->inside ? run_variable(RUN_VARIABLE_TRY_DIRECTORY) : NULL;
    uint64_t number = number_of(session);
    double shared[] = {(double)number, (double)copy_of(session, number)};

    session->directory[0] = '\0';
    session_share(session, shared, sizeof shared / sizeof shared[0]);
    if (told != NULL && strlen(told) < sizeof session->directory)
        memcpy(session->directory, told, strlen(told) + 1);
    else if (session->tries_directory[0] == '\0' ||
             !name(session, (uint64_t)shared[0], (uint64_t)shared[1], session->directory))
        session->directory[0] = '\0';
}

/* Makes the directory and those above it; 0 or errno. */
static int make(const char *path)
{
    char above[SESSION_PATH_MAX];
    struct stat status;

    snprintf(above, sizeof above, "%s", path);
    for (char *at = strchr(above + 1, '/'); at != NULL; at = strchr(at + 1, '/')) {
        *at = '\0';
        (void)mkdir(above, 0777); /* the last one says what is wrong */
        *at = '/';
    }
    if (mkdir(path, 0777) == 0)
        return 0;
    return errno == EEXIST && stat(path, &status) == 0 && S_ISDIR(status.st_mode) ? 0 : errno;
}

int fly_session_directory(const struct fly_session *session, char *out_path, size_t capacity,
                          struct fly_error *out_error)
{
    size_t length = strlen(session->directory);
    int code;

    if (length == 0 || length >= capacity)
        return error_set(
            out_error, FLY_ELIMIT,
            "session: the path of a try's directory is too long; give a shorter tries_directory");
    code = make(session->directory);
    if (code != 0)
        return error_set(out_error, FLY_EWRITE, "session: cannot make the directory '%.200s': %s",
                         session->directory, strerror(code));
    memcpy(out_path, session->directory, length + 1);
    return 0;
}
