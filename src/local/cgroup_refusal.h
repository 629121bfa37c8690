/* SPDX-License-Identifier: Apache-2.0 */
/* Why no control group can be had: one sentence and a remedy, for sandboxes and the doctor alike.
 */
#pragma once

#include "base/error.h"
#include "local/cgroup_find.h"

struct cgroup_denial {
    enum cgroup_controller controller;
    const char *field;  /* of the spec, which asks for it: "backend.memory" */
    const char *folder; /* of the group that was tried; NULL: none is mounted */
    bool unified;       /* cgroup v2 */
    int code;           /* errno. ENODEV: the group has no such controller */
};

/** cgroup_refuse() - fill @err with it; returns -@x->code. Pure */
int cgroup_refuse(const struct cgroup_denial *x, struct error *err);
