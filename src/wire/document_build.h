/* SPDX-License-Identifier: Apache-2.0 */
/*
 * For the readers of documents only (document_yaml.c, document_json.c): growing the tree in the
 * order of the text. Everything that holds for both forms is here: ceilings, places, duplicate
 * keys, and how an error tells where it is.
 */
#pragma once

#include "wire/document.h"

struct document {
    struct document_node root;
};

struct build {
    const char *name; /* of the text in errors, or NULL; borrowed */
    const char *text; /* without a byte order mark, and UTF-8; borrowed */
    size_t len;
    struct document_place end; /* behind the last character */
    struct document *document;
    struct document_node *open[DOCUMENT_DEPTH_MAX]; /* the lists and maps around, outermost first */
    size_t depth, n_nodes;
    bool has_key; /* the innermost map has a key that waits for its value */
    struct error *err;
};

/* A position in UTF-8 that knows its line and column. */
struct cursor {
    const char *p, *end;
    struct document_place at;
};

static inline struct cursor cursor_over(const char *text, size_t len)
{
    return (struct cursor){.p = text, .end = text + len, .at = {1, 1}};
}

/** cursor_step() - one byte on; @c is not at its end. LF, CR and CR LF each end a line */
void cursor_step(struct cursor *c);

/**
 * build_refuse() - end the reading with an error about @at
 * @code: positive errno; E2BIG for a ceiling, else EINVAL
 *
 * Return: -@code.
 */
__attribute__((format(printf, 4, 5))) int build_refuse(const struct build *b, int code,
                                                       struct document_place at, const char *fmt,
                                                       ...);

/** build_no_memory() - end the reading for lack of memory. Return: -ENOMEM */
int build_no_memory(const struct build *b);

/** build_wants_key() - whether what comes next in the text is a key, or the end of a map */
bool build_wants_key(const struct build *b);

/**
 * build_key() - a key of the innermost map; its value comes next
 * @key: copied
 *
 * Return: 0 or a negative errno with the error set, as of all functions below.
 */
int build_key(struct build *b, struct document_place at, const char *key, size_t len);

/** build_scalar() - a scalar as value of the waiting key, list, or document; @text is copied */
int build_scalar(struct build *b, struct document_place at, enum document_type type, bool plain,
                 const char *text, size_t len);

/** build_open() - a list or map begins, in the same places */
int build_open(struct build *b, struct document_place at, enum document_kind kind);

/** build_close() - the innermost list or map ends; a key that is twice in a map is found here */
int build_close(struct build *b);

/** document_read_yaml(), document_read_json() - the whole text into b->document */
int document_read_yaml(struct build *b);
int document_read_json(struct build *b);
