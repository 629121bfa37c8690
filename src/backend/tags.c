/* SPDX-License-Identifier: Apache-2.0 */
/* Tags by which clients share a sandbox. What they mean is the clients' to judge. */
#include <atoll_backend.h>

#include <errno.h>
#include <string.h>

#include "backend/server.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "core/share_tags.h"
#include "wire/sandbox_info.h"
#include "base/guards.h"

bool tags_known(const struct atoll_backend *b)
{
    return b->read_tags && b->write_tags;
}

int tags_stamp(struct spec *spec)
{
    struct string_list stamped = {0};
    int r = share_tags_stamp(spec, clock_epoch_us(), &stamped);

    if (r < 0) {
        string_list_done(&stamped);
        return r;
    }
    string_list_done(&spec->tags);
    spec->tags = stamped;
    return 0;
}

void tags_describe(struct sandbox_info *x)
{
    const struct share_tags tags = {x->labels, x->n_labels};
    size_t n = 0;

    if (share_tags_find(&tags, SHARE_TAG_OWNER)) {
        x->holder = share_tags_find(&tags, SHARE_TAG_HOLDER);
        x->lease_state = x->holder ? LEASE_HELD : LEASE_FREE;
    }
    for (size_t i = 0; i < x->n_labels; i++)
        if (!share_tag_reserved(x->labels[i]))
            x->labels[n++] = x->labels[i];
    x->n_labels = n;
}

static struct atoll_reply *begin(struct atoll_server *s, const struct message *m)
{
    struct atoll_reply *r = NULL;

    if (!tags_known(s->backend))
        server_lacks(s, m->id, "share a sandbox: it has no tags that can be read and written");
    else if ((r = reply_new(s, m)))
        r->asked = true;
    return r;
}

void tags_read(struct atoll_server *s, const struct message *m)
{
    struct atoll_reply *r = begin(s, m);

    if (r)
        s->backend->read_tags(s, s->sandbox, r);
}

void tags_write(struct atoll_server *s, const struct message *m)
{
    const char *tags[SANDBOX_LABELS_MAX + 1] = {NULL}, *tag;
    struct reader fields = m->payload;
    size_t n = 0;
    struct atoll_reply *r;

    while (n < SANDBOX_LABELS_MAX && (tag = text_next(&fields, TAG_LABEL)))
        if (strchr(tag, '='))
            tags[n++] = tag;
        else
            fields.bad = true;
    r = begin(s, m);
    if (r && (fields.bad || text_next(&fields, TAG_LABEL)))
        atoll_reply_error(r, ERROR_USAGE, EPROTO, "the tags cannot be read", NULL);
    else if (r)
        s->backend->write_tags(s, s->sandbox, tags, r);
}
