/* SPDX-License-Identifier: Apache-2.0 */
#include "verify/training.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "verify/training_kernels.h"

enum {
    THREADS = 256,
    TILE = 128, /* of the product */
    QUAD = 4,   /* floats that a thread of the update takes */
    N_MAX = 4096,
    N_MIN = 512,
    PARAMETERS_MAX = 1 << 26,
    LOSS_BLOCKS = 1024,
    LOOKS = 5, /* at how long a kernel takes; the shortest counts */
    REPEATS_MAX = 4096
};
static const double memory_share = 0.25;     /* of a step, bound by memory */
static const double product_share_max = 0.3; /* of a step, for the largest matrices */
static const double warm_up_s = 0.5;
static const float rate = 0.1F; /* stable below 0.25: the eigenvalues of X'X lie below 4 */
static const unsigned seed_x = 1, seed_solution = 2, seed_start = 3;

static const char *const kernel_names[KERNELS] = {
    [KERNEL_MULTIPLY] = "flyball_multiply",
    [KERNEL_UPDATE] = "flyball_update",
    [KERNEL_LOSS] = "flyball_loss",
    [KERNEL_FILL] = "flyball_fill",
};

/* The most widely understood first: newer drivers may drop old targets. */
static const struct {
    const char *name, *head;
} variants[] = {
    {"6.0 sm_50", ".version 6.0\n.target sm_50\n"},
    {"7.0 sm_75", ".version 7.0\n.target sm_75\n"},
    {"9.0 sm_75", ".version 9.0\n.target sm_75\n"},
};
enum { VARIANTS = sizeof variants / sizeof variants[0] };

const char *training_variant_name(unsigned variant)
{
    return variant < VARIANTS ? variants[variant].name : "";
}

static int load_kernels(struct training *training, struct fly_error *out_error)
{
    const char *body = strstr(training_kernels, ".address_size");
    size_t size = strlen(training_kernels) + sizeof ".version 6.0\n.target sm_50\n";
    char *text = malloc(size);
    int code = -1;

    if (text == NULL || body == NULL) {
        free(text);
        return error_set(out_error, FLY_ENOMEM, "no memory for the kernels");
    }
    for (unsigned i = 0; code != 0 && i < VARIANTS; i++) {
        snprintf(text, size, "%s%s", variants[i].head, body);
        code = training->cuda.call.load(&training->module, text);
        training->variant = i;
    }
    free(text);
    if (code != 0) {
        training->module = NULL;
        return error_set(out_error, FLY_EUNSUPPORTED,
                         "the CUDA driver does not compile the kernels (code %d)", code);
    }
    for (unsigned i = 0; i < KERNELS; i++) {
        code = training->cuda.call.function(&training->kernels[i], training->module, kernel_names[i]);
        if (code != 0)
            return cuda_failed("cuModuleGetFunction", code, out_error);
    }
    return 0;
}

static int launch(struct training *training, enum training_kernel kernel, unsigned blocks_x,
                  unsigned blocks_y, void **arguments, struct fly_error *out_error)
{
    int code = training->cuda.call.launch(training->kernels[kernel], blocks_x, blocks_y, 1, THREADS, 1, 1, 0,
                                          NULL, arguments, NULL);

    return code == 0 ? 0 : cuda_failed("cuLaunchKernel", code, out_error);
}

static int wait_for(struct training *training, struct fly_error *out_error)
{
    int code = training->cuda.call.synchronize();

    return code == 0 ? 0 : cuda_failed("cuCtxSynchronize", code, out_error);
}

static int multiply(struct training *training, enum training_memory out, enum training_memory left,
                    enum training_memory right, cuda_address subtrahend, struct fly_error *out_error)
{
    void *arguments[] = {&training->memory[out], &training->memory[left], &training->memory[right],
                         &subtrahend, &training->n};

    return launch(training, KERNEL_MULTIPLY, training->n / TILE, training->n / TILE, arguments, out_error);
}

static int update(struct training *training, struct fly_error *out_error)
{
    unsigned quads = training->parameters / QUAD, gradient_quads = training->n * training->n / QUAD;
    float own_rate = rate / (float)(training->updates > 0 ? training->updates : 1);
    void *arguments[] = {&training->memory[MEMORY_W],
                         &training->memory[MEMORY_V],
                         &training->memory[MEMORY_G],
                         &quads,
                         &gradient_quads,
                         &own_rate};

    return launch(training, KERNEL_UPDATE, (quads + THREADS - 1) / THREADS, 1, arguments, out_error);
}

static int fill(struct training *training, enum training_memory out, unsigned count, unsigned transposed,
                unsigned seed, float scale, struct fly_error *out_error)
{
    void *arguments[] = {&training->memory[out], &count, &training->n, &transposed, &seed, &scale};

    return launch(training, KERNEL_FILL, (count + THREADS - 1) / THREADS, 1, arguments, out_error);
}

/* Takes as large matrices as leave most of the memory to others; smaller ones if that fails all the same. */
static int allocate(struct training *training, struct fly_error *out_error)
{
    size_t free_bytes = 0, total_bytes;
    int code = training->cuda.call.memory_info(&free_bytes, &total_bytes);

    if (code != 0)
        return cuda_failed("cuMemGetInfo", code, out_error);
    training->n = N_MAX;
    training->parameters = PARAMETERS_MAX;
    for (;;) {
        size_t matrix = (size_t)training->n * training->n * sizeof(float);
        size_t all = 5 * matrix + 2 * training->parameters * sizeof(float);

        if (2 * all <= free_bytes)
            break;
        if (training->n == N_MIN)
            return error_set(out_error, FLY_EUNSUPPORTED,
                             "the training needs %zu MiB of the GPU's memory, and %zu are free",
                             2 * all >> 20, free_bytes >> 20);
        training->n /= 2;
        training->parameters /= 4;
    }
    for (unsigned i = 0; i < MEMORIES; i++) {
        size_t count = i == MEMORY_LOSS ? 1
                       : i >= MEMORY_W  ? training->parameters
                                        : (size_t)training->n * training->n;

        code = training->cuda.call.allocate(&training->memory[i], count * sizeof(float));
        if (code != 0) {
            training->memory[i] = 0;
            return cuda_failed("cuMemAlloc", code, out_error);
        }
    }
    return 0;
}

/* The problem for matrices of n rows: X, its transposed one, T, and weights to start from. */
static int pose(struct training *training, struct fly_error *out_error)
{
    unsigned count = training->n * training->n;
    float scale = sqrtf(3.0F / (float)training->n); /* of uniform entries with a variance of 1/n */
    int code;

    code = fill(training, MEMORY_X, count, 0, seed_x, scale, out_error);
    if (code == 0)
        code = fill(training, MEMORY_XT, count, 1, seed_x, scale, out_error);
    if (code == 0)
        code = fill(training, MEMORY_G, count, 0, seed_solution, 1.0F, out_error);
    if (code == 0)
        code = multiply(training, MEMORY_T, MEMORY_X, MEMORY_G, 0, out_error);
    if (code == 0)
        code = fill(training, MEMORY_W, training->parameters, 0, seed_start, 1.0F, out_error);
    if (code == 0)
        code = fill(training, MEMORY_V, training->parameters, 0, seed_start, 0.0F, out_error);
    return code == 0 ? wait_for(training, out_error) : code;
}

static int once(struct training *training, enum training_kernel kernel, struct fly_error *out_error)
{
    int code = kernel == KERNEL_UPDATE
                   ? update(training, out_error)
                   : multiply(training, MEMORY_E, MEMORY_X, MEMORY_W, training->memory[MEMORY_T], out_error);

    return code == 0 ? wait_for(training, out_error) : code;
}

static int time_of(struct training *training, enum training_kernel kernel, double *out_s,
                   struct fly_error *out_error)
{
    int code = 0;

    *out_s = 1e9;
    for (int i = 0; code == 0 && i < LOOKS; i++) {
        struct mono_time start = mono_now();
        double took_s;

        code = once(training, kernel, out_error);
        took_s = mono_elapsed_s(start, mono_now());
        *out_s = took_s < *out_s ? took_s : *out_s;
    }
    return code;
}

static unsigned repeats(double share_s, double each_s)
{
    double wanted = each_s > 0.0 ? share_s / each_s + 0.5 : 1.0;

    return wanted < 1.0 ? 1 : wanted > REPEATS_MAX ? REPEATS_MAX : (unsigned)wanted;
}

/* Finds the size of the matrices, and how often each kernel runs in a step. */
static int fit(struct training *training, double step_s, struct fly_error *out_error)
{
    struct mono_time start = mono_now();
    int code = 0;

    while (code == 0 && mono_elapsed_s(start, mono_now()) < warm_up_s)
        code = once(training, KERNEL_MULTIPLY, out_error);
    if (code == 0)
        code = time_of(training, KERNEL_MULTIPLY, &training->multiply_s, out_error);
    while (code == 0 && training->multiply_s > product_share_max * step_s && training->n > N_MIN) {
        training->n /= 2;
        code = pose(training, out_error);
        if (code == 0)
            code = time_of(training, KERNEL_MULTIPLY, &training->multiply_s, out_error);
    }
    if (code == 0)
        code = time_of(training, KERNEL_UPDATE, &training->update_s, out_error);
    training->rounds = repeats((1.0 - memory_share) * step_s, 2.0 * training->multiply_s);
    training->updates = repeats(memory_share * step_s, training->update_s);
    return code == 0 ? pose(training, out_error) : code;
}

int training_open(const struct training_options *options, struct training *out_training,
                  struct fly_error *out_error)
{
    int code;

    memset(out_training, 0, sizeof *out_training);
    code = cuda_context_open(options->library_path, options->pci, &out_training->cuda, out_error);
    if (code == 0)
        code = load_kernels(out_training, out_error);
    if (code == 0)
        code = allocate(out_training, out_error);
    if (code == 0)
        code = pose(out_training, out_error);
    return code == 0 ? fit(out_training, options->step_s, out_error) : code;
}

int training_step(struct training *training, struct fly_error *out_error)
{
    int code = 0;

    for (unsigned i = 0; code == 0 && i < training->rounds; i++) {
        code = multiply(training, MEMORY_E, MEMORY_X, MEMORY_W, training->memory[MEMORY_T], out_error);
        if (code == 0)
            code = multiply(training, MEMORY_G, MEMORY_XT, MEMORY_E, 0, out_error);
    }
    for (unsigned i = 0; code == 0 && i < training->updates; i++)
        code = update(training, out_error);
    return code == 0 ? wait_for(training, out_error) : code;
}

int training_loss(struct training *training, double *out_loss, struct fly_error *out_error)
{
    unsigned count = training->n * training->n;
    void *arguments[] = {&training->memory[MEMORY_LOSS], &training->memory[MEMORY_E], &count};
    float sum = 0.0F;
    int code = training->cuda.call.set_memory(training->memory[MEMORY_LOSS], 0, sizeof sum);

    if (code != 0)
        return cuda_failed("cuMemsetD8", code, out_error);
    code = launch(training, KERNEL_LOSS, LOSS_BLOCKS, 1, arguments, out_error);
    if (code < 0)
        return code;
    code = training->cuda.call.copy_out(&sum, training->memory[MEMORY_LOSS], sizeof sum);
    if (code != 0)
        return cuda_failed("cuMemcpyDtoH", code, out_error);
    *out_loss = (double)sum / count;
    return 0;
}

double training_step_flop(const struct training *training)
{
    double n = training->n;

    return training->rounds * 2.0 * 2.0 * n * n * n;
}

double training_step_bytes(const struct training *training)
{
    /* Weights and momenta are read and written, gradients read. */
    double floats = 4.0 * training->parameters + (double)training->n * training->n;

    return training->updates * floats * sizeof(float);
}

void training_close(struct training *training)
{
    for (unsigned i = 0; i < MEMORIES; i++) {
        if (training->memory[i] != 0)
            training->cuda.call.free(training->memory[i]);
    }
    if (training->module != NULL)
        training->cuda.call.unload(training->module);
    cuda_context_close(&training->cuda);
}
