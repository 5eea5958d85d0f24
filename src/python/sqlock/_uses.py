"""An end that waits for the calls that are under way: of a registry, of a stock."""

from __future__ import annotations

import threading
import time
from threading import get_ident
from typing import Callable, Dict, Optional

from .errors import Closed, InUse

# A call that another thread has under way ends within this many seconds once it
# is to be closed, unless its database is away for longer.
CLOSE_SECONDS = 30
LOOK_SECONDS = 0.01


class Uses:
    """What is used by calls of any thread, and ends after them."""

    def __init__(self, what: str) -> None:
        self.closed = False
        self._what = what
        # The thread of each call that is under way.
        self._calls: Dict[object, int] = {}
        # leave(use, None) ends one: a step that no interrupt can halve.
        self.leave = self._calls.pop
        # A signal's handler may close it, too.
        self._closing = threading.RLock()

    def enter(self, use: object) -> None:
        """Note a use of it; :attr:`leave` is called after it, whatever comes."""
        self._calls[use] = get_ident()
        self.refuse_closed()

    def refuse_closed(self) -> None:
        """Let no call in once it is closed."""
        if self.closed:
            raise Closed(f"the {self._what} has been closed")

    def refuse_own_call(self) -> None:
        """Let nobody wait for a call of its own thread."""
        if get_ident() in list(self._calls.values()):
            raise InUse("a call of this thread is under way")

    def end_after_calls(self, refuse: Optional[Callable[[], None]] = None) -> None:
        """Keep new calls out, wait for those under way, and end it, unless
        ``refuse`` raises.  It is open again if that comes to nothing."""
        until = time.monotonic() + CLOSE_SECONDS
        # One after another: what one lets in again another one would not see.
        with self._closing:
            try:
                self.closed = True
                if refuse is not None:
                    refuse()
                while self._calls:
                    self.end_waits()
                    if time.monotonic() > until:
                        raise InUse("calls of other threads have not ended")
                    time.sleep(LOOK_SECONDS)
                self.end()
            except BaseException:
                self.closed = not self.is_there()
                raise

    def end_waits(self) -> None:
        """Have the calls that wait for something return."""

    def end(self) -> None:
        """End it, unless that is done."""
        raise NotImplementedError

    def is_there(self) -> bool:
        """Whether it has not ended."""
        raise NotImplementedError


__all__ = ["Uses"]
