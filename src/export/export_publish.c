/* SPDX-License-Identifier: Apache-2.0 */
/* Third phase: every copy is renamed into its place, or none is. */
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "export/entry.h"
#include "base/guards.h"

enum {
    MORE_BYTES = 256,
    OWNER_MODE = 0700, /* a folder that its owner could not change could not be replaced either */
};

/* Takes back what was published before entry @n. What cannot be stays, and is told in @more. */
static void take_back(struct exporting *x, size_t n, char more[static MORE_BYTES])
{
    bool all = true;

    (void)snprintf(more, MORE_BYTES, "%s",
                   n > 0 ? "; what was published before was taken back" : "");
    for (size_t i = n; i > 0; i--) {
        struct export_entry *e = &x->entries[i - 1];
        struct error err = ERROR_INIT;

        if (staging_undo(&e->place, &err) == 0)
            continue;
        export_warn(x, &err);
        size_t used = all ? 0 : strlen(more);
        (void)snprintf(more + used, MORE_BYTES - used, "%s%.100s",
                       all ? "; already published, and could not be taken back: " : ", ", e->url);
        all = false;
        err = (struct error)ERROR_INIT;
        if (staging_settle(&e->place, &err) < 0)
            export_warn(x, &err);
    }
}

static int publish_all(struct exporting *x, struct error *err)
{
    char more[MORE_BYTES];

    for (x->at = 0; x->at < x->n; x->at++) {
        struct export_entry *e = &x->entries[x->at];
        struct error cause = ERROR_INIT;

        if (staging_publish(&e->place, e->is_folder ? e->mode | OWNER_MODE : e->mode, &cause) == 0)
            continue;
        take_back(x, x->at, more);
        export_explain(x, e, &cause, more, err);
        return -err->code;
    }
    return 0;
}

int export_publish(struct exporting *x, struct error *err)
{
    int r = publish_all(x, err);

    if (r < 0)
        return r;
    for (size_t i = 0; i < x->n; i++) {
        struct error left = ERROR_INIT;

        if (staging_settle(&x->entries[i].place, &left) < 0)
            export_warn(x, &left);
    }
    export_clean_up(x);
    export_succeed(x);
    return 0;
}
