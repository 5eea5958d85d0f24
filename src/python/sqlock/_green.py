"""Waits that do not stop the loop of gevent or eventlet.

One call of the library keeps the whole thread, and with it all greenlets, among
them the one that would release the lock.  So in a thread that runs such a loop a
wait is a request or a thread of the system, and the greenlet sleeps until the
descriptor of its end is readable.
"""

from __future__ import annotations

import select
import sys
import threading
from typing import Any, Callable, Optional

from .errors import OutOfResources

LOOK_AGAIN_MS = 500  # for a signal that came just before a wait

Sleep = Callable[[int], object]


def _gevent() -> Optional[Sleep]:
    local: Any = sys.modules.get("gevent._hub_local")
    hub = local.get_hub_if_exists() if local is not None else None
    if hub is None:
        return None

    def sleep(fd: int) -> None:
        watcher = hub.loop.io(fd, 1)
        try:
            hub.wait(watcher)
        finally:
            watcher.close()

    return sleep


def _eventlet() -> Optional[Sleep]:
    hubs: Any = sys.modules.get("eventlet.hubs")
    if hubs is None or not hasattr(hubs._threadlocal, "hub"):
        return None
    return lambda fd: hubs.trampoline(fd, read=True)


def _sleep() -> Optional[Sleep]:
    return _gevent() or _eventlet()


def runs() -> bool:
    """Whether this thread runs a loop of greenlets."""
    return _sleep() is not None


def await_readable(fd: int) -> None:
    """Sleep until it is: other greenlets and handlers of signals run meanwhile."""
    sleep = _sleep()
    if sleep is not None:
        sleep(fd)
        return
    poll = select.poll()
    poll.register(fd, select.POLLIN)
    # Not without a limit: a signal that comes just before poll() does not end
    # it, and its handler runs only between two calls.
    while not poll.poll(LOOK_AGAIN_MS):
        pass


def start(function: Callable[..., object], *arguments: object) -> None:
    """Call it in a thread of the system, also where threads are greenlets."""
    monkey: Any = sys.modules.get("gevent.monkey")
    patcher: Any = sys.modules.get("eventlet.patcher")
    try:
        if monkey is not None:
            monkey.get_original("_thread", "start_new_thread")(function, arguments)
        elif patcher is not None:
            patcher.original("_thread").start_new_thread(function, arguments)
        else:
            threading.Thread(
                target=function, args=arguments, name="sqlock call", daemon=True
            ).start()
    except RuntimeError as error:
        raise OutOfResources("no thread can be started") from error


__all__ = ["await_readable", "runs", "start"]
