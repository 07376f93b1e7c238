/* SPDX-License-Identifier: Apache-2.0 */
/* A tuner's report and points, and how it follows the grid, as Python sees them. */
#include "tuner.h"

#include <math.h>

#include "table.h"

const char *tuner_state_word(int state)
{
    static const char *const words[] = {
        [FLY_TUNER_SEARCHING] = "searching",
        [FLY_TUNER_CHECKING] = "checking",
        [FLY_TUNER_SETTLED] = "settled",
        [FLY_TUNER_STOPPED] = "stopped",
    };

    return words[state];
}

static const char *reason_word(int reason)
{
    return fly_tuner_reason_name((enum fly_tuner_reason)reason);
}

static const char *knob_word(int knob)
{
    return fly_tuner_knob_name((enum fly_tuner_knob)knob);
}

static const char *pace_word(int pace)
{
    return fly_tuner_pace_name((enum fly_tuner_pace)pace);
}

static const char *mark_word(int mark)
{
    return fly_tuner_mark_name((enum fly_tuner_mark)mark);
}

static const char *bound_word(int bound)
{
    static const char *const words[] = {
        [FLY_TUNER_BOUND_UNKNOWN] = "unknown", [FLY_TUNER_UNBOUND] = "no", [FLY_TUNER_BOUND] = "yes"};

    return words[bound];
}

static const struct table_field report_fields[] = {
#define FIELD(name, kind, doc) TABLE_FIELD(struct fly_tuner_report, name, TABLE_##kind, doc)
#define WORD(name, word, doc) TABLE_FIELD_WORD(struct fly_tuner_report, name, word, doc)
    WORD(state, tuner_state_word, "'searching', 'checking', 'settled' or 'stopped'"),
    FIELD(limit_w, REAL, "W: the limit of a GPU now, as far as the tuner knows"),
    FIELD(slowdown, REAL,
          "of the newest check against the highest limit, as a factor: 1.02 is 2 % more time"),
    WORD(reason, reason_word,
         "why tuning stopped or did not begin: 'no knob', 'no work', 'disabled', ...; 'goes on'"),
    FIELD(text, TEXT, "why it stopped or did not begin, in a sentence; '' while it goes on"),
    WORD(knob, knob_word, "that is turned: 'power', 'clock', 'both', 'profile'"),
    FIELD(start_limit_w, REAL, "W: the limit at the start"),
    FIELD(start_ceiling_mhz, REAL, "MHz: the ceiling on the clock at the start"),
    FIELD(ceiling_mhz, REAL, "MHz: the ceiling now; the highest there is means none"),
    FIELD(step_time_s, REAL, "s: of the newest check"),
    FIELD(searches, COUNT_32, "begun"),
    FIELD(backoffs, COUNT_32, "to a higher limit, since the last search"),
    FIELD(looks, COUNT_32, "windows of limits that were measured before, since the last search began"),
    FIELD(noise, REAL, "by how much such windows' times differ beyond their steps' spread, as a fraction"),
    FIELD(ties, COUNT_32, "limits that the points' errors cannot tell from the chosen one"),
    FIELD(reused, FLAG, "whether the profile was a saved one"),
    FIELD(search_steps, COUNT, "of all searches that ended, warm-up included"),
    FIELD(search_time_s, REAL, "s: what they took"),
    FIELD(search_energy_j, REAL, "J: what they used, of all ranks"),
    FIELD(extra_time_s, REAL, "s: of it, beyond the same steps at the chosen limit; below 0: less"),
    FIELD(extra_energy_j, REAL, "J: likewise"),
    FIELD(profile, TEXT, "what became of the saved profile; '' for nothing"),
    FIELD(pauses, COUNT, "steps of more than five median ones since the newest search began"),
    FIELD(pause_share, REAL, "of the windows' time"),
    FIELD(idle_share, REAL, "of the rest, without work on the busiest GPU"),
    WORD(pace, pace_word,
         "what sets the pace of steps: 'GPU', 'pauses', 'waits', 'flat', 'unsteady', 'scatter'"),
    FIELD(knob_note, TEXT, "which knob may not be turned, and why; '' for nothing"),
    FIELD(start_workload_profile, OPTIONAL,
          "number of the workload profile at the start; None: none; -2: several"),
    FIELD(workload_profile, OPTIONAL, "and now"),
    FIELD(given_back, FLAG, "whether no step came for long, so that the setting of the start stands"),
    FIELD(give_backs, COUNT_32, "how many times that was so"),
#undef WORD
#undef FIELD
};
enum { REPORT_FIELDS = sizeof report_fields / sizeof report_fields[0], REPORT_UNPACKED = 5 };

/* A point with what the library tells of it apart. */
struct point {
    struct fly_tuner_point point;
    double energy_j, enforced_w;
    int workload_profile;
};

#define POINT(name, kind, word, doc)                               \
    {                                                              \
#name, doc, kind, offsetof(struct point, point.name), word \
    }

static const struct table_field point_fields[] = {
    POINT(limit_w, TABLE_REAL, NULL, "W; None where the knob is the clock or a profile"),
    POINT(ceiling_mhz, TABLE_REAL, NULL, "MHz; None where the knob is the limit"),
    POINT(mark, TABLE_WORD, mark_word, "'valid' of those that can be chosen; else why not"),
    TABLE_FIELD(struct point, energy_j, TABLE_REAL, "J of a step, of all GPUs: power_w times time_s"),
    POINT(time_s, TABLE_REAL, NULL, "s of a step on the slowest rank"),
    POINT(power_w, TABLE_REAL, NULL, "W: mean, of all GPUs"),
    POINT(energy_error, TABLE_REAL, NULL,
          "half width of the interval that holds the energy in 95 of 100, as a fraction"),
    POINT(time_error, TABLE_REAL, NULL, "standard error of time_s, as a fraction"),
    POINT(bound, TABLE_WORD, bound_word, "whether the limit held the GPUs down: 'yes', 'no', 'unknown'"),
    POINT(capped_share, TABLE_REAL, NULL, "of the time, held down by the knob; the least of the GPUs'"),
    TABLE_FIELD(struct point, enforced_w, TABLE_REAL, "W: the least limit that a GPU enforced meanwhile"),
    TABLE_FIELD(struct point, workload_profile, TABLE_OPTIONAL, "its number; None: none"),
};
enum { POINT_FIELDS = sizeof point_fields / sizeof point_fields[0], POINT_UNPACKED = 5 };

static const struct table_field carbon_fields[] = {
#define FIELD(name, kind, doc) TABLE_FIELD(struct fly_carbon_report, name, TABLE_##kind, doc)
    FIELD(limit_w, REAL, "W: what the plan wants now; None before there is one"),
    FIELD(intensity_g_per_kwh, REAL, "g/kWh of the current period, actual or expected"),
    FIELD(energy_j, REAL, "J of this rank's GPUs so far, as written down"),
    FIELD(finish_s, REAL, "s: expected, from now"),
    FIELD(decisions, COUNT_32, "made"),
    FIELD(changes, COUNT_32, "of the limit"),
    FIELD(reason, TEXT, "why that limit"),
    FIELD(account, TEXT, "the file; '' if none could be written, and text says why"),
    FIELD(text, TEXT, "what is missing of the grid; '' for nothing"),
#undef FIELD
};
enum { CARBON_FIELDS = sizeof carbon_fields / sizeof carbon_fields[0] };

static PyTypeObject *report_type, *point_type, *carbon_type;

PyObject *tuner_report(const struct fly_tuner *tuner)
{
    struct fly_tuner_report report = {.size = sizeof report};

    (void)fly_tuner_report(tuner, &report);
    return table_make(report_type, report_fields, REPORT_FIELDS, &report);
}

static PyObject *make_point(const struct fly_tuner *tuner, const struct fly_tuner_point *read, size_t place)
{
    struct point point = {
        .point = *read,
        .energy_j = read->power_w * read->time_s,
        .enforced_w = fly_tuner_enforced_w(tuner, place),
        .workload_profile = fly_tuner_point_profile(tuner, place),
    };

    return table_make(point_type, point_fields, POINT_FIELDS, &point);
}

/* A tuple that notebooks show as a table. */
static PyObject *shown(PyObject *list)
{
    PyObject *module = PyImport_ImportModule("flyball.notebook"), *points = NULL;

    if (module != NULL)
        points = PyObject_CallMethod(module, "Points", "O", list);
    Py_XDECREF(module);
    return points;
}

static PyObject *list_of(const struct fly_tuner *tuner, struct fly_tuner_point *read, size_t count)
{
    PyObject *list = PyList_New(0);

    (void)fly_tuner_points(tuner, read, count);
    for (size_t i = 0; i < count && list != NULL; i++) {
        PyObject *point = make_point(tuner, &read[i], i);

        if (point == NULL || PyList_Append(list, point) < 0)
            Py_CLEAR(list);
        Py_XDECREF(point);
    }
    return list;
}

PyObject *tuner_points(const struct fly_tuner *tuner)
{
    size_t count = fly_tuner_points(tuner, NULL, 0);
    struct fly_tuner_point *read = PyMem_Calloc(count + 1, sizeof *read);
    PyObject *list, *points = NULL;

    if (read == NULL)
        return PyErr_NoMemory();
    list = list_of(tuner, read, count);
    if (list != NULL)
        points = shown(list);
    Py_XDECREF(list);
    PyMem_Free(read);
    return points;
}

PyObject *carbon_report(const struct fly_carbon_report *report)
{
    return table_make(carbon_type, carbon_fields, CARBON_FIELDS, report);
}

PyObject *tuner_carbon(const struct fly_tuner *tuner)
{
    struct fly_carbon_report report = {.size = sizeof report};

    return fly_tuner_carbon(tuner, &report) < 0 ? none() : carbon_report(&report);
}

PyObject *tuner_sentence(const struct fly_tuner *tuner)
{
    char text[FLY_TUNER_SUMMARY_MAX];

    (void)fly_tuner_summary(tuner, text, sizeof text);
    return table_text(text);
}

bool tuner_has_news(const struct fly_tuner *tuner)
{
    struct fly_tuner_report report = {.size = sizeof report};

    (void)fly_tuner_report(tuner, &report);
    return report.reason != FLY_TUNER_DISABLED && report.reason != FLY_TUNER_STEERED;
}

int tuner_report_add(PyObject *module)
{
    report_type = table_add(module, "flyball.TunerReport",
                            "How tuning goes. A figure that is not known is None. Read its members by name.",
                            report_fields, REPORT_FIELDS, REPORT_UNPACKED);
    point_type = table_add(module, "flyball.TunerPoint",
                           "What a limit was measured to be worth. A figure that is not known is None.",
                           point_fields, POINT_FIELDS, POINT_UNPACKED);
    carbon_type = table_add(module, "flyball.CarbonReport",
                            "How following the grid goes. A figure that is not known is None.", carbon_fields,
                            CARBON_FIELDS, CARBON_FIELDS);
    return report_type != NULL && point_type != NULL && carbon_type != NULL ? 0 : -1;
}
