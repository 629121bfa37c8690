# SPDX-License-Identifier: Apache-2.0
"""libatoll and its toolset for Python tests, by ctypes.

    with Context() as atoll, atoll.toolset("version: 1\\n") as tools:
        tools.open()
        tools.call("run_command", command="echo hi").text
        tools.close(True)

Raises Unavailable where the library cannot be loaded into Python: a build with sanitizers.
"""
import ctypes
import functools
import json
import os
from ctypes import (
    CDLL, POINTER, Structure, byref, c_bool, c_char, c_char_p, c_int, c_size_t, c_uint, c_uint32,
    c_uint64, c_void_p, string_at)
from dataclasses import dataclass, field
from pathlib import Path

FOREVER = 2**64 - 1
LIMIT_S = 60  # for one operation; far more than any should need
RECOVERABLE, TOO_LARGE, TERMINAL, USAGE = range(4)
MCP, ANTHROPIC, OPENAI = range(3)
OWNED = 1
EINPROGRESS = 115


class Unavailable(Exception):
    """There is no library that can be loaded."""


class AtollError(Exception):
    """How an operation failed."""

    def __init__(self, code, cls, message, remedy):
        self.code, self.cls, self.message, self.remedy = code, cls, message, remedy
        super().__init__(f"{message}. {remedy}" if remedy else message)


class CError(Structure):
    _fields_ = [("code", c_int), ("cls", c_int), ("message", c_char * 1024), ("remedy", c_char * 384)]

    def exception(self):
        return AtollError(self.code, self.cls, self.message.decode(), self.remedy.decode())


class COptions(Structure):
    _fields_ = [
        ("sandbox", c_char_p), ("beside", c_void_p), ("bytes", c_bool), ("holder", c_char_p), ("keep_us", c_uint64),
        ("lease", c_uint32)]


class CTool(Structure):
    _fields_ = [
        ("name", c_char_p), ("description", c_char_p), ("schema", c_char_p), ("output_schema", c_char_p),
        ("code_argument", c_char_p), ("code_language", c_char_p),
        ("sequential", c_bool), ("retries", c_uint)]


class CDenial(Structure):
    _fields_ = [
        ("protocol", c_char_p), ("name", c_char_p), ("address", c_char_p), ("port", c_uint32),
        ("rule", c_char_p), ("reason", c_char_p), ("bytes", c_uint64), ("at_us", c_uint64),
        ("repeated", c_uint64)]


class CExit(Structure):
    _fields_ = [
        ("exit_code", c_int), ("signal", c_int), ("reason", c_char_p), ("problem", c_char_p),
        ("status", c_int), ("command", c_uint32), ("wall_us", c_uint64), ("user_us", c_uint64),
        ("system_us", c_uint64), ("peak_rss_bytes", c_uint64), ("stdout_total", c_uint64),
        ("stderr_total", c_uint64), ("denials", POINTER(CDenial)), ("n_denials", c_size_t),
        ("more_denials", c_uint64)]


class CAnswer(Structure):
    _fields_ = [
        ("text", c_void_p), ("len", c_size_t), ("retry", c_bool), ("failures", c_uint),
        ("replaced", c_bool), ("exit", POINTER(CExit)), ("structured", c_char_p), ("bytes", c_void_p),
        ("n_bytes", c_size_t), ("type", c_char_p)]


class CProgress(Structure):
    _fields_ = [
        ("running", c_bool), ("elapsed_us", c_uint64), ("timeout_us", c_uint64), ("news", c_void_p),
        ("len", c_size_t), ("dropped", c_uint64)]


class CExported(Structure):
    _fields_ = [
        ("path", c_char_p), ("url", c_char_p), ("sha256", c_char_p), ("files", c_uint64),
        ("bytes", c_uint64)]


# Name: what it returns, what it takes.
FUNCTIONS = {
    "atoll_new": (c_int, [POINTER(c_void_p), POINTER(CError)]),
    "atoll_free": (None, [c_void_p]),
    "atoll_set_program": (c_int, [c_void_p, c_char_p]),
    "atoll_fd": (c_int, [c_void_p]),
    "atoll_step": (c_int, [c_void_p]),
    "atoll_op_done": (c_bool, [c_void_p]),
    "atoll_wait": (c_int, [c_void_p, c_uint64]),
    "atoll_op_error": (POINTER(CError), [c_void_p]),
    "atoll_op_cancel": (None, [c_void_p]),
    "atoll_op_set_timeout": (None, [c_void_p, c_uint64]),
    "atoll_op_free": (None, [c_void_p]),
    "atoll_op_count": (c_size_t, [c_void_p]),
    "atoll_op_exported": (POINTER(CExported), [c_void_p, c_size_t]),
    "atoll_op_warning": (c_char_p, [c_void_p, c_size_t]),
    "atoll_op_progress": (c_uint64, [c_void_p]),
    "atoll_op_answer": (POINTER(CAnswer), [c_void_p]),
    "atoll_op_sandbox": (c_void_p, [c_void_p]),
    "atoll_spec_new": (c_void_p, []),
    "atoll_spec_free": (None, [c_void_p]),
    "atoll_spec_read": (c_int, [c_void_p, c_char_p, c_size_t, c_bool, c_char_p, POINTER(CError)]),
    "atoll_spec_set": (c_int, [c_void_p, c_char_p, c_char_p, POINTER(CError)]),
    "atoll_create": (c_void_p, [c_void_p, c_void_p, c_uint]),
    "atoll_open": (c_void_p, [c_void_p, c_char_p]),
    "atoll_sandbox_id": (c_char_p, [c_void_p]),
    "atoll_sandbox_free": (None, [c_void_p]),
    "atoll_destroy": (c_void_p, [c_void_p]),
    "atoll_toolset_new": (c_int, [c_void_p, c_void_p, POINTER(COptions), POINTER(c_void_p), POINTER(CError)]),
    "atoll_toolset_free": (None, [c_void_p]),
    "atoll_toolset_id": (c_char_p, [c_void_p]),
    "atoll_toolset_mask": (c_int, [c_void_p, c_char_p, c_size_t]),
    "atoll_toolset_tool": (POINTER(CTool), [c_void_p, c_size_t]),
    "atoll_toolset_render": (c_void_p, [c_void_p, c_int]),
    "atoll_toolset_open": (c_void_p, [c_void_p]),
    "atoll_tool_call": (c_void_p, [c_void_p, c_char_p, c_char_p, c_size_t]),
    "atoll_tool_follow": (c_int, [c_void_p]),
    "atoll_tool_progress": (c_int, [c_void_p, POINTER(CProgress)]),
    "atoll_toolset_note": (c_char_p, [c_void_p, c_size_t]),
    "atoll_toolset_close": (c_void_p, [c_void_p, c_bool]),
    "atoll_toolset_sandbox": (c_char_p, [c_void_p]),
}


def find():
    """The library that belongs to the program under test: beside it, or installed beside the tests."""
    root = Path(__file__).resolve().parents[2]
    program = Path(os.environ.get("ATOLL") or root / "build/atoll")
    beside = program.parent / "libatoll.so.0"
    return beside if beside.exists() else next((root / "installed").rglob("libatoll.so.0"), None)


@functools.cache
def library():
    """The library, loaded."""
    path = find()
    if path is None:
        raise Unavailable("there is no libatoll.so.0 beside the program under test")
    if b"__asan_" in path.read_bytes():
        raise Unavailable("a library with sanitizers cannot be loaded into Python")
    lib = CDLL(str(path))
    for name, (result, arguments) in FUNCTIONS.items():
        function = getattr(lib, name)
        function.restype, function.argtypes = result, arguments
    return lib


def text_of(value):
    return None if value is None else value.decode()


@dataclass
class Exit:
    """How a command ended."""

    status: int
    signal: int
    reason: str
    problem: str
    stdout_total: int


@dataclass
class Answer:
    """What a model is told."""

    text: str
    retry: bool
    failures: int
    replaced: bool
    exit: Exit = None
    raw: bytes = field(default=b"", repr=False)
    facts: dict = None  # the structured form
    bytes: bytes = None  # of a file that is no text
    type: str = None


@dataclass
class Progress:
    """How far a call is."""

    running: bool
    elapsed: float
    timeout: float
    news: str
    dropped: int


class Operation:
    """An operation under way. What it gave can be asked for until it is freed."""

    def __init__(self, context, pointer):
        if not pointer:
            raise MemoryError
        self.context, self.pointer = context, pointer
        context.operations.add(self)

    @property
    def done(self):
        return library().atoll_op_done(self.pointer)

    def wait(self, limit=LIMIT_S):
        """Drives the context until it is done; raises AtollError when it failed."""
        if library().atoll_wait(self.pointer, int(limit * 1_000_000)) == -EINPROGRESS:
            raise TimeoutError(f"an operation was not done within {limit} s")
        if self.error:
            raise self.error
        return self

    @property
    def error(self):
        found = library().atoll_op_error(self.pointer)
        return found.contents.exception() if found else None

    def cancel(self):
        library().atoll_op_cancel(self.pointer)

    def set_timeout(self, seconds):
        library().atoll_op_set_timeout(self.pointer, int(seconds * 1_000_000))

    def free(self):
        if self.pointer:
            library().atoll_op_free(self.pointer)
            self.context.operations.discard(self)
        self.pointer = None

    @property
    def answer(self):
        """Of a tool call that ended well."""
        found = library().atoll_op_answer(self.pointer)
        if not found:
            return None
        x = found.contents
        raw = string_at(x.text, x.len)
        end = None
        if x.exit:
            e = x.exit.contents
            end = Exit(e.status, e.signal, text_of(e.reason), text_of(e.problem), e.stdout_total)
        facts = None if x.structured is None else json.loads(x.structured)
        held = string_at(x.bytes, x.n_bytes) if x.bytes else None
        return Answer(raw.decode(), x.retry, x.failures, x.replaced, end, raw, facts, held, text_of(x.type))

    def follow(self):
        """Of a tool call: its command's output is kept for progress()."""
        return library().atoll_tool_follow(self.pointer)

    def progress(self):
        """Of a tool call under way; a negative errno when it is none."""
        x = CProgress()
        if (result := library().atoll_tool_progress(self.pointer, byref(x))) < 0:
            return result
        news = string_at(x.news, x.len).decode()
        return Progress(x.running, x.elapsed_us / 1e6, x.timeout_us / 1e6, news, x.dropped)

    @property
    def warnings(self):
        found = []
        while (text := library().atoll_op_warning(self.pointer, len(found))) is not None:
            found.append(text.decode())
        return found

    @property
    def notes(self):
        """Of an open or close: what is worth a line in a log."""
        found = []
        while (text := library().atoll_toolset_note(self.pointer, len(found))) is not None:
            found.append(text.decode())
        return found

    @property
    def exported(self):
        """Path, URL, sum, files and bytes of what was published."""
        rows = [library().atoll_op_exported(self.pointer, i).contents
                for i in range(library().atoll_op_count(self.pointer))]
        return [(r.path.decode(), r.url.decode(), text_of(r.sha256), r.files, r.bytes) for r in rows]


class Sandbox:
    """A handle on a sandbox."""

    def __init__(self, context, pointer):
        self.context, self.pointer = context, pointer
        self.id = library().atoll_sandbox_id(pointer).decode()
        context.sandboxes.add(self)

    def destroy(self):
        Operation(self.context, library().atoll_destroy(self.pointer)).wait().free()
        self.free()

    def free(self):
        if self.pointer:
            library().atoll_sandbox_free(self.pointer)
            self.context.sandboxes.discard(self)
        self.pointer = None


class Toolset:
    """A toolset; a run lasts from open() to close()."""

    def __init__(self, context, pointer):
        self.context, self.pointer = context, pointer
        context.toolsets.append(self)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.free()

    def free(self):
        if self.pointer:
            library().atoll_toolset_free(self.pointer)
            self.context.toolsets.remove(self)
        self.pointer = None

    # A run, each step waited for

    def open(self):
        return self.start_open().wait()

    def call(self, name, arguments=None, **named):
        """One call from start to end: its answer. Arguments as JSON text or by name."""
        operation = self.start(name, arguments, **named)
        try:
            return operation.wait().answer
        finally:
            operation.free()

    def close(self, succeeded=True):
        return self.start_close(succeeded).wait()

    # The same, to be driven by the caller

    def start_open(self):
        return Operation(self.context, library().atoll_toolset_open(self.pointer))

    def start(self, name, arguments=None, **named):
        data = json.dumps(named) if arguments is None else arguments
        data = data.encode() if isinstance(data, str) else data
        return Operation(self.context, library().atoll_tool_call(self.pointer, name.encode(), data, len(data)))

    def start_close(self, succeeded=True):
        return Operation(self.context, library().atoll_toolset_close(self.pointer, succeeded))

    # What it says of itself

    @property
    def id(self):
        return library().atoll_toolset_id(self.pointer).decode()

    @property
    def sandbox(self):
        return text_of(library().atoll_toolset_sandbox(self.pointer))

    @property
    def tools(self):
        """The tools by name, each as a dictionary."""
        found, i = {}, 0
        while tool := library().atoll_toolset_tool(self.pointer, i):
            row = {name: getattr(tool.contents, name) for name, _ in CTool._fields_}
            row = {name: text_of(v) if isinstance(v, bytes) else v for name, v in row.items()}
            found[row["name"]] = row
            i += 1
        return found

    def render(self, form):
        """The tools as the JSON text that a model's request takes."""
        pointer = library().atoll_toolset_render(self.pointer, form)
        text = string_at(pointer).decode()
        CLIBRARY.free(c_void_p(pointer))
        return text

    def mask(self, secret):
        return library().atoll_toolset_mask(self.pointer, secret, len(secret))


CLIBRARY = CDLL(None)
CLIBRARY.free.argtypes = [c_void_p]
CLIBRARY.free.restype = None


class Context:
    """A context, with everything that was made from it."""

    def __init__(self, program=None):
        self.pointer = c_void_p()
        self.operations, self.sandboxes, self.toolsets = set(), set(), []
        self._check(library().atoll_new, byref(self.pointer))
        program = program or os.environ.get("ATOLL")
        if program:
            library().atoll_set_program(self.pointer, os.fsencode(os.path.abspath(program)))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.free()

    def free(self):
        if not self.pointer:
            return
        for toolset in list(self.toolsets):
            toolset.free()
        for thing in list(self.operations) + list(self.sandboxes):
            thing.free()
        library().atoll_free(self.pointer)
        self.pointer = None

    @staticmethod
    def _check(function, *arguments):
        error = CError()
        if function(*arguments, byref(error)) < 0:
            raise error.exception()

    def fd(self):
        return library().atoll_fd(self.pointer)

    def step(self):
        assert library().atoll_step(self.pointer) == 0

    def _spec(self, text, settings):
        spec = library().atoll_spec_new()
        try:
            if text:
                data = text.encode()
                self._check(library().atoll_spec_read, spec, data, len(data), False, None)
            for name, value in settings.items():
                for one in value if isinstance(value, (list, tuple)) else [value]:
                    self._check(library().atoll_spec_set, spec, name.encode(), os.fsencode(str(one)))
        except AtollError:
            library().atoll_spec_free(spec)
            raise
        return spec

    def toolset(self, text=None, settings=None, sandbox=None, beside=None, files_as_bytes=False, holder=None,
                keep=0, lease=0):
        """A toolset from a spec as YAML text, and single fields: {"toolset.tool_prefix": "a"}."""
        spec = self._spec(text, settings or {})
        options = COptions(sandbox.encode() if sandbox else None, beside.pointer if beside else None,
                           files_as_bytes, holder.encode() if holder is not None else None, int(keep * 1_000_000), lease)
        made = c_void_p()
        try:
            self._check(library().atoll_toolset_new, self.pointer, spec, byref(options), byref(made))
        finally:
            library().atoll_spec_free(spec)
        return Toolset(self, made)

    def create(self, text=None, settings=None, flags=0):
        """A sandbox that stands; without flags it is held."""
        spec = self._spec(text, settings or {})
        operation = Operation(self, library().atoll_create(self.pointer, spec, flags))
        library().atoll_spec_free(spec)
        operation.wait()
        sandbox = Sandbox(self, library().atoll_op_sandbox(operation.pointer))
        operation.free()
        return sandbox
