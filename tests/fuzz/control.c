/* SPDX-License-Identifier: Apache-2.0 */
/* Every decoder of wire/control.h on the same bytes; what one takes survives a second trip. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "wire/control.h"
#include "wire/denial.h"
#include "wire/exported.h"
#include "base/guards.h"

enum { STRINGS_MAX = 64 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool holds)
{
    if (!holds)
        abort();
}

static void try_exec(struct reader message)
{
    const char *strings[STRINGS_MAX], *again[STRINGS_MAX];
    struct exec_request x, y;

    for (size_t max = 0; max < STRINGS_MAX; max += 9)
        (void)exec_request_decode(message, strings, max, &x);
    if (exec_request_decode(message, strings, STRINGS_MAX, &x) < 0)
        return;
    check(x.n_argv > 0 && x.n_argv + x.n_envp + 2 <= STRINGS_MAX);
    check(!x.argv[x.n_argv] && !x.envp[x.n_envp]);
    size_t room = exec_request_size(&x);
    uint8_t *buf = malloc(room);
    check(buf != NULL);
    struct writer w = writer_over(buf, room);
    exec_request_encode(&w, &x);
    check(!w.bad);
    check(exec_request_decode(reader_over(buf, writer_len(&w)), again, STRINGS_MAX, &y) == 0);
    check(x.n_argv == y.n_argv && x.n_envp == y.n_envp && x.flags == y.flags);
    check(x.timeout_us == y.timeout_us && !x.workdir == !y.workdir);
    for (size_t i = 0; i < x.n_argv; i++)
        check(strcmp(x.argv[i], y.argv[i]) == 0);
    for (size_t i = 0; i < x.n_envp; i++)
        check(strcmp(x.envp[i], y.envp[i]) == 0);
    free(buf);
}

static void try_exit(struct reader message)
{
    struct exit_report x, y;
    uint8_t buf[1024];
    struct writer w = writer_over(buf, sizeof buf);

    if (exit_report_decode(message, &x) < 0)
        return;
    check(x.exit_code <= 255 && x.signal <= 64 && x.reason < REASON__MAX);
    check(exit_reason_name(x.reason) != NULL);
    exit_report_encode(&w, &x);
    check(!w.bad);
    check(exit_report_decode(reader_over(buf, writer_len(&w)), &y) == 0);
    check(x.wall_us == y.wall_us && x.reason == y.reason && x.start_stage == y.start_stage);
}

static bool same_denial(const struct denial *x, const struct denial *y)
{
    return x->protocol == y->protocol && x->port == y->port && x->bytes == y->bytes &&
           x->at_us == y->at_us && x->repeated == y->repeated && x->dropped == y->dropped &&
           strcmp(x->name, y->name) == 0 && strcmp(x->address, y->address) == 0 &&
           strcmp(x->rule, y->rule) == 0 && strcmp(x->reason, y->reason) == 0;
}

static void try_denials(struct reader message)
{
    struct denial x, y;

    while (exit_denial_next(&message, &x) > 0) {
        size_t room = exit_denial_size(&x);
        uint8_t *buf = malloc(room);

        check(buf && x.protocol < DENIAL_PROTOCOL__MAX);
        struct writer w = writer_over(buf, room);
        exit_denial_encode(&w, &x);
        check(!w.bad);
        struct reader r = reader_over(buf, writer_len(&w));
        check(exit_denial_next(&r, &y) == 1 && same_denial(&x, &y));
        check(exit_denial_next(&r, &y) == 0);
        free(buf);
    }
}

static void try_policy(struct reader message)
{
    struct policy_report x, y;

    if (policy_report_decode(message, &x) < 0)
        return;
    size_t room = strlen(x.network) + 64;
    uint8_t *buf = malloc(room);
    check(buf && x.generation > 0);
    struct writer w = writer_over(buf, room);
    policy_report_encode(&w, &x);
    check(!w.bad && policy_report_decode(reader_over(buf, writer_len(&w)), &y) == 0);
    check(strcmp(x.network, y.network) == 0 && x.generation == y.generation &&
          x.flows_cut == y.flows_cut);
    free(buf);
}

static bool same_text(const char *x, const char *y)
{
    return x && y ? strcmp(x, y) == 0 : x == y;
}

static void try_attach(struct reader message)
{
    struct attach_request x, y;

    if (attach_request_decode(message, &x) < 0)
        return;
    check(x.owner && x.holder);
    size_t room = attach_request_size(&x);
    uint8_t *buf = malloc(room);
    check(buf != NULL);
    struct writer w = writer_over(buf, room);
    attach_request_encode(&w, &x);
    check(!w.bad && attach_request_decode(reader_over(buf, writer_len(&w)), &y) == 0);
    check(same_text(x.owner, y.owner) && same_text(x.holder, y.holder) && x.keep_us == y.keep_us);
    free(buf);
}

static void try_attached(struct reader message)
{
    struct attach_report x, y;

    if (attach_report_decode(message, &x) < 0)
        return;
    check(left_decode(message) == x.left_us);
    size_t room = attach_report_size(&x);
    uint8_t *buf = malloc(room);
    check(buf != NULL);
    struct writer w = writer_over(buf, room);
    attach_report_encode(&w, &x);
    check(!w.bad && attach_report_decode(reader_over(buf, writer_len(&w)), &y) == 0);
    check(x.generation == y.generation && x.left_us == y.left_us);
    check(same_text(x.network, y.network) && same_text(x.workdir, y.workdir));
    free(buf);
}

static void try_exported(struct reader message)
{
    struct exported_report x, y;

    if (exported_report_decode(message, &x) < 0)
        return;
    check(x.path && x.url);
    check(strlen(x.path) < EXPORTED_TEXT_MAX && strlen(x.url) < EXPORTED_TEXT_MAX);
    size_t room = exported_report_size(&x);
    uint8_t *buf = malloc(room);
    check(buf != NULL);
    struct writer w = writer_over(buf, room);
    exported_report_encode(&w, &x);
    check(!w.bad && exported_report_decode(reader_over(buf, writer_len(&w)), &y) == 0);
    check(strncmp(x.path, y.path, EXPORTED_TEXT_MAX - 1) == 0 && x.bytes == y.bytes);
    check(!x.message == !y.message && !x.digest == !y.digest);
    free(buf);
    char *url = exported_url(x.url), *again = url ? exported_url(url) : NULL;
    char *text = exported_text(x.path);
    check(url && again && text);
    const char *at = strstr(url, "://");
    check(!at || !memchr(at + 3, '@', strcspn(at + 3, "/?#")));
    check(strcmp(url, again) == 0); /* nothing is left to be taken out */
    free(url);
    free(again);
    free(text);
}

static void try_stream(struct reader message)
{
    struct stream_data x;

    if (stream_data_decode(message, &x) < 0)
        return;
    check(x.stream < STREAM__MAX);
    check(!x.data || (x.data >= message.p && x.len <= (size_t)(message.end - x.data)));
}

static void try_others(struct reader message)
{
    struct step_report step;
    struct hello hello;
    uint16_t rows, columns;
    uint32_t v;

    if (hello_decode(message, &hello) == 0)
        check(strlen(hello.program) <= reader_left(&message));
    if (step_report_decode(message, &step) == 0)
        check(strlen(step.text) <= reader_left(&message));
    (void)size_decode(message, &rows, &columns);
    if (number_decode(message, TAG_ENDED_BY, &v) == 0)
        check(ended_by_name(v) != NULL);
    if (number_decode(message, TAG_LEASE_STATE, &v) == 0)
        check(lease_state_name(v) != NULL);
    (void)left_decode(message);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const uint8_t nothing = 0;
    struct reader message = reader_over(data ? data : &nothing, size);

    try_exec(message);
    try_exit(message);
    try_denials(message);
    try_policy(message);
    try_attach(message);
    try_attached(message);
    try_exported(message);
    try_stream(message);
    try_others(message);
    return 0;
}
