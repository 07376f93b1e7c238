/* SPDX-License-Identifier: Apache-2.0 */
#include "base/file/user_directory.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pwd.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"

static const struct {
    const char *variable, *in_home;
} places[] = {
    [USER_STATE] = {"XDG_STATE_HOME", "/.local/state"},
    [USER_CACHE] = {"XDG_CACHE_HOME", "/.cache"},
};

static bool find_home(char home[PATH_MAX])
{
    const char *given = getenv("HOME");
    struct passwd user, *found = NULL;
    char texts[PATH_MAX];

    if (given == NULL || given[0] != '/')
        given = getpwuid_r(geteuid(), &user, texts, sizeof texts, &found) == 0 && found != NULL
                    ? found->pw_dir
                    : NULL;
    if (given == NULL || given[0] != '/' || strlen(given) >= PATH_MAX)
        return false;
    memcpy(home, given, strlen(given) + 1);
    return true;
}

int user_directory_find(enum user_directory kind, const char *below, const char *what, char *out,
                        size_t capacity, struct fly_error *out_error)
{
    const char *base = getenv(places[kind].variable), *between = "";
    char home[PATH_MAX];
    int length;

    if (base == NULL || base[0] != '/') {
        if (!find_home(home))
            return error_set(out_error, FLY_ENOTFOUND, "no home directory for %s; set HOME or %s", what,
                             places[kind].variable);
        base = home;
        between = places[kind].in_home;
    }
    length = snprintf(out, capacity, "%s%s/flyball/%s", base, between, below);
    if (length < 0 || (size_t)length >= capacity)
        return error_set(out_error, FLY_ELIMIT, "the path of %s is too long: '%.100s...'; set %s", what, base,
                         places[kind].variable);
    return 0;
}

bool user_directory_is_closed(void)
{
    char home[PATH_MAX];

    return find_home(home) && faccessat(AT_FDCWD, home, X_OK, AT_EACCESS) < 0 && errno == EACCES;
}

int user_directory_make_above(const char *path, mode_t mode)
{
    char part[PATH_MAX];

    for (const char *slash = strchr(path + 1, '/'); slash != NULL; slash = strchr(slash + 1, '/')) {
        int length = snprintf(part, sizeof part, "%.*s", (int)(slash - path), path);

        if (length >= (int)sizeof part)
            return ENAMETOOLONG;
        if (mkdir(part, mode) < 0 && errno != EEXIST)
            return errno;
    }
    return 0;
}

int user_directory_make(const char *path)
{
    struct stat status;
    int cause = user_directory_make_above(path, S_IRWXU);

    if (cause != 0)
        return cause;
    if (mkdir(path, S_IRWXU) < 0 && errno != EEXIST)
        return errno;
    if (stat(path, &status) < 0)
        return errno;
    return S_ISDIR(status.st_mode) ? 0 : ENOTDIR;
}
