/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_EMULATOR_LEFTOVER_H
#define FLYBALL_EMULATOR_LEFTOVER_H

#include <stdbool.h>

#include <flyball/error.h>

/*
 * What stands at a state's path, before anything maps it.
 *
 * Every layout of a state begins with its mark and with the boot in which it was made, and no more than these
 * is read of a file that may have another layout. Programs map only files of their own layout, so whoever has
 * mapped a file uses it.
 */
enum { STATE_MAGIC_BYTES = 32, STATE_BOOT_BYTES = 40 };

/* What all layouts begin with. */
struct state_head {
    char magic[STATE_MAGIC_BYTES];
    char boot[STATE_BOOT_BYTES];
};

/* The mark of this layout. */
extern const char state_magic[STATE_MAGIC_BYTES];

/* What distinguishes this boot from others; "" when the system does not say. */
void state_read_boot(char out_boot[STATE_BOOT_BYTES]);

enum state_kind {
    STATE_USABLE, /* of this layout and boot; its size is not yet checked */
    STATE_OF_EARLIER_BOOT,
    STATE_OF_OTHER_LAYOUT,
    STATE_EMPTY,  /* a file without content */
    STATE_FOREIGN /* something else, or too short to have a mark */
};

enum state_kind state_kind(int fd);

/* Whether the name still means the open file: another process may have put its own there. */
bool state_is_named(int directory, const char *name, int fd);

/*
 * Removes a file of an earlier boot or of another layout that no process uses, so that a new one can take its
 * name. Of programs that do this at the same time one removes it, and none a file that another has made.
 * Returns 0 also where there is nothing to remove; FLY_EBUSY, naming a process that uses it; FLY_EPERM where
 * another user owns it; FLY_EWRITE.
 */
int leftover_remove(const char *path, struct fly_error *out_error);

#endif
