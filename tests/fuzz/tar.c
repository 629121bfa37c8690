/* SPDX-License-Identifier: Apache-2.0 */
/* Tar streams: the same in pieces of any size, and entries that are written come back. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "wire/tar.h"
#include "base/guards.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool holds)
{
    if (!holds)
        abort();
}

/* What a reader has said, in a number that depends on all of it but not on how data was cut. */
struct outcome {
    uint64_t sum;
    enum tar_fault fault;
    uint64_t offset;
};

static void mix(struct outcome *o, const void *p, size_t len)
{
    const uint8_t *bytes = p;

    for (size_t i = 0; i < len; i++)
        o->sum = (o->sum ^ bytes[i]) * 0x100000001b3;
}

static bool begins_with_up(const char *path)
{
    return path[0] == '.' && path[1] == '.' && (path[2] == '/' || path[2] == '\0');
}

static void check_paths(const struct tar_entry *e)
{
    char clean[TAR_PATH_MAX + 1], again[TAR_PATH_MAX + 1];

    if (tar_path_check(e->path, strlen(e->path), clean) != TAR_PATH_OK)
        return;
    check(clean[0] != '/' && clean[0] != '\0' && strlen(clean) < TAR_PATH_MAX);
    check(!begins_with_up(clean) && !strstr(clean, "/../"));
    check(tar_path_check(clean, strlen(clean), again) == TAR_PATH_OK && strcmp(clean, again) == 0);
    if (tar_link_stays(clean, e->link, 0))
        check(e->link[0] != '/' && (strchr(clean, '/') || !begins_with_up(e->link)));
    check(!tar_link_stays(clean, e->link, 1) || tar_link_stays(clean, e->link, 0));
}

/* An entry that can be written must come back. */
static void check_round_trip(const struct tar_entry *e)
{
    static uint8_t buf[TAR_HEADER_MAX];
    static struct tar_reader t;
    size_t n = tar_header(e, buf, sizeof buf), len = strlen(e->path);
    struct reader in = reader_over(buf, n);

    check(n % TAR_BLOCK_BYTES == 0);
    if (n == 0)
        return;
    tar_reader_init(&t);
    if (tar_next(&t, &in) == TAR_BAD) { /* no room for the slash after a folder's path */
        check(t.fault == TAR_FAULT_PATH_LONG && e->kind == TAR_FOLDER && len == TAR_PATH_MAX);
        return;
    }
    bool slash = e->kind == TAR_FOLDER && e->path[len - 1] != '/';
    check(t.state == TAR_STATE_DATA || t.state == TAR_STATE_ENTRY_END);
    check(reader_left(&in) == 0 && t.offset == n);
    check(strncmp(t.entry.path, e->path, len) == 0);
    check(strcmp(t.entry.path + len, slash ? "/" : "") == 0);
    check(strcmp(t.entry.link, e->link) == 0 && t.entry.kind == e->kind);
    check(t.entry.size == e->size && t.entry.mode == e->mode);
    check(t.entry.mtime == e->mtime && t.entry.mtime_ns == e->mtime_ns);
}

static void take_entry(struct outcome *o, const struct tar_entry *e)
{
    check(strlen(e->path) <= TAR_PATH_MAX && strlen(e->link) <= TAR_PATH_MAX);
    check(e->kind < TAR_KIND__MAX && e->mode <= 07777 && e->mtime_ns < 1000000000);
    check(e->size <= INT64_MAX && (e->size == 0 || e->kind == TAR_FILE));
    check_paths(e);
    check_round_trip(e);
    mix(o, e->path, strlen(e->path) + 1);
    mix(o, e->link, strlen(e->link) + 1);
    mix(o, &e->size, sizeof e->size);
    mix(o, &e->mtime, sizeof e->mtime);
    mix(o, &e->mtime_ns, sizeof e->mtime_ns);
    mix(o, &e->mode, sizeof e->mode);
    mix(o, &e->kind, sizeof e->kind);
}

static struct outcome read_in_pieces(const uint8_t *data, size_t size, size_t piece)
{
    static struct tar_reader t;
    struct outcome o = {.sum = 1};
    uint64_t got = 0;

    tar_reader_init(&t);
    for (size_t at = 0; at < size; at += piece) {
        size_t n = size - at < piece ? size - at : piece;
        struct reader in = reader_over(data + at, n);
        enum tar_event event;

        while ((event = tar_next(&t, &in)) == TAR_ENTRY || event == TAR_DATA ||
               event == TAR_ENTRY_END) {
            if (event == TAR_ENTRY) {
                take_entry(&o, &t.entry);
                got = 0;
            } else if (event == TAR_DATA) {
                check(t.data.p >= data + at && t.data.end <= data + at + n);
                check(reader_left(&t.data) > 0);
                got += reader_left(&t.data);
                mix(&o, t.data.p, reader_left(&t.data));
            } else {
                check(got == t.entry.size);
                mix(&o, "end", 3);
            }
        }
        if (event != TAR_MORE)
            break;
        check(reader_left(&in) == 0 && t.offset == at + n);
    }
    o.fault = tar_finish(&t);
    o.offset = t.offset;
    check(o.offset <= size);
    return o;
}

static void read_anyhow(const uint8_t *data, size_t size)
{
    static const size_t pieces[] = {1, 511, 700};
    struct outcome whole = read_in_pieces(data, size, size);

    for (size_t i = 0; i < sizeof pieces / sizeof pieces[0]; i++) {
        struct outcome o = read_in_pieces(data, size, pieces[i]);

        check(o.sum == whole.sum && o.fault == whole.fault && o.offset == whole.offset);
    }
}

/* Gives every block the checksum of a header, without which no change would get any further. */
static void repair(uint8_t *data, size_t size)
{
    for (; size >= TAR_BLOCK_BYTES; data += TAR_BLOCK_BYTES, size -= TAR_BLOCK_BYTES) {
        unsigned sum = 0;

        if (memcmp(data, tar_zeros, TAR_BLOCK_BYTES) == 0)
            continue;
        memset(data + 148, ' ', 8);
        for (size_t i = 0; i < TAR_BLOCK_BYTES; i++)
            sum += data[i];
        for (size_t i = 0; i < 6; i++)
            data[148 + i] = (uint8_t)('0' + (sum >> 3 * (5 - i) & 7));
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0)
        return 0;
    read_anyhow(data, size);
    uint8_t *copy = malloc(size);
    if (!copy)
        return 0;
    memcpy(copy, data, size);
    repair(copy, size);
    read_anyhow(copy, size);
    free(copy);
    return 0;
}
