"""Locks that several have at a time: readers, permits, by thread and by task."""

import asyncio
import gc
import os
import signal
import threading
import time

import pytest

import sqlock
from conftest import Program, cancel_all, cancel_at_moments, moment, reaper_held_up
from test_locks import WAITS


def wait_until_one_waits(registry, name, *, count=1):
    while registry.show(name).waiters < count:
        time.sleep(0.01)


# ----------------------------------------------------------------- readers --


def test_readers_share_a_lock(registry, other, name):
    with registry.lock(name, 60).shared() as one:
        with registry.lock(name, 60).shared() as two:
            with other.lock(name, 60).shared() as three:
                for lease in (one, two, three):
                    lease.check()
                assert one.token <= two.token < three.token
                assert registry.try_acquire(name) is None
                assert other.try_acquire(name) is None
        assert other.try_acquire(name) is None
    with other.lock(name, 0):
        assert registry.try_acquire(name, shared=True) is None


def test_readers_wait_behind_a_writer(url, registry, other, name):
    came = []

    def take(what, lock):
        with lock:
            came.append(what)

    with sqlock.open(url) as third:
        with registry.lock(name).shared():
            writer = threading.Thread(target=take, args=("writer", other.lock(name)))
            writer.start()
            wait_until_one_waits(other, name)
            # those of `registry` may be in its share for a while yet
            assert third.try_acquire(name, shared=True) is None
            reader = threading.Thread(
                target=take, args=("reader", third.lock(name).shared())
            )
            reader.start()
            wait_until_one_waits(other, name, count=2)
            assert came == []
        writer.join()
        reader.join()
    assert came == ["writer", "reader"]


def test_several_locks_are_shared_in_one_call(registry, other, name):
    names = [name, name + "-2"]
    with registry.lock_many(names, 60).shared() as leases:
        with other.lock_many(names, 60).shared():
            assert registry.try_acquire(name) is None
        leases.check()
    with other.lock_many(names, 0):
        pass


def test_one_reader_is_lost_alone(registry, other, name):
    with registry.lock(name).shared() as stays:
        with pytest.raises(sqlock.LockExpired):
            with other.lock(name, ttl=0.3, auto_renew=False).shared() as lease:
                assert lease.lost.wait(120)
        stays.check()
        assert not stays.lost.is_set()


def test_a_writer_becomes_a_reader(registry, other, name):
    came = []

    def write():
        with other.lock(name) as lease:
            came.append(lease.token)

    with registry.lock(name, 60) as lease:
        token = lease.token
        writer = threading.Thread(target=write)
        writer.start()
        wait_until_one_waits(registry, name)
        lease.downgrade()
        lease.downgrade()
        lease.check()
        assert lease.token == token
        assert came == []  # nobody has written in between
        assert other.try_acquire(name) is None
    writer.join()
    assert came[0] > token
    with registry.lock(name) as lease:
        lease.downgrade()
        with other.lock(name, 60).shared():
            lease.release()
        with pytest.raises(sqlock.NotOwner):
            lease.downgrade()


def test_a_shared_lease_guards_nothing(registry, name):
    with registry.lock(name).shared() as lease:
        with pytest.raises(sqlock.NotSupported), registry.transaction() as tx:
            tx.guard(lease)


# ----------------------------------------------------------------- permits --


def test_so_many_have_a_permit(registry, other, name):
    inside, most, done = 0, 0, 0
    change = threading.Lock()

    def work(used):
        nonlocal inside, most, done
        for _ in range(5):
            with used.semaphore(name, 3) as lease:
                with change:
                    inside += 1
                    most = max(most, inside)
                time.sleep(0.005)
                lease.check()
                with change:
                    inside -= 1
                    done += 1

    threads = [
        threading.Thread(target=work, args=[(registry, other)[i % 2]]) for i in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (most <= 3, done) == (True, 40)
    with registry.semaphore(name, 3), other.semaphore(name, 3):
        with registry.semaphore(name, 3):  # three are to be had
            with pytest.raises(sqlock.Busy):
                other.semaphore(name, 3, 0).__enter__()


def test_several_permits_at_once_are_all_or_none(registry, other, name):
    with registry.semaphore(name, 3, 60, weight=2):
        with pytest.raises(sqlock.Busy):
            other.semaphore(name, 3, 0, weight=2).__enter__()
        with other.semaphore(name, 3, 60):
            pass
    with other.semaphore(name, 3, 60, weight=3):
        pass


def test_the_number_of_permits_is_the_locks(registry, other, name):
    with pytest.raises(sqlock.NotFound):
        registry.set_permits(name, 2)
    with registry.semaphore(name, 1):
        for permits in (0, 1, 2):
            with pytest.raises(sqlock.Busy):
                other.semaphore(name, permits, 0).__enter__()
        with pytest.raises(sqlock.Busy):
            other.lock(name, 0).shared().__enter__()
        other.set_permits(name, 2)
        for permits in (0, 1, 2):
            with other.semaphore(name, permits, 0):
                pass
        with pytest.raises(sqlock.Conflict):
            other.semaphore(name, 3, weight=3).__enter__()
    with registry.lock(name, 60) as lease, pytest.raises(sqlock.Conflict):
        lease.downgrade()
    registry.set_permits(name, 0)
    with registry.lock(name, 60).shared():
        pass


def test_arguments_of_permits_are_looked_at(registry, name):
    for permits, weight in [(3, 0), (-1, 1), (3, -1), (2**32, 1), (2**32 + 3, 1)]:
        with pytest.raises(ValueError):
            registry.semaphore(name, permits, weight=weight).__enter__()
        with pytest.raises(ValueError):
            asyncio.run(registry.asemaphore(name, permits, weight=weight).__aenter__())
    with pytest.raises(sqlock.Invalid):
        registry.semaphore(name, 3, weight=4).__enter__()
    with pytest.raises(sqlock.Invalid):
        registry.acquire(name, permits=3)
    with pytest.raises((TypeError, ValueError)):
        registry.set_permits(name, -1)
    with pytest.raises(TypeError):
        registry.set_permits(5, 1)


def test_a_permit_is_given_back_by_another_thread(registry, other, name):
    lease = registry.acquire(name, shared=True, permits=1)
    thread = threading.Thread(target=lease.release)
    thread.start()
    thread.join()
    with other.semaphore(name, 1, 0):
        pass


def test_a_block_gives_its_permit_back_after_an_exception(registry, other, name):
    with pytest.raises(KeyError):
        with registry.semaphore(name, 1):
            raise KeyError("the block's own")
    with other.semaphore(name, 1, 0):
        pass


def test_a_permit_that_nobody_has_is_given_back(registry, other, name):
    lease = registry.acquire(name, shared=True, permits=1)
    assert other.try_acquire(name, shared=True, permits=1) is None
    with pytest.warns(ResourceWarning, match=name):
        del lease
        gc.collect()
    with other.semaphore(name, 1, 60):
        pass


@pytest.mark.parametrize(
    "wait, held",
    [("lock(names[0]).shared()", "lock(name)"), ("semaphore(names[0], 1)",) * 2],
    ids=["reader", "permit"],
)
def test_ctrl_c_ends_a_wait(registry, url, name, wait, held):
    held = eval("registry." + held.replace("names[0]", "name"))
    source = WAITS.replace("registry.acquire(names[0])", f"registry.{wait}.__enter__()")
    assert wait in source
    with held:
        with Program(source, url, name) as program:
            program.says("waits")
            os.kill(program.process.pid, signal.SIGINT)
            code, rest = program.ends()
            assert (code, rest) == (0, "interrupted\n"), program.complaint()
    with held:
        pass


def test_a_table_of_spring_has_no_shared_locks(tmp_path, name):
    if "sqlite" not in os.environ.get("DRIVERS", "sqlite"):
        pytest.skip("the library has no driver of SQLite")
    url = f"sqlite:{tmp_path}/locks.db"
    sqlock.create_schema(url, layout="spring7")
    with sqlock.open(url) as registry:
        with pytest.raises(sqlock.NotSupported, match="layout"):
            registry.lock(name, 0).shared().__enter__()
        with registry.lock(name) as lease, pytest.raises(sqlock.NotSupported):
            lease.downgrade()


# ----------------------------------------------------------------- asyncio --


def test_tasks_share_a_lock(registry, other, name):
    async def main():
        together = asyncio.Event()
        inside = 0

        async def read():
            nonlocal inside
            async with registry.alock(name).shared() as lease:
                inside += 1
                if inside == 3:
                    together.set()
                await together.wait()
                lease.check()

        await asyncio.gather(read(), read(), read())
        async with registry.alock_many([name, name + "-2"]).shared():
            assert other.try_acquire(name) is None
            async with registry.alock(name, 60).shared():
                pass
        async with registry.alock(name) as lease:
            await asyncio.to_thread(lease.downgrade)
            async with registry.alock(name, 60).shared():
                pass

    asyncio.run(main())
    other.acquire(name, 0).release()


def test_so_many_tasks_have_a_permit(registry, other, name):
    inside, most = 0, 0

    async def work(i):
        nonlocal inside, most
        used = (registry, other)[i % 2]
        weight = 1 + i % 2
        async with used.asemaphore(name, 3, weight=weight) as lease:
            inside += weight
            most = max(most, inside)
            await moment(200)
            lease.check()
            inside -= weight

    async def main():
        await asyncio.gather(*[work(i) for i in range(30)])

    asyncio.run(main())
    assert most <= 3
    with registry.semaphore(name, 3, 0, weight=3):
        pass


def test_a_cancelled_wait_for_a_permit_leaves_none(registry, other, name):
    async def wait():
        async with registry.asemaphore(name, 1):
            pass

    async def main():
        held = await registry.aacquire(name, shared=True, permits=1)
        tasks = [asyncio.create_task(wait()) for _ in range(5)]
        await asyncio.sleep(0)
        with reaper_held_up(registry):
            await cancel_all(tasks)
            await held.arelease()
            # Nobody else is left to get it, though tickets end a little later.
            async with registry.asemaphore(name, 1, 60):
                pass

    asyncio.run(main())
    with other.semaphore(name, 1, 60):
        pass


def test_whenever_a_task_is_cancelled_no_permit_is_left(registry, other, name):
    async def hold(enter):
        async with registry.asemaphore(name, 1):
            enter()
            await moment(500)

    asyncio.run(cancel_at_moments(hold, 40))
    # One that was left is renewed for ever.
    with other.semaphore(name, 1, 60):
        pass
