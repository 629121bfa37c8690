/* SPDX-License-Identifier: Apache-2.0 */
/* Texts about control groups: /proc/self/cgroup, a NUL, and mountinfo. What is found stands in
 * them, and never leads out of the mount. */
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "local/cgroup_find.h"
#include "base/guards.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool holds)
{
    if (!holds)
        abort();
}

static void check_place(const struct cgroup_place *p, const char *groups)
{
    const char *part = p->own;

    check(p->mount[0] == '/' && strlen(p->mount) < sizeof p->mount);
    check(p->own[0] == '\0' || strstr(groups, p->own));
    for (size_t n; *part != '\0'; part += n + (part[n] == '/')) {
        n = strcspn(part, "/");
        check(n != 2 || memcmp(part, "..", 2) != 0);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct cgroup_place place;
    char *text = malloc(size + 2);
    uint64_t n = 7;

    if (!text)
        return 0;
    memcpy(text, data, size);
    text[size] = text[size + 1] = '\0';
    const char *mounts = text + strlen(text) + 1; /* at most the second NUL */
    for (enum cgroup_controller i = 0; i < CGROUP_CONTROLLER__MAX; i++) {
        int r = cgroup_find(i, text, mounts, &place);

        check(r == 0 || r == -ENOENT || r == -ENAMETOOLONG);
        if (r == 0)
            check_place(&place, text);
    }
    if (cgroup_key(text, "oom_kill", &n) == 0)
        check(strstr(text, "oom_kill "));
    else
        check(n == 7);
    check(!cgroup_has_word(text, "memory") || strstr(text, "memory"));
    free(text);
    return 0;
}
