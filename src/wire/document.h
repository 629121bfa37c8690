/* SPDX-License-Identifier: Apache-2.0 */
/*
 * YAML and JSON from outside as a small tree that knows where each of its parts stands.
 *
 * Both forms give the same tree and are read strictly: what two readers could take differently is
 * refused rather than guessed. Of YAML that is: anchors, aliases (and with them texts that grow
 * when they are read), explicit tags, the merge key, directives other than "%YAML 1.1" and
 * "%YAML 1.2", more than one document, keys that are lists or maps, and line ends that YAML 1.1
 * knew and 1.2 does not. Plain scalars have the types of the core schema (YAML 1.2.2, section
 * 10.3), so that NO and 012 are not what they were in YAML 1.1. JSON is the grammar of RFC 8259,
 * with nothing beside it but a byte order mark in front. In both a key may stand once in a map, the
 * text is UTF-8, and no string holds a NUL.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"

/* Ceilings. A spec that somebody wrote stays far below; each bounds what a hostile one can cost. */
enum {
    DOCUMENT_TEXT_MAX_BYTES = 1 << 20,
    DOCUMENT_DEPTH_MAX = 64,     /* lists and maps inside each other */
    DOCUMENT_NODES_MAX = 100000, /* values of all kinds; about 20 MiB of memory */
};

enum document_form {
    DOCUMENT_YAML,
    DOCUMENT_JSON,
};

enum document_kind {
    DOCUMENT_SCALAR,
    DOCUMENT_LIST,
    DOCUMENT_MAP,
};

/* What a scalar is. No number is computed: only its user knows the range it may have. */
enum document_type {
    DOCUMENT_STRING,  /* all that is quoted, block text, and plain text that is nothing below */
    DOCUMENT_INTEGER, /* decimal; in YAML also 0o17 and 0x1F; any number of digits */
    DOCUMENT_FLOAT,   /* with a fraction or an exponent; in YAML also .inf and .nan */
    DOCUMENT_BOOLEAN, /* true and false; in YAML also True, TRUE, False, FALSE */
    DOCUMENT_NULL,    /* null; in YAML also Null, NULL, ~ and nothing at all */
};

/* Both counted from 1, the column in characters, as an editor shows them; a line of 0: nowhere. */
struct document_place {
    unsigned line, column;
};

/* A value; to be read only. Everything that it points to lives as long as the document. */
struct document_node {
    struct document_place at; /* of its first character, quotes and brackets included */
    enum document_kind kind;

    /* Of a scalar */
    enum document_type type;
    bool plain; /* written without quotes and not as block text */
    char *text; /* what quotes and escapes stand for; UTF-8 without a NUL inside, terminated */
    size_t len; /* strlen(text) */

    /* Of a list or map */
    struct document_entry *entries;
    size_t n, room;
};

/* A part of a list, or a key and its value in a map; in the order of the text. */
struct document_entry {
    char *key; /* NULL in a list; UTF-8 without a NUL inside, terminated */
    size_t key_len;
    struct document_place key_at;
    struct document_node value;
};

struct document;

/**
 * document_read() - read a whole text
 * @name: of the text in errors, "job.yaml", or NULL
 * @text: borrowed @len bytes, of any content
 * @ret:  on success only: the tree, to be released with document_free()
 *
 * An error says what was expected in one sentence; its context is the place, "job.yaml:4:9" or
 * "line 4, column 9". Does not block. Return: 0; -EINVAL when @text is not well-formed or holds
 * what is refused (ERROR_USAGE); -E2BIG above a ceiling (ERROR_USAGE); -ENOMEM (ERROR_TERMINAL).
 */
int document_read(enum document_form form, const char *name, const char *text, size_t len,
                  struct document **ret, struct error *err);

/** document_form_of() - JSON for a file name that ends in ".json" in any case, else YAML */
enum document_form document_form_of(const char *name);

/** document_free() - release a tree with all that was reached through it; NULL is nothing */
void document_free(struct document *d);
void document_freep(struct document **d);

/** document_root() - the outermost value; there always is one */
const struct document_node *document_root(const struct document *d);

/** document_item() - value @i of a list, counted from 0, or NULL after the last or of no list */
const struct document_node *document_item(const struct document_node *node, size_t i);

/** document_entry() - key and value @i of a map, or NULL after the last or of no map */
const struct document_entry *document_entry(const struct document_node *node, size_t i);

/** document_find() - the entry of a map under @key, or NULL when it has none or is no map */
const struct document_entry *document_find(const struct document_node *node, const char *key);

/** document_is() - whether @node is a scalar of @type */
bool document_is(const struct document_node *node, enum document_type type);

/** document_is_true() - the value of a boolean; false for everything else */
bool document_is_true(const struct document_node *node);

/** document_what() - "a list", "a map", "an integer", "nothing": for a sentence; static storage */
const char *document_what(const struct document_node *node);
