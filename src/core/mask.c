/* SPDX-License-Identifier: Apache-2.0 */
/*
 * All secrets are looked for at once, by the automaton of Aho and Corasick (CACM 18/6, 1975): a
 * tree of the secrets' beginnings, in which each node knows the longest other beginning that its
 * own end is. One step for each byte of the text, whatever the number of secrets, and no text can
 * be made that is slower than any other.
 */
#include "core/mask.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/buffer.h"
#include "base/guards.h"

enum { ROOT = 0, BYTES_MAX = 1 << 28, SLOTS_MIN = 64 };

static const char stand_in[] = "***";

struct secret {
    char *bytes;
    size_t len;
};

/* The beginning of a secret: that of @parent and one byte more. */
struct node {
    uint32_t parent, depth;
    uint32_t fail;  /* the longest proper end of it that is a node too */
    uint32_t match; /* length of the longest secret that it ends with; 0: none */
    bool whole;     /* it is a secret */
    uint8_t byte;
};

struct mask {
    struct secret *secrets;
    size_t n_secrets, secrets_room;
    size_t longest, total;
    struct node *nodes; /* parents first */
    uint32_t n_nodes, nodes_room;
    uint32_t *slots; /* open addressing by parent and byte: the number of a node; ROOT: free */
    uint32_t n_slots;
    uint32_t first[256]; /* the children of the root, for which no slot is looked up */
    bool *linked;        /* fail and match of all nodes hold; behind a pointer, as below */
};

/* Bytes start..end of a text are one or more secrets. In order, and apart. */
struct run {
    size_t start, end;
};

struct runs {
    struct run *items;
    size_t n, room;
    bool bad; /* no memory */
};

/* As realloc(3), but what is given back holds no secret any more. */
static void *grow(void *old, size_t old_bytes, size_t bytes)
{
    void *more = calloc(1, bytes);

    if (!more)
        return NULL;
    if (old_bytes > 0) {
        memcpy(more, old, old_bytes);
        explicit_bzero(old, old_bytes);
    }
    free(old);
    return more;
}

static void wipe(void *bytes, size_t len)
{
    if (bytes && len > 0)
        explicit_bzero(bytes, len);
    free(bytes);
}

struct mask *mask_new(void)
{
    struct mask *m = calloc(1, sizeof *m);

    if (!m)
        return NULL;
    m->nodes = calloc(SLOTS_MIN, sizeof *m->nodes);
    m->slots = calloc(SLOTS_MIN, sizeof *m->slots);
    m->linked = calloc(1, sizeof *m->linked);
    m->nodes_room = m->n_slots = SLOTS_MIN;
    m->n_nodes = 1;
    if (m->nodes && m->slots && m->linked)
        return m;
    mask_free(m);
    return NULL;
}

void mask_free(struct mask *m)
{
    if (!m)
        return;
    for (size_t i = 0; i < m->n_secrets; i++)
        wipe(m->secrets[i].bytes, m->secrets[i].len);
    free(m->secrets);
    wipe(m->nodes, m->nodes_room * sizeof *m->nodes);
    free(m->slots);
    free(m->linked);
    free(m);
}

void mask_freep(struct mask **m)
{
    mask_free(*m);
    *m = NULL;
}

size_t mask_longest(const struct mask *m)
{
    return m->longest;
}

/* The slot of a child, or the free one where it would be. */
static uint32_t *slot_of(const struct mask *m, uint32_t parent, uint8_t byte)
{
    uint64_t h = (((uint64_t)parent << 8) | byte) * UINT64_C(0x9E3779B97F4A7C15);
    uint32_t at = (uint32_t)(h >> 32) & (m->n_slots - 1);

    while (m->slots[at] != ROOT) {
        const struct node *n = &m->nodes[m->slots[at]];

        if (n->parent == parent && n->byte == byte)
            break;
        at = (at + 1) & (m->n_slots - 1);
    }
    return &m->slots[at];
}

/* Return: ROOT when there is none, which is nobody's child. */
static uint32_t child_of(const struct mask *m, uint32_t parent, uint8_t byte)
{
    return parent == ROOT ? m->first[byte] : *slot_of(m, parent, byte);
}

/* Room for @n more nodes, and slots that are at most half full. */
static int make_room(struct mask *m, size_t n)
{
    uint32_t room = m->nodes_room, n_slots = m->n_slots;
    struct node *nodes;
    uint32_t *slots;

    while (room < m->n_nodes + n)
        room *= 2;
    while (n_slots < 2 * (m->n_nodes + n))
        n_slots *= 2;
    if (room > m->nodes_room) {
        nodes = grow(m->nodes, m->n_nodes * sizeof *nodes, room * sizeof *nodes);
        if (!nodes)
            return -ENOMEM;
        m->nodes = nodes;
        m->nodes_room = room;
    }
    if (n_slots > m->n_slots) {
        slots = calloc(n_slots, sizeof *slots);
        if (!slots)
            return -ENOMEM;
        free(m->slots);
        m->slots = slots;
        m->n_slots = n_slots;
        for (uint32_t i = 1; i < m->n_nodes; i++)
            *slot_of(m, m->nodes[i].parent, m->nodes[i].byte) = i;
    }
    return 0;
}

/* Return: 0 with a copy as the last secret that is not counted yet, or -ENOMEM. */
static int keep_copy(struct mask *m, const void *secret, size_t len)
{
    char *copy;

    if (m->n_secrets == m->secrets_room) {
        size_t room = m->secrets_room > 0 ? 2 * m->secrets_room : 8;
        struct secret *more = reallocarray(m->secrets, room, sizeof *more);

        if (!more)
            return -ENOMEM;
        m->secrets = more;
        m->secrets_room = room;
    }
    copy = malloc(len);
    if (!copy)
        return -ENOMEM;
    memcpy(copy, secret, len);
    m->secrets[m->n_secrets] = (struct secret){.bytes = copy, .len = len};
    return 0;
}

int mask_add(struct mask *m, const void *secret, size_t len)
{
    const uint8_t *s = secret;
    uint32_t at = ROOT;

    if (len < MASK_SECRET_MIN)
        return -EINVAL;
    if (len > BYTES_MAX - m->total || make_room(m, len) < 0 || keep_copy(m, secret, len) < 0)
        return -ENOMEM;
    for (size_t i = 0; i < len; i++) {
        uint32_t next = child_of(m, at, s[i]);

        if (next == ROOT) {
            next = m->n_nodes++;
            m->nodes[next] =
                (struct node){.parent = at, .depth = m->nodes[at].depth + 1, .byte = s[i]};
            *slot_of(m, at, s[i]) = next;
            if (at == ROOT)
                m->first[s[i]] = next;
        }
        at = next;
    }
    if (m->nodes[at].whole) { /* known already */
        wipe(m->secrets[m->n_secrets].bytes, len);
        return 0;
    }
    m->nodes[at].whole = true;
    *m->linked = false;
    m->n_secrets++;
    m->total += len;
    m->longest = len > m->longest ? len : m->longest;
    return 0;
}

/* From a node that a text ends with to the one that it ends with when @byte follows. */
static uint32_t step(const struct mask *m, uint32_t at, uint8_t byte)
{
    for (;;) {
        uint32_t next = child_of(m, at, byte);

        if (next != ROOT || at == ROOT)
            return next;
        at = m->nodes[at].fail;
    }
}

/* The numbers of all nodes, the shallow ones first; or NULL. */
static uint32_t *by_depth(const struct mask *m)
{
    _cleanup_free_ uint32_t *starts = calloc(m->longest + 2, sizeof *starts);
    uint32_t *order = reallocarray(NULL, m->n_nodes, sizeof *order);

    if (!starts || !order) {
        free(order);
        return NULL;
    }
    for (uint32_t i = 0; i < m->n_nodes; i++)
        starts[m->nodes[i].depth + 1]++;
    for (size_t d = 1; d <= m->longest; d++)
        starts[d] += starts[d - 1];
    for (uint32_t i = 0; i < m->n_nodes; i++)
        order[starts[m->nodes[i].depth]++] = i;
    return order;
}

/* Done when a text is to be masked and not before, since secrets are added one by one. */
static int link_nodes(const struct mask *m)
{
    _cleanup_free_ uint32_t *order = NULL;

    if (*m->linked || m->n_secrets == 0)
        return 0;
    order = by_depth(m);
    if (!order)
        return -ENOMEM;
    for (uint32_t i = 1; i < m->n_nodes; i++) {
        struct node *n = &m->nodes[order[i]];

        n->fail = n->parent == ROOT ? ROOT : step(m, m->nodes[n->parent].fail, n->byte);
        n->match = n->whole ? n->depth : m->nodes[n->fail].match;
    }
    *m->linked = true;
    return 0;
}

/* Ends never go back, but a run may begin in front of earlier ones. */
static void add_run(struct runs *r, size_t start, size_t end)
{
    while (r->n > 0 && r->items[r->n - 1].end >= start) {
        r->n--;
        start = r->items[r->n].start < start ? r->items[r->n].start : start;
        end = r->items[r->n].end > end ? r->items[r->n].end : end;
    }
    if (r->n == r->room) {
        size_t room = r->room > 0 ? 2 * r->room : 16;
        struct run *more = reallocarray(r->items, room, sizeof *more);

        if (!more) {
            r->bad = true;
            return;
        }
        r->items = more;
        r->room = room;
    }
    r->items[r->n++] = (struct run){.start = start, .end = end};
}

/* Bytes from..to of a text, in front of which the node @at was reached. Return: the next node. */
static uint32_t scan(const struct mask *m, uint32_t at, const char *text, size_t from, size_t to,
                     struct runs *runs)
{
    for (size_t i = from; i < to; i++) {
        at = step(m, at, (uint8_t)text[i]);
        if (m->nodes[at].match > 0)
            add_run(runs, i + 1 - m->nodes[at].match, i + 1);
    }
    return at;
}

/* Only LFs: what a run leaves. They come behind its stars, so they can go out one by one. */
static void put_line_ends(struct buffer *out, const char *text, size_t from, size_t to)
{
    while (from < to) {
        const char *lf = memchr(text + from, '\n', to - from);

        if (!lf)
            return;
        buffer_add(out, "\n", 1);
        from = (size_t)(lf - text) + 1;
    }
}

/*
 * Bytes 0..@to of a text, masked. *@inside: whether what was put last is a run that reached up to
 * byte 0, and afterwards, one that reaches up to @to. Return: how many runs ended.
 */
static size_t put(struct buffer *out, const char *text, size_t to, const struct runs *runs,
                  bool *inside)
{
    size_t at = 0, i = 0;

    for (; i < runs->n && runs->items[i].start < to; i++) {
        const struct run *r = &runs->items[i];
        size_t end = r->end < to ? r->end : to;

        buffer_add(out, text + at, r->start - at);
        if (!*inside || r->start > 0)
            buffer_add(out, stand_in, sizeof stand_in - 1);
        put_line_ends(out, text, r->start, end);
        *inside = end == to;
        at = end;
        if (r->end > to)
            return i;
    }
    if (at < to) {
        buffer_add(out, text + at, to - at);
        *inside = false;
    }
    return i;
}

/* For each beginning of a pattern, the longest proper one that it ends with (Knuth, Morris, Pratt).
 */
static size_t *borders_of(const char *pattern, size_t len)
{
    size_t *borders = reallocarray(NULL, len + 1, sizeof *borders);
    size_t k = 0;

    if (!borders)
        return NULL;
    borders[0] = borders[1] = 0;
    for (size_t i = 1; i < len; i++) {
        while (k > 0 && pattern[i] != pattern[k])
            k = borders[k];
        k += pattern[i] == pattern[k];
        borders[i + 1] = k;
    }
    return borders;
}

/*
 * How much of a text's beginning is the end of a secret whose own beginning was cut off. With
 * @inner, also how much of it is all that a cut at both sides left of one.
 */
static int cut_start(const struct mask *m, const char *text, size_t len, bool inner, size_t *ret)
{
    size_t n = len < m->longest - 1 ? len : m->longest - 1, best = 0;
    _cleanup_free_ size_t *borders = NULL;

    if (n == 0) {
        *ret = 0;
        return 0;
    }
    borders = borders_of(text, n);
    if (!borders)
        return -ENOMEM;
    for (size_t i = 0; i < m->n_secrets && best < n; i++) {
        const struct secret *s = &m->secrets[i];
        size_t k = 0;

        for (size_t j = 1; j < s->len; j++) { /* from its second byte on: a proper end */
            if (k == n)
                k = borders[k];
            while (k > 0 && s->bytes[j] != text[k])
                k = borders[k];
            k += s->bytes[j] == text[k];
            if (inner && k == len)
                best = len;
        }
        best = k > best ? k : best;
    }
    *ret = best;
    return 0;
}

static int mask_into(const struct mask *m, const char *text, size_t len, unsigned cut,
                     struct runs *runs, struct buffer *out)
{
    size_t start = 0;
    uint32_t at;
    bool inside = false;
    int r = link_nodes(m);

    if (r == 0 && (cut & MASK_CUT_START) && m->n_secrets > 0)
        r = cut_start(m, text, len, cut & MASK_CUT_END, &start);
    if (r < 0)
        return r;
    if (start > 0)
        add_run(runs, 0, start);
    if (m->n_secrets > 0) {
        at = scan(m, ROOT, text, 0, len, runs);
        if ((cut & MASK_CUT_END) && at != ROOT)
            add_run(runs, len - m->nodes[at].depth, len);
    }
    if (!runs->bad && buffer_reserve(out, len))
        (void)put(out, text, len, runs, &inside);
    return runs->bad || out->bad ? -ENOMEM : 0;
}

int mask_text(const struct mask *m, const void *text, size_t len, unsigned cut, char **ret,
              size_t *ret_len)
{
    struct runs runs = {0};
    struct buffer out = {0};
    int r = mask_into(m, len > 0 ? text : "", len, cut, &runs, &out);

    free(runs.items);
    if (r == 0)
        r = buffer_take(&out, ret, ret_len);
    buffer_done(&out);
    return r;
}

struct mask_stream {
    const struct mask *m;
    uint32_t at;
    bool inside; /* what went out last belongs to a run that may go on */
    char *held;  /* [held_from, held_to): what cannot be judged yet */
    size_t held_from, held_to, held_room;
    struct runs runs; /* counted from held_from */
    struct buffer out;
};

struct mask_stream *mask_stream_new(const struct mask *m)
{
    struct mask_stream *s = link_nodes(m) == 0 ? calloc(1, sizeof *s) : NULL;

    if (s)
        s->m = m;
    return s;
}

void mask_stream_free(struct mask_stream *s)
{
    if (!s)
        return;
    wipe(s->held, s->held_room);
    free(s->runs.items);
    buffer_done(&s->out);
    free(s);
}

/* Moving down is done when as much room is free in front as there is to move, so it costs nothing.
 */
static int hold(struct mask_stream *s, const void *piece, size_t len)
{
    size_t have = s->held_to - s->held_from;

    if (have <= s->held_from) {
        if (have > 0)
            memcpy(s->held, s->held + s->held_from, have);
        s->held_from = 0;
        s->held_to = have;
    }
    if (len > s->held_room - s->held_to) {
        size_t room = s->held_to + len + s->held_room / 2;
        char *more = len < SIZE_MAX / 4 ? grow(s->held, s->held_room, room) : NULL;

        if (!more)
            return -ENOMEM;
        s->held = more;
        s->held_room = room;
    }
    if (len > 0)
        memcpy(s->held + s->held_to, piece, len);
    s->held_to += len;
    return 0;
}

/* The first @n held bytes are gone, with the @ended runs that lay in them. */
static void drop(struct mask_stream *s, size_t n, size_t ended)
{
    struct runs *r = &s->runs;

    r->n -= ended;
    for (size_t i = 0; i < r->n; i++) {
        r->items[i] = r->items[i + ended];
        r->items[i].start -= r->items[i].start < n ? r->items[i].start : n;
        r->items[i].end -= n;
    }
    s->held_from += n;
}

int mask_stream_feed(struct mask_stream *s, const void *piece, size_t len, bool end,
                     const char **ret, size_t *ret_len)
{
    size_t before = s->held_to - s->held_from, total = before + len, known;
    const char *text;

    s->out.len = 0;
    if (s->m->n_secrets == 0) {
        *ret = len > 0 ? piece : "";
        *ret_len = len;
        return 0;
    }
    /* A secret that was added since the last piece holds from here on. */
    if (link_nodes(s->m) < 0 || hold(s, piece, len) < 0)
        return -ENOMEM;
    text = s->held ? s->held + s->held_from : "";
    s->at = scan(s->m, s->at, text, before, total, &s->runs);
    /* What a secret could still begin in is not known; what is in front of that, no byte changes.
     */
    known = end ? total : total - s->m->nodes[s->at].depth;
    drop(s, known, put(&s->out, text, known, &s->runs, &s->inside));
    if (s->runs.bad || !buffer_reserve(&s->out, 0))
        return -ENOMEM;
    *ret = s->out.bytes;
    *ret_len = s->out.len;
    return 0;
}
