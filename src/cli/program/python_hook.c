/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/program/python_hook.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"

#ifndef FLYBALL_LIBEXECDIR
#define FLYBALL_LIBEXECDIR "/usr/local/libexec/flyball"
#endif

#define MODULE "/sitecustomize.py"

/* From the directory of this program: in a build, or in a wheel; and in any prefix. */
static const char *const beside[] = {"/python/hook", "/../libexec/flyball/python"};
static const char installed[] = FLYBALL_LIBEXECDIR "/python";

static bool is_hook(const char *path)
{
    char module[PYTHON_HOOK_PATH_MAX + sizeof MODULE];

    snprintf(module, sizeof module, "%s" MODULE, path);
    return access(module, R_OK) == 0;
}

/* The directory of this program; false when it is not known. */
static bool own_directory(char directory[PYTHON_HOOK_PATH_MAX])
{
    ssize_t length = readlink("/proc/self/exe", directory, PYTHON_HOOK_PATH_MAX - 1);
    char *slash;

    directory[length > 0 ? length : 0] = '\0';
    slash = strrchr(directory, '/');
    if (slash != NULL)
        *slash = '\0';
    return slash != NULL;
}

bool python_hook_find(char path[PYTHON_HOOK_PATH_MAX])
{
    const char *named = getenv(PYTHON_HOOK_VARIABLE);
    char directory[PYTHON_HOOK_PATH_MAX];

    if (named != NULL && named[0] != '\0') {
        snprintf(path, PYTHON_HOOK_PATH_MAX, "%s", named);
        return is_hook(path);
    }
    for (size_t i = 0; i < sizeof beside / sizeof beside[0] && own_directory(directory); i++) {
        int length = snprintf(path, PYTHON_HOOK_PATH_MAX, "%s%s", directory, beside[i]);

        if (length < PYTHON_HOOK_PATH_MAX && is_hook(path))
            return true;
    }
    snprintf(path, PYTHON_HOOK_PATH_MAX, "%s", installed);
    return is_hook(path);
}

int python_hook_put(struct python_hook *out_hook, struct fly_error *out_error)
{
    const char *before = getenv(PYTHON_PATH_VARIABLE);
    bool has_before = before != NULL && before[0] != '\0';
    char path[PYTHON_HOOK_PATH_MAX], *value;
    int length;

    *out_hook = (struct python_hook){.put = false};
    if (!python_hook_find(path))
        return error_set(out_error, FLY_ENOTFOUND,
                         "'%.300s' has no sitecustomize.py; install Flyball whole, or name the directory "
                         "in " PYTHON_HOOK_VARIABLE,
                         path);
    if (strchr(path, ':') != NULL)
        return error_set(out_error, FLY_EUSAGE,
                         "'%.300s' has a colon, which " PYTHON_PATH_VARIABLE " cannot hold", path);
    /* An empty part of PYTHONPATH would be the working directory. */
    length = asprintf(&value, "%s%s%s", path, has_before ? ":" : "", has_before ? before : "");
    if (length < 0)
        return error_no_memory(out_error);
    out_hook->before = before != NULL ? strdup(before) : NULL;
    out_hook->put = setenv(PYTHON_PATH_VARIABLE, value, 1) == 0;
    free(value);
    return out_hook->put ? 0 : error_no_memory(out_error);
}

void python_hook_offer(struct python_hook *out_hook, struct step_hook *hook)
{
    struct fly_error error;

    hook->wanted = true;
    if (python_hook_put(out_hook, &error) < 0)
        snprintf(hook->not_offered, sizeof hook->not_offered, "%.*s", STEP_HOOK_TEXT_MAX - 1, error.text);
}

void python_hook_take_back(struct python_hook *hook)
{
    if (!hook->put)
        return;
    if (hook->before != NULL)
        setenv(PYTHON_PATH_VARIABLE, hook->before, 1);
    else
        unsetenv(PYTHON_PATH_VARIABLE);
    free(hook->before);
    *hook = (struct python_hook){.put = false};
}
