/* SPDX-License-Identifier: Apache-2.0 */
/* What routes share: their bodies, their GPUs, their answers. */
#include "base/error.h"
#include "node/v1/v1_private.h"

int v1_read_body(struct v1_exchange *exchange, const struct shape *shape, void *out_struct)
{
    const struct serve_request *request = exchange->request;
    bool empty = request->body_length == 0;
    json_t *json;
    int code =
        shape_parse(empty ? "{}" : request->body, empty ? 2 : request->body_length, &json, &exchange->error);

    if (code < 0)
        return code;
    code = shape_read(shape, json, SHAPE_STRICT, &exchange->arena, out_struct, &exchange->error);
    json_decref(json);
    return code;
}

int v1_tell(struct v1_exchange *exchange, const struct shape *shape, const void *from)
{
    serve_answer_struct(exchange->answer, 200, shape, from);
    return 0;
}

int v1_find_gpu(struct v1_exchange *exchange, const char *text, size_t *out_gpu)
{
    int gpu = admit_find_gpu(exchange->v1->options.admit, text);

    if (gpu < 0)
        return error_set(&exchange->error, FLY_ENOTFOUND,
                         "there is no GPU '%.96s'; name one by its index, its UUID or its PCI address", text);
    *out_gpu = (size_t)gpu;
    return 0;
}
