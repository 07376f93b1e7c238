/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_TESTS_STANDIN_GB_H
#define FLYBALL_TESTS_STANDIN_GB_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/*
 * A stand-in for the GB Carbon Intensity API, in a process of its own on loopback. It gives
 * half-hours of `value` from an hour before what is asked for up to two days after its begin, whatever the
 * time; those that start after `now_s` have no actual value.
 */
enum gb_mood { GB_WELL, GB_HANGS, GB_SICK /* 503 */ };

struct gb_words {
    _Atomic int mood;
    _Atomic int value;
    _Atomic int64_t now_s;
    _Atomic unsigned requests;
};

struct standin_gb {
    struct gb_words *words; /* shared with the process */
    pid_t process;
    int port;
};

/* Starts it, and points FLYBALL_GB_URL there and FLYBALL_CARBON_CACHE to `cache`. */
bool standin_gb_start(struct standin_gb *gb, const char *cache);
void standin_gb_stop(struct standin_gb *gb);

#endif
