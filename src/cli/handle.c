/* SPDX-License-Identifier: Apache-2.0 */
/* Finding, opening and waiting for a sandbox that stands. */
#include "cli/handle.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/loop.h"
#include "base/parse.h"
#include "core/backends.h"
#include "core/sandbox_id.h"
#include "core/state.h"
#include "base/guards.h"

enum {
    NAME_MAX_BYTES = 63,
    PREFIX_BYTES = 3,     /* "sb-" */
    PREFIX_MIN_BYTES = 9, /* so many characters of an id may stand for it */
};

/* Names and ids */

static bool is_letter_or_digit(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

static bool is_whole_id(const char *s)
{
    return strncmp(s, "sb-", PREFIX_BYTES) == 0 && strlen(s) == SANDBOX_ID_BYTES - 1;
}

static bool is_backend(const char *s)
{
    for (size_t i = 0; backend_known(i); i++)
        if (strcmp(backend_known(i)->name, s) == 0)
            return true;
    return false;
}

bool handle_may_mean(const char *s, size_t n)
{
    if (n == 0 || n > NAME_MAX_BYTES || !is_letter_or_digit(s[0]))
        return false;
    for (size_t i = 0; i < n; i++)
        if (!is_letter_or_digit(s[i]) && s[i] != '.' && s[i] != '_' && s[i] != '-')
            return false;
    return true;
}

bool handle_is_name(const char *s)
{
    return handle_may_mean(s, strlen(s)) && strncmp(s, "sb-", PREFIX_BYTES) != 0 && !is_backend(s);
}

static int none_called(const char *text, struct error *err)
{
    (void)error_set(err, ERROR_RECOVERABLE, ENOENT, "no sandbox is called '%.80s'", text);
    return error_remedy(err, "\"atoll list\" shows those that live");
}

/* A name wins over the beginning of an id. */
static int find_among(const struct state_record *list, size_t n, const char *text, char **ret,
                      struct error *err)
{
    const char *found = NULL;
    size_t len = strlen(text), times = 0;
    bool prefix = strncmp(text, "sb-", PREFIX_BYTES) == 0 && len >= PREFIX_MIN_BYTES;

    for (size_t i = 0; i < n; i++) {
        bool named = list[i].name && strcmp(list[i].name, text) == 0;

        if (named || (prefix && strncmp(list[i].id, text, len) == 0)) {
            found = list[i].id;
            times++;
        }
        if (named)
            break;
    }
    if (times == 0)
        return none_called(text, err);
    if (times > 1) {
        (void)error_set(err, ERROR_USAGE, EINVAL, "%zu sandboxes have ids that begin with '%s'",
                        times, text);
        return error_remedy(err, "Write more of the id; \"atoll list -q\" shows the ids");
    }
    *ret = strdup(found);
    return *ret ? 0 : error_set(err, ERROR_TERMINAL, ENOMEM, "out of memory");
}

static int find_local(const char *text, char **ret, struct error *err)
{
    struct state_record *list = NULL;
    size_t n = 0;
    int r;

    if (is_whole_id(text)) {
        *ret = strdup(text);
        return *ret ? 0 : error_set(err, ERROR_TERMINAL, ENOMEM, "out of memory");
    }
    if (!handle_may_mean(text, strlen(text)))
        return none_called(text, err);
    r = state_list(&list, &n, err);
    if (r < 0)
        return r;
    r = find_among(list, n, text, ret, err);
    state_records_free(list, n);
    return r;
}

int handle_find(const char *text, char **ret, struct error *err)
{
    char name[BACKEND_NAME_BYTES_MAX + 1];
    const char *rest = sandbox_id_split(text, name);
    struct backend_room room;
    struct backend backend;
    int r;

    if (!rest)
        return none_called(text, err);
    if (strcmp(name, "local") == 0)
        return find_local(rest, ret, err);
    r = backend_find(name, getenv("PATH"), &room, &backend, err);
    if (r == 0)
        r = backend_require(&backend, err);
    if (r < 0)
        return r;
    *ret = strdup(text);
    return *ret ? 0 : error_set(err, ERROR_TERMINAL, ENOMEM, "out of memory");
}

/* Waiting */

int handle_result(const struct atoll_op *op, struct error *err)
{
    const struct atoll_error *e = op ? atoll_op_error(op) : NULL;

    if (!op)
        return error_set(err, ERROR_TERMINAL, ENOMEM, "out of memory");
    if (!e)
        return 0;
    (void)error_set(err, (enum error_class)e->cls, e->code, "%s", e->message);
    return e->remedy[0] ? error_remedy(err, "%s", e->remedy) : -e->code;
}

int handle_catch_signals(struct handle *h, struct error *err)
{
    static const int caught[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};
    sigset_t set;

    sigemptyset(&set);
    for (size_t i = 0; i < ARRAY_SIZE(caught); i++) {
        struct sigaction now;

        /* One that the caller ignores (nohup) stays ignored. */
        if (sigaction(caught[i], NULL, &now) == 0 && now.sa_handler != SIG_IGN)
            sigaddset(&set, caught[i]);
    }
    int fd = loop_open_signals(&set);
    if (fd < 0)
        return error_set(err, ERROR_TERMINAL, -fd, "signals cannot be waited for: %s",
                         strerror(-fd));
    h->signal_fd = fd;
    return 0;
}

int handle_poll(struct handle *h, struct pollfd *fds, size_t n, uint64_t until_us,
                struct error *err)
{
    struct pollfd all[HANDLE_POLL_MAX + 2] = {{.fd = atoll_fd(h->context), .events = POLLIN},
                                              {.fd = h->signal_fd, .events = POLLIN}};
    struct signalfd_siginfo info;
    int r;

    if (n > 0)
        memcpy(all + 2, fds, n * sizeof *fds);
    r = poll(all, n + 2, clock_poll_ms(until_us));
    for (size_t i = 0; i < n; i++)
        fds[i].revents = r > 0 ? all[i + 2].revents : 0;
    if (r < 0 && errno != EINTR)
        return error_set(err, ERROR_TERMINAL, errno, "cannot wait for the sandbox: %s",
                         strerror(errno));
    if (r > 0 && all[1].revents && read(h->signal_fd, &info, sizeof info) == sizeof info) {
        h->signal = (int)info.ssi_signo;
        return error_set(err, ERROR_TERMINAL, EINTR, "it was interrupted by signal %d", h->signal);
    }
    r = r > 0 && all[0].revents ? atoll_step(h->context) : 0;
    return r < 0 ? error_set(err, ERROR_TERMINAL, -r, "the connection to the sandbox broke: %s",
                             strerror(-r))
                 : 0;
}

int handle_wait(struct handle *h, struct atoll_op *op, struct error *err)
{
    int r = 0;

    while (op && !atoll_op_done(op) && r == 0)
        r = handle_poll(h, NULL, 0, CLOCK_NEVER, err);
    return r < 0 ? r : handle_result(op, err);
}

int handle_status(const struct handle *h, int r, struct error *err)
{
    if (r >= 0 || h->signal == 0)
        return r;
    *err = (struct error)ERROR_INIT;
    return 128 + h->signal;
}

/* Beginning and end */

int handle_begin(struct handle *h, struct error *err)
{
    struct atoll_error e = {0};
    int r;

    if (h->context)
        return 0;
    (void)signal(SIGPIPE, SIG_IGN); /* a closed pipe is an error code, not a signal */
    r = atoll_new(&h->context, &e);
    return r < 0 ? error_set(err, ERROR_TERMINAL, -r, "%s", e.message) : 0;
}

int handle_within(const char *id, bool *ret, uint32_t *generation_ret, struct error *err)
{
    const char *text = getenv(HANDLE_LEASE_VARIABLE);
    const char *mark = text ? strrchr(text, '#') : NULL;
    char backend[BACKEND_NAME_BYTES_MAX + 1];
    _cleanup_free_ char *whose = NULL;
    uint64_t generation;

    *ret = false;
    *generation_ret = 0;
    if (!text || text[0] == '\0')
        return 0;
    whose = mark ? strndup(text, (size_t)(mark - text)) : strdup("");
    if (!whose)
        return error_set(err, ERROR_TERMINAL, ENOMEM, "out of memory");
    if (whose[0] == '\0' || !sandbox_id_split(whose, backend) ||
        parse_u64(mark + 1, 0, UINT32_MAX, &generation) < 0) {
        (void)error_set(err, ERROR_USAGE, EINVAL,
                        "the variable " HANDLE_LEASE_VARIABLE " is '%.80s', which is no lease",
                        text);
        return error_remedy(err,
                            "It is ID#GENERATION, as \"atoll hold\" sets it; unset it otherwise");
    }
    *ret = strcmp(whose, id) == 0;
    if (*ret)
        *generation_ret = (uint32_t)generation;
    return 0;
}

int handle_lease(const char *id, uint32_t *ret, struct error *err)
{
    bool within;

    return handle_within(id, &within, ret, err);
}

static int open_with(struct handle *h, const char *text, bool change, struct error *err)
{
    uint32_t lease = 0;
    int r = handle_begin(h, err);

    if (r == 0)
        r = handle_find(text, &h->id, err);
    if (r == 0 && change)
        r = handle_lease(h->id, &lease, err);
    if (r < 0)
        return r;
    _cleanup_(handle_op_freep) struct atoll_op *op =
        lease > 0 ? atoll_open_lease(h->context, h->id, lease) : atoll_open(h->context, h->id);
    r = handle_wait(h, op, err);
    if (r == 0)
        h->sandbox = atoll_op_sandbox(op);
    return r;
}

int handle_open(struct handle *h, const char *text, struct error *err)
{
    return open_with(h, text, false, err);
}

int handle_open_to_change(struct handle *h, const char *text, struct error *err)
{
    return open_with(h, text, true, err);
}

void handle_done(struct handle *h)
{
    if (h->sandbox)
        atoll_sandbox_free(h->sandbox);
    atoll_free(h->context);
    free(h->id);
    fd_closep(&h->signal_fd);
    *h = (struct handle)HANDLE_INIT;
}
