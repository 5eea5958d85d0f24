"""Election of a leader: a lock that one has alone, with a text."""

from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING, Awaitable, Callable, List, Optional

from . import _native
from ._block import AsyncEnding, Ending
from ._core import Eventfd, interruptible
from .aio import AsyncLocking, in_thread
from .errors import Timeout, failure
from .info import LockInfo, info_of
from .lease import Lease

if TYPE_CHECKING:
    from .registry import Registry


class _Seen:
    """The leader that was seen last, as the library keeps it."""

    def __init__(self) -> None:
        self.row = ctypes.POINTER(_native.Info)()

    def info(self) -> Optional[LockInfo]:
        return info_of(self.row[0]) if self.row else None

    def __del__(
        self, free: Callable[..., None] = _native.function("info_free")
    ) -> None:
        free(self.row, 1)


class _Election:
    """What :class:`Leader` and :class:`AsyncLeader` have in common."""

    def __init__(self, registry: Registry, name: str) -> None:
        self._registry = registry
        self._name = name
        self._text = _native.text(name, "the name of a lock")
        self._lease: Optional[Lease] = None
        self._seen = _Seen()
        self._in_use = False
        self._observes = False

    @property
    def name(self) -> str:
        """The name of the lock."""
        return self._name

    @property
    def lease(self) -> Lease:
        """The leader's lease, with its ``token``, ``remaining`` and the event
        ``lost``; :class:`NotOwner` unless it was elected and has not resigned."""
        lease = self._lease
        if lease is None or lease._is_released:
            raise failure(_native.CODES["EOWNER"])
        return lease

    @property
    def leads(self) -> bool:
        """Whether it leads still.  No I/O."""
        return self._lease is not None and self._lease.held

    def check(self) -> None:
        """Raise :class:`LockLost` unless it leads still.  No I/O: for before each
        side effect."""
        self.lease.check()

    def _begin(self) -> None:
        if self._lease is not None and self._lease._is_released:
            self._end()  # by its own release()
        if self._in_use:
            raise RuntimeError("it campaigns or leads: make one for each candidate")
        self._in_use = True

    def _end(self) -> Optional[Lease]:
        lease, self._lease, self._in_use = self._lease, None, False
        return lease

    def _publish(self, text: str) -> None:
        if not isinstance(text, str):
            raise TypeError(f"text must be a str, not {type(text).__name__}")
        self.lease._must().call("publish", _native.text(text, "text"))

    def _read(self, seen: _Seen, wait_ms: int, cancel: Eventfd) -> None:
        core = self._registry._core
        try:
            core.observing.add(cancel)
            core.call(
                "observe",
                core.pointer,
                self._text,
                wait_ms,
                cancel.fd,
                _native.byref(seen.row),
            )
        finally:
            core.observing.discard(cancel)

    def _observe(self, wait: Optional[float], cancel: Eventfd) -> Optional[LockInfo]:
        wait_ms, seen = _native.wait_ms(wait), self._seen
        told: List[Optional[LockInfo]] = []

        def read() -> None:
            # In the thread that reads, which an interrupt may leave to itself.
            if self._observes:
                raise RuntimeError("it observes already: make one for each thread")
            self._observes = True
            try:
                self._read(seen, wait_ms, cancel)
                told.append(seen.info())
            finally:
                self._observes = False

        interruptible(read, cancel)
        return told[0]

    def _info(self) -> Optional[LockInfo]:
        seen = _Seen()
        try:
            self._read(seen, 0, Eventfd())
        except Timeout:  # nobody leads: that is no change
            pass
        return seen.info()


class Leader(_Election, Ending):
    """One candidate of an election, and one who observes it; see
    :meth:`Registry.leader`.

    The leader has a lease, which is renewed in the background.  If it is lost,
    the leader is told before another can be elected: by :meth:`check`,
    ``lease.lost`` and ``on_lost``; a block then ends with :class:`LockLost`.
    """

    def __init__(
        self, registry: Registry, name: str, take: Callable[..., Lease]
    ) -> None:
        super().__init__(registry, name)
        self._take = take

    def campaign(self) -> Lease:
        """Wait until nobody else leads, and lead: as :meth:`Registry.acquire`."""
        self._begin()
        try:
            self._lease = self._take()
            return self._lease
        except BaseException:
            lease = self._end()
            if lease is not None:
                lease._abandon()
            raise

    def resign(self) -> None:
        """Let the next candidate lead: as :meth:`Lease.release`."""
        self.lease.release()

    def publish(self, text: str) -> None:
        """Publish a text of at most 1024 bytes, such as an address, in place of
        the one before.  It lasts as long as the lease.  :class:`LockLost`: it
        does not lead any more."""
        self._publish(text)

    def info(self) -> Optional[LockInfo]:
        """Who leads now, with ``text``; None: nobody does."""
        return self._info()

    def observe(self, wait: Optional[float] = None) -> Optional[LockInfo]:
        """Wait until another leads than this call told last, or nobody, or until
        the leader has published another text; at first, until somebody leads.
        None: nobody does.  :class:`Timeout`: nothing has changed in ``wait``
        seconds.  A leader that came and went in between is not seen."""
        return self._observe(wait, Eventfd())

    def __enter__(self) -> Leader:
        self.campaign()
        return self

    def _end_block(self, error: Optional[BaseException]) -> None:
        lease = self._end()
        if lease is not None:
            lease._end_block(error)


class AsyncLeader(_Election, AsyncEnding):
    """As :class:`Leader`, for asyncio; see :meth:`Registry.aleader`.  A task that
    is cancelled neither waits nor leads any longer."""

    def __init__(
        self,
        registry: Registry,
        name: str,
        take: Callable[..., Awaitable[Lease]],
        cancel_on_loss: bool,
    ) -> None:
        super().__init__(registry, name)
        self._take = take
        self._block = AsyncLocking(self.campaign, cancel_on_loss)

    async def campaign(self) -> Lease:
        """As :meth:`Leader.campaign`."""
        self._begin()
        try:
            self._lease = await self._take()
            if self._block._task is not None:  # another one in the block
                self._block._hold(self._lease)
            return self._lease
        except BaseException:
            self._end()
            raise

    async def resign(self) -> None:
        """As :meth:`Leader.resign`."""
        await self.lease.arelease()

    async def publish(self, text: str) -> None:
        """As :meth:`Leader.publish`.  Once begun it is carried out, also when
        the task is cancelled."""
        await in_thread(lambda: self._publish(text))

    async def info(self) -> Optional[LockInfo]:
        """As :meth:`Leader.info`."""
        return await in_thread(self._info)

    async def observe(self, wait: Optional[float] = None) -> Optional[LockInfo]:
        """As :meth:`Leader.observe`, in a thread of its own."""
        cancel = Eventfd()
        return await in_thread(
            lambda: self._observe(wait, cancel),
            cancel=cancel.raise_,
            core=self._registry._core,
        )

    async def __aenter__(self) -> AsyncLeader:
        await self._block.__aenter__()
        return self

    async def _end_block(self, error: Optional[BaseException]) -> None:
        try:
            await self._block._end_block(error)
        finally:
            self._end()

    def _drop(self) -> None:
        self._block._drop()


__all__ = ["AsyncLeader", "Leader"]
