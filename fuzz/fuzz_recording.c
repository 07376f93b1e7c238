/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Recordings: any bytes are either a recording whose readings can be requested for any moment, or are refused
 * with the file's name and a line.
 */
#include <string.h>

#include "device/recording/recording.h"
#include "fuzz.h"

static void check_reading(struct reading reading)
{
    FUZZ_CHECK(reading.state >= READING_NOT_READ && reading.state < READING_STATE_COUNT);
    FUZZ_CHECK(reading.state == READING_OK || reading.value == 0);
}

static void check_moment(const struct recording *recording, int64_t t_ns)
{
    for (size_t d = 0; d < recording_device_count(recording); d++) {
        for (int q = 0; q < QUANTITY_COUNT; q++)
            check_reading(recording_at(recording, d, (enum quantity)q, t_ns));
    }
}

static void check_recording(const struct recording *recording)
{
    int64_t end_ns = recording_end_ns(recording);

    FUZZ_CHECK(recording_device_count(recording) <= DEVICES_MAX && end_ns >= 0);
    FUZZ_CHECK(recording_interval_s(recording) >= 0.0);
    for (size_t d = 0; d < recording_device_count(recording); d++) {
        const struct device_info *info = recording_device(recording, d);

        FUZZ_CHECK(info->uuid[0] != '\0' && strlen(info->uuid) < sizeof info->uuid);
        FUZZ_CHECK(strlen(info->note) < sizeof info->note);
        FUZZ_CHECK(recording_gap_s(recording, d) >= 0.0);
    }
    check_moment(recording, 0);
    check_moment(recording, end_ns / 2);
    check_moment(recording, end_ns);
}

/*
 * A block of exactly the input's size. fmemopen accepts no empty one: an empty input gets a byte that is no
 * recording.
 */
static char *copy(const uint8_t *data, size_t size)
{
    char *bytes = calloc(size > 0 ? size : 1, 1);

    FUZZ_CHECK(bytes != NULL);
    if (size > 0)
        memcpy(bytes, data, size);
    return bytes;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fly_error error = {.code = 0};
    struct recording *recording = NULL;
    char *bytes = copy(data, size);
    FILE *stream = fmemopen(bytes, size > 0 ? size : 1, "rb");
    int code;

    FUZZ_CHECK(stream != NULL);
    code = recording_load_stream("f.jsonl", stream, &recording, &error);
    fclose(stream);
    free(bytes);
    if (code == 0) {
        check_recording(recording);
        recording_free(recording);
    } else {
        FUZZ_CHECK(code == FLY_EDATA || code == FLY_ELIMIT);
        FUZZ_CHECK(error.code == code && strncmp(error.text, "f.jsonl:", 8) == 0);
    }
    return 0;
}
