/* SPDX-License-Identifier: Apache-2.0 */
#include "rank_join.h"

#include "test.h"

#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

void *rank_memory(size_t size)
{
    /* cppcheck-suppress invalidFunctionArg ; -1 is what a mapping without a file wants */
    void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    assert_ptr_not_equal(memory, MAP_FAILED);
    return memory;
}

void rank_join_init(struct rank_join *join)
{
    pthread_barrierattr_t shared;

    pthread_barrierattr_init(&shared);
    pthread_barrierattr_setpshared(&shared, PTHREAD_PROCESS_SHARED);
    pthread_barrier_init(&join->barrier, &shared, RANKS);
}

int rank_all_reduce(void *data, double *sums, size_t sum_count, double *maxima, size_t max_count)
{
    const struct rank *rank = data;
    struct rank_join *join = rank->join;

    memcpy(join->sums[rank->number], sums, sum_count * sizeof *sums);
    memcpy(join->maxima[rank->number], maxima, max_count * sizeof *maxima);
    pthread_barrier_wait(&join->barrier);
    for (size_t i = 0; i < sum_count; i++) {
        sums[i] = 0.0;
        for (int other = 0; other < RANKS; other++)
            sums[i] += join->sums[other][i];
    }
    for (size_t i = 0; i < max_count; i++) {
        for (int other = 0; other < RANKS; other++)
            maxima[i] = fmax(maxima[i], join->maxima[other][i]);
    }
    pthread_barrier_wait(&join->barrier);
    return 0;
}

void rank_processes(void (*work)(void *data, int number), void *data)
{
    pid_t processes[RANKS];

    for (int i = 0; i < RANKS; i++) {
        processes[i] = fork();
        assert_int_not_equal(processes[i], -1);
        if (processes[i] == 0) {
            alarm(60);
            setenv("CMOCKA_TEST_ABORT", "1", 1); /* no other test is for a child */
            work(data, i);
            _exit(0);
        }
    }
    for (int i = 0; i < RANKS; i++) {
        int status = -1;

        assert_int_equal(waitpid(processes[i], &status, 0), processes[i]);
        assert_int_equal(status, 0);
    }
}
