/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tags: texts KEY=VALUE, each with a NUL behind it, in the file ID/tags. By them several clients
 * share a sandbox, each through a process of this program: so they are read anew whenever somebody
 * asks, and written whole under another name first, so that nobody reads a half of them.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "folder.h"

int tags_save(const struct folder *f, const char *const *tags)
{
    char part[PATH_MAX], name[PATH_MAX];
    int fd, r = 0;

    snprintf(part, sizeof part, "%s/tags.%d", f->path, (int)getpid());
    snprintf(name, sizeof name, "%s/tags", f->path);
    fd = open(part, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (fd < 0)
        return -errno;
    for (; *tags && r == 0; tags++) {
        const ssize_t len = (ssize_t)strlen(*tags) + 1, n = write(fd, *tags, (size_t)len);

        if (n != len) /* a short write leaves errno as it was: the file system is about full */
            r = n < 0 ? -errno : -EIO;
    }
    if (r == 0 && rename(part, name) < 0)
        r = -errno;
    if (r < 0)
        unlink(part);
    close(fd);
    return r;
}

int tags_load(const struct folder *f, struct tags *ret)
{
    char name[PATH_MAX];
    ssize_t len;
    size_t n = 0;
    int fd;

    snprintf(name, sizeof name, "%s/tags", f->path);
    fd = open(name, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    len = read(fd, ret->bytes, sizeof ret->bytes);
    close(fd);
    if (len < 0 || (len > 0 && ret->bytes[len - 1] != '\0'))
        return -EIO;
    for (char *p = ret->bytes; p < ret->bytes + len && n < TAGS_MAX; p += strlen(p) + 1)
        ret->items[n++] = p;
    ret->items[n] = NULL;
    return 0;
}

static void cannot(struct atoll_reply *reply, int code)
{
    bool gone = code == ENOENT;

    atoll_reply_error(reply, ATOLL_TERMINAL, code, gone ? "the sandbox has ended" : strerror(code),
                      gone ? "Create another one" : NULL);
}

void folder_read_tags(struct atoll_server *server, void *sandbox, struct atoll_reply *reply)
{
    struct tags *t = malloc(sizeof *t);
    int r = t ? tags_load(sandbox, t) : -ENOMEM;

    (void)server;
    if (r < 0)
        cannot(reply, -r);
    else
        atoll_reply_tags(reply, t->items);
    free(t);
}

void folder_write_tags(struct atoll_server *server, void *sandbox, const char *const *tags,
                       struct atoll_reply *reply)
{
    int r = tags_save(sandbox, tags);

    (void)server;
    if (r < 0)
        cannot(reply, -r);
    else
        atoll_reply_done(reply);
}
