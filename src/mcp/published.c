/* SPDX-License-Identifier: Apache-2.0 */
#include "mcp/published.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/parse.h"
#include "base/path.h"
#include "core/destination.h"
#include "core/limits.h"
#include "export/manifest.h"
#include "export/pattern.h"
#include "toolset/media.h"
#include "toolset/texts.h"
#include "toolset/toolset.h"
#include "wire/base64.h"
#include "wire/json_scan.h"
#include "base/guards.h"

enum { LOOK_BYTES = 4096 };                           /* of a file, for its type */
#define MANIFEST_BYTES_MAX ((size_t)(64 * LIMIT_MIB)) /* of one that is searched */

#define FOLDER_TYPE "inode/directory"

/* --- types --- */

struct type {
    const char *suffix, *name;
    bool text;
};

static const struct type types[] = {
    {".txt", "text/plain", true},
    {".log", "text/plain", true},
    {".md", "text/markdown", true},
    {".csv", "text/csv", true},
    {".tsv", "text/tab-separated-values", true},
    {".html", "text/html", true},
    {".htm", "text/html", true},
    {".css", "text/css", true},
    {".js", "text/javascript", true},
    {".json", "application/json", true},
    {".yaml", "application/yaml", true},
    {".yml", "application/yaml", true},
    {".xml", "application/xml", true},
    {".svg", "image/svg+xml", true},
    {".png", "image/png", false},
    {".jpg", "image/jpeg", false},
    {".jpeg", "image/jpeg", false},
    {".gif", "image/gif", false},
    {".webp", "image/webp", false},
    {".pdf", "application/pdf", false},
    {".zip", "application/zip", false},
    {".gz", "application/gzip", false},
    {".wav", "audio/wav", false},
    {".mp3", "audio/mpeg", false},
    {".mp4", "video/mp4", false},
};

/* By what @name ends with; NULL: nothing that is known. */
static const struct type *type_by_name(const char *name)
{
    const char *dot = strrchr(name, '.');

    for (size_t i = 0; dot && i < ARRAY_SIZE(types); i++)
        if (strcasecmp(dot, types[i].suffix) == 0)
            return &types[i];
    return NULL;
}

/* What the name promises holds as far as the bytes are of that kind. */
static const char *type_of(const char *name, const void *bytes, size_t len, bool whole, bool *text)
{
    const char *found = media_type(bytes, len, whole);
    const struct type *named = type_by_name(name);

    *text = !found;
    if (*text)
        return named && named->text ? named->name : "text/plain";
    return named && !named->text && strcmp(found, "application/octet-stream") == 0 ? named->name
                                                                                   : found;
}

/* --- files --- */

/*
 * What was published under @url, opened. As at the publication, links in the path of its folder are
 * followed, since they are its owner's; there is none in its own place.
 */
static int open_destination(const char *url, int flags)
{
    _cleanup_(destination_done) struct destination to = {0};
    _cleanup_fd_ int parent = -EBADF;
    struct error ignored = ERROR_INIT;
    int r = destination_parse(url, &to, &ignored);

    if (r < 0)
        return r;
    size_t n = (size_t)(strrchr(to.path, '/') - to.path);
    to.path[n > 0 ? n : 1] = '\0';
    parent = open(to.path, O_PATH | O_DIRECTORY | O_CLOEXEC);
    return parent < 0 ? -errno : path_open_plain(parent, to.name, flags, 0);
}

/* A file beneath @folder_fd, of which no part is a link. */
static int open_file(int folder_fd, const char *path)
{
    return path_open_plain(folder_fd, path, O_RDONLY | O_NONBLOCK, 0);
}

/*
 * All of a regular file.
 * @ret_size: that it has, also with -EFBIG
 *
 * Return: 0 with *@ret owned by the caller; -EFBIG above @max bytes; -EINVAL: no regular file.
 */
static int read_whole(int fd, uint64_t max, char **ret, size_t *ret_len, uint64_t *ret_size)
{
    _cleanup_free_ char *bytes = NULL;
    struct stat st;
    size_t len = 0;

    if (fstat(fd, &st) < 0)
        return -errno;
    if (!S_ISREG(st.st_mode))
        return -EINVAL;
    *ret_size = (uint64_t)st.st_size;
    if (*ret_size > max || *ret_size >= SIZE_MAX)
        return -EFBIG;
    bytes = malloc((size_t)*ret_size + 1);
    if (!bytes)
        return -ENOMEM;
    /* One that grows meanwhile is cut where it ended. */
    while (len < (size_t)*ret_size) {
        ssize_t n = read(fd, bytes + len, (size_t)*ret_size - len);

        if (n < 0 && errno != EINTR)
            return -errno;
        if (n == 0)
            break;
        len += n > 0 ? (size_t)n : 0;
    }
    *ret = TAKE_PTR(bytes);
    *ret_len = len;
    return 0;
}

/* --- what there is --- */

static void item_done(struct published_item *x)
{
    free(x->path);
    free(x->url);
    free(x->sha256);
    *x = (struct published_item){0};
}

void published_done(struct published *p)
{
    for (size_t i = 0; i < p->n; i++)
        item_done(&p->items[i]);
    free(p->items);
    *p = (struct published){0};
}

/* Return: 0 with @ret to be freed by item_done(); or -ENOMEM. */
static int item_new(const struct atoll_toolset *t, const struct atoll_exported *x,
                    struct published_item *ret)
{
    *ret = (struct published_item){
        .path = strdup(x->path),
        .url = strdup(x->url),
        .sha256 = x->sha256 ? strdup(x->sha256) : NULL,
        .files = x->files,
        .bytes = x->bytes,
        .t = t,
    };
    if (ret->path && ret->url && (ret->sha256 || !x->sha256))
        return 0;
    item_done(ret);
    return -ENOMEM;
}

int published_add(struct published *p, const struct atoll_toolset *t,
                  const struct atoll_exported *x)
{
    struct published_item item, *more;

    if (item_new(t, x, &item) < 0)
        return -ENOMEM;
    for (size_t i = 0; i < p->n; i++)
        if (strcmp(p->items[i].url, item.url) == 0) {
            item_done(&p->items[i]);
            p->items[i] = item;
            return 0;
        }
    more = reallocarray(p->items, p->n + 1, sizeof *more);
    if (!more) {
        item_done(&item);
        return -ENOMEM;
    }
    p->items = more;
    p->items[p->n++] = item;
    return 0;
}

/* --- listed --- */

/* The last part of the path, or, where that says nothing, of the place. Owned; NULL: no memory. */
static char *name_of(const struct published_item *x)
{
    _cleanup_(destination_done) struct destination to = {0};
    struct error ignored = ERROR_INIT;
    const char *slash = strrchr(x->path, '/'), *last = slash ? slash + 1 : x->path;

    if (!pattern_is(x->path) && last[strspn(last, ".")] != '\0')
        return strdup(last);
    if (destination_parse(x->url, &to, &ignored) < 0)
        return ignored.code == ENOMEM ? NULL : strdup(x->path);
    return strdup(to.name);
}

/* By its name, or by what it begins with. */
static const char *type_of_item(const struct published_item *x, const char *name)
{
    const struct type *named = type_by_name(name);
    uint8_t bytes[LOOK_BYTES];
    struct stat st;
    bool text;

    if (!x->sha256)
        return FOLDER_TYPE;
    if (named)
        return named->name;
    _cleanup_fd_ int fd = open_destination(x->url, O_RDONLY | O_NONBLOCK);
    ssize_t n = fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode)
                    ? pread(fd, bytes, sizeof bytes, 0)
                    : -1;
    return n < 0 ? "application/octet-stream"
                 : type_of(name, bytes, (size_t)n, (size_t)n < sizeof bytes, &text);
}

/* @text as a client may see it. NULL: no memory. */
static json_t *shown(const struct published_item *x, const char *text)
{
    size_t n = 0;
    _cleanup_free_ char *masked = toolset_masked(x->t, text, strlen(text), &n);

    return masked ? call_string(masked, n) : NULL;
}

static json_t *describe(const struct published_item *x)
{
    _cleanup_free_ char *masked = toolset_masked(x->t, x->path, strlen(x->path), NULL);
    _cleanup_free_ char *path = NULL, *text = NULL;
    int n;

    if (!masked || shown_path(masked, &path) < 0)
        return NULL;
    n = x->sha256 ? asprintf(&text, TEXT_RESOURCE, path)
                  : asprintf(&text, TEXT_RESOURCE_FOLDER, path, x->files, TEXT_FILES(x->files));
    if (n < 0)
        text = NULL;
    return text ? json_string(text) : NULL;
}

static json_t *item_json(const struct published_item *x)
{
    _cleanup_free_ char *name = name_of(x);
    json_t *o;

    if (!name)
        return NULL;
    o = json_pack("{s:o, s:o, s:o, s:s}", "uri", shown(x, x->url), "name", shown(x, name),
                  "description", describe(x), "mimeType", type_of_item(x, name));
    if (!o || !x->sha256) /* reading a folder gives its manifest, which has another size */
        return o;
    if (json_object_set_new(o, "size", json_integer((json_int_t)x->bytes)) == 0)
        return o;
    json_decref(o);
    return NULL;
}

json_t *published_list(const struct published *p)
{
    json_t *list = json_array();

    for (size_t i = 0; list && i < p->n; i++)
        if (json_array_append_new(list, item_json(&p->items[i])) < 0) {
            json_decref(list);
            list = NULL;
        }
    return list;
}

json_t *published_link(const struct atoll_toolset *t, const struct atoll_exported *x)
{
    struct published_item item;
    json_t *o;

    if (item_new(t, x, &item) < 0)
        return NULL;
    o = item_json(&item);
    item_done(&item);
    if (!o || json_object_set_new(o, "type", json_string("resource_link")) == 0)
        return o;
    json_decref(o);
    return NULL;
}

/* --- read --- */

/* What a URI names. */
struct wanted {
    const struct published_item *item;
    const char *rest; /* what follows "FOLDER/" in it, a view; NULL: the item itself */
    char *path;       /* that decoded; owned */
};

static void wanted_done(struct wanted *w)
{
    free(w->path);
}

/* Whether @uri is @url, or lies below it where that is a folder's. */
static bool matches(const struct published_item *x, const char *url, const char *uri,
                    struct wanted *ret)
{
    size_t n = strlen(url);

    if (strncmp(uri, url, n) != 0 || (uri[n] != '\0' && (x->sha256 || uri[n] != '/')))
        return false;
    *ret = (struct wanted){.item = x, .rest = uri[n] == '/' ? uri + n + 1 : NULL};
    return true;
}

/* By the URL, or as it is listed, where masking has changed it. */
static int find(const struct published *p, const char *uri, struct wanted *ret)
{
    for (size_t i = 0; i < p->n; i++)
        if (matches(&p->items[i], p->items[i].url, uri, ret))
            return 0;
    for (size_t i = 0; i < p->n; i++) {
        const struct published_item *x = &p->items[i];
        _cleanup_free_ char *masked = toolset_masked(x->t, x->url, strlen(x->url), NULL);

        if (!masked)
            return -ENOMEM;
        if (matches(x, masked, uri, ret))
            return 0;
    }
    return -ENOENT;
}

/*
 * The path that @rest stands for, decoded once. What is encoded may be neither '/' nor NUL, so that
 * no part is more than one, and each part has to be a name. Return: 0 with *@ret owned by the
 * caller; -ENOENT or -ENOMEM.
 */
static int decode(const char *rest, char **ret)
{
    _cleanup_free_ char *path = malloc(strlen(rest) + 2);
    size_t n = 0;

    if (!path)
        return -ENOMEM;
    path[n++] = '/';
    for (const char *p = rest; *p; p++) {
        char c = *p;

        if (c == '%') {
            int high = parse_hex_digit(p[1]), low = high < 0 ? -1 : parse_hex_digit(p[2]);

            c = low < 0 ? '/' : (char)(high * 16 + low);
            if (c == '/' || c == '\0')
                return -ENOENT;
            p += 2;
        }
        path[n++] = c;
    }
    path[n] = '\0';
    if (n == 1 || !path_is_plain_absolute(path))
        return -ENOENT;
    memmove(path, path + 1, n);
    *ret = TAKE_PTR(path);
    return 0;
}

/* Whether the manifest's entry @file is that of @path, whose base64 is @encoded. */
static bool is_file(struct json_span file, const char *path, const char *encoded)
{
    struct json_span bytes = json_span_member(file, "path_base64");
    _cleanup_free_ char *text = NULL;
    size_t len = 0;

    if (bytes.kind != JSON_SPAN_NONE)
        return json_span_is(bytes, encoded);
    return json_span_text(json_span_member(file, "path"), &text, &len) == 0 &&
           len == strlen(path) && memcmp(text, path, len) == 0;
}

/* Whether the manifest in @folder_fd lists a file @path: 0, -ENOENT or another negative errno. */
static int look_up(int folder_fd, const char *path)
{
    _cleanup_free_ char *text = NULL, *encoded = base64_encode(path, strlen(path), NULL);
    _cleanup_fd_ int fd = open_file(folder_fd, MANIFEST_NAME);
    struct json_span manifest, file;
    const char *at = NULL;
    uint64_t size = 0;
    size_t len = 0;
    int r;

    if (!encoded)
        return -ENOMEM;
    if (fd < 0)
        return fd;
    r = read_whole(fd, MANIFEST_BYTES_MAX, &text, &len, &size);
    if (r < 0)
        return r;
    if (json_scan(text, len, &manifest) < 0)
        return -ENOENT;
    struct json_span files = json_span_member(manifest, "files");
    while (json_span_next(files, &at, &file))
        if (is_file(file, path, encoded))
            return 0;
    return -ENOENT;
}

/* Return: an owned fd of what is to be read; or a negative errno. */
static int open_wanted(struct wanted *w)
{
    _cleanup_fd_ int folder = -EBADF;
    int r;

    if (w->item->sha256)
        return open_destination(w->item->url, O_RDONLY | O_NONBLOCK);
    r = w->rest ? decode(w->rest, &w->path) : 0;
    if (r < 0)
        return r;
    folder = open_destination(w->item->url, O_PATH | O_DIRECTORY);
    if (folder < 0)
        return folder;
    if (!w->path)
        return open_file(folder, MANIFEST_NAME);
    r = look_up(folder, w->path);
    return r < 0 ? r : open_file(folder, w->path);
}

/* Whatever says that there is no such file, or that it is not what was published, says the same. */
static int no_such(int r)
{
    switch (-r) {
    case ENOTDIR:
    case ELOOP:
    case EXDEV:
    case EISDIR:
    case ENXIO:
    case ENAMETOOLONG:
    case EINVAL:
        return -ENOENT;
    default:
        return r;
    }
}

static int fail(int r, uint64_t size, uint64_t max, struct error *err)
{
    char has[SHOWN_SIZE_BYTES], most[SHOWN_SIZE_BYTES];

    if (r == -ENOMEM)
        return error_set(err, ERROR_TERMINAL, ENOMEM, "out of memory");
    if (r != -EFBIG)
        return error_set(err, ERROR_RECOVERABLE, -r, TEXT_RESOURCE_UNREADABLE, strerror(-r));
    shown_size(size, has);
    shown_size(max, most);
    (void)error_set(err, ERROR_TOO_LARGE, EFBIG, TEXT_RESOURCE_TOO_LARGE, has, most);
    return error_remedy(err, "%s", TEXT_RESOURCE_TOO_LARGE_REMEDY);
}

/* NULL: no memory. */
static json_t *text_contents(const char *uri, const char *type, const char *masked, size_t len)
{
    return json_pack("[{s:s, s:s, s:o}]", "uri", uri, "mimeType", type, "text",
                     call_string(masked, len));
}

static json_t *blob_contents(const char *uri, const char *type, const void *bytes, size_t len)
{
    size_t n = 0;
    _cleanup_free_ char *blob = base64_encode(bytes, len, &n);

    return blob ? json_pack("[{s:s, s:s, s:s%}]", "uri", uri, "mimeType", type, "blob", blob, n)
                : NULL;
}

/* The bytes as `contents`, unless there is a secret in what cannot be masked. */
static int show(const struct wanted *w, const char *uri, const char *bytes, size_t len,
                json_t **ret, struct error *err)
{
    bool folder = !w->item->sha256 && !w->path, text;
    const char *type = type_of(w->path ? w->path : w->item->url, bytes, len, true, &text);
    _cleanup_free_ char *masked = NULL;
    size_t n = 0;

    if (mask_text(w->item->t->mask, bytes, len, 0, &masked, &n) < 0)
        return fail(-ENOMEM, 0, 0, err);
    if (!text && (n != len || memcmp(masked, bytes, len) != 0))
        return error_set(err, ERROR_RECOVERABLE, EPERM, "%s", TEXT_RESOURCE_SECRET);
    *ret = text ? text_contents(uri, folder ? "application/json" : type, masked, n)
                : blob_contents(uri, type, bytes, len);
    return *ret ? 0 : fail(-ENOMEM, 0, 0, err);
}

int published_read(const struct published *p, const char *uri, json_t **ret, struct error *err)
{
    _cleanup_free_ char *bytes = NULL;
    _cleanup_fd_ int fd = -EBADF;
    _cleanup_(wanted_done) struct wanted w = {0};
    uint64_t size = 0, max;
    size_t len = 0;
    int r = find(p, uri, &w);

    if (r < 0)
        return fail(r, 0, 0, err);
    max = w.item->t->spec.spec.toolset.max_read_bytes;
    fd = open_wanted(&w);
    r = fd < 0 ? fd : read_whole(fd, max, &bytes, &len, &size);
    if (r < 0)
        return fail(no_such(r), size, max, err);
    assert(bytes);
    return show(&w, uri, bytes, len, ret, err);
}
