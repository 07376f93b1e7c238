/* SPDX-License-Identifier: Apache-2.0 */
/* Asks what to run, and begins and ends the try; names its directory. */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "meter/meter.h"
#include "train/program/run_variables.h"
#include "train/program/step_writer.h"
#include "train/session/session_private.h"

/* A directory for each try. Attempts of one trial share it; tries with different batch sizes never do. */

static const char usual[] = "flyball-tries";

/* Of directories of one name that other logs left behind. */
enum { COPIES_MAX = 10000 };

/* 52 bits, which a double holds: numbers are what ranks can share. */
static uint64_t mixed(uint64_t hash, const char *text)
{
    for (; *text != '\0'; text++)
        hash = (hash ^ (unsigned char)*text) * 0x100000001b3U;
    return hash & 0xfffffffffffffU;
}

void session_directory_open(struct fly_session *session)
{
    const char *given = session->options.tries_directory;
    const char *below = given != NULL && given[0] != '\0' ? given : usual;
    char here[SESSION_PATH_MAX] = "";
    int length;

    if (below[0] != '/' && getcwd(here, sizeof here) == NULL)
        return;
    length = snprintf(session->tries_directory, sizeof session->tries_directory, "%s%s%s", here,
                      below[0] != '/' ? "/" : "", below);
    if (length < 0 || (size_t)length >= sizeof session->tries_directory)
        session->tries_directory[0] = '\0';
}

/* Names the directory of a trial, or of a training that the log does not know; false: too long. */
static bool name(const struct fly_session *session, uint64_t number, uint64_t copy,
                 char out_path[SESSION_PATH_MAX])
{
    char suffix[24] = "";
    int length;

    if (copy > 1)
        snprintf(suffix, sizeof suffix, "-%" PRIu64, copy);
    length = snprintf(out_path, SESSION_PATH_MAX,
                      session->known ? "%s/%s/trial-%" PRIu64 "%s" : "%s/%s/run-%" PRIx64 "%s",
                      session->tries_directory, session->options.job.name, number, suffix);
    return length >= 0 && length < SESSION_PATH_MAX;
}

static bool is_there(const struct fly_session *session, uint64_t number, uint64_t copy)
{
    char path[SESSION_PATH_MAX];
    struct stat status;

    return name(session, number, copy, path) && stat(path, &status) == 0;
}

/*
 * A trial's number comes again when its log was deleted. So a first attempt takes a name that is not there,
 * and later ones take the newest.
 */
static uint64_t copy_of(const struct fly_session *session, uint64_t number)
{
    uint64_t copy = 1;

    if (!session->known)
        return copy;
    while (copy < COPIES_MAX && is_there(session, number, copy))
        copy++;
    return session->proposal.attempt > 1 && copy > 1 ? copy - 1 : copy;
}

/* Without a trial: of the run, which stays when it is requeued, or of this request. */
static uint64_t number_of(const struct fly_session *session)
{
    char batch_size[16];

    if (session->known)
        return session->proposal.trial;
    snprintf(batch_size, sizeof batch_size, "/%" PRIu32, session->proposal.batch_size);
    return mixed(mixed(0xcbf29ce484222U, session->run[0] != '\0' ? session->run : session->request),
                 batch_size);
}

/* Names this try's directory, which is made when somebody asks for it. Collective. */
static void session_directory_choose(struct fly_session *session)
{
    const char *told = session->inside ? run_variable(RUN_VARIABLE_TRY_DIRECTORY) : NULL;
    uint64_t number = number_of(session);
    double shared[] = {(double)number, (double)copy_of(session, number)};

    session->directory[0] = '\0';
    session_share(session, shared, sizeof shared / sizeof shared[0]);
    if (told != NULL && strlen(told) < sizeof session->directory)
        memcpy(session->directory, told, strlen(told) + 1);
    else if (session->tries_directory[0] == '\0' ||
             !name(session, (uint64_t)shared[0], (uint64_t)shared[1], session->directory))
        session->directory[0] = '\0';
}

/* Makes the directory and those above it; 0 or errno. */
static int make(const char *path)
{
    char above[SESSION_PATH_MAX];
    struct stat status;

    snprintf(above, sizeof above, "%s", path);
    for (char *at = strchr(above + 1, '/'); at != NULL; at = strchr(at + 1, '/')) {
        *at = '\0';
        (void)mkdir(above, 0777); /* the last one says what is wrong */
        *at = '/';
    }
    if (mkdir(path, 0777) == 0)
        return 0;
    return errno == EEXIST && stat(path, &status) == 0 && S_ISDIR(status.st_mode) ? 0 : errno;
}

int fly_session_directory(const struct fly_session *session, char *out_path, size_t capacity,
                          struct fly_error *out_error)
{
    size_t length = strlen(session->directory);
    int code;

    if (length == 0 || length >= capacity)
        return error_set(
            out_error, FLY_ELIMIT,
            "session: the path of a try's directory is too long; give a shorter tries_directory");
    code = make(session->directory);
    if (code != 0)
        return error_set(out_error, FLY_EWRITE, "session: cannot make the directory '%.200s': %s",
                         session->directory, strerror(code));
    memcpy(out_path, session->directory, length + 1);
    return 0;
}

static const char not_asked[] =
    "it did not answer when this training began: the default was run, and goes on record "
    "when it answers";

/* Makes a name that is unique to this question, so that the log recognizes a repetition. */
static void name_request(struct fly_session *session)
{
    session->asked++;
    if (session->inside) {
        snprintf(session->request, sizeof session->request, "%s", run_variable(RUN_VARIABLE_REQUEST));
        return;
    }
    snprintf(session->request, sizeof session->request, "%.64s-%d-%" PRId64 "-%u", session->host,
             (int)getpid(), clock_real.date(clock_real.state).ns, session->asked);
    if (session->submission[0] == '\0')
        memcpy(session->submission, session->request, sizeof session->submission);
}

static const char *gpu_model(const struct fly_session *session)
{
    return session->limit.gpu_count > 0 ? session->limit.gpus[0]->info.name : "none";
}

static struct job_question question_of(const struct fly_session *session, uint32_t gpu_count)
{
    const struct session_limit *limit = &session->limit;
    const struct fly_session_options *options = &session->options;

    return (struct job_question){
        .job = session->options.job.name,
        .request = session->request,
        .run = session->run,
        .submission = session->submission,
        .tries = options->tries == FLY_SESSION_ALWAYS ? 0 : options->tries,
        .recurrences_left = options->recurrences_left,
        .finish_by_us = options->finish_by_unix_s * 1000000,
        .heartbeat_s = session->beat_s,
        .origin = {session->user, session->account, session->host, session->gpus},
        .hardware = {.gpu_model = gpu_model(session),
                     .gpu_count = gpu_count,
                     .gpu_memory_bytes = limit->gpu_memory_bytes,
                     .world_size = session_ranks(session),
                     .limits_w = limit->limits_w,
                     .limit_count = limit->limit_count,
                     .max_power_w = limit->highest_w * gpu_count},
    };
}

/* Chooses what to run when the log cannot say: the default, or what `flyball run --job` was told. */
static void propose_default(struct fly_session *session)
{
    struct job_proposal *proposal = &session->proposal;
    uint32_t told = session->inside ? run_variable_number(RUN_VARIABLE_BATCH_SIZE) : 0;

    *proposal = (struct job_proposal){.batch_size = session->options.job.default_batch_size,
                                      .limit_w = NAN,
                                      .stops_at_target = !session->options.job.trains_on,
                                      .epochs = session->options.job.max_epochs,
                                      .last_try = true,
                                      .known_units_per_epoch = NAN,
                                      .expected_epochs = NAN};
    for (size_t i = 0; i < session->options.job.batch_count; i++) {
        if (session->options.job.batch_sizes[i] == told)
            proposal->batch_size = told;
    }
}

/* Memory of the smallest GPU; 0 when that of one is not known. */
static uint64_t least_memory_bytes(const struct session_limit *limit)
{
    uint64_t least = limit->gpu_count > 0 ? UINT64_MAX : 0;

    for (size_t i = 0; i < limit->gpu_count; i++) {
        uint64_t bytes = limit->gpus[i]->info.memory_bytes;

        least = bytes < least ? bytes : least;
    }
    return least;
}

/* Counts the GPUs of all ranks, and finds the memory of the smallest. */
static uint32_t count_gpus(struct fly_session *session)
{
    double gpus[] = {(double)session->limit.gpu_count},
           less_bytes[] = {-(double)least_memory_bytes(&session->limit)};

    session_join(session, gpus, 1, less_bytes, 1);
    session->limit.gpu_memory_bytes = (uint64_t)-less_bytes[0];
    return (uint32_t)gpus[0];
}

/* Gives all ranks the answer that rank 0 got, as numbers. */
static void share_proposal(struct fly_session *session)
{
    struct job_proposal *proposal = &session->proposal;
    double shared[] = {session->known,
                       (double)proposal->trial,
                       proposal->attempt,
                       (double)proposal->recurrence,
                       proposal->try_number,
                       proposal->last_try,
                       proposal->batch_size,
                       proposal->limit_w,
                       proposal->wants_profile,
                       proposal->stops_at_target,
                       proposal->epochs,
                       proposal->epochs_done,
                       proposal->energy_j,
                       proposal->time_s,
                       proposal->expected_epochs,
                       proposal->known_units_per_epoch};

    session_share(session, shared, sizeof shared / sizeof shared[0]);
    session->known = shared[0] == 1.0;
    proposal->trial = (uint64_t)shared[1];
    proposal->attempt = (uint32_t)shared[2];
    proposal->recurrence = (uint64_t)shared[3];
    proposal->try_number = (uint32_t)shared[4];
    proposal->last_try = shared[5] == 1.0;
    proposal->batch_size = (uint32_t)shared[6];
    proposal->limit_w = shared[7];
    proposal->wants_profile = shared[8] == 1.0;
    proposal->stops_at_target = shared[9] == 1.0;
    proposal->epochs = (uint32_t)shared[10];
    proposal->epochs_done = (uint32_t)shared[11];
    proposal->energy_j = shared[12];
    proposal->time_s = shared[13];
    proposal->expected_epochs = shared[14];
    proposal->known_units_per_epoch = shared[15];
}

/* Rank 0 asks, or notes why it does not. */
static void ask_for_proposal(struct fly_session *session)
{
    int code;

    if (session->gpu_count == 0) {
        session->note = "there is no GPU here whose energy could be measured, and without it nothing can "
                        "be learnt; 'flyball doctor' says why";
        return;
    }
    session->question = question_of(session, session->gpu_count);
    code = post_ask(session->post, session->inside ? NULL : &session->options.job, &session->question,
                    &session->proposal);
    session->known = code == 0;
    session->code = code;
    session->unasked = spool_passing(code) && !session->inside;
    session->note = session->unasked ? not_asked : NULL;
}

/* Rank 0 asks, and all ranks get its answer. */
static void propose(struct fly_session *session)
{
    propose_default(session);
    session->unasked = session->run_kept = false;
    session->gpu_count = count_gpus(session);
    if (session->options.rank == 0 && !session->disabled)
        ask_for_proposal(session);
    share_proposal(session);
    session->proposal.local_batch_size = session->proposal.batch_size / session_replicas(session);
}

void session_begin_try(struct fly_session *session)
{
    struct fly_error error;

    name_request(session);
    propose(session);
    session_directory_choose(session);
    session->epoch = session->epoch_newest = 0;
    session->epochs = session->proposal.epochs;
    session->answer = FLY_GO_ON;
    session->stop = JOB_STOP_NONE;
    session->over = session->reached = session->failed = session->released = false;
    session->progress = target_progress_none;
    step_count_reset(&session->count);
    session->steps_told = 0;
    session->epoch_first = session->epoch_counted = session->proposal.epochs_done;
    session->reports = 0;
    session->uncounted = false;
    session->startup = (struct session_startup){.energy_j = NAN, .time_s = NAN};
    session->nothing_learnt = false;
    session->resumed = session->reported = session->stopped = false;
    session->energy_j = session->time_s = session->energy_most_j = NAN;
    session->begin = session->clock->now(session->clock->state);
    session->window_open =
        session->meter != NULL &&
        fly_meter_begin(session->meter, session->options.job.name, &session->window, &error) == 0;
    session_limit_begin(session);
    if (session->known && session->options.rank == 0)
        post_beat(session->post,
                  &(struct job_beat){.job = session->options.job.name,
                                     .trial = session->proposal.trial,
                                     .attempt = session->proposal.attempt,
                                     .energy_j = NAN,
                                     .time_s = NAN},
                  session->beat_s);
}

static double energy_now_j(struct fly_session *session)
{
    struct fly_measurement measured = {
        .size = sizeof measured, .devices = session->energies, .device_capacity = DEVICES_MAX};
    double sum_j = session->limit.gpu_count > 0 ? 0.0 : NAN;
    struct fly_error error;

    if (!session->window_open || fly_meter_peek(session->meter, session->window, &measured, &error) < 0)
        return NAN;
    for (size_t i = 0; i < measured.device_count && i < DEVICES_MAX; i++) {
        bool is_gpu = meter_devices(session->meter)->devices[i].info.kind == DEVICE_GPU;

        if (is_gpu)
            sum_j +=
                session->energies[i].source != FLY_ENERGY_UNAVAILABLE ? session->energies[i].energy_j : NAN;
    }
    /* Looks that follow each other at once may differ by less than they are certain; the log takes sums. */
    if (!isnan(sum_j))
        sum_j = session->energy_most_j = fmax(sum_j, session->energy_most_j);
    return sum_j;
}

double session_energy_j(struct fly_session *session)
{
    return session->stopped && !isnan(session->stopped_energy_j) ? session->stopped_energy_j
                                                                 : energy_now_j(session);
}

void session_stop(struct fly_session *session)
{
    if (session->disabled || session->stopped)
        return;
    session->stopped_time_s = session_time_s(session);
    session->stopped_energy_j = energy_now_j(session);
    session->stopped = true;
}

void session_announce(const struct fly_session *session)
{
    struct step_writer steps;

    if (!session->inside || session->options.rank != 0)
        return;
    (void)step_writer_open(&steps);
    step_writer_write(&steps, "session");
    step_writer_close(&steps);
}

bool session_has_begun(const struct fly_session *session)
{
    return session->startup.told || session->reported;
}

void session_note_begin(struct fly_session *session, bool step)
{
    bool first = !session_has_begun(session);

    /* An epoch that is reported before any step was told has ended: what came before it is not known. */
    if (session->reported || (step ? session->count.begun > 0 : !first))
        return;
    session->startup = (struct session_startup){
        .told = true, .energy_j = session_energy_j(session), .time_s = session_time_s(session)};
    if (first)
        session_announce(session);
}

/*
 * Sends what was run, with the question that the log would have been asked. It has a name of its own: a
 * proposal that came too late may have the question's name.
 */
static void say_run(struct fly_session *session)
{
    struct spool_entry run = {.kind = SPOOL_RUN,
                              .run = {.definition = session->options.job, .question = session->question}};
    char request[JOB_TEXT_MAX];

    snprintf(request, sizeof request, "%.110s-ran", session->request);
    run.run.question.request = request;
    run.run.question.tries = 1;
    run.run.question.ran_batch_size = session->proposal.batch_size;
    run.run.question.ran_limit_w = session->limit.start_w > 0.0 ? session->limit.start_w : NAN;
    (void)post_send(session->post, &run, POST_RARELY);
    session->run_kept = true;
}

uint64_t session_say(struct fly_session *session, const struct spool_entry *entry, enum post_haste haste)
{
    if (!session->known && !session->run_kept)
        say_run(session);
    return post_send(session->post, entry, haste);
}

void session_say_end(struct fly_session *session, enum trial_outcome outcome, const char *text)
{
    double energy_j = session_ranks(session) == 1 ? session_energy_j(session) : NAN;
    /* Without an energy of its own, the end keeps that of the last report, and therefore its time as well. */
    bool as_reported = isnan(energy_j) && session->reported;
    const struct spool_entry entry = {
        .kind = SPOOL_END,
        .end = {.job = session->options.job.name,
                .trial = session->proposal.trial,
                .attempt = session->proposal.attempt,
                .outcome = outcome,
                .energy_j = energy_j,
                .time_s = as_reported ? NAN : session_time_s(session),
                .text = text,
                .reference_per_kwh = session_account_reference_per_kwh(session),
                .startup_energy_j = session_ranks(session) == 1 ? session->startup.energy_j : NAN,
                .startup_time_s = session_ranks(session) == 1 ? session->startup.time_s : NAN,
                .nothing_learnt = session->nothing_learnt}};

    post_beat_end(session->post);
    (void)session_say(session, &entry, POST_NOW);
}

void session_end_try(struct fly_session *session)
{
    struct fly_measurement measured = {.size = sizeof measured};
    struct fly_error error;

    post_beat_end(session->post);
    session_carbon_end(session);
    session_limit_end(session);
    if (session->window_open)
        (void)fly_meter_end(session->meter, session->window, &measured, &error);
    session->window_open = false;
}
