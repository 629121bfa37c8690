/* SPDX-License-Identifier: Apache-2.0 */
/* Reading the kernel's texts about control groups. */
#include "local/cgroup_find.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/parse.h"
#include "base/guards.h"

static const char *const names[] = {"memory", "cpu", "cpuacct"};
static_assert(ARRAY_SIZE(names) == CGROUP_CONTROLLER__MAX, "one name a controller");

/* A part of a text, without a NUL at its end. */
struct part {
    const char *p;
    size_t n;
};

const char *cgroup_controller_name(enum cgroup_controller controller)
{
    return names[controller];
}

/* Cuts the next part off, up to @end or the end; false when there is none. */
static bool next_part(struct part *left, char end, struct part *ret)
{
    if (!left->p)
        return false;
    const char *at = memchr(left->p, end, left->n);
    size_t n = at ? (size_t)(at - left->p) : left->n;

    *ret = (struct part){left->p, n};
    *left = at ? (struct part){at + 1, left->n - n - 1} : (struct part){NULL, 0};
    return true;
}

static bool is(struct part a, const char *text)
{
    return a.n == strlen(text) && memcmp(a.p, text, a.n) == 0;
}

static bool among(struct part words, const char *word)
{
    struct part w;

    while (next_part(&words, ',', &w))
        if (is(w, word))
            return true;
    return false;
}

bool cgroup_has_word(const char *words, const char *word)
{
    for (size_t n; *words != '\0'; words += n + (words[n] != '\0')) {
        n = strcspn(words, " ,\n");
        if (is((struct part){words, n}, word))
            return true;
    }
    return false;
}

int cgroup_key(const char *text, const char *key, uint64_t *ret)
{
    struct part left = {text, strlen(text)}, line, word;
    char number[24];

    while (next_part(&left, '\n', &line)) {
        if (!next_part(&line, ' ', &word) || !is(word, key) || line.n >= sizeof number || !line.p)
            continue;
        memcpy(number, line.p, line.n);
        number[line.n] = '\0';
        if (parse_u64(number, 0, UINT64_MAX, ret) == 0)
            return 0;
    }
    return -ENOENT;
}

/* The path of the group in the hierarchy that has @controller; *@ret_unified: which kind it is. */
static int find_group(const char *groups, const char *controller, struct part *ret_path,
                      bool *ret_unified)
{
    struct part left = {groups, strlen(groups)}, line, id, controllers;
    bool found = false;

    while (next_part(&left, '\n', &line)) {
        if (!next_part(&line, ':', &id) || !next_part(&line, ':', &controllers) || !line.p ||
            line.n == 0 || line.p[0] != '/')
            continue;
        if (among(controllers, controller)) {
            *ret_path = line;
            *ret_unified = false;
            return 0; /* whatever has it, the other kind has not */
        }
        if (is(id, "0") && controllers.n == 0 && !found) {
            *ret_path = line;
            *ret_unified = true;
            found = true;
        }
    }
    return found ? 0 : -ENOENT;
}

static bool is_octal(char c)
{
    return c >= '0' && c <= '7';
}

/* Mountinfo has "\040" for a blank, and so on. */
static int unescape(struct part text, char buf[static PATH_MAX])
{
    size_t n = 0;

    for (size_t i = 0; i < text.n; i++) {
        char c = text.p[i];

        if (c == '\\' && i + 3 < text.n && is_octal(text.p[i + 1]) && is_octal(text.p[i + 2]) &&
            is_octal(text.p[i + 3])) {
            c = (char)((text.p[i + 1] - '0') << 6 | (text.p[i + 2] - '0') << 3 |
                       (text.p[i + 3] - '0'));
            i += 3;
        }
        if (n + 1 >= PATH_MAX || c == '\0')
            return -ENAMETOOLONG;
        buf[n++] = c;
    }
    buf[n] = '\0';
    return 0;
}

/* What is left of @path below @root, without a slash in front; NULL: it is not below it. */
static const char *below(const char *path, const char *root)
{
    size_t n = strcmp(root, "/") == 0 ? 0 : strlen(root);

    if (strncmp(path, root, n) != 0 || (path[n] != '/' && path[n] != '\0'))
        return NULL;
    return path[n] == '/' ? path + n + 1 : path + n;
}

static bool climbs(const char *path)
{
    for (size_t n; *path != '\0'; path += n + (path[n] == '/')) {
        n = strcspn(path, "/");
        if (is((struct part){path, n}, ".."))
            return true;
    }
    return false;
}

/* One line of mountinfo that has the hierarchy: its mount, and the group below it. */
static int take_mount(struct part root, struct part target, struct part group,
                      struct cgroup_place *ret)
{
    char from[PATH_MAX], path[PATH_MAX];
    int r = unescape(root, from);

    if (r < 0 || (r = unescape(target, ret->mount)) < 0)
        return r;
    if (group.n >= sizeof path)
        return -ENAMETOOLONG;
    memcpy(path, group.p, group.n); /* it is not escaped: the kernel takes no line breaks */
    path[group.n] = '\0';
    const char *own = below(path, from);
    if (!own || climbs(own) || ret->mount[0] != '/')
        return -ENOENT; /* of another part of the hierarchy: not where this process is */
    memcpy(ret->own, own, strlen(own) + 1);
    return 0;
}

int cgroup_find(enum cgroup_controller controller, const char *groups, const char *mounts,
                struct cgroup_place *ret)
{
    struct part left = {mounts, strlen(mounts)}, line, group;
    const char *name = names[controller];
    int r = find_group(groups, name, &group, &ret->unified);
    int found = -ENOENT;

    while (r == 0 && found < 0 && next_part(&left, '\n', &line)) {
        struct part head[6], word, type, source;
        size_t n = 0;

        while (n < ARRAY_SIZE(head) && next_part(&line, ' ', &head[n]))
            n++;
        while (next_part(&line, ' ', &word) && !is(word, "-"))
            ;
        if (n < ARRAY_SIZE(head) || !next_part(&line, ' ', &type) ||
            !next_part(&line, ' ', &source) || !line.p)
            continue;
        if (ret->unified ? is(type, "cgroup2") : is(type, "cgroup") && among(line, name))
            found = take_mount(head[3], head[4], group, ret);
    }
    return r < 0 ? r : found;
}
