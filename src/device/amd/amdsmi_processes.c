/* SPDX-License-Identifier: Apache-2.0 */
/* Finds out from the kernel which processes compute on a GPU. */
#include "device/amd/amdsmi_processes.h"

#include <string.h>
#include <unistd.h>

#include "device/sysfs.h"

/* A search through the processes, or through the queues of one. */
struct search {
    const struct amdsmi_gpu *gpu;
    struct device_process *processes;
    size_t maximum, count;
};

static bool is_kfd_of(const struct amdsmi_gpu *gpu, uint64_t kfd)
{
    for (size_t i = 0; i < gpu->kfd_count; i++) {
        if (gpu->kfds[i] == kfd)
            return true;
    }
    return false;
}

static int look_at_queue(void *data, const char *path, unsigned number)
{
    const struct search *search = data;
    char file[SYSFS_PATH_MAX];
    uint64_t kfd;

    (void)number;
    return sysfs_path(file, "%s/gpuid", path) && sysfs_read_u64(file, UINT32_MAX, &kfd) == 0 &&
           is_kfd_of(search->gpu, kfd);
}

/* The memory of a process on the GPU. A process that ends meanwhile has none. */
static uint64_t memory_of(const struct amdsmi_gpu *gpu, const char *process)
{
    uint64_t total = 0;

    for (size_t i = 0; i < gpu->kfd_count; i++) {
        char file[SYSFS_PATH_MAX];
        uint64_t bytes;

        if (sysfs_path(file, "%s/vram_%llu", process, (unsigned long long)gpu->kfds[i]) &&
            sysfs_read_u64(file, INT64_MAX, &bytes) == 0)
            total += bytes;
    }
    return total;
}

static int look_at_process(void *data, const char *path, unsigned number)
{
    struct search *search = data;
    char queues[SYSFS_PATH_MAX];
    uint64_t bytes = memory_of(search->gpu, path);

    if (bytes == 0 &&
        (!sysfs_path(queues, "%s/queues", path) || !sysfs_each_numbered(queues, "", look_at_queue, search)))
        return 0;
    if (search->count < search->maximum)
        search->processes[search->count] = (struct device_process){.pid = (pid_t)number,
                                                                   .memory_bytes = bytes,
                                                                   .kind = DEVICE_PROCESS_COMPUTE,
                                                                   .instance = DEVICE_NO_INSTANCE};
    search->count++;
    return 0;
}

int amdsmi_processes_read(const struct amdsmi_gpu *gpu, struct device_process *processes, size_t maximum,
                          size_t *out_count)
{
    struct search search = {.gpu = gpu, .processes = processes, .maximum = maximum};
    char directory[SYSFS_PATH_MAX];

    if (gpu->kfd_count == 0 || !sysfs_path(directory, "%s/sys/class/kfd/kfd/proc", gpu->root) ||
        access(directory, R_OK | X_OK) < 0)
        return FLY_EREAD;
    sysfs_each_numbered(directory, "", look_at_process, &search);
    *out_count = search.count < maximum ? search.count : maximum;
    return 0;
}
