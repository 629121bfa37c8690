/* SPDX-License-Identifier: Apache-2.0 */
/* Copies of specs, by the table of their fields. */
#include "core/spec_copy.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/guards.h"

static int copy_text(const char *from, char **to)
{
    char *copy = from ? strdup(from) : NULL;

    if (from && !copy)
        return -ENOMEM;
    free(*to);
    *to = copy;
    return 0;
}

static int copy_list(const struct string_list *from, struct string_list *to)
{
    int r = 0;

    string_list_done(to);
    *to = (struct string_list){0};
    for (size_t i = 0; r == 0 && i < from->n; i++)
        r = string_list_add(to, from->items[i]);
    return r;
}

static int copy_volumes(const struct spec *from, struct spec *to)
{
    to->volumes = calloc(from->n_volumes + 1, sizeof *to->volumes);
    if (!to->volumes)
        return -ENOMEM;
    to->n_volumes = from->n_volumes;
    for (size_t i = 0; i < from->n_volumes; i++) {
        to->volumes[i].read_only = from->volumes[i].read_only;
        if (copy_text(from->volumes[i].host, &to->volumes[i].host) < 0 ||
            copy_text(from->volumes[i].guest, &to->volumes[i].guest) < 0)
            return -ENOMEM;
    }
    return 0;
}

static int copy_field(struct spec *from, enum spec_field_id id, struct spec *to)
{
    switch (spec_fields[id].kind) {
    case SPEC_BOOL:
        *spec_field_bool_of(to, id) = *spec_field_bool_of(from, id);
        return 0;
    case SPEC_TEXT:
    case SPEC_CHOICE:
        return copy_text(*spec_field_text_of(from, id), spec_field_text_of(to, id));
    case SPEC_TEXTS:
    case SPEC_MAP:
        return copy_list(spec_field_list_of(from, id), spec_field_list_of(to, id));
    case SPEC_VOLUMES:
        return copy_volumes(from, to);
    case SPEC_USER:
        to->user_set = from->user_set;
        to->uid = from->uid;
        to->gid = from->gid;
        return 0;
    case SPEC_SIZE:
    case SPEC_DURATION:
    case SPEC_COUNT:
    case SPEC_DECIMAL:
        *spec_field_number_of(to, id) = *spec_field_number_of(from, id);
        return 0;
    case SPEC_KIND__MAX:
        break;
    }
    return 0;
}

int spec_copy(const struct spec *s, uint64_t fields, struct spec *ret)
{
    struct spec *from = (struct spec *)(uintptr_t)s; /* is only read */
    struct spec copy;
    int r = spec_init(&copy);

    for (enum spec_field_id id = 0; r == 0 && id < SPEC_FIELD__MAX; id++)
        if (fields & spec_field_bit(id))
            r = copy_field(from, id, &copy);
    if (r == 0 && fields == UINT64_MAX) {
        r = copy_text(s->name, &copy.name);
        copy.owned = s->owned;
        copy.report_steps = s->report_steps;
    }
    if (r < 0)
        spec_done(&copy);
    else
        *ret = copy;
    return r;
}
