/* SPDX-License-Identifier: Apache-2.0 */
/* Spec files: reading bytes, walking the tree, and giving problems their places. */
#include "core/spec_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "base/parse.h"
#include "base/text.h"
#include "core/spec_rules.h"
#include "base/guards.h"

/* What is wrong with one file: enough for a person, and no work without end for a hostile one. */
enum { FILE_PROBLEMS_MAX = 200 };

/* "spec.env.NAME", the name cut. */
enum { WHERE_MAX = SPEC_PATH_MAX + 96 };

static struct position place(struct document_place at)
{
    return (struct position){at.line, at.column};
}

static bool enough(const struct spec_filling *f)
{
    return f->problems->n >= FILE_PROBLEMS_MAX || f->problems->no_memory;
}

/* A value of the wrong kind, or none. */
static void refuse_kind(const struct spec_filling *f, const char *where,
                        const struct document_node *node, const char *wants, const char *remedy)
{
    if (document_is(node, DOCUMENT_NULL))
        problems_add(f->problems, where, place(node->at), "Give a value, or leave the key out",
                     "it has no value");
    else
        problems_add(f->problems, where, place(node->at), remedy, "it is to be %s, not %s", wants,
                     document_what(node));
}

/* The keys of the file */

/* "The nearest one is …", among the fields of @section or, for SPEC_SECTION__MAX, of all. */
static bool nearest_field(const char *key, enum spec_section section, char *buf, size_t size)
{
    const char *names[SPEC_FIELD__MAX];
    char path[SPEC_PATH_MAX];
    size_t n = 0;

    for (enum spec_field_id i = 0; i < SPEC_FIELD__MAX; i++)
        if (section == SPEC_SECTION__MAX || spec_fields[i].section == section)
            names[n++] = spec_fields[i].name;
    const char *nearest = text_nearest(key, names, n);
    if (!nearest)
        return false;
    if (section == SPEC_SECTION__MAX)
        spec_field_path(spec_field_elsewhere(nearest), path);
    (void)snprintf(buf, size, "The nearest one is %s",
                   section == SPEC_SECTION__MAX ? path : nearest);
    return true;
}

/* "It has env, block_network, …" */
static void all_fields(enum spec_section section, char *buf, size_t size)
{
    size_t at = 0;

    for (enum spec_field_id i = 0; i < SPEC_FIELD__MAX; i++)
        if (spec_fields[i].section == section && at < size)
            at += (size_t)snprintf(buf + at, size - at, "%s%s", at == 0 ? "It has " : ", ",
                                   spec_fields[i].name);
}

static void refuse_key(const struct spec_filling *f, enum spec_section section,
                       const struct document_entry *entry)
{
    char where[WHERE_MAX], path[SPEC_PATH_MAX], remedy[384];
    const char *name = spec_section_name(section);
    enum spec_field_id meant = spec_field_elsewhere(entry->key);

    (void)snprintf(where, sizeof where, "%s.%.80s", name, entry->key);
    if (meant < SPEC_FIELD__MAX) {
        spec_field_path(meant, path);
        (void)snprintf(remedy, sizeof remedy, "Write it as %s", path);
        problems_add(f->problems, where, place(entry->key_at), remedy,
                     "'%.80s' is not a field of %s, but %s is", entry->key, name, path);
        return;
    }
    if (!nearest_field(entry->key, section, remedy, sizeof remedy) &&
        !nearest_field(entry->key, SPEC_SECTION__MAX, remedy, sizeof remedy))
        all_fields(section, remedy, sizeof remedy);
    problems_add(f->problems, where, place(entry->key_at), remedy, "'%.80s' is not a field of %s",
                 entry->key, name);
}

/* One that is neither a section nor among @keys. */
static void refuse_section(const struct spec_filling *f, const struct spec_keys *keys,
                           const struct document_entry *entry)
{
    const char *names[SPEC_KEYS_MAX + SPEC_SECTION__MAX];
    enum spec_field_id meant = spec_field_elsewhere(entry->key);
    char path[SPEC_PATH_MAX], remedy[384];
    size_t n = 0;

    while (n < SPEC_KEYS_MAX && keys->own[n]) {
        names[n] = keys->own[n];
        n++;
    }
    for (enum spec_section i = 0; i < SPEC_SECTION__MAX; i++)
        names[n++] = spec_section_name(i);
    const char *nearest = text_nearest(entry->key, names, n);
    (void)snprintf(remedy, sizeof remedy, "%s", keys->remedy);
    if (meant < SPEC_FIELD__MAX) {
        spec_field_path(meant, path);
        (void)snprintf(remedy, sizeof remedy, "Write it in its section, as %s", path);
    } else if (nearest) {
        (void)snprintf(remedy, sizeof remedy, "The nearest one is %s", nearest);
    } else {
        (void)nearest_field(entry->key, SPEC_SECTION__MAX, remedy, sizeof remedy);
    }
    problems_add(f->problems, entry->key, place(entry->key_at), remedy, "'%.80s' is not %s",
                 entry->key, keys->what);
}

/* Fields */

/* Whether a scalar of this type may be looked at by spec_set(), which judges its text. */
static bool type_fits(enum spec_kind kind, enum document_type type)
{
    bool text = type == DOCUMENT_STRING, whole = type == DOCUMENT_INTEGER;

    switch (kind) {
    case SPEC_BOOL:
        return type == DOCUMENT_BOOLEAN;
    case SPEC_USER:
        return text || whole;
    case SPEC_SIZE:
    case SPEC_DURATION:
        return text || whole || type == DOCUMENT_FLOAT;
    case SPEC_COUNT:
    case SPEC_DECIMAL:
        return whole || type == DOCUMENT_FLOAT;
    case SPEC_TEXT:
    case SPEC_CHOICE:
    case SPEC_TEXTS:
    case SPEC_MAP:
    case SPEC_VOLUMES:
    case SPEC_KIND__MAX:
        break;
    }
    return text;
}

static void fill_scalar(struct spec_filling *f, enum spec_field_id id,
                        const struct document_node *node)
{
    bool is_scalar = node->kind == DOCUMENT_SCALAR;
    char where[SPEC_PATH_MAX];

    spec_field_path(id, where);
    if (!is_scalar || !type_fits(spec_fields[id].kind, node->type))
        refuse_kind(f, where, node, spec_field_wants(id),
                    is_scalar ? spec_field_remedy(id) : "Give one value");
    else if (spec_fields[id].kind == SPEC_BOOL)
        spec_set_bool(f, id, document_is_true(node));
    else
        (void)spec_set(f, id, where, node->text);
}

/* Whether a list or map may have as many entries as it has. */
static bool count_fits(const struct spec_filling *f, enum spec_field_id id, const char *where,
                       const struct document_node *node)
{
    if (node->n <= spec_fields[id].max)
        return true;
    problems_add(f->problems, where, place(node->at), "Leave some out",
                 "it has %zu entries, more than %llu", node->n,
                 (unsigned long long)spec_fields[id].max);
    return false;
}

static void fill_list(struct spec_filling *f, enum spec_field_id id,
                      const struct document_node *node)
{
    char path[SPEC_PATH_MAX], where[WHERE_MAX];

    spec_field_path(id, path);
    if (document_is(node, DOCUMENT_STRING)) {
        problems_add(f->problems, path, place(node->at), spec_field_remedy(id),
                     "it is to be a list, not one string");
        return;
    }
    if (node->kind != DOCUMENT_LIST) {
        refuse_kind(f, path, node, spec_field_wants(id), spec_field_remedy(id));
        return;
    }
    if (!count_fits(f, id, path, node))
        return;
    f->given |= spec_field_bit(id); /* an empty one too */
    for (size_t i = 0; i < node->n && !enough(f); i++) {
        const struct document_node *item = document_item(node, i);

        (void)snprintf(where, sizeof where, "%s[%zu]", path, i);
        f->at = place(item->at);
        if (document_is(item, DOCUMENT_STRING))
            (void)spec_set(f, id, where, item->text);
        else
            refuse_kind(f, where, item, "a text", "Put it in quotes");
    }
}

/* Prices are numbers; every other map has texts. */
static bool entry_fits(enum spec_field_id id, const struct document_node *node)
{
    if (id == SPEC_FIELD_PRICES)
        return document_is(node, DOCUMENT_INTEGER) || document_is(node, DOCUMENT_FLOAT);
    return document_is(node, DOCUMENT_STRING);
}

static void fill_map(struct spec_filling *f, enum spec_field_id id,
                     const struct document_node *node)
{
    char path[SPEC_PATH_MAX], where[WHERE_MAX];

    spec_field_path(id, path);
    if (node->kind != DOCUMENT_MAP) {
        refuse_kind(f, path, node, spec_field_wants(id), spec_field_remedy(id));
        return;
    }
    if (!count_fits(f, id, path, node))
        return;
    f->given |= spec_field_bit(id);
    for (size_t i = 0; i < node->n && !enough(f); i++) {
        const struct document_entry *entry = document_entry(node, i);

        (void)snprintf(where, sizeof where, "%s.%.80s", path, entry->key);
        f->at = place(entry->key_at);
        if (entry_fits(id, &entry->value))
            (void)spec_set_pair(f, id, where, entry->key, entry->value.text);
        else if (id == SPEC_FIELD_PRICES)
            refuse_kind(f, where, &entry->value, "a number", "Write a number such as 0.05");
        else
            refuse_kind(f, where, &entry->value, "a text", "Put the value in quotes");
    }
}

static void fill_section(struct spec_filling *f, enum spec_section section,
                         const struct document_node *node)
{
    if (node->kind != DOCUMENT_MAP) {
        refuse_kind(f, spec_section_name(section), node, "a map of fields",
                    "Write its fields below it, each as 'NAME: VALUE'");
        return;
    }
    for (size_t i = 0; i < node->n && !enough(f); i++) {
        const struct document_entry *entry = document_entry(node, i);
        enum spec_field_id id = spec_field_find(section, entry->key);

        f->at = place(entry->value.at);
        if (id == SPEC_FIELD__MAX)
            refuse_key(f, section, entry);
        else if (spec_fields[id].kind == SPEC_MAP)
            fill_map(f, id, &entry->value);
        else if (spec_field_is_list(id))
            fill_list(f, id, &entry->value);
        else
            fill_scalar(f, id, &entry->value);
    }
}

void spec_version_check(const struct document_node *root, struct problems *problems)
{
    const struct spec_filling f = {.problems = problems};
    const struct document_entry *entry = document_find(root, "version");
    char remedy[64];
    uint64_t version;

    (void)snprintf(remedy, sizeof remedy, "Begin the file with 'version: %d'", SPEC_FILE_VERSION);
    if (!entry)
        problems_add(problems, "version", place(root->at), remedy,
                     "it is missing, so nobody knows what the file means");
    else if (!document_is(&entry->value, DOCUMENT_INTEGER))
        refuse_kind(&f, "version", &entry->value, "the number 1", remedy);
    else if (parse_u64(entry->value.text, 0, UINT64_MAX, &version) < 0 ||
             version != SPEC_FILE_VERSION)
        problems_add(problems, "version", place(entry->value.at), remedy,
                     "%.20s is not a version that this atoll reads; it reads %d", entry->value.text,
                     SPEC_FILE_VERSION);
}

static bool is_own(const struct spec_keys *keys, const char *key)
{
    size_t i = 0;

    while (keys->own[i] && strcmp(keys->own[i], key) != 0)
        i++;
    return keys->own[i];
}

void spec_sections_fill(const struct document_node *map, const struct spec_keys *keys,
                        struct spec_filling *f)
{
    for (size_t i = 0; i < map->n && !enough(f); i++) {
        const struct document_entry *entry = document_entry(map, i);
        enum spec_section section = 0;

        while (section < SPEC_SECTION__MAX && strcmp(entry->key, spec_section_name(section)) != 0)
            section++;
        if (section < SPEC_SECTION__MAX)
            fill_section(f, section, &entry->value);
        else if (!is_own(keys, entry->key))
            refuse_section(f, keys, entry);
    }
    f->at = (struct position){0};
}

void spec_file_fill(const struct spec_file *file, struct spec_filling *f)
{
    static const char *const own[] = {"version", NULL};
    static const struct spec_keys keys = {own, "a section of a spec",
                                          "The sections are spec, backend and toolset"};
    const struct document_node *root = file->document ? document_root(file->document) : NULL;
    const char *folder = f->folder;

    if (!root)
        return;
    if (root->kind != DOCUMENT_MAP) {
        problems_add(f->problems, "", place(root->at), "Begin the file with 'version: 1'",
                     "a spec is a map with version, spec, backend and toolset, not %s",
                     document_what(root));
        return;
    }
    spec_version_check(root, f->problems);
    f->folder = file->folder;
    spec_sections_fill(root, &keys, f);
    f->folder = folder;
}

/* Places */

/* Where the value that a problem's path names stands; zero if it is not in @map. */
static struct position find_place(const struct document_node *map, enum spec_field_id id,
                                  const char *rest)
{
    const struct document_entry *section =
        document_find(map, spec_section_name(spec_fields[id].section));
    const struct document_entry *field =
        section ? document_find(&section->value, spec_fields[id].name) : NULL;
    const struct document_entry *entry;
    const struct document_node *item;
    uint64_t index;
    char number[24];

    if (!field)
        return (struct position){0};
    if (rest[0] == '\0') /* a block's first character is its first entry's */
        return place(field->value.kind == DOCUMENT_SCALAR ? field->value.at : field->key_at);
    if (rest[0] == '.') {
        entry = document_find(&field->value, rest + 1);
        return entry ? place(entry->key_at) : (struct position){0};
    }
    (void)snprintf(number, sizeof number, "%.*s", (int)strcspn(rest + 1, "]"), rest + 1);
    item = parse_u64(number, 0, SIZE_MAX, &index) == 0 ? document_item(&field->value, index) : NULL;
    return item ? place(item->at) : (struct position){0};
}

void spec_sections_place(const struct document_node *map, uint64_t fields,
                         struct problems *problems)
{
    for (size_t i = 0; i < problems->n; i++) {
        struct problem *x = &problems->items[i];
        const char *rest;
        enum spec_field_id id = spec_field_at(x->field, &rest);

        if (x->at.line == 0 && id < SPEC_FIELD__MAX && (fields & spec_field_bit(id)))
            x->at = find_place(map, id, rest);
    }
    problems_sort(problems);
}

void spec_file_place(const struct spec_file *file, uint64_t fields, struct problems *problems)
{
    if (file->document)
        spec_sections_place(document_root(file->document), fields, problems);
    else
        problems_sort(problems);
}

/* Bytes */

static int cannot_read(const char *what, const char *path, int code, struct error *err)
{
    (void)error_set(err, ERROR_USAGE, code, "%s '%s' cannot be read: %s", what, path,
                    strerror(code));
    return code == ENOENT ? error_remedy(err, "Check the path") : -code;
}

/* A descriptor for @path, not opened if opening it might do something; or a negative errno. */
static int open_source(const char *path, const char *what, bool *ret_pipe, struct error *err)
{
    struct stat st;
    int fd;

    if (stat(path, &st) < 0)
        return cannot_read(what, path, errno, err);
    if (S_ISDIR(st.st_mode))
        return cannot_read(what, path, EISDIR, err);
    if (!S_ISREG(st.st_mode) && !S_ISFIFO(st.st_mode)) {
        (void)error_set(err, ERROR_USAGE, EINVAL, "%s '%s' is neither a file nor a pipe", what,
                        path);
        return error_remedy(err, "Name a file, or '-' for standard input");
    }
    *ret_pipe = !S_ISREG(st.st_mode);
    fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
    return fd < 0 ? cannot_read(what, path, errno, err) : fd;
}

/* Return: the number of bytes up to the end or to @size, or a negative errno. */
static ssize_t read_up_to(int fd, char *buf, size_t size)
{
    size_t len = 0;

    while (len < size) {
        ssize_t n = read(fd, buf + len, size - len);

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return -errno;
        if (n == 0)
            break;
        len += (size_t)n;
    }
    return (ssize_t)len;
}

int spec_read_bytes(const char *path, const char *what, size_t max_bytes, char **ret,
                    size_t *ret_len, bool *ret_pipe, struct error *err)
{
    bool is_stdin = strcmp(path, "-") == 0, is_pipe = true;
    _cleanup_fd_ int opened = is_stdin ? -EBADF : open_source(path, what, &is_pipe, err);
    _cleanup_free_ char *buf = NULL;
    const char *name = is_stdin ? "standard input" : path;

    if (!is_stdin && opened < 0)
        return opened;
    buf = malloc(max_bytes + 2);
    if (!buf) {
        (void)error_set(err, ERROR_TERMINAL, ENOMEM, "out of memory");
        return -ENOMEM;
    }
    /* One more than allowed, to see that there is more. */
    ssize_t len = read_up_to(is_stdin ? STDIN_FILENO : opened, buf, max_bytes + 1);
    if (len < 0)
        return cannot_read(what, name, (int)-len, err);
    if ((size_t)len > max_bytes) {
        (void)error_set(err, ERROR_USAGE, E2BIG, "%s '%s' has more than %zu bytes", what, name,
                        max_bytes);
        return -E2BIG;
    }
    buf[len] = '\0';
    *ret = TAKE_PTR(buf);
    *ret_len = (size_t)len;
    if (ret_pipe)
        *ret_pipe = is_pipe;
    return 0;
}

/* Files */

/* The folder of @path, owned; NULL without memory. */
static char *folder_of(const char *path)
{
    const char *slash = strrchr(path, '/');

    if (!slash)
        return strdup(".");
    return slash == path ? strdup("/") : strndup(path, (size_t)(slash - path));
}

/* Without an ending to go by, JSON is what begins as its maps do. */
static enum document_form form_of(const char *path, const char *text)
{
    const char *slash = strrchr(path, '/');

    if (strchr(slash ? slash : path, '.'))
        return document_form_of(path);
    return text[strspn(text, " \t\r\n")] == '{' ? DOCUMENT_JSON : DOCUMENT_YAML;
}

void spec_file_done(struct spec_file *file)
{
    document_free(file->document);
    free(file->name);
    free(file->folder);
    *file = (struct spec_file){0};
}

/* What spec_file_open() does once there is a text; @file is to be released by the caller. */
static int parse(const char *path, const char *text, size_t len, bool is_pipe,
                 struct spec_file *file, struct error *err)
{
    file->name = strdup(strcmp(path, "-") == 0 ? "standard input" : path);
    file->folder = is_pipe ? NULL : folder_of(path);
    if (!file->name || (!is_pipe && !file->folder))
        return error_set(err, ERROR_TERMINAL, ENOMEM, "out of memory");
    return document_read(form_of(path, text), file->name, text, len, &file->document, err);
}

int spec_file_open(const char *path, const char *what, struct spec_file *ret, struct error *err)
{
    struct spec_file file = {0};
    _cleanup_free_ char *text = NULL;
    bool is_pipe = false;
    size_t len = 0;
    int r = spec_read_bytes(path, what, SPEC_FILE_MAX_BYTES, &text, &len, &is_pipe, err);

    if (!text) /* r < 0 */
        return r;
    r = parse(path, text, len, is_pipe, &file, err);
    if (r < 0) {
        spec_file_done(&file);
        return r;
    }
    *ret = file;
    return 0;
}

/* A whole spec from a file alone. */
static int read_whole(const struct spec_file *file, struct spec *ret, struct problems *problems,
                      struct error *err)
{
    struct spec s;
    struct spec_filling f = {.spec = &s, .problems = problems};
    int r = 0;

    if (spec_init(&s) < 0) {
        r = error_set(err, ERROR_TERMINAL, ENOMEM, "out of memory");
    } else {
        spec_file_fill(file, &f);
        spec_finish(&f);
        spec_file_place(file, f.given, problems);
        r = problems_error(problems, file->name, err);
    }
    if (r < 0) {
        spec_done(&s);
        return r;
    }
    *ret = s;
    return 0;
}

int spec_file_read(const char *path, struct spec *ret, struct problems *problems, struct error *err)
{
    _cleanup_(spec_file_done) struct spec_file file = {0};
    int r = spec_file_open(path, "spec file", &file, err);

    return r < 0 ? r : read_whole(&file, ret, problems, err);
}

int spec_text_read(const char *text, size_t len, enum document_form form, const char *name,
                   const char *folder, struct spec *ret, struct problems *problems,
                   struct error *err)
{
    _cleanup_(spec_file_done) struct spec_file file = {0};
    int r = document_read(form, name, text, len, &file.document, err);

    if (r < 0)
        return r;
    file.name = name ? strdup(name) : NULL;
    file.folder = folder ? strdup(folder) : NULL;
    if ((name && !file.name) || (folder && !file.folder))
        return error_set(err, ERROR_TERMINAL, ENOMEM, "out of memory");
    return read_whole(&file, ret, problems, err);
}
