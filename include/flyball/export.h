/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_EXPORT_H
#define FLYBALL_EXPORT_H

/* Marks a function of the public interface; everything else is hidden. */
#if defined(__GNUC__)
#define FLY_API __attribute__((visibility("default")))
#else
#define FLY_API
#endif

#endif
