/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLYBALL_NODE_OWNER_OWNER_POD_H
#define FLYBALL_NODE_OWNER_OWNER_POD_H

#include "node/owner/owner.h"

/*
 * The kubelet's names of pods and containers, as it writes them on the node's disk:
 *
 *     /var/log/pods/NAMESPACE_POD_UID/CONTAINER/0.log
 *     /var/log/containers/POD_NAMESPACE_CONTAINER-ID.log     a link to the above
 *
 * A name that Kubernetes would not allow is no name. The functions that take one name are pure.
 */
struct owner_pod {
    char uid[OWNER_UID_MAX];
    char id[OWNER_CONTAINER_ID_MAX]; /* of the container */
    char pod[OWNER_POD_MAX];         /* "": unknown; so the two below */
    char pod_namespace[OWNER_LABEL_MAX];
    char container[OWNER_LABEL_MAX];
};

/* Returns whether the name is that of the directory of the pod with this uid; fills in pod and namespace. */
bool owner_pod_directory(const char *name, struct owner_pod *pod);

/* Returns whether it is that of the log of the container with this id; fills in all three. */
bool owner_pod_log(const char *name, struct owner_pod *pod);

/*
 * Looks for a pod and its container below `directory`, an open "var/log": at most 4096 entries of each
 * directory. The container is named by its log, or, where the pod has only one, by that. Waits for the disk.
 */
void owner_pod_find(int directory, struct owner_pod *pod);

#endif
