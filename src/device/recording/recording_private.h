/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_DEVICE_RECORDING_RECORDING_PRIVATE_H
#define FLYBALL_DEVICE_RECORDING_RECORDING_PRIVATE_H

#include "device/recording/recording.h"
#include "shapes/shape.h"

/* What writing, reading and playing recordings share: first the lines of a file (recording_shapes.c). */

/* Bytes of sensor_facts.source that a recording keeps, with the NUL. */
enum { RECORDING_SOURCE_MAX = 160 };

/* The first line. */
struct recording_header {
    uint32_t schema;
    const char *flyball; /* version that wrote it */
    struct wall_time date;
    int64_t unix_us; /* the date, to the microsecond; INT64_MIN: not stated */
    double interval_s;
    size_t devices;
};

/* A device with its facts; minor -1, modulus 0, numbers 0 and empty texts are null. */
struct recording_sensor {
    struct sensor_facts facts; /* except for its source */
    char source[RECORDING_SOURCE_MAX];
};
struct recording_device_line {
    size_t device; /* counted from 0 */
    const char *backend;
    struct device_info info; /* except for its sensor */
    struct recording_sensor sensor;
};

/* A reading, or the end in good order. Readings are written by hand, since that allocates nothing. */
struct recording_said {
    int quantity;
    struct reading reading;
};
struct recording_line {
    int64_t t_ns;
    int64_t device; /* -1: not stated */
    bool end, has_end;
    struct recording_said said[QUANTITY_COUNT];
    size_t count;
};

extern const struct shape recording_header_shape;
extern const struct shape recording_device_shape;
extern const struct shape recording_line_shape;
extern const struct shape recording_end_shape; /* only the end, whatever else the line has */

/* Opens the file to read; NULL with the code and the error. */
FILE *recording_open(const char *path, int *out_code, struct fly_error *out_error);

/* Loads a stream whose head was already read. */
int recording_load_rest(const char *name, const char *head, size_t head_length, FILE *stream,
                        struct recording **out_recording, struct fly_error *out_error);

/* One value, valid from its moment on. */
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
