/* SPDX-License-Identifier: Apache-2.0 */
#include "http/traffic.h"

#include <string.h>

#include "http/prometheus.h"

enum family { REQUESTS, CONNECTIONS, IN_FLIGHT };
static const struct meaning families[] = {
    [REQUESTS] = {"flyball_http_requests_total", "", MEANING_WHOLE, 0, NULL, MEANING_COUNTER,
                  "Requests that were answered, by family of routes and status."},
    [CONNECTIONS] = {"flyball_http_connections", "", MEANING_WHOLE, 0, NULL, MEANING_GAUGE,
                     "Connections that are open."},
    [IN_FLIGHT] = {"flyball_http_requests_in_flight", "", MEANING_WHOLE, 0, NULL, MEANING_GAUGE,
                   "Requests that are being read or answered, this one among them."},
};
const struct quantities traffic_quantities = {"a metric of the service", QUANTITIES(families)};

void traffic_init(struct traffic *traffic)
{
    *traffic = (struct traffic){.answers_count = 0};
    pthread_mutex_init(&traffic->lock, NULL);
}

void traffic_deinit(struct traffic *traffic)
{
    pthread_mutex_destroy(&traffic->lock);
}

/* Returns the place of a family and a status, which is made if it is new; NULL: there are too many. */
static struct traffic_answers *find(struct traffic *traffic, const char *family, int status)
{
    struct traffic_answers *at = traffic->answers, *end = at + traffic->answers_count;

    while (at < end && (at->status != status || strcmp(at->family, family) != 0))
        at++;
    if (at < end)
        return at;
    if (traffic->answers_count == TRAFFIC_ANSWERS_MAX)
        return NULL;
    traffic->answers_count++;
    *at = (struct traffic_answers){.family = family, .status = status};
    return at;
}

void traffic_count(struct traffic *traffic, const char *family, int status)
{
    struct traffic_answers *answers;

    pthread_mutex_lock(&traffic->lock);
    answers = find(traffic, family, status);
    if (answers != NULL)
        answers->count++;
    pthread_mutex_unlock(&traffic->lock);
}

static void write_answers(struct traffic *traffic, struct buffer *text)
{
    prometheus_head(text, &families[REQUESTS]);
    pthread_mutex_lock(&traffic->lock);
    for (size_t i = 0; i < traffic->answers_count; i++)
        buffer_printf(text, "%s{family=\"%s\",status=\"%d\"} %llu\n", families[REQUESTS].key,
                      traffic->answers[i].family, traffic->answers[i].status,
                      (unsigned long long)traffic->answers[i].count);
    pthread_mutex_unlock(&traffic->lock);
}

void traffic_write(struct traffic *traffic, size_t connections, size_t requests, struct buffer *text)
{
    write_answers(traffic, text);
    prometheus_head(text, &families[CONNECTIONS]);
    buffer_printf(text, "%s %zu\n", families[CONNECTIONS].key, connections);
    prometheus_head(text, &families[IN_FLIGHT]);
    buffer_printf(text, "%s %zu\n", families[IN_FLIGHT].key, requests);
}
