# SPDX-License-Identifier: Apache-2.0
"""Commands and their bytes, under credit both ways. A part of the server."""
import errno
import fcntl
import json
import os
import selectors
import socket
import time

from supervisor import END_ALL, supervise
from wire import *
from wire import Failure


class Command:
    def __init__(self, number, fields, pid, supervisor, link, ends):
        self.number, self.fields, self.pid, self.supervisor, self.link = number, fields, pid, supervisor, link
        self.input, self.out = ends[0], {1: ends[1], 2: ends[2]}
        self.credit, self.given = {1: WINDOW, 2: WINDOW}, WINDOW
        self.kept, self.input_ends, self.report, self.over, self.alone = b"", False, None, False, False
        self.started, self.started_at_us, self.stopped = time.monotonic(), int(time.time() * 1e6), False


class Content:
    """Bytes on their way to the client."""

    def __init__(self, data, done=None):
        self.data, self.done, self.credit = memoryview(data), done, {1: WINDOW}


class Commands:
    """Needs the loop, the messages and the sandbox of class Server."""

    def exec(self, number, fields):
        flags, timeout_us = fields.get("flags", [0])[0], fields.get("timeout_us", [0])[0]
        if number in self.commands or number in self.contents or number in self.writes:
            raise Failure(errno.EEXIST, f"a request with id {number} is under way")
        if not fields.get("arg"):
            raise Failure(errno.EPROTO, "the command cannot be read")
        if flags & ~(1 | 8) != 4:
            raise Failure(errno.ENOSYS, "only plain commands with in-band streams can be had here")
        env = dict([("PATH", "/usr/local/bin:/usr/bin:/bin"), ("HOME", self.root.path), ("LANG", "C.UTF-8")] +
                   [e.split("=", 1) for e in self.record["env"] + fields.get("env", [])])
        workdir = fields.get("workdir", [self.record["workdir"]])[0]
        pipes, (ours, theirs) = [os.pipe() for _ in range(3)], socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        ends, given = [pipes[0][1], pipes[1][0], pipes[2][0]], [pipes[0][0], pipes[1][1], pipes[2][1], theirs.fileno()]
        supervisor = os.fork()
        if supervisor == 0:
            high = [fcntl.fcntl(fd, fcntl.F_DUPFD, 16) for fd in given]
            for fd in range(4):
                os.dup2(high[fd], fd, inheritable=fd < 3)
            os.closerange(4, 1 << 16)  # other commands' pipes, the client's streams
            supervise(self.path("record"), socket.socket(fileno=3), fields["arg"], env,
                      os.path.join(self.root.path, self.root.local(workdir)), timeout_us)
        theirs.close()
        for fd in given[:3]:
            os.close(fd)
        start = json.loads(ours.recv(4096) or b'{"pid": 0, "start_errno": 11, "start_stage": 7}')
        self.numbers += 1
        command = Command(self.numbers, fields, start["pid"], supervisor, ours, ends)
        self.commands[number] = command
        if start["start_errno"]:
            missing = start["start_errno"] == errno.ENOENT and start["start_stage"] == 7
            command.alone = True
            self.report_end(number, command, {"exit_code": 127 if missing else 126, **start})
            return
        if flags & 8:
            self.send(STARTED, number, ("pid", command.pid), ("number", command.number))
        for fd in ends:
            os.set_blocking(fd, False)
        if not flags & 1:
            self.shut(command, 0)
        for which in (1, 2):
            self.watch(command.out[which], lambda which=which: self.output_ready(number, command, which))
        self.watch(ours, lambda: self.link_ready(number, command))

    def shut(self, command, which):
        """Closes one of a command's streams."""
        fd = command.input if which == 0 else command.out[which]
        if fd is not None:
            self.ignore(fd)
            os.close(fd)
        if which == 0:
            command.input = None
        else:
            command.out[which] = None

    def output_ready(self, number, command, which):
        room = 0 if self.is_full() else min(command.credit[which], 32000)
        if room == 0:  # the pipe fills, and the command waits
            self.ignore(command.out[which])
            self.at(command, None, None)
            return
        try:
            data = os.read(command.out[which], room)
        except BlockingIOError:
            return
        command.credit[which] -= len(data)
        self.send(OUTPUT, number, ("stream", which), ("data", data))
        if not data:
            self.shut(command, which)
        self.settle(number, command)

    def settle(self, number, command):
        """After the end, what is still in the pipes; who holds them in silence is not waited for."""
        if not command.report or command.over:
            return
        if command.out == {1: None, 2: None}:
            self.report_end(number, command, command.report)
        elif all(fd is None or fd in self.selector.get_map() for fd in command.out.values()):
            self.at(command, 0.1, lambda: self.report_end(number, command, command.report))

    def link_ready(self, number, command):
        data = command.link.recv(4096)
        if data or not command.report:  # a report; or the supervisor was killed before it had one
            command.report = json.loads(data or b'{"signal": 9, "reason": 3}')
            self.settle(number, command)
        if not data:  # nothing of the command is left
            self.ignore(command.link)
            command.alone = True
            if command.over:
                self.bury(command)

    def bury(self, command):
        command.link.close()  # then its supervisor ends what is left, and itself
        os.waitpid(command.supervisor, 0)
        self.left.discard(command)

    def report_end(self, number, command, report):
        command.over = True
        self.at(command, None, None)
        self.shut(command, 0)
        for which in (1, 2):
            if command.out[which] is not None:
                self.shut(command, which)
                self.send(OUTPUT, number, ("stream", which), ("data", b""))
        reason = report.get("reason", 0)
        self.send(EXITED, number, ("exit_code", report.get("exit_code", 0)), ("signal", report.get("signal", 0)),
                  ("reason", 3 if command.stopped and reason == 0 else reason),
                  ("wall_us", int((time.monotonic() - command.started) * 1e6)),
                  ("timeout_us", command.fields.get("timeout_us", [0])[0]),
                  *((k, report[k]) for k in ("start_stage", "start_errno") if report.get(k)))
        del self.commands[number]
        self.left.add(command)  # its supervisor may still have processes that it left behind
        if command.alone:
            self.bury(command)
        for stop, meant in list(self.stops.items()):
            meant.discard(command)
            if not meant:
                self.send(DONE, stop)
                del self.stops[stop]

    def signal(self, number, fields):
        what = fields.get("signal", [0])[0]
        if number in self.commands and not 1 <= what <= 64:
            raise Failure(errno.EINVAL, "there is no such signal")
        if number in self.commands and not self.commands[number].report:
            self.commands[number].link.send(bytes([what]))

    def stop(self, number, fields):
        which = fields.get("number", [0])[0]
        meant = {c for c in self.commands.values() if which in (0, c.number)}
        if which and not meant:
            raise Failure(errno.ESRCH, "there is no such command", cls=0)
        for command in meant:
            command.stopped = True
            command.link.send(bytes([END_ALL]))
        if meant:
            self.stops[number] = meant
        else:
            self.send(DONE, number)

    def ps(self, number, fields):
        self.send(COMMANDS, number, *(("command", [
            ("number", c.number), ("pid", c.pid), ("started_at_us", c.started_at_us),
            ("timeout_us", c.fields.get("timeout_us", [0])[0]), *(("arg", a[:1000]) for a in c.fields["arg"][:20])])
            for c in self.commands.values()))

    def input(self, number, fields):
        data, stream = fields.get("data", [b""])[0], fields.get("stream", [9])[0]
        if number in self.writes and stream == 0 and not self.writes[number]["ended"]:
            self.collect(number, self.writes[number], data)
            return
        command = self.commands.get(number)
        if not command or command.input_ends:
            raise Failure(errno.EPIPE, "the command or file operation is over", cls=0)
        if stream != 0 or not command.fields.get("flags", [0])[0] & 1:
            raise Failure(errno.EPROTO, "bytes came that were not agreed on")
        if len(data) > command.given:
            raise Failure(errno.ENOBUFS, "bytes came that were not agreed on")
        command.given -= len(data)
        command.kept += data
        command.input_ends = not data
        self.input_ready(number, command)

    def input_ready(self, number, command):
        taken = len(command.kept)
        if command.input is not None:
            try:
                taken = os.write(command.input, command.kept) if command.kept else 0
            except BlockingIOError:
                taken = 0
            except OSError:  # nobody reads any more: the rest is taken and dropped
                self.shut(command, 0)
        command.kept = command.kept[taken:]
        command.given += taken
        if taken:
            self.send(CREDIT, number, ("stream", 0), ("credit", taken))
        if command.kept:
            self.watch(command.input, lambda: self.input_ready(number, command), selectors.EVENT_WRITE)
        elif command.input is not None:
            self.ignore(command.input)
            if command.input_ends:
                self.shut(command, 0)

    def credit(self, number, fields):
        stream, amount = fields.get("stream", [9])[0], fields.get("credit", [0])[0]
        target = self.commands.get(number) or self.contents.get(number)
        if not target:
            return  # late
        if amount > WINDOW - target.credit.get(stream, WINDOW):
            raise Failure(errno.EPROTO, "credit came that was not agreed on")
        target.credit[stream] = target.credit.get(stream, WINDOW) + amount
        self.pump()

    def pump(self):
        """The client takes more: contents that wait, and pipes that were left alone."""
        for number, content in list(self.contents.items()):
            while content.data and content.credit[1] and not self.is_full():
                n = min(len(content.data), content.credit[1], 32000)
                part, content.data = content.data[:n], content.data[n:]
                content.credit[1] -= n
                self.send(OUTPUT, number, ("stream", 1), ("data", bytes(part)))
            if not content.data and self.contents.pop(number, None):
                self.send(OUTPUT, number, ("stream", 1), ("data", b""))
                if content.done is not None:
                    self.send(DONE, number, *content.done)
        for number, command in list(self.commands.items()):
            for which, fd in command.out.items():
                if fd is not None and command.credit[which] and not self.is_full() and fd not in self.selector.get_map():
                    self.watch(fd, lambda n=number, c=command, w=which: self.output_ready(n, c, w))
                    self.settle(number, command)
