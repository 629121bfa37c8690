/* SPDX-License-Identifier: Apache-2.0 */
/* What holds for every document of either form, and for every error of reading one. */
#pragma once

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "wire/document.h"

static inline void check(bool holds)
{
    if (!holds)
        abort();
}

static inline void check_text(const char *s, size_t len)
{
    check(s && strlen(s) == len && text_is_utf8(s, len));
}

/* Where places may be: @at is not before @last, and not below the text. */
static inline void check_place(struct document_place at, struct document_place *last, size_t lines)
{
    check(at.line >= 1 && at.column >= 1 && at.line <= lines);
    check(at.line > last->line || (at.line == last->line && at.column >= last->column));
    *last = at;
}

/* Return: the number of values from @node on. */
static inline size_t check_node(const struct document_node *node, size_t depth, size_t lines,
                                struct document_place *last)
{
    size_t count = 1;

    check_place(node->at, last, lines);
    check(document_what(node) != NULL);
    if (node->kind == DOCUMENT_SCALAR) {
        check_text(node->text, node->len);
        check(node->n == 0 && !document_item(node, 0) && !document_entry(node, 0));
        check(node->plain || node->type == DOCUMENT_STRING);
        return count;
    }
    check(depth < DOCUMENT_DEPTH_MAX && node->n <= DOCUMENT_NODES_MAX);
    for (size_t i = 0; i < node->n; i++) {
        const struct document_entry *entry = &node->entries[i];

        if (node->kind == DOCUMENT_MAP) {
            check_text(entry->key, entry->key_len);
            check_place(entry->key_at, last, lines);
            if (i < 100) /* the first of its name is the only one */
                check(document_find(node, entry->key) == entry);
        } else {
            check(!entry->key && document_item(node, i) == &entry->value);
        }
        count += check_node(&entry->value, depth + 1, lines, last);
    }
    return count;
}

/* Reads in memory that ends with the text. Return: that of document_read(). */
static inline int document_check(enum document_form form, const char *text, size_t size)
{
    struct document *d = NULL;
    struct error err = {.code = 0};
    struct document_place last = {1, 1};
    size_t lines = 1;
    int r = document_read(form, NULL, text, size, &d, &err);

    for (size_t i = 0; i < size; i++)
        lines += text[i] == '\n' || text[i] == '\r';
    if (r == 0) {
        check(err.code == 0 && d);
        check(check_node(document_root(d), 0, lines, &last) <= DOCUMENT_NODES_MAX);
        document_free(d);
        return 0;
    }
    check(!d && err.code == -r && err.message[0] != '\0');
    check((r == -EINVAL || r == -E2BIG) && err.cls == ERROR_USAGE);
    check(size > DOCUMENT_TEXT_MAX_BYTES || strncmp(err.context, "line ", 5) == 0);
    return r;
}
