"""Locks in asyncio: requests of the library, and one eventfd for each loop.

The library has requests for one lock.  Calls that it has none for run in
threads of their own; a task that is cancelled meanwhile waits for their end.
"""

from __future__ import annotations

import asyncio
import ctypes
import functools
import os
import threading
import weakref
from typing import TYPE_CHECKING, Any, Awaitable, Callable, Dict, Generic, List
from typing import Optional, Tuple, TypeVar, Union

from . import _green, _native
from ._block import AsyncEnding
from ._core import Core, Eventfd, Wait
from .errors import Error, LockLost, OutOfResources, failure
from .lease import Lease, Leases, _end_of_block

if TYPE_CHECKING:
    from ._quorum import Quorum

Result = TypeVar("Result")
Held = TypeVar("Held", Lease, Leases, "Quorum")

_RUNNING = (_native.FETCHING, _native.RELEASING)


class _Watch(Wait):
    """The requests that a loop waits for, and the descriptor that tells when
    one of them is over.  Only the loop and its tasks refer to it."""

    def __init__(self, core: Core, loop: asyncio.AbstractEventLoop) -> None:
        self.core = core
        self.loop = loop
        self.done = Eventfd()
        # Who takes an entry out ends its request.
        self.pending: Dict[int, Tuple[ctypes.c_void_p, asyncio.Future[None]]] = {}
        loop.add_reader(self.done.fd, self.look)

    def look(self) -> None:
        """See which are over."""
        try:
            os.read(self.done.fd, 8)
        except BlockingIOError:
            return
        for request, future in list(self.pending.values()):
            if self.status(request) not in _RUNNING and not future.done():
                future.set_result(None)

    def status(self, request: ctypes.c_void_p) -> int:
        """Where a request stands; one of a closed registry is over."""
        try:
            return int(self.core.ask("request_status", request))
        except Error:
            return _native.FREE

    def abandon(self, key: int) -> None:
        """Abandon a request: the library gives back what it is granted."""
        request, _ = self.pending.pop(key, (None, None))
        if request:
            self.core.abandon(request, self)

    def drop(self, key: int) -> None:
        """As abandon(), in a finalizer."""
        request, _ = self.pending.pop(key, (None, None))
        if request and self.core.is_usable():
            self.core.hand_over("request_abandon", request.value, self)

    def give_up(self) -> None:
        for key in list(self.pending):
            self.abandon(key)


class Port:
    """What a registry has for asyncio."""

    def __init__(self, core: Core) -> None:
        self._core = core
        self._watches: "weakref.WeakValueDictionary[int, _Watch]" = (
            weakref.WeakValueDictionary()
        )
        self._change = threading.Lock()

    def _watch(self, loop: asyncio.AbstractEventLoop) -> _Watch:
        with self._change:
            watch = self._watches.get(id(loop))
            if watch is None or watch.loop is not loop:
                watch = self._watches[id(loop)] = _Watch(self._core, loop)
                self._core.watch(watch)
            return watch

    def _unwatch(self, watch: _Watch) -> None:
        """The last one to go lets go of the descriptor, so no loop that has
        ended leaves one behind."""
        with self._change:
            if not watch.pending and not watch.loop.is_closed():
                self._watches.pop(id(watch.loop), None)
                watch.loop.remove_reader(watch.done.fd)

    def wake(self) -> None:
        """Let each loop look at its requests: a registry that was closed has
        freed them without telling."""
        for watch in list(self._watches.values()):
            watch.done.raise_()

    async def run(self, begin: Callable[[Any, int], None]) -> None:
        """Begin a request, and wait for its end without blocking.

        However the task ends, the request is finished or abandoned.
        """
        loop = asyncio.get_running_loop()
        watch = self._watch(loop)
        request = ctypes.c_void_p()
        key = id(request)
        future: asyncio.Future[None] = loop.create_future()
        watch.pending[key] = (request, future)
        try:
            begin(_native.byref(request), watch.done.fd)
            await future
            self._core.end_one(request, "request_finish")
        except GeneratorExit:  # from the collector: the loop is not ours to use
            watch.drop(key)
            raise
        except BaseException:
            watch.abandon(key)
            self._unwatch(watch)
            raise
        watch.pending.pop(key, None)
        self._unwatch(watch)


class AsyncLocking(AsyncEnding, Generic[Held]):
    """What :meth:`Registry.alock`, :meth:`Registry.alock_many`,
    :meth:`Registry.asemaphore` and :func:`aquorum` give: ``async with`` acquires it and releases it.
    One for each block."""

    def __init__(
        self,
        take: Callable[..., Awaitable[Held]],
        cancel_on_loss: bool,
    ) -> None:
        self._take: Callable[..., Awaitable[Held]] = take
        self._cancel_on_loss = cancel_on_loss
        self._lease: Optional[Held] = None
        self._entered = False
        # The block's task while it runs, and whether we have cancelled it.
        self._task: Optional[asyncio.Task[Any]] = None
        self._cancelled = False
        self._cancelling = 0

    def shared(self) -> AsyncLocking[Held]:
        """As :meth:`Locking.shared`."""
        take = functools.partial(self._take, shared=True)
        return AsyncLocking(take, self._cancel_on_loss)

    async def __aenter__(self) -> Held:
        if self._entered:
            raise RuntimeError("it was used: make one for each async with block")
        self._entered = True
        try:
            lease = self._lease = await self._take()
            self._task = asyncio.current_task()
            if self._task is not None and hasattr(self._task, "cancelling"):
                self._cancelling = self._task.cancelling()
            self._hold(lease)
            return lease
        except BaseException:
            self._drop()
            raise

    def _drop(self) -> None:
        if self._lease is not None:
            self._lease._abandon()

    def _hold(self, lease: Held) -> None:
        """Have the block end with the lease, and release it at its end."""
        loop = asyncio.get_running_loop()
        self._lease = lease
        if self._cancel_on_loss:
            lease._listen(lambda: _call_in(loop, lambda: self._lose(lease)))

    def _lose(self, lease: Held) -> None:
        # Once, however many of its locks are lost; and not for a lease that the
        # block has let go.
        if self._task is None or self._cancelled or lease._is_released:
            return
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
        try:
            if not lease._is_released:  # by the block
                await lease.arelease()
        except Error as came:
            _end_of_block(lease._title, came, None if ours else error)
        if ours:
            raise failure(LockLost.code) from error


def _call_in(loop: asyncio.AbstractEventLoop, function: Callable[[], None]) -> bool:
    """Have the loop call it; False if it has been closed, and with it the
    task."""
    try:
        loop.call_soon_threadsafe(function)
        return True
    except RuntimeError:
        return False


class _ThreadCall(Wait, Generic[Result]):
    """A call in a thread that a task waits for."""

    def __init__(
        self,
        function: Callable[[], Result],
        cancel: Optional[Callable[[], object]],
        undo: Optional[Callable[[Result], object]],
    ) -> None:
        self.loop = asyncio.get_running_loop()
        self.ended: asyncio.Future[None] = self.loop.create_future()
        # Whoever takes it out calls it, or sees to it that nobody does.
        self.functions = [function]
        self.cancel = cancel
        self.undo = undo
        self.results: List[Result] = []
        self.errors: List[BaseException] = []

    def run(self) -> None:
        """In the thread."""
        try:
            function = self.functions.pop()
        except IndexError:
            return
        try:
            self.results.append(function())
        except BaseException as error:
            self.errors.append(error)
        if not _call_in(self.loop, self.tell):
            self.take_back()

    def withdraw(self) -> bool:
        """Let no thread begin it; False if one has."""
        try:
            self.functions.pop()
        except IndexError:
            return False
        return True

    def tell(self) -> None:
        if not self.ended.done():
            self.ended.set_result(None)

    def give_up(self) -> None:
        """Its result is for nobody."""
        cancel, self.cancel = self.cancel, None
        if cancel is not None:
            cancel()

    def take_back(self) -> None:
        if self.results and self.undo is not None:
            self.undo(self.results.pop())


async def in_thread(
    function: Callable[[], Result],
    *,
    cancel: Optional[Callable[[], object]] = None,
    undo: Optional[Callable[[Result], object]] = None,
    submit: Optional[Callable[[Callable[[], None]], object]] = None,
    core: Optional[Core] = None,
) -> Result:
    """Call a function that blocks in a thread, one of its own or one that
    ``submit`` has.

    A task that is cancelled calls ``cancel``, waits for the function's end, so
    that nothing goes on behind its back, and passes a result that nobody gets to
    ``undo``.  With ``core`` that is done, too, when the loop is closed.
    """
    call = _ThreadCall(function, cancel, undo)
    if core is not None:
        core.watch(call)
    try:
        (submit or _green.start)(call.run)
    except RuntimeError as error:
        # Another thread of a pool may yet find it.
        if call.withdraw():
            raise OutOfResources("no thread can be started") from error
    cancelled: Optional[asyncio.CancelledError] = None
    while not call.ended.done():
        try:
            await asyncio.shield(call.ended)
        except asyncio.CancelledError as error:
            call.give_up()
            cancelled = error
        except GeneratorExit:  # from the collector
            call.give_up()
            raise
    if cancelled is not None:
        call.take_back()
        try:
            raise cancelled
        finally:
            del cancelled  # not kept by this frame, which its traceback has
    if call.errors:
        raise call.errors.pop()
    return call.results[0]


async def release_in_thread(held: Union[Leases, Quorum]) -> None:
    """Release it, as release() does: it is not held any more whatever comes."""
    try:
        await in_thread(held.release)
    except OutOfResources:
        held._abandon()  # what no thread could be had for
        raise
