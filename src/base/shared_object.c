/* SPDX-License-Identifier: Apache-2.0 */
#include "base/shared_object.h"

#include <dlfcn.h>
#include <errno.h>
#include <fenv.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/error.h"

/* Checks for what a loader reports at length, or not at all. */
static int check_file(const char *path, struct fly_error *out_error)
{
    struct stat status;

    if (stat(path, &status) < 0) {
        int code = errno == EACCES ? FLY_EPERM : FLY_ENOTFOUND;

        return error_set(out_error, code, "shared object '%.200s' cannot be read: %s; correct its path", path,
                         strerror(errno));
    }
    if (!S_ISREG(status.st_mode))
        return error_set(out_error, FLY_EDATA,
                         "'%.200s' is no regular file; expected the path of a shared object", path);
    return 0;
}

/* Returns the loader's message without the path with which most of them begin. */
static const char *cause(const char *path)
{
    const char *text = dlerror();
    size_t length = strlen(path);

    if (text == NULL)
        return "unknown cause";
    return strncmp(text, path, length) == 0 && strncmp(text + length, ": ", 2) == 0 ? text + length + 2
                                                                                    : text;
}

/* Loads, and undoes changes that the object makes to the floating-point environment while it is loaded. */
static void *load(const char *file)
{
    fenv_t environment;
    void *handle;

    fegetenv(&environment);
    handle = dlopen(file, RTLD_NOW | RTLD_LOCAL);
    fesetenv(&environment);
    return handle;
}

int shared_object_open(const char *path, struct shared_object *out_object, struct fly_error *out_error)
{
    int code = check_file(path, out_error);
    char *file = NULL;
    void *handle;

    if (code < 0)
        return code;
    /* The loader would search for a name without a slash. */
    if (asprintf(&file, "%s%s", strchr(path, '/') == NULL ? "./" : "", path) < 0)
        return error_no_memory(out_error);
    handle = load(file);
    if (handle == NULL)
        code = error_set(out_error, FLY_EDATA,
                         "shared object '%.200s' cannot be loaded: %.200s; build it again for this machine, "
                         "with -shared -fPIC",
                         path, cause(file));
    else
        out_object->handle = handle;
    free(file);
    return code;
}

int shared_object_open_library(const char *name, struct shared_object *out_object,
                               struct fly_error *out_error)
{
    void *handle = load(name);

    if (handle == NULL)
        return error_set(out_error, FLY_ENOTFOUND, "library '%.100s' cannot be loaded: %.300s", name,
                         cause(name));
    out_object->handle = handle;
    return 0;
}

void shared_object_close(struct shared_object *object)
{
    if (object->handle != NULL)
        dlclose(object->handle);
    object->handle = NULL;
}

struct range {
    uintptr_t base, low, high;
};

static int find_range(struct dl_phdr_info *info, size_t size, void *context)
{
    struct range *range = context;

    (void)size;
    if (info->dlpi_addr != range->base)
        return 0;
    for (size_t i = 0; i < info->dlpi_phnum; i++) {
        uintptr_t low = info->dlpi_addr + info->dlpi_phdr[i].p_vaddr, high = low + info->dlpi_phdr[i].p_memsz;

        if (info->dlpi_phdr[i].p_type != PT_LOAD)
            continue;
        range->low = range->high == 0 || low < range->low ? low : range->low;
        range->high = high > range->high ? high : range->high;
    }
    return 1;
}

bool shared_object_range(const struct shared_object *object, uintptr_t *out_low, uintptr_t *out_high)
{
    const struct link_map *map = NULL;
    struct range range = {0};

    if (dlinfo(object->handle, RTLD_DI_LINKMAP, &map) < 0 || map == NULL)
        return false;
    range.base = map->l_addr;
    dl_iterate_phdr(find_range, &range);
    *out_low = range.low;
    *out_high = range.high;
    return range.high > range.low;
}

const void *shared_object_find(const struct shared_object *object, const char *symbol)
{
    return dlsym(object->handle, symbol);
}
