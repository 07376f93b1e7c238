/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_DEVICE_AMD_AMDSMI_SHARE_H
#define FLYBALL_DEVICE_AMD_AMDSMI_SHARE_H

#include "device/amd/amdsmi_crowd.h"

/* Decides, after the trials, which GPU counts for which others, and writes that into the GPUs' notes. */
void amdsmi_share(struct amdsmi_crowd *crowd);
void amdsmi_note_sharing(const struct amdsmi_crowd *crowd, struct amdsmi_candidate *candidate);

#endif
