/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_TESTS_TRAIN_STANDIN_GB_H
#define FLYBALL_TESTS_TRAIN_STANDIN_GB_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/*
 * A stand-in for the GB Carbon Intensity API, in its own process on loopback. Whatever the time, it returns
 * half-hours of `value`, from an hour before the time asked for to two days after its begin; those that start
 * after `now_s` have no actual value.
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

/* Starts it, and sets FLYBALL_GB_URL to it and FLYBALL_CARBON_CACHE to `cache`. */
bool standin_gb_start(struct standin_gb *gb, const char *cache);
void standin_gb_stop(struct standin_gb *gb);

#endif
