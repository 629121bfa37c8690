/* SPDX-License-Identifier: Apache-2.0 */
/* Growing the tree of a document in the order of its text. */
#include "wire/document_build.h"

#include <assert.h>
#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/guards.h"

void cursor_step(struct cursor *c)
{
    unsigned char byte = (unsigned char)*c->p++;

    if (byte == '\n' || (byte == '\r' && (c->p == c->end || *c->p != '\n'))) {
        c->at.line++;
        c->at.column = 1;
    } else if ((byte & 0xC0) != 0x80) { /* the bytes that continue a character are no columns */
        c->at.column++;
    }
}

int build_refuse(const struct build *b, int code, struct document_place at, const char *fmt, ...)
{
    char message[sizeof b->err->message];
    va_list ap;

    va_start(ap, fmt);
    (void)vsnprintf(message, sizeof message, fmt, ap);
    va_end(ap);
    (void)error_set(b->err, ERROR_USAGE, code, "%s", message);
    if (b->name && at.line > 0)
        return error_context(b->err, "%.120s:%u:%u", b->name, at.line, at.column);
    if (b->name)
        return error_context(b->err, "%s", b->name);
    if (at.line > 0)
        return error_context(b->err, "line %u, column %u", at.line, at.column);
    return -code;
}

int build_no_memory(const struct build *b)
{
    return error_set(b->err, ERROR_TERMINAL, ENOMEM, "out of memory");
}

bool build_wants_key(const struct build *b)
{
    return b->depth > 0 && b->open[b->depth - 1]->kind == DOCUMENT_MAP && !b->has_key;
}

static char *copy(const char *text, size_t len)
{
    char *s = malloc(len + 1);

    if (!s)
        return NULL;
    if (len > 0)
        memcpy(s, text, len);
    s[len] = '\0';
    return s;
}

/*
 * A new last entry of @node, zeroed, or NULL without memory. The array may move; of its nodes only
 * the last can be open, and nothing is added beside a node that is open, so b->open stays right.
 */
static struct document_entry *add_entry(struct document_node *node)
{
    if (node->n == node->room) {
        size_t room = node->room > 0 ? 2 * node->room : 4;
        struct document_entry *entries = realloc(node->entries, room * sizeof *entries);

        if (!entries)
            return NULL;
        node->entries = entries;
        node->room = room;
    }
    struct document_entry *entry = &node->entries[node->n++];
    memset(entry, 0, sizeof *entry);
    return entry;
}

/* Where the value goes that comes next in the text, or NULL with the error set. */
static struct document_node *next_value(struct build *b, struct document_place at)
{
    struct document_node *around = b->depth > 0 ? b->open[b->depth - 1] : NULL;

    if (b->n_nodes == DOCUMENT_NODES_MAX) {
        (void)build_refuse(b, E2BIG, at, "there are more than %d values", DOCUMENT_NODES_MAX);
        return NULL;
    }
    b->n_nodes++;
    if (!around)
        return &b->document->root;
    if (around->kind == DOCUMENT_LIST && !add_entry(around)) {
        (void)build_no_memory(b);
        return NULL;
    }
    assert(around->kind == DOCUMENT_LIST || b->has_key);
    b->has_key = false;
    return &around->entries[around->n - 1].value;
}

int build_key(struct build *b, struct document_place at, const char *key, size_t len)
{
    assert(build_wants_key(b));
    char *text = copy(key, len);
    struct document_entry *entry = text ? add_entry(b->open[b->depth - 1]) : NULL;

    if (!entry) {
        free(text);
        return build_no_memory(b);
    }
    entry->key = text;
    entry->key_len = len;
    entry->key_at = at;
    b->has_key = true;
    return 0;
}

int build_scalar(struct build *b, struct document_place at, enum document_type type, bool plain,
                 const char *text, size_t len)
{
    struct document_node *node = next_value(b, at);

    if (!node)
        return -b->err->code;
    node->at = at;
    node->kind = DOCUMENT_SCALAR;
    node->type = type;
    node->plain = plain;
    node->text = copy(text, len);
    node->len = len;
    return node->text ? 0 : build_no_memory(b);
}

int build_open(struct build *b, struct document_place at, enum document_kind kind)
{
    struct document_node *node;

    if (b->depth == DOCUMENT_DEPTH_MAX)
        return build_refuse(b, E2BIG, at, "there are more than %d lists and maps inside each other",
                            DOCUMENT_DEPTH_MAX);
    node = next_value(b, at);
    if (!node)
        return -b->err->code;
    node->at = at;
    node->kind = kind;
    b->open[b->depth++] = node;
    return 0;
}

/* By key; equal ones stay in the order of the text, in which they stand in one array. */
static int compare_keys(const void *a, const void *b)
{
    const struct document_entry *x = *(const struct document_entry *const *)a;
    const struct document_entry *y = *(const struct document_entry *const *)b;
    int r = strcmp(x->key, y->key);

    return r != 0 ? r : (x > y) - (x < y);
}

/* Sorted rather than each compared with each: a hostile map may have all the keys there can be. */
static int refuse_duplicate_keys(const struct build *b, const struct document_node *map)
{
    const struct document_entry *second = NULL, *first = NULL;

    if (map->n < 2)
        return 0;
    _cleanup_free_ const struct document_entry **sorted = malloc(map->n * sizeof(void *));
    if (!sorted)
        return build_no_memory(b);
    for (size_t i = 0; i < map->n; i++)
        sorted[i] = &map->entries[i];
    qsort(sorted, map->n, sizeof(void *), compare_keys);
    for (size_t i = 1; i < map->n; i++)
        if (strcmp(sorted[i - 1]->key, sorted[i]->key) == 0 && (!second || sorted[i] < second)) {
            first = sorted[i - 1];
            second = sorted[i];
        }
    if (!second)
        return 0;
    return build_refuse(b, EINVAL, second->key_at,
                        "the key '%.80s' is given twice: here and at line %u, column %u",
                        second->key, first->key_at.line, first->key_at.column);
}

int build_close(struct build *b)
{
    assert(b->depth > 0 && !b->has_key);
    const struct document_node *node = b->open[--b->depth];

    return node->kind == DOCUMENT_MAP ? refuse_duplicate_keys(b, node) : 0;
}
