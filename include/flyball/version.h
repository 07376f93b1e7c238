/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_VERSION_H
#define FLYBALL_VERSION_H

#include <flyball/export.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Version of the headers a program was compiled with, and of the library it
 * runs with. Versions follow semver: before 1.0 a minor version may change
 * the interface, and the SONAME changes with it.
 */
#define FLY_VERSION_MAJOR 0
#define FLY_VERSION_MINOR 2
#define FLY_VERSION_PATCH 0
#define FLY_VERSION "0.2.0"

/* The library's version as "major.minor.patch"; static storage. Thread-safe. */
FLY_API const char *fly_version(void);

#ifdef __cplusplus
}
#endif

#endif
