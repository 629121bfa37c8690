# SPDX-License-Identifier: Apache-2.0
"""The lease of a sandbox with an owner, as clients take and lose it, by a client that shares no code with atoll."""
import errno
import json
import os
import signal
import socket
import subprocess
import sys
import tarfile
import threading
import time
import unittest
from io import BytesIO
from pathlib import Path

from support import PYTHON, HeldTest, descendants, wait_for

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "support"))
from protocol import Class, Closed, Connection, Exec, Reason, Refused, Tag, Type  # noqa: E402

OWNER = "a/b"
NONE, FREE, HELD, KEPT = range(4)
FORCE = 1
SECOND_US = 1_000_000
HOLDERS = 64
ROUNDS = 20

# A holder in a process of its own: attaches, starts a command, says so, and stays.
HOLD = """
import socket, sys, time
sys.path.insert(0, sys.argv[1])
from protocol import Connection, Exec, Tag, Type
sock = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
sock.connect(sys.argv[2])
c = Connection(sock)
c.greet(3)
n = c.request(Type.ATTACH, (Tag.OWNER, sys.argv[3]), (Tag.HOLDER, sys.argv[4]), (Tag.LEASE_KEEP_US, int(sys.argv[5])))
print(c.expect(Type.ATTACHED, n)[Tag.LEASE_GENERATION], flush=True)
n = c.shell(sys.argv[6], flags=Exec.IN_BAND | Exec.REPORT_START)
c.expect(Type.STARTED, n)
print("started", flush=True)
time.sleep(1000)
"""


class Client(Connection):
    """One connection to the keeper of a held sandbox."""

    def attach(self, holder, owner=OWNER, keep_us=0):
        fields = [(Tag.OWNER, owner), (Tag.HOLDER, holder)] + ([(Tag.LEASE_KEEP_US, keep_us)] if keep_us else [])
        return self.expect(Type.ATTACHED, self.request(Type.ATTACH, *fields))

    def release(self):
        return self.expect(Type.DONE, self.request(Type.RELEASE))

    def present(self, generation):
        return self.expect(Type.DONE, self.request(Type.PRESENT, (Tag.LEASE_GENERATION, generation)))

    def policy(self, *fields):
        return self.expect(Type.POLICY_SET, self.request(Type.POLICY, *fields))

    def lost(self):
        """LEASE_LOST is told."""
        return self.next(lambda m: m.type == Type.LEASE_LOST and m.id == 0)

    def lease(self):
        """What INSPECT tells: state, holder, generation, until."""
        info = self.inspect().fields
        return (info.get(Tag.LEASE_STATE, NONE), info.get(Tag.HOLDER), info.get(Tag.LEASE_GENERATION, 0),
                info.get(Tag.LEASE_UNTIL_US, 0))

    def end(self, *fields):
        """DESTROY, which may be refused."""
        number = self.request(Type.DESTROY, *fields)
        message = self.next(lambda m: m.type == Type.ENDED or (m.type == Type.ERROR and m.id == number))
        if message.type == Type.ERROR:
            raise Refused(message)


class LeaseTest(HeldTest):
    def shared(self, *options):
        """A new sandbox with an owner."""
        box = self.create("--owner", OWNER, *options)
        self.addCleanup(self.remove, box)  # before the base class does it, without force
        return box

    def remove(self, box):
        control = self.state / box / "control"
        if control.exists():
            try:
                self.client(box).end((Tag.DESTROY_FLAGS, FORCE))
            except (OSError, Closed):
                pass  # it has ended by itself meanwhile
            wait_for(lambda: not control.exists(), "the end of the sandbox")

    def client(self, box, minor=3):
        sock = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        sock.connect(str(self.state / box / "control"))
        client = Client(sock)
        self.addCleanup(client.close)
        client.greet(minor)
        return client

    def files(self, client):
        connection = client.files()
        self.addCleanup(connection.close)
        return connection

    def refused(self, code, *words):
        """A context that a refusal with that errno and these words leaves, terminal but for files."""
        test = self

        class Context:
            def __enter__(self):
                return self

            def __exit__(self, kind, value, _):
                test.assertIs(kind, Refused, value or "it was not refused")
                test.assertEqual(value.code, code, value)
                for word in words:
                    test.assertIn(word, str(value))
                if code != errno.EROFS:
                    test.assertEqual(value.cls, Class.TERMINAL)
                    test.assertTrue(value.fields[Tag.ERROR_REMEDY])
                return True

        return Context()

    def holder(self, box, holder, keep_us=0, script="sleep 1000"):
        """A process that attaches and runs a command; with its generation."""
        process = subprocess.Popen(
            [PYTHON, "-c", HOLD, str(Path(__file__).resolve().parents[1] / "support"),
             str(self.state / box / "control"), OWNER, holder, str(keep_us), script],
            stdout=subprocess.PIPE, text=True)
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        generation = int(process.stdout.readline())
        self.assertEqual(process.stdout.readline(), "started\n")
        return process, generation

    def running(self, word):
        """The processes of sandboxes whose command line has a word."""
        return [p for p in descendants() if word.encode() in p.arguments and not p.name.startswith("python")]


class Attaching(LeaseTest):
    def test_an_attach_tells_what_there_is(self):
        client = self.client(self.shared("--lifetime", "1h"))
        self.assertEqual(client.lease(), (FREE, None, 0, 0))
        message = client.attach("a/b/task")
        self.assertEqual(message[Tag.LEASE_GENERATION], 1)
        self.assertLessEqual(message[Tag.LEFT_US], 3600 * SECOND_US)
        self.assertGreater(message[Tag.LEFT_US], 3500 * SECOND_US)
        self.assertEqual(message[Tag.WORKDIR], "/workspace")
        self.assertIn('"block_network":true', message[Tag.NETWORK])
        self.assertEqual(client.lease(), (HELD, "a/b/task", 1, 0))

    def test_a_wrong_owner_is_refused_and_both_are_named(self):
        client = self.client(self.shared())
        for owner in ("c/d", "a/", "a/b ", "A/B"):
            with self.refused(errno.EACCES, "'a/b'", f"'{owner}'"):
                client.attach("one", owner=owner)
        with self.refused(errno.EACCES, "'a/b'"):
            client.attach("one", owner="")
        self.assertEqual(client.lease(), (FREE, None, 0, 0))

    def test_an_empty_holder_is_refused(self):
        client = self.client(self.shared())
        with self.refused(errno.EACCES, "holder"):
            client.attach("")
        self.assertEqual(client.lease(), (FREE, None, 0, 0))

    def test_a_sandbox_without_an_owner_cannot_be_attached_to(self):
        client = self.client(self.create())
        with self.refused(errno.EACCES, "no owner"):
            client.attach("one")
        self.assertEqual(client.lease(), (NONE, None, 0, 0))
        self.assertEqual(client.run("echo free"), (0, "free\n"))

    def test_another_holder_is_refused_and_told_who_has_it(self):
        box = self.shared()
        self.client(box).attach("one")
        other = self.client(box)
        with self.refused(errno.EBUSY, "held by 'one'", "'two'"):
            other.attach("two")
        self.assertEqual(other.lease(), (HELD, "one", 1, 0))

    def test_an_incomplete_attach_is_refused(self):
        client = self.client(self.shared())
        number = client.request(Type.ATTACH, (Tag.OWNER, OWNER))
        with self.assertRaises(Refused) as caught:
            client.expect(Type.ATTACHED, number)
        self.assertEqual(caught.exception.code, errno.EPROTO)

    def test_of_many_holders_at_once_exactly_one_attaches(self):
        box = self.shared()
        for _ in range(ROUNDS):
            clients = [self.client(box) for _ in range(HOLDERS)]
            begin = threading.Barrier(HOLDERS)
            won, lost = [], []

            def race(i, clients=clients, begin=begin, won=won, lost=lost):
                begin.wait()
                try:
                    clients[i].attach(f"holder-{i}")
                    won.append(i)
                except Refused as refusal:
                    lost.append(refusal)

            threads = [threading.Thread(target=race, args=(i,)) for i in range(HOLDERS)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            self.assertEqual((len(won), len(lost)), (1, HOLDERS - 1))
            for refusal in lost:
                self.assertEqual(refusal.code, errno.EBUSY)
                self.assertIn(f"held by 'holder-{won[0]}'", str(refusal))
            clients[won[0]].release()
            for client in clients:
                client.close()


class Rights(LeaseTest):
    def test_others_may_look_and_not_touch(self):
        box = self.shared()
        holder, other = self.client(box), self.client(box)
        holder.run("echo text > file; mkdir folder")
        holder.attach("one")
        for attempt in (lambda: other.run("true"), lambda: other.stop(0),
                        lambda: other.policy((Tag.ALLOW_HOST, "example.com"))):
            with self.refused(errno.EBUSY, "held by 'one'", "reading is open to all"):
                attempt()
        files = self.files(other)
        for attempt in (lambda: files.write("file", b"other", inline=True), lambda: files.write("file", b"other"),
                        lambda: files.unpack("folder", archive("note", b"other"))):
            with self.refused(errno.EROFS):
                attempt()
        self.assertEqual(files.read("file")[1], b"text\n")
        self.assertEqual(files.stat("file")[Tag.SIZE], 5)
        self.assertLessEqual({"file", "folder"}, set(files.list(".")))
        self.assertIn(b"text\n", files.pack("file")[0])
        self.assertEqual(files.list("folder"), {})
        self.assertEqual(other.ps(), [])
        self.assertEqual(other.inspect()[Tag.HOLDER], "one")
        self.assertEqual(holder.run("cat file; echo mine >> file"), (0, "text\n"))
        self.assertEqual(self.files(holder).write("new", b"mine").type, Type.DONE)
        holder.release()
        self.assertEqual(other.run("cat file new"), (0, "text\nmine\nmine"))

    def test_a_refused_write_does_not_wait_for_its_content(self):
        box = self.shared()
        self.client(box).attach("one")
        files = self.files(self.client(box))
        with self.refused(errno.EROFS):  # more than a pipe holds
            files.write("file", bytes(1 << 20))

    def test_files_opened_before_the_attach_cannot_write_after_it(self):
        box = self.shared()
        holder, other = self.client(box), self.client(box)
        early, own = self.files(other), self.files(holder)
        early.write("file", b"early", inline=True)
        own.write("own", b"early", inline=True)
        holder.attach("one")
        with self.assertRaises(Closed):
            early.write("file", b"late", inline=True)
        self.assertEqual(self.files(other).read("file")[1], b"early")
        own.write("own", b"late", inline=True)  # the holder's own are not touched

    def test_a_write_under_way_is_cut_off_by_the_attach(self):
        box = self.shared()
        other, holder = self.client(box), self.client(box)
        files = self.files(other)
        files.write("file", b"old", inline=True)
        theirs, ours = os.pipe()
        number = files.request(Type.WRITE, (Tag.PATH, "file"), (Tag.FILE_FLAGS, 0), fds=(theirs,))
        os.close(theirs)
        files.request(Type.COMMIT, number=number)
        os.write(ours, b"new")
        holder.attach("one")
        with self.assertRaises(Closed):
            files.file_answer(number, Type.DONE)
        os.close(ours)
        self.assertEqual(holder.run("cat file"), (0, "old"))

    def test_a_connection_may_act_for_the_holder(self):
        box = self.shared()
        holder, helper = self.client(box), self.client(box)
        generation = holder.attach("one")[Tag.LEASE_GENERATION]
        helper.present(generation)
        self.assertEqual(helper.run("echo here"), (0, "here\n"))
        self.assertEqual(self.files(helper).write("file", b"x").type, Type.DONE)
        helper.policy((Tag.ALLOW_HOST, "example.com"))
        helper.close()
        self.assertEqual(holder.run("cat file"), (0, "x"))

    def test_a_wrong_generation_is_refused_and_stays_out(self):
        box = self.shared()
        holder, helper = self.client(box), self.client(box)
        holder.attach("one")
        generation = holder.attach("one")[Tag.LEASE_GENERATION]
        for wrong in (0, generation - 1, generation + 1):
            with self.refused(errno.EACCES, "over"):
                self.client(box).present(wrong)
        with self.refused(errno.EACCES, f"generation {generation - 1} is over"):
            helper.present(generation - 1)
        holder.release()
        with self.refused(errno.EACCES, "over"):
            helper.run("true")
        self.assertEqual(self.client(box).run("echo free"), (0, "free\n"))

    def test_what_is_held_is_not_idle(self):
        box = self.shared("--idle-timeout", "700ms")
        holder = self.client(box)
        holder.attach("one")
        time.sleep(1.5)
        self.assertEqual(holder.run("echo here"), (0, "here\n"))
        holder.release()
        holder.next(lambda m: m.type == Type.ENDED)


class Losing(LeaseTest):
    def test_the_same_holder_comes_back_and_finds_its_files(self):
        box = self.shared()
        first = self.client(box)
        first.attach("one")
        first.run("echo work > file")
        first.close()
        second = self.client(box)
        wait_for(lambda: second.lease()[0] == FREE, "the end of the lease")
        self.assertEqual(second.attach("one")[Tag.LEASE_GENERATION], 2)
        self.assertEqual(second.run("cat file"), (0, "work\n"))

    def test_a_takeover_fences_the_earlier_connection(self):
        box = self.shared()
        first, second = self.client(box), self.client(box)
        self.assertEqual(first.attach("one")[Tag.LEASE_GENERATION], 1)
        files = self.files(first)
        command = first.shell("trap '' TERM INT HUP; sleep 4001 & echo on; wait")
        self.assertEqual(first.next(lambda m: m.type == Type.OUTPUT)[Tag.DATA], b"on\n")
        detached = first.exec("sleep", "4002", flags=Exec.DETACH)
        first.expect(Type.STARTED, detached)
        self.assertEqual(second.attach("one")[Tag.LEASE_GENERATION], 2)
        self.assertEqual(self.running("4001"), [])  # before it is told that it has it
        first.lost()
        report, _, _ = first.finish(command)
        self.assertEqual(report[Tag.REASON], Reason.KILLED)
        self.assertEqual([dict(fields)[Tag.COMMAND_NUMBER] for fields in second.ps()], [2])
        self.assertEqual(len(self.running("4002")), 1)  # what was detached is nobody's
        with self.refused(errno.EACCES, "over", "'one'"):
            first.run("true")
        with self.assertRaises(Closed):
            files.write("file", b"late", inline=True)
        with self.refused(errno.EROFS):
            self.files(first).write("file", b"late", inline=True)
        with self.refused(errno.EACCES, "over"):
            first.policy((Tag.ALLOW_HOST, "example.com"))
        with self.refused(errno.EACCES, "over"):
            first.stop(0)
        with self.refused(errno.EACCES, "over"):
            first.attach("one")
        second.release()
        with self.refused(errno.EACCES, "over"):  # also when it is free
            first.run("true")
        self.assertEqual(second.run("ls"), (0, ""))

    def test_whoever_acted_for_the_holder_is_fenced_too(self):
        box = self.shared()
        first, helper, second = self.client(box), self.client(box), self.client(box)
        helper.present(first.attach("one")[Tag.LEASE_GENERATION])
        command = helper.shell("sleep 4003")
        wait_for(lambda: self.running("4003"), "the command")
        second.attach("one")
        helper.lost()
        self.assertEqual(helper.finish(command)[0][Tag.REASON], Reason.KILLED)
        with self.refused(errno.EACCES, "over"):
            helper.run("true")
        self.assertEqual(second.run("echo here"), (0, "here\n"))

    def left(self, client, word):
        """A command that has ended, and has left a process that goes on writing; and one that is detached."""
        writing = f"while :; do echo {word} >> out; sleep 0.0{word}; done"
        self.assertEqual(client.run(f"({writing}) > /dev/null 2>&1 &"), (0, ""))
        detached = client.shell(f"(sleep 1{word} &); exit", flags=Exec.DETACH)
        client.expect(Type.STARTED, detached)
        wait_for(lambda: self.running(f"0.0{word}"), "the process that writes")
        wait_for(lambda: self.running(f"1{word}"), "the detached process")

    def gone(self, client, word):
        """None is left of those that write, and the detached one is."""
        size = client.run("cat out | wc -c")
        self.assertEqual([p for p in descendants() if f"echo {word} >> out" in repr(p.arguments)], [])
        self.assertEqual(client.run("sleep 0.1; cat out | wc -c"), size)
        self.assertEqual(len(self.running(f"1{word}")), 1)

    def test_what_an_attempt_left_behind_is_dead_when_the_next_begins(self):
        box = self.shared()
        first, helper, second = self.client(box), self.client(box), self.client(box)
        helper.present(first.attach("one")[Tag.LEASE_GENERATION])
        self.left(first, "411")
        self.left(helper, "412")
        helper.close()  # long before the takeover
        second.attach("one")
        self.gone(second, "411")
        self.gone(second, "412")

    def test_what_a_dead_holder_left_behind_is_dead_when_the_next_begins(self):
        for keep, word in ((0, "413"), (3600 * SECOND_US, "418")):
            box = self.shared()
            first, second = self.client(box), self.client(box)
            first.attach("one", keep_us=keep)
            self.left(first, word)
            first.close()
            second.attach("one")
            self.gone(second, word)

    def test_what_is_left_at_a_release_stays(self):
        box = self.shared()
        first, second = self.client(box), self.client(box)
        first.attach("one")
        self.left(first, "414")
        first.release()
        second.attach("one")
        size = second.run("cat out | wc -c")
        self.assertNotEqual(second.run("sleep 0.5; sleep 0.5; cat out | wc -c"), size)

    def test_a_mark_that_was_used_again_is_not_taken_for_the_former_one(self):
        box = self.shared()
        first, second = self.client(box), self.client(box)
        first.attach("one")
        for i in range(100):
            for _ in range(i % 4):  # they leave nothing, so that what comes next may look like one of them
                self.assertEqual(first.run("exit"), (0, ""))
            detached = first.exec("sleep", "4150", flags=Exec.DETACH)
            first.expect(Type.STARTED, detached)
        second.attach("one")
        self.assertEqual(len(self.running("4150")), 100)

    def test_more_commands_than_init_remembers_may_leave_something(self):
        box = self.shared()
        first, second = self.client(box), self.client(box)
        first.attach("one")
        self.assertEqual(first.run("sleep 4160 > /dev/null 2>&1 &"), (0, ""))
        for i in range(1200):
            self.assertEqual(first.run("exit"), (0, ""))
        self.assertEqual(len(self.running("4160")), 1)
        second.attach("one")
        self.assertEqual(self.running("4160"), [])

    def test_a_change_of_the_policy_is_in_force_or_not_when_the_next_begins(self):
        box = self.shared()
        first, second = self.client(box), self.client(box)
        first.attach("one")
        first.request(Type.POLICY, (Tag.ALLOW_HOST, "late.example"))
        first.ps()  # answered when that has begun
        network = second.attach("one")[Tag.NETWORK]
        self.assertEqual(json.loads(network), json.loads(second.inspect()[Tag.NETWORK]))
        self.assertIn("late.example", network)

    def test_what_others_run_ends_when_it_is_taken(self):
        box = self.shared()
        other, holder = self.client(box), self.client(box)
        command = other.shell("cat > /dev/null; sleep 4170", flags=Exec.IN_BAND | Exec.STDIN)
        own = holder.shell("echo on; read line; echo $line", flags=Exec.IN_BAND | Exec.STDIN)
        detached = other.exec("sleep", "4171", flags=Exec.DETACH)
        other.expect(Type.STARTED, detached)
        holder.next(lambda m: m.id == own and m.type == Type.OUTPUT)
        holder.attach("one")
        self.assertEqual([dict(fields)[Tag.COMMAND_NUMBER] for fields in holder.ps()], [2, 3])
        other.input(command, b"late")
        self.assertEqual(other.finish(command)[0][Tag.REASON], Reason.KILLED)
        self.assertEqual(len(self.running("4171")), 1)
        holder.input(own, b"mine\n")
        self.assertEqual(holder.finish(own)[1], b"mine\n")

    def test_the_death_of_the_holder_frees_it_and_ends_what_it_ran(self):
        box = self.shared()
        process, _ = self.holder(box, "one", script="sleep 4004 & setsid sleep 4004 & wait")
        wait_for(lambda: len(self.running("4004")) == 2, "the command")
        other = self.client(box)
        helper = self.client(box)
        helper.present(1)
        command = helper.shell("sleep 4005")
        with self.refused(errno.EBUSY, "held by 'one'"):
            other.attach("two")
        process.send_signal(signal.SIGKILL)
        helper.lost()
        self.assertEqual(other.attach("two")[Tag.LEASE_GENERATION], 2)  # nobody has to wait
        self.assertEqual(other.run("echo next"), (0, "next\n"))
        self.assertEqual(self.running("4004") + self.running("4005"), [])
        self.assertEqual(helper.finish(command)[0][Tag.REASON], Reason.KILLED)
        self.assertEqual(other.ps(), [])

    def test_nobody_waits_for_a_lease_whose_holder_has_gone(self):
        box = self.shared()
        for i in range(100):
            first, second = self.client(box), self.client(box)
            first.attach("one")
            first.close()
            self.assertEqual(second.attach("two")[Tag.LEASE_GENERATION], 2 * i + 2)
            second.close()

    def test_it_is_kept_for_a_holder_that_has_asked_for_that(self):
        box = self.shared()
        process, _ = self.holder(box, "one", keep_us=3600 * SECOND_US)
        other = self.client(box)
        before = time.time()
        process.send_signal(signal.SIGKILL)
        state, holder, generation, until = wait_for(
            lambda: other.lease() if other.lease()[0] == KEPT else None, "a lease that is kept")
        self.assertEqual((state, holder, generation), (KEPT, "one", 1))
        self.assertAlmostEqual(until / SECOND_US, before + 3600, delta=60)
        with self.refused(errno.EBUSY, "kept for 'one'", "'two'"):
            other.attach("two")
        with self.refused(errno.EBUSY, "kept for 'one'"):
            other.run("true")
        with self.refused(errno.EROFS):
            self.files(other).write("file", b"other", inline=True)
        self.assertEqual(other.ps(), [])
        with self.refused(errno.EACCES, "over"):
            self.client(box).present(1)
        retry = self.client(box)
        self.assertEqual(retry.attach("one")[Tag.LEASE_GENERATION], 2)
        self.assertEqual(retry.run("echo again"), (0, "again\n"))
        self.assertEqual(other.lease(), (HELD, "one", 2, 0))

    def test_it_is_free_when_nobody_came_back_in_time(self):
        box = self.shared()
        process, _ = self.holder(box, "one", keep_us=SECOND_US // 4)
        process.send_signal(signal.SIGKILL)
        process.wait()
        other = self.client(box)
        wait_for(lambda: other.lease()[0] == FREE, "the end of the time")
        self.assertEqual(other.attach("two")[Tag.LEASE_GENERATION], 2)

    def test_nothing_is_kept_beyond_the_lifetime(self):
        box = self.shared("--lifetime", "1h")
        client, other = self.client(box), self.client(box)
        client.attach("one", keep_us=2**64 - 1)
        client.close()
        lease = wait_for(lambda: other.lease() if other.lease()[0] == KEPT else None, "a lease that is kept")
        self.assertLessEqual(lease[3], other.inspect()[Tag.EXPIRES_AT_US] + SECOND_US)

    def test_releasing_gives_it_back_and_ends_what_ran(self):
        box = self.shared()
        holder, helper, other = self.client(box), self.client(box), self.client(box)
        helper.present(holder.attach("one", keep_us=3600 * SECOND_US)[Tag.LEASE_GENERATION])
        command = holder.shell("sleep 4006")
        wait_for(lambda: self.running("4006"), "the command")
        helper.release()  # of no effect: it only acts for the holder
        other.release()
        self.assertEqual(other.lease(), (HELD, "one", 1, 0))
        holder.release()
        helper.lost()
        self.assertEqual(other.lease(), (FREE, None, 1, 0))
        self.assertEqual(holder.finish(command)[0][Tag.REASON], Reason.KILLED)
        self.assertEqual(self.running("4006"), [])
        holder.release()  # twice is once
        self.assertEqual(holder.run("echo like others"), (0, "like others\n"))
        self.assertEqual(other.attach("two")[Tag.LEASE_GENERATION], 2)
        holder.release()
        self.assertEqual(other.lease(), (HELD, "two", 2, 0))


class Events(LeaseTest):
    def test_each_step_is_an_event(self):
        box = self.shared()
        first, second = self.client(box), self.client(box)
        first.attach("one")
        with self.refused(errno.EBUSY):
            second.attach("two")
        second.attach("one", keep_us=1000)
        second.close()
        watcher = self.client(box)
        wait_for(lambda: watcher.lease()[0] == FREE, "the end of the time")
        watcher.attach("two")
        watcher.release()
        lines = [json.loads(line) for line in (self.state / box / "events.jsonl").read_text().splitlines()]
        told = [(e["event"], e["holder"], e["generation"]) for e in lines if e["kind"] == "lease"]
        self.assertEqual(told, [
            ("attached", "one", 1), ("refused", "two", 1), ("lost", "one", 1), ("attached", "one", 2),
            ("lost", "one", 2), ("expired", "one", 2), ("attached", "two", 3), ("released", "two", 3)])
        self.assertEqual({e["owner"] for e in lines if e["kind"] == "lease"}, {OWNER})


class Ending(LeaseTest):
    def gone(self, box):
        wait_for(lambda: not (self.state / box).exists(), "the end of the sandbox")

    def test_ending_it_needs_its_owner(self):
        box = self.shared()
        client = self.client(box)
        for owner in ((), ((Tag.OWNER, "c/d"),), ((Tag.OWNER, ""),)):
            with self.refused(errno.EACCES, "'a/b'"):
                client.end(*owner)
        self.assertEqual(client.run("echo here"), (0, "here\n"))
        client.end((Tag.OWNER, OWNER))
        self.gone(box)

    def test_ending_what_is_held_needs_force(self):
        box = self.shared()
        holder, other = self.client(box), self.client(box)
        holder.attach("one")
        with self.refused(errno.EBUSY, "held by 'one'"):
            other.end((Tag.OWNER, OWNER))
        with self.refused(errno.EACCES, "'a/b'"):
            other.end()
        other.end((Tag.DESTROY_FLAGS, FORCE))
        holder.next(lambda m: m.type == Type.ENDED)
        self.gone(box)

    def test_one_without_an_owner_ends_for_whoever_asks(self):
        box = self.create()
        self.client(box).end()
        self.gone(box)


class OfAtoll(LeaseTest):
    """The words that atoll's own client has for what others hold."""

    def test_a_command_that_ran_when_it_was_taken_says_that_it_was_ended(self):
        box = self.shared()
        process = self.begin("exec", box, "--", "sh", "-c", "echo on; sleep 4180")
        self.assertEqual(process.stdout.readline(), b"on\n")
        self.client(box).attach("the other")
        result = process.result()
        self.assertEqual(result.status, 128 + signal.SIGKILL)
        self.assertIn(b"ended from outside", result.err)

    def test_a_command_says_who_holds_it(self):
        box = self.shared()
        self.client(box).attach("the other")
        result = self.atoll("exec", box, "--", "true")
        self.assertEqual(result.status, 125, result.err)
        self.assertIn(b"held by 'the other'", result.err)

    def test_writing_says_who_holds_it_and_reading_goes_on(self):
        box = self.shared()
        holder = self.client(box)
        holder.run("echo text > file")
        holder.attach("the other")
        self.assertEqual(self.good("read", box, "file"), b"text\n")
        folder = self.folder()
        (folder / "mine").write_bytes(b"mine")
        for attempt in (("write", box, "file"), ("cp", str(folder / "mine"), f"{box}:file"),
                        ("cp", str(folder), f"{box}:new")):
            result = self.atoll(*attempt, stdin=b"mine")
            self.assertNotEqual(result.status, 0)
            self.assertIn(b"held by 'the other'; reading is open to all", result.err, attempt)
        self.assertEqual(holder.run("cat file"), (0, "text\n"))


def archive(name, data):
    """A tar stream of one file."""
    out = BytesIO()
    with tarfile.open(fileobj=out, mode="w") as tar:
        info = tarfile.TarInfo(name)
        info.size = len(data)
        tar.addfile(info, BytesIO(data))
    return out.getvalue()


if __name__ == "__main__":
    unittest.main()
