/* SPDX-License-Identifier: Apache-2.0 */
/* Exports at the end of a run. */
#include "cli/run_export.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "atoll.h"
#include "base/cleanup.h"
#include "cli/export_text.h"
#include "base/guards.h"

/* One line of the log, as @print writes it. */
static void log_line(const struct run_export *x,
                     void (*print)(FILE *, const struct run_export *,
                                   const struct atoll_exported *),
                     const struct atoll_exported *e)
{
    _cleanup_free_ char *text = NULL;
    struct log log = x->cli->log;
    size_t size = 0;
    FILE *f = open_memstream(&text, &size);

    if (!f)
        return;
    print(f, x, e);
    if (fclose(f) != 0)
        return;
    log.level = LOG_LEVEL_INFO;
    log_write(&log, LOG_LEVEL_INFO, "export", "%s", text);
}

static void print_copied(FILE *f, const struct run_export *x, const struct atoll_exported *e)
{
    export_text_copied(f, e, x->id);
}

static void print_published(FILE *f, const struct run_export *x, const struct atoll_exported *e)
{
    (void)x;
    export_text_published(f, e);
}

static struct atoll_exported published(const struct export_result *r)
{
    return (struct atoll_exported){.path = r->path,
                                   .url = r->url,
                                   .sha256 = r->folder ? NULL : r->sum,
                                   .files = r->files,
                                   .bytes = r->bytes};
}

static void warn(const struct run_export *x)
{
    const char *warning;

    for (size_t i = 0; (warning = export_warning(x->export, i)); i++)
        log_write(&x->cli->log, LOG_LEVEL_WARNING, "export", "%s", warning);
}

static void export_done(struct exporting *export)
{
    struct run_export *x = export_owner(export);
    size_t n;
    const struct export_result *r = export_results(export, &n);

    for (size_t i = 0; i < n; i++) {
        const struct atoll_exported e = published(&r[i]);

        if (x->verbose)
            log_line(x, print_copied, &e);
        (void)json_array_append_new(x->result->exports, export_text_json(&e));
    }
    for (size_t i = 0; x->verbose && i < n; i++) {
        const struct atoll_exported e = published(&r[i]);

        log_line(x, print_published, &e);
    }
    warn(x);
    run_finished(x->run, NULL);
}

/* Of a run nothing is left to be mended, whatever the class of the failure itself. */
static void fail(struct run_export *x, struct error err)
{
    err.cls = ERROR_TERMINAL;
    run_finished(x->run, &err);
}

static void export_failed(struct exporting *export, const struct error *err)
{
    struct run_export *x = export_owner(export);

    warn(x);
    fail(x, *err);
}

static int begin_export(struct run_export *x, const char *id, struct error *err)
{
    static const struct export_events events = {.done = export_done, .failed = export_failed};
    const struct spec *s = x->spec;
    bool local = strcmp(s->backend, "local") == 0;

    if (asprintf(&x->id, "%s%s%s", local ? "" : s->backend, local ? "" : ":", id) < 0) {
        x->id = NULL;
        return error_set(err, ERROR_TERMINAL, ENOMEM, "out of memory");
    }
    const struct export_options options = {.entries = &s->toolset.exports,
                                           .max_bytes = s->toolset.max_export_bytes,
                                           .sandbox = x->id,
                                           .backend = s->backend};
    return export_new(&options, &events, x, &x->export, err);
}

static void begin(void *arg, struct run *r, struct session *s, struct loop *l, const char *id)
{
    struct run_export *x = arg;
    struct error err = ERROR_INIT;

    x->run = r;
    if (begin_export(x, id, &err) < 0)
        fail(x, err);
    else
        export_start(x->export, s, l);
}

static void end(void *arg)
{
    struct run_export *x = arg;

    export_free(x->export);
    x->export = NULL;
    free(x->id);
    x->id = NULL;
}

void run_export_init(struct run_export *x, struct cli *cli, const struct spec *spec, bool verbose,
                     struct result_file *result)
{
    *x = (struct run_export){.cli = cli, .spec = spec, .verbose = verbose, .result = result};
    x->finish = (struct run_finish){.arg = x, .begin = begin, .end = end};
    result->exports = json_array();
}
