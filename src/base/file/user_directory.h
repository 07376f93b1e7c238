/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_BASE_FILE_USER_DIRECTORY_H
#define FLYBALL_BASE_FILE_USER_DIRECTORY_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include <flyball/error.h>

/*
 * Finds where a user's own files lie, according to the XDG base directories:
 * $XDG_STATE_HOME/flyball, else ~/.local/state/flyball, and $XDG_CACHE_HOME/flyball, else
 * ~/.cache/flyball. A variable that does not begin with '/' is ignored. The home directory is
 * HOME, else the one that the system has on record for the user.
 */
enum user_directory { USER_STATE, USER_CACHE };

/*
 * Writes the path of `below` there into `out`; errors use `what` to say what it is for. Makes no
 * directory. FLY_ENOTFOUND without a home, FLY_ELIMIT. Reads the environment.
 */
int user_directory_find(enum user_directory kind, const char *below, const char *what, char *out,
                        size_t capacity, struct fly_error *out_error);

/* Returns whether this user may not enter the home directory, so that nothing of his is there. Asks the disk.
 */
bool user_directory_is_closed(void);

/* Makes the missing directories above a path, with that mode; returns 0 or errno. */
int user_directory_make_above(const char *path, mode_t mode);

/* Makes the directory as well, all of them accessible only to the user. */
int user_directory_make(const char *path);

#endif
