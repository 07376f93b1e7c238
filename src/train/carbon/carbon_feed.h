/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_TRAIN_CARBON_CARBON_FEED_H
#define FLYBALL_TRAIN_CARBON_CARBON_FEED_H

#include <stdbool.h>

#include "base/clock.h"
#include "grid/forecast.h"

/*
 * Brings the grid's figures as they come: reads them at once from the cache and from files. Then a thread
 * reads them from the network too, after each border of five minutes and, when something failed, every two
 * minutes; the cache decides how often it really asks a service (grid/grid_cache.h). Each answer reaches from
 * GRID_FORECAST_DAYS ago as far ahead as there are figures.
 *
 *     carbon_feed_open(&options, &feed, out_error);
 *     if (carbon_feed_take(feed, answers)) ...
 *     carbon_feed_close(feed);
 *
 * Figures that were read once stay when a later reading fails. Closing waits for no answer: it tells the
 * thread to give up, which takes a twentieth of a second. If a name server or a network file system holds the
 * thread for more than one second, close leaves it running, and it ends by itself. In a child after a fork,
 * call nothing but close.
 */
struct carbon_feed;

enum { CARBON_SOURCE_MAX = 256 };

struct carbon_feed_options {
    char sources[CARBON_SIGNALS][CARBON_SOURCE_MAX]; /* "" for none */
    const struct clock *clock;                       /* a real clock when there is a thread */
    bool threadless;                                 /* no thread: the caller calls carbon_feed_turn */
    bool cached_only;                                /* never asks the network */
};

/*
 * Opens the feed. Returns FLY_EUSAGE for an impossible source (an unreadable file, a number that is none, a
 * provider without such figures), or FLY_ENOMEM.
 */
int carbon_feed_open(const struct carbon_feed_options *options, struct carbon_feed **out_feed,
                     struct fly_error *out_error);

/*
 * Whether anything came since the last call; stores the answers, which stay until the next call. Never waits.
 */
bool carbon_feed_take(struct carbon_feed *feed, const struct grid_answer *out_answers[CARBON_SIGNALS]);

/* Writes why figures are missing or old; "" when there is nothing to say. */
void carbon_feed_text(struct carbon_feed *feed, char text[FLY_ERROR_TEXT_MAX]);

/* Reads what is due by now, and waits for the network. Only for a feed without a thread. */
void carbon_feed_turn(struct carbon_feed *feed);

/* Gives up what is under way, and begins nothing more. */
void carbon_feed_abandon(struct carbon_feed *feed);
void carbon_feed_close(struct carbon_feed *feed); /* accepts NULL */

#endif
