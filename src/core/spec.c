/* SPDX-License-Identifier: Apache-2.0 */
/* The spec: defaults, ownership, and the grammar of each field. */
#include "core/spec.h"

#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "base/parse.h"
#include "base/path.h"
#include "base/text.h"
#include "core/limits.h"
#include "core/published.h"
#include "core/upstream.h"
#include "base/guards.h"

int spec_init(struct spec *s)
{
    *s = (struct spec){
        .block_network = true,
        .pids = LIMIT_PIDS_DEFAULT,
        .lifetime_us = LIMIT_LIFETIME_DEFAULT_US,
        .toolset = {.default_command_timeout_us = LIMIT_TOOL_TIMEOUT_DEFAULT_US,
                    .max_command_timeout_us = LIMIT_TOOL_TIMEOUT_CEILING_US,
                    .max_output_lines = LIMIT_TOOL_OUTPUT_LINES,
                    .max_output_bytes = LIMIT_TOOL_OUTPUT_BYTES,
                    .max_read_bytes = LIMIT_TOOL_READ_BYTES,
                    .max_export_bytes = LIMIT_EXPORT_BYTES},
    };
    s->backend = strdup("local");
    s->image = strdup("host");
    s->hostname = strdup("sandbox");
    s->egress_enforcement = strdup("pinned");
    return s->backend && s->image && s->hostname && s->egress_enforcement ? 0 : -ENOMEM;
}

static void toolset_done(struct toolset_spec *t)
{
    free(t->tool_prefix);
    free(t->purpose);
    string_list_done(&t->tools);
    free(t->export_credentials);
    free(t->attach_to);
    free(t->owner);
    string_list_done(&t->exports);
    string_list_done(&t->mask);
}

void spec_done(struct spec *s)
{
    struct string_list *const lists[] = {
        &s->env,           &s->allow_egress_to, &s->allow_egress_to_cidrs,
        &s->private_cidrs, &s->inputs,          &s->publish,
        &s->tags,          &s->prices,          &s->add_hosts};
    char *const texts[] = {s->owner,    s->backend,  s->image,
                           s->workdir,  s->hostname, s->egress_enforcement,
                           s->resolver, s->proxy,    s->proxy_credentials,
                           s->name,     s->audit};

    for (size_t i = 0; i < ARRAY_SIZE(texts); i++)
        free(texts[i]);
    for (size_t i = 0; i < ARRAY_SIZE(lists); i++)
        string_list_done(lists[i]);
    toolset_done(&s->toolset);
    for (size_t i = 0; i < s->n_volumes; i++) {
        free(s->volumes[i].host);
        free(s->volumes[i].guest);
    }
    free(s->volumes);
    *s = (struct spec){0};
}

static int no_memory(struct error *err)
{
    return error_set(err, ERROR_TERMINAL, ENOMEM, "out of memory");
}

/* Replaces *@field by a copy of @text. */
static int take_text(char **field, const char *text, struct error *err)
{
    char *copy = strdup(text);

    if (!copy)
        return no_memory(err);
    free(*field);
    *field = copy;
    return 0;
}

int spec_set_image(struct spec *s, const char *text, struct error *err)
{
    char full[PATH_MAX];
    struct stat st;

    if (strcmp(text, "host") == 0)
        return take_text(&s->image, text, err);
    if (strncmp(text, "dir:", 4) != 0 || text[4] == '\0') {
        error_set(err, ERROR_USAGE, EINVAL, "image '%s' is neither 'host' nor 'dir:PATH'", text);
        return error_remedy(err, "Name an unpacked root file system as dir:PATH");
    }
    if (!realpath(text + 4, full) || stat(full, &st) < 0) {
        error_set(err, ERROR_USAGE, errno, "image folder '%s' cannot be opened: %s", text + 4,
                  strerror(errno));
        return error_remedy(err, "Name a folder that holds an unpacked root file system");
    }
    if (!S_ISDIR(st.st_mode) || strcmp(full, "/") == 0 || strpbrk(full, ":,\\")) {
        error_set(err, ERROR_USAGE, ENOTDIR, "image '%s' %s", text + 4,
                  !S_ISDIR(st.st_mode)     ? "is not a folder"
                  : strcmp(full, "/") == 0 ? "is the host's own root"
                                           : "has a colon, comma or backslash in its path");
        return error_remedy(err, "%s",
                            strcmp(full, "/") == 0 ? "Use the image 'host'"
                                                   : "Name a folder that holds an unpacked root "
                                                     "file system");
    }
    char image[PATH_MAX + 4];
    (void)snprintf(image, sizeof image, "dir:%s", full);
    return take_text(&s->image, image, err);
}

static int workdir_check(const char *text, struct error *err)
{
    if (path_is_plain_absolute(text) && strlen(text) < PATH_MAX)
        return 0;
    error_set(err, ERROR_USAGE, EINVAL, "workdir '%s' is not a plain absolute path", text);
    return error_remedy(err, "Give a path such as /workspace/project, without '.' or '..'");
}

int spec_set_workdir(struct spec *s, const char *text, struct error *err)
{
    int r = workdir_check(text, err);

    return r < 0 ? r : take_text(&s->workdir, text, err);
}

/* One label of RFC 1123, section 2.1. */
static int hostname_check(const char *text, struct error *err)
{
    size_t n = strlen(text);
    bool good = n > 0 && n <= 63 && text[0] != '-' && text[n - 1] != '-';

    for (size_t i = 0; i < n; i++)
        good = good && ((text[i] >= 'a' && text[i] <= 'z') || (text[i] >= 'A' && text[i] <= 'Z') ||
                        (text[i] >= '0' && text[i] <= '9') || text[i] == '-');
    if (good)
        return 0;
    error_set(err, ERROR_USAGE, EINVAL, "hostname '%s' is not a host name", text);
    return error_remedy(err, "Use 1 to 63 letters, digits and inner hyphens");
}

int spec_set_hostname(struct spec *s, const char *text, struct error *err)
{
    int r = hostname_check(text, err);

    return r < 0 ? r : take_text(&s->hostname, text, err);
}

int spec_set_user(struct spec *s, const char *text, struct error *err)
{
    char uid_text[16];
    size_t n = strcspn(text, ":");
    uint64_t uid = 0, gid = 0;
    int r = -EINVAL;

    if (n < sizeof uid_text) {
        memcpy(uid_text, text, n);
        uid_text[n] = '\0';
        if (strcmp(uid_text, "root") == 0)
            r = 0;
        else
            r = parse_u64(uid_text, 0, 65534, &uid);
    }
    gid = uid;
    if (r == 0 && text[n] == ':')
        r = parse_u64(text + n + 1, 0, 65534, &gid);
    if (r < 0) {
        error_set(err, ERROR_USAGE, EINVAL, "user '%s' is not UID or UID:GID", text);
        return error_remedy(err, "Use numbers from 0 to 65534, such as 1000 or 1000:1000");
    }
    s->user_set = true;
    s->uid = (uint32_t)uid;
    s->gid = (uint32_t)gid;
    return 0;
}

static int volume_error(struct error *err, const char *text, int code, const char *why)
{
    error_set(err, ERROR_USAGE, code, "volume '%s': %s", text, why);
    return error_remedy(err,
                        "Write it as HOST:GUEST or HOST:GUEST:ro, with an existing HOST and an "
                        "absolute GUEST");
}

static bool is_guest_path(const char *path)
{
    return path_is_plain_absolute(path) && strcmp(path, "/") != 0;
}

/* Splits @text at its last colons into @v; the strings are owned by @v also on failure. */
static int volume_split(const char *text, struct volume *v, struct error *err)
{
    char host[PATH_MAX], full[PATH_MAX];
    size_t len = strlen(text);

    if (len >= sizeof host)
        return volume_error(err, text, ENAMETOOLONG, "it is too long");
    memcpy(host, text, len + 1);
    if (len > 3 && (strcmp(host + len - 3, ":ro") == 0 || strcmp(host + len - 3, ":rw") == 0)) {
        v->read_only = host[len - 1] == 'o';
        host[len - 3] = '\0';
    }
    char *guest = strrchr(host, ':');
    if (!guest || guest == host)
        return volume_error(err, text, EINVAL, "there is no colon between two paths");
    *guest++ = '\0';
    if (!is_guest_path(guest)) /* said first: the colon may be where none was meant */
        return volume_error(err, text, EINVAL, "the path inside is not a plain absolute path");
    if (!realpath(host, full))
        return volume_error(err, text, errno,
                            errno == ENOENT ? "HOST does not exist" : "HOST cannot be opened");
    v->host = strdup(full);
    v->guest = strdup(guest);
    return v->host && v->guest ? 0 : no_memory(err);
}

/* What holds for volume @v beside the @n first ones of @s. */
static int volume_check(const struct spec *s, size_t n, const struct volume *v, const char *text,
                        struct error *err)
{
    static const char *const kept[] = {"/proc", "/dev", "/sys"};

    assert(v->host && v->guest);
    if (!is_guest_path(v->guest))
        return volume_error(err, text, EINVAL, "the path inside is not a plain absolute path");
    for (size_t i = 0; i < ARRAY_SIZE(kept); i++)
        if (path_is_within(v->guest, kept[i]))
            return volume_error(err, text, EINVAL, "/proc, /dev and /sys are the sandbox's own");
    for (size_t i = 0; i < n; i++)
        if (strcmp(s->volumes[i].guest, v->guest) == 0)
            return volume_error(err, text, EEXIST, "another volume has the same path inside");
    if (n == LIMIT_VOLUMES)
        return volume_error(err, text, E2BIG, "there are more than 64 volumes");
    return 0;
}

int spec_add_volume(struct spec *s, const char *text, struct error *err)
{
    struct volume v = {0};
    int r = volume_split(text, &v, err);

    if (r == 0)
        r = volume_check(s, s->n_volumes, &v, text, err);
    struct volume *more = r == 0 ? realloc(s->volumes, (s->n_volumes + 1) * sizeof *more) : NULL;
    if (!more) {
        free(v.host);
        free(v.guest);
        return r < 0 ? r : no_memory(err);
    }
    s->volumes = more;
    s->volumes[s->n_volumes++] = v;
    return 0;
}

/* Texts that others are shown: who made it, what it is called. */
static int text_check(const char *field, const char *text, struct error *err)
{
    size_t n = text ? strlen(text) : 0;
    bool good = n <= LIMIT_TEXT_BYTES && (!text || (n > 0 && text_is_utf8(text, n)));

    for (size_t i = 0; good && i < n; i++)
        good = (unsigned char)text[i] >= ' ' && text[i] != 0x7f;
    return good
               ? 0
               : error_set(err, ERROR_USAGE, EINVAL, "%s is not printable text of at most %d bytes",
                           field, LIMIT_TEXT_BYTES);
}

static int tags_check(const struct string_list *tags, struct error *err)
{
    int r = 0;

    for (size_t i = 0; r == 0 && i < tags->n; i++) {
        const char *equals = strchr(tags->items[i], '=');

        r = !equals || equals == tags->items[i]
                ? error_set(err, ERROR_USAGE, EINVAL, "a tag is not K=V")
                : text_check("a tag", tags->items[i], err);
    }
    return r;
}

/* For the local backend; others have images of their own. */
static int image_check(const struct spec *s, struct error *err)
{
    bool folder = strncmp(s->image, "dir:", 4) == 0;
    const char *path = folder ? s->image + 4 : "";

    if (strcmp(s->backend, "local") != 0 || strcmp(s->image, "host") == 0 ||
        (folder && path_is_plain_absolute(path) && strcmp(path, "/") != 0 &&
         !strpbrk(path, ":,\\")))
        return 0;
    return error_set(err, ERROR_USAGE, EINVAL,
                     "image '%s' is neither 'host' nor dir: and the absolute path of a folder",
                     s->image);
}

/* What leads out of the host's side and in. The policy's own entries are policy_build()'s. */
static int network_check(const struct spec *s, struct error *err)
{
    struct published published;
    struct proxy_url proxy;
    struct address address;
    uint16_t port;
    int r = 0;

    if (s->resolver)
        r = resolver_parse(s->resolver, &address, &port, err);
    if (r == 0 && s->proxy && proxy_parse(s->proxy, &proxy, err) < 0)
        r = error_context(err, "proxy");
    for (size_t i = 0; r == 0 && i < s->publish.n; i++)
        r = published_parse(s->publish.items[i], &published, err);
    if (r == 0 && s->proxy_credentials && s->proxy_credentials[0] != '/')
        r = error_set(err, ERROR_USAGE, EINVAL, "proxy_credentials is no absolute path");
    if (r == 0 && s->audit && s->audit[0] != '/')
        r = error_set(err, ERROR_USAGE, EINVAL, "audit is no absolute path");
    return r;
}

int spec_check(const struct spec *s, struct error *err)
{
    int r = hostname_check(s->hostname, err);

    if (r == 0 && s->workdir)
        r = workdir_check(s->workdir, err);
    if (r == 0)
        r = text_check("name", s->name, err);
    if (r == 0)
        r = text_check("owner", s->owner, err);
    if (r == 0)
        r = tags_check(&s->tags, err);
    if (r == 0)
        r = image_check(s, err);
    if (r == 0)
        r = network_check(s, err);
    for (size_t i = 0; r == 0 && i < s->n_volumes; i++)
        r = volume_check(s, i, &s->volumes[i], s->volumes[i].guest, err);
    for (size_t i = 0; r == 0 && i < s->env.n; i++) {
        size_t name = strcspn(s->env.items[i], "=");

        if (!env_is_name(s->env.items[i], name))
            r = error_set(err, ERROR_USAGE, EINVAL, "env: '%.*s' is not a variable name",
                          (int)(name < 64 ? name : 64), s->env.items[i]);
    }
    return r;
}
