/* SPDX-License-Identifier: Apache-2.0 */
#include "base/pid_namespace.h"

#include <stdio.h>
#include <sys/stat.h>

enum { NAMESPACE_PATH_MAX = 300 };

/* The number of the first pid namespace, which the kernel never changes. */
static const ino_t first_pid_namespace = 0xEFFFFFFC;

bool pid_namespace_is_first(const char *proc_root)
{
    char path[NAMESPACE_PATH_MAX];
    struct stat status;

    snprintf(path, sizeof path, "%.200s/self/ns/pid", proc_root);
    return stat(path, &status) == 0 && status.st_ino == first_pid_namespace;
}
