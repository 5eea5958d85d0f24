"""The C library as ctypes sees it: its functions, structs and constants.

ctypes is part of Python, needs no compiler where the package is installed, and
releases the interpreter during every call.  Nothing here is part of the
package's interface.
"""

from __future__ import annotations

import ctypes
import math
import operator
import os
from ctypes import POINTER, byref, c_bool, c_char, c_char_p, c_int, c_int64
from ctypes import c_size_t, c_uint32, c_uint64, c_void_p
from decimal import Decimal
from typing import Any, Dict, Iterable, List, Mapping, Optional, Sequence, Tuple
from typing import Type, Union

SONAME = "libsqlock.so.0.1"
INTERFACE = "0.1."  # before 1.0 a minor release may change structs

KEY_SIZE = 37
LEASE_ID_SIZE = 128
FOREVER = -1
MANY_MAX = 10_000
OWNED_BY_HANDLE = 2
EXCLUSIVE, SHARED = range(2)

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
    "EDEADLOCK": -24,
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
        ("on_event", EVENT_FN),
        ("event_context", c_void_p),
        ("event_level", c_int),
        ("waiting", c_int),
        ("detect_deadlocks", c_bool),
        ("no_peers", c_bool),
    ]


class AcquireOptions(Sized):
    """sqlock_acquire_options"""

    _fields_ = [
        ("size", c_size_t),
        ("ttl_ms", c_uint32),
        ("auto_renew", c_bool),
        ("fenced", c_bool),
        ("max_hold_ms", c_uint32),
        ("on_lost", LOST_FN),
        ("lost_context", c_void_p),
        ("cancel_fd", c_int),
        ("fail_fast", c_bool),
        ("mode", c_int),
        ("permits", c_uint32),
        ("weight", c_uint32),
        ("modes", c_void_p),
        ("actor", c_uint64),
    ]


class QuorumOptions(Sized):
    """sqlock_quorum_options"""

    _fields_ = [("size", c_size_t), ("all", c_bool)]


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
        ("held_ms", c_int64),
        ("region", c_char_p),
        ("waiters", ctypes.c_int32),
        ("place", ctypes.c_int32),
        ("waiter_names", c_char_p),
        ("last_holder", c_char_p),
        ("mode", c_int),
        ("permits", c_uint32),
        ("taken", c_uint32),
        ("sharers", ctypes.c_int32),
        ("sharer_names", c_char_p),
        ("text", c_char_p),
    ]


class FindOptions(Sized):
    """sqlock_find_options"""

    _fields_ = [
        ("size", c_size_t),
        ("pattern", c_char_p),
        ("free_too", c_bool),
        ("all_regions", c_bool),
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
        ("batch", c_uint32),
        ("attempts", c_uint32),
        ("deadline_ms", c_uint32),
    ]


class StockAnswer(Sized):
    """sqlock_stock_answer"""

    _fields_ = [
        ("size", c_size_t),
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


class StockReaped(Sized):
    """sqlock_stock_reaped"""

    _fields_ = [
        ("size", c_size_t),
        ("entries", c_int64),
        ("reservations", c_int64),
    ]


class StockReapOptions(Sized):
    """sqlock_stock_reap_options"""

    _fields_ = [
        ("size", c_size_t),
        ("retention_ms", c_int64),
        ("dry_run", c_bool),
        ("progress", c_void_p),
        ("context", c_void_p),
    ]


class StockStats(Sized):
    """sqlock_stock_stats"""

    _fields_ = [
        ("size", c_size_t),
        ("operations", c_uint64),
        ("retries", c_uint64),
        ("rounds", c_uint64),
        ("combined", c_uint64),
        ("most_rounds", c_uint64),
    ]


# Types by the words of the table below.
_TYPES: Dict[str, Any] = {
    "-": None,
    "address": c_void_p,
    "bool": c_bool,
    "handle": c_void_p,  # of a registry, a lock, a request, a transaction, a stock
    "i64": c_int64,
    "int": c_int,
    "size": c_size_t,
    "text": c_char_p,
    "u32": c_uint32,
    "u64": c_uint64,
    "answer": POINTER(StockAnswer),
    "err": POINTER(NativeError),
    "i64s": POINTER(c_int64),
    "ints": POINTER(c_int),
    "lines": POINTER(StockLine),
    "out": POINTER(c_void_p),
    "sizes": POINTER(c_size_t),
    "texts": POINTER(c_char_p),
    "Infos": POINTER(POINTER(Info)),
    "Items": POINTER(POINTER(StockItem)),
}
_STRUCTS: Sequence[Type[ctypes.Structure]] = (
    AcquireOptions,
    Assignment,
    BreakOptions,
    FindOptions,
    Info,
    Options,
    QuorumOptions,
    Result,
    RowVersion,
    Stats,
    StockOptions,
    StockReapOptions,
    StockReaped,
    StockStats,
    Table,
    Value,
)
_TYPES.update((struct.__name__, POINTER(struct)) for struct in _STRUCTS)

# Each function that is used: its result, its name and its arguments.
_TABLE = """
text strerror int
text version
text driver_info size
int registry_open out text Options err
int registry_close handle err
int registry_stats handle Stats err
int obtain out handle text err
int drop handle err
int acquire handle i64 AcquireOptions err
int cancel handle err
int release handle err
int renew handle u32 err
int downgrade handle err
int publish handle text err
int observe handle text i64 int Infos err
int set_permits handle text u32 err
bool is_held handle
i64 remaining_ms handle
i64 token handle
- set_actor handle u64
- client_id handle text
int lease_id text handle u32 err
int request_acquire out handle i64 AcquireOptions int err
int request_release out handle int err
int request_status handle
int request_finish handle err
int request_abandon handle err
int acquire_many out size i64 AcquireOptions ints err
int release_many out size ints err
int renew_many out size ints err
int quorum_obtain out out size text QuorumOptions err
int quorum_drop handle err
int quorum_acquire handle i64 AcquireOptions ints err
int quorum_release handle ints err
i64 quorum_remaining_ms handle
handle quorum_lock handle size
- result_clear Result
int tx_begin out handle err
int tx_adopt out handle address err
int tx_commit handle err
int tx_rollback handle err
int tx_leave handle err
int tx_abandon handle err
int tx_execute handle text Value size Result err
int tx_lock handle texts size i64 bool ints err
int tx_lock_row handle Table Value bool i64 err
int tx_guard handle handle err
int tx_fence handle Table Value i64 text err
int tx_version handle Table Value RowVersion err
int tx_update handle Table Value RowVersion Assignment size RowVersion err
int once_check handle text err
int once_record handle err
int once_schema_create text Options err
int schema_create text Options int err
int show handle text Infos err
int find_sized handle FindOptions Infos sizes size err
- info_free Info size
int break handle text BreakOptions err
int reap handle i64 i64s err
- free address
int stock_open out handle StockOptions err
- stock_close handle
int stock_deduct handle handle text text i64 answer err
int stock_restore handle handle text text i64 answer err
int stock_set handle handle text text i64 answer err
int stock_read handle handle text i64s err
int stock_list_sized handle Items sizes size err
int stock_change_sized handle handle int text lines size i64 answer size err
int stock_claim handle handle text answer err
int stock_cancel handle handle text answer err
int stock_expire handle i64s err
int stock_status handle handle text ints i64s err
int stock_reap handle StockReapOptions StockReaped err
int stock_statistics handle StockStats err
int stock_schema_create text Options err
"""
_PROTOTYPES: Dict[str, Tuple[Any, List[Any]]] = {
    name: (_TYPES[result], [_TYPES[word] for word in arguments])
    for result, name, *arguments in map(str.split, _TABLE.strip().splitlines())
}


def _candidates() -> List[str]:
    """Where the library may be: only the first that there is counts."""
    named = os.environ.get("SQLOCK_LIBRARY")
    if named:
        return [named]
    bundled = os.path.join(os.path.dirname(os.path.abspath(__file__)), SONAME)
    return [bundled] if os.path.exists(bundled) else [SONAME]


def _refuse_subinterpreters() -> None:
    """The library's threads would call back into the main interpreter, with
    objects of another one."""
    api: Any = getattr(ctypes, "pythonapi", None)
    if not hasattr(api, "PyInterpreterState_Main"):
        return
    for function in (api.PyInterpreterState_Get, api.PyInterpreterState_Main):
        function.restype, function.argtypes = c_void_p, []
    if api.PyInterpreterState_Get() != api.PyInterpreterState_Main():
        raise ImportError(
            "sqlock works in the main interpreter only; in mod_wsgi set"
            " WSGIApplicationGroup %{GLOBAL}"
        )


def _load() -> ctypes.CDLL:
    _refuse_subinterpreters()
    (path,) = _candidates()
    try:
        library = ctypes.CDLL(path, use_errno=True)
        for name, (result, arguments) in _PROTOTYPES.items():
            function = getattr(library, "sqlock_" + name)
            function.restype = result
            function.argtypes = arguments
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
        return value.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        raise ValueError(f"{what} is no valid Unicode") from None


def string(value: bytes) -> str:
    """A text of the library as :func:`text` takes it back: bytes that are no UTF-8
    become surrogates, as in names of files."""
    return value.decode("utf-8", "surrogateescape")


def milliseconds(seconds: Optional[float], what: str, limit: int = 2**32 - 1) -> int:
    """Seconds of an option, rounded up; None is the default, which is 0."""
    if seconds is None:
        return 0
    if seconds == 0:
        raise ValueError(f"{what} must be more than 0")
    return age_ms(seconds, what, limit)


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def age_ms(seconds: float, what: str, limit: int = 2**62) -> int:
    """Seconds, 0 or more, rounded up."""
    if not _is_number(seconds):
        raise TypeError(f"{what} must be seconds, not {type(seconds).__name__}")
    if not seconds >= 0:  # or it is no number
        raise ValueError(f"{what} must be seconds, and not below 0: {seconds}")
    if seconds > limit / 1000:
        raise ValueError(f"{what} must be less than {limit / 1000:.0f} seconds")
    return min(math.ceil(seconds * 1000), limit)


def wait_ms(wait: Optional[float]) -> int:
    """Seconds to wait, rounded up; None is for as long as it takes."""
    if wait is None:
        return FOREVER
    if not _is_number(wait):
        raise TypeError(f"wait must be seconds or None, not {type(wait).__name__}")
    if not wait >= 0:  # or it is no number
        raise ValueError(f"wait must be 0 or more, or None: {wait}")
    if wait > 100 * 366 * 86400:
        return FOREVER
    return math.ceil(wait * 1000)


def choice(choices: Mapping[str, int], value: str, what: str) -> int:
    """The number of one of several words."""
    if isinstance(value, str) and value in choices:
        return choices[value]
    raise ValueError(f"{what} must be one of {', '.join(choices)}, not {value!r}")


def _integer(value: int, what: str, least: int, most: int, limits: str) -> int:
    if isinstance(value, Decimal) and value.is_finite() and value == int(value):
        value = int(value)  # as a column NUMERIC is read
    try:
        number = operator.index(value)
    except TypeError:
        raise TypeError(f"{what} must be an int, not {type(value).__name__}") from None
    if not least <= number <= most:
        raise ValueError(f"{what} is out of range: it must be {limits}")
    return number


def number(value: int, what: str) -> int:
    """A number of an option, of 32 bits."""
    return _integer(value, what, 0, 2**32 - 1, "0 to 4294967295")


def integer(value: int, what: str, otherwise: str = "") -> int:
    """A number of the database, of 64 bits; ctypes would cut it."""
    limits = f"of 64 bits, -2**63 to 2**63 - 1{otherwise}"
    return _integer(value, what, -(2**63), 2**63 - 1, limits)


def address(value: int, what: str) -> int:
    """The address of something of another library."""
    return _integer(value, what, 1, 2**64 - 1, "an address, which is not 0")


def instance(value: Any, what: str, *kinds: type) -> Any:
    """An object of one of the package's classes."""
    if not isinstance(value, kinds):
        names = " or ".join(kind.__name__ for kind in kinds)
        raise TypeError(f"{what} must be a {names}, not {type(value).__name__}")
    return value


def callback(value: Any, what: str) -> Any:
    """A function of the application, or None."""
    if value is not None and not callable(value):
        raise TypeError(f"{what} must be a function, not {type(value).__name__}")
    return value


def several(values: Any, what: str, *refused: Any) -> List[Any]:
    """Several values, as a list.  A str would be several, too: its letters."""
    if isinstance(values, (str, bytes, *refused)) or not isinstance(values, Iterable):
        raise TypeError(f"{what} must be a list, not {type(values).__name__}")
    return list(values)


def pairs(values: Any, what: str) -> Dict[Any, Any]:
    """Names and their values, as a dict."""
    if not isinstance(values, Mapping):
        raise TypeError(
            f"{what} must be a dict, such as {{'name': 1}}, not"
            f" {type(values).__name__}"
        )
    return dict(values)


Parameter = Union[None, int, str]


def value_of(parameter: Parameter) -> Value:
    """A parameter of a statement."""
    if parameter is None:
        return Value(type=NULL)
    if isinstance(parameter, int):
        return Value(
            type=INT64, integer=integer(parameter, "a parameter", ", or a str")
        )
    if isinstance(parameter, str):
        data = text(parameter, "a parameter")
        return Value(type=TEXT, text=data, length=len(data or b""))
    raise TypeError(
        "a parameter is None, an int or a str (other types as their text), not"
        f" {type(parameter).__name__}"
    )


__all__ = ["byref", "function", "library"]
