"""A table of locks, opened."""

from __future__ import annotations

import ctypes
import functools
import logging
import math
import weakref
from threading import get_ident
from typing import TYPE_CHECKING, Any, Callable, Dict, Generic, List
from typing import NamedTuple, Optional, Sequence, Tuple, TypeVar

from . import _green, _native
from ._block import Block, Ending
from ._actor import running_loop
from ._core import Core, Eventfd, calling_back, held_by, interruptible
from ._core import waits_aside
from .aio import AsyncLocking, Port, in_thread
from .atx import AsyncStock, AsyncTransaction
from .errors import Busy, Deadlock, InUse, NotFound, call
from .info import LockInfo, rows_of, shown
from .leader import AsyncLeader, Leader
from .lease import Handle, Lease, Leases, OnLost, acquire_options
from .stock import Stock
from .transaction import Transaction, adopted

if TYPE_CHECKING:
    from ._quorum import Quorum

log = logging.getLogger("sqlock")
Held = TypeVar("Held", Lease, Leases, "Quorum")
Taken = TypeVar("Taken", Lease, Leases)

_KEY_RULES = {"current": 0, "legacy": 1, "raw": 2}
_LAYOUTS = {"sqlock": 0, "spring7": 1, "spring6": 2}
_WAITING = {"auto": 0, "poll": 1}
_SORTS = {"name": 0, "held": 1, "remaining": 2, "token": 3}


class Times(NamedTuple):
    """A histogram of times."""

    #: How many there were.
    number: int
    #: The sum of all, in seconds.
    seconds: float
    #: How many were longer than the bound before, and no longer than this one:
    #: (seconds, count) from 16 microseconds on, doubling; the last has no bound.
    buckets: List[Tuple[float, int]]


class Stats(NamedTuple):
    """Counters of a registry since it was opened, as in sqlock_registry_stats(3)."""

    attempts: int
    granted: int
    nested: int
    busy: int
    timed_out: int
    cancelled: int
    uncertain: int
    failed: int
    released: int
    handed_off: int
    renewed: int
    lost: int
    expired: int
    in_doubt: int
    statement_errors: int
    connections_opened: int
    reconnects: int
    connections: int
    connections_used: int
    wait: Times
    hold: Times
    statement: Times
    pool_wait: Times


def _times(times: _native.Times) -> Times:
    bounds = [16e-6 * 2**i for i in range(len(times.buckets) - 1)] + [math.inf]
    return Times(times.count, times.sum_us / 1e6, list(zip(bounds, times.buckets)))


# Of the library's levels, from -1 on.
_LEVELS = (logging.DEBUG, logging.INFO, logging.WARNING, logging.ERROR)


def _log_event(context: Any, pointer: Any) -> None:
    """Called by any thread: an event of the library becomes a record."""
    calling_back.add(get_ident())
    try:
        event = pointer[0]
        log.log(
            _LEVELS[min(max(event.level + 1, 0), 3)],
            "%s",
            shown(event.text),
            extra={
                "sqlock_event": shown(event.name),
                "sqlock_lock": shown(event.lock),
                "sqlock_key": shown(event.key),
                "sqlock_token": event.token,
                "sqlock_code": event.code,
            },
        )
    finally:
        calling_back.discard(get_ident())


_LOG_EVENT = _native.EVENT_FN(_log_event)


class Locking(Ending, Generic[Held]):
    """What :meth:`Registry.lock`, :meth:`Registry.lock_many`,
    :meth:`Registry.semaphore` and :func:`quorum` give: ``with`` acquires it and
    releases it.

    It may be used again after it has ended, but not within itself: each owner
    has one of its own.
    """

    def __init__(self, take: Callable[..., Held]) -> None:
        self._take: Callable[..., Held] = take
        self._held: Optional[Held] = None
        self._in_use = False

    def shared(self) -> Locking[Held]:
        """One for readers: they have the lock together, and keep out those who
        want it alone::

            with registry.lock("prices", wait=5).shared() as lease:
                ...
        """
        return Locking(functools.partial(self._take, shared=True))

    def __enter__(self) -> Held:
        if self._in_use:
            raise RuntimeError("it is in use: make one for each with block")
        self._in_use = True
        try:
            self._held = self._take()
            return self._held
        except BaseException:
            held, self._held, self._in_use = self._held, None, False
            if held is not None:
                held._abandon()
            raise

    def _end_block(self, error: Optional[BaseException]) -> None:
        held, self._held, self._in_use = self._held, None, False
        if held is not None:
            held._end_block(error)


class Registry(Block):
    """A table of locks in one database; :func:`sqlock.open` opens it.

    It may be used from any thread, and from any number of asyncio loops.  Each
    lease is an owner of its own: two threads, two tasks, or twice the same one
    exclude each other.  A thread, task or greenlet that waits for a lock which
    it has itself is told by :class:`Deadlock`, as are those that wait crosswise;
    :meth:`Lease.detach` says that another one will release it.  In a child process of ``fork`` every call raises
    :class:`UsedAfterFork`; open another registry there.
    """

    def __init__(self, core: Core) -> None:
        self._core = core
        self._port = Port(core)
        weakref.finalize(self, core.dropped).atexit = False

    @property
    def _pointer(self) -> int:
        return self._core.pointer

    def _call(self, name: str, *arguments: object) -> None:
        """sqlock_NAME(), which raises."""
        self._core.call(name, *arguments)

    # ------------------------------------------------------------ its end --

    def close(self) -> None:
        """Release what is held, and end its connections and threads.

        Waits that are under way end with :class:`Cancelled`, in asyncio also
        with :class:`Closed`; transactions that are open are rolled back, but
        for one on a connection of the application, which is left to it.
        Closing it again does nothing.
        :class:`InUse`: a quorum holds a lock here, and has to be released first, or
        a call of another thread has not ended within 30 seconds.  After an
        exception that comes before its end, such as this one or Ctrl-C, it is
        open as before.
        """
        try:
            self._core.close()
        finally:
            if self._core.closed:
                self._port.wake()

    def _end_block(self, error: Optional[BaseException]) -> None:
        try:
            self.close()
        except InUse as why:
            if error is None:
                raise
            # The block's own exception goes first.
            log.warning("the registry was not closed: %s", why)

    # -------------------------------------------------------------- locks --

    def lock(
        self,
        name: str,
        wait: Optional[float] = None,
        *,
        ttl: Optional[float] = None,
        auto_renew: bool = True,
        max_hold: Optional[float] = None,
        fenced: bool = False,
        fail_fast: bool = False,
        on_lost: Optional[OnLost] = None,
    ) -> Locking[Lease]:
        """A context manager that acquires the lock as :meth:`acquire` does, and
        releases it at the end of the block::

            with registry.lock("invoices", wait=5) as lease:
                ...
                lease.check()

        A lease that was lost raises :class:`LockLost` at the end of the block,
        unless the block has raised something itself.
        """
        given = _given(locals(), "self")
        return Locking(functools.partial(self.acquire, **given))

    def acquire(
        self,
        name: str,
        wait: Optional[float] = None,
        *,
        ttl: Optional[float] = None,
        auto_renew: bool = True,
        max_hold: Optional[float] = None,
        fenced: bool = False,
        fail_fast: bool = False,
        shared: bool = False,
        permits: int = 0,
        weight: int = 0,
        on_lost: Optional[OnLost] = None,
    ) -> Lease:
        """Take the lock, and hold it until the lease is released.

        ``wait``: at most so many seconds; 0 tries once, None waits as long as
        it takes.  Ctrl-C ends a wait of the main thread.  ``ttl``: seconds of
        the lease; ``auto_renew`` renews it in the background, no longer than
        ``max_hold`` seconds.  ``fenced``: the application guards its writes by
        the token.  ``fail_fast``: the first error of the database ends the wait.
        ``shared``: have the lock with others of this mode, in one queue with
        those who want it alone; with ``permits``, so many of them at a time, of
        which this one takes ``weight``, as :meth:`semaphore` does.
        ``on_lost(lease, error)`` is called in a thread of its own once the
        lease is over before its release.

        Raises :class:`Busy` (``wait`` was 0), :class:`Timeout`,
        :class:`Deadlock` (the caller has it already), :class:`Uncertain`,
        :class:`Unreachable`, and others of :class:`Error`.
        """
        wait_ms = _native.wait_ms(wait)
        options = acquire_options(
            ttl, auto_renew, max_hold, fenced, fail_fast, shared, permits, weight
        )
        lease = Lease(self, name, on_lost, options)
        handle = lease._must()

        def take() -> None:
            if wait_ms != 0:
                self._refuse_to_stop(lease)
            if wait_ms == 0 or not waits_aside():
                handle.call("acquire", wait_ms, _native.byref(options))
            else:
                self._acquire_by_request(handle, wait_ms, options)

        return self._granted(lease, [handle], take)

    def _granted(
        self, held: Taken, handles: Sequence[Handle], take: Callable[[], None]
    ) -> Taken:
        """Have it taken, where close() finds the handles that wait; or else leave
        nothing held.  Not a context manager: an interrupt might come between its
        beginning and the block."""
        waiting = self._core.waiting
        try:
            waiting.update(handles)
            take()
            held._granted()
            waiting.difference_update(handles)
            return held
        except BaseException:
            waiting.difference_update(handles)
            held._abandon()
            raise

    def _refuse_to_stop(self, wanted: Lease) -> None:
        """A wait of this thread stops the loop of asyncio that runs in it, and
        the task that has the lock never comes to release it."""
        loop = running_loop()
        for reference in list(held_by.values()) if loop is not None else ():
            one = reference()
            if isinstance(one, Lease) and one._keeps_out(wanted, loop):
                raise Deadlock(
                    "a task of the loop that runs in this thread has the lock: "
                    f"wait for it by aacquire() or alock() ({wanted.name})"
                )

    def try_acquire(self, name: str, **options: Any) -> Optional[Lease]:
        """Take the lock if it is free, with the options of :meth:`acquire`;
        None where another owner has it."""
        try:
            return self.acquire(name, 0, **options)
        except Busy:
            return None

    def _acquire_by_request(
        self, handle: Any, wait_ms: int, options: _native.AcquireOptions
    ) -> None:
        """Where handlers of signals or other greenlets run during the wait, as
        they do not while the library waits."""
        core, use, request, done = self._core, object(), ctypes.c_void_p(), Eventfd()
        leave = core.leave
        try:
            core.enter(use)  # until the wait is over
            core.call(
                "request_acquire",
                _native.byref(request),
                handle.pointer,
                wait_ms,
                _native.byref(options),
                done.fd,
            )
            _green.await_readable(done.fd)
            core.end_entered(request, "request_finish")
        except BaseException:
            core.abandon(request, done)
            raise
        finally:
            leave(use, None)

    def semaphore(
        self,
        name: str,
        permits: int,
        wait: Optional[float] = None,
        *,
        weight: int = 1,
        ttl: Optional[float] = None,
        auto_renew: bool = True,
        max_hold: Optional[float] = None,
        fenced: bool = False,
        fail_fast: bool = False,
        on_lost: Optional[OnLost] = None,
    ) -> Locking[Lease]:
        """As :meth:`lock`, of one of so many permits, or ``weight`` of them, all
        or none::

            with registry.semaphore("scanner", 3, wait=5) as lease:
                ...

        A permit is a lease: it is renewed, can be lost, and is given back by the
        one who has it.  The lock's row has the number of permits, which
        :meth:`set_permits` changes; ``permits`` is for a row that has none, and
        0 leaves such a lock without a limit.
        """
        given = _given_permit(locals())
        return Locking(functools.partial(self.acquire, **given))

    def set_permits(self, name: str, permits: int) -> None:
        """Change how many permits a lock has; 0 makes it one for readers.  Those
        that are granted stay granted.  :class:`NotFound`: nobody has acquired it
        lately; :class:`Conflict`: a Spring service has it."""
        self._call(
            "set_permits",
            self._pointer,
            _native.text(name, "the name of a lock"),
            _native.number(permits, "permits"),
        )

    def lock_many(
        self,
        names: Sequence[str],
        wait: Optional[float] = None,
        *,
        ttl: Optional[float] = None,
        auto_renew: bool = True,
        max_hold: Optional[float] = None,
        fenced: bool = False,
        fail_fast: bool = False,
        on_lost: Optional[OnLost] = None,
    ) -> Locking[Leases]:
        """As :meth:`lock`, of several locks; see :meth:`acquire_many`."""
        given = _given(locals(), "self")
        return Locking(functools.partial(self.acquire_many, **given))

    def acquire_many(
        self,
        names: Sequence[str],
        wait: Optional[float] = None,
        *,
        ttl: Optional[float] = None,
        auto_renew: bool = True,
        max_hold: Optional[float] = None,
        fenced: bool = False,
        fail_fast: bool = False,
        shared: bool = False,
        permits: int = 0,
        weight: int = 0,
        on_lost: Optional[OnLost] = None,
    ) -> Leases:
        """Take all of these locks or none, in one statement, or one for each if they
        are shared, in any order: two callers never deadlock."""
        options = acquire_options(
            ttl, auto_renew, max_hold, fenced, fail_fast, shared, permits, weight
        )
        return self._take_many(names, wait, options, on_lost, Eventfd())

    def _take_many(
        self,
        names: Sequence[str],
        wait: Optional[float],
        options: _native.AcquireOptions,
        on_lost: Optional[OnLost],
        cancel: Eventfd,
    ) -> Leases:
        names = _native.several(names, "names")
        wait_ms = _native.wait_ms(wait)
        options.cancel_fd = cancel.fd
        leases = Leases(self, names, on_lost, options)
        handles = [one._must() for one in leases]

        def call() -> None:
            # It has the handles, also where a second interrupt leaves it alone.
            pointers = (ctypes.c_void_p * len(handles))(
                *[handle.pointer for handle in handles]
            )
            self._call(
                "acquire_many",
                pointers,
                len(handles),
                wait_ms,
                _native.byref(options),
                None,
            )

        def take() -> None:
            if wait_ms == 0:
                return call()
            for one in leases:
                self._refuse_to_stop(one)
            interruptible(call, cancel)

        return self._granted(leases, handles, take)

    # ------------------------------------------------------------ asyncio --

    def alock(
        self,
        name: str,
        wait: Optional[float] = None,
        *,
        ttl: Optional[float] = None,
        auto_renew: bool = True,
        max_hold: Optional[float] = None,
        fenced: bool = False,
        fail_fast: bool = False,
        on_lost: Optional[OnLost] = None,
        cancel_on_loss: bool = True,
    ) -> AsyncLocking[Lease]:
        """As :meth:`lock`, for asyncio: no thread waits, and a task that is
        cancelled waits no longer and leaves no lock held::

            async with registry.alock("invoices", wait=5) as lease:
                ...

        A lease that is lost cancels what the block awaits, and the block ends
        with :class:`LockLost`; ``cancel_on_loss=False`` leaves it running.
        """
        given = _given(locals(), "self", "cancel_on_loss")
        take = functools.partial(self.aacquire, **given)
        return AsyncLocking(take, cancel_on_loss)

    async def aacquire(
        self,
        name: str,
        wait: Optional[float] = None,
        *,
        ttl: Optional[float] = None,
        auto_renew: bool = True,
        max_hold: Optional[float] = None,
        fenced: bool = False,
        fail_fast: bool = False,
        shared: bool = False,
        permits: int = 0,
        weight: int = 0,
        on_lost: Optional[OnLost] = None,
    ) -> Lease:
        """As :meth:`acquire`, for asyncio: to be given back with
        ``await lease.arelease()``.  Cancelled, it leaves no lock held."""
        wait_ms = _native.wait_ms(wait)
        options = acquire_options(
            ttl, auto_renew, max_hold, fenced, fail_fast, shared, permits, weight
        )
        lease = Lease(self, name, on_lost, options)
        handle, waiting = lease._must(), self._core.waiting
        try:
            waiting.add(handle)
            await self._port.run(
                lambda request, done: self._call(
                    "request_acquire",
                    request,
                    handle.pointer,
                    wait_ms,
                    _native.byref(options),
                    done,
                )
            )
            lease._granted()
            waiting.discard(handle)
            return lease
        except BaseException:
            waiting.discard(handle)
            lease._abandon()
            raise

    def asemaphore(
        self,
        name: str,
        permits: int,
        wait: Optional[float] = None,
        *,
        weight: int = 1,
        ttl: Optional[float] = None,
        auto_renew: bool = True,
        max_hold: Optional[float] = None,
        fenced: bool = False,
        fail_fast: bool = False,
        on_lost: Optional[OnLost] = None,
        cancel_on_loss: bool = True,
    ) -> AsyncLocking[Lease]:
        """As :meth:`semaphore`, for asyncio, with the promises of
        :meth:`alock`."""
        given = _given_permit(locals(), "cancel_on_loss")
        take = functools.partial(self.aacquire, **given)
        return AsyncLocking(take, cancel_on_loss)

    def alock_many(
        self,
        names: Sequence[str],
        wait: Optional[float] = None,
        *,
        ttl: Optional[float] = None,
        auto_renew: bool = True,
        max_hold: Optional[float] = None,
        fenced: bool = False,
        fail_fast: bool = False,
        on_lost: Optional[OnLost] = None,
        cancel_on_loss: bool = True,
    ) -> AsyncLocking[Leases]:
        """As :meth:`lock_many`, for asyncio, with the promises of
        :meth:`alock`: the loss of one lock ends the block.  Each call waits in
        a thread of its own, because the library has no request of many
        locks."""
        given = _given(locals(), "self", "cancel_on_loss")
        take = functools.partial(self.aacquire_many, **given)
        return AsyncLocking(take, cancel_on_loss)

    async def aacquire_many(
        self,
        names: Sequence[str],
        wait: Optional[float] = None,
        *,
        ttl: Optional[float] = None,
        auto_renew: bool = True,
        max_hold: Optional[float] = None,
        fenced: bool = False,
        fail_fast: bool = False,
        shared: bool = False,
        permits: int = 0,
        weight: int = 0,
        on_lost: Optional[OnLost] = None,
    ) -> Leases:
        """As :meth:`acquire_many`, for asyncio, in a thread of its own: to be
        given back with ``await leases.arelease()``.  Cancelled, it leaves no
        lock held."""
        options = acquire_options(
            ttl, auto_renew, max_hold, fenced, fail_fast, shared, permits, weight
        )
        cancel = Eventfd()
        return await in_thread(
            lambda: self._take_many(names, wait, options, on_lost, cancel),
            cancel=cancel.raise_,
            undo=Leases._abandon,
            core=self._core,
        )

    def atransaction(self) -> AsyncTransaction:
        """As :meth:`transaction`, for asyncio: ``async with`` begins it, and
        commits it or rolls it back::

            async with registry.atransaction() as tx:
                await tx.guard(lease)
                await tx.execute("UPDATE ...")
        """
        return AsyncTransaction(lambda: Transaction(self))

    def aadopt(self, connection: Any) -> AsyncTransaction:
        """As :meth:`adopt`, for asyncio; also of a psycopg ``AsyncConnection``,
        which has nothing else under way during a call."""
        return AsyncTransaction(lambda: adopted(self, connection))

    async def astock(self, strategy: str = "conditional", **options: Any) -> AsyncStock:
        """As :meth:`stock` with the same options, for asyncio."""
        return AsyncStock(await in_thread(lambda: self.stock(strategy, **options)))

    # ------------------------------------------------------------ leaders --

    def leader(
        self,
        name: str,
        wait: Optional[float] = None,
        *,
        ttl: Optional[float] = None,
        max_hold: Optional[float] = None,
        fenced: bool = False,
        fail_fast: bool = False,
        on_lost: Optional[OnLost] = None,
    ) -> Leader:
        """An election of one leader, by a lock that one has alone.  ``with``
        waits until nobody else leads, and resigns at the end of the block::

            with registry.leader("mailer") as leader:
                leader.publish("10.0.0.7:8080")
                ...
                leader.check()

        Others ask who leads, or wait for a change; see :class:`Leader`.
        """
        given = _given(locals(), "self")
        return Leader(self, name, functools.partial(self.acquire, **given))

    def aleader(
        self,
        name: str,
        wait: Optional[float] = None,
        *,
        ttl: Optional[float] = None,
        max_hold: Optional[float] = None,
        fenced: bool = False,
        fail_fast: bool = False,
        on_lost: Optional[OnLost] = None,
        cancel_on_loss: bool = True,
    ) -> AsyncLeader:
        """As :meth:`leader`, for asyncio, with the promises of :meth:`alock`:
        the loss of the lease ends the block."""
        given = _given(locals(), "self", "cancel_on_loss")
        take = functools.partial(self.aacquire, **given)
        return AsyncLeader(self, name, take, cancel_on_loss)

    # ------------------------------------------- transactions, stock, once --

    def transaction(self) -> Transaction:
        """Begin a transaction on a connection of the registry; ``with`` commits
        it, or rolls it back after an exception."""
        return Transaction(self)

    def adopt(self, connection: Any) -> Transaction:
        """Join the transaction of the application's own connection, or begin
        one on it; ``with`` commits it, or rolls it back after an exception.

        Takes a connection of psycopg or psycopg2 to PostgreSQL, one of apsw to
        SQLite, or the address of a ``PGconn``, ``MYSQL`` or ``sqlite3`` as an
        int, of the client library that libsqlock uses.  The connections of
        Python's sqlite3, and of mysqlclient (MySQLdb) and PyMySQL, do not give
        their handles: :class:`NotSupported`; use :meth:`transaction` there.
        """
        return adopted(self, connection)

    def stock(
        self,
        strategy: str = "conditional",
        *,
        table: Optional[str] = None,
        item_column: Optional[str] = None,
        quantity_column: Optional[str] = None,
        version_column: Optional[str] = None,
        batch: int = 0,
        attempts: int = 0,
        deadline: Optional[float] = None,
    ) -> Stock:
        """Open a stock that never oversells: ours, or the application's table
        by its name and columns.  See :class:`Stock`."""
        return Stock(self, **_given(locals(), "self"))

    def is_done(self, name: str) -> bool:
        """Whether :meth:`Lease.record_done` has been called for that name."""
        try:
            self._call("once_check", self._pointer, _native.text(name, "a name"))
        except NotFound:
            return False
        return True

    # ------------------------------------------------------ administration --

    def show(self, name: str) -> LockInfo:
        """The row of one lock; :class:`NotFound` where it has none."""
        row = ctypes.POINTER(_native.Info)()
        self._call(
            "show",
            self._pointer,
            _native.text(name, "the name of a lock"),
            _native.byref(row),
        )
        return rows_of(row, 1)[0]

    def list(
        self,
        pattern: Optional[str] = None,
        *,
        free: bool = False,
        all_regions: bool = False,
        limit: int = 0,
        sort: str = "name",
    ) -> List[LockInfo]:
        """The locks that are held or expired; ``free``: those of nobody, too.

        ``pattern``: of the names, with ``*`` and ``?``.  ``sort``: name, held,
        remaining or token.
        """
        options = _native.FindOptions(
            pattern=_native.text(pattern, "pattern"),
            free_too=free,
            all_regions=all_regions,
            limit=_native.number(limit, "limit"),
            sort=_native.choice(_SORTS, sort, "sort"),
        )
        rows = ctypes.POINTER(_native.Info)()
        count = ctypes.c_size_t()
        self._call(
            "find_sized",
            self._pointer,
            _native.byref(options),
            _native.byref(rows),
            _native.byref(count),
            ctypes.sizeof(_native.Info),
        )
        return rows_of(rows, count.value)

    def break_lock(
        self,
        name: str,
        *,
        client_id: Optional[str] = None,
        token: int = 0,
        reason: Optional[str] = None,
        who: Optional[str] = None,
        now: bool = False,
    ) -> None:
        """End another owner's lease, named by client id, token or both as
        :meth:`show` tells them; its next renewal finds it lost.

        The lock passes on when the lease would have run out anyway; ``now``
        frees it at once, which is unsafe: its holder may still believe.
        """
        options = _native.BreakOptions(
            token=_native.integer(token, "token"),
            client_id=_native.text(client_id, "client_id"),
            reason=_native.text(reason, "reason"),
            who=_native.text(who, "who"),
            now=now,
        )
        self._call(
            "break",
            self._pointer,
            _native.text(name, "the name of a lock"),
            _native.byref(options),
        )

    def stats(self) -> Stats:
        """What this registry has done: acquisitions, losses, times.  No I/O."""
        stats = _native.Stats()
        self._call("registry_stats", self._pointer, _native.byref(stats))
        values = [getattr(stats, field) for field in Stats._fields]
        return Stats(
            *[_times(v) if isinstance(v, _native.Times) else v for v in values]
        )

    def reap(self, retention: float = 600) -> int:
        """Remove the rows that have been free or expired for longer than so
        many seconds, 0: all of them; how many they were."""
        removed = ctypes.c_int64()
        retention_ms = _native.age_ms(retention, "retention")
        self._call("reap", self._pointer, retention_ms, _native.byref(removed))
        return removed.value


def _given(arguments: Dict[str, Any], *others: str) -> Dict[str, Any]:
    """The arguments of a function, by its locals(), that it hands on by name:
    all but those."""
    return {name: one for name, one in arguments.items() if name not in others}


def _given_permit(arguments: Dict[str, Any], *others: str) -> Dict[str, Any]:
    """As :func:`_given`, of a semaphore, for acquire()."""
    _native.number(arguments["permits"], "permits")
    # To the library 0 means one permit.
    if _native.number(arguments["weight"], "weight") == 0:
        raise ValueError("weight must be 1 or more")
    return {**_given(arguments, "self", *others), "shared": True}


Conversion = Callable[[Any, str], Any]


def _one_of(choices: Dict[str, int]) -> Conversion:
    return lambda value, what: _native.choice(choices, value, what)


# Each option of open(): the field that it is for, and how it gets there.
_OPTIONS: Dict[str, Tuple[str, Conversion]] = {
    "region": ("region", _native.text),
    "table_prefix": ("table_prefix", _native.text),
    "ttl": ("ttl_ms", _native.milliseconds),
    "margin": ("margin_ms", _native.milliseconds),
    "note": ("holder_note", _native.text),
    "pool_size": ("pool_size", _native.number),
    "connect_timeout": ("connect_timeout_ms", _native.milliseconds),
    "statement_timeout": ("statement_timeout_ms", _native.milliseconds),
    "poll": ("poll_ms", _native.milliseconds),
    "renew_period": ("renew_period_ms", _native.milliseconds),
    "key_rule": ("key_rule", _one_of(_KEY_RULES)),
    "peer_ttl": ("peer_ttl_ms", _native.milliseconds),
    "no_peers": ("no_peers", lambda value, _name: bool(value)),
    "waiting": ("waiting", _one_of(_WAITING)),
}


def _options(**given: Any) -> _native.Options:
    options = _native.Options(ownership=_native.OWNED_BY_HANDLE, on_event=_LOG_EVENT)
    for name, value in given.items():
        field, converted = _OPTIONS[name]
        setattr(options, field, converted(value, name))
    return options


def open(
    url: str,
    *,
    region: Optional[str] = None,
    table_prefix: Optional[str] = None,
    ttl: Optional[float] = None,
    margin: Optional[float] = None,
    note: Optional[str] = None,
    pool_size: int = 0,
    connect_timeout: Optional[float] = None,
    statement_timeout: Optional[float] = None,
    poll: Optional[float] = None,
    renew_period: Optional[float] = None,
    key_rule: str = "current",
    peer_ttl: Optional[float] = None,
    no_peers: bool = False,
    waiting: str = "auto",
) -> Registry:
    """Open the table of locks that a URL leads to::

        postgresql://user:password@host/db    as in libpq
        mysql://user:password@host/db?tls=verify&ca=...
        sqlite:relative/path   sqlite:/absolute/path

    Times are seconds; what is left out has the library's default, which
    sqlock(3) tells.  ``region``: a namespace; ``table_prefix``: "INT_" makes
    INT_LOCK; ``ttl``: length of a lease; ``margin``: how much sooner than the
    database the holder stops believing; ``note``: shown with the holder;
    ``key_rule``: current, legacy or raw; ``waiting``: auto or poll;
    ``peer_ttl``: where Spring services share the table; ``no_peers``: none
    does, and locks are not left free for any.

    What happens (a loss, a clock that is set, a server that may forget) goes to
    the logger ``sqlock``; its records have ``sqlock_event``, ``sqlock_lock``,
    ``sqlock_key``, ``sqlock_token`` and ``sqlock_code``.
    """
    given = _given(locals(), "url")
    options = _options(**given)
    out, core = ctypes.c_void_p(), None
    try:
        call(
            "registry_open",
            _native.byref(out),
            _native.text(url, "url"),
            _native.byref(options),
        )
        core = Core(out, options.ttl_ms or 10_000)
        return Registry(core)
    except BaseException:
        if out.value is not None:
            _native.function("registry_close")(out, None)
        elif core is not None:
            core.hand_over("close")
        raise


def create_schema(
    url: str, *, table_prefix: Optional[str] = None, layout: str = "sqlock"
) -> None:
    """Create the table of locks where it does not exist yet, as ``sqlock init``
    does.  ``layout``: sqlock, spring7 or spring6."""
    options = _options(table_prefix=table_prefix)
    call(
        "schema_create",
        _native.text(url, "url"),
        _native.byref(options),
        _native.choice(_LAYOUTS, layout, "layout"),
    )


def create_once_schema(url: str, *, table_prefix: Optional[str] = None) -> None:
    """Create the table of what is done once and for all."""
    options = _options(table_prefix=table_prefix)
    call("once_schema_create", _native.text(url, "url"), _native.byref(options))


def create_stock_schema(url: str, *, table_prefix: Optional[str] = None) -> None:
    """Create the tables of stock."""
    options = _options(table_prefix=table_prefix)
    call("stock_schema_create", _native.text(url, "url"), _native.byref(options))


def version() -> str:
    """The version of the C library."""
    text: bytes = _native.function("version")()
    return text.decode()
