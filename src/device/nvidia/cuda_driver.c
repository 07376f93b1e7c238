/* SPDX-License-Identifier: Apache-2.0 */
/* The kernel that loads a GPU, CUDA's driver as far as it is called, and the run of the one by the other. */
#include "device/nvidia/cuda_driver.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/shared_object.h"

/* ---- the kernel ---- */

const char cuda_kernel_name[] = "flyball_load";

static const struct variant {
    const char *version, *target;
} variants[] = {
    {"6.0", "sm_50"}, /* drivers from 384 on, GPUs from Maxwell on */
    {"7.0", "sm_75"}, /* drivers from 450 on, GPUs from Turing on */
    {"9.0", "sm_75"}, /* as toolkit 13 writes it */
};

/* Registers: r0 thread, r1 block, r2 threads of a block, r3 steps left; f0-f7 orbits, f8-f15 -1.9 x. */
static const char kernel_head[] = ".address_size 64\n"
                                  "\n"
                                  ".visible .entry flyball_load(\n"
                                  "    .param .u64 flyball_load_out,\n"
                                  "    .param .u32 flyball_load_steps\n"
                                  ")\n"
                                  "{\n"
                                  "    .reg .pred %p<1>;\n"
                                  "    .reg .b32 %r<5>;\n"
                                  "    .reg .f32 %f<17>;\n"
                                  "    .reg .b64 %rd<3>;\n"
                                  "\n"
                                  "    ld.param.u64 %rd0, [flyball_load_out];\n"
                                  "    ld.param.u32 %r3, [flyball_load_steps];\n"
                                  "    cvta.to.global.u64 %rd1, %rd0;\n"
                                  "    mov.u32 %r0, %tid.x;\n"
                                  "    mov.u32 %r1, %ctaid.x;\n"
                                  "    mov.u32 %r2, %ntid.x;\n"
                                  "    mad.lo.s32 %r0, %r1, %r2, %r0;\n"
                                  "    and.b32 %r4, %r0, 511;\n"
                                  "    cvt.rn.f32.u32 %f16, %r4;\n";

/* Where an orbit starts: at different places within [0, 1). */
#define START(x, offset) "    fma.rn.f32 %f" #x ", %f16, 0f3A800000, 0f" #offset ";\n"
static const char kernel_start[] = START(0, 3D000000) /* 1/32 */
    START(1, 3D800000)                                /* 1/16 */
    START(2, 3DC00000)                                /* 3/32 */
    START(3, 3E000000)                                /* 1/8 */
    START(4, 3E200000)                                /* 5/32 */
    START(5, 3E400000)                                /* 3/16 */
    START(6, 3E600000)                                /* 7/32 */
    START(7, 3E800000);                               /* 1/4 */

#define STEP(x, y)                                     \
    "    mul.rn.f32 %f" #y ", %f" #x ", 0fBFF33333;\n" \
    "    fma.rn.f32 %f" #x ", %f" #y ", %f" #x ", 0f3F800000;\n"
static const char kernel_steps[] =
    STEP(0, 8) STEP(1, 9) STEP(2, 10) STEP(3, 11) STEP(4, 12) STEP(5, 13) STEP(6, 14) STEP(7, 15);

static const char kernel_tail[] = "    add.s32 %r3, %r3, -1;\n"
                                  "    setp.ne.s32 %p0, %r3, 0;\n"
                                  "    @%p0 bra $again;\n"
                                  "\n"
                                  "    add.f32 %f0, %f0, %f1;\n"
                                  "    add.f32 %f2, %f2, %f3;\n"
                                  "    add.f32 %f4, %f4, %f5;\n"
                                  "    add.f32 %f6, %f6, %f7;\n"
                                  "    add.f32 %f0, %f0, %f2;\n"
                                  "    add.f32 %f4, %f4, %f6;\n"
                                  "    add.f32 %f0, %f0, %f4;\n"
                                  "    mul.wide.u32 %rd2, %r0, 4;\n"
                                  "    add.s64 %rd1, %rd1, %rd2;\n"
                                  "    st.global.f32 [%rd1], %f0;\n"
                                  "    ret;\n"
                                  "}\n";

bool cuda_kernel_text(size_t variant, char text[CUDA_KERNEL_TEXT_MAX])
{
    if (variant >= sizeof variants / sizeof variants[0])
        return false;
    snprintf(text, CUDA_KERNEL_TEXT_MAX, ".version %s\n.target %s\n%s%s\n$again:\n%s%s",
             variants[variant].version, variants[variant].target, kernel_head, kernel_start, kernel_steps,
             kernel_tail);
    return true;
}

/* ---- the driver; what is called of it is declared here, so that no toolkit is needed ---- */

typedef uint64_t cuda_address;

/*
 *     X(slot, symbol, parameters)
 *
 * All return 0 or an error code. The library has to have all of them.
 */
#define CUDA_CALLS(X)                                                                                 \
    X(init, "cuInit", (unsigned flags))                                                               \
    X(device_by_pci, "cuDeviceGetByPCIBusId", (int *out_device, const char *pci))                     \
    X(attribute, "cuDeviceGetAttribute", (int *out_value, int attribute, int device))                 \
    X(set_flags, "cuDevicePrimaryCtxSetFlags_v2", (int device, unsigned flags))                       \
    X(retain, "cuDevicePrimaryCtxRetain", (void **out_context, int device))                           \
    X(release, "cuDevicePrimaryCtxRelease_v2", (int device))                                          \
    X(set_current, "cuCtxSetCurrent", (void *context))                                                \
    X(synchronize, "cuCtxSynchronize", (void))                                                        \
    X(load, "cuModuleLoadData", (void **out_module, const void *text))                                \
    X(unload, "cuModuleUnload", (void *module))                                                       \
    X(function, "cuModuleGetFunction", (void **out_function, void *module, const char *name))         \
    X(allocate, "cuMemAlloc_v2", (cuda_address * out_address, size_t bytes))                          \
    X(free, "cuMemFree_v2", (cuda_address address))                                                   \
    X(launch, "cuLaunchKernel",                                                                       \
      (void *function, unsigned blocks_x, unsigned blocks_y, unsigned blocks_z, unsigned threads_x,   \
       unsigned threads_y, unsigned threads_z, unsigned shared_bytes, void *stream, void **arguments, \
       void **extra))

#define CUDA_SLOT(slot, symbol, parameters) int(*slot) parameters;
struct cuda_calls {
    CUDA_CALLS(CUDA_SLOT)
};
#undef CUDA_SLOT

/* What has been made so far, to be undone in reverse order. */
struct session {
    struct shared_object object;
    struct cuda_calls call;
    int device, processors;
    void *context; /* NULL: none was had */
    void *module, *function;
    cuda_address out;
};

enum {
    CUDA_ATTRIBUTE_PROCESSORS = 16,
    CUDA_WAIT_ASLEEP = 4, /* flag of a context: waiting takes no processor time */
};

#define CUDA_ROW(slot, symbol, parameters) {offsetof(struct cuda_calls, slot), symbol},
static const struct {
    size_t offset;
    const char *symbol;
} rows[] = {CUDA_CALLS(CUDA_ROW)};

static int cuda_failed(const char *symbol, int code, struct fly_error *out_error)
{
    return error_set(out_error, FLY_EREAD, "'%s' of the CUDA driver failed with %d; see the kernel's log",
                     symbol, code);
}

static int load_library(struct session *session, const char *path, struct fly_error *out_error)
{
    struct fly_error why = {0};
    int code;

    if (path != NULL)
        code = shared_object_open(path, &session->object, &why);
    else
        code = shared_object_open_library("libcuda.so.1", &session->object, &why);
    if (code < 0)
        return error_set(out_error, FLY_EUNSUPPORTED, "no CUDA driver: %.300s", why.text);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const void *found = shared_object_find(&session->object, rows[i].symbol);

        if (found == NULL)
            return error_set(out_error, FLY_EUNSUPPORTED, "the CUDA driver lacks '%s'; update it",
                             rows[i].symbol);
        memcpy((char *)&session->call + rows[i].offset, &found, sizeof found);
    }
    return 0;
}

static int open_device(struct session *session, const char *pci, struct fly_error *out_error)
{
    int code = session->call.init(0);

    if (code != 0)
        return error_set(out_error, FLY_EUNSUPPORTED, "'cuInit' of the CUDA driver failed with %d", code);
    code = session->call.device_by_pci(&session->device, pci);
    /* The domain has eight digits here, and four in the driver's older spelling. */
    if (code != 0 && strncmp(pci, "0000", 4) == 0)
        code = session->call.device_by_pci(&session->device, pci + 4);
    if (code != 0)
        return error_set(out_error, FLY_EUNSUPPORTED, "CUDA knows no GPU at '%s' (code %d)", pci, code);
    code = session->call.attribute(&session->processors, CUDA_ATTRIBUTE_PROCESSORS, session->device);
    if (code != 0 || session->processors <= 0)
        return cuda_failed("cuDeviceGetAttribute", code, out_error);
    code = session->call.set_flags(session->device, CUDA_WAIT_ASLEEP);
    if (code != 0)
        return cuda_failed("cuDevicePrimaryCtxSetFlags", code, out_error);
    code = session->call.retain(&session->context, session->device);
    if (code != 0) {
        session->context = NULL;
        return cuda_failed("cuDevicePrimaryCtxRetain", code, out_error);
    }
    code = session->call.set_current(session->context);
    return code == 0 ? 0 : cuda_failed("cuCtxSetCurrent", code, out_error);
}

/* ---- a run; a step that fails ends it and names its function ---- */

enum {
    THREADS = 256,            /* of a block */
    BLOCKS_PER_PROCESSOR = 8, /* 2048 threads fill a processor of any GPU so far */
    FIRST_STEPS = 1 << 12,    /* well under a millisecond */
    STEPS_MAX = 1 << 26,
    GROWTH_MAX = 8, /* of the steps, from one launch to the next */
};
static const double launch_s = 0.02; /* short enough for a GPU that also draws a screen */

/* Makes the driver compile the first variant of the kernel that it accepts. */
static int load_kernel(struct session *session, struct fly_error *out_error)
{
    char text[CUDA_KERNEL_TEXT_MAX];
    int code = -1;

    for (size_t i = 0; code != 0 && cuda_kernel_text(i, text); i++)
        code = session->call.load(&session->module, text);
    if (code != 0) {
        session->module = NULL;
        return error_set(out_error, FLY_EUNSUPPORTED,
                         "the CUDA driver does not compile the load's kernel (code %d)", code);
    }
    code = session->call.function(&session->function, session->module, cuda_kernel_name);
    if (code != 0)
        return cuda_failed("cuModuleGetFunction", code, out_error);
    code = session->call.allocate(&session->out, (size_t)session->processors * BLOCKS_PER_PROCESSOR *
                                                     THREADS * sizeof(float));
    return code == 0 ? 0 : cuda_failed("cuMemAlloc", code, out_error);
}

/* Launches the kernel once and waits for its end. */
static int launch(struct session *session, uint32_t steps, struct fly_error *out_error)
{
    void *arguments[] = {&session->out, &steps};
    int code = session->call.launch(session->function, (unsigned)session->processors * BLOCKS_PER_PROCESSOR,
                                    1, 1, THREADS, 1, 1, 0, NULL, arguments, NULL);

    if (code != 0)
        return cuda_failed("cuLaunchKernel", code, out_error);
    code = session->call.synchronize();
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

int cuda_run(const struct cuda_run *run, struct fly_error *out_error)
{
    struct session session = {0};
    int code = load_library(&session, run->library_path, out_error);

    if (code == 0)
        code = open_device(&session, run->pci, out_error);
    if (code == 0)
        code = load_kernel(&session, out_error);
    if (code == 0)
        code = run_kernel(&session, run, out_error);
    if (session.out != 0)
        session.call.free(session.out);
    if (session.module != NULL)
        session.call.unload(session.module);
    if (session.context != NULL)
        session.call.release(session.device);
    shared_object_close(&session.object);
    return code;
}
