/* SPDX-License-Identifier: Apache-2.0 */
/* What a program's output and its cgroup tell of memory that ran out. */
#include <stdio.h>

#include "fake_tree.h"
#include "test.h"

#include "train/program/host_memory.h"
#include "train/program/memory_words.h"

enum { PID = 4711 };

static void test_words(void **state)
{
    static const struct {
        enum memory_kind kind;
        const char *line;
    } rows[] = {
        {MEMORY_GPU,
         "torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 20.00 MiB (GPU 0; ...)"},
        {MEMORY_GPU, "[rank1]: torch.OutOfMemoryError: CUDA out of memory."},
        {MEMORY_GPU, "RuntimeError: CUDA out of memory. Tried to allocate 2 GiB"},
        {MEMORY_GPU, "torch.OutOfMemoryError"},
        {MEMORY_GPU, "RuntimeError: CUDA error: out of memory"},
        {MEMORY_GPU, "RuntimeError: cuda runtime error (2) : out of memory at THCStorage.cu:58"},
        {MEMORY_GPU, "torch.OutOfMemoryError: HIP out of memory. Tried to allocate 1 GiB"},
        {MEMORY_GPU, "RuntimeError: MPS backend out of memory (MPS allocated: 9 GB)"},
        {MEMORY_GPU, "NCCL WARN Cuda failure 2 'out of memory'"},
        {MEMORY_GPU, "cupy.cuda.memory.OutOfMemoryError: Out of memory allocating 8,000 bytes"},
        {MEMORY_GPU, "MemoryError: std::bad_alloc: out_of_memory: CUDA error at: rmm/mr/device.hpp"},
        {MEMORY_GPU, "numba.cuda.cudadrv.driver.CudaAPIError: [2] Call to cuMemAlloc results in "
                     "CUDA_ERROR_OUT_OF_MEMORY"},
        {MEMORY_GPU, "jaxlib.xla_extension.XlaRuntimeError: RESOURCE_EXHAUSTED: Out of memory while trying "
                     "to allocate 9 bytes."},
        {MEMORY_GPU, "jax.errors.JaxRuntimeError: RESOURCE_EXHAUSTED: Failed to allocate request for 2.0GiB "
                     "on device ordinal 0"},
        {MEMORY_GPU, "RESOURCE_EXHAUSTED"},
        {MEMORY_GPU,
         "tensorflow.python.framework.errors_impl.ResourceExhaustedError: Graph execution error:"},
        {MEMORY_GPU,
         "OOM when allocating tensor with shape[8] and type float on /device:GPU:0 by allocator GPU_0_bfc"},
        {MEMORY_GPU,
         "RuntimeError: CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`"},
        {MEMORY_GPU, "RuntimeError: cuDNN error: CUDNN_STATUS_ALLOC_FAILED"},
        {MEMORY_GPU, "CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED"},
        {MEMORY_HOST, "CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED"},
        {MEMORY_HOST, "MemoryError"},
        {MEMORY_HOST, "[rank0]: MemoryError: no room"},
        {MEMORY_HOST, "numpy.core._exceptions._ArrayMemoryError: Unable to allocate 74.5 GiB for an array"},
        {MEMORY_HOST, "numpy.core._exceptions.MemoryError: Unable to allocate 74.5 GiB for an array"},
        {MEMORY_HOST, "RuntimeError: [enforce fail at alloc_cpu.cpp:114] . DefaultCPUAllocator: can't "
                      "allocate memory: you tried"},
        {MEMORY_HOST, "terminate called after throwing an instance of 'std::bad_alloc'"},
        {MEMORY_HOST, "OSError: [Errno 12] Cannot allocate memory"},
        {MEMORY_HOST, "RuntimeError: DataLoader worker (pid 4) is killed by signal: Killed."},
        {MEMORY_HOST, "OOM when allocating tensor with shape[8] on "
                      "/job:localhost/replica:0/task:0/device:CPU:0 by allocator cpu"},
        {MEMORY_HOST, "slurmstepd: error: Detected 1 oom_kill event in StepId=7.0. Some of the step tasks "
                      "have been OOM Killed."},
        {MEMORY_HOST, "Exception in thread \"main\" java.lang.OutOfMemoryError: Java heap space"},
        {MEMORY_NONE, ""},
        {MEMORY_NONE, "epoch 3: memory 12.1 GiB, loss 0.3"},
        {MEMORY_NONE, "    except MemoryError:"},
        {MEMORY_NONE, "grpc._channel._InactiveRpcError: StatusCode.RESOURCE_EXHAUSTED"},
        {MEMORY_NONE, "google.api_core.exceptions.ResourceExhausted: 429 RESOURCE_EXHAUSTED: Quota exceeded"},
        {MEMORY_NONE, "Allocator (GPU_0_bfc) ran out of memory trying to allocate 2.2GiB. The caller "
                      "indicates that this is "
                      "not a failure, but"},
        {MEMORY_GPU, "2026-01-02 03:04 | CUDA out of memory. Tried to allocate 2 GiB"},
        {MEMORY_GPU, "CUDA failed with error out of memory"},
        {MEMORY_NONE, "lower the batch if you see CUDA out of memory"},
        {MEMORY_NONE, "hint: to avoid a CUDA out of memory error, lower the batch size"},
        {MEMORY_NONE, "a smaller batch helps against CUDA out of memory"},
        {MEMORY_NONE, "lower the batch if you see torch.OutOfMemoryError"},
        {MEMORY_NONE, "ValueError: Allocation failed to converge"},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        const char *words = NULL;
        enum memory_kind kind = memory_words_in(rows[i].line, &words);

        if (kind != rows[i].kind)
            fail_msg("'%s': %d, expected %d", rows[i].line, kind, rows[i].kind);
        assert_true(kind == MEMORY_NONE || strstr(rows[i].line, words) != NULL);
    }
}

/* In pieces of any length, at any place of a line of any length, and in two lines for two. */
static void test_pieces(void **state)
{
    static const char said[] = "Error: CUDA out of memory. Tried";
    static char text[3 * MEMORY_LINE_MAX];
    static struct memory_words words;

    (void)state;
    for (size_t at = 0; at + sizeof said < sizeof text; at += 37) {
        for (size_t piece = 1; piece <= sizeof text; piece = 3 * piece + 1) {
            struct memory_seen seen = {.count = {0}};

            memset(text, at % 2 == 0 ? 'x' : '\0', sizeof text);
            memcpy(text + at, said, sizeof said - 1);
            words = (struct memory_words){.told = NULL};
            for (size_t from = 0; from < sizeof text; from += piece)
                memory_words_take(&words, text + from,
                                  sizeof text - from < piece ? sizeof text - from : piece, &seen);
            memory_words_end(&words, &seen);
            if (seen.count[MEMORY_GPU] < 1 || seen.count[MEMORY_GPU] > 2 || seen.count[MEMORY_HOST] != 0)
                fail_msg("at %zu, in pieces of %zu: %llu", at, piece,
                         (unsigned long long)seen.count[MEMORY_GPU]);
        }
        if (at == 37 * 8) /* the borders are what matters */
            at = MEMORY_LINE_MAX - 37 * 10;
        else if (at > MEMORY_LINE_MAX + 37 * 10)
            break;
    }
}

static void test_lines_and_patterns(void **state)
{
    static struct memory_words words;
    struct memory_seen seen = {.count = {0}};
    static const char text[] = "\rOOM!\r\nMemoryError\nCUDA out of \nmemory\n\nno room, OOM!";
    regex_t told;

    (void)state;
    assert_int_equal(regcomp(&told, "^OOM!$|^no room", REG_EXTENDED), 0);
    words = (struct memory_words){.told = &told};
    memory_words_take(&words, text, sizeof text - 1, &seen);
    assert_int_equal(seen.count[MEMORY_TOLD], 1);
    memory_words_end(&words, &seen);
    memory_words_end(&words, &seen);
    assert_int_equal(seen.count[MEMORY_TOLD], 2);
    assert_int_equal(seen.count[MEMORY_HOST], 1);
    assert_int_equal(seen.count[MEMORY_GPU], 0);
    assert_string_equal(seen.words[MEMORY_HOST], "MemoryError");
    regfree(&told);
}

#define TRACEBACK "Traceback (most recent call last):\n  File \"a.py\", line 1, in <module>\n    f()\n"
#define OOM "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2 GiB\n"

/* The exception that a program ends with decides, unless it follows from the one of memory. */
static void test_tracebacks(void **state)
{
    static const struct {
        const char *text;
        uint64_t gpu;
    } rows[] = {
        {TRACEBACK OOM, 1},
        {OOM TRACEBACK "ValueError: no such layer\n", 0},
        {"RuntimeError: CUDA out of memory, said in passing\n" TRACEBACK "KeyError", 0},
        {TRACEBACK OOM "skipped that batch\n" TRACEBACK "ValueError: no such layer\n", 0},
        {TRACEBACK "ValueError: caught\n" TRACEBACK OOM, 1},
        {TRACEBACK "    raise torch.OutOfMemoryError\nValueError: no such layer\n", 0},
        {TRACEBACK OOM "\nThe above exception was the direct cause of the following exception:\n\n" TRACEBACK
                       "RuntimeError: step 3 failed\n",
         1},
        {TRACEBACK OOM "\nDuring handling of the above exception, another exception occurred:\n\n" TRACEBACK
                       "TypeError: in the handler\n",
         1},
        {TRACEBACK OOM TRACEBACK "torch.distributed.elastic.multiprocessing.errors.ChildFailedError: \n", 1},
        {TRACEBACK OOM TRACEBACK "subprocess.CalledProcessError: Command '[]' returned 1\n", 1},
        {"[rank0]: Traceback (most recent call last):\n[rank0]:   File \"a.py\"\n[rank0]: " OOM
         "[rank1]: Traceback (most recent call last):\n[rank1]:   File \"a.py\"\n"
         "[rank1]: torch.distributed.DistBackendError: NCCL error\n",
         1},
        {"[rank0]: RuntimeError: CUDA out of memory\n[rank1]: Traceback (most recent call last):\n"
         "[rank1]:   File \"a.py\"\n[rank1]: ValueError: no\n",
         1},
        {"[rank0]: RuntimeError: CUDA out of memory\n[rank0]: Traceback (most recent call last):\n"
         "[rank0]:   File \"a.py\"\n[rank0]: ValueError: no\n",
         0},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        static struct memory_words words;
        struct memory_seen seen = {.count = {0}};

        words = (struct memory_words){.told = NULL};
        memory_words_take(&words, rows[i].text, strlen(rows[i].text), &seen);
        memory_words_end(&words, &seen);
        if (memory_seen_since(&seen, MEMORY_GPU, 0) != rows[i].gpu)
            fail_msg("row %zu: %llu, expected %llu", i,
                     (unsigned long long)memory_seen_since(&seen, MEMORY_GPU, 0),
                     (unsigned long long)rows[i].gpu);
    }
}

#define V2_MOUNT "42 41 0:29 / /sys/fs/cgroup rw,relatime shared:4 - cgroup2 cgroup2 rw,nsdelegate\n"
#define V1_MOUNTS                                                                \
    "31 23 0:28 / /sys/fs/cgroup rw - tmpfs tmpfs rw,mode=755\n"                 \
    "34 31 0:31 / /sys/fs/cgroup/cpuset rw - cgroup cgroup rw,cpuset\n"          \
    "35 31 0:32 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory\n" \
    "41 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n"

/* Whose counter it is, by what the kernel tells of cgroups and mounts. */
static void test_files(void **state)
{
    static const struct {
        const char *cgroups, *mounts, *file; /* NULL: none */
    } rows[] = {
        {"0::/user.slice/a.scope\n", V2_MOUNT, "/sys/fs/cgroup/user.slice/a.scope/memory.events"},
        {"0::/\n", V2_MOUNT, "/sys/fs/cgroup/memory.events"},
        {"0::/a b\n", "1 2 0:1 / /with\\040blank rw - cgroup2 none rw\n", "/with blank/a b/memory.events"},
        /* A container that sees its part of the tree alone. */
        {"0::/docker/abc/inner\n", "1 2 0:1 /docker/abc /sys/fs/cgroup rw - cgroup2 none rw\n",
         "/sys/fs/cgroup/inner/memory.events"},
        {"0::/docker/abcd\n", "1 2 0:1 /docker/abc /sys/fs/cgroup rw - cgroup2 none rw\n", NULL},
        {"0::/../other\n", V2_MOUNT, NULL},
        {"4:memory:/job_7/step_0\n3:cpuset:/else\n0::/\n", V1_MOUNTS,
         "/sys/fs/cgroup/memory/job_7/step_0/memory.oom_control"},
        {"9:cpu,memory:/x\n", "1 2 0:1 / /m rw - cgroup cgroup rw,cpu,memory\n", "/m/x/memory.oom_control"},
        {"9:memory2:/x\n", "1 2 0:1 / /m rw - cgroup cgroup rw,memory\n", NULL},
        {"1:name=systemd:/x\n", V1_MOUNTS, NULL},
        {"", V2_MOUNT, NULL},
        {"0::/a\n", "", NULL},
        {"nonsense\n::\n:\n", "- - -\n\n", NULL},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        char file[HOST_MEMORY_PATH_MAX] = "";
        bool found = host_memory_find(rows[i].cgroups, rows[i].mounts, file);

        if (found != (rows[i].file != NULL) || (found && strcmp(file, rows[i].file) != 0))
            fail_msg("row %zu: '%s', expected '%s'", i, found ? file : "",
                     rows[i].file != NULL ? rows[i].file : "");
    }
}

static void put_cgroup(const char *text)
{
    char path[64];

    snprintf(path, sizeof path, "proc/%d/cgroup", PID);
    fake_tree_put(path, text);
}

/* What was counted before the program is not its; a program that changes its cgroup is followed. */
static void test_kills(void **state)
{
    static struct host_memory memory;

    (void)state;
    fake_tree_make();
    memory = (struct host_memory){.root = fake_tree_root()};
    host_memory_look(&memory, PID);
    assert_int_equal(host_memory_kills(&memory), 0); /* nothing is known */
    fake_tree_put("proc/self/mountinfo", V2_MOUNT);
    fake_tree_put("sys/fs/cgroup/a/memory.events", "low 0\nmax 9\noom 3\noom_kill 2\noom_group_kill 1\n");
    fake_tree_put("sys/fs/cgroup/b/memory.events", "oom 0\noom_kill 5\n");
    put_cgroup("0::/a\n");
    host_memory_look(&memory, PID);
    assert_int_equal(host_memory_kills(&memory), 0);
    fake_tree_put("sys/fs/cgroup/a/memory.events", "oom 4\noom_kill 3\n");
    put_cgroup("0::/b\n");
    host_memory_look(&memory, PID);
    assert_int_equal(host_memory_kills(&memory), 1);
    fake_tree_put("sys/fs/cgroup/a/memory.events", "oom 9\noom_kill 9\n"); /* somebody else's by now */
    fake_tree_put("sys/fs/cgroup/b/memory.events", "oom 7\noom_kill 7\n");
    assert_int_equal(host_memory_kills(&memory), 3);
    /* A process that has ended has no cgroup; the file may go with it. */
    fake_tree_delete("sys/fs/cgroup/b/memory.events");
    host_memory_look(&memory, PID + 1);
    assert_int_equal(host_memory_kills(&memory), 3);
    /* Version 1. */
    fake_tree_put("proc/self/mountinfo", V1_MOUNTS);
    fake_tree_put("sys/fs/cgroup/memory/c/memory.oom_control",
                  "oom_kill_disable 0\nunder_oom 0\noom_kill 4\n");
    memory = (struct host_memory){.root = fake_tree_root()};
    put_cgroup("4:memory:/c\n0::/\n");
    host_memory_look(&memory, PID);
    fake_tree_put("sys/fs/cgroup/memory/c/memory.oom_control",
                  "oom_kill_disable 0\nunder_oom 0\noom_kill 5\n");
    assert_int_equal(host_memory_kills(&memory), 1);
    fake_tree_remove();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_words),
        cmocka_unit_test(test_pieces),
        cmocka_unit_test(test_lines_and_patterns),
        cmocka_unit_test(test_tracebacks),
        cmocka_unit_test(test_files),
        cmocka_unit_test(test_kills),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
