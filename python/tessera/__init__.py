"""Tessera: an analytic SQL database for GPUs and clusters.

    import tessera
    tessera.connect("my.db").sql("SELECT * FROM t").df()

Also a driver of PEP 249: connect(), cursors, execute() with ? for parameters, the exceptions.
"""

from __future__ import annotations

import sys

from . import _library
from ._connection import Connection, Cursor, connect
from ._result import Result
from .exceptions import (DatabaseError, DataError, Error, IntegrityError, InterfaceError, InternalError,
                         NotSupportedError, OperationalError, ProgrammingError, Warning)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

__version__ = _library.version().decode()
#: Where the shared library is, for ADBC's driver manager.
library_path = _library.path

apilevel = "2.0"
threadsafety = 1
paramstyle = "qmark"


class _TypeGroup:
    """A type object of PEP 249: equal to the type codes of its types."""

    def __init__(self, *names: str) -> None:
        self._names = names

    def __eq__(self, code: object) -> bool:
        return isinstance(code, str) and code.partition("(")[0] in self._names

    def __ne__(self, code: object) -> bool:
        return not self == code

    __hash__ = None  # type: ignore[assignment]


STRING = _TypeGroup("TEXT", "ENUM", "UUID")
BINARY = _TypeGroup("BYTEA")
NUMBER = _TypeGroup("BOOLEAN", "SMALLINT", "INTEGER", "BIGINT", "REAL", "DOUBLE PRECISION", "DECIMAL")
DATETIME = _TypeGroup("DATE", "TIME", "TIMESTAMP", "TIMESTAMP WITH TIME ZONE", "INTERVAL")
ROWID = _TypeGroup()

Binary = bytes


def __getattr__(name: str) -> Any:
    import datetime

    made = {"Date": datetime.date, "Time": datetime.time, "Timestamp": datetime.datetime,
            "DateFromTicks": datetime.date.fromtimestamp, "TimestampFromTicks": datetime.datetime.fromtimestamp,
            "TimeFromTicks": lambda ticks: datetime.datetime.fromtimestamp(ticks).time()}
    if name in made:
        return made[name]
    raise AttributeError(f"module 'tessera' has no attribute '{name}'")


_default: Connection | None = None


def sql(query: str, parameters: Sequence[Any] | None = None) -> Result:
    """Connection.sql of a database in memory that the whole process has."""
    global _default
    if _default is None:
        _default = connect()
    return _default._run(query, parameters, sys._getframe(1))


__all__ = ["BINARY", "Binary", "Connection", "Cursor", "DATETIME", "DataError", "DatabaseError", "Error", "IntegrityError",
           "InterfaceError", "InternalError", "NUMBER", "NotSupportedError", "OperationalError", "ProgrammingError", "ROWID",
           "Result", "STRING", "Warning", "apilevel", "connect", "library_path", "paramstyle", "sql", "threadsafety"]
