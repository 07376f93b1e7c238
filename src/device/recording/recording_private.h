/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_DEVICE_RECORDING_RECORDING_PRIVATE_H
#define FLYBALL_DEVICE_RECORDING_RECORDING_PRIVATE_H

#include "device/recording/recording.h"

/* What writing, reading and asking share. */

/*
 * The facts of a device as members of its line: one table for writing and for
 * reading. Sensor facts stand in an object of their own.
 */
enum fact_kind {
    FACT_TEXT,     /* an array of characters; empty is null */
    FACT_POSITIVE, /* a double above 0; 0 is null */
    FACT_FLAG,     /* a bool */
};

struct recording_fact {
    const char *key;
    enum fact_kind kind;
    size_t offset, size; /* in struct device_info, or in struct sensor_facts */
    double maximum;      /* of FACT_POSITIVE */
};

/* Each ended by a NULL key. */
extern const struct recording_fact recording_device_facts[];
extern const struct recording_fact recording_sensor_facts[];

/* Bytes of sensor_facts.source that a recording keeps, with the NUL. */
enum { RECORDING_SOURCE_MAX = 160 };

/* The file to read; NULL with the code and the error. */
FILE *recording_open(const char *path, int *out_code, struct fly_error *out_error);

/* Loads a stream of which the head was read already. */
int recording_load_rest(const char *name, const char *head, size_t head_length, FILE *stream,
                        struct recording **out_recording, struct fly_error *out_error);

/* One value, from its moment on. */
struct change {
    int64_t t_ns, value;
    int32_t code;
    uint8_t state;
};

struct series {
    struct change *changes; /* owned, in the order of time */
    size_t count, capacity;
};

/* What was recorded of one device. */
struct track {
    struct device_info info;
    char source[RECORDING_SOURCE_MAX];
    struct series series[QUANTITY_COUNT];
    int64_t first_ns, last_ns; /* of its readings */
    size_t readings;
};

struct recording {
    size_t device_count;
    struct wall_time date;
    double interval_s;
    int64_t end_ns;
    bool ended;
    size_t change_count;
    struct track *tracks; /* owned */
};

#endif
