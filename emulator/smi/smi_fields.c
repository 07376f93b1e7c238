/* SPDX-License-Identifier: Apache-2.0 */
/* The fields of --query-gpu, and how each is read. */
#include <inttypes.h>
#include <string.h>
#include <time.h>

#include "emulator/smi/smi.h"

enum { MIB_BITS = 20, MW_PER_W = 1000, NS_PER_MS = 1000000 };

/* Which of several answers of one function a row shows. */
enum { FIRST, SECOND, THIRD, FOURTH };

static int put(char out_text[SMI_TEXT_MAX], int code, const char *format, unsigned value)
{
    if (code == NVML_SUCCESS)
        snprintf(out_text, SMI_TEXT_MAX, format, value);
    return code;
}

static int put_word(char out_text[SMI_TEXT_MAX], int code, const char *word)
{
    if (code == NVML_SUCCESS)
        snprintf(out_text, SMI_TEXT_MAX, "%s", word);
    return code;
}

static int put_watts(char out_text[SMI_TEXT_MAX], int code, unsigned power_mw)
{
    if (code == NVML_SUCCESS)
        snprintf(out_text, SMI_TEXT_MAX, "%.2f", (double)power_mw / MW_PER_W);
    return code;
}

static const char *enabled_word(unsigned value)
{
    return value == NVML_ENABLED ? "Enabled" : "Disabled";
}

/* The function of a row, of any type; NULL where the library lacks it. */
static void find_function(const struct smi_gpu *gpu, const struct smi_field *field, void *out_function)
{
    memcpy(out_function, (const char *)gpu->library + field->function, sizeof(void (*)(void)));
}

static int read_text(const struct smi_gpu *gpu, const struct smi_field *field, char out_text[SMI_TEXT_MAX])
{
    int (*get)(struct nvml_device *, char *, unsigned);

    find_function(gpu, field, &get);
    return get != NULL ? get(gpu->device, out_text, SMI_TEXT_MAX) : NVML_FUNCTION_NOT_FOUND;
}

static int ask_number(const struct smi_gpu *gpu, const struct smi_field *field, unsigned *out_value)
{
    int (*get)(struct nvml_device *, unsigned *);

    find_function(gpu, field, &get);
    return get != NULL ? get(gpu->device, out_value) : NVML_FUNCTION_NOT_FOUND;
}

/* Two numbers of one call; the row's argument chooses. */
static int ask_pair(const struct smi_gpu *gpu, const struct smi_field *field, unsigned *out_value)
{
    int (*get)(struct nvml_device *, unsigned *, unsigned *);
    unsigned pair[2] = {0, 0};
    int code;

    find_function(gpu, field, &get);
    code = get != NULL ? get(gpu->device, &pair[FIRST], &pair[SECOND]) : NVML_FUNCTION_NOT_FOUND;
    *out_value = pair[field->argument];
    return code;
}

static int read_number(const struct smi_gpu *gpu, const struct smi_field *field, char out_text[SMI_TEXT_MAX])
{
    unsigned value = 0;
    int code = ask_number(gpu, field, &value);

    return put(out_text, code, "%u", value);
}

static int read_watts(const struct smi_gpu *gpu, const struct smi_field *field, char out_text[SMI_TEXT_MAX])
{
    unsigned power_mw = 0;
    int code = ask_number(gpu, field, &power_mw);

    return put_watts(out_text, code, power_mw);
}

static int read_pair_watts(const struct smi_gpu *gpu, const struct smi_field *field,
                           char out_text[SMI_TEXT_MAX])
{
    unsigned power_mw = 0;
    int code = ask_pair(gpu, field, &power_mw);

    return put_watts(out_text, code, power_mw);
}

static int read_enabled(const struct smi_gpu *gpu, const struct smi_field *field, char out_text[SMI_TEXT_MAX])
{
    unsigned value = 0;
    int code = ask_number(gpu, field, &value);

    return put_word(out_text, code, enabled_word(value));
}

static int read_pair_enabled(const struct smi_gpu *gpu, const struct smi_field *field,
                             char out_text[SMI_TEXT_MAX])
{
    unsigned value = 0;
    int code = ask_pair(gpu, field, &value);

    return put_word(out_text, code, enabled_word(value));
}

static int read_clock(const struct smi_gpu *gpu, const struct smi_field *field, char out_text[SMI_TEXT_MAX])
{
    int (*get)(struct nvml_device *, unsigned, unsigned *);
    unsigned clock_mhz = 0;
    int code;

    find_function(gpu, field, &get);
    code = get != NULL ? get(gpu->device, field->argument, &clock_mhz) : NVML_FUNCTION_NOT_FOUND;
    return put(out_text, code, "%u", clock_mhz);
}

/* The share of the last period in which something was at work; the period is not shown. */
static int read_coder(const struct smi_gpu *gpu, const struct smi_field *field, char out_text[SMI_TEXT_MAX])
{
    unsigned percent = 0;
    struct smi_field share = *field;
    int code;

    share.argument = FIRST;
    code = ask_pair(gpu, &share, &percent);
    return put(out_text, code, "%u", percent);
}

/* NVML_MODULE_FIELD marks rows about the module instead of the GPU. */
#define NVML_MODULE_FIELD 0x10000U

static int read_power_field(const struct smi_gpu *gpu, const struct smi_field *field,
                            char out_text[SMI_TEXT_MAX])
{
    struct nvml_field_value value = {
        .field_id = field->argument & ~NVML_MODULE_FIELD,
        .scope_id = (field->argument & NVML_MODULE_FIELD) != 0 ? NVML_SCOPE_MODULE : NVML_SCOPE_GPU};
    int code = gpu->library->nvmlDeviceGetFieldValues != NULL
                   ? gpu->library->nvmlDeviceGetFieldValues(gpu->device, 1, &value)
                   : NVML_FUNCTION_NOT_FOUND;

    return put_watts(out_text, code == NVML_SUCCESS ? value.code : code, value.value.ui);
}

static int read_timestamp(const struct smi_gpu *gpu, const struct smi_field *field,
                          char out_text[SMI_TEXT_MAX])
{
    struct timespec now;
    struct tm local;
    size_t length;

    (void)gpu;
    (void)field;
    clock_gettime(CLOCK_REALTIME, &now);
    localtime_r(&now.tv_sec, &local);
    length = strftime(out_text, SMI_TEXT_MAX, "%Y/%m/%d %H:%M:%S", &local);
    snprintf(out_text + length, SMI_TEXT_MAX - length, ".%03d", (int)(now.tv_nsec / NS_PER_MS));
    return NVML_SUCCESS;
}

static int read_driver(const struct smi_gpu *gpu, const struct smi_field *field, char out_text[SMI_TEXT_MAX])
{
    (void)field;
    return gpu->library->nvmlSystemGetDriverVersion != NULL
               ? gpu->library->nvmlSystemGetDriverVersion(out_text, SMI_TEXT_MAX)
               : NVML_FUNCTION_NOT_FOUND;
}

static int read_count(const struct smi_gpu *gpu, const struct smi_field *field, char out_text[SMI_TEXT_MAX])
{
    unsigned count = 0;
    int code = gpu->library->nvmlDeviceGetCount_v2(&count);

    (void)field;
    return put(out_text, code, "%u", count);
}

static int read_bus_id(const struct smi_gpu *gpu, const struct smi_field *field, char out_text[SMI_TEXT_MAX])
{
    (void)field;
    return put_word(out_text, NVML_SUCCESS, gpu->bus_id);
}

static int read_pci(const struct smi_gpu *gpu, const struct smi_field *field, char out_text[SMI_TEXT_MAX])
{
    static const char *const formats[] = {"0x%04X", "0x%02X", "0x%02X", "0x%08X", "0x%08X"};
    struct nvml_pci_info pci;
    int code = gpu->library->nvmlDeviceGetPciInfo_v3 != NULL
                   ? gpu->library->nvmlDeviceGetPciInfo_v3(gpu->device, &pci)
                   : NVML_FUNCTION_NOT_FOUND;

    if (code != NVML_SUCCESS)
        return code;
    return put(
        out_text, code, formats[field->argument],
        (unsigned[]){pci.domain, pci.bus, pci.device, pci.device_id, pci.subsystem_id}[field->argument]);
}

static int read_state(const struct smi_gpu *gpu, const struct smi_field *field, char out_text[SMI_TEXT_MAX])
{
    unsigned state = 0;
    int code = ask_number(gpu, field, &state);

    return put(out_text, code, "P%u", state);
}

static int read_mode(const struct smi_gpu *gpu, const struct smi_field *field, char out_text[SMI_TEXT_MAX])
{
    static const char *const words[] = {"Default", "Exclusive_Thread", "Prohibited", "Exclusive_Process"};
    unsigned mode = 0;
    int code = ask_number(gpu, field, &mode);

    return put_word(out_text, code, words[mode % (sizeof words / sizeof words[0])]);
}

static int ask_mask(const struct smi_gpu *gpu, const struct smi_field *field, unsigned long long *out_mask)
{
    int (*get)(struct nvml_device *, unsigned long long *);

    find_function(gpu, field, &get);
    return get != NULL ? get(gpu->device, out_mask) : NVML_FUNCTION_NOT_FOUND;
}

static int read_reasons(const struct smi_gpu *gpu, const struct smi_field *field, char out_text[SMI_TEXT_MAX])
{
    unsigned long long reasons = 0;
    int code = ask_mask(gpu, field, &reasons);

    if (code == NVML_SUCCESS)
        snprintf(out_text, SMI_TEXT_MAX, "0x%016llX", reasons);
    return code;
}

static int read_reason(const struct smi_gpu *gpu, const struct smi_field *field, char out_text[SMI_TEXT_MAX])
{
    unsigned long long reasons = 0;
    int code = ask_mask(gpu, field, &reasons);

    return put_word(out_text, code, (reasons & field->argument) != 0 ? "Active" : "Not Active");
}

/* Total, reserved, used and free memory; what is reserved is known to newer functions only. */
static int read_memory(const struct smi_gpu *gpu, const struct smi_field *field, char out_text[SMI_TEXT_MAX])
{
    struct nvml_memory_v2 memory = {.version = NVML_MEMORY_V2};
    struct nvml_memory older;
    int code = NVML_FUNCTION_NOT_FOUND;

    if (gpu->library->nvmlDeviceGetMemoryInfo_v2 != NULL) {
        code = gpu->library->nvmlDeviceGetMemoryInfo_v2(gpu->device, &memory);
    } else if (gpu->library->nvmlDeviceGetMemoryInfo != NULL && field->argument != SECOND) {
        code = gpu->library->nvmlDeviceGetMemoryInfo(gpu->device, &older);
        if (code == NVML_SUCCESS)
            memory = (struct nvml_memory_v2){.total = older.total, .used = older.used, .free = older.free};
    }
    return put(out_text, code, "%u",
               (unsigned)((unsigned long long[]){memory.total, memory.reserved, memory.used,
                                                 memory.free}[field->argument] >>
                          MIB_BITS));
}

static int read_utilization(const struct smi_gpu *gpu, const struct smi_field *field,
                            char out_text[SMI_TEXT_MAX])
{
    struct nvml_utilization utilization = {0, 0};
    int code = gpu->library->nvmlDeviceGetUtilizationRates != NULL
                   ? gpu->library->nvmlDeviceGetUtilizationRates(gpu->device, &utilization)
                   : NVML_FUNCTION_NOT_FOUND;

    return put(out_text, code, "%u", field->argument == FIRST ? utilization.gpu : utilization.memory);
}

static int read_temperature(const struct smi_gpu *gpu, const struct smi_field *field,
                            char out_text[SMI_TEXT_MAX])
{
    unsigned temperature_c = 0;
    int code = gpu->library->nvmlDeviceGetTemperature != NULL
                   ? gpu->library->nvmlDeviceGetTemperature(gpu->device, NVML_TEMPERATURE_GPU, &temperature_c)
                   : NVML_FUNCTION_NOT_FOUND;

    (void)field;
    return put(out_text, code, "%u", temperature_c);
}

static int read_capability(const struct smi_gpu *gpu, const struct smi_field *field,
                           char out_text[SMI_TEXT_MAX])
{
    int major = 0, minor = 0;
    int code = gpu->library->nvmlDeviceGetCudaComputeCapability != NULL
                   ? gpu->library->nvmlDeviceGetCudaComputeCapability(gpu->device, &major, &minor)
                   : NVML_FUNCTION_NOT_FOUND;

    (void)field;
    if (code == NVML_SUCCESS)
        snprintf(out_text, SMI_TEXT_MAX, "%d.%d", major, minor);
    return code;
}

/* Errors in memory: the argument's first bit tells uncorrected ones, the second those of the board's life. */
static int read_errors(const struct smi_gpu *gpu, const struct smi_field *field, char out_text[SMI_TEXT_MAX])
{
    unsigned long long errors = 0;
    int code = gpu->library->nvmlDeviceGetTotalEccErrors != NULL
                   ? gpu->library->nvmlDeviceGetTotalEccErrors(gpu->device, field->argument & 1,
                                                               field->argument >> 1, &errors)
                   : NVML_FUNCTION_NOT_FOUND;

    if (code == NVML_SUCCESS)
        snprintf(out_text, SMI_TEXT_MAX, "%llu", errors);
    return code;
}

#define AT(symbol) offsetof(struct smi_library, symbol)

/* One of the reasons why clocks are held down. Their older name is the one that drivers before 535 print. */
#define REASON(name, bit)                                                                 \
    {                                                                                     \
        "clocks_event_reasons." name, "clocks_throttle_reasons." name, NULL, read_reason, \
            AT(nvmlDeviceGetCurrentClocksEventReasons), (bit)                             \
    }

/* clang-format off */
const struct smi_field smi_fields[] = {
    {"timestamp", NULL, NULL, read_timestamp, 0, 0},
    {"driver_version", NULL, NULL, read_driver, 0, 0},
    {"count", NULL, NULL, read_count, 0, 0},
    {"name", "gpu_name", NULL, read_text, AT(nvmlDeviceGetName), 0},
    {"serial", "gpu_serial", NULL, read_text, AT(nvmlDeviceGetSerial), 0},
    {"uuid", "gpu_uuid", NULL, read_text, AT(nvmlDeviceGetUUID), 0},
    {"pci.bus_id", "gpu_bus_id", NULL, read_bus_id, 0, 0},
    {"pci.domain", NULL, NULL, read_pci, 0, 0},
    {"pci.bus", NULL, NULL, read_pci, 0, 1},
    {"pci.device", NULL, NULL, read_pci, 0, 2},
    {"pci.device_id", NULL, NULL, read_pci, 0, 3},
    {"pci.sub_device_id", NULL, NULL, read_pci, 0, 4},
    {"pcie.link.gen.current", "pcie.link.gen.gpucurrent", NULL, read_number,
     AT(nvmlDeviceGetCurrPcieLinkGeneration), 0},
    {"pcie.link.gen.max", "pcie.link.gen.gpumax", NULL, read_number, AT(nvmlDeviceGetMaxPcieLinkGeneration), 0},
    {"pcie.link.width.current", NULL, NULL, read_number, AT(nvmlDeviceGetCurrPcieLinkWidth), 0},
    {"pcie.link.width.max", NULL, NULL, read_number, AT(nvmlDeviceGetMaxPcieLinkWidth), 0},
    {"index", NULL, NULL, read_number, AT(nvmlDeviceGetIndex), 0},
    {"display_mode", NULL, NULL, read_enabled, AT(nvmlDeviceGetDisplayMode), 0},
    {"display_active", NULL, NULL, read_enabled, AT(nvmlDeviceGetDisplayActive), 0},
    {"persistence_mode", NULL, NULL, read_enabled, AT(nvmlDeviceGetPersistenceMode), 0},
    {"accounting.mode", NULL, NULL, NULL, 0, 0},
    {"accounting.buffer_size", NULL, NULL, NULL, 0, 0},
    {"driver_model.current", NULL, NULL, read_pair_enabled, AT(nvmlDeviceGetDriverModel), FIRST},
    {"driver_model.pending", NULL, NULL, read_pair_enabled, AT(nvmlDeviceGetDriverModel), SECOND},
    {"vbios_version", NULL, NULL, read_text, AT(nvmlDeviceGetVbiosVersion), 0},
    {"inforom.img", "inforom.image", NULL, NULL, 0, 0},
    {"inforom.oem", NULL, NULL, NULL, 0, 0},
    {"inforom.ecc", NULL, NULL, NULL, 0, 0},
    {"inforom.pwr", "inforom.power", NULL, NULL, 0, 0},
    {"gom.current", "gpu_operation_mode.current", NULL, NULL, 0, 0},
    {"gom.pending", "gpu_operation_mode.pending", NULL, NULL, 0, 0},
    {"fan.speed", NULL, "%", read_number, AT(nvmlDeviceGetFanSpeed), 0},
    {"pstate", NULL, NULL, read_state, AT(nvmlDeviceGetPerformanceState), 0},
    {"clocks_event_reasons.supported", "clocks_throttle_reasons.supported", NULL, read_reasons,
     AT(nvmlDeviceGetSupportedClocksEventReasons), 0},
    {"clocks_event_reasons.active", "clocks_throttle_reasons.active", NULL, read_reasons,
     AT(nvmlDeviceGetCurrentClocksEventReasons), 0},
    REASON("gpu_idle", NVML_REASON_IDLE),
    REASON("applications_clocks_setting", NVML_REASON_APPLICATION_CLOCKS),
    REASON("sw_power_cap", NVML_REASON_POWER_CAP),
    REASON("hw_slowdown", NVML_REASON_HARDWARE_SLOWDOWN),
    REASON("hw_thermal_slowdown", NVML_REASON_HARDWARE_THERMAL),
    REASON("hw_power_brake_slowdown", NVML_REASON_POWER_BRAKE),
    REASON("sw_thermal_slowdown", NVML_REASON_SOFTWARE_THERMAL),
    REASON("sync_boost", NVML_REASON_SYNC_BOOST),
    {"memory.total", NULL, "MiB", read_memory, 0, FIRST},
    {"memory.reserved", NULL, "MiB", read_memory, 0, SECOND},
    {"memory.used", NULL, "MiB", read_memory, 0, THIRD},
    {"memory.free", NULL, "MiB", read_memory, 0, FOURTH},
    {"compute_mode", NULL, NULL, read_mode, AT(nvmlDeviceGetComputeMode), 0},
    {"compute_cap", NULL, NULL, read_capability, 0, 0},
    {"utilization.gpu", NULL, "%", read_utilization, 0, FIRST},
    {"utilization.memory", NULL, "%", read_utilization, 0, SECOND},
    {"utilization.encoder", NULL, "%", read_coder, AT(nvmlDeviceGetEncoderUtilization), 0},
    {"utilization.decoder", NULL, "%", read_coder, AT(nvmlDeviceGetDecoderUtilization), 0},
    {"utilization.jpeg", NULL, "%", NULL, 0, 0},
    {"utilization.ofa", NULL, "%", NULL, 0, 0},
    {"ecc.mode.current", NULL, NULL, read_pair_enabled, AT(nvmlDeviceGetEccMode), FIRST},
    {"ecc.mode.pending", NULL, NULL, read_pair_enabled, AT(nvmlDeviceGetEccMode), SECOND},
    {"ecc.errors.corrected.volatile.total", NULL, NULL, read_errors, 0, 0},
    {"ecc.errors.uncorrected.volatile.total", NULL, NULL, read_errors, 0, 1},
    {"ecc.errors.corrected.aggregate.total", NULL, NULL, read_errors, 0, 2},
    {"ecc.errors.uncorrected.aggregate.total", NULL, NULL, read_errors, 0, 3},
    {"retired_pages.single_bit_ecc.count", "retired_pages.sbe", NULL, NULL, 0, 0},
    {"retired_pages.double_bit.count", "retired_pages.dbe", NULL, NULL, 0, 0},
    {"retired_pages.pending", NULL, NULL, NULL, 0, 0},
    {"temperature.gpu", NULL, NULL, read_temperature, 0, 0},
    {"temperature.gpu.tlimit", NULL, NULL, NULL, 0, 0},
    {"temperature.memory", NULL, NULL, NULL, 0, 0},
    {"power.management", NULL, NULL, read_enabled, AT(nvmlDeviceGetPowerManagementMode), 0},
    {"power.draw", NULL, "W", read_watts, AT(nvmlDeviceGetPowerUsage), 0},
    {"power.draw.average", NULL, "W", read_power_field, 0, NVML_FIELD_POWER_AVERAGE},
    {"power.draw.instant", NULL, "W", read_power_field, 0, NVML_FIELD_POWER_INSTANT},
    {"power.limit", NULL, "W", read_watts, AT(nvmlDeviceGetPowerManagementLimit), 0},
    {"enforced.power.limit", NULL, "W", read_watts, AT(nvmlDeviceGetEnforcedPowerLimit), 0},
    {"power.default_limit", NULL, "W", read_watts, AT(nvmlDeviceGetPowerManagementDefaultLimit), 0},
    {"power.min_limit", NULL, "W", read_pair_watts, AT(nvmlDeviceGetPowerManagementLimitConstraints), FIRST},
    {"power.max_limit", NULL, "W", read_pair_watts, AT(nvmlDeviceGetPowerManagementLimitConstraints), SECOND},
    {"module.power.draw.average", NULL, "W", read_power_field, 0, NVML_FIELD_POWER_AVERAGE | NVML_MODULE_FIELD},
    {"module.power.draw.instant", NULL, "W", read_power_field, 0, NVML_FIELD_POWER_INSTANT | NVML_MODULE_FIELD},
    {"module.power.limit", NULL, "W", read_power_field, 0, NVML_FIELD_POWER_LIMIT_REQUESTED | NVML_MODULE_FIELD},
    {"module.enforced.power.limit", NULL, "W", read_power_field, 0,
     NVML_FIELD_POWER_LIMIT_ENFORCED | NVML_MODULE_FIELD},
    {"module.power.default_limit", NULL, "W", read_power_field, 0,
     NVML_FIELD_POWER_LIMIT_DEFAULT | NVML_MODULE_FIELD},
    {"module.power.min_limit", NULL, "W", read_power_field, 0, NVML_FIELD_POWER_LIMIT_MIN | NVML_MODULE_FIELD},
    {"module.power.max_limit", NULL, "W", read_power_field, 0, NVML_FIELD_POWER_LIMIT_MAX | NVML_MODULE_FIELD},
    {"clocks.current.graphics", "clocks.gr", "MHz", read_clock, AT(nvmlDeviceGetClockInfo), NVML_CLOCK_GRAPHICS},
    {"clocks.current.sm", "clocks.sm", "MHz", read_clock, AT(nvmlDeviceGetClockInfo), NVML_CLOCK_SM},
    {"clocks.current.memory", "clocks.mem", "MHz", read_clock, AT(nvmlDeviceGetClockInfo), NVML_CLOCK_MEMORY},
    {"clocks.current.video", "clocks.video", "MHz", read_clock, AT(nvmlDeviceGetClockInfo), NVML_CLOCK_VIDEO},
    {"clocks.applications.graphics", "clocks.applications.gr", "MHz", read_clock,
     AT(nvmlDeviceGetApplicationsClock), NVML_CLOCK_GRAPHICS},
    {"clocks.applications.memory", "clocks.applications.mem", "MHz", read_clock,
     AT(nvmlDeviceGetApplicationsClock), NVML_CLOCK_MEMORY},
    {"clocks.default_applications.graphics", "clocks.default_applications.gr", "MHz", read_clock,
     AT(nvmlDeviceGetDefaultApplicationsClock), NVML_CLOCK_GRAPHICS},
    {"clocks.default_applications.memory", "clocks.default_applications.mem", "MHz", read_clock,
     AT(nvmlDeviceGetDefaultApplicationsClock), NVML_CLOCK_MEMORY},
    {"clocks.max.graphics", "clocks.max.gr", "MHz", read_clock, AT(nvmlDeviceGetMaxClockInfo), NVML_CLOCK_GRAPHICS},
    {"clocks.max.sm", NULL, "MHz", read_clock, AT(nvmlDeviceGetMaxClockInfo), NVML_CLOCK_SM},
    {"clocks.max.memory", "clocks.max.mem", "MHz", read_clock, AT(nvmlDeviceGetMaxClockInfo), NVML_CLOCK_MEMORY},
    {"mig.mode.current", NULL, NULL, read_pair_enabled, AT(nvmlDeviceGetMigMode), FIRST},
    {"mig.mode.pending", NULL, NULL, read_pair_enabled, AT(nvmlDeviceGetMigMode), SECOND},
    {.name = NULL},
};
/* clang-format on */

const struct smi_field *smi_field_find(const char *name)
{
    for (const struct smi_field *field = smi_fields; field->name != NULL; field++) {
        if (strcmp(field->name, name) == 0 || (field->other != NULL && strcmp(field->other, name) == 0))
            return field;
    }
    return NULL;
}

const char *smi_unavailable(int code)
{
    switch (code) {
    case NVML_NOT_SUPPORTED:
        return "[N/A]";
    case NVML_FUNCTION_NOT_FOUND:
        return "[Not Supported]";
    case NVML_NO_PERMISSION:
        return "[Insufficient Permissions]";
    case NVML_GPU_IS_LOST:
        return "[GPU is lost]";
    default:
        return "[Unknown Error]";
    }
}

int smi_field_read(const struct smi_gpu *gpu, const struct smi_field *field, char out_text[SMI_TEXT_MAX])
{
    int code = field->read != NULL ? field->read(gpu, field, out_text) : NVML_NOT_SUPPORTED;

    if (code != NVML_SUCCESS)
        snprintf(out_text, SMI_TEXT_MAX, "%s", smi_unavailable(code));
    return code;
}
