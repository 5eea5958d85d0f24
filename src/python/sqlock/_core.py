"""A registry of the library as its Python objects share it: the calls that are
under way, what is open, and the thread that ends what was dropped.

A finalizer may run anywhere: in a callback of the library, in a thread that
holds a mutex, or late.  So none calls the library.  It hands a number over to
the registry's reaper, a thread that waits for nothing else.
"""

from __future__ import annotations

import atexit
import ctypes
import fcntl
import functools
import logging
import os
import queue
import threading
import time
import warnings
import weakref
from threading import get_ident
from typing import TYPE_CHECKING, Any, Callable, Dict, List, Optional, Set

from . import _green, _native, _uses
from ._uses import LOOK_SECONDS, Uses
from .errors import Closed, Error, InUse, OutOfResources, failure

if TYPE_CHECKING:
    from ._quorum import _Native
    from .lease import Handle

log = logging.getLogger("sqlock")

# How often the reaper looks for loops that were closed, while some wait, and
# for locks that could not be dropped yet.
_REAP_SECONDS = 0.5

# The threads that run a callback of the library now.
calling_back: Set[int] = set()


class Eventfd:
    """A descriptor that becomes readable when 8 bytes are written to it, and is
    closed when nobody refers to it."""

    __slots__ = ("fd", "__weakref__")

    def __init__(self) -> None:
        self.fd = -1
        # os.eventfd() came with Python 3.10.
        flags = os.O_CLOEXEC | os.O_NONBLOCK
        made: int = ctypes.CDLL(None, use_errno=True).eventfd(0, flags)
        if made < 0:
            raise OutOfResources("there is no descriptor left")
        self.fd = made
        if made == 0:  # without a standard input; to the library that is none
            self.fd = fcntl.fcntl(0, fcntl.F_DUPFD_CLOEXEC, 3)
            os.close(0)

    def raise_(self) -> None:
        """Make it readable."""
        os.write(self.fd, (1).to_bytes(8, "little"))

    def __del__(self, close: Callable[[int], None] = os.close) -> None:
        if self.fd >= 0:
            close(self.fd)


def gets_signals() -> bool:
    """Whether handlers of signals run in this thread."""
    return threading.current_thread() is threading.main_thread()


def waits_aside() -> bool:
    """Whether something of this thread has to run while it waits: handlers of
    signals, or other greenlets."""
    return gets_signals() or _green.runs()


def interruptible(call: Callable[[], None], cancel: Eventfd) -> None:
    """Call it, by another thread where something has to run meanwhile; whatever
    ends the wait, such as a signal's handler, raises ``cancel``.  A second
    interrupt leaves that thread to itself: what the call uses has to be what it
    refers to."""
    if not waits_aside():
        return call()
    came: List[BaseException] = []
    ended = Eventfd()
    started = False

    def run(_kept: Eventfd) -> None:
        nonlocal started
        started = True  # an interrupt may come before start() has returned
        try:
            call()
        except BaseException as error:
            came.append(error)
        finally:
            ended.raise_()

    try:
        _green.start(run, cancel)
        started = True
        _green.await_readable(ended.fd)
    except BaseException:
        cancel.raise_()
        if started:
            _green.await_readable(ended.fd)
        raise
    if came:
        raise came.pop()  # not kept by this frame, which its traceback has


class Wait:
    """Something that a loop of asyncio waits for, and that is given up once the
    loop has been closed."""

    loop: Any

    def give_up(self) -> None:
        """Called by the reaper."""
        raise NotImplementedError


class _End(weakref.ref):  # type: ignore[type-arg]
    """What a dropped object leaves.  Its callback is the put() of a queue, so
    that no step of the interpreter, which might be interrupted, is part of
    it."""

    __slots__ = ("what", "out")
    what: str
    out: Any


# The lease of each handle that is held, for what the library tells of it.
held_by: Dict[int, "weakref.ref[Any]"] = {}


class Core(Uses):
    """What a registry's objects have in common; it refers to none of them.

    An interrupt of Ctrl-C is raised between two steps of the interpreter, never
    between a step that calls no function and the next one.  What must not be
    half done relies on that.
    """

    def __init__(self, out: ctypes.c_void_p, ttl_ms: int) -> None:
        super().__init__("registry")
        self.pointer, out.value = out.value or 0, None
        self.ttl_ms = ttl_ms
        self._pid = os.getpid()
        # Handles that wait: close() cancels them, and raises those that end
        # waits for another leader.
        self.waiting: Set[Handle] = set()
        self.observing: Set[Eventfd] = set()
        # Transactions and stocks, which end before the registry does, and the
        # function that ends each.
        self.open: Dict[int, str] = {}
        # Quorums with a lock here, which are dropped before it is closed.
        self.quorums: Dict[int, _Native] = {}
        self._waits: Dict[int, "weakref.ref[Wait]"] = {}
        # Its put() may interrupt itself in the same thread.
        self._dropped: "queue.SimpleQueue[Any]" = queue.SimpleQueue()
        self._reaper = threading.Thread(
            target=self._reap, name="sqlock reaper", daemon=True
        )
        # The numbers of what may be dropped.
        self._ends: Dict[int, _End] = {}
        try:
            _open_ones[id(self)] = self
            self._reaper.start()
        except BaseException as error:
            self.end()
            if isinstance(error, RuntimeError):
                raise OutOfResources("no thread can be started") from error
            raise

    # ------------------------------------------------- calls of the library --

    def is_usable(self) -> bool:
        """Neither closed nor another process's."""
        return not self.closed and os.getpid() == self._pid

    def refuse_closed(self) -> None:
        if os.getpid() != self._pid:
            raise failure(_native.CODES["EFORK"])
        super().refuse_closed()

    def ask(self, name: str, *arguments: object) -> Any:
        """sqlock_NAME(), which answers."""
        function, use, leave = _native.function(name), object(), self.leave
        try:
            self.enter(use)
            result = function(*arguments)
        finally:
            leave(use, None)
        return result

    def call(self, name: str, *arguments: object) -> None:
        """sqlock_NAME(), which raises."""
        why = _native.NativeError()
        code = self.ask(name, *arguments, _native.byref(why))
        if code != 0:
            raise failure(code, why)

    def end_one(self, out: ctypes.c_void_p, name: str) -> None:
        """sqlock_NAME() of what ends by it: either it was called and ``out`` is
        empty, or neither."""
        use, leave = object(), self.leave
        try:
            self.enter(use)
            self.end_entered(out, name)
        finally:
            leave(use, None)

    def end_entered(self, out: ctypes.c_void_p, name: str) -> None:
        """As :meth:`end_one`, during a use that was entered: also while the
        registry is being closed, which waits for that use."""
        why = _native.NativeError()
        rest = () if name == "stock_close" else (_native.byref(why),)
        function = _native.function(name)
        pointer = out.value or 0
        self.open.pop(pointer, None)
        # No interrupt comes between these two.
        out.value = None
        code = function(pointer, *rest)
        if code:
            raise failure(code, why)

    def abandon(self, request: ctypes.c_void_p, keep: object) -> None:
        """Abandon a request for the one that waited for it: it waits no more when
        this returns.  The reaper does it, and keeps ``keep`` until then, if an
        interrupt comes before."""
        try:
            self.end_one(request, "request_abandon")
        except Error:
            pass  # closed, or another process's
        finally:
            pointer, request.value = request.value, None
            if pointer and self.is_usable():
                self.hand_over("request_abandon", pointer, keep)

    # ------------------------------------------------------------ its end --

    def close(self, process_ends: bool = False) -> None:
        """Keep new calls out, wait for those under way, and end it.  It is open
        again if that comes to nothing."""
        if os.getpid() != self._pid:
            raise failure(_native.CODES["EFORK"])
        if get_ident() in calling_back:
            raise InUse("a callback of the library runs in this thread")
        self.refuse_own_call()
        self._await_reaper()
        if not process_ends:
            self._end_quorums()
        # One may have been granted meanwhile.
        self.end_after_calls(None if process_ends else self._refuse_if_kept)

    def is_there(self) -> bool:
        return bool(self.pointer)

    def end_waits(self) -> None:
        cancel = _native.function("cancel")
        for handle in list(self.waiting):
            cancel(handle.pointer, None)
        for descriptor in list(self.observing):
            descriptor.raise_()

    def _refuse_if_kept(self) -> None:
        """Stay open while somebody has a quorum here."""
        for one in list(self.quorums.values()):
            if one.is_kept():
                text = f"a quorum has the lock {one.name!r} here: release it first"
                raise InUse(text)

    def _end_quorums(self) -> None:
        """End those that were dropped; the others have to be released first."""
        self._refuse_if_kept()
        for one in list(self.quorums.values()):
            if one.is_dropped() and not one.end():
                raise InUse(f"a transaction guards a lock of the quorum {one.name!r}")

    def _await_reaper(self) -> None:
        """What was dropped before close() is not what close() tells of."""
        if self.closed or get_ident() == self._reaper.ident:
            return
        until = time.monotonic() + 1  # a callback may have the last reference
        while calling_back and time.monotonic() < until:
            time.sleep(LOOK_SECONDS)
        reached = threading.Event()
        self._dropped.put(("tell", reached, None))
        reached.wait(_uses.CLOSE_SECONDS)

    def end(self) -> None:
        """Free the registry, with what it must outlive, unless that is done."""
        why = _native.NativeError()
        code = 0
        self.closed = True
        with self._closing:
            if self.pointer:
                self._end_open()
                for quorum in list(self.quorums.values()):
                    quorum.end(closes=True)
                code = self._end_registry(why)
            _open_ones.pop(id(self), None)
            self._dropped.put(("stop", None, None))
        if code != 0:
            raise failure(code, why)

    def _end_open(self) -> None:
        """End what is open, also what an interrupt kept from being noted; its
        owner finds that it has ended."""
        outs = {
            end.out.value: end
            for end in list(self._ends.values())
            if end.what not in ("lock", "quorum") and end.out.value
        }
        self.open.update((one, end.what) for one, end in outs.items())
        for one, name in list(self.open.items()):
            function = _native.function(name)
            rest = () if name == "stock_close" else (None,)
            out = outs[one].out if one in outs else ctypes.c_void_p()
            if one in self.open:
                # No interrupt comes between these.
                del self.open[one]
                out.value = None
                function(one, *rest)

    def _end_registry(self, why: Any) -> int:
        """Close it, and return the library's code.  It goes on, with its leases,
        where somebody uses it."""
        close, why_at = _native.function("registry_close"), _native.byref(why)
        leases: Dict[int, "weakref.ref[Any]"] = {}
        try:
            for end in list(self._ends.values()):
                number = end.out.value if end.what == "lock" else None
                if number in held_by:
                    # It is another's after this.
                    leases[number] = held_by[number]
                    del held_by[number]
            pointer = self.pointer
            self.pointer = 0
            code: int = close(pointer, why_at)
            if code == InUse.code:
                self.pointer = pointer
                raise failure(code, why)
            return code
        except BaseException:
            if self.pointer:
                held_by.update(leases)
            raise

    def dropped(self) -> None:
        """The finalizer of the registry."""
        if self.is_usable():
            self.hand_over("close")
            warnings.warn("a sqlock.Registry was left open", ResourceWarning, 2)

    # --------------------------------------------------------- the reaper --

    def hand_over(self, what: str, pointer: Any = None, keep: Any = None) -> None:
        """Let the reaper end it; ``keep`` lives until it has.  For finalizers:
        it waits for nothing."""
        self._dropped.put((what, pointer, keep))

    def tie(self, owner: object, what: str, out: Any) -> None:
        """Have the reaper end what is in ``out`` once the owner is no more."""
        end = _End(owner, self._dropped.put)
        end.what, end.out = what, out
        self._ends[id(end)] = end

    def watch(self, wait: Wait) -> None:
        """Give that wait up once its loop has been closed."""
        self._waits[id(wait)] = weakref.ref(wait)
        self._dropped.put(("look", None, None))

    def _reap(self) -> None:
        late: List[Callable[[], bool]] = []
        while True:
            try:
                timeout = _REAP_SECONDS if late or self._waits else None
                one = self._dropped.get(timeout=timeout)
            except queue.Empty:
                one = ("look", None, None)
            if isinstance(one, _End):
                self._ends.pop(id(one), None)
                if one.what == "quorum":
                    one = (one.what, one.out, None)
                else:
                    pointer, one.out.value = one.out.value, None
                    one = (one.what, pointer, None)
                    if not pointer:  # it was ended
                        continue
            what, pointer, keep = one
            if what == "release":
                # The collector tells of what it will free before it runs the
                # finalizers, one of which may have asked for this: then its
                # end has come first.
                pointer = keep.pointer
                if not pointer:
                    continue
            if what == "stop":
                return
            try:
                self._reap_one(what, pointer, keep, late)
            except Error:
                pass  # closed, or nothing that this process could still do
            except Exception:
                log.exception("sqlock: what was dropped could not be ended")
            del keep, one

    def _reap_one(
        self, what: str, pointer: Any, keep: Any, late: List[Callable[[], bool]]
    ) -> None:
        end: Optional[Callable[[], bool]] = None
        if what == "look":
            self._look_at_loops()
            late[:] = [end for end in late if not end()]
        elif what == "late":
            late.append(pointer)
        elif what == "release":
            self._release(pointer)
        elif what == "tell":
            pointer.set()
        elif what == "lock":
            self._release(pointer)
            end = functools.partial(self._drop, pointer)
        elif what == "quorum":
            self._end_quorum(pointer)
        elif what == "close":
            end = self._closes
        else:  # the name of a function of the library
            out = ctypes.c_void_p(pointer)
            if not self._end_dropped(out, what, keep):
                end = functools.partial(self._end_late, out, what, keep)
        if end is not None and not end():
            late.append(end)

    def _end_quorum(self, quorum: _Native) -> None:
        """In a thread of its own: a server that is away would hold up all that is
        dropped after it."""

        def run() -> None:
            if not quorum.end():
                self._dropped.put(("late", quorum.end, None))

        try:
            _green.start(run)
        except OutOfResources:
            run()

    def _closes(self) -> bool:
        """Close it; False while a transaction guards a lock of a quorum."""
        try:
            self.close()
        except InUse:
            return self.closed
        return True

    def _end_dropped(self, out: ctypes.c_void_p, name: str, _kept: Any) -> bool:
        """End it; False while the registry is being closed, which may come to
        nothing."""
        try:
            self.end_one(out, name)
        except Closed:
            return False
        except Error:
            pass  # nothing that this process could still do
        return True

    def _end_late(self, out: ctypes.c_void_p, name: str, kept: Any) -> bool:
        """As :meth:`_end_dropped`, unless the close that was under way has ended
        it before it came to nothing."""
        is_there = name == "request_abandon" or out.value in self.open
        return not is_there or self._end_dropped(out, name, kept)

    def _release(self, pointer: int) -> None:
        """Release a lock in the background if it is held."""
        request = ctypes.c_void_p()
        try:
            self.call("request_release", _native.byref(request), pointer, 0)
            self.call("request_abandon", request)
        except Error:
            pass  # not held

    def _drop(self, pointer: int) -> bool:
        """Drop a lock; False while a request of it ends, or a transaction that
        guards it, or while the registry is being closed."""
        use, leave = object(), self.leave
        try:
            self.enter(use)  # until then it is no other registry's
            held_by.pop(pointer, None)
            self.call("drop", pointer)
        except Closed:
            return False
        except InUse:
            self._release(pointer)
            return False
        except Error:
            pass
        finally:
            leave(use, None)
        return True

    def _look_at_loops(self) -> None:
        for key, reference in list(self._waits.items()):
            wait = reference()
            if wait is None or wait.loop.is_closed():
                self._waits.pop(key, None)
                if wait is not None:
                    wait.give_up()


class Owned:
    """What the library has given, which has one end: by a call, or by the
    reaper once nobody refers to it."""

    #: The function of the library that ends one that was dropped.
    _ends = ""
    _core: Core

    def __init__(self, core: Core) -> None:
        self._core = core
        # The library writes there, so that nothing it gives goes astray.
        self._out = ctypes.c_void_p()
        core.tie(self, self._ends, self._out)

    @property
    def _pointer(self) -> Optional[int]:
        return self._out.value

    def _opened(self) -> None:
        assert self._out.value is not None
        self._core.open[self._out.value] = self._ends

    def __del__(self, warn: Callable[..., None] = warnings.warn) -> None:
        if getattr(self, "_out", None) and self._core.is_usable():
            text = f"a sqlock.{type(self).__name__} was left open"
            warn(text, ResourceWarning, 2)


# Those that are to be closed when the process ends.
_open_ones: Dict[int, Core] = {}


def _close_all() -> None:
    for core in list(_open_ones.values()):
        try:
            if core.is_usable():
                core.close(process_ends=True)
        except Error:
            pass


atexit.register(_close_all)

__all__ = ["Core", "Eventfd", "Owned", "Wait"]
