/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Spec files: YAML or JSON (wire/document.h) with `version: 1` and up to three sections, `spec`,
 * `backend` and `toolset`, whose fields are those of core/spec_fields.h.
 *
 * Everything that is wrong is found in one reading, each with its place. A file with anything wrong
 * in it sets nothing.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "core/problems.h"
#include "core/spec_set.h"
#include "wire/document.h"

enum { SPEC_FILE_VERSION = 1, SPEC_FILE_MAX_BYTES = DOCUMENT_TEXT_MAX_BYTES };

/**
 * spec_file_read() - a spec from a file
 * @path:     of a file or pipe; "-" is standard input. JSON if its name ends in ".json", or if it
 *            has none and begins with '{'
 * @ret:      on success only; owned by the caller, spec_done()
 * @problems: borrowed; gets all that is wrong with the content, ordered by place. Empty if the file
 *            could not be read, or is neither YAML nor JSON.
 *
 * Relative paths of the host start at the file's folder, from a pipe at the current one. Blocks.
 * Return: 0; or a negative errno with @err set, which sums @problems up: -EINVAL for wrong content,
 * -E2BIG, what open(2) says, -ENOMEM.
 */
int spec_file_read(const char *path, struct spec *ret, struct problems *problems,
                   struct error *err);

/**
 * spec_text_read() - the same from a text
 * @name:   of the text in errors, or NULL
 * @folder: where relative paths of the host start; borrowed; NULL: the current one
 */
int spec_text_read(const char *text, size_t len, enum document_form form, const char *name,
                   const char *folder, struct spec *ret, struct problems *problems,
                   struct error *err);

/*
 * The same in steps, for one who adds to what the file says before it is judged as a whole:
 * spec_file_open(), spec_file_fill(), then whatever, spec_finish(), spec_file_place().
 */
struct spec_file {
    struct document *document; /* NULL: none was opened, and all below do nothing */
    char *name;                /* for errors; NULL: none */
    char *folder;              /* NULL: the current one */
};

/**
 * spec_file_open() - read and parse a file, or "-"
 * @what: for errors: "spec file"
 * @ret:  set on success only, owned
 */
int spec_file_open(const char *path, const char *what, struct spec_file *ret, struct error *err);
void spec_file_done(struct spec_file *file);

/** spec_file_fill() - set every field that the file has; its own folder counts, not @f's */
void spec_file_fill(const struct spec_file *file, struct spec_filling *f);

/**
 * spec_file_place() - give problems without a place the one that their path has in the file, and
 * sort
 * @fields: as spec_field_bit(), those whose value is the file's; others get no place
 */
void spec_file_place(const struct spec_file *file, uint64_t fields, struct problems *problems);

/*
 * Sections that stand in a map with keys of its own beside them, as in each toolset of the file of
 * `atoll mcp`.
 */
enum { SPEC_KEYS_MAX = 8 };

struct spec_keys {
    const char *const *own; /* what the caller reads itself: up to SPEC_KEYS_MAX names, then NULL */
    const char *what;       /* what any other key is not: "a section of a spec" */
    const char *remedy;     /* which keys there are, as a sentence */
};

/** spec_sections_fill() - set every field that the sections of a map have; @f's folder counts */
void spec_sections_fill(const struct document_node *map, const struct spec_keys *keys,
                        struct spec_filling *f);

/** spec_sections_place() - as spec_file_place(), for the sections of a map */
void spec_sections_place(const struct document_node *map, uint64_t fields,
                         struct problems *problems);

/** spec_version_check() - a problem unless the map has `version: 1`, as every file has */
void spec_version_check(const struct document_node *root, struct problems *problems);

/**
 * spec_read_bytes() - all of a small file
 * @path:     "-" is standard input
 * @what:     for errors: "spec file"
 * @ret:      owned, with a NUL after its @ret_len bytes
 * @ret_pipe: whether it was no regular file, so that it has no folder; or NULL
 *
 * Only files and pipes are opened, standard input may be anything. Blocks. Return: 0, or a negative
 * errno with an error that names the path.
 */
int spec_read_bytes(const char *path, const char *what, size_t max_bytes, char **ret,
                    size_t *ret_len, bool *ret_pipe, struct error *err);
