/* SPDX-License-Identifier: Apache-2.0 */
/* Runs one kernel. A step that fails ends the run and names its function. */
#include "device/nvidia/cuda_driver.h"

#include <stddef.h>
#include <stdint.h>

#include "base/clock.h"
#include "base/error.h"
#include "device/nvidia/cuda_context.h"
#include "device/nvidia/cuda_kernel.h"

enum {
    THREADS = 256,            /* of a block */
    BLOCKS_PER_PROCESSOR = 8, /* 2048 threads fill a processor of any GPU so far */
    FIRST_STEPS = 1 << 12,    /* well under a millisecond */
    STEPS_MAX = 1 << 26,
    GROWTH_MAX = 8, /* of the steps, from one launch to the next */
};
static const double launch_s = 0.02; /* short enough for a GPU that also draws a screen */

/* What has been made so far, to be undone in reverse order. */
struct session {
    struct cuda_context cuda;
    void *module, *function;
    cuda_address out;
};

/* Makes the driver compile the first variant of the kernel that it accepts. */
static int load_kernel(struct session *session, struct fly_error *out_error)
{
    char text[CUDA_KERNEL_TEXT_MAX];
    int code = -1;

    for (size_t i = 0; code != 0 && cuda_kernel_text(i, text); i++)
        code = session->cuda.call.load(&session->module, text);
    if (code != 0) {
        session->module = NULL;
        return error_set(out_error, FLY_EUNSUPPORTED,
                         "the CUDA driver does not compile the load's kernel (code %d)", code);
    }
    code = session->cuda.call.function(&session->function, session->module, cuda_kernel_name);
    if (code != 0)
        return cuda_failed("cuModuleGetFunction", code, out_error);
    code = session->cuda.call.allocate(&session->out, (size_t)session->cuda.processors *
                                                          BLOCKS_PER_PROCESSOR * THREADS * sizeof(float));
    return code == 0 ? 0 : cuda_failed("cuMemAlloc", code, out_error);
}

/* Launches the kernel once and waits for its end. */
static int launch(struct session *session, uint32_t steps, struct fly_error *out_error)
{
    void *arguments[] = {&session->out, &steps};
    int code = session->cuda.call.launch(session->function,
                                         (unsigned)session->cuda.processors * BLOCKS_PER_PROCESSOR, 1, 1,
                                         THREADS, 1, 1, 0, NULL, arguments, NULL);

    if (code != 0)
        return cuda_failed("cuLaunchKernel", code, out_error);
    code = session->cuda.call.synchronize();
    return code == 0 ? 0 : cuda_failed("cuCtxSynchronize", code, out_error);
}

/* Returns the number of steps that takes about launch_s, if `steps` took elapsed_s. */
static uint32_t next_steps(uint32_t steps, double elapsed_s)
{
    double factor = elapsed_s > 0.0 ? launch_s / elapsed_s : GROWTH_MAX, wanted;

    if (factor > GROWTH_MAX)
        factor = GROWTH_MAX;
    wanted = steps * factor;
    if (wanted > STEPS_MAX)
        return STEPS_MAX;
    return wanted < 1.0 ? 1 : (uint32_t)wanted;
}

static int run_kernel(struct session *session, const struct cuda_run *run, struct fly_error *out_error)
{
    uint32_t steps = FIRST_STEPS;
    uint64_t done = 0;
    int code;

    do {
        struct mono_time start = mono_now();

        code = launch(session, steps, out_error);
        done += steps;
        steps = next_steps(steps, mono_elapsed_s(start, mono_now()));
    } while (code == 0 && run->go_on(run->data, done));
    return code;
}

static void close_session(struct session *session)
{
    if (session->out != 0)
        session->cuda.call.free(session->out);
    if (session->module != NULL)
        session->cuda.call.unload(session->module);
    cuda_context_close(&session->cuda);
}

int cuda_run(const struct cuda_run *run, struct fly_error *out_error)
{
    struct session session = {0};
    int code = cuda_context_open(run->library_path, run->pci, &session.cuda, out_error);

    if (code == 0)
        code = load_kernel(&session, out_error);
    if (code == 0)
        code = run_kernel(&session, run, out_error);
    close_session(&session);
    return code;
}
