/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/open/sim_set.h"

#include "base/buffer.h"

enum { NOTE_MAX = 4096 };

void sim_set_init(struct sim_set *set)
{
    job_list_init(&set->list);
    set->trace_is_open = false;
    set->count = 0;
    set->eta = 0.5;
    set->note = NULL;
    set->note_context = NULL;
    set->describe = "its fields";
}

void sim_set_close(struct sim_set *set)
{
    for (size_t i = 0; i < set->count; i++)
        workload_close(&set->items[i]);
    if (set->trace_is_open)
        trace_close(&set->trace);
    job_list_deinit(&set->list);
    set->count = 0;
    set->trace_is_open = false;
}

int sim_set_traces(struct sim_set *set, const char *directory, const char *gpu, struct fly_error *out_error)
{
    int code = trace_open(&set->trace, directory, gpu, out_error);

    set->trace_is_open = code == 0;
    return code;
}

static void tell(const struct sim_set *set, const struct buffer *text)
{
    if (set->note != NULL && text->error == 0)
        set->note(set->note_context, text->data);
}

static void note_left_out(const struct sim_set *set, const struct workload *workload)
{
    struct buffer text;

    if (workload->left_out_count == 0)
        return;
    buffer_init(&text, NOTE_MAX);
    buffer_printf(&text, "%s: batch sizes of %s without power rows are left out: ", set->trace.power_path,
                  workload->job.name);
    for (size_t i = 0; i < workload->left_out_count; i++)
        buffer_printf(&text, "%s%u", i > 0 ? ", " : "", workload->left_out[i]);
    tell(set, &text);
    buffer_deinit(&text);
}

int sim_set_add(struct sim_set *set, const struct job_description *job, struct fly_error *out_error)
{
    struct workload *workload = &set->items[set->count];
    int code = workload_open(workload, &set->trace, job, out_error);

    if (code < 0)
        return code;
    workload->spec.eta = set->eta;
    set->count++;
    note_left_out(set, workload);
    return 0;
}

int sim_set_add_all(struct sim_set *set, struct fly_error *out_error)
{
    struct buffer absent, text;
    int code = 0;

    buffer_init(&absent, NOTE_MAX);
    buffer_init(&text, 2 * NOTE_MAX);
    for (size_t i = 0; i < set->list.count && code == 0; i++) {
        const struct job_description *job = &set->list.jobs[i];

        if (workload_in_trace(&set->trace, job))
            code = sim_set_add(set, job, out_error);
        else
            buffer_printf(&absent, "%s%s", absent.length > 0 ? ", " : "", job->name);
    }
    if (code == 0 && set->count == 0)
        code = error_set(out_error, FLY_ENOTFOUND,
                         "%s: none of the known jobs is in the traces (%s); describe one with %s",
                         set->trace.power_path, absent.data, set->describe);
    else if (code == 0 && absent.length > 0) {
        buffer_printf(&text, "%s: jobs that are not in the traces are left out: %s", set->trace.power_path,
                      absent.data);
        tell(set, &text);
    }
    buffer_deinit(&text);
    buffer_deinit(&absent);
    return code;
}

int sim_set_check_order(const struct sim_set *set, struct fly_error *out_error)
{
    for (size_t i = 0; i < set->count; i++) {
        const struct job_description *job = &set->items[i].job;

        if (job->untold != NULL)
            return error_set(
                out_error, FLY_EUNSUPPORTED,
                "job '%s' cannot be repeated as recorded: its trace has no words for %s; 'flyball sim "
                "replay' repeats its log exactly, and '--order drawn' simulates it",
                job->name, job->untold);
    }
    return 0;
}

bool sim_set_allow_for_drift(struct sim_set *set, enum drift_kind drift, uint64_t recurrences)
{
    bool raised = false;

    for (size_t i = 0; i < set->count; i++) {
        struct workload *workload = &set->items[i];
        uint32_t before = workload->spec.max_epochs;

        drift_raise_max_epochs(workload, drift,
                               recurrences > 0 ? recurrences : workload_recurrences(workload));
        raised = raised || workload->spec.max_epochs > before;
    }
    return raised;
}
