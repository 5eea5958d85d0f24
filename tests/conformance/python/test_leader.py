"""Leaders and their texts, by thread and by task; what a row tells."""

import asyncio
import os
import signal
import threading

import pytest

import sqlock
from conftest import Program, cancel_after_moment, cancel_at_moments, lose, moment
from test_locks import WAITS
from test_shared import wait_until_one_waits


def until_observing(registry):
    """Wait until somebody observes in this registry."""
    while not registry._core.observing:
        threading.Event().wait(0.01)


# ----------------------------------------------------------------- threads --


def test_who_has_released_the_lease_can_campaign_again(registry, name):
    leader = registry.leader(name, 60)
    leader.campaign().release()
    assert not leader.leads
    leader.campaign()
    leader.resign()


def test_a_task_that_campaigns_again_leads_no_longer_than_its_block(
    registry, other, name
):
    async def lead_twice():
        async with registry.aleader(name, 60) as leader:
            await leader.resign()
            lease = await leader.campaign()
        return lease

    assert not asyncio.run(lead_twice()).held
    other.acquire(name, wait=0).release()


def test_the_loss_of_a_second_lease_ends_the_block_of_its_leader(registry, other, name):
    async def main():
        with pytest.raises(sqlock.LockLost):
            async with registry.aleader(name, 60, ttl=2) as leader:
                await leader.resign()
                await leader.campaign()
                lose(other, name)
                await asyncio.sleep(120)

    asyncio.run(asyncio.wait_for(main(), 60))


def test_a_second_lease_of_a_leader_does_not_hide_what_its_block_raised(
    registry, other, name
):
    async def main():
        async with registry.aleader(name, 60, ttl=2) as leader:
            await leader.resign()
            lease = await leader.campaign()
            lose(other, name)
            assert lease.lost.wait(120)  # blocks the loop
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        asyncio.run(main())


def test_a_leader_publishes_a_text(registry, other, name):
    with registry.leader(name, 60) as leader:
        assert (leader.name, leader.leads) == (name, True)
        assert leader.info().text is None
        for text in ["10.0.0.7:8080", "", "ä€\n", "x" * 1024]:
            leader.publish(text)
            assert other.leader(name).info().text == text
            assert other.show(name).text == text
        for wrong in ["x" * 1025, "ä" * 513]:
            with pytest.raises(sqlock.Invalid, match="1024"):
                leader.publish(wrong)
        with pytest.raises(TypeError):
            leader.publish(None)
        with pytest.raises(ValueError):
            leader.publish("a\0b")
        row = other.leader(name).info()
        assert (row.token, row.client_id, row.text) == (
            leader.lease.token,
            leader.lease.client_id,
            "x" * 1024,
        )
        with pytest.raises(sqlock.Busy):
            other.leader(name, 0).campaign()
        leader.check()
    assert not leader.leads
    assert other.leader(name).info() is None
    with pytest.raises(sqlock.NotOwner):
        leader.publish("late")
    with pytest.raises(sqlock.NotOwner):
        leader.check()
    with pytest.raises(sqlock.NotOwner):
        leader.resign()


def test_a_campaign_without_a_block(registry, other, name):
    first, second = registry.leader(name, 60), other.leader(name)
    lease = first.campaign()
    assert first.lease is lease
    with pytest.raises(RuntimeError):
        first.campaign()
    came = []
    thread = threading.Thread(target=lambda: came.append(second.campaign()))
    thread.start()
    wait_until_one_waits(registry, name)
    first.publish("first")
    assert came == []
    late = other.leader(name, 0)
    for _ in range(2):  # whoever has lost may campaign again
        with pytest.raises(sqlock.Busy):
            late.campaign()
    first.resign()
    with pytest.raises(sqlock.NotOwner):
        first.lease
    thread.join()
    assert came[0].token > lease.token and second.leads and not first.leads
    assert first.info().token == came[0].token
    assert first.info().text is None  # the text went with its leader
    second.resign()
    with first:
        assert first.leads


def test_changes_are_observed(registry, other, name):
    one, seen = registry.leader(name, 60), other.leader(name)
    for wait in (0, 0.01):
        with pytest.raises(sqlock.Timeout):
            seen.observe(wait)
    token = one.campaign().token
    assert seen.observe(60).token == token
    one.publish("text")
    assert seen.observe(60).text == "text"
    one.publish("text")
    one.lease.renew()
    with pytest.raises(sqlock.Timeout):
        seen.observe(0.01)
    one.resign()
    assert seen.observe(60) is None
    with pytest.raises(sqlock.Timeout):
        seen.observe(0)


def test_a_change_is_observed_from_another_thread(registry, other, name):
    seen, came = other.leader(name), []
    thread = threading.Thread(target=lambda: came.append(seen.observe(60)))
    thread.start()
    until_observing(other)
    with pytest.raises(RuntimeError):
        seen.observe(0)
    with registry.leader(name, 60) as leader:
        thread.join()
        assert came[0].token == leader.lease.token


def test_a_leader_is_told_that_it_leads_no_more(registry, other, name):
    told = threading.Event()
    with pytest.raises(sqlock.LockLost):
        with registry.leader(name, 60, on_lost=lambda *_: told.set()) as leader:
            lose(other, name)
            with pytest.raises(sqlock.LockLost):
                leader.publish("late")
            assert told.wait(120) and leader.lease.lost.wait(120)
            assert not leader.leads
            with pytest.raises(sqlock.LockLost):
                leader.check()
    with pytest.raises(sqlock.LockLost):
        leader.campaign()
        lose(other, name)
        leader.resign()
    leader.campaign()
    leader.resign()


def test_sharers_lead_nobody(registry, other, name):
    with registry.semaphore(name, 3, 60, weight=2), other.semaphore(name, 3, 60):
        assert registry.leader(name).info() is None


@pytest.mark.parametrize("waits", ["__enter__()", "campaign()", "observe()"])
def test_ctrl_c_ends_a_wait(registry, url, name, waits):
    of = "names[0]" if waits != "observe()" else "'nobody ' + names[0]"
    source = WAITS.replace(
        "registry.acquire(names[0])", f"registry.leader({of}).{waits}"
    )
    assert waits in source
    with registry.leader(name):
        with Program(source, url, name) as program:
            program.says("waits")
            os.kill(program.process.pid, signal.SIGINT)
            code, rest = program.ends()
            assert (code, rest) == (0, "interrupted\n"), program.complaint()
    with registry.leader(name, 60):
        pass


def test_closing_a_registry_ends_observing(url, name):
    registry, came = sqlock.open(url), []

    def observe():
        try:
            registry.leader(name).observe()
        except sqlock.Error as error:
            came.append(error.name)

    thread = threading.Thread(target=observe)
    thread.start()
    until_observing(registry)
    registry.close()
    thread.join()
    assert came == ["ECANCELED"]


def test_a_table_of_spring_has_leaders_without_a_text(tmp_path, name):
    if "sqlite" not in os.environ.get("DRIVERS", "sqlite"):
        pytest.skip("the library has no driver of SQLite")
    url = f"sqlite:{tmp_path}/locks.db"
    sqlock.create_schema(url, layout="spring7")
    with sqlock.open(url) as registry, registry.leader(name) as leader:
        with pytest.raises(sqlock.NotSupported, match="layout"):
            leader.publish("no")
        assert registry.leader(name).observe(0).client_id == leader.lease.client_id


# ----------------------------------------------------------------- asyncio --


def test_tasks_lead_and_observe(registry, other, name):
    async def main():
        seen = other.aleader(name)
        change = asyncio.create_task(seen.observe(60))
        async with registry.aleader(name, 60) as leader:
            token = leader.lease.token
            assert (await change).token == token
            await leader.publish("text")
            assert (await seen.observe(60)).text == "text"
            assert (await seen.info()).text == "text"
            leader.check()
            late = other.aleader(name, 0)
            for _ in range(2):  # whoever has lost may campaign again
                with pytest.raises(sqlock.Busy):
                    await late.campaign()
            with pytest.raises(sqlock.Timeout):
                await seen.observe(0)
        assert await seen.observe(60) is None and await seen.info() is None
        with pytest.raises(sqlock.NotOwner):
            await leader.publish("late")
        next_one = other.aleader(name, 60)
        assert (await next_one.campaign()).token > token
        with pytest.raises(RuntimeError):
            await next_one.campaign()
        await next_one.resign()
        with pytest.raises(sqlock.NotOwner):
            await next_one.resign()

    asyncio.run(main())


def test_a_closed_loop_observes_nothing(registry, name):
    loop = asyncio.new_event_loop()
    loop.set_exception_handler(lambda *_: None)
    task = loop.create_task(registry.aleader(name).observe())
    while not registry._core.observing:
        loop.run_until_complete(asyncio.sleep(0.01))
    loop.close()
    for _ in range(6000):
        if not registry._core.observing:
            break
        threading.Event().wait(0.01)
    assert not registry._core.observing
    del task


def test_the_loss_of_the_lease_ends_the_block(registry, other, name):
    async def main():
        with pytest.raises(sqlock.LockLost):
            async with registry.aleader(name, 60):
                await asyncio.to_thread(lose, other, name)
                await asyncio.sleep(120)
                pytest.fail("it goes on")

    asyncio.run(main())


def test_whenever_a_task_is_cancelled_nobody_leads(registry, other, name):
    async def lead(enter):
        async with registry.aleader(name) as leader:
            enter()
            await leader.publish("short")
            await moment(500)

    async def main():
        await cancel_at_moments(lead, 40)
        for _ in range(10):
            await cancel_after_moment(registry.aleader(name + "/b").observe(), 200)

    asyncio.run(main())
    with other.leader(name, 60):
        pass
    assert not registry._core.observing


# --------------------------------------------------------- what a row tells --


def test_a_row_tells_its_sharers(registry, other, name):
    with registry.semaphore(name, 5, 60, weight=2), other.semaphore(name, 5, 60):
        row = registry.show(name)
        assert (row.mode, row.permits, row.taken, row.sharers) == ("shared", 5, 3, 2)
        assert len(row.sharer_names) == 2 and "weight" in "".join(row.sharer_names)
        assert row.text is None
        (listed,) = registry.list(name)
        assert listed.sharer_names[0].split()[0] == row.sharer_names[0].split()[0]
    row = registry.show(name)
    assert (row.state, row.mode, row.permits) == ("free", "exclusive", 5)
    assert (row.taken, row.sharers, row.sharer_names) == (0, 0, [])


def test_a_row_tells_its_leader(registry, name):
    with registry.leader(name, 60) as leader:
        leader.publish("told")
        (row,) = registry.list(name)
        assert (row.mode, row.text) == ("exclusive", "told")
