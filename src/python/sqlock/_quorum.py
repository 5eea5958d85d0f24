"""One lock in several registries, held while most of them hold it, or all."""

from __future__ import annotations

import ctypes
import functools
import threading
import weakref
from collections import deque
from itertools import repeat
from typing import Any, Callable, List, Optional, Sequence, Tuple

from . import _native
from ._core import Core, Eventfd, held_by, interruptible
from .aio import AsyncLocking, in_thread, release_in_thread
from .errors import Error, LockLost, failure
from .lease import Holding, acquire_options
from .registry import Locking, Registry, _given

#: Called with the quorum and the reason once too few registries hold it.
OnQuorumLost = Callable[["Quorum", LockLost], object]


_POP: Any = dict.pop


class _Native:
    """The library's quorum.  Each of its registries knows it until it is
    dropped, which comes before any of them is closed."""

    def __init__(self, cores: Sequence[Core], name: str) -> None:
        self.name = name
        self.out = ctypes.c_void_p()
        self.locks: List[int] = []
        self.is_held = False
        self._cores = cores
        self._calls = [core._calls for core in cores]
        self._ending = threading.RLock()  # a signal's handler may end it, too
        self._handle: Callable[[], Optional[_Handle]] = lambda: None

    def tie(self, handle: _Handle) -> None:
        """Have the first registry's reaper end it once the handle is no more."""
        self._handle = weakref.ref(handle)
        for core in self._cores:
            core.quorums[id(self)] = self
        self._cores[0].tie(handle, "quorum", self)

    def ask(self, name: str, *arguments: object) -> Any:
        """sqlock_NAME(), which answers; no registry is closed meanwhile."""
        function, use = _native.function(name), object()
        # One step that no interrupt can halve.
        leave: Callable[[Any], None] = deque[int](maxlen=0).extend
        uses = map(_POP, self._calls, repeat(use), repeat(0))
        try:
            for core in self._cores:
                core.enter(use)
            result = function(*arguments)
        finally:
            leave(uses)
        return result

    def call(self, name: str, *arguments: object) -> None:
        """sqlock_NAME(), which raises."""
        why = _native.NativeError()
        code = self.ask(name, *arguments, _native.byref(why))
        if code != 0:
            raise failure(code, why)

    def is_kept(self) -> bool:
        """Whether somebody holds it, and may still release it."""
        return self.is_held and self._handle() is not None

    def is_dropped(self) -> bool:
        """Whether nobody refers to it."""
        return self._handle() is None

    def end(self, closes: bool = False) -> bool:
        """Give it back; and drop it, if nobody refers to it or a registry of it
        closes.  False: a transaction guards a lock of it."""
        release = _native.function("quorum_release")
        drop = _native.function("quorum_drop")
        with self._ending:
            if self.out.value:
                release(self.out, None, None)
            if not closes and not self.is_dropped():
                return True
            for lock in self.locks if self.out.value else ():
                held_by.pop(lock, None)  # not another's, who has the number now
            pointer, self.out.value = self.out.value, None
            if pointer and drop(pointer, None) != 0 and not closes:
                self.out.value = pointer
                return False
            for core in self._cores:
                core.quorums.pop(id(self), None)
        return True


class _Handle:
    """An owner: as :class:`Handle` is of one lock.  Each call keeps a reference
    to it, so the library's quorum is dropped after the last one."""

    def __init__(self, registries: Sequence[Registry], name: str, all: bool) -> None:
        self.cores = [registry._core for registry in registries]
        self._native = native = _Native(self.cores, name)
        try:
            native.tie(self)
            native.call(
                "quorum_obtain",
                _native.byref(native.out),
                (ctypes.c_void_p * len(self.cores))(*[c.pointer for c in self.cores]),
                len(self.cores),
                _native.text(name, "the name of a lock"),
                _native.byref(_native.QuorumOptions(all=bool(all))),
            )
            native.locks = [self.ask("lock", i) for i in range(len(self.cores))]
        except BaseException:
            native.end(closes=True)
            raise

    @property
    def locks(self) -> List[int]:
        """The lock of each registry."""
        return self._native.locks

    def is_usable(self) -> bool:
        """Whether its registries are open, and this process's."""
        return all(core.is_usable() for core in self.cores)

    def is_held(self) -> bool:
        """Whether it is held.  No I/O."""
        return bool(self.ask("remaining_ms") > 0)

    def ask(self, name: str, *arguments: object) -> Any:
        """sqlock_quorum_NAME(), which answers."""
        return self._native.ask("quorum_" + name, self._native.out, *arguments)

    def ask_each(self, name: str) -> List[Any]:
        """sqlock_NAME() of the lock of each registry, which answers."""
        return [self._native.ask(name, lock) for lock in self.locks]

    def acquire(self, wait_ms: int, options: Any, results: Any) -> None:
        """Acquire it."""
        native = self._native
        native.call(
            "quorum_acquire", native.out, wait_ms, _native.byref(options), results
        )

    def granted(self) -> None:
        """Let no registry of it be closed from here on."""
        self._native.is_held = True

    def renew(self, ttl_ms: int) -> List[Optional[Error]]:
        """Renew the lease of each registry; what they have answered."""
        came: List[Optional[Error]] = []
        for lock in self.locks:
            try:
                self._native.call("renew", lock, ttl_ms)
                came.append(None)
            except Error as error:
                came.append(error.with_traceback(None))  # which has this frame
        return came

    def release(self, results: Any = None) -> None:
        """Release it."""
        native = self._native
        try:
            native.call("quorum_release", native.out, results)
        except Error as error:
            native.is_held = error.name == "EINUSE"
            raise
        native.is_held = False

    def abandon(self) -> None:
        """Have it released in the background if it is held."""
        native = self._native
        native.is_held = False
        if self.is_usable():
            self.cores[0].hand_over("quorum", native, self)


class Quorum(Holding):
    """One lock in several registries, held while more than half of them hold it,
    or all; see :func:`sqlock.quorum`.

    It is used as a :class:`Lease` is: ask :meth:`check` or :attr:`remaining`
    before each side effect.  None of its registries can be closed before it is
    released.
    """

    def __init__(
        self,
        registries: Sequence[Registry],
        name: str,
        all: bool,
        on_lost: Optional[OnQuorumLost],
    ) -> None:
        super().__init__(name)
        self._registries = _checked(registries)  # open while it is
        self._on_lost = _native.callback(on_lost, "on_lost")
        number = len(self._registries)
        self._tokens: List[Optional[int]] = [None] * number
        self._enough = number if all else number // 2 + 1
        # Not asked yet.
        self._codes = (ctypes.c_int * number)(*[_native.CODES["ECANCELED"]] * number)
        self._handle: Optional[_Handle] = _Handle(self._registries, name, all)
        for lock in self._handle.locks:
            held_by[lock] = weakref.ref(self)

    def __repr__(self) -> str:
        state = "held" if self.held else "over"
        return f"<sqlock.Quorum {self._name!r} {state}, tokens {self._tokens}>"

    def _granted(self) -> None:
        self._must().granted()
        self._is_granted = True
        self._ask_tokens()

    def _ask_each(self, name: str) -> List[Any]:
        handle = self._handle
        if handle is None or not handle.is_usable():
            return [0] * len(self._registries)
        return handle.ask_each(name)

    def _ask_tokens(self) -> None:
        for place, token in enumerate(self._ask_each("token")):
            self._tokens[place] = token or self._tokens[place]

    @property
    def tokens(self) -> List[Optional[int]]:
        """The fencing token of each registry, in their order; None: that one has
        not granted it, or not yet.  A token says nothing to another registry."""
        self._ask_tokens()
        return list(self._tokens)

    @property
    def held_in(self) -> List[bool]:
        """Which registries hold it still, in their order.  No I/O."""
        return [bool(one) for one in self._ask_each("is_held")]

    @property
    def results(self) -> List[Optional[Error]]:
        """What each registry has answered to the acquisition, or to the release;
        None: granted, or released.  An exception of an acquisition has them as
        ``results``, too."""
        return [failure(code) if code else None for code in self._codes]

    def renew(self, ttl: Optional[float] = None) -> None:
        """Let the lease of each registry begin anew, one after the other, as
        :meth:`Lease.renew` does; with ``auto_renew`` that is done already.

        :class:`LockLost`: too few hold it.  Another error: too few have renewed,
        and it is held until the old leases end; the exception's ``results`` have
        what each registry came to.
        """
        results = self._must().renew(_native.milliseconds(ttl, "ttl"))
        if results.count(None) >= self._enough:
            return
        self.check()
        error = next(one for one in results if one is not None)
        error.results = results
        raise error

    def release(self) -> None:
        """Give the lock back in all registries at the same time, and find out
        whether enough of them held it until here.

        It is not held any more whatever comes, but for :class:`InUse`: a
        transaction guards a lock of it.  :class:`LockLost`: too few did.
        """
        super().release()

    def _release(self, handle: Any) -> None:
        handle.release(self._codes)

    async def arelease(self) -> None:
        """As :meth:`release`, for asyncio, in a thread of its own.  Once begun
        it is carried out, also when the task is cancelled."""
        await release_in_thread(self)

    def _locks_in(self, core: Core) -> List[Tuple[int, object]]:
        handle = self._must()
        for one, lock in zip(handle.cores, handle.locks):
            if one is core:
                return [(lock, handle)]
        raise ValueError(f"the quorum of {self._name!r} has no lock in this registry")


def _checked(registries: Sequence[Registry]) -> List[Registry]:
    registries = _native.several(registries, "registries")
    for one in registries:
        _native.instance(one, "each of the registries", Registry)
    if not registries:
        raise ValueError("a quorum has registries: 3 or more, or 2 with all=True")
    return registries


def _take(
    registries: Sequence[Registry],
    name: str,
    wait: Optional[float],
    all: bool,
    options: _native.AcquireOptions,
    on_lost: Optional[OnQuorumLost],
    cancel: Eventfd,
) -> Quorum:
    wait_ms = _native.wait_ms(wait)
    options.cancel_fd = cancel.fd
    quorum = Quorum(registries, name, all, on_lost)
    handle: _Handle = quorum._must()
    try:
        for core in handle.cores:
            core.observing.add(cancel)
        interruptible(lambda: handle.acquire(wait_ms, options, quorum._codes), cancel)
        quorum._granted()
        return quorum
    except BaseException as error:
        if isinstance(error, Error):
            error.results = quorum.results
        quorum._abandon()
        raise
    finally:
        for core in handle.cores:
            core.observing.discard(cancel)


def acquire_quorum(
    registries: Sequence[Registry],
    name: str,
    wait: Optional[float] = None,
    *,
    all: bool = False,
    ttl: Optional[float] = None,
    auto_renew: bool = True,
    max_hold: Optional[float] = None,
    fenced: bool = False,
    fail_fast: bool = False,
    shared: bool = False,
    on_lost: Optional[OnQuorumLost] = None,
) -> Quorum:
    """Take the lock of that name in more than half of these registries, or in
    ``all``, and hold it until the quorum is released.

    The registries are an odd number of 3 to 15, with ``all`` any from 2 on, on
    servers that are independent of each other.  All are asked at the same time.
    The other options are those of :meth:`Registry.acquire`;
    ``on_lost(quorum, error)`` is called once too few registries hold it.

    Raises what :meth:`Registry.acquire` does; ``results`` of the exception has
    what each registry came to.  sqlock-sharing(7) has what a quorum bears, and
    what it does not.
    """
    options = acquire_options(
        ttl, auto_renew, max_hold, fenced, fail_fast, shared, 0, 0
    )
    return _take(registries, name, wait, all, options, on_lost, Eventfd())


def quorum(
    registries: Sequence[Registry],
    name: str,
    wait: Optional[float] = None,
    *,
    all: bool = False,
    ttl: Optional[float] = None,
    auto_renew: bool = True,
    max_hold: Optional[float] = None,
    fenced: bool = False,
    fail_fast: bool = False,
    on_lost: Optional[OnQuorumLost] = None,
) -> Locking[Quorum]:
    """A context manager that acquires as :func:`acquire_quorum` does, and
    releases at the end of the block::

        with sqlock.quorum([one, two, three], "service", wait=5) as held:
            ...
            held.check()
    """
    registries = _checked(registries)  # each block asks them
    return Locking(functools.partial(acquire_quorum, **_given(locals())))


async def aacquire_quorum(
    registries: Sequence[Registry],
    name: str,
    wait: Optional[float] = None,
    *,
    all: bool = False,
    ttl: Optional[float] = None,
    auto_renew: bool = True,
    max_hold: Optional[float] = None,
    fenced: bool = False,
    fail_fast: bool = False,
    shared: bool = False,
    on_lost: Optional[OnQuorumLost] = None,
) -> Quorum:
    """As :func:`acquire_quorum`, for asyncio, in a thread of its own: to be given
    back with ``await quorum.arelease()``.  Cancelled, it leaves no lock held."""
    registries = _checked(registries)
    options = acquire_options(
        ttl, auto_renew, max_hold, fenced, fail_fast, shared, 0, 0
    )
    cancel = Eventfd()
    return await in_thread(
        lambda: _take(registries, name, wait, all, options, on_lost, cancel),
        cancel=cancel.raise_,
        undo=Quorum._abandon,
        core=registries[0]._core,
    )


def aquorum(
    registries: Sequence[Registry],
    name: str,
    wait: Optional[float] = None,
    *,
    all: bool = False,
    ttl: Optional[float] = None,
    auto_renew: bool = True,
    max_hold: Optional[float] = None,
    fenced: bool = False,
    fail_fast: bool = False,
    on_lost: Optional[OnQuorumLost] = None,
    cancel_on_loss: bool = True,
) -> AsyncLocking[Quorum]:
    """As :func:`quorum`, for asyncio, with the promises of :meth:`Registry.alock`:
    a loss ends the block."""
    registries = _checked(registries)
    given = _given(locals(), "cancel_on_loss")
    return AsyncLocking(functools.partial(aacquire_quorum, **given), cancel_on_loss)


__all__ = ["Quorum", "aacquire_quorum", "acquire_quorum", "aquorum", "quorum"]
