"""A lock in several registries: by thread, by task, and what closes them."""

import asyncio
import contextlib
import gc
import os
import sqlite3
import threading
import time
import weakref

import pytest

import sqlock
from conftest import Program, cancel_at_moments, lose, reaper_held_up
from test_shared import wait_until_one_waits


def open_all(urls, **options):
    stack = contextlib.ExitStack()
    return [stack.enter_context(sqlock.open(one, **options)) for one in urls], stack


@pytest.fixture
def urls(tmp_path):
    """Three files of SQLite."""
    found = [f"sqlite:{tmp_path}/{i}.db" for i in range(3)]
    for one in found:
        sqlock.create_schema(one)
    return found


@pytest.fixture(params=["files", "servers"])
def places(request, urls):
    """Three files, or two servers and a file."""
    if request.param == "servers":
        servers = [
            os.environ.get(f"SQLOCK_TEST_{one}_URL") for one in ("POSTGRES", "MYSQL")
        ]
        built = os.environ.get("DRIVERS", "sqlite postgres mysql").split()
        if not all(servers) or not {"postgres", "mysql"} <= set(built):
            pytest.skip("no two servers here")
        urls = [*servers, urls[2]]
        for one in urls:
            sqlock.create_schema(one)
    return urls


@pytest.fixture
def three(places):
    registries, stack = open_all(places, statement_timeout=20, connect_timeout=20)
    with stack:
        yield registries


@pytest.fixture
def others(places):
    """Of another process, as far as the databases can tell."""
    registries, stack = open_all(places, statement_timeout=20, connect_timeout=20)
    with stack:
        yield registries


@contextlib.contextmanager
def down(url):
    """Let a file answer nobody."""
    with contextlib.closing(
        sqlite3.connect(url.partition(":")[2], isolation_level=None, timeout=60)
    ) as connection:
        connection.execute("BEGIN EXCLUSIVE")
        yield


def assert_free(registries, name):
    for one in registries:
        one.acquire(name, 60).release()


# ----------------------------------------------------------------- threads --


def test_a_quorum_excludes_another(three, others, name):
    with sqlock.quorum(three, name, 60) as ours:
        assert ours.name == name and ours.held and ours.remaining > 0
        granted = [token for token in ours.tokens if token is not None]
        assert len(granted) >= 2 and min(granted) > 0
        came = [one is None for one in ours.results]
        held_in = ours.held_in  # one that is slow may come later
        assert all(held >= one for one, held in zip(came, held_in))
        assert all(ours.tokens[place] for place in range(3) if held_in[place])
        ours.check()
        with pytest.raises(sqlock.Busy) as came:
            sqlock.acquire_quorum(others, name, 0)
        assert sum(isinstance(one, sqlock.Busy) for one in came.value.results) >= 2
        with pytest.raises(sqlock.Timeout):
            sqlock.acquire_quorum(others, name, 0.2)
    assert not ours.held and ours.remaining == 0 and ours.held_in == [False] * 3
    assert set(granted) <= set(ours.tokens)  # of writes that are under way
    with pytest.raises(sqlock.NotOwner):
        ours.check()
    with pytest.raises(sqlock.NotOwner):
        ours.release()
    with sqlock.quorum(reversed(others), name, 60):
        pass
    assert_free(three, name)


def test_a_majority_is_enough_and_all_is_all(three, others, name):
    with others[1].lock(name, 0):
        with sqlock.quorum(three, name, 60) as most:
            assert most.held_in == [True, False, True]
            assert most.tokens[1] is None and most.results[1] is not None
        assert isinstance(most.results[1], sqlock.NotOwner)
        assert (most.results[0], most.results[2]) == (None, None)
        with pytest.raises(sqlock.Busy) as came:
            sqlock.acquire_quorum(three, name, 0, all=True)
        assert isinstance(came.value.results[1], sqlock.Busy)
        assert_free([three[0], three[2]], name)
    with sqlock.quorum(three[1:], name, 60, all=True) as both:
        assert both.held_in == [True, True]
        with pytest.raises(sqlock.Busy):
            others[2].acquire(name, 0)


def test_readers_share_a_quorum(three, others, name):
    with sqlock.quorum(three, name, 60).shared() as one:
        with sqlock.acquire_quorum(others, name, 60, shared=True) as two:
            assert one.held and two.held
            with pytest.raises(sqlock.Busy):
                sqlock.acquire_quorum(others, name, 0)


def test_one_file_is_down(urls, name):
    registries, stack = open_all(urls, statement_timeout=1, connect_timeout=1)
    with stack, down(urls[0]):
        with sqlock.quorum(registries, name, 60) as held:
            assert held.held_in == [False, True, True]
        assert isinstance(held.results[0], sqlock.NotOwner)
        with down(urls[1]):
            with pytest.raises(sqlock.Error) as came:
                sqlock.acquire_quorum(registries, name, 0)
            assert None not in came.value.results[:2]


def test_what_is_no_quorum_is_refused(three, others, name):
    for wrong in (three[:2], three[:1], [], [*three[:2], three[0]], three + others):
        with pytest.raises(ValueError):
            sqlock.acquire_quorum(wrong, name, 0)
    with pytest.raises(ValueError):
        sqlock.acquire_quorum(three[:1], name, 0, all=True)
    with pytest.raises(sqlock.Invalid, match="lead to one server"):
        sqlock.acquire_quorum([three[0], three[1], others[1]], name, 0)
    with pytest.raises(TypeError):
        sqlock.acquire_quorum([*three[:2], "sqlite:x.db"], name, 0)
    with pytest.raises(TypeError):
        sqlock.acquire_quorum(three, 5, 0)
    with pytest.raises(ValueError):
        sqlock.acquire_quorum(three, name, -1)
    with pytest.raises(sqlock.Invalid):
        sqlock.acquire_quorum(three, name, 0, ttl=0.001)
    for one in three:
        one.close()
        assert not one._core.quorums


def test_a_loss_is_told_once(three, others, name):
    told = []
    came = threading.Event()

    def on_lost(quorum, why):
        told.append((quorum, why))
        came.set()

    with pytest.raises(sqlock.LockLost):
        with sqlock.quorum(three, name, 60, all=True, on_lost=on_lost) as held:
            lose(others[1], name)
            three_knows = held.lost.wait(60)
            assert three_knows and came.wait(60)
            with pytest.raises(sqlock.LockLost):
                held.check()
            lose(others[0], name)
            while held.held_in[0]:
                time.sleep(0.01)
    for one in three:
        one.close()  # after the last callback
    for thread in threading.enumerate():
        if thread.name == f"sqlock lost {name}":
            thread.join()
    assert [one for one, _ in told] == [held]
    assert isinstance(told[0][1], sqlock.LockLost)
    assert_free(others, name)


def test_a_quorum_is_renewed(three, others, name):
    def remaining():
        return [one.show(name).remaining for one in others]

    with sqlock.quorum(three, name, 60, all=True, auto_renew=False, ttl=30) as held:
        assert max(remaining()) <= 30
        held.renew(100)
        assert held.remaining > 70 and min(remaining()) > 70
        held.renew()
        assert held.remaining > 70 and min(remaining()) > 70
        with pytest.raises(ValueError, match="ttl must be"):
            held.renew(0)
        lose(others[1], name)
        with pytest.raises(sqlock.LockLost):
            held.renew()
        with pytest.raises(sqlock.LockLost):
            held.release()
    with pytest.raises(sqlock.NotOwner):
        held.renew()


def test_a_majority_is_renewed(urls, name):
    registries, stack = open_all(urls, statement_timeout=1, connect_timeout=1)
    with stack, sqlock.open(urls[1]) as other, other.lock(name):
        with sqlock.quorum(registries, name, 60, auto_renew=False, ttl=100) as held:
            held.renew()
            with down(urls[0]):
                with pytest.raises(sqlock.Error) as came:
                    held.renew()
                assert not isinstance(came.value, sqlock.LockLost)
                one, two, three = came.value.results
                assert came.value is one and isinstance(two, sqlock.NotOwner)
                assert three is None
            assert held.held
            held.renew()


def test_a_lost_quorum_is_not_renewed(urls, name):
    registries, stack = open_all(urls, statement_timeout=1, connect_timeout=1)
    with stack, sqlock.open(urls[1]) as one, sqlock.open(urls[2]) as other:
        with pytest.raises(sqlock.LockLost):  # of the release
            with sqlock.quorum(registries, name, 60, auto_renew=False) as held:
                lose(one, name)
                lose(other, name)
                # the first one's answer is another error
                with down(urls[0]), pytest.raises(sqlock.LockLost):
                    held.renew()


def test_a_transaction_guards_the_lock_of_its_registry(three, others, name):
    with sqlock.quorum(three, name, 60, all=True) as held:
        with three[2].transaction() as tx:
            tx.guard(held)
            with pytest.raises(sqlock.InUse):
                held.release()
            assert held.held_in == [False, False, True]
            with pytest.raises(sqlock.InUse):
                three[2].close()
    assert_free(three, name)
    with sqlock.quorum(three[:2], name, 60, all=True) as held:
        with pytest.raises(ValueError, match="no lock in this registry"):
            with three[2].transaction() as tx:
                tx.guard(held)


# ----------------------------------------------------------------- its end --


def test_a_registry_of_a_quorum_is_closed_after_it(three, others, name):
    held = sqlock.acquire_quorum(three, name, 60)
    for one in three:
        with pytest.raises(sqlock.InUse, match=f"{name!r}.*release it first"):
            one.close()
    held.check()
    held.release()
    for one in three:
        one.close()
    assert_free(others, name)
    with pytest.raises(sqlock.Closed):
        sqlock.acquire_quorum(three, name, 0)


def test_a_quorum_that_comes_while_a_registry_closes_keeps_it_open(
    three, name, monkeypatch
):
    core = three[0]._core
    ends, kept = core._end_quorums, []

    def ends_and_one_comes():
        ends()
        kept.append(sqlock.acquire_quorum(three, name, 60))

    monkeypatch.setattr(core, "_end_quorums", ends_and_one_comes)
    with pytest.raises(sqlock.InUse, match="release it first"):
        three[0].close()
    monkeypatch.undo()
    kept[0].check()
    kept[0].release()


def test_a_block_of_registries_raises_what_it_raised(urls, name):
    kept = []
    with pytest.raises(KeyError):
        with sqlock.open(urls[0]) as one, sqlock.open(urls[1]) as two:
            kept.append(sqlock.acquire_quorum([one, two], name, 0, all=True))
            raise KeyError(name)
    kept[0].release()
    one.close()
    two.close()


def test_a_refusal_keeps_nothing_of_its_caller(three, others, name):
    class Own:
        pass

    def ask(owns):
        own = Own()
        owns.append(weakref.ref(own))
        with pytest.raises(sqlock.Busy):
            if len(owns) == 1:
                sqlock.acquire_quorum(three, name, 0)
            else:
                three[0].acquire_many([name], 0)

    owns = []
    with sqlock.quorum(others, name, 60):
        gc.collect()
        gc.disable()
        try:
            ask(owns)
            ask(owns)
            assert [own() for own in owns] == [None, None]
        finally:
            gc.enable()


def test_a_registry_that_closes_ends_the_wait(three, others, name):
    with sqlock.quorum(others, name, 60, all=True):
        came = []

        def wait():
            try:
                sqlock.acquire_quorum(three, name)
            except sqlock.Error as error:
                came.append(error)

        waiter = threading.Thread(target=wait)
        waiter.start()
        wait_until_one_waits(others[0], name)
        three[2].close()
        waiter.join(60)
        assert isinstance(came[0], (sqlock.Cancelled, sqlock.Closed))
    assert_free(three[:2], name)


def test_a_quorum_that_is_dropped_is_given_back(three, others, name):
    held = sqlock.acquire_quorum(three, name, 60)
    with pytest.warns(ResourceWarning, match="quorum of .* was not released"):
        del held
        gc.collect()
    assert_free(others, name)


def test_a_dropped_quorum_holds_nothing_else_up(urls, name):
    registries, stack = open_all(urls, statement_timeout=60, connect_timeout=60)
    others, others_stack = open_all(urls)
    with others_stack, stack:
        held = sqlock.acquire_quorum(registries, name, 60, all=True)
        lease = registries[0].acquire(name + "-lease")
        with down(urls[2]):
            with pytest.warns(ResourceWarning):
                del held
                gc.collect()
                del lease
                gc.collect()
            others[0].acquire(name + "-lease", 50).release()
            assert registries[0]._core.quorums  # its end waits for the file
        assert_free(others, name)


def test_a_registry_closes_after_a_quorum_was_dropped(three, others, name):
    held = sqlock.acquire_quorum(three, name, 60, all=True)
    with reaper_held_up(three[0]):
        with pytest.warns(ResourceWarning):
            del held
            gc.collect()
        three[2].close()
    assert_free(others, name)


def test_all_that_is_dropped_at_once_is_ended(urls, name):
    registries = [sqlock.open(one) for one in urls]
    held = sqlock.acquire_quorum(registries, name, 60)
    registries.append(held)
    held.cycle = registries
    cores = [one._core for one in registries[:3]]
    until = time.monotonic() + 60
    with pytest.warns(ResourceWarning):
        del registries, held
        # A callback that runs meanwhile in another thread has a reference.
        while not all(core.closed for core in cores) and time.monotonic() < until:
            gc.collect()
            time.sleep(0.01)
    for core in cores:
        core._reaper.join(60)
        assert core.closed and not core.quorums
    others, stack = open_all(urls)
    with stack:
        assert_free(others, name)


def test_a_program_that_ends_gives_it_back(urls, name):
    source = """
import sys, sqlock
name, *urls = sys.argv[1:]
registries = [sqlock.open(one) for one in urls]
held = sqlock.acquire_quorum(registries, name, 60, all=True, ttl=600)
print("held", flush=True)
"""
    with Program(source, name, *urls) as program:
        program.says("held")
        assert program.ends() == (0, ""), program.complaint()
    registries, stack = open_all(urls)
    with stack:
        for one in registries:
            one.acquire(name, 0).release()


def test_a_child_process_has_no_quorum(three, name):
    with sqlock.quorum(three, name, 60) as held:
        child = os.fork()
        if child == 0:
            code = 1
            try:
                uses = (
                    lambda: sqlock.acquire_quorum(three, name + "-child", 0),
                    held.check,
                    held.release,
                    three[1].close,
                )
                for i, use in enumerate(uses):
                    code = 10 + i
                    try:
                        use()
                    except sqlock.UsedAfterFork:
                        continue
                    os._exit(code)
                code = 2 if held.held or held.remaining or any(held.held_in) else 0
                del held
            finally:
                os._exit(code)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        held.check()


def test_ctrl_c_ends_a_wait_with_nothing_held(urls, name):
    source = """
import sys, sqlock
name, *urls = sys.argv[1:]
registries = [sqlock.open(one) for one in urls]
print("waits", flush=True)
try:
    sqlock.acquire_quorum(registries, name)
except KeyboardInterrupt:
    for one in registries:
        one.close()
    print("closed", flush=True)
"""
    registries, stack = open_all(urls)
    with stack:
        with sqlock.quorum(registries, name, 60, all=True):
            with Program(source, name, *urls) as program:
                program.says("waits")
                wait_until_one_waits(registries[0], name)
                program.process.send_signal(2)
                program.says("closed")
                assert program.ends() == (0, ""), program.complaint()
        assert_free(registries, name)


# ----------------------------------------------------------------- asyncio --


def test_tasks_exclude_each_other(three, others, name):
    inside = []

    async def turn():
        async with sqlock.aquorum(three, name, 120) as held:
            assert held.held and not inside
            inside.append(1)
            await asyncio.sleep(0.01)
            inside.pop()

    async def run():
        await asyncio.gather(*[turn() for _ in range(3)])
        held = await sqlock.aacquire_quorum(three, name, 60, shared=True)
        other = await sqlock.aacquire_quorum(others, name, 60, shared=True)
        await other.arelease()
        await held.arelease()
        async with sqlock.aquorum(three, name, 60).shared():
            pass

    asyncio.run(run())
    assert_free(three, name)


def test_a_task_that_is_cancelled_holds_nothing(three, others, name):
    async def take(enter):
        async with sqlock.aquorum(three, name, 60):
            enter()
            await asyncio.sleep(60)

    async def run():
        await cancel_at_moments(take, 12)
        with sqlock.quorum(others, name, 60, all=True):
            task = asyncio.create_task(take(pytest.fail))
            await asyncio.to_thread(wait_until_one_waits, others[0], name)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task

    asyncio.run(run())
    assert_free(others, name)


def test_a_loss_cancels_what_the_block_awaits(three, others, name):
    async def run():
        with pytest.raises(sqlock.LockLost):
            async with sqlock.aquorum(three, name, 60, all=True):
                lose(others[2], name)
                await asyncio.sleep(600)

    asyncio.run(run())
    assert_free(three, name)
