"""What a statement returned."""

from __future__ import annotations

from itertools import chain, islice

from . import _library
from ._library import ArrowArrayStream
from ._rows import Column, batches_of, columns_of
from .exceptions import NotSupportedError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

    import pandas
    import polars
    import pyarrow

    Row = tuple[Any, ...]
_SHOWN = 20


class Result:
    """The rows of a statement. They are there, and can be asked for in any form and as often as wanted; only fetchone,
    fetchmany and fetchall go on from the row where the last of them ended.

    columns, types: the names of the columns, and their types in SQL. rowcount: how many rows it changed or returned; -1: it is
    no such statement. tag: PostgreSQL's command tag, as "INSERT 0 3"; "" of a query.
    """

    def __init__(self, stream: ArrowArrayStream, rowcount: int, tag: str) -> None:
        self._stream = stream
        self._columns: list[Column] = columns_of(stream)
        self._rows: Iterator[Row] | None = None
        self._count = rowcount
        self.tag = tag

    def __del__(self, release: Callable[..., Any] = _library.release) -> None:
        # (The default is there when the interpreter ends and the module is gone.)
        if getattr(self, "_stream", None) is not None:
            release(self._stream)

    @property
    def columns(self) -> list[str]:
        return [column.name for column in self._columns]

    @property
    def types(self) -> list[str]:
        return [column.type for column in self._columns]

    @property
    def rowcount(self) -> int:
        return self._count if self._count >= 0 or not self._columns else len(self)

    def __len__(self) -> int:
        copy = self._copy()
        count = 0
        try:
            while True:
                array = _library.ArrowArray()
                if copy.get_next(copy, array) != 0:
                    raise MemoryError
                if not array.release:
                    return count
                count += array.length
                _library.release(array)
        finally:
            _library.release(copy)

    def _copy(self) -> ArrowArrayStream:
        copy = ArrowArrayStream()
        _library.call("copy_stream", self._stream, copy)
        return copy

    def __iter__(self) -> Iterator[Row]:
        """All rows, from the first."""
        return chain.from_iterable(batches_of(self._copy(), self._columns))

    def _next_rows(self) -> Iterator[Row]:
        if self._rows is None:
            self._rows = iter(self)
        return self._rows

    def fetchone(self) -> Row | None:
        return next(self._next_rows(), None)

    def fetchmany(self, size: int = 1) -> list[Row]:
        return list(islice(self._next_rows(), size))

    def fetchall(self) -> list[Row]:
        return list(self._next_rows())

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """Arrow's PyCapsule interface: pyarrow.table(result), polars.DataFrame(result) and others read it without a copy."""
        return _library.to_capsule(self._copy())

    def arrow(self) -> pyarrow.Table:
        """A table of pyarrow, which shares the rows."""
        import pyarrow

        return pyarrow.RecordBatchReader.from_stream(self).read_all()

    def df(self) -> pandas.DataFrame:
        """A data frame of pandas, which needs pyarrow for it. DATE becomes datetime64, DECIMAL stays exact; integers with NULLs
        become floats, as pandas has it."""
        return self.arrow().to_pandas(date_as_object=False)

    def pl(self) -> polars.DataFrame:
        """A data frame of polars."""
        import polars

        return polars.DataFrame(self)

    def _sample(self) -> tuple[list[list[str]], int]:
        """The first rows as texts, and how many others there are."""
        rows = [["NULL" if value is None else str(value) for value in row] for row in islice(self, _SHOWN)]
        return rows, len(self) - len(rows)

    def __repr__(self) -> str:
        if not self._columns:
            return self.tag
        rows, more = self._sample()
        table = [self.columns, *rows]
        widths = [max(len(row[i]) for row in table) for i in range(len(self._columns))]
        line = "+" + "+".join("-" * (width + 2) for width in widths) + "+"
        texts = ["|" + "|".join(f" {cell:<{width}} " for cell, width in zip(row, widths)) + "|" for row in table]
        shown = [line, texts[0], line, *texts[1:], line]
        if more > 0:
            shown.append(f"... {more} more rows")
        return "\n".join(shown)

    def _repr_html_(self) -> str:
        import html

        if not self._columns:
            return f"<p>{html.escape(self.tag)}</p>"
        rows, more = self._sample()
        head = "".join(f"<th title='{html.escape(c.type)}'>{html.escape(c.name)}</th>" for c in self._columns)
        body = "".join("<tr>" + "".join(f"<td>{html.escape(cell)}</td>" for cell in row) + "</tr>" for row in rows)
        note = f"<p>... {more} more rows</p>" if more > 0 else ""
        return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{note}"

    def __bool__(self) -> bool:
        return True

    def show(self) -> None:
        """Prints the first rows."""
        print(self)

    def __reduce__(self) -> Any:
        raise NotSupportedError("a result cannot be pickled: pickle result.arrow() or result.fetchall()")
