/* SPDX-License-Identifier: Apache-2.0 */
#include "device/refusal.h"

#include "base/error.h"

int device_refused(const struct device_info *info, const struct device_refusal *refusal,
                   struct fly_error *out_error)
{
    switch (refusal->state) {
    case READING_DENIED:
        if (refusal->privileged == NULL)
            return error_set(out_error, FLY_EPERM,
                             "%s of GPU %u failed: only root may; run this program as root", refusal->attempt,
                             info->index);
        return error_set(out_error, FLY_EPERM,
                         "%s of GPU %u failed: only root may; run this program as root, or 'sudo %s'",
                         refusal->attempt, info->index, refusal->privileged);
    case READING_UNSUPPORTED:
    case READING_MISSING:
        return error_set(out_error, FLY_EUNSUPPORTED,
                         "%s of GPU %u failed: %s (%s %lld); this board or its driver does not offer it, and "
                         "nothing can be done",
                         refusal->attempt, info->index, refusal->meaning, refusal->interface, refusal->code);
    default:
        return error_set(out_error, FLY_EREAD, "%s of GPU %u failed: %s (%s %lld); see what '%s' says",
                         refusal->attempt, info->index, refusal->meaning, refusal->interface, refusal->code,
                         refusal->look);
    }
}
