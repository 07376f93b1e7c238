/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/kit/progress.h"

#include <inttypes.h>

static const double delay_s = PROGRESS_DELAY_MS / 1e3;
static const double interval_s = PROGRESS_INTERVAL_MS / 1e3;

void progress_begin(struct progress *progress, FILE *stream, const char *unit, uint64_t total)
{
    *progress = (struct progress){.total = total, .unit = unit, .stream = stream};
    atomic_init(&progress->done, 0);
    progress->start = progress->drawn = mono_now();
}

void progress_add(struct progress *progress, uint64_t count)
{
    atomic_fetch_add_explicit(&progress->done, count, memory_order_relaxed);
}

static void progress_draw(const struct progress *progress, double elapsed_s)
{
    uint64_t done = atomic_load_explicit(&progress->done, memory_order_relaxed);

    fprintf(progress->stream, "\r%" PRIu64, done);
    if (progress->total > 0)
        fprintf(progress->stream, " of %" PRIu64, progress->total);
    fprintf(progress->stream, " %s", progress->unit);
    if (progress->total > 0)
        fprintf(progress->stream, " (%.0f%%)", 100.0 * (double)done / (double)progress->total);
    fprintf(progress->stream, ", %.0f s\033[K", elapsed_s);
    fflush(progress->stream);
}

void progress_tick_at(struct progress *progress, struct mono_time now)
{
    double elapsed_s = mono_elapsed_s(progress->start, now);

    if (progress->stream == NULL || elapsed_s < delay_s)
        return;
    if (progress->visible && mono_elapsed_s(progress->drawn, now) < interval_s)
        return;
    progress_draw(progress, elapsed_s);
    progress->drawn = now;
    progress->visible = true;
}

void progress_tick(struct progress *progress)
{
    progress_tick_at(progress, mono_now());
}

void progress_end(struct progress *progress)
{
    if (progress->visible) {
        fputs("\r\033[K", progress->stream);
        fflush(progress->stream);
    }
    progress->visible = false;
}
