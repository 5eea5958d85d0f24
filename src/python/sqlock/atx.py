"""Transactions and stock in asyncio: the calls of the library in threads."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from types import TracebackType
from typing import Callable, Dict, List, Mapping, Optional, Sequence, Set
from typing import Tuple, Type, TypeVar, Union

from .aio import in_thread
from .errors import Closed, Error
from .lease import Lease, Leases
from .stock import Answer, Stock, StockStats
from .transaction import Rows, Table, Transaction, Value, Version

Result = TypeVar("Result")

# Threads of one stock; more calls wait for one of them.
_STOCK_THREADS = 16


class AsyncTransaction:
    """What :meth:`Registry.atransaction` and :meth:`Registry.aadopt` give:
    ``async with`` begins it, and commits it, or rolls it back after an
    exception.  One for each block.

    The methods are those of :class:`Transaction`.  Each runs in the one thread
    of the transaction, so the loop goes on meanwhile.  A task that is cancelled
    waits for the statement that is under way, which its database ends in the
    limit of time of the registry; then the block rolls back.  A commit that has
    begun is carried out: a task that is cancelled meanwhile does not know
    whether it was.
    """

    def __init__(self, begin: Callable[[], Transaction]) -> None:
        self._begin = begin
        self._tx: Optional[Transaction] = None
        self._thread = ThreadPoolExecutor(1, "sqlock transaction")
        self._entered = False

    async def _run(
        self,
        function: Callable[[], Result],
        undo: Optional[Callable[[Result], object]] = None,
    ) -> Result:
        return await in_thread(function, undo=undo, submit=self._thread.submit)

    def _must(self) -> Transaction:
        if self._tx is None:
            raise Closed("the transaction has not begun, or has ended")
        return self._tx

    async def __aenter__(self) -> AsyncTransaction:
        if self._entered:
            raise RuntimeError("call atransaction() for each async with block")
        self._entered = True
        try:
            begun: Transaction = await self._run(self._begin, self._give_up)
        except BaseException:
            self._thread.shutdown(wait=False)
            raise
        self._tx = begun
        return self

    async def __aexit__(
        self,
        kind: Optional[Type[BaseException]],
        error: Optional[BaseException],
        trace: Optional[TracebackType],
    ) -> None:
        tx = self._must()
        try:
            if tx._pointer is None:
                return  # the block has ended it
            if error is None:
                await self._run(tx.commit)
            else:
                await self._run(lambda: _roll_back(tx))
        finally:
            self._tx = None
            self._thread.shutdown(wait=False)

    def _give_up(self, tx: Transaction) -> None:
        self._thread.submit(_roll_back, tx)

    async def commit(self) -> None:
        """As :meth:`Transaction.commit`."""
        await self._run(self._must().commit)

    async def rollback(self) -> None:
        """As :meth:`Transaction.rollback`."""
        await self._run(self._must().rollback)

    async def leave(self) -> None:
        """As :meth:`Transaction.leave`."""
        await self._run(self._must().leave)

    async def execute(self, sql: str, parameters: Sequence[Value] = ()) -> Rows:
        """As :meth:`Transaction.execute`."""
        tx = self._must()
        return await self._run(lambda: tx.execute(sql, parameters))

    async def guard(self, lease: Union[Lease, Leases]) -> None:
        """As :meth:`Transaction.guard`."""
        tx = self._must()
        await self._run(lambda: tx.guard(lease))

    async def lock(
        self,
        names: Union[str, Sequence[str]],
        wait: Optional[float] = None,
        *,
        skip_locked: bool = False,
    ) -> Set[str]:
        """As :meth:`Transaction.lock`.  A task that is cancelled waits for the
        end of ``wait``: give one."""
        tx = self._must()
        return await self._run(lambda: tx.lock(names, wait, skip_locked=skip_locked))

    async def lock_row(
        self,
        table: Table,
        key: Value,
        wait: Optional[float] = None,
        *,
        share: bool = False,
    ) -> None:
        """As :meth:`Transaction.lock_row`.  A task that is cancelled waits for
        the end of ``wait``: give one."""
        tx = self._must()
        await self._run(lambda: tx.lock_row(table, key, wait, share=share))

    async def fence(self, table: Table, key: Value, token: int, owner: str) -> None:
        """As :meth:`Transaction.fence`."""
        tx = self._must()
        await self._run(lambda: tx.fence(table, key, token, owner))

    async def version(self, table: Table, key: Value) -> Version:
        """As :meth:`Transaction.version`."""
        tx = self._must()
        return await self._run(lambda: tx.version(table, key))

    async def update(
        self, table: Table, key: Value, expected: Version, values: Mapping[str, Value]
    ) -> Version:
        """As :meth:`Transaction.update`."""
        tx = self._must()
        return await self._run(lambda: tx.update(table, key, expected, values))


def _roll_back(tx: Transaction) -> None:
    try:
        tx.rollback()
    except Error:
        pass  # the server rolls back when it notices that we are gone


class AsyncStock:
    """What :meth:`Registry.astock` gives: the operations of :class:`Stock`.

    Each runs in one of a few threads of the stock, or in the thread of the
    transaction ``tx``, so the loop goes on meanwhile.  One that has begun is
    carried out: a task that is cancelled waits for its end, and asks again by
    the same order id whether it was.
    """

    def __init__(self, stock: Stock) -> None:
        self._stock = stock
        self._threads = ThreadPoolExecutor(_STOCK_THREADS, "sqlock stock")

    async def _run(
        self,
        function: Callable[[Optional[Transaction]], Result],
        tx: Optional[AsyncTransaction] = None,
    ) -> Result:
        if tx is not None:
            own = tx._must()
            return await tx._run(lambda: function(own))
        self._stock._must()  # its threads are gone once it is closed
        return await in_thread(lambda: function(None), submit=self._threads.submit)

    async def close(self) -> None:
        """As :meth:`Stock.close`."""
        await in_thread(self._close)

    def _close(self) -> None:
        self._threads.shutdown(wait=True)
        self._stock.close()

    async def __aenter__(self) -> AsyncStock:
        return self

    async def __aexit__(
        self,
        kind: Optional[Type[BaseException]],
        error: Optional[BaseException],
        trace: Optional[TracebackType],
    ) -> None:
        await self.close()

    async def deduct(
        self,
        item: str,
        quantity: int = 1,
        *,
        order: Optional[str] = None,
        tx: Optional[AsyncTransaction] = None,
    ) -> Answer:
        """As :meth:`Stock.deduct`."""
        stock = self._stock
        return await self._run(
            lambda own: stock.deduct(item, quantity, order=order, tx=own), tx
        )

    async def restore(
        self,
        item: str,
        quantity: int = 1,
        *,
        order: Optional[str] = None,
        tx: Optional[AsyncTransaction] = None,
    ) -> Answer:
        """As :meth:`Stock.restore`."""
        stock = self._stock
        return await self._run(
            lambda own: stock.restore(item, quantity, order=order, tx=own), tx
        )

    async def set(
        self,
        item: str,
        quantity: int,
        *,
        order: Optional[str] = None,
        tx: Optional[AsyncTransaction] = None,
    ) -> Answer:
        """As :meth:`Stock.set`."""
        stock = self._stock
        return await self._run(
            lambda own: stock.set(item, quantity, order=order, tx=own), tx
        )

    async def read(self, item: str, *, tx: Optional[AsyncTransaction] = None) -> int:
        """As :meth:`Stock.read`."""
        return await self._run(lambda own: self._stock.read(item, tx=own), tx)

    async def list(self) -> List[Tuple[str, Optional[int]]]:
        """As :meth:`Stock.list`."""
        return await self._run(lambda own: self._stock.list())

    async def deduct_many(
        self,
        quantities: Mapping[str, int],
        *,
        order: Optional[str] = None,
        tx: Optional[AsyncTransaction] = None,
    ) -> Dict[str, Optional[int]]:
        """As :meth:`Stock.deduct_many`."""
        stock = self._stock
        return await self._run(
            lambda own: stock.deduct_many(quantities, order=order, tx=own), tx
        )

    async def restore_many(
        self,
        quantities: Mapping[str, int],
        *,
        order: Optional[str] = None,
        tx: Optional[AsyncTransaction] = None,
    ) -> Dict[str, Optional[int]]:
        """As :meth:`Stock.restore_many`."""
        stock = self._stock
        return await self._run(
            lambda own: stock.restore_many(quantities, order=order, tx=own), tx
        )

    async def reserve(
        self,
        order: str,
        quantities: Mapping[str, int],
        ttl: float,
        *,
        tx: Optional[AsyncTransaction] = None,
    ) -> Dict[str, Optional[int]]:
        """As :meth:`Stock.reserve`."""
        stock = self._stock
        return await self._run(
            lambda own: stock.reserve(order, quantities, ttl, tx=own), tx
        )

    async def claim(
        self, order: str, *, tx: Optional[AsyncTransaction] = None
    ) -> Answer:
        """As :meth:`Stock.claim`."""
        return await self._run(lambda own: self._stock.claim(order, tx=own), tx)

    async def cancel(
        self, order: str, *, tx: Optional[AsyncTransaction] = None
    ) -> Answer:
        """As :meth:`Stock.cancel`."""
        return await self._run(lambda own: self._stock.cancel(order, tx=own), tx)

    async def expire(self) -> int:
        """As :meth:`Stock.expire`."""
        return await self._run(lambda own: self._stock.expire())

    async def status(
        self, order: str, *, tx: Optional[AsyncTransaction] = None
    ) -> Tuple[str, float]:
        """As :meth:`Stock.status`."""
        return await self._run(lambda own: self._stock.status(order, tx=own), tx)

    async def reap(
        self, retention: Optional[float] = None, *, dry_run: bool = False
    ) -> Tuple[int, int]:
        """As :meth:`Stock.reap`."""
        stock = self._stock
        return await self._run(lambda own: stock.reap(retention, dry_run=dry_run))

    @property
    def stats(self) -> StockStats:
        """As :attr:`Stock.stats`."""
        return self._stock.stats
