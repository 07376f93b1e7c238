/* SPDX-License-Identifier: Apache-2.0 */
/* GET /v1/usage: who uses the GPUs that the caller may read, and how much of their energy. */
#include "base/error.h"
#include "node/v1/v1_private.h"

/* Rows of GPUs that the caller may not read are left out, and their GPUs. Returns how many GPUs remain. */
static size_t keep_readable(struct v1_exchange *exchange, struct share_told *told,
                            struct rights_decision *decision)
{
    size_t gpus = 0, rows = 0, next = 0;

    for (size_t gpu = 0; gpu < told->gpu_count; gpu++) {
        const char *uuid = told->gpus[gpu].uuid;

        admit_decide(exchange->v1->options.admit, exchange->request, gpu, decision);
        for (; next < told->row_count && told->rows[next].uuid == uuid; next++) {
            if (decision->may_read)
                told->rows[rows++] = told->rows[next];
        }
        if (decision->may_read)
            told->gpus[gpus++] = told->gpus[gpu];
    }
    told->row_count = rows;
    told->gpu_count = gpus;
    return gpus;
}

int v1_show_usage(struct v1_exchange *exchange)
{
    struct share *share = exchange->v1->options.share;
    struct rights_decision decision = {.may_read = true};
    struct share_told told;
    struct usage usage = {.schema = USAGE_SCHEMA};
    int code;

    if (share == NULL)
        return error_set(&exchange->error, FLY_EUNSUPPORTED,
                         "nobody keeps account of who uses the GPUs: 'attribution.enabled' is off");
    code = share_tell(share, &told, &exchange->error);
    if (code < 0)
        return code;
    if (keep_readable(exchange, &told, &decision) == 0 && !decision.may_read)
        code = error_set(&exchange->error, FLY_EPERM, "%s", decision.why);
    usage.gpu_count = told.gpu_count;
    usage.gpus = told.gpus;
    usage.row_count = told.row_count;
    usage.rows = told.rows;
    if (code == 0)
        code = v1_tell(exchange, &shape_usage, &usage);
    share_told_free(&told);
    return code;
}
