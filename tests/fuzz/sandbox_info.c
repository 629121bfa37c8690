/* SPDX-License-Identifier: Apache-2.0 */
/* Every decoder of wire/sandbox_info.h on the same bytes; what one takes survives a second trip. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "wire/control.h"
#include "wire/sandbox_info.h"
#include "base/guards.h"

enum { COMMAND_EXTRA = 80, RULE_EXTRA = 64 };

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

/* A writer over exactly @room bytes, which the caller frees by its start. */
static struct writer exact_writer(size_t room)
{
    uint8_t *buf = malloc(room);

    check(buf != NULL);
    return writer_over(buf, room);
}

static void try_sandbox(struct reader message)
{
    struct sandbox_info x, y;

    if (sandbox_info_decode(message, &x) < 0)
        return;
    check(x.id && x.n_labels <= SANDBOX_LABELS_MAX && x.n_published <= SANDBOX_PUBLISHED_MAX);
    check(strcmp(sandbox_state_name(x.state), "?") != 0);
    struct writer w = exact_writer(sandbox_info_size(&x));
    sandbox_info_encode(&w, &x);
    check(!w.bad);
    check(sandbox_info_decode(reader_over(w.start, writer_len(&w)), &y) == 0);
    check(same_text(x.id, y.id) && same_text(x.name, y.name) && same_text(x.owner, y.owner));
    check(same_text(x.image, y.image) && same_text(x.workdir, y.workdir));
    check(same_text(x.backend, y.backend) && same_text(x.hostname, y.hostname));
    check(memcmp(&x.state, &y.state,
                 offsetof(struct sandbox_info, labels) - offsetof(struct sandbox_info, state)) ==
          0);
    check(x.n_labels == y.n_labels);
    for (size_t i = 0; i < x.n_labels; i++)
        check(strcmp(x.labels[i], y.labels[i]) == 0);
    check(x.n_published == y.n_published);
    for (size_t i = 0; i < x.n_published; i++)
        check(strcmp(x.published[i], y.published[i]) == 0);
    free(w.start);
}

static void check_command(const struct command_info *x)
{
    size_t room = COMMAND_EXTRA + x->n_argv * FIELD_HEADER_BYTES;
    struct command_info y;

    check(x->number > 0 && x->n_argv <= COMMAND_ARGS_MAX);
    for (size_t i = 0; i < x->n_argv; i++)
        room += strlen(x->argv[i]) + 1;
    struct writer w = exact_writer(room);
    command_info_encode(&w, x);
    check(!w.bad);
    struct reader r = reader_over(w.start, writer_len(&w));
    check(command_info_next(&r, &y) == 1);
    check(x->number == y.number && x->pid == y.pid && x->flags == y.flags);
    check(x->started_at_us == y.started_at_us && x->timeout_us == y.timeout_us);
    check(x->n_argv == y.n_argv);
    for (size_t i = 0; i < x->n_argv; i++)
        check(strcmp(x->argv[i], y.argv[i]) == 0);
    check(command_info_next(&r, &y) == 0);
    free(w.start);
}

static void check_rule(const struct rule_info *x)
{
    size_t room = RULE_EXTRA + strlen(x->field) + (x->how ? strlen(x->how) : 0) +
                  (x->remedy ? strlen(x->remedy) : 0);
    struct writer w = exact_writer(room);
    struct rule_info y;

    check(x->verdict < RULE_VERDICT__MAX);
    rule_info_encode(&w, x);
    check(!w.bad);
    struct reader r = reader_over(w.start, writer_len(&w));
    check(rule_info_next(&r, &y) == 1);
    check(same_text(x->field, y.field) && x->verdict == y.verdict);
    check(same_text(x->how, y.how) && same_text(x->remedy, y.remedy));
    check(rule_info_next(&r, &y) == 0);
    free(w.start);
}

static void try_rows(struct reader message)
{
    struct reader r = message;
    struct command_info command;
    struct rule_info rule;
    const char *text;

    while (command_info_next(&r, &command) > 0)
        check_command(&command);
    r = message;
    while (rule_info_next(&r, &rule) > 0)
        check_rule(&rule);
    r = message;
    while ((text = text_next(&r, TAG_FEATURE)))
        check(strlen(text) < (size_t)(message.end - message.p));
    check(r.bad || reader_left(&r) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const uint8_t nothing = 0;
    struct reader message = reader_over(data ? data : &nothing, size);

    try_sandbox(message);
    try_rows(message);
    return 0;
}
