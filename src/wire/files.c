/* SPDX-License-Identifier: Apache-2.0 */
/* The fields of file operations. Compiled for init too: no allocation, no formatting. */
#include "wire/files.h"

#include <errno.h>
#include <string.h>

#include "wire/control.h"
#include "base/guards.h"

const char *file_kind_name(uint32_t kind)
{
    static const char *const names[] = {
        [FILE_REGULAR] = "file", [FILE_FOLDER] = "folder", [FILE_LINK] = "link",
        [FILE_FIFO] = "fifo",    [FILE_SOCKET] = "socket", [FILE_DEVICE] = "device",
    };

    return kind < FILE_KIND__MAX ? names[kind] : "?";
}

void file_request_encode(struct writer *w, const struct file_request *x)
{
    field_put_string(w, TAG_PATH, x->path);
    field_put_u32(w, TAG_FILE_FLAGS, x->flags);
    if (x->offset > 0)
        field_put_u64(w, TAG_OFFSET, x->offset);
    if (x->length != UINT64_MAX)
        field_put_u64(w, TAG_LENGTH, x->length);
    if (x->max_bytes != UINT64_MAX)
        field_put_u64(w, TAG_MAX_BYTES, x->max_bytes);
    if (x->flags & FILE_MODE_SET)
        field_put_u32(w, TAG_MODE, x->mode);
    if (x->flags & FILE_INLINE)
        field_put_bytes(w, TAG_DATA, x->data, x->len);
}

static bool request_field(const struct field *f, struct file_request *x)
{
    switch (f->tag) {
    case TAG_PATH:
        x->path = field_string(f);
        return x->path && x->path[0] != '\0' && strlen(x->path) <= FILE_PATH_BYTES_MAX;
    case TAG_FILE_FLAGS:
        return field_u32(f, &x->flags);
    case TAG_OFFSET:
        return field_u64(f, &x->offset) && x->offset <= INT64_MAX;
    case TAG_LENGTH:
        return field_u64(f, &x->length);
    case TAG_MAX_BYTES:
        return field_u64(f, &x->max_bytes);
    case TAG_MODE:
        return field_u32(f, &x->mode) && x->mode <= 07777;
    case TAG_DATA:
        x->data = f->value.p;
        x->len = reader_left(&f->value);
        return true;
    default:
        return true;
    }
}

int file_request_decode(struct reader message, struct file_request *ret)
{
    struct file_request x = {.length = UINT64_MAX, .max_bytes = UINT64_MAX};
    struct field f;
    bool has_mode = false;

    while (field_next(&message, &f)) {
        if (!request_field(&f, &x))
            return -EPROTO;
        has_mode = has_mode || f.tag == TAG_MODE;
    }
    if (message.bad || !x.path || (x.flags & FILE_INLINE && !x.data) ||
        (x.flags & FILE_MODE_SET && !has_mode))
        return -EPROTO;
    *ret = x;
    return 0;
}

void file_info_encode(struct writer *w, const struct file_info *x)
{
    if (x->name)
        field_put_string(w, TAG_NAME, x->name);
    field_put_u32(w, TAG_KIND, x->kind | x->target_kind << 16);
    field_put_u32(w, TAG_MODE, x->mode);
    field_put_u64(w, TAG_SIZE, x->size);
    field_put_u64(w, TAG_MTIME_NS, x->mtime_ns);
    if (x->link_target)
        field_put_string(w, TAG_LINK_TARGET, x->link_target);
}

static bool info_field(const struct field *f, struct file_info *x)
{
    switch (f->tag) {
    case TAG_NAME:
        x->name = field_string(f);
        return x->name != NULL;
    case TAG_KIND:
        if (!field_u32(f, &x->kind))
            return false;
        x->target_kind = x->kind >> 16;
        x->kind &= 0xffff;
        return x->kind < FILE_KIND__MAX && x->target_kind < FILE_KIND__MAX;
    case TAG_MODE:
        return field_u32(f, &x->mode) && x->mode <= 07777;
    case TAG_SIZE:
        return field_u64(f, &x->size) && x->size <= INT64_MAX;
    case TAG_MTIME_NS:
        return field_u64(f, &x->mtime_ns);
    case TAG_LINK_TARGET:
        x->link_target = field_string(f);
        return x->link_target != NULL;
    default:
        return true;
    }
}

int file_info_decode(struct reader message, struct file_info *ret)
{
    struct file_info x = {0};
    struct field f;
    bool has_kind = false;

    while (field_next(&message, &f)) {
        if (!info_field(&f, &x))
            return -EPROTO;
        has_kind = has_kind || f.tag == TAG_KIND;
    }
    if (message.bad || !has_kind)
        return -EPROTO;
    *ret = x;
    return 0;
}

size_t file_entry_size(const struct file_info *x)
{
    return 7 * FIELD_HEADER_BYTES + strlen(x->name) + 1 +
           (x->link_target ? strlen(x->link_target) + 1 : 0) + 2 * sizeof(uint32_t) +
           2 * sizeof(uint64_t);
}

void file_entry_encode(struct writer *w, const struct file_info *x)
{
    uint8_t *head = writer_reserve(w, FIELD_HEADER_BYTES);

    file_info_encode(w, x);
    if (!head || w->bad)
        return;
    struct writer h = writer_over(head, FIELD_HEADER_BYTES);
    writer_u16(&h, TAG_ENTRY);
    writer_u16(&h, 0);
    writer_u32(&h, (uint32_t)(w->p - head) - FIELD_HEADER_BYTES);
}

static bool is_entry_name(const char *name)
{
    return name && name[0] != '\0' && strcmp(name, ".") != 0 && strcmp(name, "..") != 0 &&
           !strchr(name, '/');
}

int file_entry_next(struct reader *r, struct file_info *ret)
{
    struct file_info x;
    struct field f;

    while (field_next(r, &f)) {
        if (f.tag != TAG_ENTRY)
            continue;
        if (file_info_decode(f.value, &x) < 0 || !is_entry_name(x.name))
            return -EPROTO;
        *ret = x;
        return 1;
    }
    return r->bad ? -EPROTO : 0;
}

void file_fault_encode(struct writer *w, uint32_t error_class, const struct file_fault *x)
{
    field_put_u32(w, TAG_ERROR_CLASS, error_class);
    field_put_u32(w, TAG_ERROR_CODE, x->code);
    field_put_string(w, TAG_PATH, x->path);
    field_put_u32(w, TAG_KIND, x->kind);
    if (x->code == EFBIG) {
        field_put_u64(w, TAG_SIZE, x->size);
        field_put_u64(w, TAG_MAX_BYTES, x->max);
    }
}

bool file_fault_decode(struct reader message, struct file_fault *ret)
{
    struct file_fault x = {0};
    struct field f;

    while (field_next(&message, &f)) {
        bool good = true;

        if (f.tag == TAG_ERROR_CODE)
            good = field_u32(&f, &x.code);
        else if (f.tag == TAG_PATH)
            good = (x.path = field_string(&f)) != NULL;
        else if (f.tag == TAG_KIND)
            good = field_u32(&f, &x.kind) && x.kind < FILE_KIND__MAX;
        else if (f.tag == TAG_SIZE)
            good = field_u64(&f, &x.size);
        else if (f.tag == TAG_MAX_BYTES)
            good = field_u64(&f, &x.max);
        if (!good)
            return false;
    }
    if (message.bad || !x.path || x.code == 0 || x.code > 4095)
        return false;
    *ret = x;
    return true;
}
