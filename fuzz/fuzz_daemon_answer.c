/* SPDX-License-Identifier: Apache-2.0 */
/* The public daemon's answers: its GPUs, and why it refuses. */
#include <string.h>

#include "fuzz.h"
#include "knob/way/daemon_answer.h"
#include "knob/way/daemon_permit.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const struct device_info gpu = {.index = 0, .name = "NVIDIA A100-SXM4-80GB", .pci = "00000000:07:00.0"};
    char reason[DAEMON_REASON_MAX];
    struct fly_error error;
    unsigned id = DEVICES_MAX;
    struct daemon_permit permit;
    bool flyballd;

    if (daemon_find_gpu((const char *)data, size, &gpu, false, &id, &flyballd, &error) == 0)
        FUZZ_CHECK(id < DEVICES_MAX);
    else
        FUZZ_CHECK(error.code == FLY_EDATA || error.code == FLY_EUNSUPPORTED || error.code == FLY_EPERM);
    if (daemon_permit_read((const char *)data, size, &permit, &error) == 0) {
        FUZZ_CHECK(permit.word == DAEMON_LETS || permit.word == DAEMON_REFUSES);
        FUZZ_CHECK(strlen(permit.why) < sizeof permit.why && strchr(permit.why, '\n') == NULL);
    } else {
        FUZZ_CHECK(error.code == FLY_EDATA);
    }
    daemon_reason((const char *)data, size, reason);
    FUZZ_CHECK(strlen(reason) < DAEMON_REASON_MAX && strchr(reason, '\n') == NULL);
    return 0;
}
