"""A lock that is held: one lease, or several that were taken together."""

from __future__ import annotations

import ctypes
import logging
import threading
import warnings
import weakref
from threading import get_ident
from typing import TYPE_CHECKING, Any, Callable, Dict, Iterator, List, Optional
from typing import Sequence, Tuple

from . import _native
from ._actor import caller, running_loop
from ._block import Block
from ._core import Core, Owned, calling_back, held_by
from .errors import Closed, Error, LockExpired, LockLost, failure

if TYPE_CHECKING:
    from .registry import Registry

log = logging.getLogger("sqlock")

#: Called with the lease and the reason once it is over before its release.
OnLost = Callable[["Lease", LockLost], object]


class Handle(Owned):
    """A handle of the library: one owner of one lock.

    Each call keeps a reference to it, so the last one to go drops it.  A lock
    that is still held then is released in the background.
    """

    _ends = "lock"

    def __init__(self, registry: Registry, name: str) -> None:
        super().__init__(registry._core)
        self.registry = registry
        registry._call(
            "obtain",
            _native.byref(self._out),
            registry._pointer,
            _native.text(name, "the name of a lock"),
        )

    @property
    def pointer(self) -> int:
        """Its address; 0 before it was obtained."""
        return self._out.value or 0

    def call(self, name: str, *arguments: object) -> None:
        """sqlock_NAME() of this handle, which raises."""
        self._core.call(name, self.pointer, *arguments)

    def ask(self, name: str, *arguments: object) -> Any:
        """sqlock_NAME() of this handle, which answers."""
        return self._core.ask(name, self.pointer, *arguments)

    def is_usable(self) -> bool:
        """Whether its registry is open, and this process's."""
        return self._core.is_usable()

    def is_held(self) -> bool:
        """Whether it is held.  No I/O."""
        return bool(self.ask("is_held"))

    def release(self) -> None:
        """Release it."""
        self.call("release")

    def abandon(self) -> None:
        """Have it released in the background if it is held."""
        if self._core.is_usable():
            self._core.hand_over("release", keep=self)

    def __del__(self) -> None:  # type: ignore[override]
        """A lease that is held tells; others have nothing open."""


def _on_lost(context: Any, pointer: Any, code: int) -> None:
    """Called by a thread of the library."""
    calling_back.add(get_ident())
    try:
        reference = held_by.get(pointer)
        lease = reference() if reference is not None else None
        if lease is not None:
            lease._tell(code)
        del lease  # perhaps the last reference to it
    finally:
        calling_back.discard(get_ident())


_ON_LOST = _native.LOST_FN(_on_lost)


def acquire_options(
    ttl: Optional[float],
    auto_renew: bool,
    max_hold: Optional[float],
    fenced: bool,
    fail_fast: bool,
    shared: bool,
    permits: int,
    weight: int,
) -> _native.AcquireOptions:
    """The options of an acquisition as the library takes them."""
    return _native.AcquireOptions(
        ttl_ms=_native.milliseconds(ttl, "ttl"),
        auto_renew=bool(auto_renew),
        fenced=bool(fenced),
        max_hold_ms=_native.milliseconds(max_hold, "max_hold"),
        on_lost=_ON_LOST,
        fail_fast=bool(fail_fast),
        mode=_native.SHARED if shared else _native.EXCLUSIVE,
        permits=_native.number(permits, "permits"),
        weight=_native.number(weight, "weight"),
        actor=caller(),
    )


class Holding(Block):
    """What is held until it is released or over: a lease, or a quorum of them."""

    #: Set as soon as it is over before it was released.
    lost: threading.Event

    _on_lost: Optional[Callable[[Any, LockLost], object]]
    _handle: Any = None

    def __init__(self, name: str) -> None:
        self.lost = threading.Event()
        self._name = name
        self._why: Optional[LockLost] = None
        self._is_granted = False
        self._listeners: List[Callable[[], object]] = []

    def _abandon(self) -> None:
        handle, self._handle = self._handle, None
        if handle is not None:
            handle.abandon()

    def __del__(self, warn: Callable[..., None] = warnings.warn) -> None:
        handle, self._handle = self._handle, None  # a warning may keep it
        if handle is None or self.lost.is_set() or not self._is_granted:
            return
        if handle.is_usable():
            text = (
                f"the {type(self).__name__.lower()} of {self._name!r} was not released"
            )
            del handle
            warn(text, ResourceWarning, 2, self)

    def _listen(self, listener: Callable[[], object]) -> None:
        """Have it called, by any thread, once it is over."""
        self._listeners.append(listener)
        if self.lost.is_set():
            listener()

    def _tell(self, code: int) -> None:
        error = failure(code)
        assert isinstance(error, LockLost)
        self._why = error
        self.lost.set()
        if self._on_lost is not None:
            self._start_on_lost(error)
        for listener in self._listeners:
            listener()

    def _start_on_lost(self, error: LockLost) -> None:
        """Call it in a thread of its own, where it may do what it wants."""
        try:
            threading.Thread(
                target=self._on_lost,
                args=(self, error),
                name=f"sqlock lost {self._name}",
                daemon=True,
            ).start()
        except RuntimeError:  # no thread can be had, or the process ends
            log.exception("on_lost of %r could not be called", self._name)

    @property
    def name(self) -> str:
        """The name of the lock."""
        return self._name

    @property
    def held(self) -> bool:
        """Whether it is ours still.  No I/O."""
        handle = self._handle
        return handle is not None and handle.is_usable() and handle.is_held()

    @property
    def remaining(self) -> float:
        """Seconds for which the holder may believe; 0 when lost, over or
        released.  No I/O."""
        handle = self._handle
        if handle is None or not handle.is_usable():
            return 0.0
        return float(handle.ask("remaining_ms")) / 1000

    def check(self) -> None:
        """Raise :class:`LockLost` unless it is ours still.  No I/O: for before
        each side effect."""
        if self._why is not None:
            raise failure(self._why.code)
        if not self._must().is_held():
            raise failure(LockExpired.code)

    def _must(self) -> Any:
        handle = self._handle
        if handle is None:
            raise failure(_native.CODES["EOWNER"])
        return handle

    def release(self) -> None:
        """Give the lock back, and find out whether it was ours until here.

        It is not held any more whatever comes.  ``LockLost``: somebody else has
        had it; other errors: it is freed in the background.
        """
        handle = self._must()
        try:
            self._release(handle)
        except Error as error:
            self._released(error)
            raise
        except BaseException:
            self._abandon()
            raise
        self._released()

    def _release(self, handle: Any) -> None:
        handle.release()

    def _released(self, error: Optional[BaseException] = None) -> None:
        """Let go of the handle, unless that error says that it holds still."""
        if not isinstance(error, Error) or error.name not in ("EINUSE", "EFORK"):
            self._handle = None

    @property
    def _is_released(self) -> bool:
        return self._handle is None

    @property
    def _title(self) -> str:
        return self._name

    def _end_block(self, error: Optional[BaseException]) -> None:
        if self._handle is None:
            return  # the block has released it
        try:
            self.release()
        except Error as came:
            _end_of_block(self._name, came, error)


class Lease(Holding):
    """A lock that is held until it is released or its lease is over.

    Ask :meth:`check` or :attr:`remaining` before each side effect.  A ``with``
    block releases it at its end, and raises :class:`LockLost` there if it was
    lost.  A lease that nobody refers to any more is released in the background,
    with a ResourceWarning.
    """

    _handle: Optional[Handle]

    def __init__(
        self,
        registry: Registry,
        name: str,
        on_lost: Optional[OnLost],
        options: _native.AcquireOptions,
    ) -> None:
        super().__init__(name)
        self._on_lost = _native.callback(on_lost, "on_lost")
        # As the library has it: that of the acquisition or last renewal.
        self._ttl_ms = options.ttl_ms or registry._core.ttl_ms
        self._token = 0
        self._actor = options.actor
        self._loop = running_loop()
        self._is_shared = options.mode == _native.SHARED
        self._handle = Handle(registry, name)
        held_by[self._handle.pointer] = weakref.ref(self)

    def __repr__(self) -> str:
        state = "held" if self.held else "over"
        return f"<sqlock.Lease {self._name!r} {state}, token {self._token}>"

    def _granted(self) -> None:
        handle = self._handle
        if handle is not None:
            self._token = handle.ask("token")
            self._is_granted = True

    def _locks_in(self, core: Core) -> List[Tuple[int, object]]:
        """What a transaction of a registry guards, and what has to be kept
        meanwhile: another thread may release it."""
        handle = self._must()
        return [(handle.pointer, handle)]

    # ---------------------------------------------------------- its state --

    @property
    def token(self) -> int:
        """The fencing token: greater than all that were given for this lock
        before.  Pass it along with each write that must not come late."""
        return self._token

    @property
    def client_id(self) -> str:
        """CLIENT_ID of this acquisition in the table; "" once released."""
        handle = self._handle
        if handle is None or not handle.is_usable():
            return ""
        buffer = ctypes.create_string_buffer(_native.KEY_SIZE)
        handle.ask("client_id", buffer)
        return buffer.value.decode()

    @property
    def id(self) -> str:
        """The id by which ``sqlock renew`` and ``sqlock release`` know it.  It has
        the TTL that the lease has now, for ``sqlock renew`` without one."""
        buffer = ctypes.create_string_buffer(_native.LEASE_ID_SIZE)
        handle = self._must()
        core = handle._core
        core.call("lease_id", buffer, handle.pointer, self._ttl_ms)
        return _native.string(buffer.value)

    # ----------------------------------------------------- who releases it --

    def _keeps_out(self, other: Lease, loop: object) -> bool:
        """Whether a task of that loop has it, and nobody gets it beside."""
        return (
            self._loop is loop
            and self._actor != 0
            and self.name == other.name
            and not (self._is_shared and other._is_shared)
            and self.held
            and self._must()._core is other._must()._core
        )

    def detach(self) -> None:
        """Say that another thread, task or greenlet will release it, to which
        the lease is given: whoever acquired it may wait for the lock again, as
        one that gives out the permits of a semaphore does."""
        self._actor = 0
        self._must().ask("set_actor", 0)

    # --------------------------------------------------------- renew, end --

    def renew(self, ttl: Optional[float] = None) -> None:
        """Let the lease begin anew, with ``ttl`` seconds, or with those of its
        acquisition or last renewal."""
        ttl_ms = _native.milliseconds(ttl, "ttl")
        self._must().call("renew", ttl_ms)
        self._ttl_ms = ttl_ms or self._ttl_ms

    def downgrade(self) -> None:
        """Let readers in: turn the lease into a shared one, with its token,
        without a moment in which another owner could take the lock."""
        self._must().call("downgrade")
        self._is_shared = True

    async def arelease(self) -> None:
        """As :meth:`release`, for asyncio.  Once begun it is carried out, also
        when the task is cancelled."""
        handle = self._must()
        core = handle._core
        try:
            await handle.registry._port.run(
                lambda request, done: core.call(
                    "request_release", request, handle.pointer, done
                )
            )
        except BaseException as error:
            self._released(error)
            raise
        self._released()

    def record_done(self) -> None:
        """Record that what this lock stands for is done, once and for all, in a
        transaction that guards the lease; see :meth:`Registry.is_done`."""
        self._must().call("once_record")


def _end_of_block(name: str, came: Error, error: Optional[BaseException]) -> None:
    """What a block that ends raises for a release that came to nothing."""
    lost = isinstance(came, (LockLost, Closed)) or came.name in ("EFORK", "EINUSE")
    if lost and error is None:
        raise came
    # The block's own exception goes first; and a lock that was ours until the
    # end is freed in the background, or ends with its lease.
    log.warning("the release of %r came to: %s", name, came)


class Leases(Block, Sequence["Lease"]):
    """Several locks that were taken together, in one statement; those that are
    shared in one each."""

    def __init__(
        self,
        registry: Registry,
        names: Sequence[str],
        on_lost: Optional[OnLost],
        options: _native.AcquireOptions,
    ) -> None:
        self._registry = registry
        self._leases = [Lease(registry, name, on_lost, options) for name in names]

    def __len__(self) -> int:
        return len(self._leases)

    def __getitem__(self, index: Any) -> Any:
        return self._leases[index]

    def __iter__(self) -> Iterator[Lease]:
        return iter(self._leases)

    def __repr__(self) -> str:
        return f"<sqlock.Leases {[lease.name for lease in self._leases]!r}>"

    @property
    def tokens(self) -> Dict[str, int]:
        """The fencing token of each name."""
        return {lease.name: lease.token for lease in self._leases}

    @property
    def held(self) -> bool:
        """Whether all are ours still."""
        return all(lease.held for lease in self._leases)

    @property
    def remaining(self) -> float:
        """Seconds for which the holder may believe of all of them."""
        return min((lease.remaining for lease in self._leases), default=0.0)

    def check(self) -> None:
        """Raise :class:`LockLost` unless all are ours still."""
        for lease in self._leases:
            lease.check()

    def renew(self) -> None:
        """Let the lease of each begin anew, in as many statements as it was taken."""
        self._together("renew_many", self._leases)

    def release(self) -> None:
        """Give all back, in as many statements; raises the first loss."""
        leases = [lease for lease in self._leases if lease._handle is not None]
        if not leases:
            return
        try:
            self._together("release_many", leases)
        except Error:
            for lease in leases:
                if not lease.held:  # those that a transaction guards are
                    lease._handle = None
            raise
        except BaseException:
            self._abandon()
            raise
        for lease in leases:
            lease._handle = None

    async def arelease(self) -> None:
        """As :meth:`release`, for asyncio, in a thread of its own.  Once begun
        it is carried out, also when the task is cancelled."""
        from .aio import release_in_thread

        await release_in_thread(self)

    @property
    def _is_released(self) -> bool:
        return all(lease._is_released for lease in self._leases)

    @property
    def _title(self) -> str:
        return ", ".join(self.tokens)

    def _listen(self, listener: Callable[[], object]) -> None:
        """Have it called, by any thread, once one of them is over."""
        for lease in self._leases:
            lease._listen(listener)

    def _abandon(self) -> None:
        for lease in self._leases:
            lease._abandon()

    def _granted(self) -> None:
        for lease in self._leases:
            lease._granted()

    def _locks_in(self, core: Core) -> List[Tuple[int, object]]:
        return [lock for lease in self._leases for lock in lease._locks_in(core)]

    def _together(self, name: str, leases: Sequence[Lease]) -> None:
        handles = [lease._must() for lease in leases]  # kept until the end
        pointers = (ctypes.c_void_p * len(handles))(*[one.pointer for one in handles])
        results = (ctypes.c_int * len(leases))()
        if leases:
            self._registry._call(name, pointers, len(leases), results)

    def _end_block(self, error: Optional[BaseException]) -> None:
        try:
            self.release()
        except Error as came:
            _end_of_block(self._title, came, error)


__all__ = ["Lease", "Leases", "OnLost"]
