/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_DEVICE_CPU_PERF_TEXT_H
#define FLYBALL_DEVICE_CPU_PERF_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Parses the texts with which the kernel describes an event source under /sys/bus/event_source.
 * Thread-safe.
 */

/* Parses "event=0x02" into the value of `config`; false for anything else, also for more terms. */
bool perf_event_parse(const char *text, uint64_t *out_config);

/*
 * Parses a list of processors, "0,18" or "0-3,8", into at most `maximum` of them. False for
 * anything else and for longer lists; an empty text is an empty list.
 */
bool perf_cpus_parse(const char *text, unsigned *cpus, size_t maximum, size_t *out_count);

#endif
