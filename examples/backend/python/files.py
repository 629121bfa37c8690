# SPDX-License-Identifier: Apache-2.0
"""The files of a sandbox. Every path is looked up by openat2(2), which lets none lead out of the root."""
import ctypes
import errno
import io
import os
import secrets
import stat
import struct
import tarfile

from wire import Failure

LIBC = ctypes.CDLL(None, use_errno=True)
OPENAT2, RESOLVE_IN_ROOT = 437, 0x10
KINDS = ((stat.S_ISREG, 0), (stat.S_ISDIR, 1), (stat.S_ISLNK, 2), (stat.S_ISFIFO, 3), (stat.S_ISSOCK, 4))


def kind_of(info):
    return next((kind for test, kind in KINDS if test(info.st_mode)), 5)


def told(info, target=None):
    """What a file is, as fields."""
    return [("kind", kind_of(info) | ((2 if kind_of(info) == 2 else 0) << 16)), ("mode", stat.S_IMODE(info.st_mode)),
            ("size", info.st_size if kind_of(info) == 0 else 0), ("mtime_ns", info.st_mtime_ns),
            *([("target", target)] if target is not None else [])]


class Root:
    """The files of one sandbox."""

    def __init__(self, path, workdir):
        self.path, self.workdir = path, workdir
        self.fd = os.open(path, os.O_PATH | os.O_DIRECTORY)

    def local(self, path):
        """A client's path, relative to the root; one of the host that lies in it, too."""
        inside = path.startswith(self.path + "/") or path == self.path
        return "./" + (path[len(self.path):] if inside else path if path[0] == "/" else f"{self.workdir}/{path}")

    def open(self, local, flags):
        how = struct.pack("<QQQ", flags | os.O_CLOEXEC, 0, RESOLVE_IN_ROOT)
        fd = LIBC.syscall(OPENAT2, self.fd, os.fsencode(local), how, len(how))
        if fd < 0:
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
        return Descriptor(fd)

    def make_folders(self, local):
        parts = [p for p in local.split("/") if p not in ("", ".")]
        for i in range(len(parts)):
            try:
                self.open("./" + "/".join(parts[:i + 1]), os.O_PATH | os.O_DIRECTORY).close()
            except FileNotFoundError:
                with self.open("./" + "/".join(parts[:i]), os.O_PATH | os.O_DIRECTORY) as parent:
                    os.mkdir(parts[i], 0o777, dir_fd=parent.fd)

    def look(self, local, follow=True):
        with self.open(local, os.O_PATH | (0 if follow else os.O_NOFOLLOW)) as at:
            info = os.fstat(at.fd)
            return info, os.readlink("", dir_fd=at.fd) if stat.S_ISLNK(info.st_mode) else None

    def read(self, path, offset, length, most):
        with self.open(self.local(path), os.O_PATH) as at:  # an O_PATH descriptor wakes no FIFO and no device
            info = os.fstat(at.fd)
            if kind_of(info) == 1:
                raise IsADirectoryError(errno.EISDIR, "")
            if kind_of(info):
                raise Failure(errno.EINVAL, cls=1 if kind_of(info) == 5 else 0, path=path, kind=kind_of(info))
            start = min(offset, info.st_size)
            length = min(length, info.st_size - start)
            if length > most:
                raise Failure(errno.EFBIG, cls=1, path=path, kind=0, size=info.st_size, max_bytes=most)
            with open(f"/proc/self/fd/{at.fd}", "rb") as file:
                return info, os.pread(file.fileno(), length, start)

    def write(self, path, data, mode=None, local=None):
        """Beside the old file first, then in its place in one step; links are followed to their target."""
        local = local or self.local(path)
        for _ in range(16):
            folder, _, name = local.rpartition("/")
            self.make_folders(folder)
            with self.open(folder, os.O_PATH | os.O_DIRECTORY) as parent:
                try:
                    old = os.stat(name, dir_fd=parent.fd, follow_symlinks=False)
                except FileNotFoundError:
                    old = None
                if name in ("", ".", "..") or (old and kind_of(old) == 1):
                    raise IsADirectoryError(errno.EISDIR, "")
                if old and kind_of(old) == 2:
                    target = os.readlink(name, dir_fd=parent.fd)
                    local = self.local(target) if target.startswith("/") else f"{folder}/{target}"
                    continue
                if old and kind_of(old):
                    raise Failure(errno.EINVAL, cls=0, path=path, kind=kind_of(old))
                part = f".atoll-{secrets.token_hex(8)}"
                fd = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666, dir_fd=parent.fd)
                try:
                    with open(fd, "wb") as file:
                        file.write(data)
                        if old and os.geteuid() == 0:
                            os.fchown(fd, old.st_uid, old.st_gid)
                        if old or mode is not None:
                            os.fchmod(fd, stat.S_IMODE(old.st_mode) if mode is None else mode)
                    os.rename(part, name, src_dir_fd=parent.fd, dst_dir_fd=parent.fd)
                except BaseException:
                    os.unlink(part, dir_fd=parent.fd)
                    raise
                return len(data)
        raise OSError(errno.ELOOP, "")

    def list(self, path):
        local = self.local(path)
        with self.open(local, os.O_RDONLY | os.O_DIRECTORY) as at, os.scandir(at.fd) as entries:
            for entry in entries:
                info = entry.stat(follow_symlinks=False)
                fields = told(info, os.readlink(entry.name, dir_fd=at.fd) if entry.is_symlink() else None)
                if entry.is_symlink():  # what it leads to, in the high half; to nothing: a link
                    try:
                        fields[0] = ("kind", 2 | kind_of(self.look(f"{local}/{entry.name}")[0]) << 16)
                    except OSError:
                        pass
                yield [("entry_name", entry.name), *fields]

    def pack(self, path):
        """A tar stream, and what no tar stream can hold."""
        out, skipped = io.BytesIO(), []

        def keep(member):
            if not (member.isfile() or member.isdir() or member.issym() or member.islnk()):
                skipped.append(member.name)
            return None if member.name in skipped else member

        with self.open(self.local(path), os.O_PATH) as at, tarfile.open(fileobj=out, mode="w") as tar:
            tar.add(os.path.realpath(f"/proc/self/fd/{at.fd}"), os.path.basename(path.rstrip("/")) or "root", filter=keep)
        return out.getvalue(), skipped

    def unpack(self, path, data):
        base, skipped = self.local(path), []
        self.make_folders(base)
        with tarfile.open(fileobj=io.BytesIO(data)) as tar:
            for member in tar:
                parts = member.name.split("/")
                local = f"{base}/{member.name.rstrip('/')}"
                if member.name.startswith("/") or ".." in parts or not (member.isfile() or member.isdir() or member.issym()):
                    skipped.append(member.name)
                elif member.isdir():
                    self.make_folders(local)
                elif member.isfile():
                    self.write(member.name, tar.extractfile(member).read(), member.mode & 0o777, local)
                else:
                    self.make_folders(local.rpartition("/")[0])
                    with self.open(local.rpartition("/")[0], os.O_PATH | os.O_DIRECTORY) as parent:
                        os.symlink(member.linkname, os.path.basename(local), dir_fd=parent.fd)
        return skipped


class Descriptor:
    """A descriptor that is closed at the end of a block."""

    def __init__(self, fd):
        self.fd = fd

    def close(self):
        os.close(self.fd)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()
