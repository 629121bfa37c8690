/* SPDX-License-Identifier: Apache-2.0 */
/* The fields of a spec as conditions see them, and the conditions. */
#include <assert.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/parse.h"
#include "core/address.h"
#include "core/capability.h"
#include "core/limits.h"
#include "base/guards.h"

/* A field as conditions look at it. Views of the spec. */
struct view {
    uint64_t number;
    const char *text;               /* or NULL */
    const struct string_list *list; /* or NULL */
};

static struct view view_of(const struct spec *s, enum spec_field_id field)
{
    const void *member = (const char *)s + spec_fields[field].offset;

    switch (spec_fields[field].kind) {
    case SPEC_BOOL:
        return (struct view){.number = *(const bool *)member};
    case SPEC_TEXT:
    case SPEC_CHOICE:
        return (struct view){.text = *(char *const *)member};
    case SPEC_TEXTS:
    case SPEC_MAP:
        return (struct view){.list = member};
    case SPEC_SIZE:
    case SPEC_DURATION:
    case SPEC_COUNT:
    case SPEC_DECIMAL:
        return (struct view){.number = *(const uint64_t *)member};
    case SPEC_VOLUMES:
        return (struct view){.number = s->n_volumes};
    case SPEC_USER:
        return (struct view){.number = s->user_set};
    case SPEC_KIND__MAX:
        break;
    }
    return (struct view){0};
}

static bool same_text(const char *a, const char *b)
{
    return a && b ? strcmp(a, b) == 0 : a == b;
}

/* A number's default; the table has it as it is typed. */
static uint64_t preset_number(const struct spec_field *field)
{
    uint64_t v = 0;

    if (!field->preset)
        return 0;
    if (field->kind == SPEC_BOOL)
        return strcmp(field->preset, "true") == 0;
    if (field->kind == SPEC_SIZE)
        (void)parse_size(field->preset, 0, UINT64_MAX, &v);
    else if (field->kind == SPEC_DURATION)
        (void)parse_duration(field->preset, 0, UINT64_MAX, &v);
    else
        (void)parse_u64(field->preset, 0, UINT64_MAX, &v);
    return v;
}

bool capability_field_stated(const struct spec *s, enum spec_field_id field)
{
    const struct view v = view_of(s, field);

    if (v.list)
        return v.list->n > 0;
    if (spec_fields[field].kind == SPEC_TEXT || spec_fields[field].kind == SPEC_CHOICE)
        return !same_text(v.text, spec_fields[field].preset);
    return v.number != preset_number(&spec_fields[field]);
}

typedef bool (*entry_test)(const char *entry, const char *words);

static bool any_entry(const struct string_list *l, entry_test test, const char *words)
{
    for (size_t i = 0; l && i < l->n; i++)
        if (test(l->items[i], words))
            return true;
    return false;
}

/* Whether the key of K=V is one of @words; a word that ends in "*" stands for all that begin so. */
static bool key_is_among(const char *entry, const char *words)
{
    size_t key = strcspn(entry, "=");

    for (const char *w = words; *w != '\0'; w += strspn(w, " ")) {
        size_t n = strcspn(w, " ");
        bool prefix = w[n - 1] == '*';
        size_t compared = prefix ? n - 1 : n;

        if ((prefix ? key >= compared : key == compared) && strncmp(entry, w, compared) == 0)
            return true;
        w += n;
    }
    return false;
}

static bool key_is_other(const char *entry, const char *words)
{
    return !key_is_among(entry, words);
}

static bool is_alphanumeric(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

/* At most 63 of letters, digits, '-', '_' and '.', with a letter or digit at both ends. */
static bool is_label(const char *s, size_t n)
{
    bool good = n <= 63 && (n == 0 || (is_alphanumeric(s[0]) && is_alphanumeric(s[n - 1])));

    for (size_t i = 0; good && i < n; i++)
        good = is_alphanumeric(s[i]) || s[i] == '-' || s[i] == '_' || s[i] == '.';
    return good;
}

/* Kubernetes' labels and selectors: a value may be empty, a key may not. */
static bool is_no_label(const char *entry, const char *words)
{
    size_t key = strcspn(entry, "=");

    (void)words;
    return key == 0 || !is_label(entry, key) ||
           (entry[key] == '=' && !is_label(entry + key + 1, strlen(entry + key + 1)));
}

static bool has_character(const char *entry, const char *words)
{
    return strpbrk(entry, words);
}

static bool is_private(const char *entry, const char *words)
{
    struct error err = ERROR_INIT;
    struct address_range range;

    (void)words;
    if (address_range_parse(entry, &range, &err) < 0)
        return false;
    const struct address_block *block = address_range_block(&range);
    return block && (block->cls == ADDRESS_PRIVATE || block->cls == ADDRESS_SHARED ||
                     block->cls == ADDRESS_LINK_LOCAL || block->cls == ADDRESS_LOOPBACK ||
                     block->cls == ADDRESS_METADATA);
}

static bool is_no_file(const char *entry, const char *ignored)
{
    const char *url = strchr(entry, '=');

    (void)ignored;
    return !url || strncmp(url + 1, "file://", 7) != 0;
}

/* Reads the number in front of '/' or ' ' and moves past it. */
static uint64_t next_number(const char **at)
{
    char digits[24];
    size_t n = strcspn(*at, "/ ");
    uint64_t number = 0;

    assert(n < sizeof digits);
    memcpy(digits, *at, n);
    digits[n] = '\0';
    *at += n + ((*at)[n] != '\0');
    (void)parse_u64(digits, 0, UINT64_MAX / LIMIT_GIB, &number);
    return number;
}

/* Whether one of the machines "CPUs/GiB/GiB" has just what the spec states. */
static bool fits_a_machine(const struct spec *s, const char *machines)
{
    for (const char *at = machines; *at != '\0';) {
        uint64_t cpu = next_number(&at) * 1000, memory = next_number(&at) * LIMIT_GIB,
                 disk = next_number(&at) * LIMIT_GIB;

        if ((s->cpu_milli == 0 || s->cpu_milli == cpu) &&
            (s->memory_bytes == 0 || s->memory_bytes == memory) &&
            (s->disk_bytes == 0 || s->disk_bytes == disk))
            return true;
    }
    return false;
}

/* An open network has no list of what may pass; private ranges open a closed one only so far. */
static bool is_contradicted(const struct spec *s, enum spec_field_id field)
{
    if (field == SPEC_FIELD_PRIVATE_CIDRS)
        return s->block_network && s->private_cidrs.n > 0;
    return !s->block_network && s->allow_egress_to.n + s->allow_egress_to_cidrs.n > 0;
}

bool capability_holds(const struct capability_rule *rule, const struct capability_subject *x)
{
    const struct spec *s = x->s;
    const struct view f = view_of(s, x->field);

    switch (rule->when) {
    case WHEN_ALWAYS:
        return true;
    case WHEN_DEFAULT:
        return !capability_field_stated(s, x->field);
    case WHEN_ZERO:
        return f.number == 0;
    case WHEN_BELOW:
        return f.number > 0 && f.number < rule->number;
    case WHEN_ABOVE:
        return f.number > rule->number;
    case WHEN_NOT_WHOLE:
        return f.number % rule->number != 0;
    case WHEN_TEXT:
        return same_text(f.text, rule->text);
    case WHEN_PREFIX:
        return f.text && strncmp(f.text, rule->text, strlen(rule->text)) == 0;
    case WHEN_MORE:
        return f.list && f.list->n > rule->number;
    case WHEN_NAMES:
        return any_entry(f.list, key_is_among, rule->text);
    case WHEN_OTHER_NAMES:
        return any_entry(f.list, key_is_other, rule->text);
    case WHEN_NOT_LABELS:
        return any_entry(f.list, is_no_label, NULL);
    case WHEN_PORTS:
    case WHEN_IPV6: /* a host's port and an address of IPv6 are told by the same byte */
        return any_entry(f.list, has_character, ":");
    case WHEN_PRIVATE:
        return any_entry(f.list, is_private, NULL);
    case WHEN_OPEN:
        return !s->block_network;
    case WHEN_LISTED:
        return s->block_network && s->allow_egress_to.n + s->allow_egress_to_cidrs.n > 0;
    case WHEN_BLOCKED:
        return s->block_network;
    case WHEN_CONTRADICTED:
        return is_contradicted(s, x->field);
    case WHEN_IDLE_SET:
        return s->idle_timeout_us > 0;
    case WHEN_OUTLIVES:
        return s->lifetime_us > 0 && f.number > s->lifetime_us;
    case WHEN_NOT_FILES:
        return any_entry(f.list, is_no_file, NULL);
    case WHEN_UNPRICED:
        return s->prices.n == 0;
    case WHEN_NO_MACHINE:
        return !fits_a_machine(s, rule->text);
    case WHEN_LACKS:
        return !(x->c->features >> rule->number & 1);
    case WHEN_UNDECLARED:
        return !(x->c->facts >> rule->number & 1);
    case WHEN__MAX:
        break;
    }
    return false;
}
