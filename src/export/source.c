/* SPDX-License-Identifier: Apache-2.0 */
/* Ceilings and processes of an export, and the sentences about them. */
#include "export/source.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "core/limits.h"
#include "base/guards.h"

/* From here on hashing takes so long that starting a process for the rest pays. */
enum { LARGE_BYTES = 4 * 1024 * 1024 };

void source_open(struct source *src, struct session *s, struct loop *l, uint64_t max_bytes)
{
    *src = (struct source){
        .files = {.main = s}, .loop = l, .max_bytes = max_bytes, .in_band = s->in_band};
}

void source_close(struct source *src)
{
    files_done(&src->files);
    src->files.main = NULL;
    copier_process_free(src->process);
    src->process = NULL;
}

void source_show(const char *path, char ret[static SOURCE_SHOWN_BYTES])
{
    size_t n = strlen(path), most = SOURCE_SHOWN_BYTES - 4;

    (void)snprintf(ret, SOURCE_SHOWN_BYTES, "%s%s", n > most ? "..." : "",
                   n > most ? path + (n - most) : path);
    text_make_printable(ret);
}

int source_check_size(const struct source *src, const char *path, uint64_t bytes, struct error *err)
{
    char shown[SOURCE_SHOWN_BYTES];

    if (bytes <= src->max_bytes)
        return 0;
    source_show(path, shown);
    (void)error_set(err, ERROR_TOO_LARGE, EFBIG,
                    "'%s' has %llu bytes, and at most %llu may be exported", shown,
                    (unsigned long long)bytes, (unsigned long long)src->max_bytes);
    return error_remedy(err, "Export less, or raise the limit on exported files");
}

int source_count(struct source *src, struct error *err)
{
    if (++src->entries <= LIMIT_EXPORT_FILES)
        return 0;
    (void)error_set(err, ERROR_TOO_LARGE, EFBIG,
                    "there are more than %llu files, folders and links to export",
                    (unsigned long long)LIMIT_EXPORT_FILES);
    return error_remedy(err, "Pack them into an archive inside, and export that");
}

static int start_process(struct source *src, struct error *err)
{
    return src->process ? 0 : copier_process_new(src->loop, &src->process, err);
}

int source_copy(struct source *src, struct copier *w, uint64_t bytes, struct error *err)
{
    bool large = bytes >= LARGE_BYTES;
    int r = large ? start_process(src, err) : 0;

    w->process = large ? src->process : NULL;
    return r < 0 ? r : copier_start(w, err);
}

int source_sync(struct source *src, struct copier *w, int fd, struct error *err)
{
    int r = start_process(src, err);

    w->process = src->process;
    return r < 0 ? r : copier_sync(w, fd, err);
}

int source_changed(const char *path, struct error *err)
{
    char shown[SOURCE_SHOWN_BYTES];

    source_show(path, shown);
    (void)error_set(err, ERROR_RECOVERABLE, ESTALE, "'%s' changed while it was exported", shown);
    return error_remedy(err, "Export it when nothing inside writes to it any more");
}

uint64_t source_allowance_us(uint64_t bytes)
{
    uint64_t us = bytes / SOURCE_BYTES_A_SECOND * 1000000;

    return us > LIMIT_EXPORT_US ? us : LIMIT_EXPORT_US;
}

int source_too_slow(const char *path, uint64_t allowance_us, struct error *err)
{
    char shown[SOURCE_SHOWN_BYTES];

    source_show(path, shown);
    (void)error_set(err, ERROR_RECOVERABLE, ETIMEDOUT,
                    "'%s' came too slowly: it was given %llu s, and a second more for each MiB "
                    "beyond 120",
                    shown, (unsigned long long)(allowance_us / 1000000));
    return error_remedy(err, "Export again, or export less");
}
