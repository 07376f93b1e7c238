/* SPDX-License-Identifier: Apache-2.0 */
/* Settings: what scripts set before and after a job, in the words that they look for. */
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/number.h"
#include "emulator/smi/smi.h"

enum { MW_PER_W = 1000, CLOCK_MAX_MHZ = 100000 };

static int exit_of(int code)
{
    switch (code) {
    case NVML_SUCCESS:
        return SMI_DONE;
    case NVML_INVALID_ARGUMENT:
        return SMI_INVALID;
    case NVML_NOT_SUPPORTED:
    case NVML_FUNCTION_NOT_FOUND:
        return SMI_NOT_AVAILABLE;
    case NVML_NO_PERMISSION:
        return SMI_NO_PERMISSION;
    case NVML_GPU_IS_LOST:
        return SMI_LOST;
    default:
        return SMI_OTHER;
    }
}

/* Says why a setting failed; returns the exit status. */
static int failed(const struct smi_gpu *gpu, const char *what, int code, FILE *out)
{
    const char *why = code == NVML_NO_PERMISSION ? "Insufficient Permissions"
                      : code == NVML_NOT_SUPPORTED || code == NVML_FUNCTION_NOT_FOUND
                          ? "Not Supported"
                          : gpu->library->nvmlErrorString(code);

    fprintf(out, "Failed to set %s for GPU %s: %s\n", what, gpu->bus_id, why);
    return exit_of(code);
}

static int bad_value(const char *option, const char *value, FILE *out)
{
    fprintf(out, "Invalid value '%s' for option %s. Please run 'nvidia-smi -h' for help.\n", value, option);
    return SMI_INVALID;
}

/* One of two words or 0 and 1. */
static bool read_switch(const char *value, const char *zero, const char *one, unsigned *out_value)
{
    bool is_one = strcmp(value, "1") == 0 || strcasecmp(value, one) == 0;

    *out_value = is_one ? 1 : 0;
    return is_one || strcmp(value, "0") == 0 || strcasecmp(value, zero) == 0;
}

/* "1593,1410", or one clock for both. */
static bool read_clocks(const char *value, bool one_is_enough, unsigned out_mhz[2])
{
    const char *comma = strchr(value, ',');
    char first[16];
    uint64_t clocks[2];

    snprintf(first, sizeof first, "%.*s", (int)strcspn(value, ","), value);
    if ((comma == NULL && !one_is_enough) || !number_parse_u64(first, CLOCK_MAX_MHZ, &clocks[0]) ||
        !number_parse_u64(comma != NULL ? comma + 1 : first, CLOCK_MAX_MHZ, &clocks[1]))
        return false;
    out_mhz[0] = (unsigned)clocks[0];
    out_mhz[1] = (unsigned)clocks[1];
    return true;
}

static int set_limit(const struct smi_gpu *gpu, const char *value, FILE *out)
{
    const struct smi_library *library = gpu->library;
    unsigned before_mw = 0, lowest_mw = 0, highest_mw = 0;
    double limit_w;
    int code = NVML_FUNCTION_NOT_FOUND;

    if (!number_parse_double(value, &limit_w) || !(limit_w >= 0.0 && limit_w < 1e6))
        return bad_value("-pl", value, out);
    if (library->nvmlDeviceGetPowerManagementLimit != NULL &&
        library->nvmlDeviceGetPowerManagementLimitConstraints != NULL &&
        library->nvmlDeviceSetPowerManagementLimit != NULL)
        code = library->nvmlDeviceGetPowerManagementLimit(gpu->device, &before_mw);
    if (code == NVML_SUCCESS)
        code = library->nvmlDeviceGetPowerManagementLimitConstraints(gpu->device, &lowest_mw, &highest_mw);
    if (code == NVML_SUCCESS)
        code = library->nvmlDeviceSetPowerManagementLimit(gpu->device, (unsigned)(limit_w * MW_PER_W + 0.5));
    if (code == NVML_INVALID_ARGUMENT) {
        fprintf(out,
                "Provided power limit %.2f W is not a valid power limit which should be between %.2f W and "
                "%.2f W for GPU %s\n",
                limit_w, (double)lowest_mw / MW_PER_W, (double)highest_mw / MW_PER_W, gpu->bus_id);
        return SMI_INVALID;
    }
    if (code != NVML_SUCCESS)
        return failed(gpu, "power management limit", code, out);
    fprintf(out, "Power limit for GPU %s was set to %.2f W from %.2f W.\n", gpu->bus_id, limit_w,
            (double)before_mw / MW_PER_W);
    return SMI_DONE;
}

static int set_persistence(const struct smi_gpu *gpu, const char *value, FILE *out)
{
    unsigned enabled, before = 0;
    int code = NVML_FUNCTION_NOT_FOUND;

    if (!read_switch(value, "DISABLED", "ENABLED", &enabled))
        return bad_value("-pm", value, out);
    if (gpu->library->nvmlDeviceGetPersistenceMode != NULL &&
        gpu->library->nvmlDeviceSetPersistenceMode != NULL)
        code = gpu->library->nvmlDeviceGetPersistenceMode(gpu->device, &before);
    if (code == NVML_SUCCESS && before == enabled) {
        fprintf(out, "Persistence mode is already %s for GPU %s.\n", enabled ? "Enabled" : "Disabled",
                gpu->bus_id);
        return SMI_DONE;
    }
    if (code == NVML_SUCCESS)
        code = gpu->library->nvmlDeviceSetPersistenceMode(gpu->device, enabled);
    if (code != NVML_SUCCESS)
        return failed(gpu, "persistence mode", code, out);
    fprintf(out, "%s persistence mode for GPU %s.\n", enabled ? "Enabled" : "Disabled", gpu->bus_id);
    return SMI_DONE;
}

/* Clocks have words of their own where permission is missing. */
static int clocks_failed(const struct smi_gpu *gpu, const char *what, int code, FILE *out)
{
    if (code != NVML_NO_PERMISSION)
        return failed(gpu, what, code, out);
    fprintf(out, "The current user does not have permission to change clocks for GPU %s.\n", gpu->bus_id);
    return SMI_NO_PERMISSION;
}

static int set_applications(const struct smi_gpu *gpu, const char *value, FILE *out)
{
    unsigned clocks_mhz[2];
    int code;

    if (!read_clocks(value, false, clocks_mhz))
        return bad_value("-ac", value, out);
    code = gpu->library->nvmlDeviceSetApplicationsClocks != NULL
               ? gpu->library->nvmlDeviceSetApplicationsClocks(gpu->device, clocks_mhz[0], clocks_mhz[1])
               : NVML_FUNCTION_NOT_FOUND;
    if (code == NVML_INVALID_ARGUMENT) {
        fprintf(
            out,
            "Specified clock combination \"(MEM %u, SM %u)\" is not supported for GPU %s. Run 'nvidia-smi "
            "-q -d SUPPORTED_CLOCKS' to see list of supported clock combinations\n",
            clocks_mhz[0], clocks_mhz[1], gpu->bus_id);
        return SMI_INVALID;
    }
    if (code != NVML_SUCCESS)
        return clocks_failed(gpu, "applications clocks", code, out);
    fprintf(out, "Applications clocks set to \"(MEM %u, SM %u)\" for GPU %s\n", clocks_mhz[0], clocks_mhz[1],
            gpu->bus_id);
    return SMI_DONE;
}

static int reset_clocks(const struct smi_gpu *gpu, int (*reset)(struct nvml_device *), const char *what,
                        FILE *out)
{
    int code = reset != NULL ? reset(gpu->device) : NVML_FUNCTION_NOT_FOUND;

    return code == NVML_SUCCESS ? SMI_DONE : clocks_failed(gpu, what, code, out);
}

static int reset_applications(const struct smi_gpu *gpu, const char *value, FILE *out)
{
    (void)value;
    return reset_clocks(gpu, gpu->library->nvmlDeviceResetApplicationsClocks, "applications clocks", out);
}

static int set_permission(const struct smi_gpu *gpu, const char *value, FILE *out)
{
    unsigned restricted;
    int code;

    if (!read_switch(value, "UNRESTRICTED", "RESTRICTED", &restricted))
        return bad_value("-acp", value, out);
    code =
        gpu->library->nvmlDeviceSetAPIRestriction != NULL
            ? gpu->library->nvmlDeviceSetAPIRestriction(gpu->device, NVML_API_APPLICATION_CLOCKS, restricted)
            : NVML_FUNCTION_NOT_FOUND;
    if (code != NVML_SUCCESS)
        return failed(gpu, "permission for applications clocks", code, out);
    fprintf(out, "Applications clocks commands have been set to %s for GPU %s\n",
            restricted ? "RESTRICTED" : "UNRESTRICTED", gpu->bus_id);
    return SMI_DONE;
}

static int set_mode(const struct smi_gpu *gpu, const char *value, FILE *out)
{
    static const struct {
        const char *number, *word;
        unsigned mode;
    } modes[] = {{"0", "DEFAULT", NVML_COMPUTE_DEFAULT},
                 {"1", "EXCLUSIVE_THREAD", NVML_COMPUTE_EXCLUSIVE_THREAD},
                 {"2", "PROHIBITED", NVML_COMPUTE_PROHIBITED},
                 {"3", "EXCLUSIVE_PROCESS", NVML_COMPUTE_EXCLUSIVE_PROCESS}};

    for (size_t i = 0; i < sizeof modes / sizeof modes[0]; i++) {
        int code;

        if (strcmp(value, modes[i].number) != 0 && strcasecmp(value, modes[i].word) != 0)
            continue;
        code = gpu->library->nvmlDeviceSetComputeMode != NULL
                   ? gpu->library->nvmlDeviceSetComputeMode(gpu->device, modes[i].mode)
                   : NVML_FUNCTION_NOT_FOUND;
        if (code != NVML_SUCCESS)
            return failed(gpu, "compute mode", code, out);
        fprintf(out, "Set compute mode to %s for GPU %s.\n", modes[i].word, gpu->bus_id);
        return SMI_DONE;
    }
    return bad_value("-c", value, out);
}

static int lock_clocks(const struct smi_gpu *gpu, const char *option, const char *value,
                       int (*lock)(struct nvml_device *, unsigned, unsigned), const char *what, FILE *out)
{
    unsigned clocks_mhz[2];
    int code;

    if (!read_clocks(value, true, clocks_mhz))
        return bad_value(option, value, out);
    code = lock != NULL ? lock(gpu->device, clocks_mhz[0], clocks_mhz[1]) : NVML_FUNCTION_NOT_FOUND;
    if (code != NVML_SUCCESS)
        return clocks_failed(gpu, what, code, out);
    fprintf(out, "%s set to \"(%sClkMin %u, %sClkMax %u)\" for GPU %s\n", what,
            strcmp(option, "-lgc") == 0 ? "gpu" : "mem", clocks_mhz[0],
            strcmp(option, "-lgc") == 0 ? "gpu" : "mem", clocks_mhz[1], gpu->bus_id);
    return SMI_DONE;
}

static int lock_graphics(const struct smi_gpu *gpu, const char *value, FILE *out)
{
    return lock_clocks(gpu, "-lgc", value, gpu->library->nvmlDeviceSetGpuLockedClocks, "GPU clocks", out);
}

static int lock_memory(const struct smi_gpu *gpu, const char *value, FILE *out)
{
    return lock_clocks(gpu, "-lmc", value, gpu->library->nvmlDeviceSetMemoryLockedClocks, "Memory clocks",
                       out);
}

static int reset_graphics(const struct smi_gpu *gpu, const char *value, FILE *out)
{
    (void)value;
    return reset_clocks(gpu, gpu->library->nvmlDeviceResetGpuLockedClocks, "GPU clocks", out);
}

static int reset_memory(const struct smi_gpu *gpu, const char *value, FILE *out)
{
    (void)value;
    return reset_clocks(gpu, gpu->library->nvmlDeviceResetMemoryLockedClocks, "memory clocks", out);
}

const struct smi_setting smi_settings[] = {
    {"-pm", "--persistence-mode", "0|1", "Set persistence mode.", set_persistence},
    {"-pl", "--power-limit", "WATTS", "Set the power limit.", set_limit},
    {"-ac", "--applications-clocks", "MEM,GR", "Set the clocks of applications, in MHz.", set_applications},
    {"-rac", "--reset-applications-clocks", NULL, "Reset the clocks of applications.", reset_applications},
    {"-acp", "--applications-clocks-permission", "0|1", "Let all users (0) or root alone set those.",
     set_permission},
    {"-c", "--compute-mode", "MODE", "Set the compute mode: 0, 2 or 3, or its name.", set_mode},
    {"-lgc", "--lock-gpu-clocks", "MIN,MAX", "Lock graphics clocks, in MHz.", lock_graphics},
    {"-rgc", "--reset-gpu-clocks", NULL, "Unlock graphics clocks.", reset_graphics},
    {"-lmc", "--lock-memory-clocks", "MIN,MAX", "Lock memory clocks, in MHz.", lock_memory},
    {"-rmc", "--reset-memory-clocks", NULL, "Unlock memory clocks.", reset_memory},
    {.option = NULL},
};

int smi_set(const struct smi_call *call, const struct smi_setting *setting, const char *value)
{
    for (unsigned i = 0; i < call->gpu_count; i++) {
        int code = setting->set(&call->gpus[i], value, call->out);

        if (code != SMI_DONE) {
            fputs("Terminating early due to previous errors.\n", call->out);
            return code;
        }
    }
    fputs("All done.\n", call->out);
    return SMI_DONE;
}
