"""Locks in asyncio: requests of the library, and one eventfd for each loop.

The library has requests for one lock.  Calls that it has none for run in
threads of their own; a task that is cancelled meanwhile waits for their end.
"""

from __future__ import annotations

import asyncio
import ctypes
import os
import threading
import weakref
from typing import TYPE_CHECKING, Any, Awaitable, Callable, Dict, Generic, List
from typing import Optional, TypeVar

from . import _native
from ._block import AsyncEnding
from .errors import Error, LockLost, failure
from .lease import Lease, Leases, _end_of_block

if TYPE_CHECKING:
    from .registry import Registry

Result = TypeVar("Result")
Held = TypeVar("Held", Lease, Leases)

_RUNNING = (_native.FETCHING, _native.RELEASING)


class _Watch:
    """The requests that a loop waits for, and the descriptor that tells when
    one of them is over."""

    def __init__(self, port: Port, loop: asyncio.AbstractEventLoop) -> None:
        from .registry import _eventfd

        self.port = port
        self.loop = loop
        self.fd = _eventfd()
        self.pending: Dict[int, asyncio.Future[None]] = {}
        loop.add_reader(self.fd, self.look)

    def look(self) -> None:
        """See which are over."""
        try:
            os.read(self.fd, 8)
        except BlockingIOError:
            return
        for pointer, future in list(self.pending.items()):
            if self.port.status(pointer) not in _RUNNING and not future.done():
                future.set_result(None)


class Port:
    """What a registry has for asyncio."""

    def __init__(self, registry: Registry) -> None:
        # The registry outlives each wait: the lease that waits refers to it.
        self._registry = weakref.ref(registry)
        self._watches: Dict[asyncio.AbstractEventLoop, _Watch] = {}
        self._change = threading.Lock()

    @property
    def registry(self) -> Registry:
        registry = self._registry()
        assert registry is not None
        return registry

    def status(self, pointer: int) -> int:
        """Where a request stands; one of a closed registry is over."""
        try:
            return int(self.registry._ask("request_status", pointer))
        except Error:
            return _native.FREE

    def _watch(self, loop: asyncio.AbstractEventLoop) -> _Watch:
        with self._change:
            watch = self._watches.get(loop)
            if watch is None:
                watch = self._watches[loop] = _Watch(self, loop)
            return watch

    def _unwatch(self, watch: _Watch, pointer: int) -> None:
        """The last one to go closes the descriptor, so no loop that has ended
        leaves one behind."""
        watch.pending.pop(pointer, None)
        if watch.pending:
            return
        with self._change:
            self._watches.pop(watch.loop, None)
            watch.loop.remove_reader(watch.fd)
            os.close(watch.fd)

    def wake(self) -> None:
        """Let each loop look at its requests: a registry that was closed has
        freed them without telling."""
        with self._change:
            for watch in self._watches.values():
                os.write(watch.fd, (1).to_bytes(8, "little"))

    async def run(self, begin: Callable[[Any, int], None]) -> None:
        """Begin a request, and wait for its end without blocking.

        However the task is cancelled, the request is finished or abandoned: the
        library gives back what an abandoned one is granted.
        """
        loop = asyncio.get_running_loop()
        watch = self._watch(loop)
        request = ctypes.c_void_p()
        key = 0
        why = _native.NativeError()
        future: asyncio.Future[None] = loop.create_future()
        # Before it begins, so that the descriptor stays open.
        watch.pending[key] = future
        try:
            begin(_native.byref(request), watch.fd)
            watch.pending.pop(key)
            key = request.value or 0
            watch.pending[key] = future
            await future
            pointer, request.value = request.value, None
            code = self.registry._ask("request_finish", pointer, _native.byref(why))
            if code != 0:
                raise failure(code, why)
        except BaseException:
            if request.value is not None:
                try:
                    self.registry._call("request_abandon", request)
                except Error:
                    pass  # a registry that was closed has freed it
            raise
        finally:
            self._unwatch(watch, key)


class AsyncLocking(AsyncEnding, Generic[Held]):
    """What :meth:`Registry.alock` and :meth:`Registry.alock_many` give: ``async
    with`` acquires it and releases it.  One for each block."""

    def __init__(
        self,
        registry: Registry,
        take: Callable[[], Awaitable[Held]],
        cancel_on_loss: bool,
    ) -> None:
        self._registry = registry
        self._take: Callable[[], Awaitable[Held]] = take
        self._cancel_on_loss = cancel_on_loss
        self._lease: Optional[Held] = None
        self._entered = False
        # The block's task while it runs, and whether we have cancelled it.
        self._task: Optional[asyncio.Task[Any]] = None
        self._cancelled = False
        self._cancelling = 0

    async def __aenter__(self) -> Held:
        if self._entered:
            raise RuntimeError("call alock() or alock_many() for each async with block")
        self._entered = True
        loop = asyncio.get_running_loop()
        lease = self._lease = await self._take()
        self._task = asyncio.current_task()
        if self._cancel_on_loss:
            if self._task is not None and hasattr(self._task, "cancelling"):
                self._cancelling = self._task.cancelling()
            lease._listen(lambda: _call_in(loop, self._lose))
        return lease

    def _lose(self) -> None:
        # Once, however many of its locks are lost.
        if self._task is not None and not self._cancelled:
            self._cancelled = True
            self._task.cancel()

    async def _end_block(self, error: Optional[BaseException]) -> None:
        lease, task, self._task = self._lease, self._task, None
        assert lease is not None and task is not None
        ours = self._cancelled and isinstance(error, asyncio.CancelledError)
        # The block has been told by now: the task does not run while it is
        # being cancelled, so it finds out before it goes on.
        if self._cancelled and hasattr(task, "uncancel"):
            if task.uncancel() > self._cancelling:
                # Somebody else has cancelled it, too.
                lease._abandon()
                raise error or asyncio.CancelledError
        if lease._is_released:
            return  # by the block
        try:
            await lease.arelease()
        except Error as came:
            _end_of_block(lease._title, came, None if ours else error)
        if ours:
            raise failure(LockLost.code) from error


def _call_in(loop: asyncio.AbstractEventLoop, function: Callable[[], None]) -> None:
    try:
        loop.call_soon_threadsafe(function)
    except RuntimeError:
        pass  # the loop has been closed, and with it the task


async def in_thread(
    function: Callable[[], Result],
    *,
    cancel: Optional[Callable[[], object]] = None,
    undo: Optional[Callable[[Result], object]] = None,
    submit: Optional[Callable[[Callable[[], None]], object]] = None,
) -> Result:
    """Call a function that blocks in a thread, one of its own or one that
    ``submit`` has.

    A task that is cancelled calls ``cancel``, waits for the function's end, so
    that nothing goes on behind its back, and passes a result that nobody gets to
    ``undo``.
    """
    loop = asyncio.get_running_loop()
    ended: asyncio.Future[None] = loop.create_future()
    results: List[Result] = []
    errors: List[BaseException] = []

    def tell() -> None:
        if not ended.done():
            ended.set_result(None)

    def run() -> None:
        try:
            results.append(function())
        except BaseException as error:
            errors.append(error)
        _call_in(loop, tell)

    if submit is not None:
        submit(run)
    else:
        threading.Thread(target=run, name="sqlock call", daemon=True).start()
    cancelled: Optional[asyncio.CancelledError] = None
    while not ended.done():
        try:
            await asyncio.shield(ended)
        except asyncio.CancelledError as error:
            if cancelled is None and cancel is not None:
                cancel()
            cancelled = error
    if cancelled is not None:
        if results and undo is not None:
            undo(results[0])
        raise cancelled
    if errors:
        raise errors[0]
    return results[0]
