/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/agent_tools.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/parse.h"
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

uint32_t agent_tools_lease(const char *text, const char *id)
{
    const char *hash = text ? strrchr(text, '#') : NULL;
    size_t n = hash ? (size_t)(hash - text) : 0;
    uint64_t generation;

    if (!hash || strlen(id) != n || strncmp(text, id, n) != 0 ||
        parse_u64(hash + 1, 1, UINT32_MAX, &generation) < 0)
        return 0;
    return (uint32_t)generation;
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
