/* SPDX-License-Identifier: Apache-2.0 */
/* What a program says of a training in words. */
#include "test.h"

#include <flyball/session.h>

static void test_targets(void **state)
{
    static const struct {
        const char *text;
        enum fly_target target; /* none: refused */
        double metric;
    } rows[] = {
        {"0.79", FLY_TARGET_AT_LEAST, 0.79},   {">=0.79", FLY_TARGET_AT_LEAST, 0.79},
        {">= -3", FLY_TARGET_AT_LEAST, -3},    {"<=0.3", FLY_TARGET_AT_MOST, 0.3},
        {"<= 1e-3", FLY_TARGET_AT_MOST, 1e-3}, {"", FLY_TARGET_NONE, 0},
        {">0.3", FLY_TARGET_NONE, 0},          {"auc", FLY_TARGET_NONE, 0},
        {"<=nan", FLY_TARGET_NONE, 0},         {">=inf", FLY_TARGET_NONE, 0},
        {"0.3%", FLY_TARGET_NONE, 0},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        enum fly_target target = FLY_TARGET_NONE;
        double metric = 0;
        struct fly_error error;
        int code = fly_target_parse(rows[i].text, &target, &metric, &error);

        print_message("# '%s'\n", rows[i].text);
        assert_int_equal(code, rows[i].target == FLY_TARGET_NONE ? FLY_EUSAGE : 0);
        assert_int_equal(target, rows[i].target);
        check_double(metric, rows[i].metric);
        if (code < 0)
            check_contains(error.text, rows[i].text);
    }
}

static void test_optimizers(void **state)
{
    static const struct {
        const char *name;
        int code;
        enum fly_scaling scaling;
    } rows[] = {
        {"SGD", 0, FLY_SCALE_LINEAR},
        {"torch.optim.sgd.SGD", 0, FLY_SCALE_LINEAR},
        {"LARS", 0, FLY_SCALE_LINEAR},
        {"linear", 0, FLY_SCALE_LINEAR},
        {"AdamW", 0, FLY_SCALE_SQUARE_ROOT},
        {"adamw_torch_fused", 0, FLY_SCALE_SQUARE_ROOT},
        {"DeepSpeedCPUAdam", 0, FLY_SCALE_SQUARE_ROOT},
        {"RMSprop", 0, FLY_SCALE_SQUARE_ROOT},
        {"square-root", 0, FLY_SCALE_SQUARE_ROOT},
        {"adam.SGD", 0, FLY_SCALE_LINEAR}, /* the module does not count */
        {"LBFGS", FLY_EUSAGE, 0},
        {"", FLY_EUSAGE, 0},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        enum fly_scaling scaling = FLY_SCALE_LINEAR;
        struct fly_error error;

        print_message("# '%s'\n", rows[i].name);
        assert_int_equal(fly_scaling_parse(rows[i].name, &scaling, &error), rows[i].code);
        assert_int_equal(scaling, rows[i].scaling);
    }
}

static void test_exceptions(void **state)
{
    static const struct {
        const char *exception, *text;
        bool is;
    } rows[] = {
        {"torch.cuda.OutOfMemoryError", "", true},
        {"OutOfMemoryError", "CUDA out of memory. Tried to allocate 2.00 GiB", true},
        {"RuntimeError", "CUDA out of memory. Tried to allocate 20.00 MiB (GPU 0; 10.76 GiB total)", true},
        {"RuntimeError", "CUDA error: out of memory\nCUDA kernel errors might be asynchronous", true},
        {"RuntimeError", "HIP out of memory. Tried to allocate 1.00 GiB", true},
        {"jaxlib.xla_extension.XlaRuntimeError",
         "RESOURCE_EXHAUSTED: Out of memory while trying to allocate 8589934592 bytes.", true},
        {"MemoryError", "", true},
        {"numpy.core._exceptions._ArrayMemoryError", "Unable to allocate 8.00 GiB", true},
        {"", "CUDA out of memory. Tried to allocate 2.00 GiB", true},
        {"RuntimeError", "shape mismatch", false},
        {"KeyboardInterrupt", "", false},
        {"ValueError", "lower the batch size if you see CUDA out of memory", false},
        {"grpc.RpcError", "StatusCode.RESOURCE_EXHAUSTED: quota", false},
        {"", "", false},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        print_message("# %s, row %zu\n", rows[i].exception, i);
        assert_int_equal(fly_out_of_memory(rows[i].exception, rows[i].text), rows[i].is);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_targets),
        cmocka_unit_test(test_optimizers),
        cmocka_unit_test(test_exceptions),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
