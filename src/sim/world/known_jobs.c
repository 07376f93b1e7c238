/* SPDX-License-Identifier: Apache-2.0 */
/* The jobs of the Zeus paper with their published defaults (You et al., NSDI '23, table 1). */
#include "sim/world/job_description.h"

#define JOB(name_and_dataset, network_, optimizer_, target, epochs, batch)                                   \
    {                                                                                                        \
        .name = name_and_dataset, .dataset = name_and_dataset, .network = network_, .optimizer = optimizer_, \
        .target_metric = target, .max_epochs = epochs, .default_batch_size = batch, .default_fits_gpu = true \
    }

const struct job_description known_jobs[] = {
    JOB("cifar100", "shufflenetv2", "adadelta", 0.6, 100, 1024),
    JOB("imagenet", "resnet50", "adadelta", 0.65, 100, 256),
    JOB("squad", "bert_base_uncased", "adamw", 84.0, 6, 32),
    JOB("librispeech", "deepspeech2", "adamw", 40.0, 16, 256), /* word error rate: lower is better */
    JOB("movielens-1m", "ncf", "adam", 0.41, 100, 1024),
    JOB("sentiment140", "bert_base_uncased", "adamw", 0.84, 10, 128),
};

const size_t known_job_count = sizeof known_jobs / sizeof known_jobs[0];
