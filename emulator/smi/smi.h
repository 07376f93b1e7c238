/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_EMULATOR_SMI_SMI_H
#define FLYBALL_EMULATOR_SMI_SMI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "emulator/api.h"

/*
 * A stand-in for NVIDIA's `nvidia-smi` over the emulator, for programs and scripts that ask that program:
 * what CodeCarbon, GPUtil and the prologues of Slurm's clusters call. Names of fields, headers, units and
 * exit statuses are those of NVIDIA's program of drivers 550 and later; of its wording, what scripts read.
 *
 * It calls the functions of the emulator's library alone, and never those of a driver. So the script of
 * faults and a library that lacks functions show here too: a value that a GPU does not have is `[N/A]`, one
 * whose function the library lacks `[Not Supported]`, as older versions say for both.
 */
enum { SMI_TEXT_MAX = 128, SMI_GPUS_MAX = 16, SMI_PROCESSES_MAX = 64 };

/* Exit statuses, from the manual of nvidia-smi. */
enum smi_exit {
    SMI_DONE = 0,
    SMI_INVALID = 2,
    SMI_NOT_AVAILABLE = 3,
    SMI_NO_PERMISSION = 4,
    SMI_NOT_FOUND = 6,
    SMI_NO_DRIVER = 9,
    SMI_LOST = 15,
    SMI_OTHER = 255,
};

/* All functions of the library by name; NULL where it lacks one. */
struct smi_library {
#define SMI_MEMBER(result, symbol, parameters) result(*symbol) parameters;
    NVML_FUNCTIONS(SMI_MEMBER)
    NVML_MORE_FUNCTIONS(SMI_MEMBER)
#undef SMI_MEMBER
};

struct smi_gpu {
    const struct smi_library *library;
    struct nvml_device *device;
    unsigned index;
    char bus_id[NVML_PCI_BYTES];
};

/* What the command line asks about, and how the answer looks. */
struct smi_call {
    const struct smi_library *library;
    struct smi_gpu gpus[SMI_GPUS_MAX];
    unsigned gpu_count;    /* of those asked about */
    unsigned system_count; /* of all */
    bool header, units;
    FILE *out;
};

/* A row that --query-gpu knows. */
struct smi_field {
    const char *name;  /* in the header */
    const char *other; /* another name for it, or NULL */
    const char *unit;  /* "W", or NULL */

    /* Writes the value without its unit and returns an NVML code; NULL: no emulated GPU has it. */
    int (*read)(const struct smi_gpu *gpu, const struct smi_field *field, char out_text[SMI_TEXT_MAX]);

    size_t function; /* offset in struct smi_library of the function that `read` calls, where it takes one */
    unsigned argument; /* of that function or of `read` */
};

/* Loads the library and fills the call; prints why not and returns an exit status other than SMI_DONE. */
int smi_library_open(struct smi_call *call);

/* Keeps the GPUs that "0,GPU-f1eba11...,00000000:07:00.0" names; SMI_NOT_FOUND when there is none. */
int smi_select(struct smi_call *call, const char *list);

/* The row with that name, or NULL. */
const struct smi_field *smi_field_find(const char *name);

/* All rows, ended by a NULL name. */
extern const struct smi_field smi_fields[];

/* Reads a row: its text, or why there is none, such as "[N/A]". Returns the NVML code. */
int smi_field_read(const struct smi_gpu *gpu, const struct smi_field *field, char out_text[SMI_TEXT_MAX]);

/* "[N/A]" and the like. */
const char *smi_unavailable(int code);

struct smi_process {
    struct nvml_process of;
    bool computes, renders, is_client; /* of MPS */
};

/* The processes at work on a GPU, those that compute first: how many were stored. */
unsigned smi_processes(const struct smi_gpu *gpu, struct smi_process out_processes[SMI_PROCESSES_MAX]);

/* "C", "G", "C+G", or "M+C" for a client of MPS. */
const char *smi_process_type(const struct smi_process *process);

/* The name of a process's program; "-" when it cannot be known. */
void smi_process_name(const struct smi_library *library, unsigned pid, char out_text[SMI_TEXT_MAX]);

/* Each answers one option, and returns an exit status. */
int smi_query_gpu(const struct smi_call *call, const char *fields);
int smi_query_clocks(const struct smi_call *call, const char *fields);
int smi_query_processes(const struct smi_call *call, const char *fields);
int smi_list(const struct smi_call *call);
int smi_summary(const struct smi_call *call);
int smi_report(const struct smi_call *call, const char *list);
int smi_monitor_processes(const struct smi_call *call);

/* A setting: `option` is its short name, "-pl". */
struct smi_setting {
    const char *option, *long_option;
    const char *placeholder; /* NULL: takes no value */
    const char *help;
    int (*set)(const struct smi_gpu *gpu, const char *value, FILE *out);
};

/* All settings, ended by a NULL option. */
extern const struct smi_setting smi_settings[];

/* Sets one on every GPU asked about, up to the first that refuses. */
int smi_set(const struct smi_call *call, const struct smi_setting *setting, const char *value);

#endif
