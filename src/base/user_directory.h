/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_BASE_USER_DIRECTORY_H
#define FLYBALL_BASE_USER_DIRECTORY_H

#include <stddef.h>

#include <flyball/error.h>

/*
 * Where a user's own files lie, as the XDG base directories are meant: $XDG_STATE_HOME/flyball,
 * else ~/.local/state/flyball, and $XDG_CACHE_HOME/flyball, else ~/.cache/flyball. A
 * variable that does not begin with '/' does not count. Home is what HOME says, else what the
 * system knows of the user.
 */
enum user_directory { USER_STATE, USER_CACHE };

/*
 * The path of `below` there, into `out`; `what` it is for stands in errors. Makes nothing.
 * FLY_ENOTFOUND without a home, FLY_ELIMIT. Reads the environment.
 */
int user_directory_find(enum user_directory kind, const char *below, const char *what, char *out,
                        size_t capacity, struct fly_error *out_error);

/* Makes the directories above a path that are missing, for the user alone; 0 or errno. */
int user_directory_make_above(const char *path);

/* The directory too. */
int user_directory_make(const char *path);

#endif
