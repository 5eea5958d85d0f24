"""Transactions and stock in asyncio: the calls of the library in threads."""

from __future__ import annotations

import functools
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Callable, Dict, List, Mapping, Optional, Sequence, Set
from typing import Tuple, TypeVar, Union

from . import _native
from ._block import AsyncEnding
from .aio import in_thread
from .errors import Closed, Error
from .lease import Lease, Leases
from .stock import Answer, Stock, StockStats
from .transaction import Rows, Table, Transaction, Value, Version

if TYPE_CHECKING:
    from ._quorum import Quorum

Result = TypeVar("Result")

# Threads of one stock; more calls wait for one of them.
_STOCK_THREADS = 16


class AsyncTransaction(AsyncEnding):
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

    async def _do(
        self, method: Callable[..., Result], *arguments: object, **options: object
    ) -> Result:
        tx = self._must()
        return await self._run(lambda: method(tx, *arguments, **options))

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

    async def _end_block(self, error: Optional[BaseException]) -> None:
        tx = self._must()
        try:
            if tx._pointer is None:
                return  # the block has ended it
            if error is None:
                await self._run(tx.commit)
            else:
                await self._run(tx._give_up)
        finally:
            self._tx = None
            self._thread.shutdown(wait=False)

    def _drop(self) -> None:
        self._tx = None  # its finalizer knows what to do

    def _give_up(self, tx: Transaction) -> None:
        self._thread.submit(tx._give_up)

    async def commit(self) -> None:
        """As :meth:`Transaction.commit`."""
        await self._do(Transaction.commit)

    async def rollback(self) -> None:
        """As :meth:`Transaction.rollback`."""
        await self._do(Transaction.rollback)

    async def leave(self) -> None:
        """As :meth:`Transaction.leave`."""
        await self._do(Transaction.leave)

    async def execute(self, sql: str, parameters: Sequence[Value] = ()) -> Rows:
        """As :meth:`Transaction.execute`."""
        return await self._do(Transaction.execute, sql, parameters)

    async def guard(self, lease: Union[Lease, Leases, Quorum]) -> None:
        """As :meth:`Transaction.guard`."""
        await self._do(Transaction.guard, lease)

    async def lock(
        self,
        names: Union[str, Sequence[str]],
        wait: Optional[float] = None,
        *,
        skip_locked: bool = False,
    ) -> Set[str]:
        """As :meth:`Transaction.lock`.  A task that is cancelled waits for the
        end of ``wait``: give one."""
        return await self._do(Transaction.lock, names, wait, skip_locked=skip_locked)

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
        await self._do(Transaction.lock_row, table, key, wait, share=share)

    async def fence(self, table: Table, key: Value, token: int, owner: str) -> None:
        """As :meth:`Transaction.fence`."""
        await self._do(Transaction.fence, table, key, token, owner)

    async def version(self, table: Table, key: Value) -> Version:
        """As :meth:`Transaction.version`."""
        return await self._do(Transaction.version, table, key)

    async def update(
        self, table: Table, key: Value, expected: Version, values: Mapping[str, Value]
    ) -> Version:
        """As :meth:`Transaction.update`."""
        return await self._do(Transaction.update, table, key, expected, values)


class AsyncStock(AsyncEnding):
    """What :meth:`Registry.astock` gives: the operations of :class:`Stock`.

    Each runs in one of a few threads of the stock, or in the thread of the
    transaction ``tx``, so the loop goes on meanwhile.  One that has begun is
    carried out: a task that is cancelled waits for its end, and asks again by
    the same order id whether it was.
    """

    def __init__(self, stock: Stock) -> None:
        self._stock = stock
        self._threads = ThreadPoolExecutor(_STOCK_THREADS, "sqlock stock")
        self._is_closed = False  # close() has begun

    def _check(self) -> None:
        if self._is_closed:
            raise Closed("the stock has been closed")

    async def _run(self, function: Callable[[], Result]) -> Result:
        self._check()
        self._stock._must()
        return await in_thread(function, submit=self._threads.submit)

    async def _run_in(
        self,
        tx: Optional[AsyncTransaction],
        method: Callable[..., Result],
        *arguments: object,
        **options: object,
    ) -> Result:
        if tx is not None:
            _native.instance(tx, "tx", AsyncTransaction)
            self._check()
            call = functools.partial(method, *arguments, tx=tx._must(), **options)
            return await tx._run(call)
        return await self._run(functools.partial(method, *arguments, **options))

    async def close(self) -> None:
        """As :meth:`Stock.close`."""
        self._is_closed = True
        try:
            await in_thread(self._close)
        except Error:
            self._is_closed = False
            raise

    def _close(self) -> None:
        self._threads.shutdown(wait=True)
        try:
            self._stock.close()  # after those of the threads of transactions
        except Error:
            self._threads = ThreadPoolExecutor(_STOCK_THREADS, "sqlock stock")
            raise

    async def __aenter__(self) -> AsyncStock:
        return self

    async def _end_block(self, error: Optional[BaseException]) -> None:
        await self.close()

    def _drop(self) -> None:
        """Its finalizer knows what to do."""

    async def deduct(
        self,
        item: str,
        quantity: int = 1,
        *,
        order: Optional[str] = None,
        tx: Optional[AsyncTransaction] = None,
    ) -> Answer:
        """As :meth:`Stock.deduct`."""
        return await self._run_in(tx, self._stock.deduct, item, quantity, order=order)

    async def restore(
        self,
        item: str,
        quantity: int = 1,
        *,
        order: Optional[str] = None,
        tx: Optional[AsyncTransaction] = None,
    ) -> Answer:
        """As :meth:`Stock.restore`."""
        return await self._run_in(tx, self._stock.restore, item, quantity, order=order)

    async def set(
        self,
        item: str,
        quantity: int,
        *,
        order: Optional[str] = None,
        tx: Optional[AsyncTransaction] = None,
    ) -> Answer:
        """As :meth:`Stock.set`."""
        return await self._run_in(tx, self._stock.set, item, quantity, order=order)

    async def read(self, item: str, *, tx: Optional[AsyncTransaction] = None) -> int:
        """As :meth:`Stock.read`."""
        return await self._run_in(tx, self._stock.read, item)

    async def list(self) -> List[Tuple[str, Optional[int]]]:
        """As :meth:`Stock.list`."""
        return await self._run(self._stock.list)

    async def deduct_many(
        self,
        quantities: Mapping[str, int],
        *,
        order: Optional[str] = None,
        tx: Optional[AsyncTransaction] = None,
    ) -> Dict[str, Optional[int]]:
        """As :meth:`Stock.deduct_many`."""
        return await self._run_in(tx, self._stock.deduct_many, quantities, order=order)

    async def restore_many(
        self,
        quantities: Mapping[str, int],
        *,
        order: Optional[str] = None,
        tx: Optional[AsyncTransaction] = None,
    ) -> Dict[str, Optional[int]]:
        """As :meth:`Stock.restore_many`."""
        return await self._run_in(tx, self._stock.restore_many, quantities, order=order)

    async def reserve(
        self,
        order: str,
        quantities: Mapping[str, int],
        ttl: float,
        *,
        tx: Optional[AsyncTransaction] = None,
    ) -> Dict[str, Optional[int]]:
        """As :meth:`Stock.reserve`."""
        return await self._run_in(tx, self._stock.reserve, order, quantities, ttl)

    async def claim(
        self, order: str, *, tx: Optional[AsyncTransaction] = None
    ) -> Answer:
        """As :meth:`Stock.claim`."""
        return await self._run_in(tx, self._stock.claim, order)

    async def cancel(
        self, order: str, *, tx: Optional[AsyncTransaction] = None
    ) -> Answer:
        """As :meth:`Stock.cancel`."""
        return await self._run_in(tx, self._stock.cancel, order)

    async def expire(self) -> int:
        """As :meth:`Stock.expire`."""
        return await self._run(self._stock.expire)

    async def status(
        self, order: str, *, tx: Optional[AsyncTransaction] = None
    ) -> Tuple[str, float]:
        """As :meth:`Stock.status`."""
        return await self._run_in(tx, self._stock.status, order)

    async def reap(
        self, retention: Optional[float] = None, *, dry_run: bool = False
    ) -> Tuple[int, int]:
        """As :meth:`Stock.reap`."""
        stock = self._stock
        return await self._run(lambda: stock.reap(retention, dry_run=dry_run))

    @property
    def stats(self) -> StockStats:
        """As :attr:`Stock.stats`."""
        return self._stock.stats
