"""Who waits for a lock of his own is told; greenlets wait without stopping the
loop that they run in."""

import asyncio
import contextvars
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

import sqlock
from conftest import Program
from sqlock._actor import caller

ALONE = {}
READER = {"shared": True}
PERMIT = {"shared": True, "permits": 1}


def told(take):
    with pytest.raises(sqlock.Deadlock) as error:
        take()
    return str(error.value)


# ------------------------------------------------------------------ threads --


# Readers share it, and have no number of permits.
@pytest.mark.parametrize(
    "first, mode",
    [
        (ALONE, ALONE),
        (ALONE, READER),
        (READER, ALONE),
        (PERMIT, ALONE),
        (PERMIT, PERMIT),
    ],
)
def test_a_thread_that_waits_for_itself_is_told(registry, name, first, mode):
    with registry.acquire(name, **first) as lease:
        told(lambda: registry.acquire(name, 60, **mode))
        told(lambda: registry.acquire(name, **mode))
        why = told(lambda: registry.acquire_many([name, name + "2"], 60, **mode))
        assert why.count(name) == 1
        assert registry.try_acquire(name, **mode) is None
        lease.check()
    registry.acquire(name, 60).release()


def test_a_block_within_itself_is_told(registry, name):
    with registry.lock_many([name, name + "2"]):
        with pytest.raises(sqlock.Deadlock):
            with registry.lock(name):
                pass
    with registry.semaphore(name, 2), registry.semaphore(name, 2):
        with pytest.raises(sqlock.Deadlock):
            with registry.semaphore(name, 2):
                pass


def test_a_leader_that_campaigns_against_itself_is_told(registry, name):
    with registry.leader(name):
        told(registry.leader(name).campaign)


def test_of_threads_that_wait_crosswise_one_is_told(registry, name):
    both = threading.Barrier(2)
    came = []

    def take(first, second):
        with registry.lock(first):
            both.wait(60)
            try:
                registry.acquire(second, 60).release()
                came.append("taken")
            except sqlock.Deadlock:
                came.append("told")

    other = threading.Thread(target=take, args=(name, name + "2"))
    other.start()
    take(name + "2", name)
    other.join()
    assert came == ["told", "taken"]


def test_another_thread_waits(registry, name):
    lease = registry.acquire(name)
    came = []

    def take():
        registry.acquire(name, 60).release()
        came.append("taken")

    thread = threading.Thread(target=take)
    thread.start()
    thread.join(0.1)
    assert thread.is_alive()
    lease.release()
    thread.join()
    assert came == ["taken"]


def test_what_was_given_away_is_waited_for(registry, name):
    """As a thread does that gives out permits."""
    lease = registry.acquire(name, shared=True, permits=1)
    lease.detach()
    thread = threading.Thread(target=lease.release)
    taken = []
    waits = threading.Thread(
        target=lambda: taken.append(registry.acquire(name, 60, shared=True, permits=1))
    )
    waits.start()
    with pytest.raises(sqlock.Timeout):
        registry.acquire(name, 0.1, shared=True, permits=1)
    thread.start()
    waits.join()
    thread.join()
    taken[0].release()


def test_a_pool_s_thread_is_nobody(registry, name):
    """It takes a lock for one, in a copy of its context, then for another."""
    with ThreadPoolExecutor(1) as pool:

        def take(*wait):
            return pool.submit(
                contextvars.copy_context().run, registry.acquire, name, *wait
            ).result()

        lease = take()
        with pytest.raises(sqlock.Timeout):
            take(0.1)
        lease.release()


def test_jobs_of_a_pool_s_thread_are_one(registry, name):
    """In its own context: one that would end the lease could not begin."""
    with ThreadPoolExecutor(1) as pool:
        lease = pool.submit(registry.acquire, name).result()
        told(lambda: pool.submit(registry.acquire, name, 60).result())
        lease.detach()
        with pytest.raises(sqlock.Timeout):
            pool.submit(registry.acquire, name, 0.1).result()
        lease.release()


def test_numbers_are_apart_from_those_of_others():
    """Libraries in C give theirs from 1 on, C++ from 2 ** 62."""
    seen = []
    for _ in range(3):
        thread = threading.Thread(target=lambda: seen.append(caller()))
        thread.start()
        thread.join()
    assert len(set(seen)) == 3
    assert all(1 << 61 <= number < 1 << 62 for number in seen)


# -------------------------------------------------------------------- tasks --


@pytest.mark.parametrize("mode", [ALONE, PERMIT])
def test_a_task_that_waits_for_itself_is_told(registry, name, mode):
    async def main():
        lease = await registry.aacquire(name, 60, **mode)
        with pytest.raises(sqlock.Deadlock):
            await registry.aacquire(name, 60, **mode)
        with pytest.raises(sqlock.Deadlock):
            await registry.aacquire_many([name, name + "2"], 60, **mode)
        await lease.arelease()
        async with registry.alock(name, 60):
            with pytest.raises(sqlock.Deadlock):
                async with registry.alock(name):
                    pass

    asyncio.run(main())


def test_another_task_waits(registry, name):
    async def other():
        async with registry.alock(name, 60):
            pass

    async def main():
        async with registry.alock(name):
            task = asyncio.create_task(other())
            await asyncio.sleep(0.1)
            assert not task.done()
        await task

    asyncio.run(main())


def test_a_wait_that_stops_the_loop_of_the_holder_is_told(registry, name):
    async def other():
        told(lambda: registry.acquire(name, 60))
        told(lambda: registry.acquire_many([name], 60))
        assert registry.try_acquire(name) is None

    async def main():
        async with registry.alock(name):
            await asyncio.create_task(other())

    asyncio.run(main())


# ---------------------------------------------------------------- greenlets --

RUNTIMES = {
    "gevent": """
import gevent.monkey
gevent.monkey.patch_all()
from gevent import sleep, spawn
join = gevent.joinall
""",
    "gevent unpatched": """
import gevent
from gevent import sleep, spawn
join = gevent.joinall
""",
    "eventlet": """
import eventlet
eventlet.monkey_patch()
from eventlet import sleep, spawn
join = lambda all: [one.wait() for one in all]
""",
}
GREENLETS = """
import sys
import sqlock

registry = sqlock.open(sys.argv[1])
name = sys.argv[2]
came = []
ticks = []

def hold():
    with registry.lock(name, 60):
        came.append("held")
        while not ticks:
            sleep(0.01)
        sleep(0.3)
        came.append("released")

def wait(take):
    sleep(0.1)
    with take():
        came.append("taken")
    try:
        with registry.lock(name, 60), registry.lock(name, 60):
            pass
    except sqlock.Deadlock:
        came.append("told")

def tick():
    for i in range(5):
        sleep(0.01)
    ticks.append(1)

for take in (
    lambda: registry.lock(name, 60),
    lambda: registry.lock_many([name, name + "2"], 60),
    lambda: registry.semaphore(name, 1, 60),
):
    del came[:], ticks[:]
    join([spawn(hold), spawn(wait, take), spawn(tick)])
    print(*came, flush=True)
registry.close()
print("closed", flush=True)
"""


@pytest.mark.parametrize("runtime", RUNTIMES)
def test_a_greenlet_waits_without_stopping_the_loop(url, name, runtime):
    pytest.importorskip(runtime.split()[0])
    with Program(RUNTIMES[runtime] + GREENLETS, url, name) as program:
        for _ in range(3):
            program.says("held released taken told")
        program.says("closed")
        assert program.ends() == (0, "")


def test_a_wait_in_a_loop_is_for_others_than_its_readers(registry, url, name):
    async def main():
        async with registry.alock(name):
            registry.acquire(name + "-2", 60).release()
            with sqlock.open(url, region=name) as elsewhere:
                elsewhere.acquire(name, 60).release()
        reader = await registry.aacquire(name, shared=True)
        registry.acquire(name, 60, shared=True).release()
        await reader.arelease()
        writer = await registry.aacquire(name)
        writer.downgrade()
        registry.acquire(name, 60, shared=True).release()
        await writer.arelease()

    asyncio.run(main())


def test_a_wait_in_a_loop_may_be_for_what_another_thread_releases(registry, name):
    async def main():
        lease = await registry.aacquire(name)
        lease.detach()
        threading.Timer(0.2, lease.release).start()
        registry.acquire(name, 60).release()

    asyncio.run(main())
