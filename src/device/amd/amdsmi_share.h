/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_DEVICE_AMD_AMDSMI_SHARE_H
#define FLYBALL_DEVICE_AMD_AMDSMI_SHARE_H

#include "device/amd/amdsmi_crowd.h"

/* Settles, after the trials, who counts for whom; and the words for it in a GPU's note. */
void amdsmi_share(struct amdsmi_crowd *crowd);
void amdsmi_note_sharing(const struct amdsmi_crowd *crowd, struct amdsmi_candidate *candidate);

#endif
