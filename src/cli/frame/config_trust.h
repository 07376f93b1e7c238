/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_CLI_FRAME_CONFIG_TRUST_H
#define FLYBALL_CLI_FRAME_CONFIG_TRUST_H

#include <stdbool.h>
#include <sys/types.h>

/*
 * Whether to trust a configuration file. Flyball reads a file only if root or the user who runs
 * the program owns it and nobody else may write it: settings choose what a program does, and with
 * sudo the program does it as root.
 */
struct config_trust {
    uid_t user;        /* who runs the program: its effective uid */
    uid_t owner;       /* of the file */
    mode_t mode;       /* of the file */
    bool own_group;    /* only the file's owner is in the file's group */
    bool unmapped;     /* the owner is the overflow uid: somebody outside this user namespace */
    bool on_read_only; /* the file is on a mount that nobody here can write */
    bool strange_link; /* the path is a link that neither root nor the user made */
};

/*
 * Returns why the file must not be read, as part of a sentence: "anybody may write it"; NULL if
 * it may be read. Pure.
 */
const char *config_trust_refusal(const struct config_trust *trust);

/* Reads these facts of an open file, which was opened at `path`. Returns 0, or -1 with errno. */
int config_trust_read(const char *path, int fd, struct config_trust *out_trust);

#endif
