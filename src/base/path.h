/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Paths that a caller or a sandbox can influence. Every one is opened through openat2(2), which
 * judges the whole walk in the kernel; a descriptor is returned, not a path, so that there is no
 * time between check and use. There is no fallback for kernels before 5.6.
 */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

/**
 * path_open_beneath() - open @path without leaving @root_fd
 *
 * Symbolic links are followed as long as they stay beneath; "..", absolute links and magic links
 * that would leave are refused. O_CLOEXEC and O_NOCTTY are added.
 * Return: an owned fd; -EXDEV when the walk would leave; a negative errno.
 */
int path_open_beneath(int root_fd, const char *path, int flags, mode_t mode);

/** path_open_plain() - the same, and no component may be a symbolic link (-ELOOP) */
int path_open_plain(int root_fd, const char *path, int flags, mode_t mode);

/** path_open_in_root() - the same walk as after chroot(@root_fd): "/" and ".." end at the root */
int path_open_in_root(int root_fd, const char *path, int flags, mode_t mode);

/**
 * path_make_folders() - make @path and its parents beneath @root_fd, following no links
 * @mode: of the folders that are made; existing ones stay as they are
 *
 * Return: an owned O_PATH fd of the last folder, or a negative errno.
 */
int path_make_folders(int root_fd, const char *path, mode_t mode);

/**
 * path_is_plain_absolute() - whether @path starts with "/" and has no empty, "." or ".." part
 *
 * "/" alone is plain. A trailing slash is not.
 */
bool path_is_plain_absolute(const char *path);

/** path_is_within() - whether @path is @folder or lies in it; both plain absolute */
bool path_is_within(const char *path, const char *folder);
