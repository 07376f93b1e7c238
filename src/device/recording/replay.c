/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Plays a recording back: time begins when the list is opened, by the clock of the options, and a
 * reading gets what the device had last reported by then.
 *
 * A counter that was read every 100 ms moves in steps of 100 ms when it is played. So the sensor
 * facts of the played device include the recording's own interval, and a measurement on a replay
 * states the right uncertainty.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/error.h"
#include "device/backend.h"
#include "device/recording/facts.h"
#include "device/recording/recording_private.h"

enum {
    SECOND_NS = 1000000000,
    DATE_MAX = 32,
    HEAD_MAX = 512,
    NOTE_MAX = sizeof((struct device_info *)NULL)->note
};

/* What all devices of one list share. */
struct player {
    struct recording *recording; /* owned */
    const struct clock *clock;
    struct mono_time start;
    size_t users; /* number of open devices */
};

struct played {
    struct player *player;
    size_t device; /* index in the recording */
};

static void release(struct player *player)
{
    if (player->users > 0)
        return;
    recording_free(player->recording);
    free(player);
}

/* Returns the facts of the recorded device, with a note that it is a recording. */
static struct device_info played_info(const struct recording *recording, size_t device)
{
    struct device_info info = *recording_device(recording, device);
    double interval_s = recording_interval_s(recording), gap_s = recording_gap_s(recording, device);
    time_t seconds = (time_t)(recording_date(recording).ns / SECOND_NS);
    struct tm utc;
    char date[DATE_MAX] = "", note[NOTE_MAX];

    gap_s = gap_s > interval_s ? gap_s : interval_s;
    info.sensor.counter_period_s += gap_s;
    info.sensor.power_period_s = info.sensor.power_period_s > gap_s ? info.sensor.power_period_s : gap_s;
    if (gmtime_r(&seconds, &utc) != NULL)
        strftime(date, sizeof date, "%Y-%m-%d %H:%M UTC", &utc);
    snprintf(note, sizeof note, "%s", info.note);
    if ((size_t)snprintf(info.note, sizeof info.note, "a recording of %s%s%s%s", date,
                         recording_ended(recording) ? "" : ", cut off at its end",
                         note[0] != '\0' ? "; " : "", note) >= sizeof info.note)
        snprintf(info.note + sizeof info.note - sizeof "...", sizeof "...", "...");
    return info;
}

static int add_devices(struct player *player, struct device_list *list, struct fly_error *out_error);

static int play_recording(const struct device_options *options, struct recording *recording,
                          struct device_list *list, struct fly_error *out_error)
{
    struct player *player = calloc(1, sizeof *player);
    int code;

    if (player == NULL) {
        recording_free(recording);
        return error_no_memory(out_error);
    }
    player->recording = recording;
    player->clock = device_clock(options);
    player->start = player->clock->now(player->clock->state);
    code = add_devices(player, list, out_error);
    release(player);
    return code;
}

static int refuse_facts(const char *path, struct fly_error *out_error)
{
    return error_set(out_error, FLY_EDATA,
                     "'%s' holds facts of a machine, in which nothing moves: 'flyball devices', 'flyball "
                     "doctor' and 'flyball power get' show them; name a recording",
                     path);
}

static int open_stream(const struct device_options *options, FILE *stream, struct device_list *list,
                       struct fly_error *out_error)
{
    const char *path = options->replay_path;
    struct recording *recording = NULL;
    struct facts *facts = NULL;
    char head[HEAD_MAX];
    size_t length = fread(head, 1, sizeof head, stream);
    int code;

    if (facts_begin(head, length) && !options->facts)
        return refuse_facts(path, out_error);
    if (facts_begin(head, length)) {
        code = facts_load_stream(path, head, length, stream, &facts, out_error);
        return code == 0 ? facts_play(facts, list, out_error) : code;
    }
    code = recording_load_rest(path, head, length, stream, &recording, out_error);
    return code == 0 ? play_recording(options, recording, list, out_error) : code;
}

/* Opens a recording, or facts: the first bytes of the file say which. */
static int replay_open(const struct device_options *options, struct device_list *list,
                       struct fly_error *out_error)
{
    int code = 0;
    FILE *stream = recording_open(options->replay_path, &code, out_error);

    if (stream == NULL)
        return code;
    code = open_stream(options, stream, list, out_error);
    fclose(stream);
    return code;
}

static void replay_close(struct device *device)
{
    struct played *played = device->state;

    played->player->users--;
    release(played->player);
    free(played);
}

static void replay_read(const struct device *device, quantity_set wanted, struct reading *values)
{
    const struct played *played = device->state;
    const struct clock *clock = played->player->clock;
    int64_t t_ns = clock->now(clock->state).ns - played->player->start.ns;

    for (int i = 0; i < QUANTITY_COUNT; i++) {
        if ((wanted & QUANTITY_BIT(i)) != 0)
            values[i] = recording_at(played->player->recording, played->device, (enum quantity)i, t_ns);
    }
}

const struct device_backend device_backend_replay = {.name = "replay",
                                                     .title = "a recording",
                                                     .open = replay_open,
                                                     .close = replay_close,
                                                     .read = replay_read};

static int add_devices(struct player *player, struct device_list *list, struct fly_error *out_error)
{
    int code = 0;

    for (size_t i = 0; code == 0 && i < recording_device_count(player->recording); i++) {
        struct device_info info = played_info(player->recording, i);
        struct played *played = malloc(sizeof *played);

        if (played == NULL)
            return error_no_memory(out_error);
        *played = (struct played){.player = player, .device = i};
        code = device_list_add(list, &device_backend_replay, &info, played, out_error);
        if (code < 0)
            free(played);
        else
            player->users++;
    }
    return code;
}
