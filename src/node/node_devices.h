/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_NODE_NODE_DEVICES_H
#define FLYBALL_NODE_NODE_DEVICES_H

enum { NODE_DEVICES_PATH_MAX = 4096 };

/*
 * Where the device files of GPUs lie, and their major number, where `devices.sysfs_root` stands for the
 * machine's directories: its dev, and what its proc/devices says of "nvidia". "" and 0 without a root, and a
 * major of 0 if that file does not name them: then they are the machine's own.
 */
struct node_devices {
    char directory[NODE_DEVICES_PATH_MAX];
    unsigned major;
};

void node_devices_find(const char *sysfs_root, struct node_devices *out_devices);

#endif
