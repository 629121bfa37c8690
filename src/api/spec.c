/* SPDX-License-Identifier: Apache-2.0 */
/* Specs. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "api/api.h"
#include "base/cleanup.h"
#include "core/spec_file.h"
#include "core/spec_set.h"
#include "base/guards.h"

struct atoll_spec *atoll_spec_new(void)
{
    struct atoll_spec *s = calloc(1, sizeof *s);

    if (s && spec_init(&s->spec) < 0) {
        free(s);
        return NULL;
    }
    return s;
}

void atoll_spec_free(struct atoll_spec *s)
{
    if (!s)
        return;
    spec_done(&s->spec);
    free(s);
}

int atoll_spec_read(struct atoll_spec *s, const char *text, size_t len, bool json,
                    const char *folder, struct atoll_error *err)
{
    _cleanup_(problems_done) struct problems problems = {0};
    struct error e = ERROR_INIT;
    struct spec spec = {0};

    if (spec_text_read(text, len, json ? DOCUMENT_JSON : DOCUMENT_YAML, NULL, folder, &spec,
                       &problems, &e) < 0)
        return api_error(err, &e);
    spec.name = TAKE_PTR(s->spec.name); /* is not of the text */
    spec_done(&s->spec);
    s->spec = spec;
    s->given = UINT64_MAX; /* what is contradictory was refused just now */
    return 0;
}

static int no_field(const char *field, struct atoll_error *err)
{
    struct error e = ERROR_INIT;

    (void)error_set(&e, ERROR_USAGE, EINVAL, "a spec has no field '%.100s'", field);
    (void)error_remedy(&e, "Name it with its section: spec.env, backend.memory");
    return api_error(err, &e);
}

static int set_name(struct atoll_spec *s, const char *value, struct atoll_error *err)
{
    struct error e = ERROR_INIT;
    char *copy = strdup(value);

    if (!copy) {
        (void)error_set(&e, ERROR_TERMINAL, ENOMEM, "out of memory");
        return api_error(err, &e);
    }
    free(s->spec.name);
    s->spec.name = copy;
    return 0;
}

int atoll_spec_set(struct atoll_spec *s, const char *field, const char *value,
                   struct atoll_error *err)
{
    _cleanup_(problems_done) struct problems problems = {0};
    struct spec_filling f = {.spec = &s->spec, .problems = &problems, .given = s->given};
    struct error e = ERROR_INIT;
    const char *rest = "";
    enum spec_field_id id;

    if (strcmp(field, "name") == 0)
        return set_name(s, value, err);
    id = spec_field_at(field, &rest);
    if (id == SPEC_FIELD__MAX || rest[0] != '\0')
        return no_field(field, err);
    if (!spec_set(&f, id, field, value)) {
        if (problems_error(&problems, NULL, &e) == 0)
            (void)error_set(&e, ERROR_TERMINAL, ENOMEM, "out of memory");
        return api_error(err, &e);
    }
    s->given = f.given;
    return 0;
}
