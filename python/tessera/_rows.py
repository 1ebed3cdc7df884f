"""Batches of Arrow as Python's values, and types of Arrow by their names in SQL."""

from __future__ import annotations

import ctypes
import datetime

from . import _library
from ._library import ArrowArray, ArrowArrayStream, ArrowSchema
from .exceptions import DataError

TYPE_CHECKING = False
if TYPE_CHECKING:
    import decimal
    from collections.abc import Iterator
    from typing import Any

_NAMES = {"n": "NULL", "b": "BOOLEAN", "s": "SMALLINT", "i": "INTEGER", "l": "BIGINT", "f": "REAL", "g": "DOUBLE PRECISION",
          "tdD": "DATE", "tsu:": "TIMESTAMP", "tsu:UTC": "TIMESTAMP WITH TIME ZONE", "ttu": "TIME", "tin": "INTERVAL",
          "u": "TEXT", "z": "BYTEA"}
_EPOCH = datetime.datetime(1970, 1, 1)
_EPOCH_UTC = datetime.datetime(1970, 1, 1, tzinfo=datetime.timezone.utc)
_EPOCH_DAY = datetime.date(1970, 1, 1).toordinal()


class Column:
    """A column of a result: its name, its type in SQL, and how its values are read."""

    def __init__(self, schema: ArrowSchema) -> None:
        self.name = (schema.name or b"").decode()
        self.format = schema.format.decode()
        self.is_enum = bool(schema.dictionary)
        self.is_uuid = bool(schema.metadata)
        self.precision: int | None = None
        self.scale: int | None = None
        if self.is_enum:
            self.type = "ENUM"
        elif self.is_uuid:
            self.type = "UUID"
        elif self.format.startswith("d:"):
            self.precision, self.scale = map(int, self.format[2:].split(","))
            self.type = f"DECIMAL({self.precision},{self.scale})"
        else:
            self.type = _NAMES[self.format]


def _bits(address: int, offset: int, length: int) -> str:
    """'1' or '0' for each row."""
    count = offset + length
    number = int.from_bytes(ctypes.string_at(address, (count + 7) // 8), "little")
    return format(number, f"0{count}b")[::-1][offset:count]


def _numbers(array: ArrowArray, code: str, width: int, per_row: int = 1) -> list:
    """The second buffer as a list."""
    count = array.length * per_row
    if count == 0:
        return []
    buffer = ctypes.string_at(array.buffers[1] + array.offset * width * per_row, count * width)
    return memoryview(buffer).cast(code).tolist()  # type: ignore[call-overload]


def _texts(array: ArrowArray) -> list[bytes]:
    if array.length == 0:
        return []
    offsets = memoryview(ctypes.string_at(array.buffers[1] + array.offset * 4, (array.length + 1) * 4)).cast("i").tolist()
    base = offsets[0]
    data = ctypes.string_at(array.buffers[2] + base, offsets[-1] - base) if offsets[-1] > base else b""
    return [data[begin - base:end - base] for begin, end in zip(offsets, offsets[1:])]


def _strings(array: ArrowArray) -> list[str]:
    texts = _texts(array)
    return [text.decode() for text in texts]


def _uuids(array: ArrowArray) -> list:
    import uuid

    return [uuid.UUID(text) if text else None for text in _strings(array)]


def _decimals(array: ArrowArray, scale: int) -> list[decimal.Decimal]:
    import decimal

    words = _numbers(array, "q", 8, 2)
    scaled = decimal.Context(prec=76).scaleb  # all digits of a DECIMAL(38)
    return [scaled(decimal.Decimal(high << 64 | low & 0xFFFFFFFFFFFFFFFF), -scale)
            for low, high in zip(words[::2], words[1::2])]


def _out_of_range(column: Column) -> DataError:
    return DataError(f'column "{column.name}" has a {column.type} that Python\'s datetime has no room for')


def _valid_numbers(array: ArrowArray, code: str, width: int, per_row: int = 1) -> list:
    """The same; 0 where a row is NULL, because what stands there may be none of the type's values."""
    numbers = _numbers(array, code, width, per_row)
    if array.null_count == 0:
        return numbers
    valid = _bits(array.buffers[0], array.offset, array.length)
    return [number if valid[i // per_row] == "1" else 0 for i, number in enumerate(numbers)]


def _days(array: ArrowArray) -> list[datetime.date]:
    from_ordinal = datetime.date.fromordinal
    return [from_ordinal(_EPOCH_DAY + day) for day in _valid_numbers(array, "i", 4)]


def _moments(array: ArrowArray, epoch: datetime.datetime) -> list[datetime.datetime]:
    delta = datetime.timedelta
    return [epoch + delta(0, 0, micros) for micros in _valid_numbers(array, "q", 8)]


def _intervals(array: ArrowArray) -> list[datetime.timedelta]:
    days = _valid_numbers(array, "i", 4, 4)
    nanos = _valid_numbers(array, "q", 8, 2)
    return [datetime.timedelta(months * 30 + day, 0, nano // 1000)
            for months, day, nano in zip(days[::4], days[1::4], nanos[1::2])]


def _values(column: Column, array: ArrowArray) -> list:
    """Of all rows, whatever stands where they are NULL."""
    form = column.format
    if column.is_enum:
        labels = _strings(array.dictionary.contents)
        return [labels[place] if 0 <= place < len(labels) else None for place in _numbers(array, "h", 2)]
    if form == "l":
        return _numbers(array, "q", 8)
    if form == "i":
        return _numbers(array, "i", 4)
    if form == "s":
        return _numbers(array, "h", 2)
    if form == "g":
        return _numbers(array, "d", 8)
    if form == "f":
        return _numbers(array, "f", 4)
    if form == "u":
        return _uuids(array) if column.is_uuid else _strings(array)
    if form == "z":
        return _texts(array)
    if form == "b":
        return [bit == "1" for bit in _bits(array.buffers[1], array.offset, array.length)]
    if form.startswith("d:"):
        return _decimals(array, column.scale or 0)
    if form == "n":
        return [None] * array.length
    if form == "tin":
        return _intervals(array)
    if form == "ttu":
        return [moment.time() for moment in _moments(array, _EPOCH)]
    if form == "tdD":
        return _days(array)
    return _moments(array, _EPOCH if form == "tsu:" else _EPOCH_UTC)


def _with_nulls(column: Column, array: ArrowArray) -> list:
    try:
        values = _values(column, array)
    except (OverflowError, ValueError) as error:
        raise _out_of_range(column) from error
    if array.null_count == 0 or column.format == "n":
        return values
    valid = _bits(array.buffers[0], array.offset, array.length)
    return [value if bit == "1" else None for value, bit in zip(values, valid)]


def columns_of(stream: ArrowArrayStream) -> list[Column]:
    schema = ArrowSchema()
    if stream.get_schema(ctypes.byref(stream), ctypes.byref(schema)) != 0:
        raise MemoryError
    try:
        return [Column(schema.children[i].contents) for i in range(schema.n_children)]
    finally:
        _library.release(schema)


def batches_of(stream: ArrowArrayStream, columns: list[Column]) -> Iterator[list[tuple[Any, ...]]]:
    """The rows of each batch as tuples. The stream is released at the end."""
    try:
        while True:
            array = ArrowArray()
            if stream.get_next(ctypes.byref(stream), ctypes.byref(array)) != 0:
                raise MemoryError
            if not array.release:
                return
            try:
                lists = [_with_nulls(column, array.children[i].contents) for i, column in enumerate(columns)]
            finally:
                _library.release(array)
            yield list(zip(*lists))
    finally:
        _library.release(stream)

