/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_CLI_FRAME_CONFIG_TRUST_H
#define FLYBALL_CLI_FRAME_CONFIG_TRUST_H

#include <stdbool.h>
#include <sys/types.h>

/*
 * Whose word a configuration file is. A file counts if root or the user who runs
 * the program owns it and nobody else may write it: settings choose what a
 * program does, and with sudo it does that as root.
 */
struct config_trust {
    uid_t user;        /* who runs the program: its effective uid */
    uid_t owner;       /* of the file */
    mode_t mode;       /* of the file */
    bool own_group;    /* the file's group is its owner's own, with nobody else in it */
    bool unmapped;     /* the owner is the overflow uid: somebody outside this user namespace */
    bool on_read_only; /* the file stands on a mount that nobody here can write */
    bool strange_link; /* the path is a link that somebody else than root or the user made */
};

/*
 * Why the file is not to be read, as a part of a sentence: "anybody may write it";
 * NULL where it may be read. Pure.
 */
const char *config_trust_refusal(const struct config_trust *trust);

/* Reads the facts of an open file, which was opened at `path`; 0, or -1 with errno. */
int config_trust_read(const char *path, int fd, struct config_trust *out_trust);

#endif
