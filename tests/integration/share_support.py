# SPDX-License-Identifier: Apache-2.0
"""Handles of libatoll that hold a sandbox, for tests."""
from ctypes import POINTER, Structure, byref, c_bool, c_char_p, c_uint32, c_uint64, c_void_p
from dataclasses import dataclass

import libatoll
from libatoll import FOREVER, Operation, Sandbox, text_of


class CAttach(Structure):
    _fields_ = [("owner", c_char_p), ("holder", c_char_p), ("keep_us", c_uint64)]


class CAttached(Structure):
    _fields_ = [
        ("generation", c_uint32), ("left_us", c_uint64), ("network", c_char_p), ("workdir", c_char_p),
        ("warning", c_char_p)]


class CExec(Structure):
    _fields_ = [("argv", POINTER(c_char_p)), ("rest", c_uint64 * 16)]  # zeros: no input, no timeout


FUNCTIONS = {
    "atoll_attach": (c_void_p, [c_void_p, c_char_p, POINTER(CAttach)]),
    "atoll_op_attached": (POINTER(CAttached), [c_void_p]),
    "atoll_open_lease": (c_void_p, [c_void_p, c_char_p, c_uint32]),
    "atoll_lease": (c_uint32, [c_void_p]),
    "atoll_release": (c_void_p, [c_void_p]),
    "atoll_destroy_as": (c_void_p, [c_void_p, c_char_p, c_bool]),
    "atoll_exec": (c_void_p, [c_void_p, POINTER(CExec)]),
    "atoll_write_bytes": (c_void_p, [c_void_p, c_char_p, c_char_p, c_uint64, c_uint32]),
}


def library():
    lib = libatoll.library()
    for name, (result, arguments) in FUNCTIONS.items():
        function = getattr(lib, name)
        function.restype, function.argtypes = result, arguments
    return lib


@dataclass
class Attached:
    """What an attach has found."""

    generation: int
    left: float  # seconds; None: no end, or not known
    network: str
    workdir: str
    warning: str


class Handle(Sandbox):
    """A handle that holds a sandbox, acts for who does, or neither."""

    attached = None

    @property
    def lease(self):
        return library().atoll_lease(self.pointer)

    def release(self):
        self.wait(library().atoll_release(self.pointer))

    def destroy_as(self, owner, force=False):
        self.wait(library().atoll_destroy_as(self.pointer, owner and owner.encode(), force))

    def exec(self, *words):
        argv = (c_char_p * (len(words) + 1))(*(w.encode() for w in words), None)
        self.wait(library().atoll_exec(self.pointer, byref(CExec(argv))))

    def write(self, path, data):
        self.wait(library().atoll_write_bytes(self.pointer, path.encode(), data, len(data), 2**32 - 1))

    def wait(self, pointer):
        operation = Operation(self.context, pointer)
        try:
            operation.wait()
        finally:
            operation.free()


def handle(context, pointer):
    """The handle that an attach or open gives, waited for."""
    operation = Operation(context, pointer)
    try:
        operation.wait()
        found = Handle(context, library().atoll_op_sandbox(operation.pointer))
        x = library().atoll_op_attached(operation.pointer)
        if x:
            x = x.contents
            left = None if x.left_us == FOREVER else x.left_us / 1e6
            found.attached = Attached(
                x.generation, left, text_of(x.network), text_of(x.workdir), text_of(x.warning))
        return found
    finally:
        operation.free()


def attach(context, sandbox, owner, holder, keep=0):
    x = CAttach(owner.encode(), holder.encode(), int(keep * 1e6))
    return handle(context, library().atoll_attach(context.pointer, sandbox.encode(), byref(x)))


def open_lease(context, sandbox, generation):
    return handle(context, library().atoll_open_lease(context.pointer, sandbox.encode(), generation))


def open_plain(context, sandbox):
    return handle(context, library().atoll_open(context.pointer, sandbox.encode()))
