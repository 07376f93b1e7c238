/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_TESTS_AMDSMI_SHOWN_H
#define FLYBALL_TESTS_AMDSMI_SHOWN_H

#include "device/backend.h"

/*
 * What the back end makes of a stand-in library, in virtual time. The stand-in
 * is told by variables what to show, see standin.c.
 */
extern struct device_list shown;
extern struct fly_error shown_error; /* of the last opening */
extern struct mono_time shown_now;   /* tell the stand-in after changing it */
extern const struct clock shown_clock;

/* Set-up of a test: no variables, and time as it begins. */
int shown_set_up(void **state);

void shown_set(const char *name, const char *value);
void shown_tell_time(void);

/* Where the stand-in of a version is; opens one into `shown`, and what the back end answers. */
const char *shown_library(unsigned version);
int shown_open(const char *path);
/* The same with the kernel's files below a directory. */
int shown_open_below(const char *path, const char *root);

struct reading shown_read(size_t place, enum quantity quantity);
void shown_check_value(size_t place, enum quantity quantity, int64_t expected);
void shown_check_state(size_t place, enum quantity quantity, enum reading_state expected);

#endif
