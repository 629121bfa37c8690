/* SPDX-License-Identifier: Apache-2.0 */
/* Second phase: each entry is copied into its staging place, hashed, compared and put on disk. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "export/entry.h"
#include "export/host_error.h"
#include "export/host_tools.h"
#include "base/guards.h"

enum {
    MANIFEST_MODE = 0644,
    OPEN_MODE = 0777, /* of what has no mode of its own yet; less the umask */
    TAIL_PARTS = 3,   /* as many as the names of tools' files have in front of the last one */
};

static struct export_entry *current(struct exporting *x)
{
    return &x->entries[x->at];
}

static int no_memory(struct error *err)
{
    return error_set(err, ERROR_TERMINAL, ENOMEM, "out of memory");
}

/* Files of tools of the host */

/* The next part of a path, without empty ones and "."; its length, 0 at the end. */
static size_t next_part(const char **path)
{
    for (;;) {
        size_t n = strcspn(*path, "/");

        if (n > 1 || (n == 1 && **path != '.'))
            return n;
        if ((*path)[n] == '\0')
            return 0;
        *path += n + 1;
    }
}

static bool same_path(const char *a, const char *b)
{
    if ((a[0] == '/') != (b[0] == '/'))
        return false;
    for (;;) {
        size_t n = next_part(&a), m = next_part(&b);

        if (n != m || memcmp(a, b, n) != 0)
            return false;
        if (n == 0)
            return true;
        a += n;
        b += n;
    }
}

static bool is_named(const struct exporting *x, const char *path)
{
    for (size_t i = 0; i < x->n; i++)
        if (!x->entries[i].is_pattern && same_path(x->entries[i].path, path))
            return true;
    return false;
}

static void join(char ret[static TOPS_NAME_BYTES], const char *folder, const char *name)
{
    size_t n = strlen(folder);

    (void)snprintf(ret, TOPS_NAME_BYTES, "%s%s%s", folder,
                   n > 0 && folder[n - 1] != '/' && name[0] != '\0' ? "/" : "", name);
}

/* The end of a path, which says what it is: "/home/me/repo/.git/hooks" becomes "repo/.git/hooks".
 */
static void tail_of(const char *path, char ret[static TOP_BYTES])
{
    const char *parts[TAIL_PARTS] = {0};
    size_t lengths[TAIL_PARTS] = {0}, at = 0;

    for (size_t n; (n = next_part(&path)) > 0; path += n) {
        memmove(parts, parts + 1, sizeof parts - sizeof *parts);
        memmove(lengths, lengths + 1, sizeof lengths - sizeof *lengths);
        parts[TAIL_PARTS - 1] = path;
        lengths[TAIL_PARTS - 1] = n;
    }
    for (size_t i = 0; i < TAIL_PARTS; i++) {
        if (at > 0)
            ret[at++] = '/';
        memcpy(ret + at, parts[i] ? parts[i] : "", lengths[i]);
        at += lengths[i];
    }
    ret[at] = '\0';
}

/* What follows is asked for as @asked, and goes to the destination of the current entry. */
static void set_tops(struct exporting *x, const char *asked)
{
    tail_of(asked, x->tops.inside);
    tail_of(current(x)->to.path, x->tops.here);
}

static const char *reason_for(struct exporting *x, const char *top, const char *path, uint32_t kind)
{
    (void)snprintf(x->tops.name, sizeof x->tops.name, "%s%s%s", top,
                   top[0] != '\0' && path[0] != '\0' ? "/" : "", path);
    return host_tools_reason(x->tops.name, kind);
}

static int refuse_tool_file(const struct exporting *x, const char *name, const char *reason,
                            struct error *err)
{
    char shown[SOURCE_SHOWN_BYTES];

    if (is_named(x, name))
        return 0;
    source_show(name, shown);
    (void)error_set(err, ERROR_RECOVERABLE, EPERM, "'%s' would be used by tools of this host: %s",
                    shown, reason);
    return error_remedy(err, "Remove it, or name it in an export of its own");
}

/*
 * Whether @path beneath what is asked for as @asked may be published as @at in the folder of the
 * current entry. It is judged by the names that it has inside and will have here.
 */
static int judge(struct exporting *x, const char *asked, const char *path, const char *at,
                 uint32_t kind, struct error *err)
{
    const char *reason = reason_for(x, x->tops.inside, path, kind);
    bool manifest = strcmp(at, MANIFEST_NAME) == 0;
    char *name = x->tops.name, shown[SOURCE_SHOWN_BYTES];
    int r = 0;

    if (!reason)
        reason = reason_for(x, x->tops.here, at, kind);
    if (!reason && !manifest)
        return 0;
    join(name, asked, path);
    if (reason)
        r = refuse_tool_file(x, name, reason, err);
    if (r < 0 || !manifest)
        return r;
    source_show(name, shown);
    (void)error_set(err, ERROR_RECOVERABLE, EEXIST,
                    "'%s' is called like the manifest that the folder gets", shown);
    return error_remedy(err, "Rename it inside");
}

/* The end of an entry */

static int entry_done(struct exporting *x, struct error *err)
{
    (void)err;
    x->at++;
    export_next(x, export_copy);
    return 0;
}

static void copier_failed(struct copier *w, const struct error *err)
{
    export_fail(w->owner, err);
}

static void synchronised(struct copier *w)
{
    export_next(w->owner, entry_done);
}

static int synchronise(struct exporting *x, struct error *err)
{
    x->copier = (struct copier){.owner = x, .done = synchronised, .failed = copier_failed};
    return source_sync(&x->source, &x->copier, current(x)->place.fd, err);
}

static void manifest_copied(struct copier *w)
{
    struct exporting *x = w->owner;

    memcpy(current(x)->sum, w->sum, sizeof w->sum);
    fd_closep(&x->fd);
    export_next(x, synchronise);
}

/* For manifest_write(). */
struct manifest_sink {
    struct copier *copier;
    struct error *err;
};

static int put_manifest(void *arg, const void *data, size_t len)
{
    const struct manifest_sink *s = arg;
    const uint8_t *from = data;

    while (len > 0) {
        size_t room;
        uint8_t *to = copier_room(s->copier, &room);
        size_t n = len < room ? len : room;

        memcpy(to, from, n); /* without a process there is always room */
        int r = copier_took(s->copier, n, s->err);
        if (r < 0)
            return r;
        from += n;
        len -= n;
    }
    return 0;
}

/* All of a folder is there: its manifest, then the disk. */
static int seal(struct exporting *x, struct error *err)
{
    struct export_entry *e = current(x);
    struct manifest_sink sink = {.copier = &x->copier, .err = err};

    e->files = e->manifest.files;
    e->bytes = e->manifest.bytes;
    x->fd = openat(e->place.fd, MANIFEST_NAME, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
                   MANIFEST_MODE);
    if (x->fd < 0)
        return host_error(err, errno, "'%s' cannot be written", MANIFEST_NAME);
    x->copier =
        (struct copier){.fd = x->fd, .owner = x, .done = manifest_copied, .failed = copier_failed};
    int r = source_copy(&x->source, &x->copier, 0, err);
    if (r == 0)
        r = manifest_write(&e->manifest, x->sandbox, put_manifest, &sink);
    if (r < 0)
        return err->code != 0 ? r : no_memory(err);
    copier_finish(&x->copier, false);
    return 0;
}

/* Files */

static void file_failed(struct export_file *f, const struct error *err)
{
    export_fail(f->owner, err);
}

static void file_done(struct export_file *f)
{
    struct exporting *x = f->owner;
    struct export_entry *e = current(x);

    memcpy(e->sum, f->copier.sum, sizeof e->sum);
    e->files = 1;
    e->bytes = f->copier.bytes;
    e->mode = f->mode;
    export_next(x, entry_done);
}

static int copy_file(struct exporting *x, struct error *err)
{
    const struct export_entry *e = current(x);
    int r = source_count(&x->source, err);

    if (r < 0)
        return r;
    x->file = (struct export_file){.source = &x->source,
                                   .path = e->path,
                                   .to = e->place.fd,
                                   .durable = true,
                                   .owner = x,
                                   .done = file_done,
                                   .failed = file_failed};
    export_file_start(&x->file);
    return 0;
}

/* Folders */

static int copy_match(struct exporting *x, struct error *err);

static void folder_whole(struct exporting *x)
{
    bool match = current(x)->is_pattern;

    x->match += match;
    export_next(x, match ? copy_match : seal);
}

static void folder_done(struct export_folder *f)
{
    struct exporting *x = f->owner;

    if (!current(x)->is_pattern)
        current(x)->mode = f->mode;
    folder_whole(x);
}

static int judge_entry(void *owner, const char *path, uint32_t kind, struct error *err)
{
    struct exporting *x = owner;

    return judge(x, x->folder.path, path, x->folder.at, kind, err);
}

static void walk_done(struct export_walk *w)
{
    folder_whole(w->owner);
}

static void walk_failed(struct export_walk *w, const struct error *err)
{
    export_fail(w->owner, err);
}

static int judge_walked(void *owner, const char *path, uint32_t kind, struct error *err)
{
    struct exporting *x = owner;

    return judge(x, x->walk.path, path, x->walk.staged, kind, err);
}

static int walk_folder(struct exporting *x, struct error *err)
{
    const struct export_folder *f = &x->folder;

    (void)err;
    x->walk.source = &x->source;
    x->walk.manifest = f->manifest;
    x->walk.path = f->path;
    x->walk.root = f->root;
    x->walk.beneath = f->beneath;
    x->walk.owner = x;
    x->walk.judge = judge_walked;
    x->walk.done = walk_done;
    x->walk.failed = walk_failed;
    export_walk_start(&x->walk);
    return 0;
}

static void folder_failed(struct export_folder *f, const struct error *err)
{
    /* A backend that cannot pack a folder may still list it and read its files. */
    if (err->code == ENOSYS && f->source->in_band && f->received == 0)
        export_next(f->owner, walk_folder);
    else
        export_fail(f->owner, err);
}

static void copy_folder(struct exporting *x, const char *path, const char *beneath)
{
    struct export_entry *e = current(x);
    struct export_folder *f = &x->folder;

    set_tops(x, path);
    f->source = &x->source;
    f->manifest = &e->manifest;
    f->path = path;
    f->root = e->place.fd;
    f->beneath = beneath;
    f->owner = x;
    f->judge = judge_entry;
    f->done = folder_done;
    f->failed = folder_failed;
    export_folder_start(f);
}

/* Patterns */

static const struct pattern_match *current_match(struct exporting *x)
{
    return &current(x)->pattern.found[x->match];
}

static void match_done(struct export_file *f)
{
    struct exporting *x = f->owner;
    struct error err = ERROR_INIT;
    struct stat st;

    int r = fstat(x->fd, &st) < 0 || fchmod(x->fd, st.st_mode & f->mode) < 0 ? -errno : 0;
    if (r < 0)
        (void)host_error(&err, -r, "'%.100s' cannot be written", current_match(x)->rest);
    else if (manifest_add_file(&current(x)->manifest, current_match(x)->rest, f->copier.bytes,
                               st.st_mode & f->mode, f->copier.sum) < 0)
        (void)no_memory(&err);
    if (err.code != 0) {
        export_fail(x, &err);
        return;
    }
    fd_closep(&x->fd);
    x->match++;
    export_next(x, copy_match);
}

static int copy_match(struct exporting *x, struct error *err)
{
    struct export_entry *e = current(x);
    const struct pattern_match *m = current_match(x);
    int r;

    if (x->match == e->pattern.n_found)
        return seal(x, err);
    set_tops(x, m->path);
    r = judge(x, m->path, "", m->rest, m->folder ? FILE_FOLDER : FILE_REGULAR, err);
    if (r == 0 && !m->folder) /* folders are counted as they come */
        r = source_count(&x->source, err);
    if (r < 0)
        return r;
    if (m->folder) {
        copy_folder(x, m->path, m->rest);
        return 0;
    }
    x->fd = export_walk_make_file(e->place.fd, m->rest);
    if (x->fd < 0)
        return host_error(err, -x->fd, "'%.100s' cannot be written", m->rest);
    x->file = (struct export_file){.source = &x->source,
                                   .path = m->path,
                                   .to = x->fd,
                                   .owner = x,
                                   .done = match_done,
                                   .failed = file_failed};
    export_file_start(&x->file);
    return 0;
}

int export_copy(struct exporting *x, struct error *err)
{
    struct export_entry *e = current(x);
    int r = 0;

    if (x->at == x->n) {
        export_next(x, export_publish);
        return 0;
    }
    if (!x->has_journal) {
        r = journal_open(&x->journal, err);
        x->has_journal = r == 0;
    }
    if (r == 0)
        r = staging_make(&e->place, &x->journal, err);
    if (r < 0)
        return r;
    if (e->is_pattern) {
        e->mode = OPEN_MODE;
        x->match = 0;
        return copy_match(x, err);
    }
    if (!e->is_folder)
        return copy_file(x, err);
    copy_folder(x, e->path, "");
    return 0;
}
