"""How things end that nobody ends: collected, in callbacks, with their loop, and
by Ctrl-C at any point."""

import _thread
import asyncio
import contextlib
import dis
import gc
import logging
import os
import pathlib
import resource
import signal
import sys
import threading
import time
import weakref

import pytest

import sqlock
from conftest import Program, reaper_held_up
from sqlock import _core, _uses
from test_tx import connect

PACKAGE = str(pathlib.Path(sqlock.__file__).parent)


# ------------------------------------------------------------ transactions --


@pytest.fixture
def stock(registry, name):
    with registry.stock() as opened:
        opened.set(name, 5)
        opened.set(name + "-2", 5)
        yield opened


TAKE = "UPDATE INT_STOCK SET QUANTITY = QUANTITY - 1 WHERE ITEM = '{}'"


def run(connection, sql):
    """A statement of the application's own."""
    connection.cursor().execute(sql)


def fails(registry, connection):
    """A job whose transaction lives as long as the exception."""
    tx = registry.adopt(connection)
    tx.execute("SELECT 1 FROM there_is_none")


@pytest.mark.databases("postgres", "sqlite")
def test_a_late_finalizer_spares_the_next_transaction(registry, stock, url, name):
    connection = connect(url)
    try:
        failed = None
        try:
            fails(registry, connection)
        except sqlock.Error as error:
            failed = error
        run(connection, "ROLLBACK")
        run(connection, "BEGIN")
        run(connection, TAKE.format(name))
        with pytest.warns(ResourceWarning, match="Transaction"):
            failed.__traceback__ = failed = None
            gc.collect()
        registry._core._await_reaper()
        run(connection, TAKE.format(name + "-2"))
        run(connection, "COMMIT")
    finally:
        connection.close()
    assert (stock.read(name), stock.read(name + "-2")) == (4, 4)


# (apsw refuses to close a connection that has statements.)
@pytest.mark.databases("postgres")
@pytest.mark.parametrize("end", ["commit", "rollback", "execute", "leave"])
def test_a_closed_connection_is_not_used(registry, stock, url, name, end):
    connection = connect(url)
    tx = registry.adopt(connection)
    tx.execute(TAKE.format(name))
    connection.close()
    with pytest.raises(sqlock.Closed, match="connection"):
        tx.execute("SELECT 1") if end == "execute" else getattr(tx, end)()
    if end == "execute":
        with pytest.raises(sqlock.Closed):
            tx.commit()
    with pytest.raises(sqlock.Closed, match="ended"):
        tx.rollback()
    assert stock.read(name) == 5
    stock.deduct(name)


def test_a_dropped_transaction_is_rolled_back(registry, stock, name):
    with pytest.warns(ResourceWarning, match="Transaction"):
        tx = registry.transaction()
        tx.execute(TAKE.format(name))
        del tx
        gc.collect()
    registry._core._await_reaper()
    stock.deduct(name)
    assert stock.read(name) == 4


# --------------------------------------------------------------- callbacks --


def test_a_lease_dropped_while_its_loss_is_told(url, name):
    with sqlock.open(url) as registry:
        options = {"ttl": 0.2, "auto_renew": False, "on_lost": lambda *_: None}
        for i in range(40):
            try:
                lease = registry.acquire(f"{name}-{i}", **options)
            except (sqlock.LockExpired, sqlock.Timeout):  # on a busy machine
                continue
            assert lease.lost.wait(60)
            del lease


COLLECTS = """
import gc, logging, sys, threading, sqlock
told = threading.Event()

class Handler(logging.Handler):
    def emit(self, record):
        if getattr(record, "sqlock_event", "") in ("lost", "expired"):
            gc.collect()
            told.set()

logging.getLogger("sqlock").addHandler(Handler())

class Service:
    def __init__(self, closes):
        self.me = self
        self.registry = sqlock.open(sys.argv[1])
        self.lease = self.registry.acquire(sys.argv[2], ttl=0.5, auto_renew=False)
        self.closes = closes

    def __del__(self):
        if self.closes:
            try:
                self.registry.close()
            except sqlock.InUse:
                print("refused", flush=True)

for closes in (False, True):
    gc.disable()
    Service(closes)
    assert told.wait(60)
    told.clear()
    gc.enable()
while sqlock._core._open_ones:
    threading.Event().wait(0.01)
print("closed", flush=True)
"""


def test_a_closed_registry_leaves_no_number_of_a_lease(url, name):
    registry = sqlock.open(url)
    lease = registry.acquire(name)
    number = lease._handle.pointer
    registry.close()
    assert number not in _core.held_by  # it may be another's from now on
    with pytest.raises(sqlock.Closed):
        lease.release()


def elsewhere(tmp_path):
    """A registry of another database."""
    url = f"sqlite:{tmp_path}/locks.db"
    sqlock.create_schema(url)
    return sqlock.open(url)


@pytest.mark.databases("sqlite")
@pytest.mark.parametrize("quorum", [False, True])
def test_a_late_reaper_leaves_a_newer_lease_its_number(
    url, name, quorum, tmp_path, monkeypatch
):
    monkeypatch.setattr(_uses, "CLOSE_SECONDS", 0)  # of patience with the reaper
    registry, beside = sqlock.open(url), elsewhere(tmp_path)
    if quorum:
        held = sqlock.acquire_quorum([registry, beside], name, all=True)
        number = held._handle.locks[0]
    else:
        held = registry.acquire(name)
        number = held._handle.pointer
    newer = threading.Event()
    with reaper_held_up(registry):
        held.release()
        beside.close()
        registry.close()
        _core.held_by[number] = weakref.ref(newer)
    registry._core._reaper.join(60)
    for thread in threading.enumerate():
        if thread.name == "sqlock call":
            thread.join(60)
    assert _core.held_by.pop(number)() is newer  # and is told of its loss


def test_a_registry_collected_in_a_callback_is_closed(url, name):
    with Program(COLLECTS, url, name) as program:
        program.says("refused")
        program.says("closed")
        code, _ = program.ends()
        assert code == 0, program.complaint()


def test_a_handler_of_a_callback_that_fails_stops_nothing(registry, name):
    class Handler(logging.Handler):
        def emit(self, record):
            raise ZeroDivisionError

    handler = Handler()
    logging.getLogger("sqlock").addHandler(handler)
    try:
        for i in range(2):
            with pytest.raises(sqlock.LockLost):
                with registry.lock(f"{name}{i}", ttl=1, auto_renew=False) as lease:
                    assert lease.lost.wait(60)
    finally:
        logging.getLogger("sqlock").removeHandler(handler)


# ----------------------------------------------------------------- asyncio --


def eventfds():
    found = 0
    for one in os.listdir("/proc/self/fd"):
        try:
            found += "eventfd" in os.readlink(f"/proc/self/fd/{one}")
        except OSError:
            pass
    return found


@pytest.mark.parametrize("is_kept", [True, False])
@pytest.mark.parametrize("many", [True, False])
def test_a_closed_loop_takes_no_lock(url, name, is_kept, many):
    with sqlock.open(url) as registry, sqlock.open(url) as other:
        held = other.acquire(name)
        before = eventfds()
        loop = asyncio.new_event_loop()
        loop.set_exception_handler(lambda *_: None)
        take = registry.aacquire_many if many else registry.aacquire
        tasks = [loop.create_task(take([name] if many else name))]
        loop.call_later(0.05, loop.stop)
        loop.run_forever()
        loop.close()
        if not is_kept:
            tasks.clear()
        del loop
        gc.collect()
        while registry._core.waiting or registry._core._waits:
            if is_kept and not registry._core._waits:
                break
            threading.Event().wait(0.01)
        held.release()
        other.acquire(name, 60).release()
        other.acquire(name, 60).release()
        if not is_kept:
            while eventfds() > before:
                threading.Event().wait(0.01)


def test_a_block_whose_loop_is_gone_releases(url, name):
    with sqlock.open(url) as registry, sqlock.open(url) as other:

        async def hold():
            async with registry.alock(name), registry.atransaction() as tx:
                await tx.execute("SELECT 1")
                entered.set()
                await asyncio.Event().wait()

        entered = threading.Event()
        loop = asyncio.new_event_loop()
        loop.set_exception_handler(lambda *_: None)
        task = loop.create_task(hold())

        async def until():
            while not entered.is_set():
                await asyncio.sleep(0.01)

        loop.run_until_complete(until())
        loop.close()
        del task, loop
        gc.collect()
        other.acquire(name, 60).release()
        while registry._core.open:
            threading.Event().wait(0.01)


class _Circle:
    """A lease in a circle of references, whose finalizer gives it up."""

    def __init__(self):
        self.circle = self

    def __del__(self):
        threading.Event().wait(0.05)  # the reaper may be quicker
        self.lease._abandon()


def test_a_lease_is_given_up_by_what_is_collected_with_it(url, name):
    """The collector tells of a circle's objects before it finalizes them."""
    with sqlock.open(url) as registry, sqlock.open(url) as other:
        for _ in range(10):
            circle = _Circle()  # older than the lease, so finalized first
            circle.lease = registry.acquire(name, 60)
            del circle
            gc.collect()
            other.acquire(name, 60).release()


# ------------------------------------------------------------------ Ctrl-C --

# Where the interpreter looks for signals: after a call of a function of C, at
# the beginning of a function, and when a loop goes back.
_LOOKS = ("CALL", "RESUME", "JUMP_BACKWARD")


class Interrupt:
    """Ctrl-C at the n-th point of the package at which it may come."""

    def __init__(self, n):
        self.left = n
        self.last = {}
        self.returned = False

    def __call__(self, frame, event, argument):
        if not frame.f_code.co_filename.startswith(PACKAGE):
            return None
        frame.f_trace_opcodes = True
        return self.step

    def step(self, frame, event, argument):
        if event == "return":
            self.last.pop(frame, None)
            self.returned = frame.f_code.co_name != "__init__"
        elif event == "opcode":
            before = self.last.get(frame, "")
            code = frame.f_code.co_code[frame.f_lasti]
            self.last[frame] = dis.opname[code]
            looks = before.startswith(_LOOKS)
            # A function of Python that returns is followed by no look.
            if looks and not (self.returned and before != "RESUME"):
                self.left -= 1
                if self.left == 0:
                    sys.settrace(None)
                    raise KeyboardInterrupt
            self.returned = False
        return self.step


def one(registry, name):
    with registry.lock(name, 0):
        pass


def one_that_waits(registry, name):
    with registry.lock(name, 60):
        pass


def reader(registry, name):
    with registry.lock(name, 0) as lease:
        lease.downgrade()


def permit(registry, name):
    with registry.semaphore(name + "-3", 1, 0):
        pass


def several_without_a_block(registry, name):
    registry.acquire_many([name, name + "-2"], 0).release()


def transaction(registry, name):
    with registry.transaction() as tx:
        tx.execute("SELECT 1")


def stocked(registry, name):
    with registry.stock() as stock:
        stock.set(name, 1)


@pytest.mark.databases("sqlite")
@pytest.mark.filterwarnings("ignore::ResourceWarning")
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.skipif(sys.version_info < (3, 11), reason="looks at other points")
@pytest.mark.parametrize(
    "work",
    [
        one,
        one_that_waits,
        reader,
        permit,
        several_without_a_block,
        transaction,
        stocked,
    ],
)
def test_ctrl_c_at_any_point_leaves_nothing(url, other, name, work):
    registry = sqlock.open(url)
    names = [name, name + "-2"]
    work(registry, name)
    point, interrupted = 0, True
    while interrupted:
        point += 1
        interrupt = Interrupt(point)
        before = sys.gettrace()
        sys.settrace(interrupt)
        try:
            work(registry, name)
        except KeyboardInterrupt:
            pass
        finally:
            sys.settrace(before)
        interrupted = interrupt.left <= 0
        del interrupt
        gc.collect()
        other.acquire_many(names, 60).release()
        other.acquire(name + "-3", 60).release()
        # The row is free before its release in the background has ended.
        registry.acquire_many(names, 60).release()
    assert point > 20
    registry.close()  # no call counts as under way
    assert not registry._core.open and not registry._core.waiting


def test_a_wait_is_over_when_ctrl_c_has_ended_it(registry, other, name):
    """It is not handed the lock afterwards."""

    def interrupt(_, frame):
        if "poll" in frame.f_locals:  # it waits
            raise KeyboardInterrupt

    held = other.acquire(name)
    previous = signal.signal(signal.SIGALRM, interrupt)
    try:
        with reaper_held_up(registry):
            signal.setitimer(signal.ITIMER_REAL, 0.01, 0.01)
            with pytest.raises(KeyboardInterrupt):
                registry.acquire(name)
            signal.setitimer(signal.ITIMER_REAL, 0)
            held.release()
            # A claim that was being sent may get it, and then releases it.
            registry.acquire(name, 20).release()
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, previous)


class Twice:
    """Interrupts what waits for a thread once, and while it waits for the end of
    that thread once more."""

    def __init__(self):
        self.left = 2
        self.began, self.goes_on = threading.Event(), threading.Event()
        self.previous = signal.signal(signal.SIGALRM, self)
        signal.setitimer(signal.ITIMER_REAL, 0.01, 0.01)

    def __call__(self, *_):
        if self.left and self.began.is_set():
            self.left -= 1
            raise KeyboardInterrupt

    def waits(self, *_):
        """The call that the thread has under way; a second one does not wait."""
        if not self.began.is_set():
            self.began.set()
            assert self.goes_on.wait(60)

    def stop(self):
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, self.previous)

    def interrupts(self, call, *arguments):
        """The thread waits still when this returns."""
        try:
            call(*arguments)
        except KeyboardInterrupt:
            self.stop()
        assert self.left == 0
        gc.collect()

    def let_go(self):
        self.goes_on.set()
        for thread in threading.enumerate():
            if thread.name == "sqlock call":
                thread.join(60)
        gc.collect()


@pytest.fixture
def twice():
    one = Twice()
    yield one
    one.stop()
    one.let_go()


def test_a_second_ctrl_c_leaves_the_descriptor_of_a_call(twice):
    cancel = _core.Eventfd()
    kept = weakref.ref(cancel)
    twice.interrupts(_core.interruptible, twice.waits, cancel)
    del cancel
    gc.collect()
    assert kept() is not None
    twice.let_go()
    until = time.monotonic() + 60
    while kept() is not None and time.monotonic() < until:
        time.sleep(0.01)  # where eventlet was imported, no thread is joined
    assert kept() is None


def test_a_second_ctrl_c_leaves_the_locks_of_a_call(registry, name, twice, monkeypatch):
    kept, call = [], registry._call

    def waits(function, *arguments):
        if function == "acquire_many":
            kept.extend(weakref.ref(one) for one in registry._core.waiting)
            twice.waits()
        if None not in [one() for one in kept]:
            call(function, *arguments)

    monkeypatch.setattr(registry, "_call", waits)
    twice.interrupts(registry.acquire_many, [name, name + "-2"])
    registry._core._await_reaper()
    gc.collect()
    assert len(kept) == 2
    assert all(one() is not None for one in kept)
    twice.let_go()
    monkeypatch.undo()
    registry.acquire_many([name, name + "-2"], 60).release()


def test_a_second_ctrl_c_leaves_an_observer_in_use(registry, name, twice, monkeypatch):
    leader = registry.leader(name)
    monkeypatch.setattr(leader, "_read", twice.waits)
    twice.interrupts(leader.observe)
    with pytest.raises(RuntimeError, match="observes already"):
        leader.observe(0)
    twice.let_go()
    monkeypatch.undo()
    with pytest.raises(sqlock.Timeout):
        leader.observe(0)


@pytest.mark.parametrize("many", [True, False])
def test_ctrl_c_in_a_release_leaves_nothing_held(
    registry, other, name, many, monkeypatch
):
    """Although somebody still refers to the lease."""

    def interrupted(*_):
        raise KeyboardInterrupt

    lease = registry.acquire_many([name]) if many else registry.acquire(name)
    with monkeypatch.context() as during:
        during.setattr(sqlock.lease.Handle, "call", interrupted)
        during.setattr(sqlock.lease.Leases, "_together", interrupted)
        with pytest.raises(KeyboardInterrupt):
            lease.release()
    other.acquire(name, 60).release()
    assert not lease.held


@pytest.mark.parametrize("opens", ["transaction", "stock"])
def test_ctrl_c_in_an_opening_leaves_a_registry_that_closes(url, opens, monkeypatch):
    """Although its traceback still refers to what was opened."""
    registry = sqlock.open(url)
    call = registry._core.call

    def interrupted(*arguments):
        call(*arguments)
        raise KeyboardInterrupt

    monkeypatch.setattr(registry._core, "call", interrupted)
    with pytest.raises(KeyboardInterrupt) as came:
        getattr(registry, opens)()
    registry.close()
    assert came.traceback


# --------------------------------------------------- a close that fails --


def test_ctrl_c_in_a_close_leaves_the_registry_open(url, other, name, monkeypatch):
    """And what is dropped meanwhile is released all the same."""
    registry = sqlock.open(url)
    core = registry._core
    kept = registry.acquire(name)
    dropped = [registry.acquire(name + "-2"), registry.transaction()]
    under_way = object()
    sleep, main = _core.time.sleep, threading.get_ident()

    def interrupted(seconds):
        if threading.get_ident() != main:
            return sleep(seconds)
        with pytest.raises(sqlock.Closed):
            registry.show(name)
        looked = threading.Event()
        dropped.clear()
        gc.collect()
        core.hand_over("tell", looked)
        assert looked.wait(60)
        raise KeyboardInterrupt

    core._calls[under_way] = 0
    with monkeypatch.context() as during:
        during.setattr(_core.time, "sleep", interrupted)
        with pytest.raises(KeyboardInterrupt):
            registry.close()
    core.leave(under_way, None)
    other.acquire(name + "-2", 60).release()
    while core.open:
        threading.Event().wait(0.01)
    kept.release()
    registry.close()


@pytest.mark.databases("postgres", "mysql")  # SQLite has one transaction at a time
def test_a_close_that_outlasts_its_patience_leaves_the_registry_open(
    url, other, name, monkeypatch
):
    registry = sqlock.open(url)
    begun = threading.Event()
    came = []

    def lock():
        with registry.transaction() as tx:
            begun.set()
            came.append(tx.lock(name))

    waiter = threading.Thread(target=lock)
    with other.transaction() as before:
        before.lock(name)
        waiter.start()
        assert begun.wait(60)
        while not registry._core._calls:
            threading.Event().wait(0.01)
        with monkeypatch.context() as during:
            during.setattr(_uses, "CLOSE_SECONDS", 0.05)
            with pytest.raises(sqlock.InUse, match="other threads"):
                registry.close()
    waiter.join(60)
    assert came == [{name}]
    registry.acquire(name, 60).release()
    registry.close()


def test_a_registry_that_the_library_does_not_close_is_closed_later(url, name):
    registry = sqlock.open(url)
    unknown = _core.ctypes.c_void_p()
    registry._call("stock_open", _core._native.byref(unknown), registry._pointer, None)
    lease, tx = registry.acquire(name), registry.transaction()
    with pytest.raises(sqlock.InUse, match="open transactions or stocks"):
        registry.close()
    assert lease._handle.pointer in _core.held_by  # which is told of its loss
    with pytest.raises(sqlock.Closed):
        tx.rollback()
    lease.release()
    _core._native.function("stock_close")(unknown)
    registry.close()
    with pytest.raises(sqlock.Closed):
        registry.acquire(name)


def test_a_registry_may_be_closed_twice(url):
    registry = sqlock.open(url)
    tx, stock = registry.transaction(), registry.stock()
    registry.close()
    registry.close()
    with pytest.raises(sqlock.Closed):
        tx.rollback()
    with pytest.raises(sqlock.Closed):
        stock.read("item")


# ---------------------------------------------------- beside another thread --


def test_a_stock_is_not_freed_under_a_call(registry, name, monkeypatch):
    stock = registry.stock()
    stock.set(name, 5)
    begun, goes_on = threading.Event(), threading.Event()
    call = registry._core.call
    came = []

    def slow(function, *arguments):
        if function == "stock_deduct":
            with pytest.raises(sqlock.InUse, match="this thread"):
                stock.close()
            begun.set()
            assert goes_on.wait(60)
        call(function, *arguments)

    monkeypatch.setattr(registry._core, "call", slow)
    seller = threading.Thread(target=lambda: came.append(stock.deduct(name).left))
    closer = threading.Thread(target=stock.close)
    seller.start()
    assert begun.wait(60)
    closer.start()
    with pytest.raises(sqlock.Closed):
        while True:
            stock.read(name)
    assert stock._pointer  # and not freed
    goes_on.set()
    seller.join(60)
    closer.join(60)
    assert came == [4]
    assert not stock._pointer


@pytest.mark.databases("postgres", "mysql")
@pytest.mark.parametrize("kind", ["lease", "leases", "quorum"])
def test_a_lock_outlives_a_call_beside_its_release(
    registry, name, kind, monkeypatch, tmp_path
):
    if kind == "quorum":
        held = sqlock.acquire_quorum([registry, elsewhere(tmp_path)], name, all=True)
        owner = weakref.ref(held._handle)
    elif kind == "leases":
        held = registry.acquire_many([name])
        owner = weakref.ref(held[0]._handle)
    else:
        held = registry.acquire(name)
        owner = weakref.ref(held._handle)
    call = registry._core.call

    def released_first(*arguments):
        monkeypatch.undo()
        held.release()
        gc.collect()
        assert owner() is not None
        call(*arguments)

    with registry.transaction() as tx:
        monkeypatch.setattr(registry._core, "call", released_first)
        with pytest.raises(sqlock.Error):
            tx.guard(held)
        tx.rollback()
    if kind == "leases":
        held = registry.acquire_many([name], 60)
        owner = weakref.ref(held[0]._handle)
        monkeypatch.setattr(registry._core, "call", released_first)
        with pytest.raises(sqlock.NotOwner):
            held.renew()


@contextlib.contextmanager
def without_threads():
    """No thread can be started."""

    def start(*_, **__):
        raise RuntimeError("can't start new thread")

    with pytest.MonkeyPatch.context() as patch:
        for function in ("_start_new_thread", "_start_joinable_thread"):
            patch.setattr(threading, function, start, raising=False)
        patch.setattr(_thread, "start_new_thread", start)
        patch.delitem(sys.modules, "eventlet.patcher", raising=False)
        with pytest.raises(sqlock.OutOfResources, match="no thread"):
            yield


def test_without_a_thread_nothing_is_held(registry, other, url, name):
    leader = registry.leader(name)
    with without_threads():
        leader.observe(60)
    with without_threads():
        sqlock.open(url)
    with without_threads():
        registry.acquire_many([name, name + "-2"])
    other.acquire_many([name, name + "-2"], 0).release()


def test_without_a_thread_a_task_holds_nothing(registry, other, name, tmp_path):
    names, beside = [name, name + "-2"], elsewhere(tmp_path)

    async def main():
        with without_threads():
            await registry.aacquire_many(names)
        with without_threads():
            await sqlock.aacquire_quorum([registry, beside], name, all=True)
        other.acquire_many(names, 0).release()
        leases = await registry.aacquire_many(names)
        with without_threads():
            await leases.arelease()
        other.acquire_many(names, 60).release()
        with without_threads():
            async with registry.atransaction() as tx:
                raise AssertionError
        async with registry.atransaction() as tx:
            await tx.execute("SELECT 1")
        with without_threads():
            await registry.astock()

    asyncio.run(main())
    quorum = sqlock.acquire_quorum([registry, beside], name, all=True)
    with without_threads():
        asyncio.run(quorum.arelease())
    other.acquire(name, 60).release()
    beside.close()


def test_what_no_thread_is_had_for_does_not_happen_later(registry, name):
    async def main():
        stock = await registry.astock()
        with registry.stock() as opened:
            opened.set(name, 5)
        with without_threads():
            await stock.deduct(name)
        with without_threads():
            await stock.close()
        assert await stock.read(name) == 5
        await stock.close()

    asyncio.run(main())


def test_a_wait_without_a_descriptor_says_so(registry, name):
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (0, limits[1]))
    try:
        with pytest.raises(sqlock.OutOfResources, match="descriptor"):
            registry.acquire(name)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)
    registry.acquire(name, 0).release()


@pytest.mark.parametrize("many", [True, False])
def test_a_block_whose_registry_was_closed_says_so(url, name, many):
    registry = sqlock.open(url)
    with pytest.raises(sqlock.Closed):
        with registry.lock_many([name]) if many else registry.lock(name):
            registry.close()
    registry = sqlock.open(url)

    async def main():
        async with registry.alock_many([name]) if many else registry.alock(name):
            registry.close()

    with pytest.raises(sqlock.Closed):
        asyncio.run(main())
    with pytest.raises(ZeroDivisionError):
        with sqlock.open(url) as registry, registry.lock(name):
            registry.close()
            raise ZeroDivisionError


@pytest.mark.databases("sqlite")
def test_a_block_says_that_its_registry_is_in_use(url, name, tmp_path):
    beside = elsewhere(tmp_path)
    for raises in (sqlock.InUse, ZeroDivisionError):
        with pytest.raises(raises):
            with sqlock.open(url) as registry:
                held = sqlock.acquire_quorum([registry, beside], name, all=True)
                if raises is ZeroDivisionError:
                    raise ZeroDivisionError
        held.release()
        registry.close()
    beside.close()


# ------------------------------------------------------------ interpreters --


def test_another_interpreter_is_refused():
    source = """
try:
    import _interpreters as interpreters
except ImportError:
    import _xxsubinterpreters as interpreters
one = interpreters.create()
code = '''
try:
    import sqlock
except ImportError as error:
    print("main interpreter" in str(error), flush=True)
'''
interpreters.run_string(one, code)
"""
    with Program(source) as program:
        code, rest = program.ends()
        assert rest == "True\n", program.complaint()
