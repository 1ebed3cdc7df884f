"""libtessera.so by ctypes: the calls of capi/tessera.h and the structures of Arrow's C interfaces. Calls release the GIL."""

from __future__ import annotations

import ctypes
import os
from ctypes import POINTER, c_char_p, c_double, c_int, c_int32, c_int64, c_size_t, c_uint64, c_void_p

from .exceptions import error_of

TYPE_CHECKING = False
if TYPE_CHECKING:  # (typing takes a while to import)
    from collections.abc import Callable
    from typing import Any


class ArrowSchema(ctypes.Structure):
    """As in Arrow's C data interface."""


ArrowSchema._fields_ = [
    ("format", c_char_p), ("name", c_char_p), ("metadata", c_void_p), ("flags", c_int64), ("n_children", c_int64),
    ("children", POINTER(POINTER(ArrowSchema))), ("dictionary", POINTER(ArrowSchema)),
    ("release", ctypes.CFUNCTYPE(None, POINTER(ArrowSchema))), ("private_data", c_void_p)]


class ArrowArray(ctypes.Structure):
    """As in Arrow's C data interface."""


ArrowArray._fields_ = [
    ("length", c_int64), ("null_count", c_int64), ("offset", c_int64), ("n_buffers", c_int64), ("n_children", c_int64),
    ("buffers", POINTER(c_void_p)), ("children", POINTER(POINTER(ArrowArray))), ("dictionary", POINTER(ArrowArray)),
    ("release", ctypes.CFUNCTYPE(None, POINTER(ArrowArray))), ("private_data", c_void_p)]


class ArrowArrayStream(ctypes.Structure):
    """As in Arrow's C stream interface."""


ArrowArrayStream._fields_ = [
    ("get_schema", ctypes.CFUNCTYPE(c_int, POINTER(ArrowArrayStream), POINTER(ArrowSchema))),
    ("get_next", ctypes.CFUNCTYPE(c_int, POINTER(ArrowArrayStream), POINTER(ArrowArray))),
    ("get_last_error", ctypes.CFUNCTYPE(c_char_p, POINTER(ArrowArrayStream))),
    ("release", ctypes.CFUNCTYPE(None, POINTER(ArrowArrayStream))), ("private_data", c_void_p)]


class _Error(ctypes.Structure):
    _fields_ = [("sqlstate", ctypes.c_char * 6), ("position", c_int32), ("message", c_char_p), ("hint", c_char_p)]


class Options(ctypes.Structure):
    _fields_ = [("size", c_size_t), ("read_only", c_int), ("threads", c_int), ("memory_limit", c_uint64),
                ("gpu_memory", c_uint64), ("device", c_char_p)]


ProgressFunction = ctypes.CFUNCTYPE(None, c_void_p, c_char_p, c_uint64, c_uint64)

_STREAM, _SCHEMA = POINTER(ArrowArrayStream), POINTER(ArrowSchema)
# Calls that may fail, without the place for their error.
_CALLS: dict[str, list[Any]] = {
    "open": [c_char_p, POINTER(Options), POINTER(c_void_p)],
    "connect": [c_void_p, POINTER(c_void_p)],
    "prepare": [c_void_p, c_void_p, c_size_t, POINTER(c_void_p), POINTER(c_void_p)],
    "describe": [c_void_p, _SCHEMA, _SCHEMA],
    "bind_null": [c_void_p, c_int],
    "bind_boolean": [c_void_p, c_int, c_int],
    "bind_int64": [c_void_p, c_int, c_int64],
    "bind_double": [c_void_p, c_int, c_double],
    "bind_text": [c_void_p, c_int, c_char_p, c_size_t],
    "bind_bytea": [c_void_p, c_int, c_char_p, c_size_t],
    "bind_decimal": [c_void_p, c_int, c_char_p],
    "bind_date": [c_void_p, c_int, c_int32],
    "bind_time": [c_void_p, c_int, c_int64],
    "bind_timestamp": [c_void_p, c_int, c_int64],
    "bind_timestamptz": [c_void_p, c_int, c_int64],
    "bind_interval": [c_void_p, c_int, c_int32, c_int32, c_int64],
    "bind_uuid": [c_void_p, c_int, c_char_p],
    "execute": [c_void_p, _STREAM, POINTER(c_int64)],
    "copy_stream": [_STREAM, _STREAM],
    "register": [c_void_p, c_char_p, c_void_p, POINTER(c_int64)],
    "register_frame": [c_void_p, c_char_p, c_void_p, POINTER(c_int64)],
    "unregister": [c_void_p, c_char_p],
    "has_table": [c_void_p, c_char_p, POINTER(c_int)],
}

def _find() -> str:
    """The library: named by TESSERA_LIBRARY, beside this file as wheels have it, or in the build folder of the sources."""
    here = os.path.dirname(os.path.abspath(__file__))
    named = os.environ.get("TESSERA_LIBRARY")
    built = os.path.join(here, "..", "..", "build", "libtessera.so")
    for path in (named, os.path.join(here, "libtessera.so"), built):
        if path and os.path.exists(path):
            return path
    raise ImportError("libtessera.so is not there: `make build/libtessera.so` makes it, or TESSERA_LIBRARY names it")


path = _find()
_library = ctypes.CDLL(path)


def _function(name: str, result: Any, *arguments: Any) -> Callable[..., Any]:
    function = getattr(_library, "tessera_" + name)
    function.restype = result
    function.argtypes = list(arguments)
    return function


_calls = {name: _function(name, c_int, *arguments, POINTER(_Error)) for name, arguments in _CALLS.items()}
_error_clear = _function("error_clear", None, POINTER(_Error))
version = _function("version", c_char_p)
close = _function("close", None, c_void_p)
disconnect = _function("disconnect", None, c_void_p)
finalize = _function("finalize", None, c_void_p)
cancel = _function("cancel", None, c_void_p)
set_interruptible = _function("set_interruptible", None, c_void_p, c_int)
set_progress = _function("set_progress", None, c_void_p, ProgressFunction, c_void_p)
in_transaction = _function("in_transaction", c_int, c_void_p)
warning = _function("warning", c_char_p, c_void_p)
command_tag = _function("command_tag", c_char_p, c_void_p)


def call(name: str, *arguments: Any, text: str | None = None) -> None:
    """tessera_<name>. `text`: the SQL, for errors that have a position in it. Raises an Error."""
    error = _Error(position=-1)
    if _calls[name](*arguments, ctypes.byref(error)) != 0:
        try:
            raise error_of(error.sqlstate.decode(), (error.message or b"out of memory").decode(),
                           (error.hint or b"").decode(), error.position, text)
        finally:
            _error_clear(error)


_capsule_new = ctypes.pythonapi.PyCapsule_New
_capsule_new.restype = ctypes.py_object
_capsule_new.argtypes = [c_void_p, c_char_p, c_void_p]
_capsule_pointer = ctypes.pythonapi.PyCapsule_GetPointer
_capsule_pointer.restype = c_void_p
_capsule_pointer.argtypes = [ctypes.py_object, c_char_p]
_STREAM_NAME = b"arrow_array_stream"
_exported: dict[int, ArrowArrayStream] = {}


@ctypes.CFUNCTYPE(None, c_void_p)
def _release_capsule(capsule: int) -> None:
    # (The capsule is being destroyed: it must get no reference, so it goes by its address.)
    address = _pointer_of_address(capsule, _STREAM_NAME)
    stream = _exported.pop(address, None)
    if stream is not None:
        release(stream)


_pointer_of_address = ctypes.PYFUNCTYPE(c_void_p, c_void_p, c_char_p)(("PyCapsule_GetPointer", ctypes.pythonapi))


def release(owned: Any) -> None:
    """What a structure of Arrow owns, if it owns anything."""
    if owned.release:
        owned.release(ctypes.byref(owned))


def to_capsule(stream: ArrowArrayStream) -> object:
    """The stream as Arrow's PyCapsule interface has it; it is no longer the caller's."""
    address = ctypes.addressof(stream)
    _exported[address] = stream
    return _capsule_new(address, _STREAM_NAME, ctypes.cast(_release_capsule, c_void_p))


def address_of_capsule(capsule: object) -> int:
    return _capsule_pointer(capsule, _STREAM_NAME)
