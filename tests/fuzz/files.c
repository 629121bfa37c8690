/* SPDX-License-Identifier: Apache-2.0 */
/* Every decoder of wire/files.h on the same bytes; what one takes survives a second trip. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "wire/files.h"
#include "base/guards.h"

enum { REQUEST_EXTRA = 128 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool holds)
{
    if (!holds)
        abort();
}

static bool same_text(const char *a, const char *b)
{
    return a && b ? strcmp(a, b) == 0 : a == b;
}

static void try_request(struct reader message)
{
    struct file_request x, y;

    if (file_request_decode(message, &x) < 0)
        return;
    check(x.path[0] != '\0' && strlen(x.path) <= FILE_PATH_BYTES_MAX);
    check(x.offset <= INT64_MAX && x.mode <= 07777);
    check(!x.data || (x.data >= message.p && x.len <= (size_t)(message.end - x.data)));
    size_t room = strlen(x.path) + x.len + REQUEST_EXTRA;
    uint8_t *buf = malloc(room);
    check(buf != NULL);
    struct writer w = writer_over(buf, room);
    file_request_encode(&w, &x);
    check(!w.bad);
    check(file_request_decode(reader_over(buf, writer_len(&w)), &y) == 0);
    check(same_text(x.path, y.path) && x.offset == y.offset && x.length == y.length);
    check(x.max_bytes == y.max_bytes && x.flags == y.flags);
    if (x.flags & FILE_MODE_SET)
        check(x.mode == y.mode);
    if (x.flags & FILE_INLINE)
        check(x.len == y.len && x.data && y.data && memcmp(x.data, y.data, x.len) == 0);
    free(buf);
}

static void check_info(const struct file_info *x)
{
    check(x->kind < FILE_KIND__MAX && x->target_kind < FILE_KIND__MAX);
    check(x->mode <= 07777 && x->size <= INT64_MAX);
    check(strcmp(file_kind_name(x->kind), "?") != 0);
}

static void check_entry(const struct file_info *x)
{
    struct file_info y;
    size_t room = file_entry_size(x);
    uint8_t *buf = malloc(room);

    check(buf != NULL);
    check_info(x);
    check(x->name[0] != '\0' && !strchr(x->name, '/'));
    check(strcmp(x->name, ".") != 0 && strcmp(x->name, "..") != 0);
    struct writer w = writer_over(buf, room);
    file_entry_encode(&w, x);
    check(!w.bad);
    struct reader r = reader_over(buf, writer_len(&w));
    check(file_entry_next(&r, &y) == 1);
    check(same_text(x->name, y.name) && same_text(x->link_target, y.link_target));
    check(x->kind == y.kind && x->target_kind == y.target_kind && x->mode == y.mode);
    check(x->size == y.size && x->mtime_ns == y.mtime_ns);
    check(file_entry_next(&r, &y) == 0);
    free(buf);
}

static void try_infos(struct reader message)
{
    struct file_info x;
    int r;

    if (file_info_decode(message, &x) == 0)
        check_info(&x);
    while ((r = file_entry_next(&message, &x)) > 0)
        check_entry(&x);
    if (r == 0)
        check(reader_left(&message) == 0 && file_entry_next(&message, &x) == 0);
}

static void try_fault(struct reader message)
{
    struct file_fault x, y;

    if (!file_fault_decode(message, &x))
        return;
    check(x.code > 0 && x.code < 4096 && x.kind < FILE_KIND__MAX);
    size_t room = strlen(x.path) + REQUEST_EXTRA;
    uint8_t *buf = malloc(room);
    check(buf != NULL);
    struct writer w = writer_over(buf, room);
    file_fault_encode(&w, 0, &x);
    check(!w.bad);
    check(file_fault_decode(reader_over(buf, writer_len(&w)), &y));
    check(x.code == y.code && same_text(x.path, y.path) && x.kind == y.kind);
    free(buf);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const uint8_t nothing = 0;
    struct reader message = reader_over(data ? data : &nothing, size);

    try_request(message);
    try_infos(message);
    try_fault(message);
    return 0;
}
