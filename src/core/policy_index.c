/* SPDX-License-Identifier: Apache-2.0 */
/* Entries of a policy by the hash of a name. */
#include "core/policy_index.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/guards.h"

/* What a key stands for. */
enum kind {
    KIND_FREE,
    KIND_HOST,     /* a name and a port that an entry lists; port 0: the first on any */
    KIND_WILDCARD, /* the same of what lies below a name */
    KIND_ANCESTOR, /* a name that has a listed one below it, or a wildcard */
    KIND_PIN,
};

/* One key. Its name is a part of an entry's, from a byte on, so that no text is held twice. */
struct slot {
    uint32_t hash;
    uint32_t item; /* in policy.hosts, or in policy.pins */
    uint16_t port;
    uint8_t kind; /* enum kind */
    uint8_t at;   /* where the name starts within the item's */
};
_Static_assert(HOST_NAME_BYTES_MAX <= UINT8_MAX, "slot.at reaches the end of a name");

enum { SLOTS_FIRST = 64, NO_SLOT = UINT32_MAX };

/* Open addressing, at most half full. */
struct policy_index {
    struct slot *slots;
    size_t n_slots; /* a power of two */
    size_t used;
};

/* FNV-1a (RFC 9923), from the last byte to the first: one pass has the hash of every parent. */
#define HASH_START UINT64_C(0xcbf29ce484222325)

static uint64_t hash_step(uint64_t h, char c)
{
    return (h ^ (uint8_t)c) * UINT64_C(0x100000001b3);
}

static uint32_t hash_end(uint64_t h, enum kind kind, uint16_t port)
{
    h ^= (uint64_t)kind << 48 | (uint64_t)port << 32;
    h *= UINT64_C(0x9e3779b97f4a7c15); /* spreads the upper bits, which FNV mixes, to the lower */
    return (uint32_t)(h >> 32);
}

static const char *slot_name(const struct policy *p, const struct slot *s)
{
    const char *name =
        s->kind == KIND_PIN ? p->pins[s->item].name.text : p->hosts[s->item].rule.name.text;

    return name + s->at;
}

/* The slot of a key, or the free one where it belongs. */
static size_t slot_of(const struct policy *p, const struct slot *key, const char *name)
{
    const struct policy_index *ix = p->index;
    size_t i = key->hash & (ix->n_slots - 1);

    for (; ix->slots[i].kind != KIND_FREE; i = (i + 1) & (ix->n_slots - 1)) {
        const struct slot *s = &ix->slots[i];

        if (s->hash == key->hash && s->kind == key->kind && s->port == key->port &&
            strcmp(slot_name(p, s), name) == 0)
            break;
    }
    return i;
}

/* The item under a key, or NO_SLOT. @h: of @name */
static uint32_t look(const struct policy *p, uint64_t h, enum kind kind, uint16_t port,
                     const char *name)
{
    const struct slot key = {.hash = hash_end(h, kind, port), .kind = (uint8_t)kind, .port = port};

    if (!p->index || p->index->n_slots == 0)
        return NO_SLOT;
    const struct slot *s = &p->index->slots[slot_of(p, &key, name)];
    return s->kind == KIND_FREE ? NO_SLOT : s->item;
}

static uint64_t hash_of(const char *name)
{
    uint64_t h = HASH_START;

    for (size_t i = strlen(name); i-- > 0;)
        h = hash_step(h, name[i]);
    return h;
}

static int grow(struct policy_index *ix)
{
    size_t n = ix->n_slots > 0 ? 2 * ix->n_slots : SLOTS_FIRST;
    struct slot *slots = calloc(n, sizeof *slots);

    if (!slots)
        return -ENOMEM;
    for (size_t i = 0; i < ix->n_slots; i++) {
        if (ix->slots[i].kind == KIND_FREE)
            continue;
        size_t k = ix->slots[i].hash & (n - 1); /* all keys differ: the first free one will do */
        while (slots[k].kind != KIND_FREE)
            k = (k + 1) & (n - 1);
        slots[k] = ix->slots[i];
    }
    free(ix->slots);
    ix->slots = slots;
    ix->n_slots = n;
    return 0;
}

/* Return: 1; 0 if the key is there, and stays as it is; or -ENOMEM. */
static int add(struct policy *p, uint64_t h, struct slot key)
{
    struct policy_index *ix = p->index;
    int r;

    if (2 * (ix->used + 1) > ix->n_slots) {
        r = grow(ix);
        if (r < 0)
            return r;
    }
    key.hash = hash_end(h, key.kind, key.port);
    size_t i = slot_of(p, &key, slot_name(p, &key));
    if (ix->slots[i].kind != KIND_FREE)
        return 0;
    ix->slots[i] = key;
    ix->used++;
    return 1;
}

static int make_index(struct policy *p)
{
    if (!p->index)
        p->index = calloc(1, sizeof *p->index);
    return p->index ? 0 : -ENOMEM;
}

/* Every name above the entry's; a wildcard's own name too. */
static int add_ancestors(struct policy *p, size_t i)
{
    const char *name = p->hosts[i].rule.name.text;
    size_t own = p->hosts[i].rule.wildcard ? 0 : 1;
    uint64_t h = HASH_START;

    for (size_t at = strlen(name); at-- > own;) {
        h = hash_step(h, name[at]);
        if (at > 0 && name[at - 1] != '.')
            continue;
        int r =
            add(p, h, (struct slot){.item = (uint32_t)i, .kind = KIND_ANCESTOR, .at = (uint8_t)at});
        if (r < 0)
            return r;
    }
    return 0;
}

int policy_index_add_host(struct policy *p, size_t i)
{
    const struct host_rule *rule = &p->hosts[i].rule;
    struct slot key = {.item = (uint32_t)i,
                       .kind = rule->wildcard ? KIND_WILDCARD : KIND_HOST,
                       .port = rule->port};
    uint64_t h = hash_of(rule->name.text);
    int r = make_index(p);

    if (r == 0)
        r = add(p, h, key);
    if (r <= 0)
        return r;
    key.port = 0; /* stays with the first entry that has the name */
    r = add(p, h, key);
    if (r > 0)
        r = add_ancestors(p, i);
    return r < 0 ? r : 1;
}

int policy_index_add_pin(struct policy *p, size_t i)
{
    struct policy_pin *pin = &p->pins[i];
    const struct slot key = {.item = (uint32_t)i, .kind = KIND_PIN};
    uint64_t h = hash_of(pin->name.text);
    int r = make_index(p);

    pin->next = 0;
    if (r == 0)
        r = add(p, h, key);
    if (r != 0)
        return r;
    struct policy_pin *other = &p->pins[look(p, h, KIND_PIN, 0, pin->name.text)];
    while (!address_equal(&other->address, &pin->address) && other->next > 0)
        other = &p->pins[other->next - 1];
    if (address_equal(&other->address, &pin->address))
        return 0;
    other->next = i + 1;
    return 1;
}

void policy_index_free(struct policy_index *ix)
{
    if (ix)
        free(ix->slots);
    free(ix);
}

/* Questions */

/* The first entry that matches by one of both kinds, in the order of the spec. */
static uint32_t find(const struct policy *p, const struct host_name *name, uint16_t port,
                     bool exact)
{
    uint32_t best = NO_SLOT, item;
    uint64_t h = HASH_START;

    for (size_t at = strlen(name->text); at-- > 0;) {
        h = hash_step(h, name->text[at]);
        if (at > 0 && name->text[at - 1] != '.')
            continue;
        if (at > 0 && look(p, h, KIND_ANCESTOR, 0, name->text + at) == NO_SLOT)
            break; /* nothing is listed below it, however many labels were made up */
        item = NO_SLOT;
        if (at > 0 && host_wildcard_holds(name->text, at - 1))
            item = look(p, h, KIND_WILDCARD, port, name->text + at);
        else if (at == 0 && exact)
            item = look(p, h, KIND_HOST, port, name->text);
        if (item < best)
            best = item;
    }
    return best;
}

const struct policy_host *policy_find_host(const struct policy *p, const struct host_name *name,
                                           uint16_t port)
{
    uint32_t i = find(p, name, port, true);

    return i == NO_SLOT ? NULL : &p->hosts[i];
}

const struct policy_host *policy_index_wildcard_of(const struct policy *p,
                                                   const struct host_name *name)
{
    uint32_t i = look(p, hash_of(name->text), KIND_WILDCARD, 0, name->text);

    return i == NO_SLOT ? NULL : &p->hosts[i];
}

const struct policy_host *policy_index_wildcard_above(const struct policy *p,
                                                      const struct host_name *name)
{
    for (const char *dot = strchr(name->text, '.'); dot; dot = strchr(dot + 1, '.')) {
        uint32_t i = look(p, hash_of(dot + 1), KIND_WILDCARD, 0, dot + 1);

        if (i != NO_SLOT)
            return &p->hosts[i];
    }
    return NULL;
}

enum policy_name_kind policy_name_kind(const struct policy *p, const struct host_name *name)
{
    if (p->open || policy_find_host(p, name, 0))
        return POLICY_NAME_LISTED;
    if (look(p, hash_of(name->text), KIND_ANCESTOR, 0, name->text) != NO_SLOT)
        return POLICY_NAME_ANCESTOR;
    return POLICY_NAME_UNLISTED;
}

bool policy_name_by_wildcard(const struct policy *p, const struct host_name *name)
{
    return look(p, hash_of(name->text), KIND_HOST, 0, name->text) == NO_SLOT &&
           find(p, name, 0, false) != NO_SLOT;
}

const struct policy_pin *policy_pin_next(const struct policy *p, const struct host_name *name,
                                         const struct policy_pin *last)
{
    if (last)
        return last->next > 0 ? &p->pins[last->next - 1] : NULL;
    uint32_t i = look(p, hash_of(name->text), KIND_PIN, 0, name->text);
    return i == NO_SLOT ? NULL : &p->pins[i];
}
