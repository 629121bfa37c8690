/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/agent_tools.h"

#include <stdlib.h>

#include "base/cleanup.h"
#include "client/describe.h"
#include "core/backends.h"
#include "base/guards.h"

int agent_tools_admit(const struct spec *s, struct error *err)
{
    _cleanup_(description_done) struct description d = {0};
    struct backend_room room;
    struct backend backend = {0};
    int r = backend_admit(s, getenv("PATH"), err);

    if (r == 0)
        r = backend_find(s->backend, getenv("PATH"), &room, &backend, err);
    if (r < 0 || backend.state != BACKEND_PROGRAM)
        return r;
    r = description_fetch_wait(&d, backend.name, err);
    return r < 0 ? r : description_admits(&d, s, err);
}

int agent_tools_new(struct atoll *a, const struct atoll_spec *spec,
                    const struct atoll_toolset_options *options, struct atoll_toolset **ret,
                    struct error *err)
{
    struct atoll_error e = {0};

    if (atoll_toolset_new(a, spec, options, ret, &e) == 0)
        return 0;
    (void)error_set(err, (enum error_class)e.cls, e.code, "%s", e.message);
    return e.remedy[0] ? error_remedy(err, "%s", e.remedy) : -e.code;
}
