/* SPDX-License-Identifier: Apache-2.0 */
/* Judging the paths and links of an archive by their text. */
#include <string.h>

#include "wire/tar.h"
#include "base/guards.h"

enum { NAME_BYTES_MAX = 255 }; /* what Linux takes as one name */

const char *tar_path_text(enum tar_path verdict)
{
    static const char *const texts[] = {
        [TAR_PATH_OK] = "it is good",
        [TAR_PATH_EMPTY] = "it is empty",
        [TAR_PATH_ABSOLUTE] = "it is absolute",
        [TAR_PATH_UP] = "it has \"..\" in it",
        [TAR_PATH_NUL] = "it has a NUL byte inside",
        [TAR_PATH_LONG] = "it, or a name in it, is too long",
    };
    _Static_assert(sizeof texts / sizeof texts[0] == TAR_PATH__MAX, "every verdict has a text");

    return texts[verdict];
}

static bool is_up(const char *part, size_t len)
{
    return len == 2 && part[0] == '.' && part[1] == '.';
}

enum tar_path tar_path_check(const char *path, size_t len, char clean[static TAR_PATH_MAX + 1])
{
    size_t n = 0;

    if (len == 0)
        return TAR_PATH_EMPTY;
    if (memchr(path, '\0', len))
        return TAR_PATH_NUL;
    if (path[0] == '/')
        return TAR_PATH_ABSOLUTE;
    for (size_t at = 0, part; at < len; at += part + 1) {
        const char *slash = memchr(path + at, '/', len - at);

        part = slash ? (size_t)(slash - path) - at : len - at;
        if (is_up(path + at, part))
            return TAR_PATH_UP;
        if (part == 0 || (part == 1 && path[at] == '.'))
            continue;
        if (part > NAME_BYTES_MAX || n + 1 + part >= TAR_PATH_MAX)
            return TAR_PATH_LONG;
        if (n > 0)
            clean[n++] = '/';
        memcpy(clean + n, path + at, part);
        n += part;
    }
    if (n == 0)
        clean[n++] = '.';
    clean[n] = '\0';
    return TAR_PATH_OK;
}

bool tar_link_stays(const char *clean, const char *target, size_t top)
{
    size_t depth = 0; /* of the folder that the link stands in */
    bool leading = true;

    for (const char *p = clean; *p; p++)
        depth += *p == '/';
    if (depth < top || target[0] == '/' || target[0] == '\0')
        return false;
    depth -= top;
    for (const char *p = target; *p;) {
        size_t n = strcspn(p, "/");

        if (is_up(p, n)) {
            if (!leading || depth == 0)
                return false;
            depth--;
        } else if (n > 0 && !(n == 1 && *p == '.')) {
            leading = false;
        }
        p += n + (p[n] == '/');
    }
    return true;
}
