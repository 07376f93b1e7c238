/* SPDX-License-Identifier: Apache-2.0 */
/* Assembles facts from their parts. */
#include "cli/machine/facts_maker.h"

#include <time.h>

#include <flyball/version.h>

#include "base/error.h"
#include "cli/machine/facts_parts.h"
#include "cli/machine/machine_look.h"

enum { DATE_MAX = sizeof "2026-11-22" };

static enum facts_state state_of(int code)
{
    return code == 0                  ? FACTS_WORKS
           : code == FLY_EUNSUPPORTED ? FACTS_ABSENT
           : code == FLY_EPERM        ? FACTS_DENIED
                                      : FACTS_BROKEN;
}

static void take_reports(struct facts_maker *maker)
{
    struct facts *facts = maker->facts;

    facts->backends = facts_room(maker, maker->list->report_count, sizeof *facts->backends);
    for (size_t i = 0; facts->backends != NULL && i < maker->list->report_count; i++) {
        const struct backend_report *report = &maker->list->reports[i];

        facts->backends[facts->backend_count++] = (struct facts_backend){
            .name = report->backend->name,
            .title = report->backend->title,
            .kind = report->backend->kind,
            .state = state_of(report->error.code),
            .error = report->error.code < 0 ? facts_keep(maker, report->error.text) : NULL,
        };
    }
}

static void look_at_machine(struct facts_maker *maker)
{
    struct facts_machine *machine = &maker->facts->machine;
    struct machine_texts texts;

    machine_look(maker->root, &texts, machine);
    machine->kernel = facts_keep(maker, machine->kernel);
    machine->architecture = facts_keep(maker, machine->architecture);
    machine->nvidia_kernel_driver = facts_keep(maker, machine->nvidia_kernel_driver);
}

static void put_heading(struct facts_maker *maker)
{
    struct timespec now;
    struct tm utc;
    char date[DATE_MAX] = "";

    clock_gettime(CLOCK_REALTIME, &now);
    if (gmtime_r(&now.tv_sec, &utc) != NULL)
        strftime(date, sizeof date, "%Y-%m-%d", &utc);
    maker->facts->flyball = fly_version();
    maker->facts->date = facts_keep(maker, date);
}

int facts_make(const struct cli_call *call, const struct device_list *list, struct facts **out_facts,
               struct fly_error *out_error)
{
    static struct facts_maker large;
    struct facts_maker *maker = &large;

    large = (struct facts_maker){.call = call, .list = list, .root = cli_text(call, "sysfs-root")};
    maker->facts = facts_new();
    if (maker->facts == NULL)
        return error_no_memory(out_error);
    facts_find_secrets(maker);
    put_heading(maker);
    look_at_machine(maker);
    take_reports(maker);
    facts_ask_devices(maker);
    facts_find_domains(maker);
    facts_find_knobs(maker);
    facts_watch(maker);
    if (maker->exhausted) {
        facts_free(maker->facts);
        return error_no_memory(out_error);
    }
    *out_facts = maker->facts;
    return 0;
}
