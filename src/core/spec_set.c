/* SPDX-License-Identifier: Apache-2.0 */
/* Setting a field from a text: numbers, choices, lists, and the problems that each can have. */
#include "core/spec_set.h"

#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "base/parse.h"
#include "base/text.h"
#include "core/limits.h"
#include "core/spec_grammar.h"
#include "base/guards.h"

static const struct {
    const char *wants, *remedy;
} kinds[] = {
    [SPEC_BOOL] = {"true or false", "Write true or false, without quotes"},
    [SPEC_TEXT] = {"a text", "Put it in quotes"},
    [SPEC_CHOICE] = {"a text", "Put it in quotes"},
    [SPEC_TEXTS] = {"a list of texts", "Write a list, with its entries in [ ] or each behind '- '"},
    [SPEC_MAP] = {"a map of texts", "Write a map, with a line 'KEY: VALUE' for each entry"},
    [SPEC_VOLUMES] = {"a list of texts",
                      "Write a list, with its entries in [ ] or each behind '- '"},
    [SPEC_USER] = {"a user", "Use numbers from 0 to 65534, such as 1000 or \"1000:1000\""},
    [SPEC_SIZE] = {"a size", "Write a whole number and a unit, such as 512M or 2G"},
    [SPEC_DURATION] = {"a duration", "Write a positive number of seconds, or one with ms, s, m, h "
                                     "or d, such as 90s or 5m"},
    [SPEC_COUNT] = {"a whole number above 0", "Write it in decimal digits alone"},
    [SPEC_DECIMAL] = {"a number", "Write a positive number, such as 0.5 or 2"},
};
_Static_assert(ARRAY_SIZE(kinds) == SPEC_KIND__MAX, "a kind has no words");

const char *spec_field_wants(enum spec_field_id id)
{
    return kinds[spec_fields[id].kind].wants;
}

const char *spec_field_remedy(enum spec_field_id id)
{
    if (spec_fields[id].bare)
        return "Write a number of bytes, or one with a unit, such as 50K or 1M";
    return kinds[spec_fields[id].kind].remedy;
}

bool spec_refuse(const struct spec_value *v, const char *remedy, const char *fmt, ...)
{
    char path[SPEC_PATH_MAX], message[sizeof(((struct error *)0)->message)];
    va_list ap;

    va_start(ap, fmt);
    (void)vsnprintf(message, sizeof message, fmt, ap);
    va_end(ap);
    spec_field_path(v->id, path);
    problems_add(v->f->problems, v->where ? v->where : path, v->f->at, remedy, "%s", message);
    return false;
}

/* An error of one of the spec's setters as a problem; the field's name in front goes. */
static bool refuse_error(const struct spec_value *v, const struct error *err)
{
    const char *name = spec_fields[v->id].name;
    const char *message = err->message;
    size_t word = strcspn(message, ": ");

    if (err->code == ENOMEM) {
        v->f->problems->no_memory = true;
        return false;
    }
    if (strncmp(message, name, word) == 0) /* "volume" of "volumes" */
        message += word + strspn(message + word, ": ");
    return spec_refuse(v, err->remedy[0] ? err->remedy : NULL, "%s", message);
}

static bool no_memory(const struct spec_value *v)
{
    v->f->problems->no_memory = true;
    return false;
}

static bool taken(const struct spec_value *v)
{
    v->f->given |= spec_field_bit(v->id);
    return true;
}

/* Numbers */

/* A limit as it would be typed. */
static void limit_text(const struct spec_field *field, uint64_t v, char *buf, size_t size)
{
    static const char sizes[] = "BKMGT";
    size_t unit = 0;

    if (field->kind == SPEC_SIZE) {
        for (; v % 1024 == 0 && sizes[unit + 1]; unit++)
            v /= 1024;
        (void)snprintf(buf, size, "%llu%c", (unsigned long long)v, sizes[unit]);
    } else if (field->kind == SPEC_DURATION) {
        bool days = v % UINT64_C(86400000000) == 0;
        (void)snprintf(buf, size, "%llu%s",
                       (unsigned long long)(v / (days ? UINT64_C(86400000000) : 1000)),
                       days ? "d" : "ms");
    } else if (field->kind == SPEC_DECIMAL && v % field->scale != 0) {
        (void)snprintf(buf, size, "%g", (double)v / (double)field->scale);
    } else {
        (void)snprintf(buf, size, "%llu",
                       (unsigned long long)(field->kind == SPEC_DECIMAL ? v / field->scale : v));
    }
}

static bool refuse_number(const struct spec_value *v, int why)
{
    const struct spec_field *field = &spec_fields[v->id];
    char min[32], max[32], remedy[96];
    uint64_t ignored;

    if (why == -ERANGE) {
        limit_text(field, field->min, min, sizeof min);
        limit_text(field, field->max, max, sizeof max);
        (void)snprintf(remedy, sizeof remedy, "Stay within %s to %s", min, max);
        return spec_refuse(v, remedy, "'%.80s' is out of range", v->text);
    }
    if (field->kind == SPEC_SIZE && parse_u64(v->text, 0, UINT64_MAX, &ignored) == 0)
        return spec_refuse(v, spec_field_remedy(v->id), "'%.80s' needs a unit, such as %.80sM",
                           v->text, v->text);
    return spec_refuse(v, spec_field_remedy(v->id), "'%.80s' is not %s", v->text,
                       spec_field_wants(v->id));
}

int spec_parse_decimal(const char *text, uint64_t scale, uint64_t min, uint64_t max, uint64_t *ret)
{
    char whole[24];
    size_t n = strcspn(text, ".");
    uint64_t v;

    if (n >= sizeof whole)
        return -ERANGE;
    memcpy(whole, text, n);
    whole[n] = '\0';
    int r = parse_u64(whole, 0, UINT64_MAX / scale - 1, &v);
    if (r < 0)
        return r;
    v *= scale;
    if (text[n] == '.' && text[++n] == '\0')
        return -EINVAL;
    for (; text[n] >= '0' && text[n] <= '9'; n++) {
        scale /= 10;
        if (scale == 0 && text[n] != '0') /* finer than is kept */
            return -EINVAL;
        v += scale * (uint64_t)(text[n] - '0');
    }
    if (text[n] != '\0')
        return -EINVAL;
    if (v < min || v > max)
        return -ERANGE;
    *ret = v;
    return 0;
}

static bool set_number(const struct spec_value *v)
{
    const struct spec_field *field = &spec_fields[v->id];
    uint64_t value;
    int r;

    if (field->kind == SPEC_DURATION)
        r = parse_duration(v->text, field->min, field->max, &value);
    else if (field->kind == SPEC_DECIMAL)
        r = spec_parse_decimal(v->text, field->scale, field->min, field->max, &value);
    else if (field->kind == SPEC_SIZE)
        r = parse_size(v->text, field->min, field->max, &value);
    else
        r = parse_u64(v->text, field->min, field->max, &value);
    if (r == -EINVAL && field->bare)
        r = parse_u64(v->text, field->min, field->max, &value);
    if (r < 0)
        return refuse_number(v, r);
    *spec_field_number_of(v->f->spec, v->id) = value;
    return taken(v);
}

/* Texts */

static bool take_text(const struct spec_value *v, const char *text)
{
    char *copy = strdup(text);
    char **field = spec_field_text_of(v->f->spec, v->id);

    if (!copy)
        return no_memory(v);
    free(*field);
    *field = copy;
    return taken(v);
}

static bool set_choice(const struct spec_value *v)
{
    const char *const *choices = spec_fields[v->id].choices;
    char all[128] = "", remedy[128];
    size_t n = 0;

    for (; choices[n]; n++) {
        size_t at = strlen(all);

        if (strcmp(choices[n], v->text) == 0)
            return take_text(v, v->text);
        (void)snprintf(all + at, sizeof all - at, "%s%s", n > 0 ? ", " : "", choices[n]);
    }
    const char *nearest = text_nearest(v->text, choices, n);
    (void)snprintf(remedy, sizeof remedy, "The nearest one is %s", nearest ? nearest : "");
    return spec_refuse(v, nearest ? remedy : NULL, "'%.80s' is none of %s", v->text, all);
}

/* A host's path as it counts from the folder of the filling; NULL without memory. */
static char *from_folder(const struct spec_filling *f, const char *path)
{
    char *full;

    if (path[0] == '/' || !f->folder)
        return strdup(path);
    return asprintf(&full, "%s/%s", f->folder, path) < 0 ? NULL : full;
}

static bool set_image(const struct spec_value *v)
{
    bool folder = strncmp(v->text, "dir:", 4) == 0 && v->text[4] != '\0';
    _cleanup_free_ char *path = folder ? from_folder(v->f, v->text + 4) : NULL;
    _cleanup_free_ char *image = NULL;

    if (!spec_text_is_good(v))
        return false;
    if (!folder)
        return take_text(v, v->text);
    if (!path || asprintf(&image, "dir:%s", path) < 0) {
        image = NULL;
        return no_memory(v);
    }
    return take_text(v, image);
}

/* A file of the host, as an absolute path: who reads it may be in another folder. */
static bool set_file(const struct spec_value *v)
{
    _cleanup_free_ char *path = from_folder(v->f, v->text);
    char full[PATH_MAX];
    struct stat st;

    if (!spec_text_is_good(v))
        return false;
    if (!path)
        return no_memory(v);
    if (!realpath(path, full) || stat(full, &st) < 0)
        return spec_refuse(v, "Name a file of this host", "'%.120s' %s: %s", v->text,
                           errno == ENOENT ? "is not there" : "cannot be reached", strerror(errno));
    if (!S_ISREG(st.st_mode))
        return spec_refuse(v, "Name a file of this host", "'%.120s' is not a regular file",
                           v->text);
    return take_text(v, full);
}

/* A file of the host that need not be there yet, in a folder that is. */
static bool set_new_file(const struct spec_value *v)
{
    _cleanup_free_ char *path = from_folder(v->f, v->text), *made = NULL;
    char folder[PATH_MAX];
    struct stat st;

    if (!spec_text_is_good(v))
        return false;
    if (!path)
        return no_memory(v);
    char *slash = strrchr(path, '/');
    const char *name = slash ? slash + 1 : path;
    if (name[0] == '\0' || strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
        return spec_refuse(v, "Name a file", "'%.120s' is a folder", v->text);
    if (slash)
        slash[0] = '\0';
    if (!realpath(!slash ? "." : slash == path ? "/" : path, folder))
        return spec_refuse(v, "Make its folder first", "the folder of '%.120s' %s: %s", v->text,
                           errno == ENOENT ? "is not there" : "cannot be reached", strerror(errno));
    if (asprintf(&made, "%s/%s", strcmp(folder, "/") == 0 ? "" : folder, name) < 0) {
        made = NULL;
        return no_memory(v);
    }
    if (lstat(made, &st) == 0 && !S_ISREG(st.st_mode))
        return spec_refuse(v, "Name a file, or one that is not there yet",
                           "'%.120s' is not a regular file", v->text);
    return take_text(v, made);
}

static bool set_text(const struct spec_value *v)
{
    struct error err = ERROR_INIT;
    int r;

    if (v->id == SPEC_FIELD_IMAGE)
        return set_image(v);
    if (v->id == SPEC_FIELD_PROXY_CREDENTIALS)
        return set_file(v);
    if (v->id == SPEC_FIELD_AUDIT)
        return set_new_file(v);
    if (v->id == SPEC_FIELD_WORKDIR)
        r = spec_set_workdir(v->f->spec, v->text, &err);
    else if (v->id == SPEC_FIELD_HOSTNAME)
        r = spec_set_hostname(v->f->spec, v->text, &err);
    else
        return spec_text_is_good(v) && take_text(v, v->text);
    return r < 0 ? refuse_error(v, &err) : taken(v);
}

/* Lists */

static bool has_room(const struct spec_value *v, size_t n)
{
    const struct spec_field *field = &spec_fields[v->id];

    if (n < field->max)
        return true;
    return spec_refuse(v, NULL, "there are more than %llu entries", (unsigned long long)field->max);
}

static bool add_text(const struct spec_value *v)
{
    struct string_list *list = spec_field_list_of(v->f->spec, v->id);

    if (!has_room(v, list->n) || !spec_entry_is_good(v))
        return false;
    return string_list_add(list, v->text) < 0 ? no_memory(v) : taken(v);
}

static bool add_volume(const struct spec_value *v)
{
    bool relative = v->text[0] != '\0' && v->text[0] != ':';
    _cleanup_free_ char *text = relative ? from_folder(v->f, v->text) : strdup(v->text);
    struct error err = ERROR_INIT;

    if (!text)
        return no_memory(v);
    return spec_add_volume(v->f->spec, text, &err) < 0 ? refuse_error(v, &err) : taken(v);
}

static bool add_pair(const struct spec_value *v)
{
    struct string_list *list = spec_field_list_of(v->f->spec, v->id);
    bool input = v->id == SPEC_FIELD_INPUTS;
    _cleanup_free_ char *source = NULL, *entry = NULL;

    if (!spec_pair_is_good(v))
        return false;
    if (input) {
        source = from_folder(v->f, v->key);
        if (!source)
            return no_memory(v);
        if (!spec_input_is_good(v, source))
            return false;
    }
    if (asprintf(&entry, "%s=%s", input ? source : v->key, v->text) < 0) {
        entry = NULL;
        return no_memory(v);
    }
    size_t before = list->n;
    if (env_set(list, entry) < 0)
        return no_memory(v);
    if (list->n > before && before >= spec_fields[v->id].max) {
        free(list->items[--list->n]);
        list->items[list->n] = NULL;
        return has_room(v, before);
    }
    return taken(v);
}

bool spec_set_env(struct spec_filling *f, const char *where, const char *text,
                  char *const callers[])
{
    const struct spec_value v = {f, SPEC_FIELD_ENV, where, NULL, text};
    struct error err = ERROR_INIT;

    return spec_add_env(f->spec, text, callers, &err) < 0 ? refuse_error(&v, &err) : taken(&v);
}

bool spec_set_pair(struct spec_filling *f, enum spec_field_id id, const char *where,
                   const char *key, const char *value)
{
    const struct spec_value v = {f, id, where, key, value};
    _cleanup_free_ char *entry = NULL;

    if (id != SPEC_FIELD_ENV)
        return add_pair(&v);
    if (!env_is_name(key, strlen(key))) /* a key with '=' in it would be cut there */
        return spec_refuse(&v, "Use letters, digits and underscores, not starting with a digit",
                           "'%.64s' is not a variable name", key);
    if (asprintf(&entry, "%s=%s", key, value) < 0) {
        entry = NULL;
        return no_memory(&v);
    }
    return spec_set_env(f, where, entry, NULL);
}

/* "KEY=VALUE" as it is typed. */
static bool split_pair(const struct spec_value *v)
{
    const char *equals = strchr(v->text, '=');
    _cleanup_free_ char *key = NULL;

    if (!equals)
        return spec_refuse(v, "Write it as KEY=VALUE", "there is no '=' in it");
    key = strndup(v->text, (size_t)(equals - v->text));
    return key ? spec_set_pair(v->f, v->id, v->where, key, equals + 1) : no_memory(v);
}

bool spec_set(struct spec_filling *f, enum spec_field_id id, const char *where, const char *text)
{
    const struct spec_value v = {f, id, where, NULL, text};
    struct error err = ERROR_INIT;

    switch (spec_fields[id].kind) {
    case SPEC_BOOL:
        if (strcmp(text, "true") != 0 && strcmp(text, "false") != 0)
            return spec_refuse(&v, spec_field_remedy(id), "'%.80s' is not true or false", text);
        spec_set_bool(f, id, text[0] == 't');
        return true;
    case SPEC_TEXT:
        return set_text(&v);
    case SPEC_CHOICE:
        return set_choice(&v);
    case SPEC_TEXTS:
        return add_text(&v);
    case SPEC_MAP:
        return id == SPEC_FIELD_ENV ? spec_set_env(f, where, text, NULL) : split_pair(&v);
    case SPEC_VOLUMES:
        return add_volume(&v);
    case SPEC_USER:
        return spec_set_user(f->spec, text, &err) < 0 ? refuse_error(&v, &err) : taken(&v);
    case SPEC_SIZE:
    case SPEC_DURATION:
    case SPEC_COUNT:
    case SPEC_DECIMAL:
        return set_number(&v);
    case SPEC_KIND__MAX:
        break;
    }
    assert(!"a field without a kind");
    return false;
}

void spec_set_number(struct spec_filling *f, enum spec_field_id id, uint64_t value)
{
    assert(value >= spec_fields[id].min && value <= spec_fields[id].max);
    *spec_field_number_of(f->spec, id) = value;
    f->given |= spec_field_bit(id);
}

void spec_set_bool(struct spec_filling *f, enum spec_field_id id, bool value)
{
    *spec_field_bool_of(f->spec, id) = value;
    f->given |= spec_field_bit(id);
}

bool spec_reset(struct spec_filling *f, enum spec_field_id id)
{
    if (spec_field_reset(f->spec, id) < 0) {
        f->problems->no_memory = true;
        return false;
    }
    f->given &= ~spec_field_bit(id);
    return true;
}
