/* SPDX-License-Identifier: Apache-2.0 */
/* The document of facts, member by member. Members that are added later must be optional. */
#include <math.h>

#include "device/recording/facts_private.h"

#define AT(type, member) .name = #member, .at = offsetof(struct type, member)
#define WHOLE(type, member, text)                                                \
    {                                                                            \
        AT(type, member), .kind = SHAPE_U32, .most = UINT32_MAX, .about = (text) \
    }
#define LONG(type, member, text)                                                \
    {                                                                           \
        AT(type, member), .kind = SHAPE_U64, .most = INT64_MAX, .about = (text) \
    }
#define NUMBER(type, member, within, text)                                                                \
    {                                                                                                     \
        AT(type, member), .kind = SHAPE_NUMBER, .range = (within), .null = SHAPE_UNKNOWN, .about = (text) \
    }
#define TRUTH(type, member, text)                             \
    {                                                         \
        AT(type, member), .kind = SHAPE_BOOL, .about = (text) \
    }
#define WORD(type, member, list, text)                                                                       \
    {                                                                                                        \
        AT(type, member), .kind = SHAPE_WORD, .words = (list), .word_count = sizeof(list) / sizeof(list)[0], \
                          .about = (text)                                                                    \
    }
#define TEXT(type, member, bytes, text)                                           \
    {                                                                             \
        AT(type, member), .kind = SHAPE_TEXT, .longest = (bytes), .about = (text) \
    }
#define OR_NULL(type, member, bytes, text)                                                               \
    {                                                                                                    \
        AT(type, member), .kind = SHAPE_TEXT, .null = SHAPE_OR_NULL, .longest = (bytes), .about = (text) \
    }
#define INSIDE(type, member, what, text)                                         \
    {                                                                            \
        AT(type, member), .kind = SHAPE_STRUCT, .shape = (what), .about = (text) \
    }
#define LIST(type, member, count, what, maximum, text)                                                    \
    {                                                                                                     \
        AT(type, member), .kind = SHAPE_STRUCTS, .beside = offsetof(struct type, count), .shape = (what), \
                          .longest = (maximum), .about = (text)                                           \
    }
#define SHAPE(type, title, text, rows)                                               \
    .name = (title), .about = (text), .size = sizeof(struct type), .fields = (rows), \
    .count = sizeof(rows) / sizeof(rows)[0]

enum {
    SHORT = DEVICE_TEXT_MAX - 1,
    NOTE = sizeof((struct device_info *)NULL)->note - 1,
    ERROR_TEXT = FLY_ERROR_TEXT_MAX - 1,
    DATE = 10,
};

#define QUANTITY_WORD(name, key, ...) key,
static const char *const quantity_words[] = {QUANTITY_MAP(QUANTITY_WORD)};
#define STATE_WORD(name, word, clause) word,
static const char *const state_words[] = {READING_MAP(STATE_WORD)};
static const char *const kind_words[] = {"GPU", "CPU", "DRAM"};
_Static_assert(sizeof kind_words / sizeof kind_words[0] == DEVICE_KIND_COUNT, "one word for every kind");
static const char *const processes_words[] = {
    [PROCESSES_NOT_OFFERED] = "unsupported",
    [PROCESSES_SEEN] = "seen",
    [PROCESSES_DENIED] = "no_permission",
    [PROCESSES_FAILED] = "failed",
};
const char *const facts_may_words[MAY_COUNT] = {
    [MAY_NOT] = "no", [MAY_UNLIKELY] = "unlikely", [MAY_LIKELY] = "likely", [MAY] = "yes"};
static const char *const backend_words[] = {
    [FACTS_WORKS] = "works", [FACTS_ABSENT] = "absent", [FACTS_DENIED] = "denied", [FACTS_BROKEN] = "broken"};
static const char *const through_words[] = {[THROUGH_POWERCAP] = "powercap", [THROUGH_PERF] = "perf"};
static const char *const cgroups_words[] = {
    [CGROUPS_NONE] = "none", [CGROUPS_1] = "1", [CGROUPS_2] = "2", [CGROUPS_BOTH] = "1 and 2"};
static const char *const directory_words[] = {[DIRECTORY_NONE] = "none",
                                              [DIRECTORY_RUN] = "/run/flyball",
                                              [DIRECTORY_TMP] = "/tmp/flyball-knobs",
                                              [DIRECTORY_NAMED] = "named by a variable"};

static const char *const schema_words[] = {FACTS_SCHEMA};

static const struct shape_field machine_rows[] = {
    OR_NULL(facts_machine, kernel, SHORT, "its release"),
    OR_NULL(facts_machine, architecture, SHORT, "of the processor"),
    WORD(facts_machine, cgroups, cgroups_words, "versions of control groups that are mounted"),
    TRUTH(facts_machine, container, "it is a container"),
    TRUTH(facts_machine, virtual_machine, "it is a virtual machine"),
    TRUTH(facts_machine, wsl, "it is the Windows Subsystem for Linux"),
    TRUTH(facts_machine, root, "the user is root"),
    TRUTH(facts_machine, reads_all_files, "the user has CAP_DAC_READ_SEARCH or CAP_DAC_OVERRIDE"),
    TRUTH(facts_machine, reads_perf, "the user has CAP_PERFMON or CAP_SYS_ADMIN"),
    NUMBER(facts_machine, perf_paranoid, SHAPE_ANY, "kernel.perf_event_paranoid"),
    TRUTH(facts_machine, cuda_visible_devices, "CUDA_VISIBLE_DEVICES is set"),
    TRUTH(facts_machine, hip_visible_devices, "HIP_VISIBLE_DEVICES is set"),
    TRUTH(facts_machine, rocr_visible_devices, "ROCR_VISIBLE_DEVICES is set"),
    TRUTH(facts_machine, utility_left_out, "NVIDIA_DRIVER_CAPABILITIES is set, without utility"),
    TRUTH(facts_machine, nvidia_on_bus, "an NVIDIA GPU is plugged in"),
    TRUTH(facts_machine, nvidia_module, "NVIDIA's kernel driver is loaded"),
    TRUTH(facts_machine, nvidia_file_denied, "/dev/nvidiactl may not be opened"),
    OR_NULL(facts_machine, nvidia_kernel_driver, SHORT, "the version of NVIDIA's kernel driver"),
    TRUTH(facts_machine, amd_on_bus, "an AMD GPU is plugged in"),
    TRUTH(facts_machine, amd_module, "AMD's kernel driver is loaded"),
    TRUTH(facts_machine, amd_file_denied, "/dev/kfd may not be opened"),
    TRUTH(facts_machine, powercap, "the kernel shows energy counters of the CPU under powercap"),
    TRUTH(facts_machine, powercap_denied, "some of them may not be read"),
    TRUTH(facts_machine, perf_power, "the kernel has perf events of the CPU's energy"),
    TRUTH(facts_machine, operators_lock, "a file keeps knobs from being turned"),
    WORD(facts_machine, knob_files, directory_words, "where the locks and the journal of knobs lie"),
    TRUTH(facts_machine, knob_files_writable, "the user may write there"),
};
static const struct shape machine_shape = {
    SHAPE(facts_machine, "Machine", "What there is beside devices", machine_rows)};

static const struct shape_field way_rows[] = {
    TEXT(facts_way, name, SHORT, "of the way to turn knobs"),
    TRUTH(facts_way, found, "it is there to be tried"),
    TRUTH(facts_way, named, "the user named it"),
    TEXT(facts_way, why_not, ERROR_TEXT, "what speaks against it"),
};
static const struct shape way_shape = {SHAPE(facts_way, "Way", "A way to turn knobs", way_rows)};

static const struct shape_field domain_rows[] = {
    WORD(facts_domain, through, through_words, "what shows it"),
    TEXT(facts_domain, name, SHORT, "of the domain"),
    LONG(facts_domain, range_uj, "of its counter; 0: not told"),
    TRUTH(facts_domain, readable, "by this user"),
};
static const struct shape domain_shape = {
    SHAPE(facts_domain, "Domain", "An energy counter of the CPU", domain_rows)};

static const struct shape_field backend_rows[] = {
    TEXT(facts_backend, name, SHORT, "of the back end"),
    TEXT(facts_backend, title, SHORT, "the same for people"),
    WORD(facts_backend, kind, kind_words, "of its devices"),
    WORD(facts_backend, state, backend_words, "what became of it"),
    TEXT(facts_backend, error, ERROR_TEXT, "why it offers nothing, or not all"),
};
static const struct shape backend_shape = {
    SHAPE(facts_backend, "Backend", "What became of a back end", backend_rows)};

static const struct shape_field sensor_rows[] = {
    NUMBER(facts_sensor, counter_period_s, SHAPE_FROM_0, "between two updates of the energy counter"),
    NUMBER(facts_sensor, power_period_s, SHAPE_FROM_0, "between two updates of the power reading"),
    NUMBER(facts_sensor, power_window_s, SHAPE_FROM_0, "what the power reading averages over"),
    NUMBER(facts_sensor, gain_error, SHAPE_FROM_0_TO_1, "of the board's sensor"),
    TRUTH(facts_sensor, counter_from_power, "the counter sums the power readings"),
    OR_NULL(facts_sensor, source, ERROR_TEXT, "of these figures"),
};
static const struct shape sensor_shape = {
    SHAPE(facts_sensor, "Sensor", "What Flyball assumed of the sensor", sensor_rows)};

static const struct shape_field answer_rows[] = {
    WORD(facts_answer, quantity, quantity_words, "that was asked for"),
    WORD(facts_answer, state, state_words, "of the answer"),
    NUMBER(facts_answer, value, SHAPE_ANY, "in the quantity's unit"),
    WHOLE(facts_answer, code, "of the driver; 0: none"),
};
static const struct shape answer_shape = {
    SHAPE(facts_answer, "Answer", "What a device answered", answer_rows)};

static const struct shape_field look_rows[] = {
    WORD(facts_look, quantity, quantity_words, "that was watched"),
    NUMBER(facts_look, watched_s, SHAPE_FROM_0, "from the first poll to the last"),
    WHOLE(facts_look, polls, "while it was watched"),
    WHOLE(facts_look, changes, "that were seen"),
    NUMBER(facts_look, period_s, SHAPE_FROM_0, "between two changes, the median"),
    NUMBER(facts_look, least_period_s, SHAPE_FROM_0, "the shortest"),
    TRUTH(facts_look, at_most, "it may well change more often than it was polled"),
    NUMBER(facts_look, least_step, SHAPE_FROM_0, "the smallest change"),
    NUMBER(facts_look, common_divisor, SHAPE_FROM_0, "of all changes"),
};
static const struct shape look_shape = {
    SHAPE(facts_look, "Look", "How a figure moved while it was watched", look_rows)};

static const struct shape_field device_rows[] = {
    WORD(facts_device, kind, kind_words, "of the device"),
    TEXT(facts_device, backend, SHORT, "one of the back ends"),
    TEXT(facts_device, pseudonym, SHORT, "in place of its UUID"),
    OR_NULL(facts_device, bus, SHORT, "its place in the order of the PCI bus"),
    OR_NULL(facts_device, name, SHORT, "of its model"),
    OR_NULL(facts_device, driver, SHORT, "version of the driver and its library"),
    OR_NULL(facts_device, note, NOTE, "what a user should know of its figures"),
    {AT(facts_device, minor), .kind = SHAPE_U32, .need = SHAPE_FLAGGED, .most = INT32_MAX,
     .beside = offsetof(struct facts_device, has_minor), .about = "of /dev/nvidiaN"},
    TRUTH(facts_device, emulated, "an emulator answers"),
    TRUTH(facts_device, estimated, "energy is computed from use and a stated power"),
    TRUTH(facts_device, module_power, "power and energy are those of the module with the CPU on it"),
    TRUTH(facts_device, mig, "MIG shares it"),
    TRUTH(facts_device, denied, "it may not be opened"),
    LONG(facts_device, memory_bytes, "of a GPU; 0: not known"),
    LONG(facts_device, energy_modulus_uj, "where the counter wraps to 0; 0: it does not wrap"),
    INSIDE(facts_device, sensor, &sensor_shape, "what Flyball assumed of the sensor"),
    WORD(facts_device, processes, processes_words, "whether those on it can be seen"),
    WORD(facts_device, may_be_set, facts_may_words, "whether its power limit may be set"),
    TEXT(facts_device, why_not, ERROR_TEXT, "what speaks against that"),
    LIST(facts_device, answers, answer_count, &answer_shape, QUANTITY_COUNT, "what it answered"),
    {AT(facts_device, clocks_mhz), .kind = SHAPE_U32S, .beside = offsetof(struct facts_device, clock_count),
     .most = UINT32_MAX, .longest = DEVICE_CLOCKS_MAX, .about = "that it can be held to, highest first"},
    LIST(facts_device, looks, look_count, &look_shape, FACTS_LOOKS_MAX, "what moved in a short look"),
};
static const struct shape device_shape = {
    SHAPE(facts_device, "Device", "What a device says of itself", device_rows)};

static const struct shape_field facts_rows[] = {
    {AT(facts, schema), .kind = SHAPE_WORD, .words = schema_words, .word_count = 1,
     .expected = "\"" FACTS_SCHEMA "\"", .about = "of this document"},
    TEXT(facts, flyball, SHORT, "the version that wrote it"),
    TEXT(facts, date, DATE, "on which it was written"),
    INSIDE(facts, machine, &machine_shape, "what there is beside devices"),
    LIST(facts, ways, way_count, &way_shape, FACTS_WAYS_MAX, "to turn knobs"),
    LIST(facts, domains, domain_count, &domain_shape, FACTS_DOMAINS_MAX, "energy counters of the CPU"),
    LIST(facts, backends, backend_count, &backend_shape, BACKENDS_MAX, "what became of each"),
    LIST(facts, devices, device_count, &device_shape, DEVICES_MAX, "what each says of itself"),
};
const struct shape facts_shape = {SHAPE(facts, "Facts", "What a machine says of itself", facts_rows)};
