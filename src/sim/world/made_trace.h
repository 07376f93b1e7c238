/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_SIM_WORLD_MADE_TRACE_H
#define FLYBALL_SIM_WORLD_MADE_TRACE_H

#include <stdint.h>
#include <stdio.h>

/*
 * A made-up trace in the format of trace.h, to try things without a recorded one. Nothing in it
 * was measured.
 *
 * Epochs to the target at batch size b follow the critical-batch-size law (McCandlish et al., "An
 * Empirical Model of Large-Batch Training", 2018), with a mirrored penalty for small batches and
 * log-normal noise per run:
 *
 *     10 * (1 + b / 512) * (1 + 8 / b) * exp(0.1 z)
 *
 * and the largest batch size reaches the target in only one run of five. Time and power are those
 * of the GPU "v100-like" of model/gpu_model.h: 100 us for a sample and 4 ms for a step, all of it
 * bound by the clock; at a batch size of 48 it needs half the dynamic power.
 */
extern const char made_trace_name[]; /* name of its GPU and of its job: "made-up" */

/* Write the three files of a trace; equal seeds give equal bytes. Errors stay in the streams. */
void made_trace_write_train(FILE *stream, uint32_t seed);
void made_trace_write_power(FILE *stream);
void made_trace_write_jobs(FILE *stream);

#endif
