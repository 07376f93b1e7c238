/* SPDX-License-Identifier: Apache-2.0 */
/* GET /v1/gpus and /v1/gpus/ID: what each GPU reads, and what the caller may do with it. */
#include <math.h>
#include <stdlib.h>

#include "base/error.h"
#include "node/v1/v1_private.h"

/* All that the texts and figures of one GPU's description lie in. */
struct described {
    struct device_info info;
    struct v1_figures figures;
    struct rights_decision decision;
    struct fly_error why;
};

static double bound_w(int64_t bound_mw)
{
    return bound_mw > 0 ? (double)bound_mw * 1e-3 : NAN;
}

/* Describes a GPU; texts lie in `in`. FLY_EPERM if the caller may not even read it. */
static int describe(struct v1_exchange *exchange, size_t gpu, struct described *in, struct v1_gpu *out_gpu)
{
    const struct node_v1_options *options = &exchange->v1->options;
    struct watch_sample sample;
    struct leases_gpu hand = {.leases = 0};
    bool answers;

    admit_decide(options->admit, exchange->request, gpu, &in->decision);
    if (!in->decision.may_read)
        return error_set(&exchange->error, FLY_EPERM, "%s", in->decision.why);
    watch_gpu_info(options->watch, gpu, &in->info);
    if (gpu < options->leased)
        leases_look(options->leases, gpu, &hand);
    answers = watch_latest(options->watch, gpu, &sample, &in->why) == 0;
    if (answers)
        v1_figures_of(&sample, &in->figures);
    *out_gpu = (struct v1_gpu){
        .index = in->info.index,
        .uuid = in->info.uuid,
        .pci = in->info.pci,
        .name = in->info.name,
        .driver = in->info.driver,
        .answers = answers,
        .why = answers ? NULL : in->why.text,
        .figures = answers ? &in->figures : NULL,
        .power_limit_min_w = answers ? v1_reading(&sample, QUANTITY_POWER_LIMIT_MIN, 1e-3) : NAN,
        .power_limit_max_w = answers ? v1_reading(&sample, QUANTITY_POWER_LIMIT_MAX, 1e-3) : NAN,
        .power_limit_default_w = answers ? v1_reading(&sample, QUANTITY_POWER_LIMIT_DEFAULT, 1e-3) : NAN,
        .leases = hand.leases,
        .turned = hand.turned,
        .may_control = in->decision.may_control,
        .may_not = in->decision.may_control ? NULL : in->decision.why,
        .floor_w = bound_w(in->decision.bounds.floor_mw),
        .ceiling_w = bound_w(in->decision.bounds.ceiling_mw),
    };
    return 0;
}

/* GPUs that the caller may not read are left out, unless there are no others. */
int v1_list_gpus(struct v1_exchange *exchange)
{
    size_t count = watch_gpu_count(exchange->v1->options.watch);
    struct described *described = calloc(count + 1, sizeof *described);
    struct v1_gpu *gpus = calloc(count + 1, sizeof *gpus);
    struct v1_gpus list = {.gpus = gpus};
    int code = described == NULL || gpus == NULL ? error_no_memory(&exchange->error) : 0, refused = 0;

    for (size_t i = 0; i < count && code == 0; i++) {
        refused = describe(exchange, i, &described[i], &gpus[list.count]);
        list.count += refused == 0;
    }
    if (code == 0 && list.count == 0 && refused < 0)
        code = refused;
    if (code == 0)
        code = v1_tell(exchange, &shape_v1_gpus, &list);
    free(gpus);
    free(described);
    return code;
}

int v1_show_gpu(struct v1_exchange *exchange)
{
    struct described described;
    struct v1_gpu shown;
    size_t gpu;
    int code = v1_find_gpu(exchange, exchange->id, &gpu);

    if (code == 0)
        code = describe(exchange, gpu, &described, &shown);
    return code < 0 ? code : v1_tell(exchange, &shape_v1_gpu, &shown);
}
