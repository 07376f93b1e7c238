/* SPDX-License-Identifier: Apache-2.0 */
#include "node/node_devices.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LINE_MAX_BYTES = 128 };

/* Lines of that file are "195 nvidia"; older drivers call it "nvidia-frontend". */
static unsigned find_major(FILE *file)
{
    char line[LINE_MAX_BYTES];

    while (fgets(line, sizeof line, file) != NULL) {
        char *name;
        unsigned long major = strtoul(line, &name, 10);

        name += strspn(name, " ");
        name[strcspn(name, "\n")] = '\0';
        if (strcmp(name, "nvidia") == 0 || strcmp(name, "nvidia-frontend") == 0)
            return (unsigned)major;
    }
    return 0;
}

void node_devices_find(const char *sysfs_root, struct node_devices *out_devices)
{
    char path[NODE_DEVICES_PATH_MAX + 32];
    FILE *file;

    *out_devices = (struct node_devices){.major = 0};
    if (sysfs_root == NULL)
        return;
    snprintf(out_devices->directory, sizeof out_devices->directory, "%s/dev", sysfs_root);
    snprintf(path, sizeof path, "%s/proc/devices", sysfs_root);
    file = fopen(path, "re");
    if (file == NULL)
        return;
    out_devices->major = find_major(file);
    fclose(file);
}
