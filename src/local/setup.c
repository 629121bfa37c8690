/* SPDX-License-Identifier: Apache-2.0 */
/* Carrying out the plan's steps, in order, and becoming init. */
#include "local/setup.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/io.h"
#include "local/landlock.h"
#include "wire/control.h"
#include "base/guards.h"

int setup_landlock(struct setup *s)
{
    if (s->landlock_abi < LANDLOCK_ABI_MIN)
        return 0;
    return landlock_fence(s->plan, s->landlock_abi);
}

static int setup_step(struct setup *s, const struct step *step)
{
    switch (step->kind) {
    case STEP_PRIVATE:
        return setup_private();
    case STEP_NETWORK:
        return setup_network(s);
    case STEP_HOSTNAME:
        return sethostname(step->source, strlen(step->source)) < 0 ? -errno : 0;
    case STEP_IDS:
        return setup_ids(s);
    case STEP_ROOT:
        return setup_root(s, step);
    case STEP_OVERLAY:
        return setup_overlay(s, step);
    case STEP_FOLDER:
        return setup_folder(s, step);
    case STEP_WRITABLE:
        return setup_writable(s, step);
    case STEP_LINK:
        return setup_link(s, step);
    case STEP_FILE:
        return setup_file(s, step);
    case STEP_BIND:
        return setup_bind(s, step);
    case STEP_HIDE:
        return setup_hide(s, step);
    case STEP_VOLUME:
        return setup_volume(s, step);
    case STEP_PROC:
        return setup_proc(s, step);
    case STEP_SYSCTL:
        return setup_sysctl(s, step);
    case STEP_PROC_LOCK:
        return setup_proc_lock(s, step);
    case STEP_PROC_MASK:
        return setup_proc_mask(s, step);
    case STEP_DEV:
        return setup_dev(s, step);
    case STEP_TERMINALS:
        return setup_terminals(s, step);
    case STEP_SHM:
        return setup_shm(s, step);
    case STEP_WORKDIR:
        return setup_workdir(s, step);
    case STEP_READ_ONLY:
        return setup_read_only(s, step);
    case STEP_PIVOT:
        return setup_pivot(s);
    case STEP_LIMITS:
        return setup_limits(step);
    case STEP_LANDLOCK:
        return setup_landlock(s);
    case STEP_PRIVILEGES:
        return setup_privileges();
    case STEP_INIT:
        return setup_init(s);
    case STEP__MAX:
        break;
    }
    return -EINVAL;
}

static void send_step(struct setup *s, uint16_t type, size_t index, int error, uint64_t us)
{
    uint8_t buf[512], head[FRAME_HEADER_BYTES];
    struct writer w = writer_over(buf, sizeof buf);
    struct step_report report = {.index = (uint32_t)index, .error = (uint32_t)error, .us = us};
    int r;

    step_report_encode(&w, &report);
    struct frame f = {.length = (uint32_t)writer_len(&w), .type = type};
    frame_header(&f, head);
    do {
        r = io_send_packet(s->link_fd, head, sizeof head, buf, f.length, NULL, 0);
        if (r == -EAGAIN)
            (void)io_wait(s->link_fd, POLLOUT, CLOCK_NEVER);
    } while (r == -EAGAIN);
}

void setup_run(struct setup *s)
{
    /* Should the keeper die while this runs, so does this; init has the socket
     * for that. */
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (setup_wait_for_plan(s) < 0)
        _exit(1); /* the keeper is gone or has given up */
    for (size_t i = 0; i < s->plan->n; i++) {
        const struct step *step = &s->plan->steps[i];
        uint64_t since = s->plan->report_steps ? clock_now_us() : 0;

        if (s->plan->report_steps && step->kind == STEP_INIT) /* there is no telling afterwards */
            send_step(s, MSG_STEP, i, 0, 0);
        int r = setup_step(s, step);
        if (r < 0) {
            send_step(s, MSG_FAULT, i, -r, 0);
            _exit(1);
        }
        if (s->plan->report_steps)
            send_step(s, MSG_STEP, i, 0, clock_now_us() - since);
    }
    _exit(1);
}
