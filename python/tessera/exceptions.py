"""The exceptions of PEP 249, by SQLSTATE."""

from __future__ import annotations


class Warning(Exception):  # noqa: A001 (the name is PEP 249's)
    """Something the user should know though it is no error."""


class Error(Exception):
    """An error of the database.

    sqlstate: five letters, as PostgreSQL's; hint: what to do about it, or ""; position: the byte of the statement's text where
    it is, from 0, or -1.
    """

    sqlstate = ""
    hint = ""
    position = -1


class InterfaceError(Error):
    """The package is used as it cannot be."""


class DatabaseError(Error):
    """The parent of what the database says."""


class DataError(DatabaseError):
    """A value is out of range, or none of its type."""


class OperationalError(DatabaseError):
    """Files, memory, locks, transactions, cancelled statements."""


class IntegrityError(DatabaseError):
    """A constraint is violated."""


class InternalError(DatabaseError):
    """A bug of Tessera, or a damaged file."""


class ProgrammingError(DatabaseError):
    """The statement is wrong."""


class NotSupportedError(DatabaseError):
    """SQL that Tessera does not support, by name."""


_CLASSES = {"23": IntegrityError, "22": DataError, "0A": NotSupportedError, "XX": InternalError, "42": ProgrammingError,
            "26": ProgrammingError, "21": ProgrammingError, "2B": ProgrammingError}


def error_of(sqlstate: str, message: str, hint: str, position: int, text: str | None) -> Error:
    """The exception for an error of the library. Its text has the line of the SQL that is meant, as psql shows it."""
    shown = message
    if text is not None and position >= 0:
        before = text.encode()[:position].decode(errors="replace")
        begin = before.rfind("\n") + 1
        line = text[begin:].split("\n", 1)[0]
        head = f"LINE {before.count(chr(10)) + 1}: "
        shown += f"\n{head}{line}\n{' ' * (len(head) + len(before) - begin)}^"
    if hint:
        shown += f"\nHINT:  {hint}"
    error = _CLASSES.get(sqlstate[:2], OperationalError)(shown)
    error.sqlstate, error.hint, error.position = sqlstate, hint, position
    return error
