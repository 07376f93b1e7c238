/* SPDX-License-Identifier: Apache-2.0 */
#include "nvml/opened.h"

#include "test.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

void opened_path(const char *name, char path[256])
{
    const char *directory = getenv("FLYBALL_TEST_BUILD");

    snprintf(path, 256, "%s/nvml/nvml_%s.so", directory != NULL ? directory : "build/tests", name);
}

struct opened *opened_load(const char *name)
{
    struct opened *opened = calloc(1, sizeof *opened);

    assert_non_null(opened);
    opened_path(name, opened->path);
    opened->object = dlopen(opened->path, RTLD_NOW | RTLD_LOCAL);
    if (opened->object == NULL)
        fail_msg("%s", dlerror());
    opened->standin = dlsym(opened->object, "standin");
    assert_non_null(opened->standin);
    return opened;
}

int opened_gpus(struct opened *opened)
{
    struct device_options options = {.nvml_path = opened->path};

    return device_backend_nvml.open(&options, &opened->list, &opened->error);
}

void opened_close(struct opened *opened)
{
    device_list_close(&opened->list);
    if (opened->standin->codes[STANDIN_init] == 0)
        assert_int_equal(opened->standin->calls[STANDIN_init], opened->standin->calls[STANDIN_shutdown]);
    dlclose(opened->object);
    free(opened);
}

unsigned opened_calls(const struct opened *opened)
{
    unsigned sum = 0;

    for (int i = 0; i < STANDIN_SLOTS; i++)
        sum += opened->standin->calls[i];
    return sum;
}
