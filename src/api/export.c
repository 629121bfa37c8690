/* SPDX-License-Identifier: Apache-2.0 */
/* Exports as operations. */
#include <errno.h>
#include <stdlib.h>

#include "api/api.h"
#include "base/cleanup.h"
#include "core/limits.h"
#include "core/sandbox_id.h"
#include "export/export.h"
#include "base/guards.h"

struct export_op {
    struct atoll_op op;
    struct exporting *export; /* owned */
    struct atoll_exported *results;
    size_t n_results;
};

static void export_done(struct exporting *x)
{
    struct export_op *q = export_owner(x);
    const struct export_result *r = export_results(x, &q->n_results);

    q->results = calloc(q->n_results + 1, sizeof *q->results);
    if (!r || !q->results) {
        op_fail_errno(&q->op, ENOMEM, "all was published, but cannot be told");
        return;
    }
    for (size_t i = 0; i < q->n_results; i++)
        q->results[i] = (struct atoll_exported){.path = r[i].path,
                                                .url = r[i].url,
                                                .sha256 = r[i].folder ? NULL : r[i].sum,
                                                .files = r[i].files,
                                                .bytes = r[i].bytes};
    op_done(&q->op);
}

static void export_failed(struct exporting *x, const struct error *err)
{
    struct export_op *q = export_owner(x);

    op_fail(&q->op, err);
}

/* Its results stay, but nothing of it moves any more. */
static bool export_cancel(struct atoll_op *op)
{
    struct export_op *q = (struct export_op *)op;

    export_free(q->export);
    q->export = NULL;
    return true;
}

static void export_detach(struct atoll_op *op)
{
    if (!op->done)
        (void)export_cancel(op);
}

static void export_release(struct atoll_op *op)
{
    struct export_op *q = (struct export_op *)op;

    export_free(q->export);
    free(q->results);
}

static size_t export_count(const struct atoll_op *op)
{
    return ((const struct export_op *)op)->n_results;
}

static const struct atoll_exported *export_exported(const struct atoll_op *op, size_t i)
{
    const struct export_op *q = (const struct export_op *)op;

    return i < q->n_results ? &q->results[i] : NULL;
}

static const char *export_op_warning(const struct atoll_op *op, size_t i)
{
    const struct export_op *q = (const struct export_op *)op;

    return q->export ? export_warning(q->export, i) : NULL;
}

static uint64_t export_op_progress(const struct atoll_op *op)
{
    const struct export_op *q = (const struct export_op *)op;

    return q->export ? export_progress(q->export) : 0;
}

static const struct op_class export_class = {.cancel = export_cancel,
                                             .detach = export_detach,
                                             .release = export_release,
                                             .count = export_count,
                                             .exported = export_exported,
                                             .warning = export_op_warning,
                                             .progress = export_op_progress};

static int begin(struct export_op *q, const struct string_list *entries, uint64_t max_bytes,
                 struct error *err)
{
    static const struct export_events events = {.done = export_done, .failed = export_failed};
    struct atoll_sandbox *sb = q->op.sb;
    char backend[BACKEND_NAME_BYTES_MAX + 1];
    const char *id = sb->id ? sb->id : "";

    if (!sandbox_id_split(id, backend))
        backend[0] = '\0';
    const struct export_options options = {.entries = entries,
                                           .max_bytes =
                                               max_bytes > 0 ? max_bytes : LIMIT_EXPORT_BYTES,
                                           .sandbox = id,
                                           .backend = backend};
    int r = export_new(&options, &events, q, &q->export, err);
    if (r == 0)
        export_start(q->export, &sb->session, &q->op.a->loop);
    return r;
}

struct atoll_op *atoll_export(struct atoll_sandbox *sb, const char *const *exports,
                              uint64_t max_bytes)
{
    struct export_op *q = op_new(sb->a, sb, &export_class, sizeof *q);
    struct string_list entries = {0};
    struct error err = ERROR_INIT;
    int r = 0;

    if (!q)
        return NULL;
    for (size_t i = 0; r == 0 && exports[i]; i++)
        r = string_list_add(&entries, exports[i]);
    if (r < 0)
        op_fail_errno(&q->op, ENOMEM, "cannot keep what is to be exported");
    else if (begin(q, &entries, max_bytes, &err) < 0)
        op_fail(&q->op, &err);
    string_list_done(&entries);
    return &q->op;
}
