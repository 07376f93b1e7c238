/* SPDX-License-Identifier: Apache-2.0 */
#include "own_directory.h"

#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

bool own_directory_make(const char *name, char out_path[OWN_DIRECTORY_MAX])
{
    snprintf(out_path, OWN_DIRECTORY_MAX, "%s/flyball-%s-XXXXXX",
             access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp", name);
    return mkdtemp(out_path) != NULL;
}

static int remove_one(const char *path, const struct stat *status, int type, struct FTW *walk)
{
    (void)status, (void)type, (void)walk;
    return remove(path);
}

bool own_directory_remove(const char *path)
{
    return nftw(path, remove_one, 16, FTW_DEPTH | FTW_PHYS) == 0;
}
