"""Locks by task of asyncio: exclusion, cancellation, losses."""

import asyncio
import sys

import pytest

import sqlock
from conftest import cancel_all, cancel_at_moments, lose, moment, reaper_held_up


def test_tasks_never_overlap(registry, name, counter):
    inside, most = 0, 0

    async def work():
        nonlocal inside, most
        async with registry.alock(name) as lease:
            inside += 1
            most = max(most, inside)
            n = await asyncio.to_thread(counter.read)
            lease.check()
            await asyncio.to_thread(counter.set, n + 1)
            inside -= 1

    async def main():
        await asyncio.gather(*[work() for _ in range(100)])

    asyncio.run(main())
    assert most == 1
    assert counter.read() == 100


def test_a_task_waits_for_its_turn(registry, other, name):
    async def main():
        async with registry.alock(name, wait=5):
            with pytest.raises(sqlock.Busy):
                await registry.aacquire(name, 0)
            with pytest.raises(sqlock.Timeout):
                async with other.alock(name, wait=0.05):
                    pass
            assert other.try_acquire(name) is None
        lease = await registry.aacquire(name)
        lease.check()
        await lease.arelease()
        with pytest.raises(sqlock.NotOwner):
            await lease.arelease()

    asyncio.run(main())
    other.acquire(name, 0).release()


def test_a_cancelled_wait_leaves_no_lock(registry, other, name):
    async def wait():
        async with registry.alock(name):
            pass

    async def main():
        held = await registry.aacquire(name)
        tasks = [asyncio.create_task(wait()) for _ in range(5)]
        await asyncio.sleep(0)
        with reaper_held_up(registry):
            await cancel_all(tasks)
            await held.arelease()
            # Nobody else is left to get it.
            await (await registry.aacquire(name, 0)).arelease()

    asyncio.run(main())
    other.acquire(name, 0).release()


def test_whenever_a_task_is_cancelled_no_lock_is_left(registry, other, name):
    """At every stage: before, while and after it is granted or released."""

    async def hold(enter):
        async with registry.alock(name):
            enter()
            await moment(500)

    asyncio.run(cancel_at_moments(hold, 60))
    # One that was left is renewed for ever.
    other.acquire(name, 60).release()


def test_a_loss_ends_what_a_block_awaits(registry, other, name):
    async def main():
        with pytest.raises(sqlock.LockLost):
            async with registry.alock(name, ttl=2):
                await asyncio.to_thread(lose, other, name)
                await asyncio.sleep(3600)
        # The task goes on as if it had not been cancelled.
        await asyncio.sleep(0)
        async with registry.alock(name, wait=60):
            pass

    asyncio.run(main())


@pytest.mark.skipif(sys.version_info < (3, 11), reason="tasks do not count")
def test_a_loss_is_told_in_a_task_that_was_cancelled_before(registry, other, name):
    async def main():
        asyncio.current_task().cancel()
        with pytest.raises(asyncio.CancelledError):
            await asyncio.sleep(0)  # and goes on
        with pytest.raises(sqlock.LockLost):
            async with registry.alock(name, wait=60, ttl=2):
                await asyncio.to_thread(lose, other, name)
                await asyncio.sleep(3600)
        assert asyncio.current_task().cancelling() == 1

    asyncio.run(main())


def test_a_loss_may_leave_the_block_alone(registry, other, name):
    async def main():
        reached = False
        with pytest.raises(sqlock.LockLost):
            async with registry.alock(name, ttl=2, cancel_on_loss=False) as lease:
                lose(other, name)
                await asyncio.to_thread(lease.lost.wait, 120)
                await asyncio.sleep(0)
                with pytest.raises(sqlock.LockLost):
                    lease.check()
                reached = True
        assert reached

    asyncio.run(main())


def test_a_loss_at_the_end_of_a_block_raises(registry, other, name):
    async def main():
        with pytest.raises(sqlock.LockLost):
            async with registry.alock(name, ttl=2) as lease:
                lose(other, name)
                assert lease.lost.wait(120)  # blocks the loop
        await asyncio.sleep(0)

    asyncio.run(main())


def test_a_loss_does_not_hide_what_the_block_raised(registry, other, name):
    async def main():
        with pytest.raises(ZeroDivisionError):
            async with registry.alock(name, ttl=2) as lease:
                lose(other, name)
                assert lease.lost.wait(120)  # blocks the loop
                raise ZeroDivisionError
        await asyncio.sleep(0)

    asyncio.run(main())


def test_a_loss_that_a_release_in_the_block_tells_raises(registry, other, name):
    async def main():
        with pytest.raises(sqlock.LockLost):
            async with registry.alock(name, ttl=2) as lease:
                lose(other, name)
                assert lease.lost.wait(120)  # blocks the loop
                with pytest.raises(sqlock.LockLost):
                    await lease.arelease()
                await asyncio.sleep(0.1)

    asyncio.run(main())


def test_a_timeout_from_outside_is_no_loss(registry, other, name):
    async def body():
        async with registry.alock(name):
            await asyncio.sleep(3600)

    async def main():
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(body(), 0.2)

    asyncio.run(main())
    other.acquire(name, 60).release()


def test_a_registry_that_is_closed_ends_waits(url, name):
    async def main():
        registry = sqlock.open(url)
        held = await registry.aacquire(name)
        waits = asyncio.create_task(registry.aacquire(name))
        await asyncio.sleep(0.05)
        await asyncio.to_thread(registry.close)
        with pytest.raises((sqlock.Closed, sqlock.Cancelled)):
            await waits
        assert not held.held

    asyncio.run(main())


def test_a_registry_serves_many_loops(registry, name):
    async def once():
        async with registry.alock(name, wait=60) as lease:
            return lease.token

    tokens = [asyncio.run(once()) for _ in range(3)]
    assert tokens == sorted(set(tokens))


def test_one_for_each_block(registry, name):
    async def main():
        lock = registry.alock(name)
        async with lock:
            with pytest.raises(RuntimeError):
                async with lock:
                    pass

    asyncio.run(main())
