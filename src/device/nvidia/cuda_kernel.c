/* SPDX-License-Identifier: Apache-2.0 */
#include "device/nvidia/cuda_kernel.h"

#include <stdio.h>

const char cuda_kernel_name[] = "flyball_load";

static const struct variant {
    const char *version, *target;
} variants[] = {
    {"6.0", "sm_50"}, /* drivers from 384 on, GPUs from Maxwell on */
    {"7.0", "sm_75"}, /* drivers from 450 on, GPUs from Turing on */
    {"9.0", "sm_75"}, /* as toolkit 13 writes it */
};

/* Registers: r0 thread, r1 block, r2 threads of a block, r3 steps left; f0-f7 orbits, f8-f15 -1.9 x. */
static const char head[] = ".address_size 64\n"
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
static const char start[] = START(0, 3D000000) /* 1/32 */
    START(1, 3D800000)                         /* 1/16 */
    START(2, 3DC00000)                         /* 3/32 */
    START(3, 3E000000)                         /* 1/8 */
    START(4, 3E200000)                         /* 5/32 */
    START(5, 3E400000)                         /* 3/16 */
    START(6, 3E600000)                         /* 7/32 */
    START(7, 3E800000);                        /* 1/4 */

#define STEP(x, y)                                     \
    "    mul.rn.f32 %f" #y ", %f" #x ", 0fBFF33333;\n" \
    "    fma.rn.f32 %f" #x ", %f" #y ", %f" #x ", 0f3F800000;\n"
static const char steps[] =
    STEP(0, 8) STEP(1, 9) STEP(2, 10) STEP(3, 11) STEP(4, 12) STEP(5, 13) STEP(6, 14) STEP(7, 15);

static const char tail[] = "    add.s32 %r3, %r3, -1;\n"
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
             variants[variant].version, variants[variant].target, head, start, steps, tail);
    return true;
}
