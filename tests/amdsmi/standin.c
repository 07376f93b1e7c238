/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stands in for libamd_smi.so, compiled once for each VERSION of its interface
 * with structs of its own, so that the program's idea of them is held against
 * another one.
 *
 * What it shows is asked of the environment at every call: AMD_NAME_1 for the
 * second GPU, or else AMD_NAME for all, or else a default. Statuses of calls come
 * from AMD_FAIL_<call>, energy from power and time: AMD_TIME_NS in place of the
 * monotonic clock. It never fills less than a struct's whole length.
 *
 * What is set lies in files below AMD_STATE, such as CAP_0, which are asked first,
 * so that all processes see it: power caps in microwatts, levels, clocks in MHz.
 * With AMD_WANTED_W a GPU draws that or its cap, whichever is less, and its energy
 * follows.
 */
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define API __attribute__((visibility("default")))

enum { GPUS_MAX = 200, TEXT_MAX = 128, PATH_BYTES = 512 };
enum { SUCCESS = 0, INVALID = 1, NOT_SUPPORTED = 2, NO_PERMISSION = 10, NOT_INITIALISED = 32 };
enum { LEVEL_AUTO = 0, LEVEL_MANUAL = 3, LEVEL_COUNT = 9 };

/* What a GPU's handle points to. */
static struct gpu {
    int index;
} gpus[GPUS_MAX];

/* How often it was initialised and not yet shut down; a test looks here. */
API int standin_users;

/* Where the value of a GPU lies that was set; false where nothing can be. */
static int state_path(const char *what, int gpu, char path[PATH_BYTES])
{
    const char *directory = getenv("AMD_STATE");

    return directory != NULL && snprintf(path, PATH_BYTES, "%s/%s_%d", directory, what, gpu) < PATH_BYTES;
}

/* What was set, in a place that the next call overwrites; NULL where nothing was. */
static const char *set_value(const char *what, int gpu)
{
    static _Thread_local char text[TEXT_MAX];
    char path[PATH_BYTES];
    FILE *file = state_path(what, gpu, path) ? fopen(path, "r") : NULL;
    const char *found = file != NULL ? fgets(text, sizeof text, file) : NULL;

    if (file != NULL)
        fclose(file);
    return found;
}

/* Written whole or not at all. */
static uint32_t set_text(const char *what, int gpu, const char *text)
{
    char path[PATH_BYTES], whole[PATH_BYTES + 32];
    FILE *file;

    if (!state_path(what, gpu, path))
        return NOT_SUPPORTED;
    snprintf(whole, sizeof whole, "%s.%ld", path, (long)getpid());
    file = fopen(whole, "w");
    if (file == NULL)
        return NO_PERMISSION;
    fputs(text, file);
    return fclose(file) == 0 && rename(whole, path) == 0 ? SUCCESS : NO_PERMISSION;
}

static uint32_t set_number(const char *what, int gpu, uint64_t value)
{
    char text[TEXT_MAX];

    snprintf(text, sizeof text, "%" PRIu64, value);
    return set_text(what, gpu, text);
}

static const char *look_up(const char *what, int gpu, const char *otherwise)
{
    char name[2 * TEXT_MAX];
    const char *found = set_value(what, gpu);

    if (found != NULL)
        return found;

    snprintf(name, sizeof name, "AMD_%s_%d", what, gpu);
    found = getenv(name);
    if (found == NULL) {
        snprintf(name, sizeof name, "AMD_%s", what);
        found = getenv(name);
    }
    return found != NULL ? found : otherwise;
}

/* Numbers in any base; "none" is all ones. */
static uint64_t number(const char *what, int gpu, uint64_t otherwise)
{
    const char *text = look_up(what, gpu, NULL);

    if (text == NULL)
        return otherwise;
    return strcmp(text, "none") == 0 ? UINT64_MAX : strtoull(text, NULL, 0);
}

/* The status with which a call begins; -1: go on. */
static long begin(const char *call, const void *handle, const void *answer)
{
    const struct gpu *gpu = handle;
    char what[TEXT_MAX];
    uint64_t status;

    if (standin_users <= 0)
        return NOT_INITIALISED;
    if (answer == NULL || (gpu != NULL && (gpu < gpus || gpu >= gpus + GPUS_MAX)))
        return INVALID;
    snprintf(what, sizeof what, "FAIL_%s", call);
    status = number(what, gpu != NULL ? gpu->index : 0, SUCCESS);
    return status == SUCCESS ? -1 : (long)(status & UINT32_MAX);
}

#define BEGIN(handle, answer)                          \
    long status = begin(__func__, (handle), (answer)); \
    if (status >= 0)                                   \
    return (uint32_t)status

static int index_of(const void *handle)
{
    return ((const struct gpu *)handle)->index;
}

API uint32_t amdsmi_init(uint64_t flags);
API uint32_t amdsmi_init(uint64_t flags)
{
    uint64_t status = number("FAIL_amdsmi_init", 0, SUCCESS);

    for (int i = 0; i < GPUS_MAX; i++)
        gpus[i].index = i;
    standin_users += flags == 2 && status == SUCCESS;
    return flags == 2 ? (uint32_t)status : INVALID;
}

API uint32_t amdsmi_shut_down(void);
API uint32_t amdsmi_shut_down(void)
{
    standin_users--;
    return SUCCESS;
}

/* year, major, minor, release up to 25; major, minor, release and one unused from 26 on */
API uint32_t amdsmi_get_lib_version(uint32_t *version);
API uint32_t amdsmi_get_lib_version(uint32_t *version)
{
    const uint32_t numbers[6] = {(uint32_t)number("VERSION", 0, VERSION), 6, 3, 0, 0, 0};
    BEGIN(NULL, version);

    memcpy(version, numbers, sizeof numbers);
    return SUCCESS;
}

API uint32_t amdsmi_get_socket_handles(uint32_t *count, void **sockets);
API uint32_t amdsmi_get_socket_handles(uint32_t *count, void **sockets)
{
    uint32_t there = (uint32_t)number("GPUS", 0, 1);
    BEGIN(NULL, count);

    for (uint32_t i = 0; sockets != NULL && i < there && i < *count && i < GPUS_MAX; i++)
        sockets[i] = &gpus[i];
    *count = there;
    return SUCCESS;
}

/* One GPU on every socket, as the library makes sockets of places on the bus. */
API uint32_t amdsmi_get_processor_handles(void *socket, uint32_t *count, void **handles);
API uint32_t amdsmi_get_processor_handles(void *socket, uint32_t *count, void **handles)
{
    BEGIN(socket, count);

    if (handles != NULL && *count > 0)
        handles[0] = socket;
    *count = 1;
    return SUCCESS;
}

API uint32_t amdsmi_get_gpu_device_bdf(void *gpu, uint64_t *bdf);
API uint32_t amdsmi_get_gpu_device_bdf(void *gpu, uint64_t *bdf)
{
    BEGIN(gpu, bdf);

    *bdf = number("BDF", index_of(gpu), (uint64_t)(0x10 + 5 * index_of(gpu)) << 8);
    return SUCCESS;
}

API uint32_t amdsmi_get_gpu_device_uuid(void *gpu, unsigned *size, char *uuid);
API uint32_t amdsmi_get_gpu_device_uuid(void *gpu, unsigned *size, char *uuid)
{
    BEGIN(gpu, uuid);

    if (*size < 38)
        return 41;
    snprintf(uuid, *size, "%s", look_up("UUID", index_of(gpu), "ca000000-0000-1000-8000-000000000000"));
    return SUCCESS;
}

/* The name stands first in all versions; the rest, of different lengths, is filled with noise. */
API uint32_t amdsmi_get_gpu_asic_info(void *gpu, char *info);
API uint32_t amdsmi_get_gpu_asic_info(void *gpu, char *info)
{
    BEGIN(gpu, info);

    memset(info, 0xAA, VERSION == 24 ? 448 : 896);
    snprintf(info, 256, "%s", look_up("NAME", index_of(gpu), "AMD Instinct MI300X"));
    return SUCCESS;
}

API uint32_t amdsmi_get_gpu_driver_info(void *gpu, char *info);
API uint32_t amdsmi_get_gpu_driver_info(void *gpu, char *info)
{
    BEGIN(gpu, info);

    memset(info, 0xAA, VERSION == 24 ? 192 : 768);
    snprintf(info, 64, "%s", look_up("DRIVER", index_of(gpu), "6.12.12"));
    return SUCCESS;
}

struct kfd {
    uint64_t kfd_id;
    uint32_t node_id, current_partition_id, reserved[12];
};

API uint32_t amdsmi_get_gpu_kfd_info(void *gpu, struct kfd *info);
API uint32_t amdsmi_get_gpu_kfd_info(void *gpu, struct kfd *info)
{
    BEGIN(gpu, info);

    *info = (struct kfd){.kfd_id = number("KFD", index_of(gpu), 4711 + (uint64_t)index_of(gpu)),
                         .node_id = (uint32_t)number("NODE", index_of(gpu), (uint64_t)index_of(gpu) + 1)};
    return SUCCESS;
}

#if VERSION > 24
struct enumeration {
    uint32_t drm_render, drm_card, hsa_id, hip_id;
    char hip_uuid[256];
};

API uint32_t amdsmi_get_gpu_enumeration_info(void *gpu, struct enumeration *info);
API uint32_t amdsmi_get_gpu_enumeration_info(void *gpu, struct enumeration *info)
{
    BEGIN(gpu, info);

    *info = (struct enumeration){.drm_render = 128,
                                 .hsa_id = 77,
                                 .hip_id = (uint32_t)number("HIP", index_of(gpu), (uint64_t)index_of(gpu))};
    snprintf(info->hip_uuid, sizeof info->hip_uuid, "%s", look_up("HIP_UUID", index_of(gpu), ""));
    return SUCCESS;
}
#endif

struct power {
#if VERSION == 24
    uint32_t current_socket_power, average_socket_power, gfx_voltage, soc_voltage, mem_voltage, power_limit;
    uint32_t reserved[11];
#elif VERSION == 25
    uint64_t socket_power;
    uint32_t current_socket_power, average_socket_power, gfx_voltage, soc_voltage, mem_voltage, power_limit;
    uint32_t reserved[2];
#else
    uint64_t socket_power;
    uint32_t current_socket_power, average_socket_power;
    uint64_t gfx_voltage, soc_voltage, mem_voltage;
    uint32_t power_limit;
    uint64_t reserved[18];
#endif
};
_Static_assert(sizeof(struct power) == (VERSION == 24 ? 68 : VERSION == 25 ? 40 : 192), "as documented");

/* What the GPU draws: what it wants, below its cap. */
static double drawn_w(int gpu, const char *what, const char *otherwise)
{
    const char *wanted = look_up("WANTED_W", gpu, NULL);
    double wanted_w, cap_w;

    if (wanted == NULL)
        return strtod(look_up(what, gpu, otherwise), NULL);
    wanted_w = strtod(wanted, NULL);
    cap_w = (double)number("CAP", gpu, 700000000) / 1e6;
    return wanted_w < cap_w ? wanted_w : cap_w;
}

API uint32_t amdsmi_get_power_info(void *gpu, struct power *info);
API uint32_t amdsmi_get_power_info(void *gpu, struct power *info)
{
    BEGIN(gpu, info);

    memset(info, 0xAA, sizeof *info);
    info->current_socket_power = look_up("WANTED_W", index_of(gpu), NULL) != NULL
                                     ? (uint32_t)drawn_w(index_of(gpu), "", "")
                                     : (uint32_t)number("POWER", index_of(gpu), 200);
    info->average_socket_power = (uint32_t)number("AVERAGE", index_of(gpu), 0xFFFF);
    return SUCCESS;
}

struct power_cap {
    uint64_t power_cap, default_power_cap, dpm_cap, min_power_cap, max_power_cap, reserved[3];
};

API uint32_t amdsmi_get_power_cap_info(void *gpu, uint32_t sensor, struct power_cap *info);
API uint32_t amdsmi_get_power_cap_info(void *gpu, uint32_t sensor, struct power_cap *info)
{
    BEGIN(gpu, info);

    if (sensor != 0)
        return INVALID;
    *info = (struct power_cap){.power_cap = number("CAP", index_of(gpu), 700000000),
                               .default_power_cap = number("CAP_DEFAULT", index_of(gpu), 750000000),
                               .dpm_cap = 2100,
                               .min_power_cap = number("CAP_MIN", index_of(gpu), 0),
                               .max_power_cap = number("CAP_MAX", index_of(gpu), 750000000)};
    return SUCCESS;
}

static uint64_t now_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return number("TIME_NS", 0, (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec);
}

/*
 * The counter now. Behind a cap that was set stand the time at which that was, and the counter then.
 */
static uint64_t ticks_now(int gpu, uint64_t now)
{
    const char *set = set_value("CAP", gpu);
    uint64_t since_ns = 0, before = UINT64_C(1) << 45;

    if (set != NULL) {
        char *rest;

        (void)strtoull(set, &rest, 10);
        since_ns = strtoull(rest, &rest, 10);
        before = strtoull(rest, &rest, 10);
    }
    return before + (uint64_t)(int64_t)((double)(int64_t)(now - since_ns) * 1e-9 *
                                        drawn_w(gpu, "COUNTED_W", "200") * 65536.0);
}

/* The true unit is 2^-16 J, of which the library says 15.3 uJ. */
API uint32_t amdsmi_get_energy_count(void *gpu, uint64_t *ticks, float *resolution, uint64_t *timestamp);
API uint32_t amdsmi_get_energy_count(void *gpu, uint64_t *ticks, float *resolution, uint64_t *timestamp)
{
    BEGIN(gpu, ticks);

    *timestamp = now_ns();
    *resolution = strtof(look_up("RESOLUTION", index_of(gpu), "15.3"), NULL);
    *ticks = number("TICKS", index_of(gpu), ticks_now(index_of(gpu), *timestamp));
    return SUCCESS;
}

/* Takes any cap up to the highest, and rounds to whole watts, as the kernel's driver does. */
API uint32_t amdsmi_set_power_cap(void *gpu, uint32_t sensor, uint64_t cap_uw);
API uint32_t amdsmi_set_power_cap(void *gpu, uint32_t sensor, uint64_t cap_uw)
{
    uint64_t now = now_ns();
    char text[TEXT_MAX];
    BEGIN(gpu, gpu);

    if (sensor != 0 || cap_uw > number("CAP_MAX", index_of(gpu), 750000000) ||
        cap_uw < number("CAP_MIN", index_of(gpu), 0))
        return INVALID;
    snprintf(text, sizeof text, "%" PRIu64 " %" PRIu64 " %" PRIu64, cap_uw / 1000000 * 1000000, now,
             ticks_now(index_of(gpu), now));
    return set_text("CAP", index_of(gpu), text);
}

API uint32_t amdsmi_get_gpu_perf_level(void *gpu, uint32_t *level);
API uint32_t amdsmi_get_gpu_perf_level(void *gpu, uint32_t *level)
{
    BEGIN(gpu, level);

    *level = (uint32_t)number("LEVEL", index_of(gpu), LEVEL_AUTO);
    return SUCCESS;
}

/* Any level but the manual one frees the clocks. */
API uint32_t amdsmi_set_gpu_perf_level(void *gpu, uint32_t level);
API uint32_t amdsmi_set_gpu_perf_level(void *gpu, uint32_t level)
{
    BEGIN(gpu, gpu);

    if (level >= LEVEL_COUNT)
        return INVALID;
    if (level != LEVEL_MANUAL)
        set_number("CLOCK_HIGHEST", index_of(gpu), 2100);
    return set_number("LEVEL", index_of(gpu), level);
}

#if VERSION > 24
API uint32_t amdsmi_set_gpu_clk_limit(void *gpu, uint32_t type, uint32_t bound, uint64_t mhz);
API uint32_t amdsmi_set_gpu_clk_limit(void *gpu, uint32_t type, uint32_t bound, uint64_t mhz)
{
    uint32_t result;
    BEGIN(gpu, gpu);

    if (type != 0 || bound != 1 || mhz < 132 || mhz > 2100)
        return INVALID;
    result = set_number("LEVEL", index_of(gpu), LEVEL_MANUAL);
    return result == SUCCESS ? set_number("CLOCK_HIGHEST", index_of(gpu), mhz) : result;
}
#endif

struct clock_info {
    uint32_t clk, min_clk, max_clk;
    uint8_t clk_locked, clk_deep_sleep;
    uint32_t reserved[4];
};

API uint32_t amdsmi_get_clock_info(void *gpu, uint32_t type, struct clock_info *info);
API uint32_t amdsmi_get_clock_info(void *gpu, uint32_t type, struct clock_info *info)
{
    uint32_t clock, highest;
    BEGIN(gpu, info);

    clock = (uint32_t)number("CLOCK", index_of(gpu), 2000);
    highest = (uint32_t)number("CLOCK_HIGHEST", index_of(gpu), 2100);
    *info = type == 4 ? (struct clock_info){.clk = 1300, .min_clk = 900, .max_clk = 1300}
                      : (struct clock_info){.clk = clock < highest || clock == UINT32_MAX ? clock : highest,
                                            .min_clk = 132,
                                            .max_clk = highest};
    return type == 0 || type == 4 ? SUCCESS : INVALID;
}

struct usage {
    uint32_t gfx_activity, umc_activity, mm_activity, reserved[13];
};

API uint32_t amdsmi_get_gpu_activity(void *gpu, struct usage *info);
API uint32_t amdsmi_get_gpu_activity(void *gpu, struct usage *info)
{
    BEGIN(gpu, info);

    *info = (struct usage){.gfx_activity = (uint32_t)number("USAGE", index_of(gpu), 87), .umc_activity = 45};
    return SUCCESS;
}

#if VERSION > 24
API uint32_t amdsmi_get_gpu_memory_total(void *gpu, uint32_t type, uint64_t *total);
API uint32_t amdsmi_get_gpu_memory_total(void *gpu, uint32_t type, uint64_t *total)
{
    BEGIN(gpu, total);

    *total = number("MEMORY", index_of(gpu), (uint64_t)192 << 30);
    return type == 0 ? SUCCESS : INVALID;
}
#endif

API uint32_t amdsmi_get_temp_metric(void *gpu, uint32_t sensor, uint32_t metric, int64_t *temperature);
API uint32_t amdsmi_get_temp_metric(void *gpu, uint32_t sensor, uint32_t metric, int64_t *temperature)
{
    BEGIN(gpu, temperature);

    *temperature = (int64_t)number("TEMPERATURE", index_of(gpu), 66);
    return sensor == 1 && metric == 0 ? SUCCESS : INVALID;
}
