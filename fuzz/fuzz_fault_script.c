/* SPDX-License-Identifier: Apache-2.0 */
/* Fault scripts of the emulator: an accepted script contains only possible faults. */
#include <string.h>

#include "emulator/fault.h"
#include "fuzz.h"

static void check_fault(const struct fault *fault)
{
    FUZZ_CHECK(fault->gpu >= -1 && fault->gpu <= 127);
    FUZZ_CHECK(memchr(fault->function, '\0', sizeof fault->function) != NULL);
    FUZZ_CHECK(fault->function[0] == '\0' || strncmp(fault->function, "nvml", 4) == 0);
    FUZZ_CHECK(fault->when <= FAULT_AT && fault->action <= FAULT_HOT);
    FUZZ_CHECK(fault->code >= 0 && fault->code <= 9999);
    FUZZ_CHECK(fault->slow_s >= 0.0 && fault->slow_s <= 86400.0);
    FUZZ_CHECK(fault->at_s >= 0.0 && fault->at_s <= 86400.0);
    if (fault->when == FAULT_NTH || fault->when == FAULT_FROM || fault->when == FAULT_EVERY)
        FUZZ_CHECK(fault->number >= 1);
    (void)fault_strikes(fault, 1, 0.0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct fault_list list;
    struct fly_error error = {.code = 0};
    char *text = malloc(size + 1);
    int code;

    FUZZ_CHECK(text != NULL);
    memcpy(text, data, size);
    text[size] = '\0';
    list.count = FAULTS_MAX + 1;
    code = faults_parse(text, "script", &list, &error);
    if (code < 0) {
        FUZZ_CHECK(code == FLY_EDATA || code == FLY_ELIMIT);
        FUZZ_CHECK(strncmp(error.text, "script:", 7) == 0 && list.count == FAULTS_MAX + 1);
    } else {
        FUZZ_CHECK(list.count <= FAULTS_MAX);
        for (size_t i = 0; i < list.count; i++)
            check_fault(&list.faults[i]);
    }
    free(text);
    return 0;
}
