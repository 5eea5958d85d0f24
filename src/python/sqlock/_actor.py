"""Who calls: a task of asyncio, a greenlet or a thread, by a number that the
library knows as the option ``actor``."""

from __future__ import annotations

import asyncio
import contextvars
import itertools
import sys
import weakref
from threading import get_ident
from typing import Any, Optional, Tuple

# Apart from those of C++, from 2 ** 62 on, and from the small ones of others.
_numbers = itertools.count(1 << 61)
# The numbers of tasks and greenlets.
_of: "weakref.WeakKeyDictionary[Any, int]" = weakref.WeakKeyDictionary()
# A thread's, with its ident.  A thread of a pool calls for one after the other,
# each in a copy of its own context: so none has the number of the one before.
_thread: "contextvars.ContextVar[Tuple[int, int]]" = contextvars.ContextVar(
    "sqlock_actor", default=(0, 0)
)


def _task_or_greenlet() -> Any:
    loop = running_loop()
    task = asyncio.current_task(loop) if loop is not None else None
    if task is not None:
        return task
    module: Any = sys.modules.get("greenlet")
    current = module.getcurrent() if module is not None else None
    # The one without a parent is the thread.
    return current if current is not None and current.parent is not None else None


def caller() -> int:
    """The number of who calls."""
    who = _task_or_greenlet()
    if who is not None:
        number = _of.get(who)
        if number is None:
            number = _of[who] = next(_numbers)
        return number
    ident, number = _thread.get()
    if ident != get_ident():
        number = next(_numbers)
        _thread.set((get_ident(), number))
    return number


def running_loop() -> Optional[asyncio.AbstractEventLoop]:
    """The loop that a call of this thread would stop; None: there is none."""
    return asyncio._get_running_loop()


__all__ = ["caller", "running_loop"]
