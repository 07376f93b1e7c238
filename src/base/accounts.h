/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_BASE_ACCOUNTS_H
#define FLYBALL_BASE_ACCOUNTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Give the number of a user or a group of this machine that a text names; a text that is no name is
 * read as a number itself, as chown(1) does. Return false, with the out-parameter untouched, if it is
 * neither. Thread-safe; may ask the machine's directory service and take its time.
 */
bool accounts_user(const char *text, uint32_t *out_uid);
bool accounts_group(const char *text, uint32_t *out_gid);

/*
 * Gives the name of a user of this machine, as it stands there. Returns false if there is none, or
 * if it has `size` bytes or more. Thread-safe; may take its time likewise.
 */
bool accounts_user_name(uint32_t uid, char *out_name, size_t size);

#endif
