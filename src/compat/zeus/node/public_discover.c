/* SPDX-License-Identifier: Apache-2.0 */
/* Routes that read no device: what there is, what time it is, and who asks. */
#include <string.h>

#include "base/clock.h"
#include "compat/zeus/node/public_private.h"
#include "shapes/shape_rows.h"

enum { SHORT = 256 };

struct found_gpu {
    uint64_t id;
    const char *name, *pci_address;
    bool cumulative_energy_available;
};
static const struct shape_field gpu_rows[] = {
    {SHAPE_AT(found_gpu, id), SHAPE_IS_U64(0, INT64_MAX)},
    {SHAPE_AT(found_gpu, name), SHAPE_IS_TEXT(SHORT), .any_bytes = true},
    {SHAPE_AT(found_gpu, pci_address), SHAPE_IS_TEXT(SHORT), .any_bytes = true},
    {SHAPE_AT(found_gpu, cumulative_energy_available), SHAPE_IS_BOOL},
};
static const struct shape shape_gpu = {SHAPE_OF(found_gpu, gpu_rows)};

struct found_cpu {
    uint64_t id;
    bool dram_available;
};
static const struct shape_field cpu_rows[] = {
    {SHAPE_AT(found_cpu, id), SHAPE_IS_U64(0, INT64_MAX)},
    {SHAPE_AT(found_cpu, dram_available), SHAPE_IS_BOOL},
};
static const struct shape shape_cpu = {SHAPE_OF(found_cpu, cpu_rows)};

struct discovery {
    const struct found_gpu *gpus;
    const struct found_cpu *cpus;
    const char *const *enabled_api_groups;
    size_t gpu_count, cpu_count, group_count;
    bool auth_required;
    const char
        *daemon; /* that it is this one, for Flyball's own clients; others ignore what they do not know */
};
static const struct shape_field discovery_rows[] = {
    {SHAPE_AT(discovery, gpus), SHAPE_IS_STRUCTS(&shape_gpu, UINT32_MAX, discovery, gpu_count)},
    {SHAPE_AT(discovery, cpus), SHAPE_IS_STRUCTS(&shape_cpu, UINT32_MAX, discovery, cpu_count)},
    {SHAPE_AT(discovery, enabled_api_groups), .kind = SHAPE_TEXTS, .longest = UINT32_MAX,
     .beside = offsetof(struct discovery, group_count)},
    {SHAPE_AT(discovery, auth_required), SHAPE_IS_BOOL},
    {SHAPE_AT(discovery, daemon), SHAPE_IS_TEXT(SHORT)},
};
static const struct shape shape_discovery = {SHAPE_OF(discovery, discovery_rows)};

/* Writes the address as `lspci -D` does, "0000:07:00.0"; the driver's domain has eight digits. */
static const char *short_pci(const char *pci)
{
    return strncmp(pci, "0000", 4) == 0 && strcspn(pci, ":") == 8 ? pci + 4 : pci;
}

/* The texts point into `infos`, which has room for all. */
static size_t find_gpus(const struct public_exchange *exchange, struct device_info infos[WATCH_GPUS_MAX],
                        struct found_gpu gpus[WATCH_GPUS_MAX])
{
    const struct node_public_options *options = &exchange->public->options;
    size_t places = watch_gpu_count(options->watch), count = 0;

    for (size_t i = 0; i < places; i++) {
        struct watch_device device;

        if (!admit_shows(options->admit, exchange->request, (int)i))
            continue;
        watch_look(options->watch, i, &device);
        infos[count] = device.info;
        gpus[count] = (struct found_gpu){.id = infos[count].index,
                                         .name = infos[count].name,
                                         .pci_address = short_pci(infos[count].pci),
                                         .cumulative_energy_available = device.total.counts};
        count++;
    }
    return count;
}

static size_t find_cpus(struct watch *watch, struct found_cpu cpus[WATCH_CPUS_MAX])
{
    struct public_cpu found[WATCH_CPUS_MAX];
    size_t count = public_find_cpus(watch, found);

    for (size_t i = 0; i < count; i++)
        cpus[i] = (struct found_cpu){.id = found[i].id, .dram_available = found[i].dram >= 0};
    return count;
}

void public_discover(struct public_exchange *exchange)
{
    const struct node_public_options *options = &exchange->public->options;
    struct device_info infos[WATCH_GPUS_MAX];
    struct found_gpu gpus[WATCH_GPUS_MAX];
    struct found_cpu cpus[WATCH_CPUS_MAX];
    const char *groups[SIGNED_SCOPE_COUNT];
    struct discovery discovery = {.gpus = gpus,
                                  .cpus = cpus,
                                  .enabled_api_groups = groups,
                                  .auth_required = options->wants_tokens,
                                  .daemon = "flyballd"};

    /* What no enabled group is about, or what the caller may not read where reading is closed, is not shown.
     */
    if ((options->groups & (1U << SIGNED_SCOPE_GPU_CONTROL | 1U << SIGNED_SCOPE_GPU_READ)) != 0)
        discovery.gpu_count = find_gpus(exchange, infos, gpus);
    if ((options->groups & 1U << SIGNED_SCOPE_CPU_READ) != 0 &&
        admit_shows(options->admit, exchange->request, ADMIT_CPUS))
        discovery.cpu_count = find_cpus(options->watch, cpus);
    for (int i = 0; i < SIGNED_SCOPE_COUNT; i++) {
        if ((options->groups >> i & 1) != 0)
            groups[discovery.group_count++] = signed_scope_words[i];
    }
    serve_answer_struct(exchange->answer, PUBLIC_OK, &shape_discovery, &discovery);
}

struct moment {
    int64_t timestamp_ms;
};
static const struct shape_field moment_rows[] = {{SHAPE_AT(moment, timestamp_ms), SHAPE_IS_TIME}};
static const struct shape shape_moment = {SHAPE_OF(moment, moment_rows)};

void public_time(struct public_exchange *exchange)
{
    const struct moment moment = {clock_real.date(clock_real.state).ns / 1000000};

    serve_answer_struct(exchange->answer, PUBLIC_OK, &shape_moment, &moment);
}

struct caller {
    const char *sub;
    const char *const *scopes;
    size_t scope_count;
    uint64_t exp;
    bool has_exp;
};
static const struct shape_field caller_rows[] = {
    {SHAPE_AT(caller, sub), SHAPE_IS_TEXT(SHORT), .any_bytes = true},
    {SHAPE_AT(caller, scopes), .kind = SHAPE_TEXTS, .longest = UINT32_MAX,
     .beside = offsetof(struct caller, scope_count)},
    {SHAPE_AT(caller, exp), SHAPE_IS_U64(0, INT64_MAX), SHAPE_IF(caller, has_exp)},
};
static const struct shape shape_caller = {SHAPE_OF(caller, caller_rows)};

void public_whoami(struct public_exchange *exchange)
{
    const struct serve_request *request = exchange->request;
    const struct signed_token *token = request->signed_token;
    const char *scopes[SIGNED_SCOPE_COUNT];
    struct caller caller = {.sub = token != NULL ? token->subject : request->caller_name, .scopes = scopes};

    for (int i = 0; i < SIGNED_SCOPE_COUNT; i++) {
        if ((public_scopes(request) >> i & 1) != 0)
            scopes[caller.scope_count++] = signed_scope_words[i];
    }
    if (token != NULL && token->expires) {
        caller.has_exp = true;
        caller.exp = (uint64_t)token->expires_s;
    }
    serve_answer_struct(exchange->answer, PUBLIC_OK, &shape_caller, &caller);
}
