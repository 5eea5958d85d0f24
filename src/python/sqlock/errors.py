"""Errors as exceptions: a class for each code of the library."""

from __future__ import annotations

from typing import Dict, List, Optional, Type

from . import _native


class Error(Exception):
    """What all exceptions of this package are.

    New codes may appear in later releases of the library: treat an unknown one
    as "not held".
    """

    #: The library's code, such as -2.
    code: int = 0
    #: Its name, such as "ETIMEDOUT".
    name: str = ""
    #: One line, without any password.
    message: str = ""
    #: The error number of the database's client library, or 0.
    native: int = 0
    #: "" where the database gave none.
    sqlstate: str = ""
    #: Of a quorum that was not acquired: what each registry came to; None:
    #: granted, and given back.
    results: List[Optional[Error]] = []

    def __init__(self, message: str, native: int = 0, sqlstate: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.native = native
        self.sqlstate = sqlstate

    def __str__(self) -> str:
        return self.message


class Busy(Error):
    """The lock is held by another owner, and none was to be waited for."""


class Timeout(Error, TimeoutError):
    """The lock was not free before the wait was over, or a statement took longer
    than the registry's statement_timeout."""


class LockLost(Error):
    """The lease is over: somebody else has had the lock, or may have it now."""


class LockExpired(LockLost):
    """The lease ran out before it was renewed."""


class Uncertain(Error):
    """The connection broke with a statement in flight: it may or may not have
    been carried out."""


class Unreachable(Error, ConnectionError):
    """The database cannot be reached; nothing was done."""


class Retry(Error):
    """The database asks to run the transaction again."""


class NotOwner(Error):
    """The lock is not held here."""


class Invalid(Error, ValueError):
    """An argument is not valid."""


class OutOfMemory(Error, MemoryError):
    """There is no memory left."""


class UsedAfterFork(Error):
    """Used in a child process of the one that opened it: open another."""


class NotSupported(Error):
    """The database, the table's layout, or the connection cannot do it."""


class SchemaError(Error):
    """A table is missing or has the wrong shape."""


class AccessDenied(Error, PermissionError):
    """The database refuses the login or the privilege."""


class ReadOnly(Error):
    """The server is read-only; it may be a replica."""


class OutOfResources(Error):
    """The server is out of a resource."""


class Cancelled(Error):
    """The wait was cancelled, nothing was written."""


class DatabaseError(Error):
    """The database reported an error."""


class NotFound(Error, LookupError):
    """There is no such row in the table."""


class InUse(Error):
    """The lock is held or waited for, or a transaction guards it."""


class Conflict(Error):
    """The row is not in the state that was expected."""


class Insufficient(Error):
    """There is not enough of the item in stock."""

    #: How much there is; -1: not known.
    left: int = -1
    #: Of several items the first that was refused.
    item: Optional[str] = None


class OrderMismatch(Error):
    """The order id was used for something else."""


class Deadlock(Error):
    """The lock is the caller's already, or its holder waits for a lock of the
    caller: the wait would never end.  A caller is a thread, a task or a
    greenlet."""


class Closed(Error, ValueError):
    """The registry, the transaction or the stock has been closed."""


_CLASSES: Dict[str, Type[Error]] = {
    "EBUSY": Busy,
    "ETIMEDOUT": Timeout,
    "ELOST": LockLost,
    "EEXPIRED": LockExpired,
    "EUNCERTAIN": Uncertain,
    "EUNREACHABLE": Unreachable,
    "ERETRY": Retry,
    "EOWNER": NotOwner,
    "EINVAL": Invalid,
    "ENOMEM": OutOfMemory,
    "EFORK": UsedAfterFork,
    "ENOTSUP": NotSupported,
    "ESCHEMA": SchemaError,
    "EACCESS": AccessDenied,
    "EREADONLY": ReadOnly,
    "ERESOURCE": OutOfResources,
    "ECANCELED": Cancelled,
    "EDATABASE": DatabaseError,
    "ENOTFOUND": NotFound,
    "EINUSE": InUse,
    "ECONFLICT": Conflict,
    "EINSUFFICIENT": Insufficient,
    "EORDER": OrderMismatch,
    "EDEADLOCK": Deadlock,
}
_BY_CODE: Dict[int, Type[Error]] = {}
for _name, _class in _CLASSES.items():
    _class.name = _name
    _class.code = _native.CODES[_name]
    _BY_CODE[_class.code] = _class
Closed.name, Closed.code = "EINVAL", _native.CODES["EINVAL"]


def failure(code: int, why: Optional[_native.NativeError] = None) -> Error:
    """The exception of a code, with the text that came with it."""
    told = why is not None and why.code == code
    if told and why is not None:
        message = why.message.decode("utf-8", "replace")
    else:
        message = _native.function("strerror")(code).decode()
    error = _BY_CODE.get(code, Error)(message)
    error.code = code
    if told and why is not None:
        error.native = why.native
        error.sqlstate = why.sqlstate.decode("ascii", "replace")
    return error


def call(name: str, *arguments: object) -> None:
    """Call sqlock_NAME(); its last argument, the error, is ours."""
    why = _native.NativeError()
    code = _native.function(name)(*arguments, _native.byref(why))
    if code != 0:
        raise failure(code, why)
