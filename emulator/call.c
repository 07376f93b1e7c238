/* SPDX-License-Identifier: Apache-2.0 */
#include "emulator/call.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "emulator/sensor.h"

/* A handle is the address of one of these; it has no content. */
struct nvml_device {
    char unused;
};

static struct nvml_device handles[EMULATOR_GPUS_MAX];
static struct nvml_device instance_handles[EMULATOR_GPUS_MAX][EMULATOR_INSTANCES_MAX];

/* This process's part. The count of initialisations guards the mapping, which is closed only at 0. */
static struct {
    pthread_mutex_t mutex;
    unsigned users;
    struct emulator *emulator;
    int64_t identity; /* of the state whose calls `met` counts */
    uint64_t met[FAULTS_MAX];
} library = {.mutex = PTHREAD_MUTEX_INITIALIZER};

static _Thread_local char complaint[FLY_ERROR_TEXT_MAX];

static struct emulator_state *state_in_use(void)
{
    struct emulator_state *state;

    pthread_mutex_lock(&library.mutex);
    state = library.users > 0 ? library.emulator->state : NULL;
    pthread_mutex_unlock(&library.mutex);
    return state;
}

struct nvml_device *call_handle(unsigned gpu)
{
    return &handles[gpu];
}

struct nvml_device *call_instance_handle(unsigned gpu, unsigned instance)
{
    return &instance_handles[gpu][instance];
}

/* The index of the handle's GPU, or -1; stores that of its instance, or -1 for the whole GPU. */
static int index_of(const struct nvml_device *device, const struct emulator_state *state, int *out_instance)
{
    for (unsigned i = 0; i < state->gpu_count; i++) {
        for (unsigned instance = 0; instance < emulator_instances(&state->settings, i); instance++) {
            *out_instance = (int)instance;
            if (device == &instance_handles[i][instance])
                return (int)i;
        }
        *out_instance = -1;
        if (device == &handles[i])
            return (int)i;
    }
    return -1;
}

/* The sum of the faults that apply to this call. */
struct strike {
    int code;
    double slow_s;
};

static void strike_gpu(const struct fault *fault, struct call *call)
{
    if (fault->action == FAULT_RESET_COUNTER) {
        sensor_reset_counter(call->gpu, call->now_ns);
    } else if (fault->action == FAULT_LOST) {
        call->gpu->lost = true;
    } else if (fault->action == FAULT_BACK && call->gpu->lost) {
        gpu_reload(call->gpu, call->now_ns);
    } else if (fault->action == FAULT_RANGE) {
        call->gpu->range_mw[0] = fault->watts[0] * 1000;
        call->gpu->range_mw[1] = fault->watts[1] * 1000;
    } else if (fault->action == FAULT_STEP) {
        call->gpu->step_mw = fault->watts[0] * 1000;
    } else if (fault->action == FAULT_HOT && !call->gpu->hot) {
        call->gpu->hot = true;
        gpu_changed(call->gpu, call->now_ns);
    }
}

/* Called under the lock, so that counts over all processes are exact. */
static struct strike meet_faults(struct call *call, const char *function, int gpu)
{
    struct emulator_state *state = call->state;
    struct strike strike = {.code = NVML_SUCCESS};
    double age_s = (double)(state_now_ns(state) - state->created_ns) / 1e9;

    for (size_t i = 0; i < state->faults.count; i++) {
        const struct fault *fault = &state->faults.faults[i];
        uint64_t met;

        if (!fault_selects(fault, function, gpu))
            continue;
        met = state->faults.per_machine ? ++state->met[i]
                                        : __atomic_add_fetch(&library.met[i], 1, __ATOMIC_RELAXED);
        if (!fault_strikes(fault, met, age_s))
            continue;
        if (fault->action == FAULT_RETURN) {
            strike.code = fault->code;
        } else if (fault->action == FAULT_SLOW) {
            strike.slow_s += fault->slow_s;
        } else if (call->gpu != NULL && !(fault->when == FAULT_AT && state->struck[i])) {
            state->struck[i] = true;
            strike_gpu(fault, call);
        }
    }
    return strike;
}

static void hold(struct call *call, int gpu)
{
    state_lock(call->state);
    if (gpu >= 0) {
        call->gpu = &call->state->gpus[gpu];
        call->now_ns = gpu_settle(call->gpu, state_now_ns(call->state));
    } else {
        call->now_ns = state_now_ns(call->state);
    }
}

/* Takes the call's time before it reads anything: the answer is that of the call's end. */
static int meet(struct call *call, const char *function, int gpu)
{
    const struct emulator_settings *settings = &call->state->settings;
    struct strike strike;

    state_spend(call->state, settings->latency_s, settings->latency_busy);
    hold(call, gpu);
    if (call->state->faults.count > 0) {
        strike = meet_faults(call, function, gpu);
        if (strike.slow_s > 0.0) {
            state_unlock(call->state);
            state_spend(call->state, strike.slow_s, settings->latency_busy);
            hold(call, gpu);
        }
        if (strike.code != NVML_SUCCESS)
            return call_end(call, strike.code);
    }
    if (call->gpu != NULL && call->gpu->lost)
        return call_end(call, NVML_GPU_IS_LOST);
    return NVML_SUCCESS;
}

bool call_library_is_open(void)
{
    return state_in_use() != NULL;
}

int call_enter(struct call *call, const char *function, int gpu)
{
    *call = (struct call){.state = state_in_use()};
    if (call->state == NULL)
        return NVML_UNINITIALIZED;
    if (gpu >= (int)call->state->gpu_count) {
        call->state = NULL;
        return NVML_INVALID_ARGUMENT;
    }
    return meet(call, function, gpu);
}

int call_enter_instance(struct call *call, const char *function, const struct nvml_device *device)
{
    struct emulator_state *state = state_in_use();
    int instance = -1;
    int gpu = state != NULL ? index_of(device, state, &instance) : -1;
    int code = state != NULL && gpu < 0 ? call_refuse(call) : call_enter(call, function, gpu);

    call->instance = instance;
    return code;
}

int call_enter_device(struct call *call, const char *function, const struct nvml_device *device)
{
    int code = call_enter_instance(call, function, device);

    return code == NVML_SUCCESS && call->instance >= 0 ? call_end(call, NVML_NOT_SUPPORTED) : code;
}

bool call_may_set(const struct call *call)
{
    return geteuid() == 0 || call->state->settings.any_user;
}

/* A refusal is quick; what is set takes the board its time. */
int call_enter_setting(struct call *call, const char *function, const struct nvml_device *device)
{
    int code = call_enter_device(call, function, device);
    const struct emulator_settings *settings;
    double set_s;

    if (code != NVML_SUCCESS)
        return code;
    settings = &call->state->settings;
    if (!call_may_set(call))
        return call_end(call, NVML_NO_PERMISSION);
    set_s = emulator_setting_or(settings, settings->set_s, gpu_board(call->gpu)->set_s);
    if (set_s > 0.0) {
        state_unlock(call->state);
        state_spend(call->state, set_s, settings->latency_busy);
        hold(call, (int)call->gpu->index);
    }
    return NVML_SUCCESS;
}

int call_end(struct call *call, int code)
{
    if (call->state != NULL)
        state_unlock(call->state);
    call->state = NULL;
    return code;
}

/* Counts calls anew for each other state, and continues for one that the library opens again. */
static void count_anew(void)
{
    if (library.identity == library.emulator->state->identity)
        return;
    library.identity = library.emulator->state->identity;
    memset(library.met, 0, sizeof library.met);
}

/* The first initialisation opens the state; a fault of the script may still make it fail. */
int call_library_open(const char *function)
{
    struct call call = {.state = NULL};
    struct fly_error error = {.code = 0};
    int code = NVML_SUCCESS;

    pthread_mutex_lock(&library.mutex);
    complaint[0] = '\0';
    if (library.emulator == NULL && emulator_open_or_create(NULL, &library.emulator, &error) < 0) {
        code = NVML_DRIVER_NOT_LOADED;
        snprintf(complaint, sizeof complaint, "%s", error.text);
    }
    if (code == NVML_SUCCESS) {
        count_anew();
        call.state = library.emulator->state;
        code = call_end(&call, meet(&call, function, -1));
    }
    if (code == NVML_SUCCESS) {
        library.users++;
    } else if (library.users == 0) {
        emulator_close(library.emulator);
        library.emulator = NULL;
    }
    pthread_mutex_unlock(&library.mutex);
    return code;
}

const char *call_library_complaint(void)
{
    return complaint;
}

int call_library_close(const char *function)
{
    struct call call = {.state = NULL};
    int code = call_enter(&call, function, -1);

    code = call_end(&call, code);
    if (code != NVML_SUCCESS)
        return code;
    pthread_mutex_lock(&library.mutex);
    if (--library.users == 0) {
        emulator_close(library.emulator);
        library.emulator = NULL;
    }
    pthread_mutex_unlock(&library.mutex);
    return NVML_SUCCESS;
}

int call_text(char *out, unsigned bytes, const char *format, ...)
{
    char text[256];
    va_list arguments;
    int length;

    va_start(arguments, format);
    /* NOLINTNEXTLINE(clang-analyzer-valist.Uninitialized): it loses sight of va_start in what it inlines */
    length = vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    if ((unsigned)length >= bytes)
        return NVML_INSUFFICIENT_SIZE;
    snprintf(out, bytes, "%s", text);
    return NVML_SUCCESS;
}
