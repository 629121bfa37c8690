# SPDX-License-Identifier: Apache-2.0
"""What every backend must do, as one table: a scenario is a function and the features it needs.

The features are those of core/capability.h, as DESCRIBED names them. Paths are relative to the
working directory, or made absolute by the sandbox's own `pwd`, since not every backend has a root of
its own.
"""
import errno
import hashlib
import io
import os
import signal
import tarfile
from dataclasses import dataclass, field

from driver import World  # noqa: F401  (also puts protocol.py on the path)
from protocol import (
    FRAME, MORE, PAYLOAD_MAX, STDERR, STDOUT, WINDOW, Class, Closed, Create, EndedBy, Exec, Kind,
    Reason, Refused, Tag, Type, hello)

IN = Exec.IN_BAND
ALL_BYTES = bytes(range(256))


@dataclass(frozen=True)
class Scenario:
    name: str
    function: object
    needs: tuple = field(default=())
    sandbox: bool = True


TABLE = []


def scenario(*needs, sandbox=True):
    def add(function):
        TABLE.append(Scenario(function.__name__, function, needs, sandbox))
        return function

    return add


# Greeting and envelope


@scenario(sandbox=False)
def other_minor_versions_are_welcome(w):
    for minor in (0, 1, 999):
        connection = w.connect(greet=False)
        connection.send(Type.HELLO, 5, hello(1, minor))
        w.equal(connection.expect(Type.HELLO, 5)[Tag.VERSION_MAJOR], 1)


@scenario(sandbox=False)
def another_major_version_is_told_and_refused(w):
    for major in (0, 2, 2**32 - 1):
        connection = w.connect(greet=False)
        connection.send(Type.HELLO, 0, hello(major))
        connection.next(lambda m: m.type == Type.HELLO)
        message = w.refused(connection, 0, errno.EPROTO)
        w.true(message[Tag.ERROR_REMEDY])
        w.disconnected(connection, broken=True)


@scenario(sandbox=False)
def a_message_before_the_greeting_is_refused(w):
    connection = w.connect(greet=False)
    connection.send(Type.CREATE, 1)
    w.refused(connection, 1, errno.EPROTO)
    w.disconnected(connection, broken=True)


@scenario(sandbox=False)
def it_describes_itself_before_there_is_a_sandbox(w):
    message = w.connect().describe()
    w.equal(message[Tag.BACKEND], w.backend.name)
    features = message.all(Tag.FEATURE)
    w.equal(len(features), len(set(features)))
    for pairs in message.all(Tag.RULE):
        rule = dict(pairs)
        w.true(rule[Tag.FIELD].partition(".")[0] in ("spec", "backend", "toolset"), rule)
        w.true(rule[Tag.VERDICT] in (0, 1, 2) and rule[Tag.HOW], rule)
        if rule[Tag.VERDICT] == 2:
            w.true(rule[Tag.ERROR_REMEDY], rule)


@scenario()
def an_unknown_request_is_refused_and_the_connection_goes_on(w):
    for kind in (199, 200, 65535):
        w.connection.send(kind, 77)
        w.refused(w.connection, 77, errno.ENOSYS)
    number = w.connection.request(Type.INSPECT, (60000, 7))  # an unknown field is skipped
    w.equal(w.connection.next(lambda m: m.id == number).type == Type.ERROR, False)


@scenario(sandbox=False)
def bytes_that_are_no_message_disconnect(w):
    bad = (
        b"GET / HTTP/1.1\r\nHost: x\r\n\r\n",
        FRAME.pack(0, Type.EXEC, 2, 1, 0),
        FRAME.pack(0, Type.EXEC, 0, 1, 1),
        FRAME.pack(PAYLOAD_MAX + 1, Type.EXEC, 0, 1, 0),
        FRAME.pack(2**32 - 1, Type.EXEC, 0, 1, 0),
        FRAME.pack(0, Type.EXEC, MORE, 1, 0),
    )
    for data in bad:
        connection = w.connect()
        connection.send_packet(data)
        w.disconnected(connection, broken=True)


@scenario(sandbox=False)
def a_message_within_another_or_without_an_end_disconnects(w):
    connection = w.connect()
    full = FRAME.pack(PAYLOAD_MAX, Type.EXEC, MORE, 1, 0) + bytes(PAYLOAD_MAX)
    connection.send_packet(full)
    connection.send_packet(FRAME.pack(0, Type.DESTROY, 0, 2, 0))
    w.disconnected(connection, broken=True)
    connection = w.connect()
    try:
        for _ in range(200):
            connection.send_packet(full)
    except Closed:
        pass
    w.disconnected(connection, broken=True)


@scenario("exec")
def fields_that_make_no_sense_are_refused(w):
    for number, payload in enumerate((b"", b"x", b"\x10\0\1\0\2\0\0\0a\0", b"\x10\0\0\0\2\0\0\0aa"), 900):
        w.connection.send(Type.EXEC, number, payload)
        w.refused(w.connection, number, errno.EPROTO)
    w.goes_on()


# The sandbox


@scenario("exec", sandbox=False)
def a_connection_has_one_sandbox(w):
    connection = w.connect()
    w.backend.create(connection)
    w.refuses(errno.EEXIST, w.backend.create, connection)
    w.goes_on(connection)


@scenario("exec", sandbox=False)
def a_command_needs_a_sandbox_but_not_its_answer(w):
    connection = w.connect()
    w.refused(connection, connection.shell("true"), errno.ENOENT)
    fields = (Tag.CREATE_FLAGS, w.backend.flags | Create.OWNED), *w.backend.spec
    create = connection.request(Type.CREATE, *fields)
    number = connection.shell("echo early")
    report, out, _ = connection.finish(number)
    w.equal((report[Tag.REASON], out), (Reason.EXITED, b"early\n"))
    connection.expect(Type.CREATED, create)


@scenario(sandbox=False)
def what_cannot_be_kept_is_refused_by_name_and_ends_it(w):
    w.true(w.backend.refusals)
    for fields, word in w.backend.refusals:
        connection = w.connect()
        flags = (Tag.CREATE_FLAGS, w.backend.flags | Create.OWNED)
        number = connection.request(Type.CREATE, flags, *w.backend.spec, fields)
        message = connection.next(lambda m: m.type == Type.ERROR and m.id == number)
        w.true(word in message[Tag.ERROR_MESSAGE], message.fields)
        w.true(message.fields.get(Tag.ERROR_REMEDY), message.fields)
        rest = w.disconnected(connection)
        w.equal([(m.type, m.id) for m in rest], [(Type.ENDED, number)])


@scenario(sandbox=False)
def the_end_is_told_last(w):
    connection = w.connect()
    create = connection.request(Type.CREATE, (Tag.CREATE_FLAGS, w.backend.flags | 1), *w.backend.spec)
    connection.expect(Type.CREATED, create)
    connection.request(Type.DESTROY)
    rest = connection.waiting + w.disconnected(connection)
    w.equal([(m.type, m.id, m[Tag.ENDED_BY]) for m in rest], [(Type.ENDED, create, EndedBy.DESTROYED)])


@scenario("exec")
def destroying_ends_commands_first(w):
    command = w.sleeper()
    number = w.connection.shell(f"{command} & setsid {command} & {command}")
    w.wait_until(lambda: w.living(command) == 3, "three sleepers")
    w.connection.request(Type.DESTROY)
    rest = w.connection.waiting + w.disconnected(w.connection)
    ends = [m for m in rest if m.type in (Type.EXITED, Type.ENDED)]
    w.equal([m.type for m in ends], [Type.EXITED, Type.ENDED])
    w.equal((ends[0].id, ends[0][Tag.REASON]), (number, Reason.KILLED))
    other = w.connect()
    w.backend.create(other)
    w.equal(w.living(command, other), 0)


@scenario("exec")
def closing_the_connection_ends_an_owned_sandbox(w):
    command = w.sleeper()
    w.connection.shell(f"setsid {command} & {command}")
    w.wait_until(lambda: w.living(command) == 2, "two sleepers")
    w.connection.close()
    w.connection.process.wait(30)
    other = w.connect()
    w.backend.create(other)
    w.equal(w.living(command, other), 0)
    w.equal(w.id in w.backend.ids(), False)


@scenario("exec")
def a_lifetime_ends_the_sandbox_and_its_commands(w):
    connection = w.connect()
    w.backend.create(connection, (Tag.LIFETIME_US, 700000))
    number = connection.shell("sleep 60")
    w.equal(connection.finish(number)[0][Tag.REASON], Reason.LIFETIME)
    w.equal(connection.next(lambda m: m.type == Type.ENDED)[Tag.ENDED_BY], EndedBy.LIFETIME)
    w.equal(w.disconnected(connection), [])


@scenario("reopen", "exec", "files")
def a_held_sandbox_outlives_its_connection(w):
    connection, name = w.held()
    w.files_of(connection).write("kept", b"still here")
    command = w.sleeper()
    connection.shell(f"setsid {command} & {command}")
    w.wait_until(lambda: w.living(command, connection) == 2, "two sleepers")
    second = w.reopen(name)
    w.equal(w.files_of(second).read("kept")[1], b"still here")
    connection.close()
    w.wait_until(lambda: w.living(command, second) == 0, "the end of the commands of a client that has gone")
    third = w.reopen(name)
    w.equal(w.sh("cat kept", third)[:2], (0, b"still here"))
    w.equal(third.destroy()[Tag.ENDED_BY], EndedBy.DESTROYED)


@scenario("reopen", "exec")
def environment_and_folder_of_a_held_sandbox_stay(w):
    _, name = w.held((Tag.ENV, "KEPT=a b"), (Tag.WORKDIR, "/data"))
    second = w.reopen(name)
    w.equal(w.sh('echo "$KEPT $(basename "$PWD")"', second)[:2], (0, b"a b data\n"))


@scenario("reopen")
def destroying_twice_is_no_error(w):
    connection, name = w.held()
    second = w.reopen(name)
    w.equal(connection.destroy()[Tag.ENDED_BY], EndedBy.DESTROYED)
    try:
        second.request(Type.DESTROY)
        rest = second.waiting + w.disconnected(second)
    except Closed:
        rest = second.waiting
    w.true(all(m.type == Type.ENDED for m in rest), rest)
    with w.test.assertRaises((Refused, OSError)):
        w.reopen(name)


@scenario("reopen", "exec")
def destroying_ends_the_commands_of_other_connections(w):
    connection, name = w.held()
    command = w.sleeper()
    number = connection.shell(f"setsid {command} & {command}")
    w.wait_until(lambda: w.living(command, connection) == 2, "two sleepers")
    w.reopen(name).destroy()
    report, _, _ = connection.finish(number)
    w.equal(report[Tag.REASON], Reason.KILLED)
    other = w.connect()
    w.backend.create(other)
    w.equal(w.living(command, other), 0)


@scenario("reopen", sandbox=False)
def an_id_of_nothing_is_refused(w):
    for name in ("nothing", "../..", "0" * 20, "x" * 300, "sb-aaaaaaaaaaaaaaaaaaaaaaaaaa"):
        with w.test.assertRaises((Refused, OSError)):
            w.reopen(name)


@scenario("reopen", sandbox=False)
def all_sandboxes_are_listed(w):
    before = w.backend.ids()
    names = {w.held()[1] for _ in range(3)}
    w.equal(len(names), 3)
    w.equal(w.backend.ids() - before, names)
    gone = names.pop()
    w.destroy(gone)
    w.equal(w.backend.ids() - before, names)


@scenario("inspect")
def inspect_says_what_was_asked_for_and_no_values(w):
    connection = w.connect()
    fields = ((Tag.SANDBOX_NAME, "mine"), (Tag.OWNER, "me"), (Tag.LABEL, "a=1"), (Tag.LABEL, "b=2"),
              (Tag.WORKDIR, "/data"), (Tag.ENV, "TOKEN=hush-hush"), (Tag.LIFETIME_US, 600 * 10**6))
    name = w.backend.create(connection, *fields)
    message = connection.inspect()
    w.equal(message[Tag.SANDBOX_ID], name)
    w.equal((message[Tag.SANDBOX_NAME], message[Tag.OWNER]), ("mine", "me"))
    w.equal(message.all(Tag.LABEL), ["a=1", "b=2"])
    w.equal((message[Tag.STATE], message[Tag.WORKDIR]), (1, "/data"))
    w.equal(message[Tag.BACKEND], w.backend.name)
    w.true(message[Tag.CREATED_AT_US] > 1.7e15)
    w.equal(message[Tag.EXPIRES_AT_US] - message[Tag.CREATED_AT_US] > 599 * 10**6, True)
    w.equal("hush" in repr(message.pairs), False)


# Commands


@scenario("exec")
def statuses_are_those_of_the_command(w):
    for script, code, number in (("exit 0", 0, 0), ("exit 3", 3, 0), ("exit 255", 255, 0),
                                 ("kill -TERM $$", 0, signal.SIGTERM), ("kill -KILL $$", 0, signal.SIGKILL)):
        report, _, _ = w.connection.finish(w.connection.shell(script))
        w.equal((report[Tag.EXIT_CODE], report[Tag.SIGNAL], report[Tag.REASON]),
                (code, number, Reason.EXITED), script)


@scenario("exec")
def a_command_that_cannot_start_says_why(w):
    w.output("echo '#!/bin/sh' > plain; chmod 644 plain")
    for program, code, why in (("/absent/program", 127, errno.ENOENT), ("no-such-program", 127, errno.ENOENT),
                               ("./plain", 126, errno.EACCES), ("/", 126, errno.EACCES)):
        report, out, err = w.connection.finish(w.connection.exec(program))
        w.equal((report[Tag.EXIT_CODE], report[Tag.START_ERRNO], report[Tag.START_STAGE]), (code, why, 7), program)
        w.equal((out, err), (b"", b""))
    report, _, _ = w.connection.finish(w.connection.exec("/bin/true", fields=((Tag.WORKDIR, "/absent"),)))
    w.equal((report[Tag.START_ERRNO], report[Tag.START_STAGE]), (errno.ENOENT, 4))


@scenario("exec")
def both_streams_come_byte_by_byte(w):
    octal = "".join(f"\\{i:03o}" for i in range(256))
    w.equal(w.sh(f"printf '{octal}'; printf '{octal}{octal}' >&2"), (0, ALL_BYTES, ALL_BYTES * 2))
    w.equal(w.sh("printf 'no newline'"), (0, b"no newline", b""))
    w.equal(w.sh(":"), (0, b"", b""))


@scenario("exec")
def arguments_are_bytes_and_no_shell_text(w):
    for argument in ("", " ", "a b", "$HOME `id` $(id)", "'\"\\", "new\nline", "-n", "ü", os.fsdecode(b"\xff\xfe")):
        number = w.connection.exec("/usr/bin/printf", "%s", argument)
        w.equal(w.connection.finish(number)[1], os.fsencode(argument))
    number = w.connection.exec("/bin/sh", "-c", 'printf %s "$@" | wc -c', "sh", *["x" * 100000] * 8)
    w.equal(w.connection.finish(number)[1].split(), [b"800000"])


@scenario("exec")
def much_output_comes_under_little_credit(w):
    size = 20 << 20
    number = w.connection.shell(f"head -c {size} /dev/zero | tr '\\0' 'x'; echo end >&2")
    allowed, got, summed = WINDOW, 0, hashlib.sha256()
    while True:
        message = w.connection.next(lambda m: m.id == number)
        if message.type == Type.EXITED:
            break
        data = message[Tag.DATA] if message[Tag.STREAM] == STDOUT else b""
        got += len(data)
        summed.update(data)
        w.true(got <= allowed, "more than the credit")
        if allowed - got < 1000 and got < size:
            w.connection.credit(number, STDOUT, 70000)
            allowed += 70000
    w.equal((got, message[Tag.EXIT_CODE]), (size, 0))
    w.equal(summed.hexdigest(), hashlib.sha256(b"x" * size).hexdigest())


@scenario("exec")
def no_more_than_the_credit_is_sent(w):
    number = w.connection.shell("yes | head -c 1000000; echo done >&2")
    got = 0
    with w.test.assertRaises(TimeoutError):
        while True:
            message = w.connection.next(lambda m: m.id == number and m.fields.get(Tag.STREAM) == STDOUT, 1)
            got += len(message[Tag.DATA])
    w.equal(got, WINDOW)
    w.goes_on()  # others are not held up
    w.connection.credit(number, STDOUT, WINDOW)
    report, out, err = w.connection.finish(number)
    w.equal((got + len(out), err, report[Tag.EXIT_CODE]), (1000000, b"done\n", 0))


@scenario("exec")
def credit_over_the_window_is_refused(w):
    number = w.connection.shell("sleep 60")
    for stream, amount in ((STDOUT, 1), (STDERR, WINDOW), (0, 1), (7, 1), (STDOUT, 2**32 - 1)):
        w.connection.credit(number, stream, amount)
        w.refused(w.connection, number, errno.EPROTO)
    w.goes_on()


@scenario("exec", "stdin")
def input_travels_under_credit(w):
    data = os.urandom(3_000_000)
    number = w.connection.shell("exec sha256sum", flags=IN | Exec.STDIN)
    feed(w, number, data)
    report, out, _ = w.connection.finish(number)
    w.equal(out.split()[0].decode(), hashlib.sha256(data).hexdigest())


def feed(w, number, data):
    credit, at = WINDOW, 0
    while at < len(data):
        if credit == 0:
            credit += w.connection.next(lambda m: m.type == Type.CREDIT and m.id == number)[Tag.CREDIT]
        part = data[at:at + min(credit, 30000)]
        w.connection.input(number, part)
        credit -= len(part)
        at += len(part)
    w.connection.input(number, b"")


@scenario("exec", "stdin")
def all_bytes_pass_through_a_command(w):
    for data in (b"", b"no newline", ALL_BYTES * 3):
        number = w.connection.shell("cat; cat >&2", flags=IN | Exec.STDIN)
        feed(w, number, data)
        w.equal(w.connection.finish(number)[1:], (data, b""))


@scenario("exec", "stdin")
def input_that_was_not_agreed_on_is_refused(w):
    number = w.connection.shell("sleep 60", flags=IN | Exec.STDIN)
    for _ in range(2 * WINDOW // 32000 + 4):  # a pipe may take some of it
        w.connection.input(number, bytes(32000))
    w.refused(w.connection, number, errno.ENOBUFS)
    number = w.connection.shell("sleep 60")
    w.connection.input(number, b"x")
    w.refused(w.connection, number, errno.EPROTO)
    number = w.connection.shell("true", flags=IN | Exec.STDIN)
    w.connection.finish(number)
    w.connection.input(number, b"late")
    w.refused(w.connection, number, errno.EPIPE)
    w.goes_on()


@scenario("exec", "stdin")
def a_command_need_not_read_its_input(w):
    number = w.connection.shell("head -c 5", flags=IN | Exec.STDIN)
    w.connection.input(number, b"12345678")
    w.equal(w.connection.finish(number)[1], b"12345")
    number = w.connection.shell("exec <&-; echo closed; sleep 0.3", flags=IN | Exec.STDIN)
    w.connection.next(lambda m: m.id == number and m.type == Type.OUTPUT)
    w.connection.input(number, bytes(30000))
    w.equal(w.connection.finish(number)[0][Tag.EXIT_CODE], 0)


@scenario("exec")
def a_command_without_input_reads_the_end_at_once(w):
    w.equal(w.sh("cat; echo end"), (0, b"end\n", b""))


@scenario("exec")
def variables_come_exact_and_none_of_the_caller(w):
    values = {"LINES2": "one\ntwo\n", "EQUALS": "a=b=c", "UMLAUT": "grün ☂", "EMPTY": "", "QUOTES": "'\"$`\\"}
    connection = w.connect()
    w.backend.create(connection, *((Tag.ENV, f"{k}={v}") for k, v in values.items()),
                     (Tag.ENV, "WINS=spec"), (Tag.ENV, "SPEC=spec"))
    number = connection.exec("/usr/bin/env", "-0", fields=((Tag.ENV, "WINS=call"), (Tag.ENV, "CALL=x=y")))
    out = os.fsdecode(connection.finish(number)[1])
    seen = dict(entry.split("=", 1) for entry in out.split("\0")[:-1])
    for name, value in {**values, "WINS": "call", "SPEC": "spec", "CALL": "x=y"}.items():
        w.equal(seen.get(name), value, name)
    w.equal("SECRET_OF_THE_CALLER" in out, False)
    w.true(seen["PATH"] and seen["HOME"])


@scenario("exec")
def the_working_directory_is_made_and_can_be_another(w):
    connection = w.connect()
    w.backend.create(connection, (Tag.WORKDIR, "/data/deep"))
    w.equal(w.sh('basename "$PWD"; mkdir sub', connection)[:2], (0, b"deep\n"))
    number = connection.shell('basename "$PWD"', fields=((Tag.WORKDIR, "/data/deep/sub"),))
    w.equal(connection.finish(number)[1], b"sub\n")
    w.equal(w.sh('basename "$PWD"')[:2], (0, b"workspace\n"))


@scenario("exec", "timeout")
def a_timeout_ends_all_of_one_command_and_nothing_else(w):
    command, left, other = w.sleeper(), w.sleeper(), w.sleeper()
    hiders = {
        "double fork": f"({command} & ) & {command}",
        "new session": f"setsid {command} & {command}",
        "re-forking": f"f() {{ sleep 0.01; f & }}; f & f & {command}",
        "stopped": f"{command} & kill -STOP $!; {command}",
        "deaf": f"exec >/dev/null 2>&1; (trap '' TERM HUP INT; {command}) & {command}",
    }
    w.sh(f"{left} >/dev/null 2>&1 &")
    going = w.connection.shell(other)
    for name, script in hiders.items():
        report, _, _ = w.connection.finish(w.connection.shell(script, timeout_us=400000))
        w.equal((report[Tag.REASON], report[Tag.TIMEOUT_US]), (Reason.TIMEOUT, 400000), name)
        w.equal((w.living(command), w.living(left), w.living(other)), (0, 1, 1), name)
    w.true(going)


@scenario("exec", "timeout")
def a_timeout_that_does_not_come_changes_nothing(w):
    report, out, _ = w.connection.finish(w.connection.shell("echo quick", timeout_us=60 * 10**6))
    w.equal((report[Tag.REASON], out), (Reason.EXITED, b"quick\n"))
    w.true(report[Tag.WALL_US] > 0)


@scenario("exec")
def ten_commands_run_at_once(w):
    w.output("mkdir all")
    wait = 'touch all/$0; while [ $(ls all | wc -l) -lt 10 ]; do sleep 0.02; done; echo $0'
    numbers = [w.connection.exec("/bin/sh", "-c", wait, str(i)) for i in range(10)]
    for i, number in enumerate(numbers):
        w.equal(w.connection.finish(number)[1], f"{i}\n".encode())


@scenario("exec")
def an_id_names_one_command_at_a_time(w):
    w.connection.shell("sleep 0.5; echo first", number=500)
    w.connection.shell("echo second", number=500)
    w.refused(w.connection, 500, errno.EEXIST)
    w.equal(w.connection.finish(500)[1], b"first\n")
    w.connection.shell("echo third", number=500)
    w.equal(w.connection.finish(500)[1], b"third\n")


@scenario("exec", "signal")
def a_signal_reaches_the_process_group(w):
    script = "trap 'echo caught; exit 7' USR1; echo ready; while :; do sleep 0.05; done"
    number = w.connection.shell(script)
    w.connection.next(lambda m: m.type == Type.OUTPUT and m[Tag.DATA] == b"ready\n")
    w.connection.request(Type.SIGNAL, (Tag.SIGNAL, signal.SIGUSR1), number=number)
    report, out, _ = w.connection.finish(number)
    w.equal((report[Tag.EXIT_CODE], out), (7, b"caught\n"))
    w.connection.request(Type.SIGNAL, (Tag.SIGNAL, signal.SIGUSR1), number=number)  # late: dropped
    command = w.sleeper()
    number = w.connection.shell(f"{command} & {command}; true")
    w.wait_until(lambda: w.living(command) == 2, "two sleepers")
    for wrong in (0, 65, 2**32 - 1):
        w.connection.request(Type.SIGNAL, (Tag.SIGNAL, wrong), number=number)
        w.refused(w.connection, number, errno.EINVAL)
    w.connection.request(Type.SIGNAL, (Tag.SIGNAL, signal.SIGINT), number=number)
    report, _, _ = w.connection.finish(number)
    w.equal((report[Tag.SIGNAL], report[Tag.REASON]), (signal.SIGINT, Reason.EXITED))


@scenario("exec")
def a_process_that_is_left_behind_is_not_waited_for(w):
    command = w.sleeper()
    report, out, _ = w.connection.finish(w.connection.shell(f"{command} & echo front"))
    w.equal((report[Tag.REASON], out), (Reason.EXITED, b"front\n"))
    w.equal(w.living(command), 1)


@scenario("exec", "ps")
def running_commands_are_listed_and_stopped(w):
    command = w.sleeper()
    w.equal(w.connection.ps(), [])
    script = f"setsid {command} & {command}"
    first = w.connection.shell(script, timeout_us=600 * 10**6)
    second = w.connection.exec("/bin/sleep", "600")
    w.wait_until(lambda: w.living(command) == 2, "two sleepers")
    rows = sorted(w.connection.ps(), key=lambda pairs: dict(pairs)[Tag.COMMAND_NUMBER])
    w.equal([[v for t, v in pairs if t == Tag.ARG] for pairs in rows],
            [["/bin/sh", "-c", script], ["/bin/sleep", "600"]])
    numbers = [dict(pairs)[Tag.COMMAND_NUMBER] for pairs in rows]
    w.equal(dict(rows[0])[Tag.TIMEOUT_US], 600 * 10**6)
    w.true(all(dict(pairs)[Tag.STARTED_AT_US] > 1.7e15 and numbers[0] > 0 for pairs in rows))
    w.connection.stop(numbers[0])
    w.equal(w.connection.finish(first)[0][Tag.REASON], Reason.KILLED)
    w.equal(w.living(command), 0)
    w.refuses(errno.ESRCH, w.connection.stop, 99999)
    w.connection.stop(0)
    w.equal(w.connection.finish(second)[0][Tag.REASON], Reason.KILLED)
    w.equal(w.connection.ps(), [])
    third = w.connection.exec("/bin/sleep", "600")
    w.wait_until(lambda: w.connection.ps() != [], "a command in the list")
    w.true(dict(w.connection.ps()[0])[Tag.COMMAND_NUMBER] > numbers[1], "a number was used again")
    w.connection.stop(0)
    w.connection.finish(third)


@scenario("exec", "detach", "ps", "reopen")
def a_detached_command_outlives_its_connection(w):
    connection, name = w.held()
    command = w.sleeper()
    number = connection.shell(f"cat; echo dropped; {command}", flags=Exec.DETACH)
    started = connection.expect(Type.STARTED, number)
    w.wait_until(lambda: w.living(command, connection) >= 1, "a sleeper")
    connection.close()
    second = w.reopen(name)
    rows = [dict(pairs) for pairs in second.ps()]
    w.equal([(r[Tag.COMMAND_NUMBER], r[Tag.COMMAND_FLAGS]) for r in rows], [(started[Tag.COMMAND_NUMBER], 1)])
    second.stop(started[Tag.COMMAND_NUMBER])
    w.equal(w.living(command, second), 0)


@scenario("exec", "tty", "stdin")
def a_terminal_travels_in_band(w):
    number = w.connection.shell("stty size; read x; stty size; cat; echo over", flags=Exec.TTY | IN | Exec.STDIN,
                                fields=((Tag.ROWS, 30), (Tag.COLUMNS, 90)))
    w.connection.expect(Type.STARTED, number)
    w.connection.next(lambda m: m.type == Type.OUTPUT and b"30 90" in m[Tag.DATA])
    w.connection.request(Type.RESIZE, (Tag.ROWS, 40), (Tag.COLUMNS, 100), number=number)
    w.connection.input(number, b"\n")
    w.connection.next(lambda m: m.type == Type.OUTPUT and b"40 100" in m[Tag.DATA])
    w.connection.input(number, b"")
    report, out, _ = w.connection.finish(number)
    w.equal((b"over" in out, report[Tag.EXIT_CODE]), (True, 0))


# Files


@scenario("files", "exec")
def files_are_bytes_and_the_same_for_commands(w):
    w.files.write("f", ALL_BYTES)
    message, data = w.files.read("f")
    w.equal((message[Tag.KIND] & 0xffff, message[Tag.SIZE], data), (Kind.FILE, 256, ALL_BYTES))
    w.equal(w.output("cat f"), ALL_BYTES)
    here = w.output("pwd").decode().rstrip("\n")
    w.equal(w.files.read(f"{here}/f")[1], ALL_BYTES)
    w.files.write(f"{here}/g", b"absolute", inline=True)
    w.equal(w.output("cat g"), b"absolute")


@scenario("files")
def an_empty_file_and_a_shorter_one(w):
    w.files.write("f", b"")
    w.equal(w.files.read("f")[1], b"")
    w.files.write("f", b"a longer content")
    w.files.write("f", b"short")
    w.equal(w.files.read("f")[1], b"short")
    w.files.write("f", b"", inline=True)
    w.equal(w.files.read("f")[1], b"")


@scenario("files", "ranges")
def a_part_of_a_file_is_read(w):
    data = os.urandom(100000)
    w.files.write("f", data)
    for offset, length in ((0, 0), (0, 10), (99990, 10), (5, 70000), (99990, 1000), (100000, 5), (10**9, 5),
                           (2**62, None), (40000, None), (0, 2**64 - 2)):
        message, part = w.files.read("f", offset, length)
        end = len(data) if length is None else offset + length
        w.equal((message[Tag.SIZE], part), (100000, data[offset:end]), (offset, length))


@scenario("files")
def more_than_was_allowed_is_refused_with_the_size(w):
    w.files.write("f", bytes(500))
    w.equal(len(w.files.read("f", max_bytes=500)[1]), 500)
    error = w.refuses(errno.EFBIG, w.files.read, "f", max_bytes=499)
    w.equal((error.cls, error.fields[Tag.SIZE], error.fields[Tag.MAX_BYTES]), (Class.TOO_LARGE, 500, 499))
    w.equal(len(w.files.read("f", offset=1, length=100, max_bytes=100)[1]), 100)


@scenario("files", "exec")
def what_is_no_regular_file_is_refused_at_once(w):
    w.output("mkdir d; ln -s d to_d; ln -s nowhere dangling; mkfifo fifo; ln -s fifo to_fifo; ln -s a b; ln -s b a")
    w.refuses(errno.ENOENT, w.files.read, "missing")
    w.refuses(errno.ENOENT, w.files.read, "d/missing")
    w.refuses(errno.ENOENT, w.files.read, "dangling")
    w.refuses(errno.ELOOP, w.files.read, "a")
    w.refuses(errno.EISDIR, w.files.read, "d")
    w.refuses(errno.EISDIR, w.files.read, "to_d")
    for name in ("fifo", "to_fifo"):
        error = w.refuses(errno.EINVAL, w.files.read, name)
        w.equal((error.fields[Tag.KIND], error.fields[Tag.PATH]), (Kind.FIFO, name))
    if w.backend.device:
        error = w.refuses(errno.EINVAL, w.files.read, w.backend.device, max_bytes=1024)
        w.equal((error.fields[Tag.KIND], error.cls), (Kind.DEVICE, Class.TOO_LARGE))
    w.files.write("f", b"1")
    w.refuses(errno.ENOTDIR, w.files.read, "f/x")


@scenario("files", "exec")
def nothing_outside_is_reached_by_a_link(w):
    w.output("ln -s ../../../../../../../../etc/hostname out; ln -s /etc/hostname absolute")
    for name in ("out", "../../../../../../../../../../etc/shadow"):
        try:
            _, data = w.files.read(name)
        except Refused:
            continue
        w.equal(data, w.sh(f"cat {name}")[1])  # a root of its own, where it is what a command sees


@scenario("files", "exec")
def writing_keeps_the_mode_and_follows_a_link(w):
    w.output("echo old > t; chmod 640 t; ln -s t l; ln -s sub/new dangling")
    w.files.write("l", b"new")
    w.equal(w.output("stat -c %a t; readlink l; cat t"), b"640\nt\nnew")
    w.files.write("dangling", b"made")
    w.equal(w.output("readlink dangling; cat sub/new"), b"sub/new\nmade")
    w.files.write("t", b"x", mode=0o600)
    w.equal(w.output("stat -c %a t; cat t"), b"600\nx")
    w.files.write("fresh", b"x")
    w.files.write("program", b"#!/bin/sh\necho ran\n", mode=0o755)
    w.equal(w.output("stat -c %a fresh; ./program"), b"644\nran\n")


@scenario("files", "exec")
def missing_folders_are_made_and_wrong_places_refused(w):
    w.files.write("a/b/c/d/e/f", b"deep")
    w.equal(w.output("cat a/b/c/d/e/f"), b"deep")
    w.output("mkfifo fifo")
    w.refuses(errno.EISDIR, w.files.write, "a/b", b"x")
    w.refuses(errno.ENOTDIR, w.files.write, "a/b/c/d/e/f/g", b"x")
    w.equal(w.refuses(errno.EINVAL, w.files.write, "fifo", b"x").fields[Tag.KIND], Kind.FIFO)
    w.equal(w.output("cat a/b/c/d/e/f; test -p fifo"), b"deep")


@scenario("files", "list", "exec")
def names_are_bytes(w):
    names = ["a space", "two  spaces ", "new\nline", "'single'", '"double"', "semi;colon", "$dollar", "back\\slash",
             "-dash", "*", "grün", os.fsdecode(b"\xff\xfe"), "x" * 255, ".hidden", "\t\x01\x7f"]
    for i, name in enumerate(names):
        w.files.write(f"n/{name}", str(i).encode())
    w.equal(set(w.files.list("n")), set(names))
    for i, name in enumerate(names):
        w.equal(w.files.read(f"n/{name}")[1], str(i).encode(), name)
    w.equal(len(w.output("printf '%s\\0' n/.[!.]* n/*").split(b"\0")) - 1, len(names))


@scenario("files", "list", "exec")
def a_list_tells_kinds(w):
    w.output("mkdir d d/sub; cd d; printf 12345 > file; chmod 751 file; ln -s file to_file; ln -s sub to_folder; "
             "ln -s nowhere dangling; mkfifo fifo; echo > .hidden")
    found = w.files.list("d")
    kinds = {name: (entry[Tag.KIND] & 0xffff, entry[Tag.KIND] >> 16) for name, entry in found.items()}
    w.equal({n: k for n, (k, _) in kinds.items()}, {
        "file": Kind.FILE, "sub": Kind.FOLDER, "to_file": Kind.LINK, "to_folder": Kind.LINK,
        "dangling": Kind.LINK, "fifo": Kind.FIFO, ".hidden": Kind.FILE})
    w.equal([kinds[n][1] for n in ("to_file", "to_folder", "dangling")], [Kind.FILE, Kind.FOLDER, Kind.LINK])
    w.equal((found["file"][Tag.SIZE], found["file"][Tag.MODE]), (5, 0o751))
    w.equal(found["to_folder"][Tag.LINK_TARGET], "sub")
    w.true(found["file"][Tag.MTIME_NS] > 1.7e18)
    w.output("ln -s d to_d; mkdir empty")
    w.equal(set(w.files.list("to_d")), set(found))
    w.equal(w.files.list("empty"), {})
    w.refuses(errno.ENOENT, w.files.list, "missing")
    w.refuses(errno.ENOTDIR, w.files.list, "d/file")


@scenario("files", "list", "exec")
def a_long_list_is_complete(w):
    w.output("mkdir many; cd many; seq -f 'a-rather-long-name-for-a-file-%05g' 5000 | xargs touch")
    w.equal(len(w.files.list("many")), 5000)


@scenario("files", "exec")
def a_file_is_looked_at(w):
    w.output("printf 123 > f; chmod 4711 f; ln -s f l; ln -s nowhere dangling")
    message = w.files.stat("f")
    w.equal((message[Tag.KIND] & 0xffff, message[Tag.MODE], message[Tag.SIZE]), (Kind.FILE, 0o4711, 3))
    w.equal(w.files.stat("l")[Tag.KIND] & 0xffff, Kind.FILE)
    link = w.files.stat("l", follow=False)
    w.equal((link[Tag.KIND] & 0xffff, link[Tag.LINK_TARGET]), (Kind.LINK, "f"))
    w.equal(w.files.stat(".")[Tag.KIND] & 0xffff, Kind.FOLDER)
    w.refuses(errno.ENOENT, w.files.stat, "dangling")
    w.equal(w.files.stat("dangling", follow=False)[Tag.KIND] & 0xffff, Kind.LINK)


@scenario("files", "exec")
def a_large_file_goes_in_and_out(w):
    data = os.urandom(1 << 20) * 30
    w.files.write("large", data)
    w.equal(w.output("sha256sum < large").split()[0].decode(), hashlib.sha256(data).hexdigest())
    w.equal(w.files.read("large")[1] == data, True)


@scenario("files", "list")
def without_commit_nothing_changes(w):
    w.files.write("f", b"old")
    for name in ("f", "new"):
        number = w.files.write(name, b"half" * 1000, commit=False)
        w.files.request(Type.CANCEL, number=number)
        message = w.files.next(lambda m: m.id == number and m.type in (Type.ERROR, Type.DONE))
        w.equal((message.type, message.fields.get(Tag.ERROR_CODE)), (Type.ERROR, errno.ECANCELED))
    w.equal(w.files.read("f")[1], b"old")
    w.equal(set(w.files.list(".")), {"f"})
    w.files.write("f", b"new")  # the next one is not disturbed
    w.equal(w.files.read("f")[1], b"new")


@scenario("files", "list", "reopen")
def a_writer_that_goes_changes_nothing(w):
    connection, name = w.held()
    files = w.files_of(connection)
    files.write("f", b"old")
    files.write("f", b"half" * 1000, commit=False)
    files.close()
    connection.close()
    second = w.files_of(w.reopen(name))
    w.wait_until(lambda: set(second.list(".")) == {"f"}, "nothing but the old file")
    w.equal(second.read("f")[1], b"old")


@scenario("files")
def readers_see_the_old_file_or_the_new_one(w):
    w.files.write("f", b"a" * 100000)
    for i in range(20):
        w.files.write("f", (b"b" if i % 2 else b"a") * 100000)
        w.equal(len(set(w.files.read("f")[1])), 1)


@scenario("files")
def file_requests_that_make_no_sense_are_refused(w):
    for kind in (Type.READ, Type.WRITE, Type.LIST, Type.STAT):
        for fields in ((), ((Tag.PATH, ""),), ((Tag.PATH, "x" * 5000),)):
            w.refused(w.files, w.files.request(kind, *fields), errno.EPROTO)
    w.files.request(Type.COMMIT)  # of nothing: dropped
    w.files.request(Type.CANCEL)
    w.files.write("f", b"goes on")
    w.equal(w.files.read("f")[1], b"goes on")


@scenario("pack", "unpack", "files", "exec")
def a_folder_is_packed_and_unpacked(w):
    w.output("mkdir -p d/sub; printf one > d/one; chmod 750 d/one; printf two > 'd/sub/two words'; ln -s one d/link; "
             "mkfifo d/fifo")
    data, skipped = w.files.pack("d")
    w.equal(len(skipped), 1)
    with tarfile.open(fileobj=io.BytesIO(data)) as tar:
        w.equal({m.name.rstrip("/") for m in tar}, {"d", "d/one", "d/sub", "d/sub/two words", "d/link"})
    w.equal(w.files.unpack("copy", data), [])
    w.equal(w.output("cd copy/d; cat one 'sub/two words'; readlink link; stat -c %a one"), b"onetwoone\n750\n")
    data, _ = w.files.pack("d/one")
    with tarfile.open(fileobj=io.BytesIO(data)) as tar:
        w.equal([(m.name, tar.extractfile(m).read()) for m in tar], [("one", b"one")])


@scenario("unpack", "files", "exec")
def unpacking_reaches_nothing_outside(w):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as tar:
        for name in ("../escaped", "/tmp/atoll-escaped", "good"):
            member = tarfile.TarInfo(name)
            member.size = 1
            tar.addfile(member, io.BytesIO(b"x"))
    try:
        w.files.unpack("into", out.getvalue())
    except Refused:
        pass
    w.equal(w.output("ls; ls /tmp | grep -c atoll-escaped || true").split(), [b"into", b"0"])
