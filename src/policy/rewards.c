/* SPDX-License-Identifier: Apache-2.0 */
#include "policy/rewards.h"

bool rewards_init(struct rewards *rewards, uint32_t window, struct arena *arena)
{
    *rewards = (struct rewards){.window = window};
    if (window > 0)
        rewards->ring = arena_alloc(arena, window, sizeof rewards->ring[0]);
    return window == 0 || rewards->ring != NULL;
}

static void refit_window(struct rewards *rewards)
{
    uint64_t count = rewards_count(rewards);
    double sum = 0.0, squares = 0.0;

    for (uint64_t i = 0; i < count; i++)
        sum += rewards->ring[i];
    rewards->mean = sum / (double)count;
    for (uint64_t i = 0; i < count; i++) {
        double distance = rewards->ring[i] - rewards->mean;

        squares += distance * distance;
    }
    rewards->variance = squares / (double)count;
}

void rewards_add(struct rewards *rewards, double reward)
{
    double before = rewards->mean;

    if (rewards->window > 0) {
        rewards->ring[rewards->seen++ % rewards->window] = reward;
        refit_window(rewards);
        return;
    }
    rewards->seen++;
    rewards->mean += (reward - before) / (double)rewards->seen;
    rewards->squares += (reward - before) * (reward - rewards->mean);
    rewards->variance = rewards->squares / (double)rewards->seen;
}

void rewards_save(const struct rewards *rewards, struct buffer *bytes)
{
    bytes_put_u64(bytes, rewards->seen);
    bytes_put_double(bytes, rewards->mean);
    bytes_put_double(bytes, rewards->variance);
    bytes_put_double(bytes, rewards->squares);
    for (uint64_t i = 0; rewards->window > 0 && i < rewards_count(rewards); i++)
        bytes_put_double(bytes, rewards->ring[i]);
}

bool rewards_load(struct rewards *rewards, struct bytes_reader *bytes)
{
    rewards->seen = bytes_u64(bytes);
    rewards->mean = bytes_double(bytes);
    rewards->variance = bytes_double(bytes);
    rewards->squares = bytes_double(bytes);
    for (uint64_t i = 0; rewards->window > 0 && i < rewards_count(rewards); i++)
        rewards->ring[i] = bytes_double(bytes);
    return !bytes->failed;
}
