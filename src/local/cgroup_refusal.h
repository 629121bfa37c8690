/* SPDX-License-Identifier: Apache-2.0 */
/* Why no control group can be had: one sentence and a remedy, for sandboxes and the doctor alike.
 */
#pragma once

#include "base/error.h"
#include "local/cgroup_find.h"

/* What an errno does not say. */
enum cgroup_why {
    CGROUP_WHY_CODE,    /* it says all */
    CGROUP_WHY_KERNEL,  /* the host's root group has no such controller either */
    CGROUP_WHY_OUTSIDE, /* nor has the highest group that can be seen: that of a container */
    CGROUP_WHY_SWAP,    /* swap is on, and not counted by group */
};

struct cgroup_denial {
    enum cgroup_controller controller;
    const char *field;  /* of the spec, which asks for it: "backend.memory" */
    const char *folder; /* of the group that was tried; NULL: none is found */
    bool unified;       /* cgroup v2 */
    int code;           /* errno. ENODEV: the group has no such controller */
    enum cgroup_why why;
};

/** cgroup_refuse() - fill @err with it; returns -@x->code. Pure */
int cgroup_refuse(const struct cgroup_denial *x, struct error *err);
