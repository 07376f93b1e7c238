/* SPDX-License-Identifier: Apache-2.0 */
/* Job files: any bytes either give jobs with all that a job needs, or are refused with file and line. */
#include <math.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "cli/frame/config_file.h"
#include "cli/sim/job_file.h"
#include "fuzz.h"
#include "model/job_spec.h"

enum { PATH_SIZE = 64 };

static void check_sizes(const struct job_description *job)
{
    FUZZ_CHECK((job->batch_sizes == NULL) == (job->batch_count == 0));
    FUZZ_CHECK(job->batch_count <= JOB_BATCHES_MAX);
    for (size_t i = 0; i < job->batch_count; i++)
        FUZZ_CHECK(job->batch_sizes[i] >= 1 && (i == 0 || job->batch_sizes[i] > job->batch_sizes[i - 1]));
}

static void check_job(struct job_list *list, const struct job_description *job)
{
    struct fly_error error = {.code = 0};
    struct job_description copy = *job;

    FUZZ_CHECK(job->name != NULL && job->name[0] != '\0');
    FUZZ_CHECK(job->dataset != NULL && job->network != NULL && job->optimizer != NULL);
    FUZZ_CHECK(isfinite(job->target_metric) && job->max_epochs >= 1 && job->default_batch_size >= 1);
    FUZZ_CHECK(job_list_find(list, job->name) == job); /* each name occurs once */
    FUZZ_CHECK(job_list_check(&copy, "f", FLY_ECONFIG, &error) == 0);
    check_sizes(job);
}

/* Every error about the text begins with file and line. */
static void check_refusal(int code, const struct fly_error *error, const char *path)
{
    size_t length = strlen(path);

    FUZZ_CHECK(code == FLY_ECONFIG || code == FLY_ELIMIT);
    FUZZ_CHECK(error->code == code);
    FUZZ_CHECK(strncmp(error->text, path, length) == 0 && error->text[length] == ':');
    FUZZ_CHECK(error->text[length + 1] >= '1' && error->text[length + 1] <= '9');
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct job_list list; /* large */
    struct fly_error error = {.code = 0};
    char path[PATH_SIZE];
    int fd;
    int code;

    if (size > CONFIG_FILE_MAX)
        return 0;
    fd = memfd_create("jobs", MFD_CLOEXEC);
    FUZZ_CHECK(fd >= 0 && write(fd, data, size) == (ssize_t)size);
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    job_list_init(&list);
    code = job_file_load(&list, path, &error);
    if (code < 0)
        check_refusal(code, &error, path);
    FUZZ_CHECK(list.count <= JOB_LIST_MAX);
    for (size_t i = 0; i < list.count; i++)
        check_job(&list, &list.jobs[i]);
    FUZZ_CHECK(job_list_nearest(&list, "cifar10") != NULL);
    job_list_deinit(&list);
    close(fd);
    return 0;
}
