/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_COMPAT_ZEUS_NODE_PUBLIC_QUERY_H
#define FLYBALL_COMPAT_ZEUS_NODE_PUBLIC_QUERY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <flyball/error.h>

#include "http/exchange.h"

/*
 * The parameters of the public daemon's routes. They stand in the query, also of a POST:
 *
 *     POST /gpu/set_power_limit?gpu_ids=0,1&power_limit_mw=250000&block=true
 *
 * Each route has a set of them, PUBLIC_BIT of each. A parameter that the route does not have is an error,
 * with "unknown field" in its text, and so is one that it needs and does not get: "missing field". Clients
 * look for these words. Pure; thread-safe.
 */
/* clang-format off */
#define PUBLIC_PARAMETER_MAP(X)                            \
    X(GPU_IDS, "gpu_ids", PUBLIC_IDS)                      \
    X(CPU_IDS, "cpu_ids", PUBLIC_IDS)                      \
    X(BLOCK, "block", PUBLIC_BOOL)                         \
    X(POWER_LIMIT_MW, "power_limit_mw", PUBLIC_NUMBER)     \
    X(ENABLED, "enabled", PUBLIC_BOOL)                     \
    X(MIN_CLOCK_MHZ, "min_clock_mhz", PUBLIC_NUMBER)       \
    X(MAX_CLOCK_MHZ, "max_clock_mhz", PUBLIC_NUMBER)       \
    X(CPU, "cpu", PUBLIC_BOOL)                             \
    X(DRAM, "dram", PUBLIC_BOOL)
/* clang-format on */

#define PUBLIC_PARAMETER_ENUM(name, text, kind) PUBLIC_##name,
enum public_parameter { PUBLIC_PARAMETER_MAP(PUBLIC_PARAMETER_ENUM) PUBLIC_PARAMETER_COUNT };
#undef PUBLIC_PARAMETER_ENUM

#define PUBLIC_BIT(parameter) (1U << (parameter))

enum { PUBLIC_IDS_MAX = 64 };

struct public_query {
    unsigned given;                          /* PUBLIC_BIT of each parameter that is there */
    uint32_t values[PUBLIC_PARAMETER_COUNT]; /* of a bool 0 or 1; of a list nothing */
    size_t id_count;
    uint32_t ids[PUBLIC_IDS_MAX]; /* of gpu_ids or cpu_ids: rising, each once */
};

/*
 * Reads the parameters of a request: those of `needed` must be there, those of `optional` may. FLY_EUSAGE.
 * A list of ids has at least one number, and blanks around each count nothing. A bool is "true" or "false",
 * in lower case.
 */
int public_query_read(const struct serve_request *request, unsigned needed, unsigned optional,
                      struct public_query *out_query, struct fly_error *out_error);

#endif
