/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_TESTS_TRAIN_RANK_JOIN_H
#define FLYBALL_TESTS_TRAIN_RANK_JOIN_H

#include <pthread.h>
#include <stddef.h>

/* Ranks as processes, joined as by an all-reduce: in memory that they share. */
enum { RANKS = 3, JOINED_MAX = 32 };

struct rank_join {
    pthread_barrier_t barrier;
    double sums[RANKS][JOINED_MAX], maxima[RANKS][JOINED_MAX];
};

struct rank {
    struct rank_join *join;
    int number;
};

/* Zeroed memory of that many bytes, which children share. */
void *rank_memory(size_t size);
void rank_join_init(struct rank_join *join);
/* For options.all_reduce; `data` is a struct rank. */
int rank_all_reduce(void *data, double *sums, size_t sum_count, double *maxima, size_t max_count);
/* Starts a process per rank that does this work and ends; fails the test unless all end well. */
void rank_processes(void (*work)(void *data, int number), void *data);

#endif
