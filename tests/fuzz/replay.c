/* SPDX-License-Identifier: Apache-2.0 */
/* Runs a fuzz target once over every file of its corpus folders, without a fuzzer. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "base/guards.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { INPUT_MAX_BYTES = 16 << 20 };

/* Return: 0, or a negative errno when the file cannot be read whole. */
static int replay_file(int folder_fd, const char *name)
{
    _cleanup_fd_ int fd = openat(folder_fd, name, O_RDONLY | O_CLOEXEC);
    _cleanup_free_ uint8_t *data = NULL;
    struct stat st;
    size_t size, have = 0;

    if (fd < 0 || fstat(fd, &st) < 0)
        return -errno;
    if (!S_ISREG(st.st_mode) || st.st_size > INPUT_MAX_BYTES)
        return -EINVAL;
    size = (size_t)st.st_size;
    data = malloc(size > 0 ? size : 1); /* exact, so that a sanitizer sees one byte too far */
    if (!data)
        return -ENOMEM;
    while (have < size) {
        ssize_t n = read(fd, data + have, size - have);

        if (n <= 0)
            return n < 0 ? -errno : -EIO;
        have += (size_t)n;
    }
    (void)LLVMFuzzerTestOneInput(data, size);
    return 0;
}

/* Return: the number of inputs, or a negative errno. */
static int replay_folder(const char *path)
{
    _cleanup_(dir_closep) DIR *dir = opendir(path);
    const struct dirent *entry;
    int count = 0;

    if (!dir)
        return -errno;
    while ((entry = readdir(dir))) {
        int r;

        if (entry->d_name[0] == '.')
            continue;
        fprintf(stderr, "%s/%s\n", path, entry->d_name); /* a crash names its input */
        r = replay_file(dirfd(dir), entry->d_name);
        if (r < 0)
            return r;
        count++;
    }
    return count > 0 ? count : -ENODATA;
}

int main(int argc, char **argv)
{
    int total = 0;

    for (int i = 1; i < argc; i++) {
        int r = replay_folder(argv[i]);

        if (r < 0) {
            fprintf(stderr, "%s: %s\n", argv[i], r == -ENODATA ? "no inputs" : strerror(-r));
            return EXIT_FAILURE;
        }
        total += r;
    }
    printf("%d inputs\n", total);
    return total > 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
