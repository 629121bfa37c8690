/* SPDX-License-Identifier: Apache-2.0 */
/* For the events of the sandbox: what has left it, or could not. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "export/entry.h"
#include "wire/exported.h"
#include "base/guards.h"

/* It is written down, or will not be: the export goes on in either case. */
static void go_on(struct session_request *q)
{
    struct exporting *x = q->owner;

    session_forget(q);
    loop_at(x->loop, &x->next, clock_now_us());
}

static int told(struct session_request *q, struct message *m)
{
    (void)m;
    go_on(q);
    return 0;
}

static void failed(struct session_request *q, const struct error *err)
{
    (void)err;
    go_on(q);
}

/* Answers come in the order of requests, so that only the last is waited for. The others go to an
 * id that no request has. Return: whether an answer will come. */
static bool send_report(struct exporting *x, const struct exported_report *report, bool last)
{
    const size_t size = exported_report_size(report);
    _cleanup_free_ uint8_t *buf = malloc(size);
    struct writer w = writer_over(buf, buf ? size : 0);
    struct error ignored = ERROR_INIT;

    exported_report_encode(&w, report);
    if (!last) {
        (void)session_tell(x->session, MSG_EXPORTED, 0, &w);
        return false;
    }
    x->telling = (struct session_request){.owner = x, .told = told, .failed = failed};
    return session_ask(x->session, &x->telling, MSG_EXPORTED, &w, NULL, 0, &ignored) == 0;
}

static bool tell_entry(struct exporting *x, const struct export_entry *e, const char *message,
                       bool last)
{
    static const char kind[] = "sha256:";
    char digest[sizeof kind + COPIER_SUM_TEXT];
    _cleanup_free_ char *url = exported_url(e->url);

    if (!url)
        return false;
    memcpy(digest, kind, sizeof kind);
    copier_sum_text(e->sum, digest + sizeof kind - 1);
    const struct exported_report report = {.path = e->path,
                                           .url = url,
                                           .bytes = message ? 0 : e->bytes,
                                           .digest = message || e->is_folder ? NULL : digest,
                                           .message = message};
    return send_report(x, &report, last);
}

bool export_tell(struct exporting *x)
{
    const struct session *s = x->session;
    bool waits = false;

    if (!s || s->state != SESSION_OPEN || s->minor < message_since(MSG_EXPORTED))
        return false;
    if (x->failed)
        return tell_entry(x, &x->entries[x->at < x->n ? x->at : x->n - 1], x->error.message, true);
    for (size_t i = 0; i < x->n; i++)
        waits = tell_entry(x, &x->entries[i], NULL, i + 1 == x->n);
    return waits;
}
