/* SPDX-License-Identifier: Apache-2.0 */
/* What a loaded recording gives for a moment. */
#include <stdlib.h>

#include "device/recording/recording_private.h"

void recording_free(struct recording *recording)
{
    if (recording == NULL)
        return;
    for (size_t i = 0; recording->tracks != NULL && i < recording->device_count; i++) {
        for (int q = 0; q < QUANTITY_COUNT; q++)
            free(recording->tracks[i].series[q].changes);
    }
    free(recording->tracks);
    free(recording);
}

size_t recording_device_count(const struct recording *recording)
{
    return recording->device_count;
}

const struct device_info *recording_device(const struct recording *recording, size_t device)
{
    return &recording->tracks[device].info;
}

struct wall_time recording_date(const struct recording *recording)
{
    return recording->date;
}

double recording_interval_s(const struct recording *recording)
{
    return recording->interval_s;
}

int64_t recording_end_ns(const struct recording *recording)
{
    return recording->end_ns;
}

bool recording_ended(const struct recording *recording)
{
    return recording->ended;
}

double recording_gap_s(const struct recording *recording, size_t device)
{
    const struct track *track = &recording->tracks[device];

    if (track->readings < 2)
        return 0.0;
    return (double)(track->last_ns - track->first_ns) / 1e9 / (double)(track->readings - 1);
}

struct reading recording_at(const struct recording *recording, size_t device, enum quantity quantity,
                            int64_t t_ns)
{
    const struct series *series = &recording->tracks[device].series[quantity];
    size_t low = 0, high = series->count;

    if (series->count == 0)
        return (struct reading){.state = READING_NOT_READ};
    if (t_ns > recording->end_ns)
        return (struct reading){.state = READING_ENDED};
    /* The last change at or before the moment is in [low, high). */
    while (high - low > 1) {
        size_t middle = low + (high - low) / 2;

        if (series->changes[middle].t_ns <= t_ns)
            low = middle;
        else
            high = middle;
    }
    return (struct reading){.value = series->changes[low].value,
                            .state = (enum reading_state)series->changes[low].state,
                            .code = series->changes[low].code};
}
