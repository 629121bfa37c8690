/* SPDX-License-Identifier: Apache-2.0 */
/* Encoders and decoders of the sandbox protocol's operations. */
#include "wire/control.h"

#include "base/cleanup.h"
#include "wire/denial.h"
#include "base/guards.h"

void exec_request_encode(struct writer *w, const struct exec_request *x)
{
    for (size_t i = 0; i < x->n_argv; i++)
        field_put_string(w, TAG_ARG, x->argv[i]);
    for (size_t i = 0; i < x->n_envp; i++)
        field_put_string(w, TAG_ENV, x->envp[i]);
    if (x->workdir)
        field_put_string(w, TAG_WORKDIR, x->workdir);
    field_put_u32(w, TAG_EXEC_FLAGS, x->flags);
    if (x->flags & EXEC_USER_SET) {
        field_put_u32(w, TAG_UID, x->uid);
        field_put_u32(w, TAG_GID, x->gid);
    }
    if (x->timeout_us > 0)
        field_put_u64(w, TAG_TIMEOUT_US, x->timeout_us);
    if (x->flags & EXEC_TTY) {
        field_put_u32(w, TAG_ROWS, x->rows);
        field_put_u32(w, TAG_COLUMNS, x->columns);
    }
}

size_t exec_request_size(const struct exec_request *x)
{
    size_t size = 8 * (FIELD_HEADER_BYTES + sizeof(uint64_t));

    for (size_t i = 0; i < x->n_argv; i++)
        size += FIELD_HEADER_BYTES + strlen(x->argv[i]) + 1;
    for (size_t i = 0; i < x->n_envp; i++)
        size += FIELD_HEADER_BYTES + strlen(x->envp[i]) + 1;
    if (x->workdir)
        size += FIELD_HEADER_BYTES + strlen(x->workdir) + 1;
    return size;
}

/* Appends the strings of every field @tag and a NULL; returns how many, or a negative errno. */
static long collect_strings(struct reader message, uint16_t tag, const char **strings, size_t max)
{
    struct field f;
    size_t n = 0;

    while (field_next(&message, &f)) {
        if (f.tag != tag)
            continue;
        if (n + 1 >= max)
            return -E2BIG;
        strings[n] = field_string(&f);
        if (!strings[n++])
            return -EPROTO;
    }
    if (message.bad)
        return -EPROTO;
    if (n >= max)
        return -E2BIG;
    strings[n] = NULL;
    return (long)n;
}

static bool small_number(const struct field *f, uint16_t *ret)
{
    uint32_t v;

    if (!field_u32(f, &v) || v > UINT16_MAX)
        return false;
    *ret = (uint16_t)v;
    return true;
}

static bool exec_field(const struct field *f, struct exec_request *x)
{
    switch (f->tag) {
    case TAG_WORKDIR:
        x->workdir = field_string(f);
        return x->workdir != NULL;
    case TAG_UID:
        return field_u32(f, &x->uid);
    case TAG_GID:
        return field_u32(f, &x->gid);
    case TAG_EXEC_FLAGS:
        return field_u32(f, &x->flags);
    case TAG_TIMEOUT_US:
        return field_u64(f, &x->timeout_us);
    case TAG_ROWS:
        return small_number(f, &x->rows);
    case TAG_COLUMNS:
        return small_number(f, &x->columns);
    default: /* arguments and variables were collected; what a newer peer adds is skipped */
        return true;
    }
}

int exec_request_decode(struct reader message, const char **strings, size_t max,
                        struct exec_request *ret)
{
    struct exec_request x = {.argv = strings};
    struct reader r = message;
    struct field f;
    long n = collect_strings(message, TAG_ARG, strings, max);

    if (n <= 0)
        return n < 0 ? (int)n : -EPROTO;
    x.n_argv = (size_t)n;
    x.envp = strings + n + 1;
    n = collect_strings(message, TAG_ENV, x.envp, max - x.n_argv - 1);
    if (n < 0)
        return (int)n;
    x.n_envp = (size_t)n;
    while (field_next(&r, &f))
        if (!exec_field(&f, &x))
            return -EPROTO;
    if (r.bad)
        return -EPROTO;
    *ret = x;
    return 0;
}

void exit_report_encode(struct writer *w, const struct exit_report *x)
{
    field_put_u32(w, TAG_EXIT_CODE, x->exit_code);
    field_put_u32(w, TAG_SIGNAL, x->signal);
    field_put_u32(w, TAG_REASON, x->reason);
    field_put_u64(w, TAG_WALL_US, x->wall_us);
    field_put_u64(w, TAG_USER_US, x->user_us);
    field_put_u64(w, TAG_SYSTEM_US, x->system_us);
    field_put_u64(w, TAG_PEAK_RSS_BYTES, x->peak_rss_bytes);
    field_put_u64(w, TAG_TIMEOUT_US, x->timeout_us);
    if (x->left_empty)
        field_put_u32(w, TAG_LEFT_EMPTY, x->left_empty);
    if (x->start_stage != START_OK) {
        field_put_u32(w, TAG_START_STAGE, x->start_stage);
        field_put_u32(w, TAG_START_ERRNO, x->start_errno);
        if (x->interpreter)
            field_put_string(w, TAG_INTERPRETER, x->interpreter);
    }
}

static bool exit_field(const struct field *f, struct exit_report *x)
{
    switch (f->tag) {
    case TAG_EXIT_CODE:
        return field_u32(f, &x->exit_code) && x->exit_code <= 255;
    case TAG_SIGNAL:
        return field_u32(f, &x->signal) && x->signal <= 64;
    case TAG_REASON:
        return field_u32(f, &x->reason) && x->reason < REASON__MAX;
    case TAG_WALL_US:
        return field_u64(f, &x->wall_us);
    case TAG_USER_US:
        return field_u64(f, &x->user_us);
    case TAG_SYSTEM_US:
        return field_u64(f, &x->system_us);
    case TAG_PEAK_RSS_BYTES:
        return field_u64(f, &x->peak_rss_bytes);
    case TAG_TIMEOUT_US:
        return field_u64(f, &x->timeout_us);
    case TAG_START_STAGE:
        return field_u32(f, &x->start_stage) && x->start_stage < START__MAX;
    case TAG_START_ERRNO:
        return field_u32(f, &x->start_errno) && x->start_errno < 4096;
    case TAG_LEFT_EMPTY:
        return field_u32(f, &x->left_empty);
    case TAG_INTERPRETER:
        x->interpreter = field_string(f);
        return x->interpreter != NULL && strlen(x->interpreter) <= INTERPRETER_BYTES_MAX;
    default:
        return true;
    }
}

int exit_report_decode(struct reader message, struct exit_report *ret)
{
    struct exit_report x = {0};
    struct field f;

    while (field_next(&message, &f))
        if (!exit_field(&f, &x))
            return -EPROTO;
    if (message.bad)
        return -EPROTO;
    *ret = x;
    return 0;
}

void exit_denial_encode(struct writer *w, const struct denial *x)
{
    uint8_t *head = writer_reserve(w, FIELD_HEADER_BYTES);

    denial_encode(w, x);
    if (!head || w->bad)
        return;
    struct writer h = writer_over(head, FIELD_HEADER_BYTES);
    writer_u16(&h, TAG_DENIAL);
    writer_u16(&h, 0);
    writer_u32(&h, (uint32_t)(w->p - head) - FIELD_HEADER_BYTES);
}

size_t exit_denial_size(const struct denial *x)
{
    return FIELD_HEADER_BYTES + denial_size(x);
}

int exit_denial_next(struct reader *r, struct denial *ret)
{
    struct field f;

    while (field_next(r, &f))
        if (f.tag == TAG_DENIAL)
            return denial_decode(f.value, ret) < 0 ? -EPROTO : 1;
    return r->bad ? -EPROTO : 0;
}

uint64_t exit_denials_more(struct reader message)
{
    struct field f;
    uint64_t v = 0;

    while (field_next(&message, &f))
        if (f.tag == TAG_DENIAL_DROPPED && !field_u64(&f, &v))
            v = 0;
    return v;
}

const char *exit_reason_name(uint32_t reason)
{
    static const char *const names[] = {
        [REASON_EXITED] = "exited", [REASON_TIMEOUT] = "timeout",   [REASON_OOM] = "oom",
        [REASON_KILLED] = "killed", [REASON_LIFETIME] = "lifetime", [REASON_ERROR] = "error",
        [REASON_COST] = "cost",
    };
    _Static_assert(ARRAY_SIZE(names) == REASON__MAX, "a reason has no name");

    return reason < REASON__MAX ? names[reason] : "error";
}

uint32_t exit_reason_for(uint32_t reason, uint32_t minor)
{
    return reason == REASON_COST && minor < 3 ? REASON_KILLED : reason;
}

void hello_encode(struct writer *w, const struct hello *x)
{
    field_put_u32(w, TAG_VERSION_MAJOR, x->major);
    field_put_u32(w, TAG_VERSION_MINOR, x->minor);
    field_put_string(w, TAG_PROGRAM, x->program);
}

int hello_decode(struct reader message, struct hello *ret)
{
    struct hello x = {.program = ""};
    struct field f;
    bool good = true, major = false;

    while (good && field_next(&message, &f)) {
        if (f.tag == TAG_VERSION_MAJOR)
            good = major = field_u32(&f, &x.major);
        else if (f.tag == TAG_VERSION_MINOR)
            good = field_u32(&f, &x.minor);
        else if (f.tag == TAG_PROGRAM)
            good = (x.program = field_string(&f)) != NULL;
    }
    if (!good || message.bad || !major)
        return -EPROTO;
    *ret = x;
    return 0;
}

void stream_data_encode(struct writer *w, const struct stream_data *x)
{
    field_put_u32(w, TAG_STREAM, x->stream);
    field_put_bytes(w, TAG_DATA, x->data, x->len);
}

void stream_credit_encode(struct writer *w, uint32_t stream, uint32_t credit)
{
    field_put_u32(w, TAG_STREAM, stream);
    field_put_u32(w, TAG_CREDIT, credit);
}

int stream_data_decode(struct reader message, struct stream_data *ret)
{
    struct stream_data x = {.stream = STREAM__MAX};
    struct field f;
    bool good = true;

    while (good && field_next(&message, &f)) {
        if (f.tag == TAG_STREAM) {
            good = field_u32(&f, &x.stream);
        } else if (f.tag == TAG_CREDIT) {
            good = field_u32(&f, &x.credit);
        } else if (f.tag == TAG_DATA) {
            x.data = f.value.p;
            x.len = reader_left(&f.value);
        }
    }
    if (!good || message.bad || x.stream >= STREAM__MAX)
        return -EPROTO;
    *ret = x;
    return 0;
}

void step_report_encode(struct writer *w, const struct step_report *x)
{
    field_put_u32(w, TAG_STEP_INDEX, x->index);
    field_put_u32(w, TAG_ERROR_CODE, x->error);
    field_put_u64(w, TAG_STEP_US, x->us);
    field_put_string(w, TAG_STEP_TEXT, x->text ? x->text : "");
}

int step_report_decode(struct reader message, struct step_report *ret)
{
    struct step_report x = {.text = ""};
    struct field f;
    bool good = true;

    while (good && field_next(&message, &f)) {
        if (f.tag == TAG_STEP_INDEX)
            good = field_u32(&f, &x.index);
        else if (f.tag == TAG_ERROR_CODE)
            good = field_u32(&f, &x.error) && x.error < 4096;
        else if (f.tag == TAG_STEP_US)
            good = field_u64(&f, &x.us);
        else if (f.tag == TAG_STEP_TEXT)
            good = (x.text = field_string(&f)) != NULL;
    }
    if (!good || message.bad)
        return -EPROTO;
    *ret = x;
    return 0;
}

void policy_report_encode(struct writer *w, const struct policy_report *x)
{
    field_put_string(w, TAG_NETWORK, x->network);
    field_put_u32(w, TAG_POLICY_GENERATION, x->generation);
    field_put_u32(w, TAG_FLOWS_CUT, x->flows_cut);
}

int policy_report_decode(struct reader message, struct policy_report *ret)
{
    struct policy_report x = {0};
    struct field f;
    bool good = true;

    while (good && field_next(&message, &f)) {
        if (f.tag == TAG_NETWORK)
            good = (x.network = field_string(&f)) != NULL;
        else if (f.tag == TAG_POLICY_GENERATION)
            good = field_u32(&f, &x.generation);
        else if (f.tag == TAG_FLOWS_CUT)
            good = field_u32(&f, &x.flows_cut);
    }
    if (!good || message.bad || !x.network || x.generation == 0)
        return -EPROTO;
    *ret = x;
    return 0;
}

const char *lease_state_name(uint32_t state)
{
    static const char *const names[] = {
        [LEASE_NONE] = "none",
        [LEASE_FREE] = "free",
        [LEASE_HELD] = "held",
        [LEASE_KEPT] = "kept",
    };
    _Static_assert(ARRAY_SIZE(names) == LEASE__MAX, "a state has no name");

    return state < LEASE__MAX ? names[state] : "?";
}

void attach_request_encode(struct writer *w, const struct attach_request *x)
{
    field_put_string(w, TAG_OWNER, x->owner);
    field_put_string(w, TAG_HOLDER, x->holder);
    if (x->keep_us > 0)
        field_put_u64(w, TAG_LEASE_KEEP_US, x->keep_us);
}

size_t attach_request_size(const struct attach_request *x)
{
    return 3 * (FIELD_HEADER_BYTES + sizeof(uint64_t)) + strlen(x->owner) + strlen(x->holder);
}

int attach_request_decode(struct reader message, struct attach_request *ret)
{
    struct attach_request x = {0};
    struct field f;
    bool good = true;

    while (good && field_next(&message, &f)) {
        if (f.tag == TAG_OWNER)
            good = (x.owner = field_string(&f)) != NULL;
        else if (f.tag == TAG_HOLDER)
            good = (x.holder = field_string(&f)) != NULL;
        else if (f.tag == TAG_LEASE_KEEP_US)
            good = field_u64(&f, &x.keep_us);
    }
    if (!good || message.bad || !x.owner || !x.holder)
        return -EPROTO;
    *ret = x;
    return 0;
}

void attach_report_encode(struct writer *w, const struct attach_report *x)
{
    field_put_u32(w, TAG_LEASE_GENERATION, x->generation);
    if (x->left_us != UINT64_MAX)
        field_put_u64(w, TAG_LEFT_US, x->left_us);
    if (x->network)
        field_put_string(w, TAG_NETWORK, x->network);
    if (x->workdir)
        field_put_string(w, TAG_WORKDIR, x->workdir);
}

size_t attach_report_size(const struct attach_report *x)
{
    return 4 * (FIELD_HEADER_BYTES + sizeof(uint64_t)) + (x->network ? strlen(x->network) : 0) +
           (x->workdir ? strlen(x->workdir) : 0);
}

int attach_report_decode(struct reader message, struct attach_report *ret)
{
    struct attach_report x = {.left_us = UINT64_MAX};
    struct field f;
    bool good = true;

    while (good && field_next(&message, &f)) {
        if (f.tag == TAG_LEASE_GENERATION)
            good = field_u32(&f, &x.generation);
        else if (f.tag == TAG_LEFT_US)
            good = field_u64(&f, &x.left_us);
        else if (f.tag == TAG_NETWORK)
            good = (x.network = field_string(&f)) != NULL;
        else if (f.tag == TAG_WORKDIR)
            good = (x.workdir = field_string(&f)) != NULL;
    }
    if (!good || message.bad)
        return -EPROTO;
    *ret = x;
    return 0;
}

uint64_t left_decode(struct reader message)
{
    uint64_t left = UINT64_MAX;
    struct field f;

    while (field_next(&message, &f))
        if (f.tag == TAG_LEFT_US && !field_u64(&f, &left))
            return UINT64_MAX;
    return left;
}

const char *ended_by_name(uint32_t by)
{
    static const char *const names[] = {
        [ENDED_DESTROYED] = "destroyed", [ENDED_LIFETIME] = "lifetime",
        [ENDED_IDLE] = "idle",           [ENDED_OOM] = "oom",
        [ENDED_KILLED] = "killed",       [ENDED_CALLER_DIED] = "caller_died",
        [ENDED_ERROR] = "error",         [ENDED_COST] = "cost",
    };
    _Static_assert(ARRAY_SIZE(names) == ENDED__MAX, "an end has no name");

    return by < ENDED__MAX ? names[by] : "error";
}

uint32_t ended_by_for(uint32_t by, uint32_t minor)
{
    return by == ENDED_COST && minor < 3 ? ENDED_KILLED : by;
}

int number_decode(struct reader message, uint16_t tag, uint32_t *ret)
{
    struct field f;
    bool found = false;

    while (field_next(&message, &f))
        if (f.tag == tag)
            found = field_u32(&f, ret);
    return found && !message.bad ? 0 : -EPROTO;
}

int size_decode(struct reader message, uint16_t *ret_rows, uint16_t *ret_columns)
{
    uint32_t rows, columns;

    if (number_decode(message, TAG_ROWS, &rows) < 0 ||
        number_decode(message, TAG_COLUMNS, &columns) < 0 || rows > UINT16_MAX ||
        columns > UINT16_MAX)
        return -EPROTO;
    *ret_rows = (uint16_t)rows;
    *ret_columns = (uint16_t)columns;
    return 0;
}

uint32_t message_since(uint16_t type)
{
    if ((type >= MSG_ATTACH && type <= MSG_EXPORTED) ||
        (type >= MSG_ATTACHED && type <= MSG_TAGS_READ))
        return 3;
    if (type == MSG_POLICY || type == MSG_POLICY_SET)
        return 2;
    return (type >= MSG_OPEN && type <= MSG_CANCEL) || (type >= MSG_DONE && type <= MSG_LISTED);
}

const char *message_name(uint16_t type)
{
    static const char *const names[] = {
        [MSG_HELLO] = "hello",
        [MSG_CREATE] = "create",
        [MSG_EXEC] = "exec",
        [MSG_SIGNAL] = "signal",
        [MSG_RESIZE] = "resize",
        [MSG_INPUT] = "input",
        [MSG_CREDIT] = "credit",
        [MSG_DESTROY] = "destroy",
        [MSG_OPEN] = "open",
        [MSG_DESCRIBE] = "describe",
        [MSG_INSPECT] = "inspect",
        [MSG_ENUMERATE] = "enumerate",
        [MSG_PS] = "ps",
        [MSG_STOP] = "stop",
        [MSG_FILES] = "files",
        [MSG_READ] = "read",
        [MSG_WRITE] = "write",
        [MSG_COMMIT] = "commit",
        [MSG_LIST] = "list",
        [MSG_STAT] = "stat",
        [MSG_PACK] = "pack",
        [MSG_UNPACK] = "unpack",
        [MSG_CANCEL] = "cancel",
        [MSG_POLICY] = "policy",
        [MSG_ATTACH] = "attach",
        [MSG_RELEASE] = "release",
        [MSG_PRESENT] = "present",
        [MSG_EXTEND] = "extend",
        [MSG_TAGS] = "tags",
        [MSG_SET_TAGS] = "set_tags",
        [MSG_EXPORTED] = "exported",
    };

    return type < sizeof names / sizeof *names ? names[type] : NULL;
}
