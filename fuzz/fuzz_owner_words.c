/* SPDX-License-Identifier: Apache-2.0 */
/*
 * /proc/PID/environ, in pieces whose length the first byte says, and the names of directories of pods: what
 * is taken from them is of the form of such names, however it was cut.
 */
#include <stdlib.h>
#include <string.h>

#include "fuzz.h"
#include "node/owner/owner_pod.h"
#include "node/owner/owner_words.h"

static const char uid[] = "72f7f152-440c-66ac-9084-e0fc1d8a910c";
static const char id[] = "0a1b2c3d4e5f60718293a4b5c6d7e8f90a1b2c3d4e5f60718293a4b5c6d7e8f9";

static bool is_of(const char *text, const char *letters)
{
    return strspn(text, letters) == strlen(text);
}

static void take(const uint8_t *data, size_t size, size_t piece, struct owner *out_owner)
{
    struct owner_words words = {.owner = out_owner};

    *out_owner = (struct owner){.pid = 1};
    for (size_t at = 0; at < size; at += piece)
        owner_words_take(&words, (const char *)data + at, size - at < piece ? size - at : piece);
}

static void check_names(const char *text)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyz0123456789-.";
    struct owner_pod pod = {.uid = ""}, log = {.uid = ""};
    uid_t user;

    memcpy(pod.uid, uid, sizeof uid);
    memcpy(pod.id, id, sizeof id);
    log = pod;
    FUZZ_CHECK(owner_pod_directory(text, &pod) == (pod.pod[0] != '\0'));
    FUZZ_CHECK(owner_pod_log(text, &log) == (log.container[0] != '\0'));
    FUZZ_CHECK(is_of(pod.pod, letters) && is_of(pod.pod_namespace, letters));
    FUZZ_CHECK(is_of(log.pod, letters) && is_of(log.container, letters));
    (void)owner_status_uid(text, &user);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct owner whole, cut;
    char *text;

    if (size < 1)
        return 0;
    take(data + 1, size - 1, size, &whole);
    take(data + 1, size - 1, 1 + data[0] % 16, &cut);
    FUZZ_CHECK(strcmp(whole.training_job, cut.training_job) == 0);
    FUZZ_CHECK(strcmp(whole.slurm_job, cut.slurm_job) == 0 && strcmp(whole.slurm_step, cut.slurm_step) == 0);
    FUZZ_CHECK(is_of(whole.slurm_job, "0123456789") && strlen(whole.slurm_step) < OWNER_SLURM_MAX);
    FUZZ_CHECK(strchr(whole.training_job, '/') == NULL);
    text = malloc(size);
    FUZZ_CHECK(text != NULL);
    memcpy(text, data + 1, size - 1);
    text[size - 1] = '\0';
    check_names(text);
    free(text);
    return 0;
}
