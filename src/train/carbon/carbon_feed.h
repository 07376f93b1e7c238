/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_TRAIN_CARBON_CARBON_FEED_H
#define FLYBALL_TRAIN_CARBON_CARBON_FEED_H

#include <stdbool.h>

#include "base/clock.h"
#include "grid/outlook.h"

/*
 * The grid's figures as they come: read at once from the cache and from files, then by a
 * thread of its own from the network too, after each border of five minutes and, where something
 * failed, every two minutes; how often a service is really asked the cache decides (grid/ask_rule.h).
 * Each answer reaches from GRID_FORECAST_DAYS ago as far ahead as there is something.
 *
 *     carbon_feed_open(&options, &feed, out_error);
 *     if (carbon_feed_take(feed, answers)) ...
 *     carbon_feed_close(feed);
 *
 * What was read once stays where a later reading fails. Close waits for no answer: it
 * tells the thread to give up, which takes it a twentieth of a second, and lets go of it where it does not
 * within one second, because a name server or a network's file system holds it; it then ends by itself.
 * In a child after fork only close may be called.
 */
struct carbon_feed;

enum { CARBON_SOURCE_MAX = 256 };

struct carbon_feed_options {
    char sources[CARBON_SIGNALS][CARBON_SOURCE_MAX]; /* "" for none */
    const struct clock *clock;                       /* real where there is a thread */
    bool threadless;                                 /* carbon_feed_turn is called instead */
    bool cached_only;                                /* never asks the network */
};

/*
 * FLY_EUSAGE for a source that cannot be one: a file that cannot be read, a number that is none, a
 * provider that does not have such figures. FLY_ENOMEM.
 */
int carbon_feed_open(const struct carbon_feed_options *options, struct carbon_feed **out_feed,
                     struct fly_error *out_error);

/* Whether anything came since the last call; answers stay until the next one. Waits for nothing. */
bool carbon_feed_take(struct carbon_feed *feed, const struct grid_answer *out_answers[CARBON_SIGNALS]);

/* Why figures are missing or old; "" for nothing. */
void carbon_feed_text(struct carbon_feed *feed, char text[FLY_ERROR_TEXT_MAX]);

/* Reads what is due by now, waiting for the network. Without a thread only. */
void carbon_feed_turn(struct carbon_feed *feed);

/* What is under way is to be given up, and nothing more begun. */
void carbon_feed_abandon(struct carbon_feed *feed);
void carbon_feed_close(struct carbon_feed *feed); /* accepts NULL */

#endif
