/* SPDX-License-Identifier: Apache-2.0 */
#include "emulator/settings.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/number.h"
#include "base/words.h"
#include "emulator/boards.h"

static bool set_real(double *out, const char *value, double lowest, double highest, double unit)
{
    double number;

    if (!number_parse_double(value, &number) || number < lowest || number > highest)
        return false;
    *out = number * unit;
    return true;
}

/* The index of the value in the list of words, which ends with NULL, or -1. */
static int word_of(const char *value, const char *const *words)
{
    for (int i = 0; words[i] != NULL; i++) {
        if (strcmp(words[i], value) == 0)
            return i;
    }
    return -1;
}

static bool set_word(const char *value, const char *const *words, bool *out)
{
    int index = word_of(value, words);

    if (index >= 0)
        *out = index == 1;
    return index >= 0;
}

static const char *const no_or_yes[] = {"no", "yes", NULL};

static bool set_gpus(struct emulator_settings *settings, const char *value)
{
    uint64_t gpus;

    if (!number_parse_u64(value, EMULATOR_GPUS_MAX, &gpus))
        return false;
    settings->gpus = (unsigned)gpus;
    return true;
}

static bool set_model(struct emulator_settings *settings, const char *value)
{
    int board = emulated_board_find(value);

    if (board >= 0)
        settings->board = (unsigned)board;
    settings->board_given = settings->board_given || board >= 0;
    return board >= 0;
}

static bool set_instances(struct emulator_settings *settings, const char *value)
{
    uint64_t instances;

    if (!number_parse_u64(value, EMULATOR_INSTANCES_MAX, &instances))
        return false;
    settings->instances = (unsigned)instances;
    return true;
}

static bool set_first_divided(struct emulator_settings *settings, const char *value)
{
    uint64_t first;

    if (!number_parse_u64(value, EMULATOR_GPUS_MAX, &first))
        return false;
    settings->first_divided = (unsigned)first;
    return true;
}

static bool set_time(struct emulator_settings *settings, const char *value)
{
    static const char *const words[] = {"real", "virtual", NULL};

    return set_word(value, words, &settings->virtual_time);
}

static bool set_sensor(struct emulator_settings *settings, const char *value)
{
    static const char *const words[] = {"board", "part-time", "second", "exact", NULL};
    int kind = word_of(value, words);

    if (kind >= 0)
        settings->sensor = (enum emulator_sensor_kind)kind;
    return kind >= 0;
}

static bool set_counter_period(struct emulator_settings *settings, const char *value)
{
    return set_real(&settings->counter_period_s, value, 0.0, 60000.0, 1e-3);
}

static bool set_counter(struct emulator_settings *settings, const char *value)
{
    static const char *const words[] = {"truth", "power", "none", NULL};
    int counter = word_of(value, words);

    if (counter < 0)
        return false;
    settings->counter_from_power = counter == 1;
    settings->counter_missing = counter == 2;
    return true;
}

static bool set_counter_drift(struct emulator_settings *settings, const char *value)
{
    return set_real(&settings->counter_drift_ppm, value, 0.0, 1000.0, 1.0);
}

static bool set_counter_slew_ppm(struct emulator_settings *settings, const char *value)
{
    return set_real(&settings->counter_slew_ppm, value, 0.0, 1000.0, 1.0);
}

static bool set_counter_slew_s(struct emulator_settings *settings, const char *value)
{
    return set_real(&settings->counter_slew_s, value, 1.0, 3600.0, 1.0);
}

static bool set_counter_slew(struct emulator_settings *settings, const char *value)
{
    static const char *const words[] = {"slow", "steps", NULL};

    return set_word(value, words, &settings->counter_slew_steps);
}

static bool set_counter_jitter(struct emulator_settings *settings, const char *value)
{
    return set_real(&settings->counter_jitter_s, value, 0.0, 1000.0, 1e-3);
}

static bool set_counter_skip(struct emulator_settings *settings, const char *value)
{
    return set_real(&settings->counter_skip, value, 0.0, 0.9, 1.0);
}

static bool set_counter_update(struct emulator_settings *settings, const char *value)
{
    static const char *const words[] = {"clock", "read", NULL};

    return set_word(value, words, &settings->counter_on_read);
}

static bool set_counter_step(struct emulator_settings *settings, const char *value)
{
    uint64_t step_mj;

    if (!number_parse_u64(value, 1000000, &step_mj) || step_mj == 0)
        return false;
    settings->counter_step_mj = (unsigned)step_mj;
    return true;
}

static bool set_stamps(struct emulator_settings *settings, const char *value)
{
    static const char *const words[] = {"read", "made", "late", NULL};
    int stamps = word_of(value, words);

    if (stamps >= 0)
        settings->stamps = (enum emulator_stamps)stamps;
    return stamps >= 0;
}

static bool set_process_samples(struct emulator_settings *settings, const char *value)
{
    static const char *const words[] = {"all", "newest", "none", NULL};
    int index = word_of(value, words);

    if (index >= 0)
        settings->process_samples = (enum emulator_process_samples)index;
    return index >= 0;
}

static bool set_mps_samples(struct emulator_settings *settings, const char *value)
{
    static const char *const words[] = {"server", "clients", "none", NULL};
    int index = word_of(value, words);

    if (index >= 0)
        settings->mps_samples = (enum emulator_mps_samples)index;
    return index >= 0;
}

static bool set_suspend_every(struct emulator_settings *settings, const char *value)
{
    return set_real(&settings->suspend_every_s, value, 0.0, 1e6, 1.0);
}

static bool set_suspend(struct emulator_settings *settings, const char *value)
{
    return set_real(&settings->suspend_s, value, 0.0, 1e6, 1.0);
}

static bool set_gain(struct emulator_settings *settings, const char *value)
{
    return set_real(&settings->gain, value, 0.1, 10.0, 1.0);
}

static bool set_noise(struct emulator_settings *settings, const char *value)
{
    return set_real(&settings->noise_w, value, 0.0, 1000.0, 1.0);
}

static bool set_settle(struct emulator_settings *settings, const char *value)
{
    return set_real(&settings->settle_s, value, 0.001, 5000.0, 1e-3);
}

static bool set_limit_settle(struct emulator_settings *settings, const char *value)
{
    return set_real(&settings->limit_settle_s, value, 0.0, 5000.0, 1e-3);
}

static bool set_set_time(struct emulator_settings *settings, const char *value)
{
    return set_real(&settings->set_s, value, 0.0, 60000.0, 1e-3);
}

static bool set_enforced(struct emulator_settings *settings, const char *value)
{
    return set_real(&settings->enforced_w, value, 0.0, 10000.0, 1.0);
}

static bool set_ideal(struct emulator_settings *settings, const char *value)
{
    return set_word(value, no_or_yes, &settings->ideal);
}

static bool set_latency(struct emulator_settings *settings, const char *value)
{
    return set_real(&settings->latency_s, value, 0.0, 1e7, 1e-6);
}

static bool set_latency_busy(struct emulator_settings *settings, const char *value)
{
    static const char *const words[] = {"sleep", "busy", NULL};

    return set_word(value, words, &settings->latency_busy);
}

static bool set_seed(struct emulator_settings *settings, const char *value)
{
    uint64_t seed;

    if (!number_parse_u64(value, UINT32_MAX, &seed))
        return false;
    settings->seed = (uint32_t)seed;
    return true;
}

static bool set_any_user(struct emulator_settings *settings, const char *value)
{
    return set_word(value, no_or_yes, &settings->any_user);
}

static bool set_shared(struct emulator_settings *settings, const char *value)
{
    return set_word(value, no_or_yes, &settings->shared);
}

static bool set_text(char *out, size_t capacity, const char *value)
{
    return value[0] != '\0' && (size_t)snprintf(out, capacity, "%s", value) < capacity;
}

static bool set_faults(struct emulator_settings *settings, const char *value)
{
    return set_text(settings->faults, sizeof settings->faults, value);
}

static bool set_profile(struct emulator_settings *settings, const char *value)
{
    return set_text(settings->profile, sizeof settings->profile, value);
}

static bool set_workload(struct emulator_settings *settings, const char *value)
{
    return set_text(settings->workload, sizeof settings->workload, value);
}

const struct emulator_setting emulator_settings_table[] = {
    {"gpus", "N", "a number from 0 to 16", "How many GPUs; 2 unless said otherwise.", set_gpus},
    {"model", "NAME", "v100, v100-sxm2, a40, a100, h100, h200, gh200 or b200",
     "Which GPU to resemble; a100 unless said otherwise.", set_model},
    {"profile", "FILE", "a path",
     "Recorded profile that the GPUs follow: a CSV file of limits, times and energies, one of 'flyball "
     "profile', or a recording.",
     set_profile},
    {"workload", "NAME", "a name",
     "Which workload of the profile, where it has several: dataset/network/batch_size/optimizer.",
     set_workload},
    {"mig", "N", "a number from 0 to 7",
     "Into how many MIG instances each GPU is divided, where the model has MIG; none unless given.",
     set_instances},
    {"mig-from", "N", "a number from 0 to 16", "The first GPU that is divided; 0 unless given.",
     set_first_divided},
    {"time", "WORD", "real or virtual",
     "Whether time passes by itself, or only when a program moves it; real unless said otherwise.", set_time},
    {"sensor", "WORD", "board, part-time, second or exact",
     "What a power reading averages over: as the board does, 25 ms of every 100 ms, the last second, or "
     "nothing.",
     set_sensor},
    {"counter-period-ms", "MS", "a number from 0 to 60000",
     "Time between two updates of the energy counter; the board's unless given.", set_counter_period},
    {"counter", "WORD", "truth, power or none",
     "Whether the energy counter sums the true power or the sensor's readings, or is missing; truth unless "
     "said otherwise.",
     set_counter},
    {"counter-drift-ppm", "PPM", "a number from 0 to 1000",
     "By how much the clock of a GPU's counter may be off, each by its own; 100 unless given.",
     set_counter_drift},
    {"counter-slew-ppm", "PPM", "a number from 0 to 1000",
     "By how much the clock of the counter becomes slower and faster again; 0 unless given.",
     set_counter_slew_ppm},
    {"counter-slew-s", "S", "a number from 1 to 3600",
     "How long it takes for that to come back to where it was; 60 unless given.", set_counter_slew_s},
    {"counter-slew", "WORD", "slow or steps", "Whether it does so by and by or at once.", set_counter_slew},
    {"counter-jitter-ms", "MS", "a number from 0 to 1000",
     "By how much an update of the counter may be late, each by itself; 0 unless given.", set_counter_jitter},
    {"counter-skip", "SHARE", "a number from 0 to 0.9",
     "Share of the counter's updates that do not come; 0 unless given.", set_counter_skip},
    {"counter-update", "WORD", "clock or read",
     "Whether the counter is updated by its clock, or when it is read and a period has passed.",
     set_counter_update},
    {"counter-step-mj", "MJ", "a number from 1 to 1000000",
     "The counter shows multiples of this; 1 unless given.", set_counter_step},
    {"stamps", "WORD", "read, made or late",
     "What the driver's time stamps of field values say: when they were read, when they were made, or that "
     "and up to 50 ms more.",
     set_stamps},
    {"process-samples", "WORD", "all, newest or none",
     "Which samples the driver gives of what processes kept busy; all unless said otherwise.",
     set_process_samples},
    {"mps-samples", "WORD", "server, clients or none",
     "Whose the samples of MPS clients are; their server's unless said otherwise.", set_mps_samples},
    {"suspend-every-s", "S", "a number from 0 to 1000000",
     "After how much time the machine sleeps, again and again; never unless given.", set_suspend_every},
    {"suspend-s", "S", "a number from 0 to 1000000", "How long it sleeps then; 0 unless given.", set_suspend},
    {"gain", "FACTOR", "a number from 0.1 to 10", "What readings of power and energy are multiplied with.",
     set_gain},
    {"noise-w", "W", "a number from 0 to 1000",
     "Standard deviation of the noise of a power reading; the board's unless given.", set_noise},
    {"settle-ms", "MS", "a number from 0.001 to 5000",
     "Time constant of the power's way to a new value; the board's unless given.", set_settle},
    {"limit-settle-ms", "MS", "a number from 0 to 5000",
     "Time constant with which the board brings its power to a limit; the board's unless given.",
     set_limit_settle},
    {"set-ms", "MS", "a number from 0 to 60000",
     "Time that a call takes which sets something; the board's unless given.", set_set_time},
    {"enforced-w", "W", "a number from 0 to 10000",
     "Highest limit that the boards enforce, whatever limit is asked for; 0, unless given: that limit.",
     set_enforced},
    {"ideal", "yes|no", "yes or no",
     "Boards without noise whose limits hold at once and whose calls take no time, unless one of these is "
     "given.",
     set_ideal},
    {"latency-us", "US", "a number from 0 to 10000000", "Time that every call of the library takes.",
     set_latency},
    {"latency", "WORD", "sleep or busy", "How that time is spent; asleep unless said otherwise.",
     set_latency_busy},
    {"seed", "N", "a number from 0 to 4294967295", "Seed of the sensors' phases and noise.", set_seed},
    {"any-user", "yes|no", "yes or no", "Lets every user turn limits and clocks, not root alone.",
     set_any_user},
    {"shared", "yes|no", "yes or no", "Lets users other than the one who starts it take part.", set_shared},
    {"faults", "FILE", "a path", "Script of the faults that calls meet.", set_faults},
    {.key = NULL},
};

const struct emulator_settings emulator_default_settings = {
    .gpus = 2,
    .board = 3, /* a100 */
    .counter_period_s = NAN,
    .counter_drift_ppm = 100.0,
    .counter_slew_s = 60.0,
    .counter_step_mj = 1,
    .gain = 1.0,
    .noise_w = NAN,
    .settle_s = NAN,
    .limit_settle_s = NAN,
    .set_s = NAN,
    .seed = 1,
};

static const struct emulator_setting *find(const char *key)
{
    const struct emulator_setting *setting = emulator_settings_table;

    while (setting->key != NULL && strcmp(setting->key, key) != 0)
        setting++;
    return setting->key != NULL ? setting : NULL;
}

static int unknown_key(const char *key, struct fly_error *out_error)
{
    const char *keys[sizeof emulator_settings_table / sizeof emulator_settings_table[0]];
    size_t count = 0;
    int nearest;

    for (; emulator_settings_table[count].key != NULL; count++)
        keys[count] = emulator_settings_table[count].key;
    nearest = word_nearest(key, keys, count);
    if (nearest >= 0)
        return error_set(out_error, FLY_EUSAGE, "unknown setting '%.40s' of the emulator; did you mean '%s'?",
                         key, keys[nearest]);
    return error_set(out_error, FLY_EUSAGE,
                     "unknown setting '%.40s' of the emulator; 'flyball-emulator help start' lists all", key);
}

int emulator_settings_set(struct emulator_settings *settings, const char *key, const char *value,
                          struct fly_error *out_error)
{
    const struct emulator_setting *setting = find(key);

    if (setting == NULL)
        return unknown_key(key, out_error);
    if (!setting->set(settings, value))
        return error_set(out_error, FLY_EUSAGE,
                         "bad value '%.80s' for the emulator's setting '%s': expected %s", value, key,
                         setting->expected);
    return 0;
}

int emulator_settings_parse(struct emulator_settings *settings, const char *text, struct fly_error *out_error)
{
    struct emulator_settings parsed = *settings;
    char entry[EMULATOR_PATH_MAX + 64];
    int code = 0;

    while (text[0] != '\0' && code == 0) {
        size_t length = strcspn(text, ",");
        char *value;

        if (length >= sizeof entry)
            return error_set(out_error, FLY_EUSAGE,
                             "setting '%.20s...' of the emulator is too long; shorten it", text);
        memcpy(entry, text, length);
        entry[length] = '\0';
        text += length + (text[length] == ',');
        value = strchr(entry, '=');
        if (value != NULL)
            *value++ = '\0';
        if (entry[0] != '\0')
            code = emulator_settings_set(&parsed, entry, value != NULL ? value : "yes", out_error);
    }
    if (code == 0)
        *settings = parsed;
    return code;
}

unsigned emulator_instances(const struct emulator_settings *settings, unsigned gpu)
{
    return gpu >= settings->first_divided ? settings->instances : 0;
}

double emulator_setting_or(const struct emulator_settings *settings, double given, double board)
{
    if (!isnan(given))
        return given;
    return settings->ideal ? 0.0 : board;
}
