"""Stock that never oversells."""

from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING, Any, Dict, List, Mapping, NamedTuple, Optional
from typing import Tuple

from . import _native
from ._block import Block
from ._core import Core, Owned
from ._uses import Uses
from .errors import Closed, Insufficient
from .transaction import Transaction

if TYPE_CHECKING:
    from .registry import Registry

_STRATEGIES = {
    "conditional": 0,
    "pessimistic": 1,
    "optimistic": 2,
    "coalesced": 3,
}
_DEDUCT, _RESTORE, _RESERVE = range(3)
_STATES = ("reserved", "claimed", "cancelled", "expired")


class Answer(NamedTuple):
    """What an operation answers."""

    #: What is left; None where it is not known.  Of a duplicate: as it was then.
    left: Optional[int]
    #: The order had been answered before.
    is_duplicate: bool
    #: How often it was tried.
    attempts: int


class StockStats(NamedTuple):
    """What a stock has done since it was opened."""

    #: Calls that got as far as the database.
    operations: int
    #: Attempts beyond the first of each.
    retries: int
    #: Coalesced: statements of those who deduct for all that wait.
    rounds: int
    #: Coalesced: callers served by them.
    combined: int
    #: Coalesced: rounds that one caller waited for, at most.
    most_rounds: int


class _Uses(Uses):
    """The calls of a stock."""

    def __init__(self, core: Core, out: ctypes.c_void_p) -> None:
        super().__init__("stock")
        self._core = core
        self._out = out

    def end(self) -> None:
        if self._out.value and self._core.is_usable():
            self._core.end_one(self._out, "stock_close")

    def is_there(self) -> bool:
        return bool(self._out.value)


class Stock(Owned, Block):
    """A table of items and quantities; :meth:`Registry.stock` opens it.

    What is asked for is deducted entirely or not at all.  An ``order`` names one
    operation: it happens once, however often it is sent; the same order again
    gets the first answer.  With ``tx`` an operation is part of that transaction.
    May be used from any thread.

    ``strategy``: conditional (for most), pessimistic (FOR UPDATE), optimistic
    (by the version), coalesced (a hot item, many threads of a process).
    """

    def __init__(
        self,
        registry: Registry,
        strategy: str,
        *,
        table: Optional[str],
        item_column: Optional[str],
        quantity_column: Optional[str],
        version_column: Optional[str],
        batch: int,
        attempts: int,
        deadline: Optional[float],
    ) -> None:
        super().__init__(registry._core)
        self._registry = registry  # open as long as we are
        self._uses = _Uses(self._core, self._out)
        options = _native.StockOptions(
            strategy=_native.choice(_STRATEGIES, strategy, "strategy"),
            table=_native.text(table, "table"),
            item_column=_native.text(item_column, "item_column"),
            quantity_column=_native.text(quantity_column, "quantity_column"),
            version_column=_native.text(version_column, "version_column"),
            batch=_native.number(batch, "batch"),
            attempts=_native.number(attempts, "attempts"),
            deadline_ms=_native.milliseconds(deadline, "deadline"),
        )
        self._core.call(
            "stock_open",
            _native.byref(self._out),
            registry._pointer,
            _native.byref(options),
        )
        self._opened()

    _ends = "stock_close"

    # ------------------------------------------------------------- its end --

    def close(self) -> None:
        """Free it, once the calls of other threads have ended.  :class:`InUse`:
        one has not ended within 30 seconds; it is open as before."""
        self._uses.refuse_own_call()
        self._uses.end_after_calls()

    def _end_block(self, error: Optional[BaseException]) -> None:
        self.close()

    def _must(self) -> int:
        if self._pointer is None:
            raise Closed("the stock has been closed")
        return self._pointer

    def _call(self, name: str, *arguments: object) -> None:
        use, leave = object(), self._uses.leave
        try:
            self._uses.enter(use)
            self._core.call("stock_" + name, self._must(), *arguments)
        finally:
            leave(use, None)

    def _call_in(
        self, tx: Optional[Transaction], name: str, *arguments: object
    ) -> None:
        if tx is not None:
            _native.instance(tx, "tx", Transaction)
        self._call(name, tx._must() if tx is not None else None, *arguments)

    # ---------------------------------------------------------- one of them --

    def _change(
        self,
        name: str,
        item: str,
        quantity: int,
        order: Optional[str],
        tx: Optional[Transaction],
    ) -> Answer:
        answer = _native.StockAnswer()
        try:
            self._call_in(
                tx,
                name,
                _native.text(order, "order"),
                _native.text(item, "item"),
                _quantity(quantity),
                _native.byref(answer),
            )
        except Insufficient as error:
            error.left, error.item = answer.left, item
            raise
        return _answer(answer)

    def deduct(
        self,
        item: str,
        quantity: int = 1,
        *,
        order: Optional[str] = None,
        tx: Optional[Transaction] = None,
    ) -> Answer:
        """Deduct so many of an item; :class:`Insufficient` if less is there,
        :class:`NotFound` if there is no such item."""
        return self._change("deduct", item, quantity, order, tx)

    def restore(
        self,
        item: str,
        quantity: int = 1,
        *,
        order: Optional[str] = None,
        tx: Optional[Transaction] = None,
    ) -> Answer:
        """Add so many to an item."""
        return self._change("restore", item, quantity, order, tx)

    def set(
        self,
        item: str,
        quantity: int,
        *,
        order: Optional[str] = None,
        tx: Optional[Transaction] = None,
    ) -> Answer:
        """Make an item's quantity that; in our table a missing one is made."""
        return self._change("set", item, quantity, order, tx)

    def read(self, item: str, *, tx: Optional[Transaction] = None) -> int:
        """The quantity of an item."""
        quantity = ctypes.c_int64()
        self._call_in(
            tx,
            "read",
            _native.text(item, "item"),
            _native.byref(quantity),
        )
        return quantity.value

    def list(self) -> List[Tuple[str, Optional[int]]]:
        """All items and their quantities, by name."""
        items = ctypes.POINTER(_native.StockItem)()
        count = ctypes.c_size_t()
        self._call(
            "list_sized",
            _native.byref(items),
            _native.byref(count),
            ctypes.sizeof(_native.StockItem),
        )
        try:
            return [
                (_native.string(one.name), _known(one.quantity))
                for one in items[: count.value]
            ]
        finally:
            _native.function("free")(items)

    # -------------------------------------------------------------- several --

    def _change_many(
        self,
        kind: int,
        quantities: Mapping[str, int],
        order: Optional[str],
        tx: Optional[Transaction],
        ttl_ms: int = 0,
    ) -> Dict[str, Optional[int]]:
        quantities = _native.pairs(quantities, "quantities")
        lines = (_native.StockLine * len(quantities))()
        for i, (item, quantity) in enumerate(quantities.items()):
            lines[i] = _native.StockLine(
                item=_native.text(item, "item"), quantity=_quantity(quantity)
            )
        answer = _native.StockAnswer()
        try:
            self._call_in(
                tx,
                "change_sized",
                kind,
                _native.text(order, "order"),
                lines,
                len(quantities),
                ttl_ms,
                _native.byref(answer),
                ctypes.sizeof(_native.StockLine),
            )
        except Insufficient as error:
            error.item = list(quantities)[answer.line]
            error.left = answer.left
            raise
        return {item: _known(line.left) for item, line in zip(quantities, lines)}

    def deduct_many(
        self,
        quantities: Mapping[str, int],
        *,
        order: Optional[str] = None,
        tx: Optional[Transaction] = None,
    ) -> Dict[str, Optional[int]]:
        """Deduct several items, all or nothing; what is left of each."""
        return self._change_many(_DEDUCT, quantities, order, tx)

    def restore_many(
        self,
        quantities: Mapping[str, int],
        *,
        order: Optional[str] = None,
        tx: Optional[Transaction] = None,
    ) -> Dict[str, Optional[int]]:
        """Add to several items, all or nothing."""
        return self._change_many(_RESTORE, quantities, order, tx)

    # --------------------------------------------------------- reservations --

    def reserve(
        self,
        order: str,
        quantities: Mapping[str, int],
        ttl: float,
        *,
        tx: Optional[Transaction] = None,
    ) -> Dict[str, Optional[int]]:
        """Deduct several items until the order is claimed, is cancelled, or
        ``ttl`` seconds have passed on the database's clock."""
        ttl_ms = _native.milliseconds(ttl, "ttl", 2**62)
        return self._change_many(_RESERVE, quantities, order, tx, ttl_ms)

    def _decide(self, name: str, order: str, tx: Optional[Transaction]) -> Answer:
        answer = _native.StockAnswer()
        self._call_in(
            tx,
            name,
            _native.text(order, "order"),
            _native.byref(answer),
        )
        return _answer(answer)

    def claim(self, order: str, *, tx: Optional[Transaction] = None) -> Answer:
        """Make a reservation final; :class:`LockExpired`: its time is over."""
        return self._decide("claim", order, tx)

    def cancel(self, order: str, *, tx: Optional[Transaction] = None) -> Answer:
        """Give a reservation's quantities back."""
        return self._decide("cancel", order, tx)

    def expire(self) -> int:
        """Give back the quantities of reservations whose time is over; how many
        reservations they were.  To be called now and then, by any process."""
        expired = ctypes.c_int64()
        self._call("expire", _native.byref(expired))
        return expired.value

    def status(
        self, order: str, *, tx: Optional[Transaction] = None
    ) -> Tuple[str, float]:
        """What has become of a reservation (reserved, claimed, cancelled or
        expired), and the seconds that it has left."""
        state = ctypes.c_int()
        remaining = ctypes.c_int64()
        self._call_in(
            tx,
            "status",
            _native.text(order, "order"),
            _native.byref(state),
            _native.byref(remaining),
        )
        return _STATES[state.value], remaining.value / 1000

    # ------------------------------------------------------------------ rest --

    def reap(
        self, retention: Optional[float] = None, *, dry_run: bool = False
    ) -> Tuple[int, int]:
        """Forget orders and reservations that were over that many seconds ago
        (90 days); how many rows of orders, and how many reservations.  Waits
        for rows that others have locked, for the stock's deadline."""
        options = _native.StockReapOptions(
            retention_ms=_native.milliseconds(retention, "retention", 2**62),
            dry_run=dry_run,
        )
        reaped = _native.StockReaped()
        self._call("reap", _native.byref(options), _native.byref(reaped))
        return reaped.entries, reaped.reservations

    @property
    def stats(self) -> StockStats:
        """What it has done since it was opened."""
        stats = _native.StockStats()
        self._call("statistics", _native.byref(stats))
        return StockStats(*[getattr(stats, field) for field in StockStats._fields])


def _quantity(quantity: Any) -> int:
    if isinstance(quantity, bool):
        raise TypeError("a quantity must be an int, not bool")
    return _native.integer(quantity, "a quantity")


def _known(quantity: int) -> Optional[int]:
    """A quantity of the library.  In a table of the application it may be below
    zero."""
    return None if quantity == -1 else quantity


def _answer(answer: _native.StockAnswer) -> Answer:
    return Answer(_known(answer.left), answer.is_duplicate, answer.attempts)
