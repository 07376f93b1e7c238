/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The lock is on a file beside the target, since the target itself is replaced as a whole when it
 * is written. Who holds the lock removes the file; whoever opened it before then holds a file
 * without a name, sees that, and opens it again.
 */
#include "cli/options/output_path.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "meter/process_claims.h"

enum { ATTEMPTS = 100 };

enum hold { HELD, TAKEN, NO_LOCKS };

/* ---- names ---- */

/* The value of one sign; NULL for one that means nothing. */
static const char *value_of(char sign, const struct identity *identity, char number[32])
{
    const char *job = strchr(identity->job, '-'); /* behind what names the scheduler, "slurm-4711" */

    switch (sign) {
    case '%':
        return "%";
    case 'h':
        return identity->node;
    case 't':
        snprintf(number, 32, "%d", identity->rank >= 0 ? identity->rank : 0);
        return number;
    case 'j':
        if (job != NULL)
            return job + 1;
        /* fallthrough */
    case 'p':
        snprintf(number, 32, "%ld", (long)getpid());
        return number;
    default:
        return NULL;
    }
}

int output_path_expand(const char *pattern, char out_path[OUTPUT_PATH_MAX], struct fly_error *out_error)
{
    struct identity identity;
    size_t length = 0;

    process_identity(&identity);
    for (const char *at = pattern; *at != '\0'; at++) {
        char text[32] = {*at};
        const char *value = *at == '%' ? value_of(*++at, &identity, text) : text;

        if (value == NULL)
            return error_set(
                out_error, FLY_EUSAGE,
                "'%s': '%%%.*s' means nothing in a file's name: %%t is the rank, %%j the job, %%h the "
                "machine, %%p the process, %%%% a %%",
                pattern, *at != '\0', at);
        if (length + strlen(value) >= OUTPUT_PATH_MAX)
            return error_set(out_error, FLY_EUSAGE, "'%.64s...': longer than %d bytes; name a shorter path",
                             pattern, OUTPUT_PATH_MAX - 1);
        length += (size_t)snprintf(out_path + length, OUTPUT_PATH_MAX - length, "%s", value);
    }
    out_path[length] = '\0';
    return 0;
}

int output_path_open(const char *pattern, struct atomic_file *out_file, struct fly_error *out_error)
{
    char path[OUTPUT_PATH_MAX];
    int code = output_path_expand(pattern, path, out_error);

    return code == 0 ? atomic_file_open(path, out_file, out_error) : code;
}

/* ---- one writer ---- */

static const char *base_of(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash != NULL ? slash + 1 : path;
}

static bool same_file(int fd, const char *path)
{
    struct stat held, named;

    return fstat(fd, &held) == 0 && lstat(path, &named) == 0 && held.st_dev == named.st_dev &&
           held.st_ino == named.st_ino;
}

static enum hold try_hold(struct output_path *output)
{
    const char *base = base_of(output->path);

    if (snprintf(output->lock_path, OUTPUT_PATH_MAX, "%.*s.%s.flyball-lock", (int)(base - output->path),
                 output->path, base) >= OUTPUT_PATH_MAX)
        return HELD;
    for (int i = 0; i < ATTEMPTS; i++) {
        int fd = open(output->lock_path, O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0666);

        if (fd < 0)
            return errno == EACCES && access(output->lock_path, F_OK) == 0 ? TAKEN : HELD;
        if (flock(fd, LOCK_EX | LOCK_NB) < 0) {
            enum hold hold = errno == EWOULDBLOCK ? TAKEN : NO_LOCKS;

            close(fd);
            return hold;
        }
        if (same_file(fd, output->lock_path)) {
            output->lock = fd;
            return HELD;
        }
        close(fd);
    }
    return TAKEN;
}

/* Makes of "run.json" "run.n17-4711.json", and with a number above 1 "run.n17-4711-2.json". */
static bool set_aside(const char *wanted, const char *node, int number, char out_path[OUTPUT_PATH_MAX])
{
    const char *base = base_of(wanted), *dot = strrchr(base, '.');
    const char *end = dot != NULL && dot != base ? dot : wanted + strlen(wanted);
    char more[16] = "";

    if (number > 1)
        snprintf(more, sizeof more, "-%d", number);
    return snprintf(out_path, OUTPUT_PATH_MAX, "%.*s.%s-%ld%s%s", (int)(end - wanted), wanted, node,
                    (long)getpid(), more, end) < OUTPUT_PATH_MAX;
}

void output_path_hold(const struct cli_call *call, struct output_path *output)
{
    struct identity identity;
    char wanted[OUTPUT_PATH_MAX];
    struct stat status;
    enum hold hold;

    output->lock = -1;
    if (stat(output->path, &status) == 0 && !S_ISREG(status.st_mode))
        return;
    process_identity(&identity);
    hold = try_hold(output);
    if (hold == HELD || (hold == NO_LOCKS && identity.world_size <= 1))
        return;
    snprintf(wanted, sizeof wanted, "%s", output->path);
    for (int number = 1; number <= ATTEMPTS; number++) {
        if (!set_aside(wanted, identity.node, number, output->path))
            break;
        if (access(output->path, F_OK) < 0 && try_hold(output) != TAKEN)
            break;
    }
    cli_warn(call, "%s '%s', so this one writes '%s'; with %%t in its name each rank has a file of its own",
             hold == TAKEN ? "another run that has not ended writes" : "other ranks may write", wanted,
             output->path);
}

void output_path_release(struct output_path *output)
{
    if (output->lock < 0)
        return;
    unlink(output->lock_path);
    close(output->lock);
    output->lock = -1;
}
