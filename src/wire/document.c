/* SPDX-License-Identifier: Apache-2.0 */
/* A document: what is checked before either form is read, and access to the tree. */
#include "wire/document.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "wire/document_build.h"
#include "base/guards.h"

/* Length in bytes of the character at the cursor, or 0 when it is not UTF-8. */
static size_t character_length(const struct cursor *c)
{
    size_t left = (size_t)(c->end - c->p);

    for (size_t n = 1; n <= 4 && n <= left; n++)
        if (text_is_utf8(c->p, n))
            return n;
    return 0;
}

/*
 * Whether YAML may have the character as it is, without an escape (YAML 1.2.2, section 5.1). Three
 * line ends of YAML 1.1 are left out: a reader of 1.2 and an editor do not see the line end that
 * libyaml would see, and so not the keys after it.
 */
static bool yaml_may_have(const unsigned char *s, size_t n)
{
    if (n == 1)
        return s[0] >= 0x20 ? s[0] != 0x7F : s[0] == '\t' || s[0] == '\n' || s[0] == '\r';
    if (n == 2)
        return s[0] != 0xC2 || s[1] >= 0xA0; /* C1 controls, U+0085 among them */
    if (n == 3 && s[0] == 0xE2 && s[1] == 0x80)
        return s[2] != 0xA8 && s[2] != 0xA9; /* U+2028, U+2029 */
    if (n == 3 && s[0] == 0xEF)              /* U+FEFF, a byte order mark; U+FFFE, U+FFFF */
        return !(s[1] == 0xBB && s[2] == 0xBF) && !(s[1] == 0xBF && s[2] >= 0xBE);
    return true;
}

/* The code point of the well-formed character at @s. */
static unsigned code_point(const unsigned char *s, size_t n)
{
    static const unsigned char first_bits[] = {0, 0x7F, 0x1F, 0x0F, 0x07};
    unsigned v = s[0] & first_bits[n];

    for (size_t i = 1; i < n; i++)
        v = v << 6 | (s[i] & 0x3F);
    return v;
}

/* What no reader needs to look for afterwards. */
static int check_characters(struct build *b, enum document_form form)
{
    struct cursor c = cursor_over(b->text, b->len);

    while (c.p < c.end) {
        const unsigned char *s = (const unsigned char *)c.p;
        size_t n = character_length(&c);

        if (n == 0) {
            (void)build_refuse(b, EINVAL, c.at, "byte 0x%02X is not UTF-8 here", s[0]);
            return error_remedy(b->err, "Save the text as UTF-8");
        }
        if (s[0] == '\0')
            return build_refuse(b, EINVAL, c.at, "a NUL byte cannot stand in a text");
        if (form == DOCUMENT_YAML && !yaml_may_have(s, n)) {
            unsigned v = code_point(s, n);

            (void)build_refuse(b, EINVAL, c.at, "the character U+%04X cannot stand in YAML", v);
            return error_remedy(b->err, "Write it in double quotes as \"\\u%04X\", or remove it",
                                v);
        }
        while (n-- > 0)
            cursor_step(&c);
    }
    b->end = c.at;
    return 0;
}

int document_read(enum document_form form, const char *name, const char *text, size_t len,
                  struct document **ret, struct error *err)
{
    static const char byte_order_mark[] = "\xEF\xBB\xBF";
    const struct document_place nowhere = {0, 0};
    struct build b = {.name = name, .text = text ? text : "", .len = len, .err = err};
    int r;

    if (len > DOCUMENT_TEXT_MAX_BYTES)
        return build_refuse(&b, E2BIG, nowhere, "the text has %zu bytes; at most %d are read", len,
                            DOCUMENT_TEXT_MAX_BYTES);
    if (len >= strlen(byte_order_mark) && memcmp(b.text, byte_order_mark, 3) == 0) {
        b.text += 3;
        b.len -= 3;
    }
    r = check_characters(&b, form);
    if (r < 0)
        return r;
    _cleanup_(document_freep) struct document *d = calloc(1, sizeof *d);
    if (!d)
        return build_no_memory(&b);
    b.document = d;
    r = form == DOCUMENT_JSON ? document_read_json(&b) : document_read_yaml(&b);
    if (r < 0)
        return r;
    *ret = TAKE_PTR(d);
    return 0;
}

enum document_form document_form_of(const char *name)
{
    const char *end = strrchr(name, '.');

    return end && strcasecmp(end, ".json") == 0 ? DOCUMENT_JSON : DOCUMENT_YAML;
}

/* As deep as DOCUMENT_DEPTH_MAX, which the readers keep. */
static void node_done(struct document_node *node)
{
    for (size_t i = 0; i < node->n; i++) {
        free(node->entries[i].key);
        node_done(&node->entries[i].value);
    }
    free(node->entries);
    free(node->text);
}

void document_free(struct document *d)
{
    if (!d)
        return;
    node_done(&d->root);
    free(d);
}

void document_freep(struct document **d)
{
    document_free(*d);
    *d = NULL;
}

const struct document_node *document_root(const struct document *d)
{
    return &d->root;
}

const struct document_node *document_item(const struct document_node *node, size_t i)
{
    return node->kind == DOCUMENT_LIST && i < node->n ? &node->entries[i].value : NULL;
}

const struct document_entry *document_entry(const struct document_node *node, size_t i)
{
    return node->kind == DOCUMENT_MAP && i < node->n ? &node->entries[i] : NULL;
}

const struct document_entry *document_find(const struct document_node *node, const char *key)
{
    const struct document_entry *entry;

    for (size_t i = 0; (entry = document_entry(node, i)); i++)
        if (strcmp(entry->key, key) == 0)
            return entry;
    return NULL;
}

bool document_is(const struct document_node *node, enum document_type type)
{
    return node->kind == DOCUMENT_SCALAR && node->type == type;
}

bool document_is_true(const struct document_node *node)
{
    return document_is(node, DOCUMENT_BOOLEAN) && (node->text[0] == 't' || node->text[0] == 'T');
}

const char *document_what(const struct document_node *node)
{
    switch (node->kind) {
    case DOCUMENT_LIST:
        return "a list";
    case DOCUMENT_MAP:
        return "a map";
    case DOCUMENT_SCALAR:
        break;
    }
    switch (node->type) {
    case DOCUMENT_STRING:
        return "a string";
    case DOCUMENT_INTEGER:
        return "an integer";
    case DOCUMENT_FLOAT:
        return "a number with a fraction";
    case DOCUMENT_BOOLEAN:
        return "true or false";
    case DOCUMENT_NULL:
        return "nothing";
    }
    return "a value";
}
