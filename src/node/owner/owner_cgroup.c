/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One table has the forms that a part of a path takes, and one walk along the path tries them at the
 * beginning of each segment. What else a site puts around or between them (slices, a cgroup root of its
 * own, a container around all) does not matter then.
 *
 * Forms from Slurm's cgroup plug-ins, the kubelet's container manager, runc's systemd driver (which also
 * writes "SLICE:PREFIX:NAME" where it was told to use plain groups), docker, nerdctl, CRI-O and podman.
 */
#include "node/owner/owner_cgroup.h"

#include <stdio.h>
#include <string.h>

#include "base/harmless.h"

/*
 * In patterns:
 *
 *     %i   the id of a container: 64 hexadecimal digits
 *     %u   the UID of a pod: a UUID, with '-' or '_', or the 32 digits of a static pod
 *     %j   the number of a job                %s   the name of a step
 *     %n   a number that is not kept          %w   anything up to what follows
 *     /    the end of a segment; so is ':'
 */
enum part { PART_CONTAINER, PART_POD, PART_JOB, PART_STEP, PART_COUNT, PART_NONE = PART_COUNT };

struct form {
    const char *pattern;
    enum owner_runtime runtime;
    bool of_user; /* below it, a user makes groups */
};

/* The first form that fits at a segment counts, and the walk goes on behind it. */
static const struct form forms[] = {
    {"%wslurmstepd.scope/job_%j/step_%s", OWNER_RUNTIME_SLURM, false},
    {"%wslurmstepd.scope/job_%j", OWNER_RUNTIME_SLURM, false},
    {"slurm%w/uid_%n/job_%j/step_%s", OWNER_RUNTIME_SLURM, false},
    {"slurm%w/uid_%n/job_%j", OWNER_RUNTIME_SLURM, false},

    {"%wkubepods-pod%u.slice", OWNER_RUNTIME_KUBERNETES, false},
    {"%wkubepods-burstable-pod%u.slice", OWNER_RUNTIME_KUBERNETES, false},
    {"%wkubepods-besteffort-pod%u.slice", OWNER_RUNTIME_KUBERNETES, false},
    {"kubepods/pod%u", OWNER_RUNTIME_KUBERNETES, false},
    {"kubepods/burstable/pod%u", OWNER_RUNTIME_KUBERNETES, false},
    {"kubepods/besteffort/pod%u", OWNER_RUNTIME_KUBERNETES, false},

    {"docker-%i.scope", OWNER_RUNTIME_DOCKER, false},
    {"docker/%i", OWNER_RUNTIME_DOCKER, false},
    {"moby/%i", OWNER_RUNTIME_DOCKER, false},
    {"cri-containerd-%i.scope", OWNER_RUNTIME_CONTAINERD, false},
    {"cri-containerd/%i", OWNER_RUNTIME_CONTAINERD, false},
    {"nerdctl-%i.scope", OWNER_RUNTIME_CONTAINERD, false},
    {"nerdctl/%i", OWNER_RUNTIME_CONTAINERD, false},
    {"default/%i", OWNER_RUNTIME_CONTAINERD, false}, /* nerdctl's namespace */
    {"k8s.io/%i", OWNER_RUNTIME_CONTAINERD, false},
    {"crio-%i.scope", OWNER_RUNTIME_CRIO, false},
    {"crio-%i", OWNER_RUNTIME_CRIO, false},
    {"libpod-%i.scope", OWNER_RUNTIME_PODMAN, false},
    {"libpod-%i", OWNER_RUNTIME_PODMAN, false},
    {"libpod-payload-%i", OWNER_RUNTIME_PODMAN, false}, /* of a service; its monitor is in "runtime" */
    {"%i", OWNER_RUNTIME_CONTAINER, false},

    {"user@%n.service", OWNER_RUNTIME_SYSTEMD, true},
    {"%w.service", OWNER_RUNTIME_SYSTEMD, false},
    {"%w.scope", OWNER_RUNTIME_SYSTEMD, false},
};
enum { FORM_COUNT = sizeof forms / sizeof forms[0] };

enum { CONTAINER_DIGITS = OWNER_CONTAINER_ID_MAX - 1, STATIC_POD_DIGITS = 32, POD_UUID_DIGITS = 36 };

static const char digits[] = "0123456789", hex[] = "0123456789abcdef", pod_letters[] = "0123456789abcdef-_",
                  step_letters[] = "0123456789abcdefghijklmnopqrstuvwxyz+.";

struct piece {
    const char *at; /* NULL: none */
    size_t length;
};

/* What of a pattern's letters may stand in a path, and how long. */
static const struct placeholder {
    char letter;
    enum part part;
    const char *letters;
    size_t shortest, longest;
} placeholders[] = {
    {'i', PART_CONTAINER, hex, CONTAINER_DIGITS, CONTAINER_DIGITS},
    {'u', PART_POD, pod_letters, STATIC_POD_DIGITS, POD_UUID_DIGITS},
    {'j', PART_JOB, digits, 1, OWNER_SLURM_MAX - 1},
    {'s', PART_STEP, step_letters, 1, OWNER_SLURM_MAX - 1},
    {'n', PART_NONE, digits, 1, OWNER_SLURM_MAX - 1},
};

static bool ends_segment(char letter)
{
    return letter == '/' || letter == ':' || letter == '\0';
}

/* Fits a placeholder other than %w; NULL if it does not. */
static const char *fit_part(char letter, const char *text, struct piece out_pieces[PART_COUNT])
{
    for (size_t i = 0; i < sizeof placeholders / sizeof placeholders[0]; i++) {
        const struct placeholder *wanted = &placeholders[i];
        size_t length;

        if (wanted->letter != letter)
            continue;
        length = strspn(text, wanted->letters);
        if (length < wanted->shortest || length > wanted->longest)
            return NULL;
        if (wanted->part != PART_NONE)
            out_pieces[wanted->part] = (struct piece){text, length};
        return text + length;
    }
    return NULL;
}

/*
 * Fits a pattern at the beginning of a segment up to the end of one; returns that end, or NULL. A %w
 * is tried from its shortest on, within its segment; no pattern has two.
 */
static const char *fit(const char *pattern, const char *text, struct piece out_pieces[PART_COUNT])
{
    const char *resume = NULL, *from = NULL;

    for (;;) {
        bool fits = true;

        if (*pattern == '\0' && ends_segment(*text))
            return text;
        if (pattern[0] == '%' && pattern[1] == 'w') {
            pattern += 2;
            resume = pattern;
            from = text;
            continue;
        }
        if (*pattern == '%') {
            const char *after = fit_part(pattern[1], text, out_pieces);

            fits = after != NULL;
            text = fits ? after : text;
            pattern += 2;
        } else if (*pattern != '\0' && (*pattern == *text || (*pattern == '/' && *text == ':'))) {
            pattern++;
            text++;
        } else {
            fits = false;
        }
        if (fits)
            continue;
        if (from == NULL || ends_segment(*from))
            return NULL;
        pattern = resume;
        text = ++from;
    }
}

/* What a path says. Pieces are parts of it. */
struct place {
    struct piece container, pod, pod_container, job, step;
    enum owner_runtime runtime; /* of the container */
    bool of_user, by_container, systemd;
};

static void take_container(struct place *place, const struct form *form, struct piece id)
{
    place->container = id;
    place->runtime = form->runtime;
    if (place->pod.at == NULL)
        return;
    if (place->pod_container.at == NULL)
        place->pod_container = id;
    if (form->runtime == OWNER_RUNTIME_CONTAINER)
        place->runtime = OWNER_RUNTIME_KUBERNETES;
}

static void take_form(struct place *place, const struct form *form, const struct piece pieces[PART_COUNT])
{
    if (pieces[PART_CONTAINER].at != NULL)
        take_container(place, form, pieces[PART_CONTAINER]);
    else if (pieces[PART_POD].at != NULL && place->pod.at == NULL && !place->of_user)
        place->pod = pieces[PART_POD];
    else if (pieces[PART_JOB].at != NULL && place->job.at == NULL && !place->of_user) {
        place->job = pieces[PART_JOB];
        place->step = pieces[PART_STEP];
        place->by_container = place->container.at != NULL;
    } else if (form->runtime == OWNER_RUNTIME_SYSTEMD) {
        place->systemd = true;
    }
    place->of_user = place->of_user || form->of_user;
}

/* Takes the form that fits at a segment; returns where the next segment begins. */
static const char *take_segment(const char *at, struct place *place)
{
    for (size_t i = 0; i < FORM_COUNT; i++) {
        struct piece pieces[PART_COUNT] = {{NULL, 0}};
        const char *end = fit(forms[i].pattern, at, pieces);

        if (end == NULL)
            continue;
        take_form(place, &forms[i], pieces);
        return end;
    }
    return at + strcspn(at, "/:");
}

static void read_path(const char *path, struct place *out_place)
{
    *out_place = (struct place){.runtime = OWNER_RUNTIME_NONE};
    while (*path != '\0') {
        path = take_segment(path, out_place);
        path += *path != '\0';
    }
}

/* How much a path says: of two, the greater counts. */
static unsigned weigh(const struct place *place)
{
    return (place->container.at != NULL ? 8U : 0U) + (place->pod.at != NULL ? 4U : 0U) +
           (place->job.at != NULL ? 2U : 0U) + (place->systemd ? 1U : 0U);
}

static void copy_piece(struct piece piece, char *out, size_t size)
{
    snprintf(out, size, "%.*s", (int)piece.length, piece.at != NULL ? piece.at : "");
}

static void copy_path(const char *path, char out[OWNER_CGROUP_MAX])
{
    static const char cut[] = "...";
    size_t length = strlen(path);
    bool fits = length < OWNER_CGROUP_MAX;

    if (!fits)
        path += length - (OWNER_CGROUP_MAX - sizeof cut);
    length = (size_t)snprintf(out, OWNER_CGROUP_MAX, "%s%s", fits ? "" : cut, path);
    harmless_make(out, length, false);
}

static enum owner_runtime find_runtime(const struct place *place)
{
    if (place->container.at != NULL)
        return place->runtime;
    if (place->job.at != NULL)
        return OWNER_RUNTIME_SLURM;
    if (place->pod.at != NULL)
        return OWNER_RUNTIME_KUBERNETES;
    return place->systemd ? OWNER_RUNTIME_SYSTEMD : OWNER_RUNTIME_NONE;
}

static void tell_place(const char *path, const struct place *place, struct owner *owner)
{
    owner->cgroup_known = true;
    owner->runtime = find_runtime(place);
    copy_path(path, owner->cgroup);
    copy_piece(place->container, owner->container_id, sizeof owner->container_id);
    copy_piece(place->pod_container, owner->pod_container_id, sizeof owner->pod_container_id);
    copy_piece(place->pod, owner->pod_uid, sizeof owner->pod_uid);
    for (char *at = owner->pod_uid; (at = strchr(at, '_')) != NULL;)
        *at = '-';
}

static void tell_job(const struct place *place, struct owner *owner)
{
    bool better = owner->slurm_job[0] == '\0' || (owner->slurm_claimed && !place->by_container) ||
                  (owner->slurm_claimed == place->by_container && owner->slurm_step[0] == '\0');

    if (place->job.at == NULL || !better)
        return;
    owner->slurm_claimed = place->by_container;
    copy_piece(place->job, owner->slurm_job, sizeof owner->slurm_job);
    copy_piece(place->step, owner->slurm_step, sizeof owner->slurm_step);
}

/* Cuts the next line out of `*rest`, and gives its path; NULL for a line that is of another form. */
static const char *next_path(const char **rest, char out_line[OWNER_PATH_MAX])
{
    static const char deleted[] = " (deleted)";
    const char *line = *rest;
    size_t length = strcspn(line, "\n");
    char *path;

    *rest = line + length + (line[length] == '\n');
    if (length >= OWNER_PATH_MAX)
        return NULL;
    memcpy(out_line, line, length);
    out_line[length] = '\0';
    path = strchr(out_line, ':');
    path = path != NULL ? strchr(path + 1, ':') : NULL;
    if (path == NULL || path[1] != '/')
        return NULL;
    length = strlen(++path);
    if (length >= sizeof deleted && strcmp(path + length - (sizeof deleted - 1), deleted) == 0)
        path[length - (sizeof deleted - 1)] = '\0';
    return path;
}

static bool leads_out(const char *path)
{
    return strncmp(path, "/..", 3) == 0 && ends_segment(path[3]);
}

void owner_cgroup_read(const char *text, struct owner *owner)
{
    char line[OWNER_PATH_MAX];
    unsigned most = 0;
    size_t longest = 0;

    while (*text != '\0') {
        const char *path = next_path(&text, line);
        struct place place;
        unsigned weight;

        if (path == NULL || leads_out(path))
            continue;
        read_path(path, &place);
        weight = weigh(&place);
        tell_job(&place, owner);
        if (owner->cgroup_known && (weight < most || (weight == most && strlen(path) <= longest)))
            continue;
        most = weight;
        longest = strlen(path);
        tell_place(path, &place, owner);
    }
}
