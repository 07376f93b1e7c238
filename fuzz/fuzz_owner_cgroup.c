/* SPDX-License-Identifier: Apache-2.0 */
/* /proc/PID/cgroup with any text: what is said of it has the form that each member promises. */
#include <stdlib.h>
#include <string.h>

#include "base/harmless.h"
#include "fuzz.h"
#include "node/owner/owner_cgroup.h"

static bool is_of(const char *text, const char *letters, size_t shortest, size_t longest)
{
    size_t length = strlen(text);

    return length == 0 || (length >= shortest && length <= longest && strspn(text, letters) == length);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = malloc(size + 1);
    struct owner owner = {.pid = 1};

    FUZZ_CHECK(text != NULL);
    memcpy(text, data, size);
    text[size] = '\0';
    owner_cgroup_read(text, &owner);
    FUZZ_CHECK(is_of(owner.container_id, "0123456789abcdef", 64, 64));
    FUZZ_CHECK(is_of(owner.pod_container_id, "0123456789abcdef", 64, 64));
    FUZZ_CHECK(is_of(owner.pod_uid, "0123456789abcdef-", 32, 36));
    FUZZ_CHECK(is_of(owner.slurm_job, "0123456789", 1, OWNER_SLURM_MAX - 1));
    FUZZ_CHECK(is_of(owner.slurm_step, "0123456789abcdefghijklmnopqrstuvwxyz+.", 1, OWNER_SLURM_MAX - 1));
    FUZZ_CHECK(owner.cgroup_known == (owner.cgroup[0] != '\0'));
    FUZZ_CHECK(harmless_all(owner.cgroup, strlen(owner.cgroup), false));
    FUZZ_CHECK(owner.pod_container_id[0] == '\0' || owner.pod_uid[0] != '\0');
    FUZZ_CHECK(owner.slurm_job[0] != '\0' || (owner.slurm_step[0] == '\0' && !owner.slurm_claimed));
    FUZZ_CHECK(owner.runtime < OWNER_RUNTIME_CONTAINER || owner.container_id[0] != '\0');
    FUZZ_CHECK(owner.runtime >= OWNER_RUNTIME_KUBERNETES || owner.container_id[0] == '\0');
    free(text);
    return 0;
}
