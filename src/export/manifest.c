/* SPDX-License-Identifier: Apache-2.0 */
/* Manifests: what is kept of each file, and how it is written. */
#include "export/manifest.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "wire/json_text.h"
#include "base/guards.h"

enum { MANIFEST_VERSION = 1 };

static struct manifest_item *add(struct manifest *m, const char *path)
{
    /* Grows by doubling, at powers of two. */
    if ((m->n & (m->n - 1)) == 0) {
        struct manifest_item *more = realloc(m->items, (m->n ? m->n * 2 : 1) * sizeof *more);

        if (!more)
            return NULL;
        m->items = more;
    }
    m->items[m->n] = (struct manifest_item){.path = strdup(path)};
    return m->items[m->n].path ? &m->items[m->n++] : NULL;
}

int manifest_add_file(struct manifest *m, const char *path, uint64_t bytes, mode_t mode,
                      const uint8_t sum[static COPIER_SUM_BYTES])
{
    struct manifest_item *item = add(m, path);

    if (!item)
        return -ENOMEM;
    item->bytes = bytes;
    item->mode = mode;
    memcpy(item->sum, sum, sizeof item->sum);
    m->files++;
    m->bytes += bytes;
    return 0;
}

int manifest_add_link(struct manifest *m, const char *path, const char *target)
{
    struct manifest_item *item = add(m, path);

    if (!item)
        return -ENOMEM;
    item->target = strdup(target);
    m->links++;
    return item->target ? 0 : -ENOMEM;
}

/* Where the text goes, and what has gone wrong so far. */
struct sink {
    int (*put)(void *arg, const void *data, size_t len);
    void *arg;
    int error;
};

static void put(struct sink *s, const char *text)
{
    if (s->error == 0)
        s->error = s->put(s->arg, text, strlen(text));
}

/* @value is consumed; NULL counts as memory that ran out. */
static void put_json(struct sink *s, json_t *value)
{
    _cleanup_free_ char *text = value ? json_dumps(value, JSON_COMPACT | JSON_ENCODE_ANY) : NULL;

    json_decref(value);
    if (text)
        put(s, text);
    else if (s->error == 0)
        s->error = -ENOMEM;
}

static json_t *item_json(const struct manifest_item *x)
{
    json_t *o = json_object();
    char sum[COPIER_SUM_TEXT], mode[8];
    bool good = o && name_set_json(o, "path", x->path) == 0;

    if (x->target) {
        good = good && name_set_json(o, "target", x->target) == 0;
    } else {
        copier_sum_text(x->sum, sum);
        (void)snprintf(mode, sizeof mode, "%04o", (unsigned)x->mode & 0777u);
        good = good && json_object_set_new(o, "size", json_integer((json_int_t)x->bytes)) == 0 &&
               json_object_set_new(o, "sha256", json_string(sum)) == 0 &&
               json_object_set_new(o, "mode", json_string(mode)) == 0;
    }
    if (good)
        return o;
    json_decref(o);
    return NULL;
}

/* The files, or the links: a list with an entry on each line. */
static void put_list(struct sink *s, const struct manifest *m, bool links)
{
    const char *before = "\n";

    for (size_t i = 0; i < m->n && s->error == 0; i++) {
        if ((m->items[i].target != NULL) != links)
            continue;
        put(s, before);
        put_json(s, item_json(&m->items[i]));
        before = ",\n";
    }
}

static int by_path(const void *a, const void *b)
{
    return strcmp(((const struct manifest_item *)a)->path, ((const struct manifest_item *)b)->path);
}

int manifest_write(struct manifest *m, const char *sandbox,
                   int (*put_bytes)(void *arg, const void *data, size_t len), void *arg)
{
    struct sink s = {.put = put_bytes, .arg = arg};
    char text[64];

    if (m->n > 1)
        qsort(m->items, m->n, sizeof *m->items, by_path);
    (void)snprintf(text, sizeof text, "{\"version\":%d,\"sandbox\":", MANIFEST_VERSION);
    put(&s, text);
    put_json(&s, json_text(sandbox));
    put(&s, ",\n\"total\":");
    put_json(&s, json_pack("{s:I, s:I, s:I}", "files", (json_int_t)m->files, "links",
                           (json_int_t)m->links, "bytes", (json_int_t)m->bytes));
    put(&s, ",\n\"files\":[");
    put_list(&s, m, false);
    put(&s, "],\n\"links\":[");
    put_list(&s, m, true);
    put(&s, "]}\n");
    return s.error;
}

void manifest_done(struct manifest *m)
{
    for (size_t i = 0; i < m->n; i++) {
        free(m->items[i].path);
        free(m->items[i].target);
    }
    free(m->items);
    *m = (struct manifest){0};
}
