/* SPDX-License-Identifier: Apache-2.0 */
/* Lines and JSON of what was exported. */
#include "cli/export_text.h"

#include "base/cleanup.h"
#include "cli/name_text.h"
#include "cli/sandbox_text.h"
#include "base/guards.h"

void export_text_copied(FILE *f, const struct atoll_exported *x, const char *sandbox)
{
    char size[SANDBOX_WORDS];

    sandbox_bytes_text(size, x->bytes);
    fputs("Exported ", f);
    name_print_quoted(f, x->path);
    fprintf(f, " from sandbox %s (%s", sandbox, size);
    if (!x->sha256)
        fprintf(f, " in %llu file%s", (unsigned long long)x->files, x->files == 1 ? "" : "s");
    putc(')', f);
}

void export_text_published(FILE *f, const struct atoll_exported *x)
{
    fputs("Published ", f);
    name_print_quoted(f, x->url);
}

json_t *export_text_json(const struct atoll_exported *x)
{
    json_t *o = json_object(),
           *rest = json_pack("{s:I, s:I, s:s?}", "files", (json_int_t)x->files, "bytes",
                             (json_int_t)x->bytes, "sha256", x->sha256);

    if (!o || name_set_json(o, "path", x->path) < 0 || name_set_json(o, "url", x->url) < 0 ||
        json_object_update(o, rest) < 0) {
        json_decref(o);
        o = NULL;
    }
    json_decref(rest);
    return o;
}
