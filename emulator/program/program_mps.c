/* SPDX-License-Identifier: Apache-2.0 */
/* `flyball-emulator mps`: stands there as the server of NVIDIA's Multi-Process Service. */
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>

#include "emulator/program/program.h"

enum { SERVER_MEMORY_BITS = 25 };

static int mps_run(const struct program_call *call, struct fly_error *out_error)
{
    static const struct emulator_role role = {EMULATOR_WORK_MPS_SERVER, -1};
    struct emulator_load load = {.memory_bytes = UINT64_C(1) << SERVER_MEMORY_BITS};
    int slots[EMULATOR_GPUS_MAX], received, code;
    struct emulator *emulator;
    unsigned gpus = 0, begun = 0;
    sigset_t ends;

    code = emulator_open_or_create(call->state, &emulator, out_error);
    if (code < 0)
        return code;
    code = program_gpus(call, emulator, "0", &gpus, out_error);
    for (unsigned i = 0; code == 0 && i < emulator_gpu_count(emulator); i++) {
        if ((gpus & 1U << i) == 0)
            continue;
        code = emulator_work_begin_as(emulator, i, &role, &load, &slots[i], out_error);
        begun |= code == 0 ? 1U << i : 0;
    }
    if (code == 0) {
        /* The kernel cuts it, as that of the real one. */
        prctl(PR_SET_NAME, "nvidia-cuda-mps-server");
        sigemptyset(&ends);
        sigaddset(&ends, SIGINT);
        sigaddset(&ends, SIGTERM);
        sigprocmask(SIG_BLOCK, &ends, NULL);
        puts("serving");
        fflush(stdout);
        sigwait(&ends, &received);
    }
    for (unsigned i = 0; i < EMULATOR_GPUS_MAX; i++) {
        if ((begun & 1U << i) != 0)
            emulator_work_end(emulator, i, slots[i]);
    }
    emulator_close(emulator);
    return code;
}

const struct program_command program_mps = {
    .name = "mps",
    .summary = "stand on emulated GPUs as the server of the Multi-Process Service",
    .text =
        "It is listed as nvidia-cuda-mps-server is, does no work of its own, and ends by SIGTERM or SIGINT.\n"
        "Its clients are trainings with --kind mps. Where mps-samples says so, their use is told as its.",
    .options = {{"gpu", "LIST", "Which GPUs, such as 0,1; 0 unless given."}},
    .run = mps_run,
};
