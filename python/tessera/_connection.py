"""Connections and cursors."""

from __future__ import annotations

import ctypes
import datetime
import sys
import warnings
from collections.abc import Sequence

from . import _library, exceptions
from ._library import ArrowArrayStream, Options, ProgressFunction
from ._result import Result
from ._rows import _EPOCH, _EPOCH_DAY, _EPOCH_UTC
from .exceptions import InterfaceError, NotSupportedError, OperationalError, ProgrammingError

TYPE_CHECKING = False
if TYPE_CHECKING:  # (typing takes a while to import)
    from collections.abc import Callable, Iterable
    from typing import Any

    from ._result import Row

_MICROSECOND = datetime.timedelta(microseconds=1)
_words = None


def _names_in(sql: str) -> list[tuple[str, str]]:
    """What may be a variable's name in SQL: as Python spells it, and as the name of a table."""
    global _words
    if _words is None:
        import re

        _words = re.compile(r"'(?:[^']|'')*'|--[^\n]*|\"((?:[^\"]|\"\")*)\"|([A-Za-z_]\w*)").finditer
    found = {}
    for match in _words(sql):
        quoted, plain = match.groups()
        if quoted or plain:
            found[quoted or plain] = quoted or plain.lower()
    return list(found.items())


def _is_frame(value: object) -> bool:
    kind = type(value)
    module = kind.__module__.partition(".")[0]
    return (module in ("pandas", "polars") and kind.__name__ in ("DataFrame", "LazyFrame")) or (
        hasattr(kind, "__arrow_c_stream__") and kind.__name__ not in ("Series", "ChunkedArray"))


def _is_in_memory(value: object) -> bool:
    """Whether all its rows are there, so that they need not be copied to be read."""
    kind = type(value)
    return kind.__module__.partition(".")[0] in ("pandas", "polars") or kind.__name__ in ("Table", "RecordBatch")


# Words of statements that may mean columns which they do not name.
_WHOLE = {"natural", "table", "describe", "desc", "summarize", "copy", "columns", "pivot", "unpivot", "show"}


def _columns_of(sql: str, frame: Any) -> list[int] | None:
    """Which columns of a data frame of pandas a statement may read: those whose names are in it; None: all."""
    import re

    names = {name.lower() for _, name in _names_in(sql)}
    begins = re.match(r"(?i)[\s(]*(select|with)\b", sql)
    text = re.sub(r"(?i)\bcount\s*\(\s*\*\s*\)", "", sql)
    if "*" in text or ";" in text.rstrip().rstrip(";") or not names.isdisjoint(_WHOLE) or begins is None:
        return None
    return [number for number, column in enumerate(frame.columns) if str(column).lower() in names]


def _table_of(frame: Any, sql: str | None) -> Any:
    """A data frame of pandas as a table of pyarrow: what makes it costs for each column. `sql`: the statement that reads it;
    None: all columns are wanted."""
    import pyarrow

    columns = None if sql is None else _columns_of(sql, frame)
    if columns is not None and len(columns) < len(frame.columns):
        if not columns and len(frame.columns) > 0:  # its rows are counted
            return pyarrow.table({str(frame.columns[0]): pyarrow.nulls(len(frame))})
        frame = frame.iloc[:, columns]
    return pyarrow.Table.from_pandas(frame, preserve_index=False)


def _stream_of(value: Any, sql: str | None = None) -> object:
    """A capsule with the rows of a data frame or a table, of the columns that `sql` reads if it is given."""
    kind = type(value)
    if kind.__module__.partition(".")[0] == "pandas":
        value = _table_of(value, sql)
    elif kind.__name__ == "LazyFrame":
        value = value.collect()
    if not hasattr(value, "__arrow_c_stream__"):
        raise InterfaceError(f"{kind.__module__}.{kind.__name__} is no table: it takes what has __arrow_c_stream__, as tables of "
                             "pyarrow and data frames of pandas and polars have it")
    return value.__arrow_c_stream__()


def _bind(statement: ctypes.c_void_p, number: int, value: Any) -> None:
    call = _library.call
    kind = type(value).__name__
    if value is None or kind in ("NAType", "NaTType"):  # (the latter two are pandas')
        call("bind_null", statement, number)
    elif isinstance(value, bool):
        call("bind_boolean", statement, number, value)
    elif isinstance(value, int):
        if -(1 << 63) <= value < 1 << 63:
            call("bind_int64", statement, number, value)
        else:
            call("bind_decimal", statement, number, str(value).encode())
    elif isinstance(value, float):
        call("bind_double", statement, number, value)
    elif isinstance(value, str):
        text = value.encode()
        call("bind_text", statement, number, text, len(text))
    elif isinstance(value, (bytes, bytearray, memoryview)):
        call("bind_bytea", statement, number, bytes(value), len(value))
    elif kind == "Decimal":
        call("bind_decimal", statement, number, format(value, "f").encode())
    elif isinstance(value, datetime.datetime):
        if value.tzinfo is None:
            call("bind_timestamp", statement, number, (value - _EPOCH) // _MICROSECOND)
        else:
            call("bind_timestamptz", statement, number, (value - _EPOCH_UTC) // _MICROSECOND)
    elif isinstance(value, datetime.date):
        call("bind_date", statement, number, value.toordinal() - _EPOCH_DAY)
    elif isinstance(value, datetime.time):
        seconds = (value.hour * 60 + value.minute) * 60 + value.second
        call("bind_time", statement, number, seconds * 1_000_000 + value.microsecond)
    elif isinstance(value, datetime.timedelta):
        call("bind_interval", statement, number, 0, value.days, value.seconds * 1_000_000 + value.microseconds)
    elif kind == "UUID":
        call("bind_uuid", statement, number, value.bytes)
    elif kind in ("datetime64", "timedelta64"):  # (numpy's; as nanoseconds they would become integers)
        _bind(statement, number, value.astype(kind + "[us]").item())
    elif hasattr(value, "item") and getattr(value, "ndim", 0) == 0:  # numpy's
        _bind(statement, number, value.item())
    else:
        raise NotSupportedError(f"a value of type {kind} cannot be a parameter (${number})")


class _Statement:
    """A prepared statement, which is freed with the block."""

    def __init__(self, handle: ctypes.c_void_p, text: str) -> None:
        self._handle = handle
        self._text = text

    def __enter__(self) -> _Statement:
        return self

    def __exit__(self, *_: object) -> None:
        _library.finalize(self._handle)

    def bind(self, parameters: Sequence[Any]) -> None:
        if isinstance(parameters, (str, bytes)) or not isinstance(parameters, Sequence):
            raise ProgrammingError("parameters are a sequence, one for each ?: not a " + type(parameters).__name__)
        for number, value in enumerate(parameters, 1):
            _bind(self._handle, number, value)

    def run(self) -> Result:
        rows, count = ArrowArrayStream(), ctypes.c_int64(-1)
        _library.call("execute", self._handle, rows, count, text=self._text)
        return Result(rows, count.value, _library.command_tag(self._handle).decode())


class Connection:
    """A connection to a database. One thread at a time uses it; a thread each has its own by connect() or duplicate()."""

    Warning = exceptions.Warning
    Error = exceptions.Error
    InterfaceError = exceptions.InterfaceError
    DatabaseError = exceptions.DatabaseError
    DataError = exceptions.DataError
    OperationalError = exceptions.OperationalError
    IntegrityError = exceptions.IntegrityError
    InternalError = exceptions.InternalError
    ProgrammingError = exceptions.ProgrammingError
    NotSupportedError = exceptions.NotSupportedError

    def __init__(self, database: _Database, autocommit: bool = True) -> None:
        self._handle = ctypes.c_void_p()
        self._database = database
        self._progress: Any = None
        self._variables: set[str] = set()
        # Whether a statement outside of BEGIN and COMMIT is a transaction of its own; if not, the first one begins one.
        self.autocommit = autocommit
        _library.call("connect", database.handle, self._handle)
        _library.set_interruptible(self._handle, 1)

    # ---- The life of a connection

    def close(self) -> None:
        """Rolls back what is open. Results stay."""
        handle, self._handle = self._handle, ctypes.c_void_p()
        if handle:
            _library.disconnect(handle)

    def __del__(self, disconnect: Callable[..., Any] = _library.disconnect) -> None:
        # (The default is there when the interpreter ends and the module is gone.)
        if getattr(self, "_handle", None):
            disconnect(self._handle)

    def __enter__(self) -> Connection:
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        if kind is None and self._handle and self.in_transaction:
            self.commit()
        self.close()

    def _open(self) -> ctypes.c_void_p:
        if not self._handle:
            raise InterfaceError("the connection is closed")
        return self._handle

    def duplicate(self) -> Connection:
        """Another connection to the same database, as a thread of its own needs it."""
        return Connection(self._database, self.autocommit)

    # ---- Statements

    def _prepare(self, text: bytes, at: int, sql: str) -> tuple[_Statement | None, int]:
        """The statement of the text at that byte, and where the next one begins."""
        statement, tail = ctypes.c_void_p(), ctypes.c_void_p()
        buffer = ctypes.c_char_p(text)
        start = (ctypes.cast(buffer, ctypes.c_void_p).value or 0) + at
        _library.call("prepare", self._open(), start, len(text) - at, statement, tail)
        if not statement:
            return None, len(text)
        return _Statement(statement, text[at:].decode() if at else sql), at + (tail.value or 0) - start

    def _begin(self, sql: str) -> None:
        if self.autocommit or self.in_transaction:
            return
        word = sql.lstrip().partition(" ")[0].rstrip(";").lower()
        if word not in ("begin", "start", "commit", "end", "rollback", "abort", "vacuum"):
            self._run_all("BEGIN", None)

    def _run_all(self, sql: str, parameters: Sequence[Any] | None) -> Result:
        text = sql.encode()
        at, result = 0, None
        while at < len(text):
            statement, at = self._prepare(text, at, sql)
            if statement is None:
                break
            with statement:
                if parameters is not None:
                    statement.bind(parameters)
                result = statement.run()
            warning = _library.warning(self._handle)
            if warning:
                warnings.warn(warning.decode(), stacklevel=5)
        if result is None:
            raise ProgrammingError("there is no statement in the text")
        return result

    def _run(self, sql: str, parameters: Sequence[Any] | None, frame: Any) -> Result:
        registered = self._register_variables(sql, frame)
        try:
            self._begin(sql)
            return self._run_all(sql, parameters)
        finally:
            for name in registered:
                try:
                    self.unregister(name)
                    self._variables.discard(name)
                except exceptions.Error:
                    pass  # of a transaction that has failed: the next statement that names it replaces it

    def _register_variables(self, sql: str, frame: Any) -> list[str]:
        """Data frames and tables of the caller that the text names become tables for its time, unless there are such."""
        registered: list[str] = []
        for variable, table in _names_in(sql):
            for scope in (frame.f_locals, frame.f_globals):
                if variable in scope and _is_frame(scope[variable]):
                    if table in self._variables or not self._has_table(table):
                        self._variables.add(table)
                        call = "register_frame" if _is_in_memory(scope[variable]) else "register"
                        self._register(call, table, scope[variable], sql)
                        registered.append(table)
                    break
        return registered

    def _has_table(self, name: str) -> bool:
        found = ctypes.c_int()
        _library.call("has_table", self._open(), name.encode(), found)
        return bool(found.value)

    def sql(self, query: str, parameters: Sequence[Any] | None = None) -> Result:
        """Runs a text of one or more statements; the result is that of the last. `parameters`: values of ? or $1, $2 and so
        on. Data frames and Arrow tables are used in FROM by the names of the caller's variables."""
        return self._run(query, parameters, sys._getframe(1))

    def execute(self, query: str, parameters: Sequence[Any] | None = None) -> Cursor:
        """The same by a new cursor."""
        cursor = Cursor(self)
        cursor._execute(query, parameters, sys._getframe(1))
        return cursor

    def executemany(self, query: str, parameters: Iterable[Sequence[Any]]) -> Cursor:
        """Once for each set of parameters, in one transaction, by a new cursor."""
        return Cursor(self).executemany(query, parameters)

    def cursor(self) -> Cursor:
        return Cursor(self)

    # ---- Transactions

    @property
    def in_transaction(self) -> bool:
        return bool(_library.in_transaction(self._open()))

    def begin(self) -> None:
        self._run_all("BEGIN", None)

    def commit(self) -> None:
        """Nothing if no transaction is open."""
        if self.in_transaction:
            self._run_all("COMMIT", None)

    def rollback(self) -> None:
        """Nothing if no transaction is open."""
        if self.in_transaction:
            self._run_all("ROLLBACK", None)

    # ---- Tables of the program

    def register(self, name: str, table: Any) -> int:
        """Makes a temporary table of a data frame, a table of pyarrow or anything else with __arrow_c_stream__; it takes the place
        of one of that name. Returns the number of its rows."""
        return self._register("register", name, table)

    def _register(self, call: str, name: str, table: Any, sql: str | None = None) -> int:
        capsule = _stream_of(table, sql)
        count = ctypes.c_int64()
        _library.call(call, self._open(), name.encode(), _library.address_of_capsule(capsule), count)
        return count.value

    def unregister(self, name: str) -> None:
        _library.call("unregister", self._open(), name.encode())

    # ---- While a statement runs

    def interrupt(self) -> None:
        """Ends the statement that runs. Any thread."""
        _library.cancel(self._open())

    def set_progress(self, progress: Callable[[str, int, int], None] | None) -> None:
        """`progress` is called while a statement runs, by any thread: with what is done, how far it is, and of how much (0:
        unknown)."""
        if progress is None:
            called = ProgressFunction()
        else:
            called = ProgressFunction(lambda _, what, done, total: progress(what.decode(), done, total))
        _library.set_progress(self._open(), called, None)
        self._progress = called  # as long as it may be called


class Cursor:
    """A cursor of PEP 249."""

    arraysize = 1

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self._result: Result | None = None
        self._rowcount = -1
        self._closed = False

    def _execute(self, query: str, parameters: Sequence[Any] | None, frame: Any) -> None:
        if self._closed:
            raise InterfaceError("the cursor is closed")
        self._result = None
        self._rowcount = -1
        self._result = self.connection._run(query, parameters, frame)
        self._rowcount = self._result.rowcount

    def execute(self, query: str, parameters: Sequence[Any] | None = None) -> Cursor:
        self._execute(query, parameters, sys._getframe(1))
        return self

    def executemany(self, query: str, parameters: Iterable[Sequence[Any]]) -> Cursor:
        if self._closed:
            raise InterfaceError("the cursor is closed")
        connection = self.connection
        own = connection.autocommit and not connection.in_transaction
        connection._begin(query)
        if own:
            connection.begin()
        try:
            self._rowcount = self._run_for_each(query, parameters)
        except BaseException:
            if own:
                connection.rollback()
            raise
        if own:
            connection.commit()
        return self

    def _run_for_each(self, query: str, parameters: Iterable[Sequence[Any]]) -> int:
        statement, _ = self.connection._prepare(query.encode(), 0, query)
        if statement is None:
            raise ProgrammingError("there is no statement in the text")
        changed = -1
        with statement:
            for values in parameters:
                statement.bind(values)
                self._result = statement.run()
                if self._result.rowcount >= 0:
                    changed = max(changed, 0) + self._result.rowcount
        return changed

    @property
    def result(self) -> Result:
        """What the last statement returned."""
        if self._result is None:
            raise ProgrammingError("nothing has been executed")
        return self._result

    def _rows(self) -> Result:
        if not self.result._columns:
            raise ProgrammingError("the last statement returned no rows")
        return self.result

    @property
    def description(self) -> list[tuple[Any, ...]] | None:
        if self._result is None or not self._result._columns:
            return None
        return [(c.name, c.type, None, None, c.precision, c.scale, None) for c in self._result._columns]

    @property
    def rowcount(self) -> int:
        return self._rowcount

    def fetchone(self) -> Row | None:
        return self._rows().fetchone()

    def fetchmany(self, size: int | None = None) -> list[Row]:
        return self._rows().fetchmany(self.arraysize if size is None else size)

    def fetchall(self) -> list[Row]:
        return self._rows().fetchall()

    def __iter__(self) -> Cursor:
        return self

    def __next__(self) -> Row:
        row = self.fetchone()
        if row is None:
            raise StopIteration
        return row

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self.result.__arrow_c_stream__(requested_schema)

    def arrow(self) -> Any:
        return self.result.arrow()

    def df(self) -> Any:
        return self.result.df()

    def pl(self) -> Any:
        return self.result.pl()

    def setinputsizes(self, sizes: object) -> None:
        """Nothing, as PEP 249 allows it."""

    def setoutputsize(self, size: object, column: object = None) -> None:
        """Nothing, as PEP 249 allows it."""

    def close(self) -> None:
        self._closed = True
        self._result = None

    def __enter__(self) -> Cursor:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class _Database:
    """The database of some connections: closed with the last of them."""

    def __init__(self, path: str, options: Options) -> None:
        self.handle = ctypes.c_void_p()
        _library.call("open", path.encode(), options, self.handle)

    def __del__(self, close: Callable[..., Any] = _library.close) -> None:
        if self.handle:
            close(self.handle)


def connect(database: str = ":memory:", *, read_only: bool = False, autocommit: bool = True, threads: int = 0,
            memory_limit: int = 0, gpu_memory: int = 0, device: str = "auto") -> Connection:
    """A connection to the database in a directory, which is made if it is not there; ":memory:" is a new one that lives as
    long as its connections.

    autocommit: False as PEP 249 has it: a transaction begins with the first statement, and commit() or rollback() ends it.
    threads: 0 for as many as the process may use. memory_limit, gpu_memory: bytes; 0 for most of what there is. device:
    "auto", "host" or "gpu".
    """
    import os

    options = Options(ctypes.sizeof(Options), read_only, threads, memory_limit, gpu_memory, device.encode())
    return Connection(_Database(os.fspath(database), options), autocommit)


__all__ = ["Connection", "Cursor", "OperationalError", "connect"]
