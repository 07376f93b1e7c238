/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The kernels of training.h in CUDA C. The build needs no compiler for them: training_kernels.ptx is
 * what NVIDIA's made of this file, with the version and target of its head lowered to the oldest that know all
 * that is in it. After a change, with a toolkit:
 *
 *     nvcc -ptx -arch=sm_75 --fmad=true -o training_kernels.ptx training_kernels.cu
 *
 * All matrices are square, n x n, row by row; n is a multiple of 128.
 */
enum { TILE = 128, DEPTH = 8, OWN = 8, THREADS = 256 };

/* out = left * right - subtrahend (none: NULL), in tiles of 128 x 128 for each block of 256 threads. */
extern "C" __global__ void __launch_bounds__(THREADS)
flyball_multiply(float *__restrict__ out, const float *__restrict__ left, const float *__restrict__ right,
                 const float *__restrict__ subtrahend, unsigned n)
{
    __shared__ __align__(16) float lefts[DEPTH][TILE], rights[DEPTH][TILE];
    unsigned thread = threadIdx.x, row = thread / 16 * OWN, column = thread % 16 * OWN;
    const float *left_at = left + (size_t)(blockIdx.y * TILE + thread / 2) * n + thread % 2 * 4;
    const float *right_at = right + (size_t)(thread / 32) * n + blockIdx.x * TILE + thread % 32 * 4;
    float sums[OWN][OWN] = {};

#pragma unroll 1
    for (unsigned k = 0; k < n; k += DEPTH) {
        float4 from_left = *(const float4 *)left_at, from_right = *(const float4 *)right_at;

        __syncthreads();
        lefts[thread % 2 * 4 + 0][thread / 2] = from_left.x;
        lefts[thread % 2 * 4 + 1][thread / 2] = from_left.y;
        lefts[thread % 2 * 4 + 2][thread / 2] = from_left.z;
        lefts[thread % 2 * 4 + 3][thread / 2] = from_left.w;
        *(float4 *)&rights[thread / 32][thread % 32 * 4] = from_right;
        __syncthreads();
#pragma unroll 1
        for (unsigned i = 0; i < DEPTH; i++) {
            float a[OWN], b[OWN];

            *(float4 *)&a[0] = *(const float4 *)&lefts[i][row];
            *(float4 *)&a[4] = *(const float4 *)&lefts[i][row + 4];
            *(float4 *)&b[0] = *(const float4 *)&rights[i][column];
            *(float4 *)&b[4] = *(const float4 *)&rights[i][column + 4];
#pragma unroll
            for (unsigned y = 0; y < OWN; y++) {
#pragma unroll
                for (unsigned x = 0; x < OWN; x++)
                    sums[y][x] += a[y] * b[x];
            }
        }
        left_at += DEPTH;
        right_at += (size_t)DEPTH * n;
    }
#pragma unroll
    for (unsigned y = 0; y < OWN; y++) {
        size_t at = (size_t)(blockIdx.y * TILE + row + y) * n + blockIdx.x * TILE + column;

#pragma unroll
        for (unsigned x = 0; x < OWN; x++)
            out[at + x] = sums[y][x] - (subtrahend != nullptr ? subtrahend[at + x] : 0.0f);
    }
}

/*
 * A step of gradient descent with momentum over `quads` times four parameters, a thread for each four; those
 * after the first gradient_quads have no gradient, and only decay. It is bound by memory.
 */
extern "C" __global__ void __launch_bounds__(THREADS)
flyball_update(float4 *__restrict__ weights, float4 *__restrict__ momenta,
               const float4 *__restrict__ gradients, unsigned quads, unsigned gradient_quads, float rate)
{
    unsigned at = blockIdx.x * THREADS + threadIdx.x;
    float4 weight, momentum, gradient = {};

    if (at >= quads)
        return;
    weight = weights[at];
    momentum = momenta[at];
    if (at < gradient_quads)
        gradient = gradients[at];
    else
        gradient = make_float4(1e-3f * weight.x, 1e-3f * weight.y, 1e-3f * weight.z, 1e-3f * weight.w);
    momentum.x = 0.5f * momentum.x + gradient.x;
    momentum.y = 0.5f * momentum.y + gradient.y;
    momentum.z = 0.5f * momentum.z + gradient.z;
    momentum.w = 0.5f * momentum.w + gradient.w;
    weight.x -= rate * momentum.x;
    weight.y -= rate * momentum.y;
    weight.z -= rate * momentum.z;
    weight.w -= rate * momentum.w;
    weights[at] = weight;
    momenta[at] = momentum;
}

/* Adds the squares of `count` errors to *out. */
extern "C" __global__ void __launch_bounds__(THREADS)
flyball_loss(float *__restrict__ out, const float *__restrict__ errors, unsigned count)
{
    float sum = 0.0f;

#pragma unroll 1
    for (unsigned at = blockIdx.x * THREADS + threadIdx.x; at < count; at += gridDim.x * THREADS)
        sum += errors[at] * errors[at];
    atomicAdd(out, sum);
}

/* Fills a matrix with pseudo-random numbers within +-scale, or with the transposed one of the same seed. */
extern "C" __global__ void __launch_bounds__(THREADS)
flyball_fill(float *__restrict__ out, unsigned count, unsigned n, unsigned transposed, unsigned seed, float scale)
{
    unsigned at = blockIdx.x * THREADS + threadIdx.x, place = at, bits;

    if (at >= count)
        return;
    if (transposed)
        place = at % n * n + at / n;
    bits = (place ^ seed) * 0x9E3779B1u;
    bits = (bits ^ bits >> 16) * 0x85EBCA6Bu;
    bits = (bits ^ bits >> 13) * 0xC2B2AE35u;
    bits ^= bits >> 16;
    out[at] = scale * ((float)(int)bits * 0x1p-31f);
}
