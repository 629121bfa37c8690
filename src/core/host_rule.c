/* SPDX-License-Identifier: Apache-2.0 */
/* Entries of allow_egress_to: the grammar, and for each kind of wrong entry what was meant. */
#include "core/host_rule.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/parse.h"
#include "base/text.h"
#include "core/address.h"
#include "base/guards.h"

enum fault {
    FAULT_NONE,
    FAULT_EMPTY,
    FAULT_CONTROL,
    FAULT_BLANK,
    FAULT_NOT_ASCII,
    FAULT_COMMA,
    FAULT_SCHEME,
    FAULT_USER,
    FAULT_RANGE,
    FAULT_PATH,
    FAULT_ADDRESS,
    FAULT_COLONS,
    FAULT_PORT,
    FAULT_LONG,
    FAULT_STAR_ALONE,
    FAULT_STARS,
    FAULT_STAR_PLACE,
    FAULT_DOT_FIRST,
    FAULT_DOT_LAST,
    FAULT_DOTS,
    FAULT_LABEL_LONG,
    FAULT_HYPHEN,
    FAULT_UNDERSCORE,
    FAULT_CHARACTER,
    FAULT_NUMBER,
    FAULT_TOP_LEVEL,
    FAULT_ONE_LABEL,
    FAULT__MAX,
};

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static char lower(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

static bool is_letter(char c)
{
    return lower(c) >= 'a' && lower(c) <= 'z';
}

/* Digits, or 0x and what hexadecimal digits follow: a number to some readers of addresses. */
static bool is_number(const char *s, size_t n)
{
    bool hex = n >= 2 && s[0] == '0' && lower(s[1]) == 'x';

    for (size_t i = hex ? 2 : 0; i < n; i++)
        if (!is_digit(s[i]) && !(hex && lower(s[i]) >= 'a' && lower(s[i]) <= 'f'))
            return false;
    return n > 0;
}

static bool is_label(const char *s, size_t n)
{
    if (n == 0 || n > HOST_LABEL_BYTES_MAX || s[0] == '-' || s[n - 1] == '-')
        return false;
    for (size_t i = 0; i < n; i++)
        if (!is_letter(s[i]) && !is_digit(s[i]) && s[i] != '-' && s[i] != '_')
            return false;
    return true;
}

int host_name_read(const char *s, size_t n, struct host_name *ret)
{
    struct host_name name;
    size_t label = 0;

    if (n > 0 && s[n - 1] == '.')
        n--;
    if (n == 0 || n > HOST_NAME_BYTES_MAX)
        return -EINVAL;
    for (size_t i = 0; i <= n; i++) {
        if (i < n && s[i] != '.') {
            name.text[i] = lower(s[i]);
            continue;
        }
        if (!is_label(s + label, i - label) || (i == n && is_number(s + label, i - label)))
            return -EINVAL;
        name.text[i] = '.';
        label = i + 1;
    }
    name.text[n] = '\0';
    *ret = name;
    return 0;
}

bool host_name_is_localhost(const struct host_name *name)
{
    size_t n = strlen(name->text);

    return strcmp(name->text, "localhost") == 0 ||
           (n > 10 && strcmp(name->text + n - 10, ".localhost") == 0);
}

const char *host_name_of_service(const struct host_name *name)
{
    const char *protocol = name->text[0] == '_' ? strchr(name->text, '.') : NULL;

    if (!protocol || (strncmp(protocol, "._tcp.", 6) != 0 && strncmp(protocol, "._udp.", 6) != 0))
        return NULL;
    return protocol + 6;
}

static enum fault bytes_fault(const char *s, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        unsigned char c = (unsigned char)s[i];

        if (c == ' ' || c == '\t')
            return FAULT_BLANK;
        if (c < 0x20 || c == 0x7F)
            return FAULT_CONTROL;
        if (c >= 0x80)
            return FAULT_NOT_ASCII;
        if (c == ',')
            return FAULT_COMMA;
    }
    return n == 0 ? FAULT_EMPTY : FAULT_NONE;
}

/* The address that @text is, with or without brackets and a port. */
static bool read_address(const char *text, struct address *ret)
{
    size_t n = strlen(text);

    if (text[0] == '[') {
        const char *end = strchr(text, ']');

        return end && address_parse(text + 1, (size_t)(end - text - 1), ret) == ADDRESS_GOOD;
    }
    if (address_parse(text, n, ret) == ADDRESS_GOOD)
        return true;
    return address_parse(text, strcspn(text, ":"), ret) == ADDRESS_GOOD;
}

/* What takes the whole of @text, such as a URL. */
static enum fault shape_fault(const char *text)
{
    struct error ignored = ERROR_INIT;
    struct address_range range;
    struct address a;
    const char *colon = strchr(text, ':');

    if (strstr(text, "://"))
        return FAULT_SCHEME;
    if (strchr(text, '@'))
        return FAULT_USER;
    if (strchr(text, '/') && address_range_parse(text, &range, &ignored) == 0)
        return FAULT_RANGE;
    if (strpbrk(text, "/?#\\"))
        return FAULT_PATH;
    if (text[0] == '[' || read_address(text, &a) ||
        address_parse(text, strlen(text), &a) == ADDRESS_ZONE)
        return FAULT_ADDRESS;
    return colon && strchr(colon + 1, ':') ? FAULT_COLONS : FAULT_NONE;
}

static enum fault label_fault(const char *s, size_t n)
{
    if (n > HOST_LABEL_BYTES_MAX)
        return FAULT_LABEL_LONG;
    if (memchr(s, '_', n))
        return FAULT_UNDERSCORE;
    if (s[0] == '-' || s[n - 1] == '-')
        return FAULT_HYPHEN;
    return is_label(s, n) ? FAULT_NONE : FAULT_CHARACTER;
}

static enum fault star_fault(const char *s, size_t n)
{
    const char *star = memchr(s, '*', n);

    if (!star)
        return FAULT_NONE;
    if (n == 1 || (n == 2 && s[1] == '.'))
        return FAULT_STAR_ALONE;
    if (memchr(star + 1, '*', n - (size_t)(star + 1 - s)))
        return FAULT_STARS;
    return star == s && s[1] == '.' ? FAULT_NONE : FAULT_STAR_PLACE;
}

/* @s: without the wildcard */
static enum fault name_fault(const char *s, size_t n, bool wildcard)
{
    size_t label = 0, labels = 0;

    if (n == 0)
        return FAULT_EMPTY; /* ":443" */
    if (s[0] == '.' && !wildcard)
        return FAULT_DOT_FIRST;
    for (size_t i = 0; i <= n; i++) {
        if (i < n && s[i] != '.')
            continue;
        if (i == label)
            return i == n ? FAULT_DOT_LAST : FAULT_DOTS;
        enum fault fault = label_fault(s + label, i - label);
        if (fault != FAULT_NONE)
            return fault;
        if (i == n && is_number(s + label, i - label))
            return FAULT_NUMBER;
        labels++;
        label = i + 1;
    }
    if (labels < 2)
        return wildcard ? FAULT_TOP_LEVEL : FAULT_ONE_LABEL;
    return FAULT_NONE;
}

/* The whole grammar; @ret is written when there is no fault. */
static enum fault rule_fault(const char *text, struct host_rule *ret)
{
    struct host_rule rule = {.port = HOST_RULE_PORT_DEFAULT};
    enum fault fault = bytes_fault(text, strlen(text));
    size_t n = strcspn(text, ":");

    if (fault == FAULT_NONE)
        fault = shape_fault(text);
    if (fault == FAULT_NONE)
        fault = star_fault(text, n);
    if (fault == FAULT_NONE) {
        rule.wildcard = text[0] == '*';
        fault =
            name_fault(text + (rule.wildcard ? 2 : 0), n - (rule.wildcard ? 2 : 0), rule.wildcard);
    }
    if (fault == FAULT_NONE && text[n] == ':') {
        uint64_t port = 0;

        if (text[n + 1] == '0' || parse_u64(text + n + 1, 1, 65535, &port) < 0)
            fault = FAULT_PORT;
        rule.port = (uint16_t)port;
    }
    if (fault == FAULT_NONE && n > HOST_NAME_BYTES_MAX)
        fault = FAULT_LONG;
    if (fault != FAULT_NONE)
        return fault;
    memcpy(rule.text, text, strlen(text) + 1);
    if (host_name_read(text + (rule.wildcard ? 2 : 0), n - (rule.wildcard ? 2 : 0), &rule.name) < 0)
        return FAULT_CHARACTER; /* never: the grammar above is narrower */
    *ret = rule;
    return FAULT_NONE;
}

/* What of a URL or of an entry with too much around it is HOST or HOST:PORT. */
static bool find_host(const char *text, char buf[static HOST_RULE_BYTES_MAX + 1])
{
    const char *scheme = strstr(text, "://");
    const char *s = scheme ? scheme + 3 : text + strspn(text, " \t");
    size_t n = strcspn(s, "/?#\\");
    const char *at = memrchr(s, '@', n);
    bool plain_http = scheme && scheme - text == 4 && strncasecmp(text, "http", 4) == 0;

    if (at) {
        n -= (size_t)(at + 1 - s);
        s = at + 1;
    }
    while (n > 0 && strchr(" \t\r\n", s[n - 1]))
        n--;
    if (n > 0 && s[n - 1] == '.')
        n--;
    if (n + 3 > HOST_RULE_BYTES_MAX)
        return false;
    memcpy(buf, s, n);
    buf[n] = '\0';
    if (plain_http && !strchr(buf, ':'))
        memcpy(buf + n, ":80", 4);
    return true;
}

struct fault_text {
    const char *why, *remedy;
};

static const struct fault_text *fault_text(enum fault fault)
{
    static const struct fault_text texts[] = {
        [FAULT_NONE] = {"is a host", ""},
        [FAULT_EMPTY] = {"has no host",
                         "Write a host, such as host.example, or leave the entry out"},
        [FAULT_CONTROL] = {"has a line end or another control character",
                           "Write the host alone, such as host.example"},
        [FAULT_BLANK] = {"has a blank", "Write the host alone, such as host.example"},
        [FAULT_NOT_ASCII] = {"has a character beyond ASCII",
                             "Write the name as DNS has it, its international labels as xn--..."},
        [FAULT_COMMA] = {"has a comma", "Write each host as an entry of its own"},
        [FAULT_SCHEME] = {"has a scheme", "Write the host alone, such as host.example"},
        [FAULT_USER] = {"has a user name", "Write the host alone, such as host.example"},
        [FAULT_RANGE] = {"is a range of addresses", "List it in allow_egress_to_cidrs"},
        [FAULT_PATH] = {"has a path", "Write the host alone, such as host.example"},
        [FAULT_ADDRESS] = {"is an address, and hosts are listed by name",
                           "List it in allow_egress_to_cidrs, such as 203.0.113.7/32"},
        [FAULT_COLONS] = {"has more than one colon", "Write host:port, such as host.example:8443"},
        [FAULT_PORT] = {"has no port from 1 to 65535 after its colon",
                        "Write host:port, such as host.example:8443, or the host alone for 443"},
        [FAULT_LONG] = {"is longer than a name can be, 253 characters",
                        "Write the host's full name, such as host.example"},
        [FAULT_STAR_ALONE] = {"would be every host",
                              "Name the hosts, or open the network with block_network: false"},
        [FAULT_STARS] = {"has more than one star", "Write one leading star, as in *.host.example"},
        [FAULT_STAR_PLACE] = {"has a star elsewhere than as its first label",
                              "Write one leading star, as in *.host.example"},
        [FAULT_DOT_FIRST] = {"starts with a dot",
                             "Write *.host.example for all names below a host"},
        [FAULT_DOT_LAST] = {"ends with a dot", "Write it without the dot at its end"},
        [FAULT_DOTS] = {"has two dots in a row",
                        "Write the host's full name, such as host.example"},
        [FAULT_LABEL_LONG] = {"has a part of more than 63 characters between its dots",
                              "Write the host's full name, such as host.example"},
        [FAULT_HYPHEN] = {"has a part that starts or ends with a hyphen",
                          "Write the host's full name, such as host.example"},
        [FAULT_UNDERSCORE] = {"has an underscore, which host names do not have",
                              "If the name is right, list what is below its parent, as in "
                              "*.host.example, which matches it too"},
        [FAULT_CHARACTER] = {"has a character that host names do not have",
                             "Use letters, digits, hyphens and dots, as in host.example"},
        [FAULT_NUMBER] = {"ends in a number, as only addresses do",
                          "Write a name, such as host.example or host.example:443; an address "
                          "goes to allow_egress_to_cidrs, such as 203.0.113.7/32"},
        [FAULT_TOP_LEVEL] = {"would match every name of a whole top-level domain",
                             "Write at least two parts after the star, as in *.host.example"},
        [FAULT_ONE_LABEL] = {"is a single label, and names are matched in full",
                             "Write the full name, such as host.example"},
    };
    static_assert(ARRAY_SIZE(texts) == FAULT__MAX, "a text for each fault");

    return &texts[fault];
}

/* A remedy that repeats the part of the entry that is good. Return: whether there is one. */
static bool set_own_remedy(struct error *err, const char *text, enum fault fault)
{
    char host[HOST_RULE_BYTES_MAX + 1], range[ADDRESS_RANGE_TEXT_BYTES];
    struct host_rule rule;
    struct address a;

    if (fault == FAULT_RANGE)
        return error_remedy(err, "List it in allow_egress_to_cidrs: %s", text) < 0;
    if (fault == FAULT_DOT_FIRST && rule_fault(text + 1, &rule) == FAULT_NONE)
        return error_remedy(err, "Write *%.200s for all names below it", text) < 0;
    if (!find_host(text, host))
        return false;
    if (read_address(host, &a)) {
        struct address_range one = address_range_of(&a);

        address_range_format(&one, range);
        return error_remedy(err, "List it in allow_egress_to_cidrs: %s", range) < 0;
    }
    if (rule_fault(host, &rule) != FAULT_NONE)
        return false;
    return error_remedy(err, "Write the host%s alone: %s", strchr(host, ':') ? " and port" : "",
                        host) < 0;
}

int host_rule_parse(const char *text, struct host_rule *ret, struct error *err)
{
    enum fault fault = rule_fault(text, ret);

    if (fault == FAULT_NONE)
        return 0;
    (void)error_set(err, ERROR_USAGE, EINVAL, "'%.100s%s' %s", text,
                    strlen(text) > 100 ? "..." : "", fault_text(fault)->why);
    text_make_printable(err->message);
    if (!set_own_remedy(err, text, fault))
        (void)error_remedy(err, "%s", fault_text(fault)->remedy);
    return -EINVAL;
}

bool host_wildcard_holds(const char *s, size_t n)
{
    size_t labels = 1;

    for (size_t i = 0; i < n; i++)
        labels += s[i] == '.';
    return n > 0 && n <= HOST_WILDCARD_BYTES_MAX && labels <= HOST_WILDCARD_LABELS_MAX;
}

bool host_rule_matches(const struct host_rule *rule, const struct host_name *name)
{
    size_t rule_len = strlen(rule->name.text), len = strlen(name->text);

    if (!rule->wildcard)
        return strcmp(rule->name.text, name->text) == 0;
    return len > rule_len + 1 && name->text[len - rule_len - 1] == '.' &&
           strcmp(name->text + len - rule_len, rule->name.text) == 0 &&
           host_wildcard_holds(name->text, len - rule_len - 1);
}

bool host_rule_equal(const struct host_rule *a, const struct host_rule *b)
{
    return a->port == b->port && a->wildcard == b->wildcard &&
           strcmp(a->name.text, b->name.text) == 0;
}
