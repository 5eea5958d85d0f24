"""Locks by thread: exclusion, order, losses, ends of processes, errors."""

import ctypes
import gc
import logging
import os
import pathlib
import signal
import subprocess
import threading
import time

import pytest

import sqlock
from conftest import Program, lose
from sqlock import _native


def test_a_block_holds_the_lock(registry, other, name):
    with registry.lock(name, wait=5) as lease:
        assert lease.held
        assert lease.name == name
        assert 0 < lease.remaining <= 10
        lease.check()
        assert other.try_acquire(name) is None
        row = other.show(name)
        assert (row.name, row.state) == (name, "held")
        assert (row.client_id, row.token) == (lease.client_id, lease.token)
        assert lease.client_id in lease.id
    assert not lease.held
    assert lease.remaining == 0
    assert lease.client_id == ""
    assert other.show(name).state == "free"
    with pytest.raises(sqlock.NotOwner):
        lease.check()


@pytest.mark.databases("postgres", "mysql")
def test_a_url_may_name_several_hosts(url, name):
    with sqlock.open(url.replace("@", "@127.0.0.1:1,")) as opened:
        with opened.lock(name, wait=5) as lease:
            assert lease.held


def test_each_lease_is_an_owner_of_its_own(registry, other, name):
    with registry.lock(name):
        with pytest.raises(sqlock.Busy) as busy:
            registry.acquire(name, 0)
        assert busy.value.code == -1
        assert busy.value.name == "EBUSY"
        with pytest.raises(sqlock.Timeout) as late:
            other.acquire(name, 0.05)
        assert isinstance(late.value, TimeoutError)
        assert isinstance(late.value, sqlock.Error)


def test_tokens_rise(registry, other, name):
    tokens = []
    for one in (registry, other, registry, other):
        with one.lock(name) as lease:
            tokens.append(lease.token)
    assert tokens == sorted(set(tokens))


def test_a_lock_may_be_used_again_but_not_within_itself(registry, name):
    lock = registry.lock(name, wait=1)
    with lock as first:
        with pytest.raises(RuntimeError):
            lock.__enter__()
    with lock as second:
        assert second.token > first.token


def test_a_lease_that_was_acquired_is_released(registry, other, name):
    lease = registry.acquire(name, 5, ttl=20, max_hold=60)
    assert lease.remaining > 10
    lease.renew(30)
    assert lease.remaining > 20
    lease.release()
    with pytest.raises(sqlock.NotOwner):
        lease.release()
    with other.lock(name, wait=0), pytest.raises(sqlock.Busy):
        registry.acquire(name, 0)


def test_an_id_has_the_ttl_of_its_lease(registry, other, url, name):
    def ttl_of(lease):
        return int(lease.id.split(":")[2])

    lease = registry.acquire(name, 5, ttl=60)
    assert ttl_of(lease) == 60_000
    command = pathlib.Path(os.environ["SQLOCK_LIBRARY"]).parents[1] / "bin/sqlock"
    subprocess.run(
        [command, "renew", lease.id], check=True, env={**os.environ, "SQLOCK_URL": url}
    )
    assert other.show(name).remaining > 50
    lease.renew(100)
    assert ttl_of(lease) == 100_000
    with pytest.raises(sqlock.Invalid):
        lease.renew(0.001)
    lease.renew()
    assert ttl_of(lease) == 100_000
    assert other.show(name).remaining > 90
    lease.downgrade()
    assert ttl_of(lease) == 100_000
    lease.release()
    with registry.lock(name) as usual:
        assert ttl_of(usual) == 10_000
    with registry.lock_many([name, name + "-two"], ttl=60) as leases:
        leases[1].renew(30)
        leases.renew()
        assert [ttl_of(one) for one in leases] == [60_000, 30_000]
    with registry.semaphore(name + "-permits", 2, ttl=60) as permit:
        assert ttl_of(permit) == 60_000
    with registry.leader(name, ttl=60) as leader:
        assert ttl_of(leader.lease) == 60_000
    with sqlock.open(url, ttl=20) as slow:
        with slow.lock(name) as usual:
            assert ttl_of(usual) == 20_000


def test_a_block_releases_after_an_exception(registry, other, name):
    with pytest.raises(KeyError):
        with registry.lock(name):
            raise KeyError("the block's own")
    with other.lock(name, wait=0):
        pass


def test_a_lease_that_nobody_has_is_released(registry, other, name):
    lease = registry.acquire(name)
    assert other.try_acquire(name) is None
    with pytest.warns(ResourceWarning, match=name):
        del lease
        gc.collect()
    other.acquire(name, 60).release()


def test_threads_never_overlap(registry, name, counter):
    inside, most, done = 0, 0, 0
    rounds = 6

    def work():
        nonlocal inside, most, done
        for _ in range(rounds):
            with registry.lock(name):
                inside += 1
                most = max(most, inside)
                n = counter.read()
                done += 1
                counter.set(n + 1)
                inside -= 1

    threads = [threading.Thread(target=work) for _ in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert most == 1
    assert done == 16 * rounds
    assert counter.read() == 16 * rounds


# ------------------------------------------------------------------ a loss --


def test_a_loss_is_told_and_raises(registry, other, name):
    told = []
    heard = threading.Event()

    def on_lost(lease, error):
        told.append((lease, error))
        # It may do anything: it has a thread of its own.
        with registry.lock(name + "-other"):
            heard.set()

    with pytest.raises(sqlock.LockLost) as lost:
        with registry.lock(name, ttl=2, on_lost=on_lost) as lease:
            lease.check()
            lose(other, name)
            with other.lock(name):
                assert lease.lost.wait(120)
                assert not lease.held
                assert lease.remaining == 0
                with pytest.raises(sqlock.LockLost):
                    lease.check()
    assert lost.value.name in ("ELOST", "EEXPIRED")
    assert heard.wait(120)
    assert told[0][0] is lease
    assert isinstance(told[0][1], sqlock.LockLost)


def test_a_lease_that_is_not_renewed_expires(registry, name):
    with pytest.raises(sqlock.LockExpired):
        with registry.lock(name, ttl=0.3, auto_renew=False) as lease:
            assert lease.lost.wait(120)
            with pytest.raises(sqlock.LockExpired):
                lease.check()
            while registry.show(name).state == "held":  # by the margin
                time.sleep(0.01)
            assert registry.show(name).state == "expired"
    with registry.lock(name, wait=60):
        pass


def test_a_maximum_hold_time_ends_renewals(registry, name):
    with pytest.raises(sqlock.LockLost):
        with registry.lock(name, ttl=1, max_hold=1) as lease:
            assert lease.lost.wait(60)


def test_who_listens_to_what_is_lost_already_is_told(registry, name):
    lease = registry.acquire(name, ttl=1, auto_renew=False)
    assert lease.lost.wait(60)
    told = []
    lease._listen(lambda: told.append("told"))
    assert told == ["told"]
    with pytest.raises(sqlock.LockLost):
        lease.release()


# The file is away for a time.  A patient wait outlasts that, and gets the lock.
@pytest.mark.databases("sqlite")
def test_a_wait_that_fails_fast_ends_with_the_first_error(url, name, tmp_path):
    file, away = tmp_path / "locks.db", tmp_path / "away.db"
    sqlock.create_schema(f"sqlite:{file}")
    with sqlock.open(f"sqlite:{file}") as registry:
        registry.acquire(name).release()
        file.rename(away)
        back = threading.Timer(60, away.rename, [file])
        back.start()
        try:
            with pytest.raises(sqlock.Error):
                registry.acquire(name, fail_fast=True)
        finally:
            back.cancel()


def test_a_loss_does_not_hide_what_the_block_raised(registry, other, name):
    with pytest.raises(ZeroDivisionError):
        with registry.lock(name, ttl=2) as lease:
            lose(other, name)
            assert lease.lost.wait(120)
            raise ZeroDivisionError


HOLDER = """
import sys, sqlock
registry = sqlock.open(sys.argv[1])
lease = registry.acquire(sys.argv[2], ttl=5)
print(lease.token, flush=True)
sys.stdin.read()
"""


def test_the_lock_of_a_killed_process_passes_on(registry, url, name):
    with Program(HOLDER, url, name) as holder:
        token = int(holder.process.stdout.readline())
        assert registry.try_acquire(name) is None
        holder.process.kill()
        with registry.lock(name, wait=120) as lease:
            assert lease.token > token


EXITS = """
import sys, threading, sqlock
registry = sqlock.open(sys.argv[1])
lease = registry.acquire(sys.argv[2], ttl=600)
with registry.transaction() as tx:
    tx.execute("SELECT 1")
open_one = registry.transaction()
open_one.execute("SELECT 1")
stock = registry.stock()
waits = threading.Thread(target=registry.acquire, args=[sys.argv[2]], daemon=True)
waits.start()
print("ends", flush=True)
"""


def test_a_process_that_ends_leaves_nothing_held(registry, url, name):
    with Program(EXITS, url, name) as program:
        program.says("ends")
        code, _ = program.ends()
        assert code == 0, program.complaint()
    with registry.lock(name, wait=0):
        pass


# ------------------------------------------------------------------- waits --

WAITS = """
import sys, threading, time, sqlock
registry = sqlock.open(sys.argv[1])
names = sys.argv[2:]
main = threading.main_thread().ident

def tell():
    # Once the main thread is where it waits, and nowhere before.
    places = ("_acquire_by_request", "interruptible")
    while True:
        frame, above = sys._current_frames()[main], []
        while frame:
            above.append(frame.f_code.co_name)
            frame = frame.f_back
        if above[0] == "await_readable" and above[1] in places:
            break
        time.sleep(0.01)
    print("waits", flush=True)

threading.Thread(target=tell).start()
try:
    if len(names) > 1:
        registry.acquire_many(names)
    else:
        registry.acquire(names[0])
except KeyboardInterrupt:
    print("interrupted", flush=True)
with registry.lock(names[0] + "-more", wait=60):
    pass
registry.close()
"""


def test_a_process_without_standard_input_waits(registry, url, name):
    with registry.lock(name):
        source = WAITS.replace("names =", "import os; os.close(0)\nnames =")
        with Program(source, url, name) as program:
            program.says("waits")
            os.kill(program.process.pid, signal.SIGINT)
            code, rest = program.ends()
            assert (code, rest) == (0, "interrupted\n"), program.complaint()


@pytest.mark.parametrize("count", [1, 3])
def test_ctrl_c_ends_a_wait(registry, url, name, count):
    names = [name] + [f"{name}-{i}" for i in range(1, count)]
    with registry.lock(name):
        with Program(WAITS, url, *names) as program:
            program.says("waits")
            os.kill(program.process.pid, signal.SIGINT)
            code, rest = program.ends()
            assert (code, rest) == (0, "interrupted\n"), program.complaint()
    for one in names:
        registry.acquire(one, 0).release()


def test_a_handler_that_returns_does_not_end_a_wait(registry, other, name):
    handled = threading.Event()
    previous = signal.signal(signal.SIGUSR1, lambda *_: handled.set())
    held = other.acquire(name)

    def pass_on():
        os.kill(os.getpid(), signal.SIGUSR1)
        handled.wait()
        held.release()

    try:
        threading.Thread(target=pass_on).start()
        with registry.lock(name, wait=120):
            assert handled.is_set()
    finally:
        signal.signal(signal.SIGUSR1, previous)


def test_a_wait_below_a_millisecond_is_a_wait(registry, other, name):
    with other.lock(name), pytest.raises(sqlock.Timeout):
        registry.acquire(name, 0.0001)


@pytest.mark.databases("sqlite")
def test_a_key_of_other_bytes_is_listed(registry, name):
    with registry.transaction() as tx:
        tx.execute(
            "INSERT INTO INT_LOCK (LOCK_KEY, REGION, CREATED_DATE, EXPIRED_AFTER,"
            " LOCK_NAME) VALUES (CAST(x'4bff' AS TEXT), 'DEFAULT', 0, 1,"
            f" CAST(x'{name.encode().hex()}e9' AS TEXT))"
        )
    (row,) = registry.list(name + "*", free=True)
    assert (row.key, row.name) == ("K\udcff", name + "\udce9")
    registry.reap(0)


def test_closing_ends_waits(url, name):
    registry = sqlock.open(url)
    held = registry.acquire(name)
    came = []

    def wait(take):
        try:
            take()
        except sqlock.Error as error:
            came.append(type(error))

    threads = [
        threading.Thread(target=wait, args=[lambda: registry.acquire(name)]),
        threading.Thread(target=wait, args=[lambda: registry.acquire_many([name])]),
    ]
    for thread in threads:
        thread.start()
    while len(registry._core.waiting) < 2:
        time.sleep(0.01)
    registry.close()
    for thread in threads:
        thread.join()
    assert came == [sqlock.Cancelled] * 2
    registry.close()
    assert not held.held
    assert held.remaining == 0
    for use in (registry.try_acquire, registry.show, registry.is_done):
        with pytest.raises(sqlock.Closed):
            use(name)
    with pytest.raises(sqlock.Closed):
        held.release()
    with sqlock.open(url) as again:
        again.acquire(name, 0).release()


def test_closing_cancels_the_wait_of_the_main_thread(url, other, name):
    registry = sqlock.open(url)

    def close():
        while not other.show(name).waiters:
            time.sleep(0.01)
        registry.close()

    with other.lock(name):
        closing = threading.Thread(target=close)
        closing.start()
        with pytest.raises(sqlock.Cancelled):
            registry.acquire(name)
        closing.join()
    other.acquire(name, 0).release()


# -------------------------------------------------------------------- many --


def test_many_are_taken_together_or_not_at_all(registry, other, name):
    names = [f"{name}-{i}" for i in (3, 1, 2)]
    with registry.lock_many(names, wait=5) as leases:
        assert [lease.name for lease in leases] == names
        assert set(leases.tokens) == set(names)
        leases.check()
        leases.renew()
        assert leases.held
        assert leases.remaining > 0
        with pytest.raises(sqlock.Busy):
            other.acquire_many([name, names[0]], 0)
        other.acquire(name, 0).release()
    with other.lock_many(names, wait=0):
        pass
    with pytest.raises(TypeError):
        registry.lock_many("one").__enter__()


def test_of_many_the_first_deadline_counts(registry, name):
    with registry.lock_many([name, name + "-2"]) as leases:
        leases[0].renew(600)
        assert 0 < leases.remaining < 100 < leases[0].remaining


def test_the_loss_of_one_of_many_raises(registry, other, name):
    names = [f"{name}-{i}" for i in range(3)]
    with pytest.raises(sqlock.LockLost):
        with registry.lock_many(names, ttl=2) as leases:
            lose(other, names[1])
            assert leases[1].lost.wait(120)
            assert [lease.held for lease in leases] == [True, False, True]
            assert leases.remaining == 0
            with pytest.raises(sqlock.LockLost):
                leases.check()
    leases.release()  # nothing is left of them
    with other.lock_many(names, wait=60):
        pass


# -------------------------------------------------------------------- fork --


def test_a_child_process_is_refused(registry, name):
    with registry.lock(name) as lease, registry.leader(name + "-led") as leader:
        child = os.fork()
        if child == 0:
            code = 1
            try:
                uses = (
                    lambda: registry.acquire(name + "-child", 0),
                    lambda: registry.show(name),
                    lambda: registry.acquire(name + "-child", 0, shared=True),
                    lambda: registry.semaphore(name, 2, 0).__enter__(),
                    lambda: registry.set_permits(name, 2),
                    lambda: leader.publish("text"),
                    registry.leader(name).info,
                    registry.leader(name).observe,
                    lease.check,
                    lease.renew,
                    lease.downgrade,
                    lambda: lease.id,
                    lease.release,
                    lease.release,  # it was not let go
                    lambda: lease.__exit__(None, None, None),
                    registry.close,
                )
                for i, use in enumerate(uses):
                    code = 10 + i
                    try:
                        use()
                    except sqlock.UsedAfterFork:
                        continue
                    os._exit(code)
                code = 0 if not lease.held and not leader.leads else 2
                del lease, leader
            finally:
                os._exit(code)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        lease.check()


# ---------------------------------------------------------- administration --


def test_locks_are_listed(registry, other, url, name):
    registry.acquire(name + "-free").release()
    with registry.lock(name + "-held"):
        held = other.list(name + "*")
        assert [(row.name, row.state) for row in held] == [(name + "-held", "held")]
        assert held[0].expires_at > held[0].acquired_at > 0
        assert held[0].holder
        both = other.list(name + "*", free=True, sort="name")
        assert [row.state for row in both] == ["free", "held"]
        assert both[0].held_for == 0
        assert str(os.getpid()) in both[0].last_holder
        assert both[1].last_holder is None
        assert other.show(name + "-held").region is None
        with sqlock.open(url, region=name) as elsewhere:
            everywhere = elsewhere.list(name + "*", all_regions=True)
            assert [row.region for row in everywhere] == ["DEFAULT"]
            assert elsewhere.list(name + "*") == []
        assert len(other.list(name + "*", free=True, limit=1)) == 1
        with pytest.raises(ValueError, match="sort must be one of"):
            other.list(sort="size")
        for limit in (-1, 2**32):
            with pytest.raises(ValueError, match="limit is out of range"):
                other.list(limit=limit)
    with pytest.raises(sqlock.NotFound):
        other.show(name)


def test_a_list_has_the_order_that_is_asked_for(registry, name):
    names = [f"{name}/{letter}" for letter in "bca"]
    leases = [registry.acquire(n, ttl=t) for n, t in zip(names, (70, 60, 80))]
    for sort, order in [("name", "abc"), ("held", "bca"), ("remaining", "cba")]:
        rows = registry.list(name + "*", sort=sort)
        assert "".join(row.name[-1] for row in rows) == order
    tokens = [row.token for row in registry.list(name + "*", sort="token")]
    assert tokens == [lease.token for lease in leases[::-1]]
    for lease in leases:
        lease.release()


def test_who_waits_is_listed(registry, other, name):
    with registry.acquire(name):
        assert other.show(name).waiters == 0
        assert other.show(name).waiter_names == []
        waits = threading.Thread(target=lambda: other.acquire(name).release())
        waits.start()
        while other.show(name).waiters == 0:
            time.sleep(0.01)
        (waiter,) = other.list(name)[0].waiter_names
        assert f" {os.getpid()} " in waiter
        assert other.show(name).place == 1
        assert registry.show(name).place == 0
    waits.join()


def test_a_break_names_the_holder(registry, other, url, name):
    with registry.lock(name) as lease:
        with pytest.raises(sqlock.Conflict):
            other.break_lock(name, client_id="0" * 36, reason="test")
        with pytest.raises(sqlock.Invalid):
            other.break_lock(name)
        with pytest.raises(sqlock.Conflict):
            other.break_lock(name, token=lease.token - 1)
        lease.check()
    with sqlock.open(url, ttl=3600) as registry:
        lease = registry.acquire(name)
        other.break_lock(name, token=lease.token, reason="why", who="me")
        row = other.show(name)
        assert row.holder == "broken by me: why" and row.token > lease.token
        assert row.remaining > 600  # it is not freed before its time
        other.break_lock(name, client_id=row.client_id, now=True)
        with pytest.raises(sqlock.LockLost):
            lease.release()
    assert other.show(name).state != "held"
    assert other.reap(3600) >= 0


def test_rows_of_all_ages_are_reaped(url, name):
    with sqlock.open(url, region=name) as ours:
        ours.acquire(name).release()
        for wrong in (-1, -0.001, float("nan"), float("inf")):
            with pytest.raises(ValueError, match="retention must be"):
                ours.reap(wrong)
        for wrong in (None, "600", True):
            with pytest.raises(TypeError, match="retention must be"):
                ours.reap(wrong)
        assert ours.show(name).state == "free"
        time.sleep(0.01)  # a row that is a moment old
        assert ours.reap(0) == 1
        with pytest.raises(sqlock.NotFound):
            ours.show(name)


def test_what_happens_is_counted_and_logged(registry, other, name, caplog):
    before = registry.stats()
    with pytest.raises(sqlock.LockLost):
        with registry.lock(name, ttl=2) as lease:
            lose(other, name)
            assert lease.lost.wait(120)
    registry.acquire(name, 60).release()
    after = registry.stats()
    assert after.granted == before.granted + 2
    assert after.lost + after.expired == before.lost + before.expired + 1
    assert after.wait.number == sum(n for _, n in after.wait.buckets)
    for times in (after.wait, after.statement):
        most = sum(bound * n for bound, n in times.buckets if n)
        assert 0 < times.seconds <= most
        assert times.seconds >= most / 2 - 16e-6 * times.number
    assert after.connections > 0
    (told,) = [
        record
        for record in caplog.records
        if getattr(record, "sqlock_event", None) == "lost"
    ]
    assert (told.name, told.levelname) == ("sqlock", "WARNING")
    assert told.sqlock_lock == name
    assert told.sqlock_key == registry.show(name).key
    assert told.sqlock_token == lease.token
    assert told.sqlock_code in (sqlock.LockLost.code, sqlock.LockExpired.code)


def test_each_level_of_the_library_is_one_of_pythons(caplog):
    caplog.set_level(logging.DEBUG, "sqlock")
    for level in range(-2, 4):
        event = _native.Event(level=level, text=b"of \xff")
        sqlock.registry._log_event(None, ctypes.pointer(event))
    assert [one.levelno for one in caplog.records] == [10, 10, 20, 30, 40, 40]
    assert caplog.records[0].getMessage() == "of \ufffd"


def test_a_prefix_names_all_tables(tmp_path, name):
    if "sqlite" not in os.environ.get("DRIVERS", "sqlite"):
        pytest.skip("the library has no driver of SQLite")
    url = f"sqlite:{tmp_path}/locks.db"
    for kind in ("schema", "once_schema", "stock_schema"):
        getattr(sqlock, f"create_{kind}")(url, table_prefix="P_")
    with sqlock.open(url, table_prefix="P_") as registry:
        with registry.lock(name) as lease:
            lease.record_done()
        assert registry.is_done(name)
        with registry.stock() as stock:
            assert stock.set(name, 1).left == 1
    with pytest.raises(sqlock.SchemaError):
        sqlock.open(url)


def test_what_is_done_once(registry, name):
    assert not registry.is_done(name)
    with registry.lock(name) as lease:
        lease.record_done()
    assert registry.is_done(name)


# ------------------------------------------------------------------ errors --


def test_errors_of_opening():
    with pytest.raises(sqlock.Error) as unknown:
        sqlock.open("nonsense://host/db")
    assert "nonsense" in str(unknown.value)
    with pytest.raises(sqlock.SchemaError) as missing:
        sqlock.open("sqlite:/tmp/there-is-no-such-file.db")
    assert "\n" not in missing.value.message
    with pytest.raises(sqlock.Unreachable) as away:
        sqlock.open("postgresql://user:secret@127.0.0.1:1/db", connect_timeout=1, ttl=1)
    assert "secret" not in str(away.value)
    assert isinstance(away.value, ConnectionError)


def test_arguments_are_looked_at(registry, name):
    for wait in (-1, float("nan"), "5", True):
        with pytest.raises((TypeError, ValueError)):
            registry.acquire(name, wait)
    for ttl in (0, -1, float("inf"), "5"):
        with pytest.raises((TypeError, ValueError), match="ttl must be"):
            registry.acquire(name, ttl=ttl)
    with pytest.raises(sqlock.Invalid):
        registry.acquire(name, ttl=0.001)
    for bad in (b"bytes", None, 5, "a\0b", "\ud800"):
        with pytest.raises((TypeError, ValueError)):
            registry.acquire(bad)
    with pytest.raises(sqlock.Invalid):
        registry.acquire("x" * 10_001)
    with pytest.raises(ValueError, match="key_rule must be one of"):
        sqlock.open("sqlite:x", key_rule="new")
    with registry.lock(name + " \N{SNOWMAN}", wait=float("inf")) as lease:
        assert registry.show(lease.name).name == lease.name


def test_a_library_that_is_not_there_is_named():
    with Program("import sqlock", SQLOCK_LIBRARY="/nonexistent/libsqlock.so") as one:
        code, _ = one.ends()
        text = one.complaint()
    assert code == 1
    last = text.splitlines()[-1]
    assert last.startswith("ImportError: sqlock: cannot load the C library")
    assert "/nonexistent/libsqlock.so" in last


def test_a_library_that_is_another_is_refused():
    with Program("import sqlock", SQLOCK_LIBRARY="libc.so.6") as program:
        code, _ = program.ends()
        text = program.complaint()
    assert code == 1
    assert "cannot load the C library libc.so.6" in text.splitlines()[-1]
