"""The C library as ctypes sees it: its functions, structs and constants.

ctypes is part of Python, needs no compiler where the package is installed, and
releases the interpreter during every call.  Nothing here is part of the
package's interface.
"""

from __future__ import annotations

import ctypes
import math
import os
from ctypes import POINTER, byref, c_bool, c_char, c_char_p, c_int, c_int64
from ctypes import c_size_t, c_uint32, c_uint64, c_void_p
from typing import Any, Dict, List, Optional, Sequence, Tuple, Union

SONAME = "libsqlock.so.0.1"
INTERFACE = "0.1."  # before 1.0 a minor release may change structs

KEY_SIZE = 37
LEASE_ID_SIZE = 128
FOREVER = -1
MANY_MAX = 10_000
OWNED_BY_HANDLE = 2

CODES: Dict[str, int] = {
    "EBUSY": -1,
    "ETIMEDOUT": -2,
    "ELOST": -3,
    "EEXPIRED": -4,
    "EUNCERTAIN": -5,
    "EUNREACHABLE": -6,
    "ERETRY": -7,
    "EOWNER": -8,
    "EINVAL": -9,
    "ENOMEM": -10,
    "EFORK": -11,
    "ENOTSUP": -12,
    "ESCHEMA": -13,
    "EACCESS": -14,
    "EREADONLY": -15,
    "ERESOURCE": -16,
    "ECANCELED": -17,
    "EDATABASE": -18,
    "ENOTFOUND": -19,
    "EINUSE": -20,
    "ECONFLICT": -21,
    "EINSUFFICIENT": -22,
    "EORDER": -23,
}

# States of a request.
FREE, FETCHING, HELD, RELEASING, LOST = range(5)
# Types of a value.
NULL, INT64, TEXT = range(3)

LOST_FN = ctypes.CFUNCTYPE(None, c_void_p, c_void_p, c_int)


class NativeError(ctypes.Structure):
    """sqlock_error"""

    _fields_ = [
        ("code", c_int),
        ("native", c_int),
        ("sqlstate", c_char * 6),
        ("message", c_char * 506),
    ]


class Event(ctypes.Structure):
    """sqlock_event"""

    _fields_ = [
        ("size", c_size_t),
        ("kind", c_int),
        ("name", c_char_p),
        ("level", c_int),
        ("lock", c_char_p),
        ("key", c_char_p),
        ("token", c_int64),
        ("code", c_int),
        ("text", c_char_p),
    ]


EVENT_FN = ctypes.CFUNCTYPE(None, c_void_p, POINTER(Event))


class Sized(ctypes.Structure):
    """A struct of options, whose first field is its size."""

    def __init__(self, **fields: Any) -> None:
        super().__init__(size=ctypes.sizeof(type(self)), **fields)


class Options(Sized):
    """sqlock_options"""

    _fields_ = [
        ("size", c_size_t),
        ("region", c_char_p),
        ("table_prefix", c_char_p),
        ("ttl_ms", c_uint32),
        ("margin_ms", c_uint32),
        ("holder_note", c_char_p),
        ("pool_size", c_uint32),
        ("ownership", c_int),
        ("key_rule", c_int),
        ("peer_ttl_ms", c_uint32),
        ("connect_timeout_ms", c_uint32),
        ("statement_timeout_ms", c_uint32),
        ("poll_ms", c_uint32),
        ("renew_period_ms", c_uint32),
        ("observe_before_steal", c_bool),
        ("on_event", EVENT_FN),
        ("event_context", c_void_p),
        ("event_level", c_int),
        ("handoff_limit", c_uint32),
        ("waiting", c_int),
    ]


class AcquireOptions(Sized):
    """sqlock_acquire_options"""

    _fields_ = [
        ("size", c_size_t),
        ("ttl_ms", c_uint32),
        ("auto_renew", c_bool),
        ("fenced", c_bool),
        ("partial", c_bool),
        ("max_hold_ms", c_uint32),
        ("on_lost", LOST_FN),
        ("lost_context", c_void_p),
        ("cancel_fd", c_int),
        ("fail_fast", c_bool),
    ]


class Info(ctypes.Structure):
    """sqlock_info"""

    _fields_ = [
        ("key", c_char * KEY_SIZE),
        ("client_id", c_char * KEY_SIZE),
        ("state", c_int),
        ("token", c_int64),
        ("acquired_at_us", c_int64),
        ("expires_at_us", c_int64),
        ("remaining_ms", c_int64),
        ("name", c_char_p),
        ("holder", c_char_p),
        ("ahead_ms", c_int64),
        ("held_ms", c_int64),
        ("region", c_char_p),
        ("waiters", ctypes.c_int32),
        ("waiter_names", c_char_p),
        ("last_holder", c_char_p),
    ]


class FindOptions(Sized):
    """sqlock_find_options"""

    _fields_ = [
        ("size", c_size_t),
        ("pattern", c_char_p),
        ("free_too", c_bool),
        ("all_regions", c_bool),
        ("waiters", c_bool),
        ("limit", c_uint32),
        ("sort", c_int),
    ]


class BreakOptions(Sized):
    """sqlock_break_options"""

    _fields_ = [
        ("size", c_size_t),
        ("token", c_int64),
        ("client_id", c_char_p),
        ("reason", c_char_p),
        ("who", c_char_p),
        ("now", c_bool),
    ]


class Value(ctypes.Structure):
    """sqlock_value"""

    _fields_ = [
        ("type", c_int),
        ("integer", c_int64),
        ("text", c_char_p),
        ("length", c_size_t),
    ]


class Result(ctypes.Structure):
    """sqlock_result"""

    _fields_ = [
        ("rows", c_size_t),
        ("columns", c_size_t),
        ("cells", POINTER(Value)),
        ("affected", c_int64),
        ("memory", c_void_p),
    ]


class Table(Sized):
    """sqlock_table"""

    _fields_ = [
        ("size", c_size_t),
        ("name", c_char_p),
        ("key_column", c_char_p),
        ("version_column", c_char_p),
        ("version_kind", c_int),
        ("fence_column", c_char_p),
        ("fence_owner_column", c_char_p),
    ]


class RowVersion(ctypes.Structure):
    """sqlock_row_version"""

    _fields_ = [("type", c_int), ("integer", c_int64), ("text", c_char * 64)]


class Assignment(ctypes.Structure):
    """sqlock_assignment"""

    _fields_ = [("column", c_char_p), ("value", Value)]


class Times(ctypes.Structure):
    """sqlock_times"""

    _fields_ = [("count", c_uint64), ("sum_us", c_uint64), ("buckets", c_uint64 * 28)]


class Stats(Sized):
    """sqlock_stats"""

    _fields_ = [
        ("size", c_size_t),
        ("attempts", c_uint64),
        ("granted", c_uint64),
        ("nested", c_uint64),
        ("busy", c_uint64),
        ("timed_out", c_uint64),
        ("cancelled", c_uint64),
        ("uncertain", c_uint64),
        ("failed", c_uint64),
        ("released", c_uint64),
        ("handed_off", c_uint64),
        ("renewed", c_uint64),
        ("lost", c_uint64),
        ("expired", c_uint64),
        ("in_doubt", c_uint64),
        ("statement_errors", c_uint64),
        ("connections_opened", c_uint64),
        ("reconnects", c_uint64),
        ("connections", c_uint32),
        ("connections_used", c_uint32),
        ("wait", Times),
        ("hold", Times),
        ("statement", Times),
        ("pool_wait", Times),
    ]


class StockOptions(Sized):
    """sqlock_stock_options"""

    _fields_ = [
        ("size", c_size_t),
        ("strategy", c_int),
        ("table", c_char_p),
        ("item_column", c_char_p),
        ("quantity_column", c_char_p),
        ("version_column", c_char_p),
        ("buckets", c_uint32),
        ("batch", c_uint32),
        ("attempts", c_uint32),
        ("deadline_ms", c_uint32),
    ]


class StockAnswer(ctypes.Structure):
    """sqlock_stock_answer"""

    _fields_ = [
        ("left", c_int64),
        ("line", c_size_t),
        ("is_duplicate", c_bool),
        ("attempts", c_uint32),
    ]


class StockLine(ctypes.Structure):
    """sqlock_stock_line"""

    _fields_ = [
        ("item", c_char_p),
        ("quantity", c_int64),
        ("result", c_int),
        ("left", c_int64),
    ]


class StockItem(ctypes.Structure):
    """sqlock_stock_item"""

    _fields_ = [("name", c_char_p), ("quantity", c_int64)]


class StockReaped(ctypes.Structure):
    """sqlock_stock_reaped"""

    _fields_ = [("entries", c_int64), ("reservations", c_int64)]


class StockReapOptions(Sized):
    """sqlock_stock_reap_options"""

    _fields_ = [
        ("size", c_size_t),
        ("retention_ms", c_int64),
        ("dry_run", c_bool),
        ("progress", c_void_p),
        ("context", c_void_p),
    ]


class StockStats(ctypes.Structure):
    """sqlock_stock_stats"""

    _fields_ = [
        ("operations", c_uint64),
        ("retries", c_uint64),
        ("rounds", c_uint64),
        ("combined", c_uint64),
        ("most_rounds", c_uint64),
        ("rebalances", c_uint64),
    ]


_handle = c_void_p  # of a registry, a lock, a request, a transaction, a stock
_err = POINTER(NativeError)
_out = POINTER(c_void_p)
_answer = POINTER(StockAnswer)
_lines = POINTER(StockLine)

# The result and the arguments of each function that is used.
_PROTOTYPES: Dict[str, Tuple[Any, Sequence[Any]]] = {
    "strerror": (c_char_p, [c_int]),
    "version": (c_char_p, []),
    "driver_info": (c_char_p, [c_size_t]),
    "registry_open": (c_int, [_out, c_char_p, POINTER(Options), _err]),
    "registry_close": (c_int, [_handle, _err]),
    "registry_stats": (c_int, [_handle, POINTER(Stats), _err]),
    "obtain": (c_int, [_out, _handle, c_char_p, _err]),
    "drop": (c_int, [_handle, _err]),
    "acquire": (c_int, [_handle, c_int64, POINTER(AcquireOptions), _err]),
    "cancel": (c_int, [_handle, _err]),
    "release": (c_int, [_handle, _err]),
    "renew": (c_int, [_handle, c_uint32, _err]),
    "is_held": (c_bool, [_handle]),
    "remaining_ms": (c_int64, [_handle]),
    "token": (c_int64, [_handle]),
    "client_id": (None, [_handle, c_char_p]),
    "lease_id": (c_int, [c_char_p, _handle, c_uint32, _err]),
    "request_acquire": (
        c_int,
        [_out, _handle, c_int64, POINTER(AcquireOptions), c_int, _err],
    ),
    "request_release": (c_int, [_out, _handle, c_int, _err]),
    "request_status": (c_int, [_handle]),
    "request_finish": (c_int, [_handle, _err]),
    "request_abandon": (c_int, [_handle, _err]),
    "acquire_many": (
        c_int,
        [_out, c_size_t, c_int64, POINTER(AcquireOptions), POINTER(c_int), _err],
    ),
    "release_many": (c_int, [_out, c_size_t, POINTER(c_int), _err]),
    "renew_many": (c_int, [_out, c_size_t, POINTER(c_int), _err]),
    "result_clear": (None, [POINTER(Result)]),
    "tx_begin": (c_int, [_out, _handle, _err]),
    "tx_adopt": (c_int, [_out, _handle, c_void_p, _err]),
    "tx_commit": (c_int, [_handle, _err]),
    "tx_rollback": (c_int, [_handle, _err]),
    "tx_leave": (c_int, [_handle, _err]),
    "tx_execute": (
        c_int,
        [_handle, c_char_p, POINTER(Value), c_size_t, POINTER(Result), _err],
    ),
    "tx_lock": (
        c_int,
        [
            _handle,
            POINTER(c_char_p),
            c_size_t,
            c_int64,
            c_bool,
            POINTER(c_int),
            _err,
        ],
    ),
    "tx_lock_row": (
        c_int,
        [_handle, POINTER(Table), POINTER(Value), c_bool, c_int64, _err],
    ),
    "tx_guard": (c_int, [_handle, _handle, _err]),
    "tx_fence": (
        c_int,
        [_handle, POINTER(Table), POINTER(Value), c_int64, c_char_p, _err],
    ),
    "tx_version": (
        c_int,
        [_handle, POINTER(Table), POINTER(Value), POINTER(RowVersion), _err],
    ),
    "tx_update": (
        c_int,
        [
            _handle,
            POINTER(Table),
            POINTER(Value),
            POINTER(RowVersion),
            POINTER(Assignment),
            c_size_t,
            POINTER(RowVersion),
            _err,
        ],
    ),
    "once_check": (c_int, [_handle, c_char_p, _err]),
    "once_record": (c_int, [_handle, _err]),
    "once_schema_create": (c_int, [c_char_p, POINTER(Options), _err]),
    "schema_create": (c_int, [c_char_p, POINTER(Options), c_int, _err]),
    "show": (c_int, [_handle, c_char_p, POINTER(POINTER(Info)), _err]),
    "find": (
        c_int,
        [
            _handle,
            POINTER(FindOptions),
            POINTER(POINTER(Info)),
            POINTER(c_size_t),
            _err,
        ],
    ),
    "info_free": (None, [POINTER(Info), c_size_t]),
    "break": (c_int, [_handle, c_char_p, POINTER(BreakOptions), _err]),
    "reap": (c_int, [_handle, c_int64, POINTER(c_int64), _err]),
    "free": (None, [c_void_p]),
    "stock_open": (c_int, [_out, _handle, POINTER(StockOptions), _err]),
    "stock_close": (None, [_handle]),
    "stock_deduct": (
        c_int,
        [_handle, _handle, c_char_p, c_char_p, c_int64, _answer, _err],
    ),
    "stock_restore": (
        c_int,
        [_handle, _handle, c_char_p, c_char_p, c_int64, _answer, _err],
    ),
    "stock_set": (
        c_int,
        [_handle, _handle, c_char_p, c_char_p, c_int64, _answer, _err],
    ),
    "stock_read": (c_int, [_handle, _handle, c_char_p, POINTER(c_int64), _err]),
    "stock_list": (
        c_int,
        [_handle, POINTER(POINTER(StockItem)), POINTER(c_size_t), _err],
    ),
    "stock_deduct_many": (
        c_int,
        [_handle, _handle, c_char_p, _lines, c_size_t, _answer, _err],
    ),
    "stock_restore_many": (
        c_int,
        [_handle, _handle, c_char_p, _lines, c_size_t, _answer, _err],
    ),
    "stock_reserve": (
        c_int,
        [_handle, _handle, c_char_p, _lines, c_size_t, c_int64, _answer, _err],
    ),
    "stock_claim": (c_int, [_handle, _handle, c_char_p, _answer, _err]),
    "stock_cancel": (c_int, [_handle, _handle, c_char_p, _answer, _err]),
    "stock_expire": (c_int, [_handle, POINTER(c_int64), _err]),
    "stock_status": (
        c_int,
        [_handle, _handle, c_char_p, POINTER(c_int), POINTER(c_int64), _err],
    ),
    "stock_reap": (
        c_int,
        [_handle, POINTER(StockReapOptions), POINTER(StockReaped), _err],
    ),
    "stock_statistics": (None, [_handle, POINTER(StockStats)]),
    "stock_schema_create": (c_int, [c_char_p, POINTER(Options), _err]),
}


def _candidates() -> List[str]:
    """Where the library may be: only the first that there is counts."""
    named = os.environ.get("SQLOCK_LIBRARY")
    if named:
        return [named]
    bundled = os.path.join(os.path.dirname(os.path.abspath(__file__)), SONAME)
    return [bundled] if os.path.exists(bundled) else [SONAME]


def _load() -> ctypes.CDLL:
    (path,) = _candidates()
    try:
        library = ctypes.CDLL(path, use_errno=True)
        for name, (result, arguments) in _PROTOTYPES.items():
            function = getattr(library, "sqlock_" + name)
            function.restype = result
            function.argtypes = list(arguments)
    except (OSError, AttributeError) as error:
        raise ImportError(
            f"sqlock: cannot load the C library {path}: {error}; install the"
            " package libsqlock0.1, or let SQLOCK_LIBRARY name the file",
            path=path,
        ) from error
    version = library.sqlock_version().decode()
    if not version.startswith(INTERFACE):
        raise ImportError(
            f"sqlock: {path} is of version {version}, this package needs"
            f" {INTERFACE}x",
            path=path,
        )
    return library


library = _load()


def function(name: str) -> Any:
    """sqlock_NAME()"""
    return getattr(library, "sqlock_" + name)


def text(value: Optional[str], what: str) -> Optional[bytes]:
    """A string as the library takes it."""
    if value is None:
        return None
    if not isinstance(value, str):
        raise TypeError(f"{what} must be a str, not {type(value).__name__}")
    if "\0" in value:
        raise ValueError(f"{what} has a NUL character in it")
    try:
        return value.encode("utf-8")
    except UnicodeEncodeError:
        raise ValueError(f"{what} is no valid Unicode") from None


def milliseconds(seconds: Optional[float], what: str, limit: int = 2**32 - 1) -> int:
    """Seconds of an option, rounded up; None is the default, which is 0."""
    if seconds is None:
        return 0
    if isinstance(seconds, bool) or not isinstance(seconds, (int, float)):
        raise TypeError(f"{what} must be seconds, not {type(seconds).__name__}")
    if not 0 < seconds * 1000 <= limit:  # refuses NaN, too
        raise ValueError(f"{what} must be more than 0 and less than it is: {seconds}")
    return min(math.ceil(seconds * 1000), limit)


def wait_ms(wait: Optional[float]) -> int:
    """Seconds to wait, rounded up; None is for as long as it takes."""
    if wait is None:
        return FOREVER
    if isinstance(wait, bool) or not isinstance(wait, (int, float)):
        raise TypeError(f"wait must be seconds or None, not {type(wait).__name__}")
    if math.isnan(wait) or wait < 0:
        raise ValueError(f"wait must be 0 or more, or None: {wait}")
    if wait > 100 * 366 * 86400:
        return FOREVER
    return math.ceil(wait * 1000)


Parameter = Union[None, int, str]


def value_of(parameter: Parameter) -> Value:
    """A parameter of a statement."""
    if parameter is None:
        return Value(type=NULL)
    if isinstance(parameter, int):
        if not -(2**63) <= parameter < 2**63:
            raise ValueError("an integer of more than 64 bits")
        return Value(type=INT64, integer=int(parameter))
    if isinstance(parameter, str):
        data = text(parameter, "a parameter")
        return Value(type=TEXT, text=data, length=len(data or b""))
    raise TypeError(
        "a parameter is None, an int or a str (other types as their text), not"
        f" {type(parameter).__name__}"
    )


__all__ = ["byref", "function", "library"]
