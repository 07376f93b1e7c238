/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/options/thread_option.h"

#include <unistd.h>

unsigned thread_option(const struct cli_call *call)
{
    long processors = sysconf(_SC_NPROCESSORS_ONLN);

    if (cli_set(call, "threads"))
        return (unsigned)cli_integer(call, "threads");
    return processors < 1 ? 1 : processors > CREW_THREADS_MAX ? CREW_THREADS_MAX : (unsigned)processors;
}
