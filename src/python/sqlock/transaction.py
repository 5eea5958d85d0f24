"""Locks and checks inside a transaction on the application's own tables."""

from __future__ import annotations

import ctypes
import sys
from contextlib import suppress
from typing import TYPE_CHECKING, AbstractSet, Any, List, Mapping, NamedTuple
from typing import Optional, Sequence, Set, Tuple, Union

from . import _native
from ._block import Block
from ._core import Owned
from .errors import Busy, Closed, Error, Invalid, NotSupported
from .lease import Lease, Leases

if TYPE_CHECKING:
    from ._quorum import Quorum
    from .registry import Registry

#: What a column holds; other types travel as their text.
Value = Union[None, int, str]
#: The version of a row.
Version = Union[int, str]

_KINDS = {"integer": 0, "timestamp": 1, "state": 2}


class Rows(List[Tuple[Value, ...]]):
    """What a statement gave: its rows."""

    #: How many rows were inserted, changed or deleted.
    affected: int = 0


class Table(NamedTuple):
    """A table of the application; names are letters, digits and ``_``."""

    #: "stock" or "schema.stock"
    name: str
    #: Unique.
    key_column: str
    #: For :meth:`Transaction.version` and :meth:`Transaction.update`.
    version_column: Optional[str] = None
    #: integer: rises by one; timestamp: of microseconds; state: the
    #: application's own, whose next value is among those that are set.
    version_kind: str = "integer"
    #: For :meth:`Transaction.fence`.
    fence_column: Optional[str] = None
    fence_owner_column: Optional[str] = None

    def _native(self) -> _native.Table:
        return _native.Table(
            name=_native.text(self.name, "the name of a table"),
            key_column=_native.text(self.key_column, "key_column"),
            version_column=_native.text(self.version_column, "version_column"),
            version_kind=_native.choice(_KINDS, self.version_kind, "version_kind"),
            fence_column=_native.text(self.fence_column, "fence_column"),
            fence_owner_column=_native.text(
                self.fence_owner_column, "fence_owner_column"
            ),
        )


def _version_of(value: Version) -> _native.RowVersion:
    if isinstance(value, int):
        number = _native.integer(value, "a version")
        return _native.RowVersion(type=_native.INT64, integer=number)
    if value is not None and not isinstance(value, str):
        kind = type(value).__name__
        raise TypeError(f"a version must be an int or a str, not {kind}")
    data = _native.text(value, "a version") or b""
    if len(data) > 63:
        raise ValueError("a version of more than 63 bytes")
    return _native.RowVersion(type=_native.TEXT, text=data)


def _version_from(version: _native.RowVersion) -> Version:
    if version.type == _native.INT64:
        return int(version.integer)
    return _native.string(version.text)


class Transaction(Owned, Block):
    """A transaction on a connection of the registry, or on the application's.

    ``with`` commits it at its end, or rolls it back after an exception.  It
    belongs to one thread at a time.  On the application's connection, its own
    statements are part of it; they must not run beside a call of this object.

    One that nobody has ended when nobody refers to it any more is rolled back,
    with a ResourceWarning.  The application's connection is left as it is then:
    it may be in another transaction, or closed.
    """

    _ends = "tx_abandon"

    def __init__(self, registry: Registry, connection: Any = None) -> None:
        super().__init__(registry._core)
        self._registry = registry  # open as long as we are
        self._connection = connection
        self._native = 0
        if connection is None:
            self._core.call("tx_begin", _native.byref(self._out), registry._pointer)
        else:
            self._native = native_handle(connection)
            self._core.call(
                "tx_adopt", _native.byref(self._out), registry._pointer, self._native
            )
        self._opened()

    def _must(self) -> int:
        pointer = self._pointer
        if pointer is None:
            raise Closed("the transaction has ended")
        self._look_at_connection()
        return pointer

    def _look_at_connection(self) -> None:
        """The library must not use what the application has closed."""
        if self._native and not isinstance(self._connection, int):
            if _handle_of(self._connection) != self._native:
                raise Closed("the connection has been closed under its transaction")

    def _call(self, name: str, *arguments: object) -> None:
        self._core.call(name, self._must(), *arguments)

    def _end(self, name: str) -> None:
        try:
            self._must()
        except Closed:
            if self._pointer is not None:
                self._core.end_one(self._out, "tx_abandon")
            raise
        self._core.end_one(self._out, name)

    # ------------------------------------------------------------- its end --

    def commit(self) -> None:
        """Commit it, also one that was joined.  Leases that were guarded are
        checked once more.  :class:`Uncertain`: the connection broke under the
        commit; every other error: it was rolled back."""
        self._end("tx_commit")

    def rollback(self) -> None:
        """Roll it back, also one that was joined."""
        self._end("tx_rollback")

    def leave(self) -> None:
        """Let go of the application's connection and leave its transaction as
        it is, for the application to end."""
        if self._pointer is not None and self._connection is None:
            raise Invalid(
                "this transaction uses a connection of the registry: commit it or"
                " roll it back"
            )
        self._end("tx_leave")

    def _end_block(self, error: Optional[BaseException]) -> None:
        if self._pointer is None:
            return
        if error is None:
            self.commit()
        else:
            self._give_up()

    def _give_up(self) -> None:
        try:
            self.rollback()
        except Error:
            pass  # the server rolls back when it notices that we are gone

    # ---------------------------------------------------------- statements --

    def execute(self, sql: str, parameters: Sequence[Value] = ()) -> Rows:
        """One statement, with a ``?`` for each parameter (``??`` is a question
        mark on PostgreSQL); its rows.  :class:`Timeout`: it took longer than the
        registry's statement_timeout."""
        # Mappings and sets have no order that the statement could have meant.
        parameters = _native.several(parameters, "parameters", Mapping, AbstractSet)
        values = (_native.Value * len(parameters))()
        for i, parameter in enumerate(parameters):
            values[i] = _native.value_of(parameter)
        result = _native.Result()
        self._call(
            "tx_execute",
            _native.text(sql, "a statement"),
            values,
            len(parameters),
            _native.byref(result),
        )
        try:
            rows = Rows(
                tuple(
                    _cell(result.cells[row * result.columns + column])
                    for column in range(result.columns)
                )
                for row in range(result.rows)
            )
            rows.affected = result.affected
        finally:
            _native.function("result_clear")(_native.byref(result))
        return rows

    # --------------------------------------------------------------- locks --

    def guard(self, lease: Union[Lease, Leases, Quorum]) -> None:
        """Let the database check that the lease is ours still, and keep anybody
        from taking the lock over before the transaction ends.  Raises
        :class:`LockLost`, or what else was refused; the transaction does not
        commit then.  Of several leases each one is guarded; of a quorum the lock
        of this registry."""
        try:
            if not hasattr(lease, "_locks_in"):
                kind = type(lease).__name__
                raise TypeError(f"lease must be a Lease, Leases or Quorum, not {kind}")
            locks = lease._locks_in(self._core)
        except Exception:
            with suppress(Error):  # it has no lock, and so is refused
                self._call("tx_guard", None)
            raise
        for lock, _kept in locks:
            self._call("tx_guard", lock)

    def lock(
        self,
        names: Union[str, Sequence[str]],
        wait: Optional[float] = None,
        *,
        skip_locked: bool = False,
    ) -> Set[str]:
        """Lock names until the transaction ends: others than the leases of the
        same names.  ``skip_locked`` takes those that nobody has.  Gives the
        names that were taken."""
        if isinstance(names, str):
            names = [names]
        listed = _native.several(names, "names")
        wait_ms = 0 if skip_locked else _native.wait_ms(wait)
        array = (ctypes.c_char_p * len(listed))(
            *[_native.text(name, "the name of a lock") for name in listed]
        )
        results = (ctypes.c_int * len(listed))()
        try:
            self._call("tx_lock", array, len(listed), wait_ms, skip_locked, results)
        except Busy:
            if not skip_locked:
                raise
        return {name for name, code in zip(listed, results) if code == 0}

    def lock_row(
        self,
        table: Table,
        key: Value,
        wait: Optional[float] = None,
        *,
        share: bool = False,
    ) -> None:
        """Lock a row FOR UPDATE, or FOR SHARE, until the transaction ends."""
        self._call(
            "tx_lock_row",
            *_row(table, key),
            share,
            _native.wait_ms(wait),
        )

    def fence(self, table: Table, key: Value, token: int, owner: str) -> None:
        """Set the fence column of a row to the token and its owner column to
        the owner; :class:`Conflict` if it has had a greater token."""
        self._call(
            "tx_fence",
            *_row(table, key),
            _native.integer(token, "token"),
            _native.text(owner, "owner"),
        )

    def version(self, table: Table, key: Value) -> Version:
        """The version of a row."""
        version = _native.RowVersion()
        self._call(
            "tx_version",
            *_row(table, key),
            _native.byref(version),
        )
        return _version_from(version)

    def update(
        self, table: Table, key: Value, expected: Version, values: Mapping[str, Value]
    ) -> Version:
        """Update a row that has that version still, and give it the next one;
        :class:`Conflict` if it has another."""
        values = _native.pairs(values, "values")
        assignments = (_native.Assignment * len(values))()
        for i, (column, value) in enumerate(values.items()):
            assignments[i] = _native.Assignment(
                column=_native.text(column, "a column"), value=_native.value_of(value)
            )
        following = _native.RowVersion()
        self._call(
            "tx_update",
            *_row(table, key),
            _native.byref(_version_of(expected)),
            assignments,
            len(values),
            _native.byref(following),
        )
        return _version_from(following)


def adopted(registry: Registry, connection: Any) -> Transaction:
    """A transaction on a connection of the application."""
    if connection is None:
        raise TypeError("connection must not be None: transaction() has one of ours")
    return Transaction(registry, connection)


def _row(table: Table, key: Value) -> Tuple[Any, Any]:
    """A row as the library takes it."""
    _native.instance(table, "table", Table)
    return _native.byref(table._native()), _native.byref(_native.value_of(key))


def _cell(cell: _native.Value) -> Value:
    if cell.type == _native.NULL:
        return None
    if cell.type == _native.INT64:
        return int(cell.integer)
    return _native.string(ctypes.string_at(cell.text, cell.length))


# ------------------------------------------------------ native connections --


def _mapped(library: str) -> Set[str]:
    """The files of a client library that are loaded here; more than one when a
    module has brought one of its own."""
    with open("/proc/self/maps", encoding="utf-8", errors="replace") as maps:
        paths = {line.split(maxsplit=5)[-1].strip() for line in maps if "/" in line}
    return {p for p in paths if p.rsplit("/", 1)[-1].startswith(library)}


def _one_libpq(module: str) -> None:
    files = _mapped("libpq.so") | _mapped("libpq-")
    if len(files) > 1:
        raise NotSupported(
            f"{module} has a libpq of its own, whose connections libsqlock cannot"
            f" use ({', '.join(sorted(files))}): install it without its binaries,"
            " such as psycopg[c] or Debian's package"
        )


def _module_of(connection: Any) -> str:
    return type(connection).__module__.split(".")[0]


def _handle_of(connection: Any) -> int:
    """The address of the handle of a connection; 0 once it is closed."""
    module = _module_of(connection)
    if module == "psycopg":
        return int(connection.pgconn.pgconn_ptr or 0)
    if module == "apsw":
        try:
            return int(connection.sqlite3pointer() or 0)
        except sys.modules[module].ConnectionClosedError:
            return 0
    return 0 if connection.closed else int(connection.pgconn_ptr or 0)


def native_handle(connection: Any) -> int:
    """The address of the PGconn or sqlite3 of a connection; see
    :meth:`Registry.adopt`."""
    if isinstance(connection, int):
        return _native.address(connection, "connection")
    module = _module_of(connection)
    if module in ("psycopg", "psycopg2") or hasattr(connection, "pgconn_ptr"):
        _one_libpq(module)
    elif module == "apsw":
        if sys.modules[module].using_amalgamation:
            raise NotSupported(
                "apsw has an SQLite of its own, whose connections libsqlock cannot"
                " use: install one that uses the system's, such as Debian's package"
            )
    else:
        kind = f"{type(connection).__module__}.{type(connection).__qualname__}"
        raise NotSupported(
            f"the native handle of a {kind} cannot be had: use"
            " registry.transaction(), or psycopg, psycopg2 or apsw"
        )
    pointer = _handle_of(connection)
    if not pointer:
        raise Closed("the connection has been closed")
    return pointer
