/* SPDX-License-Identifier: Apache-2.0 */
/* What jobs with the same batch sizes share, by one thread and by several. */
#include <pthread.h>
#include <string.h>

#include "test.h"

#include "policy/bayes_belief.h"
#include "policy/law/bayes_laws.h"

enum { N = 5, THREADS = 4, ROUNDS = 200, KINDS = 3 };

static const uint32_t sizes[KINDS][N] = {{8, 16, 32, 64, 128}, {10, 20, 40, 80, 160}, {8, 16, 32, 64, 256}};

static const struct bayes_laws *borrow(const uint32_t *of, size_t default_batch)
{
    const struct belief_prior *prior = &belief_prior_default;
    const struct bayes_laws *laws =
        bayes_laws_borrow(&prior->epochs, &prior->epoch_cost, of, N, default_batch);

    assert_non_null(laws);
    return laws;
}

static void test_the_same_sizes_share(void **state)
{
    const struct bayes_laws *one = borrow(sizes[0], 2), *two = borrow(sizes[0], 2);
    uint32_t copy[N];

    (void)state;
    memcpy(copy, sizes[0], sizeof copy);
    assert_ptr_equal(one, two);
    bayes_laws_return(one);
    assert_ptr_equal(borrow(copy, 2), two);
    check_double(two->octaves[2], 0.0);
    check_close(two->octaves[4], 2.0, 1e-12);
    bayes_laws_return(two);
    bayes_laws_return(two);
}

/* Other sizes, another default or another prior lead to other laws. */
static void test_what_differs_does_not_share(void **state)
{
    struct law_prior prior = belief_prior_default.epochs;
    const struct bayes_laws *laws[4] = {borrow(sizes[0], 2), borrow(sizes[0], 1), borrow(sizes[2], 2)};

    (void)state;
    prior.nugget = 0.03;
    laws[3] = bayes_laws_borrow(&prior, &belief_prior_default.epoch_cost, sizes[0], N, 2);
    assert_non_null(laws[3]);
    prior.nugget = 0.5; /* it was copied */
    check_double(laws[3]->epochs.prior->nugget, 0.03);
    for (size_t i = 0; i < COUNT(laws); i++) {
        for (size_t j = 0; j < i; j++)
            assert_ptr_not_equal(laws[i], laws[j]);
    }
    for (size_t i = 0; i < COUNT(laws); i++)
        bayes_laws_return(laws[i]);
}

/* However many jobs there were, few laws that nobody uses stay. */
static void test_few_are_spare(void **state)
{
    const struct bayes_laws *used = borrow(sizes[0], 2);

    (void)state;
    for (uint32_t i = 1; i <= 40; i++) {
        const uint32_t own[N] = {i, 2 * i, 3 * i, 4 * i, 5 * i};

        bayes_laws_return(borrow(own, 0));
    }
    assert_int_equal(bayes_laws_held(), 1 + BAYES_LAWS_SPARE);
    assert_ptr_equal(borrow(sizes[0], 2), used);
    bayes_laws_return(used);
    bayes_laws_return(used);
}

/* Borrows, fits and returns; the sum of all means tells whether another thread came between. */
static double fit_alone(size_t kind)
{
    struct law_evidence evidence[N] = {{0}};
    double mean[N], covariance[N * (N + 1) / 2], sum = 0.0;
    const struct bayes_laws *laws = borrow(sizes[kind], 2);

    evidence[1] = (struct law_evidence){50.0, 3.0};
    evidence[3] = (struct law_evidence){80.0, 4.0};
    law_mixture_fit(&laws->epochs, evidence, mean, covariance);
    for (size_t i = 0; i < N; i++)
        sum += mean[i];
    bayes_laws_return(laws);
    return sum;
}

struct worker {
    double expected[KINDS];
    unsigned wrong;
};

static void *work(void *opaque)
{
    struct worker *worker = opaque;

    for (size_t i = 0; i < ROUNDS; i++)
        worker->wrong += fit_alone(i % KINDS) != worker->expected[i % KINDS];
    return NULL;
}

static void test_threads(void **state)
{
    struct worker workers[THREADS] = {0};
    pthread_t threads[THREADS];

    (void)state;
    for (size_t i = 0; i < THREADS; i++) {
        for (size_t kind = 0; kind < KINDS; kind++)
            workers[i].expected[kind] = fit_alone(kind);
    }
    for (size_t i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, work, &workers[i]), 0);
    for (size_t i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
        assert_int_equal(workers[i].wrong, 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_same_sizes_share),
        cmocka_unit_test(test_what_differs_does_not_share),
        cmocka_unit_test(test_few_are_spare),
        cmocka_unit_test(test_threads),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
