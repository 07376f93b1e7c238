/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_KNOB_WAY_DAEMON_ANSWER_H
#define FLYBALL_KNOB_WAY_DAEMON_ANSWER_H

#include <stdbool.h>
#include <stddef.h>

#include <flyball/error.h>

#include "device/device.h"

/*
 * Reads answers of the public daemon.
 *
 * Finds, in its answer to /discover, the number by which the daemon knows a GPU: the one at the
 * same place of the PCI bus, since indices differ if one side sees fewer GPUs. An emulated GPU
 * must have the same name too, because a real one may be plugged in at its place. FLY_EDATA for
 * an answer of another form, FLY_EUNSUPPORTED if the daemon has no such GPU or turns none,
 * FLY_EPERM if it wants a token and there is none. `out_flyballd` says whether it is flyballd, which names
 * itself; it is set also where the GPU is not found.
 */
int daemon_find_gpu(const char *text, size_t length, const struct device_info *gpu, bool has_token,
                    unsigned *out_id, bool *out_flyballd, struct fly_error *out_error);

/* Gives the daemon's reason for a refusal, on one line; "" for none. */
enum { DAEMON_REASON_MAX = 160 };
void daemon_reason(const char *text, size_t length, char reason[DAEMON_REASON_MAX]);

#endif
