"""In asyncio: many locks at once, transactions, stock."""

import asyncio
import threading
import time

import pytest

import sqlock
from conftest import cancel_after_moment, cancel_all, cancel_at_moments, lose, moment
from test_stock import operations


def test_crosswise_sets_end_and_never_overlap(registry, name):
    names = [f"{name}/{i}" for i in range(7)]
    inside = dict.fromkeys(names, 0)
    most = done = 0

    async def work(number):
        nonlocal most, done
        chosen = [names[number % 7], names[(number * 3 + 1) % 7]]
        chosen = list(dict.fromkeys(chosen if number % 2 else chosen[::-1]))
        async with registry.alock_many(chosen, wait=200) as leases:
            for one in chosen:
                inside[one] += 1
                most = max(most, inside[one])
            await asyncio.sleep(0)
            leases.check()
            for one in chosen:
                inside[one] -= 1
            done += 1

    async def main():
        await asyncio.gather(*[work(number) for number in range(100)])

    asyncio.run(main())
    assert (most, done) == (1, 100)


def test_the_loop_goes_on_while_many_are_waited_for(registry, other, name):
    held = other.acquire(name)
    ticks = 0

    async def main():
        nonlocal ticks
        waits = asyncio.create_task(registry.aacquire_many([name, name + "/b"]))
        while ticks < 50:
            await asyncio.sleep(0)
            ticks += 1
        assert not waits.done()
        # None is kept from others meanwhile.
        other.acquire(name + "/b", 60).release()
        held.release()
        leases = await waits
        assert leases.held and set(leases.tokens) == {name, name + "/b"}
        await leases.arelease()
        assert not leases.held
        with pytest.raises(sqlock.Busy):
            async with registry.alock(name):
                await registry.aacquire_many([name + "/b", name], 0)
        other.acquire(name + "/b", 60).release()
        with pytest.raises(TypeError):
            await registry.aacquire_many("one name")
        with pytest.raises(ValueError):
            await registry.aacquire_many(["\0"])

    asyncio.run(main())
    other.acquire(name, 0).release()


def test_whenever_a_task_is_cancelled_it_gives_many_back(registry, other, name):
    """At every stage: before, while and after they are granted or released."""
    names = [f"{name}/{i}" for i in range(3)]

    async def hold(enter):
        async with registry.alock_many(names):
            enter()
            await moment(500)

    asyncio.run(cancel_at_moments(hold, 40))
    for one in names:
        other.acquire(one, 60).release()
    assert not [t for t in threading.enumerate() if t.name == "sqlock call"]


def test_a_cancelled_wait_for_many_ends(registry, other, name):
    async def wait():
        async with registry.alock_many([name, name + "/b"]):
            raise AssertionError

    async def main():
        tasks = [asyncio.create_task(wait()) for _ in range(5)]
        await asyncio.sleep(0.05)
        await cancel_all(tasks)

    with other.lock(name):
        asyncio.run(main())
    other.acquire_many([name, name + "/b"], 60).release()


def test_the_loss_of_one_of_many_ends_what_a_block_awaits(registry, other, name):
    names = [f"{name}/{i}" for i in range(3)]

    async def main():
        with pytest.raises(sqlock.LockLost):
            async with registry.alock_many(names, ttl=2):
                await asyncio.to_thread(lose, other, names[1])
                await asyncio.to_thread(lose, other, names[2])
                await asyncio.sleep(3600)
        # The task goes on as if it had not been cancelled.
        await asyncio.sleep(0)
        async with registry.alock_many(names, 60) as leases:
            leases.check()

    asyncio.run(main())


def test_a_registry_that_is_closed_ends_waits_for_many(url, other, name):
    async def main():
        registry = sqlock.open(url)
        waits = asyncio.create_task(registry.aacquire_many([name, name + "/b"]))
        await asyncio.sleep(0.05)
        await asyncio.to_thread(registry.close)
        with pytest.raises((sqlock.Closed, sqlock.Cancelled)):
            await waits

    with other.lock(name):
        asyncio.run(main())


def test_a_transaction_commits_or_rolls_back(registry, name):
    async def main():
        stock = await registry.astock()
        await stock.set(name, 7)
        sql = "SELECT QUANTITY FROM INT_STOCK WHERE ITEM = ?"
        change = "UPDATE INT_STOCK SET QUANTITY = ? WHERE ITEM = ?"
        async with registry.alock(name, ttl=60) as lease:
            async with registry.atransaction() as tx:
                await tx.guard(lease)
                assert (await tx.execute(change, (8, name))).affected == 1
                assert await tx.execute(sql, (name,)) == [(8,)]
        assert await stock.read(name) == 8
        with pytest.raises(ZeroDivisionError):
            async with registry.atransaction() as tx:
                await tx.execute(change, (99, name))
                inner = tx._tx
                raise ZeroDivisionError
        assert inner._pointer is None
        async with registry.atransaction() as tx:
            await tx.execute(change, (99, name))
            await tx.rollback()
            with pytest.raises(sqlock.Closed):
                await tx.execute(sql, (name,))
        assert await stock.read(name) == 8
        with pytest.raises(sqlock.Closed):
            await tx.commit()
        with pytest.raises(RuntimeError):
            async with tx:
                pass
        await stock.close()

    asyncio.run(main())


def test_rows_and_versions_in_a_transaction(registry, url, name):
    columns = ["INT_STOCK", "ITEM", "VERSION", "QUANTITY"]
    if url.startswith("postgresql:"):  # as its catalogue has the names
        columns = [column.lower() for column in columns]
    table = sqlock.Table(columns[0], columns[1], version_column=columns[2])

    async def main():
        async with await registry.astock() as stock:
            await stock.set(name, 7)
            async with registry.atransaction() as tx:
                assert await tx.lock(name, 5) == {name}
                await tx.lock_row(table, name, 5)
                seen = await tx.version(table, name)
                following = await tx.update(table, name, seen, {columns[3]: 9})
                assert following == seen + 1
                with pytest.raises(sqlock.Conflict):
                    await tx.update(table, name, seen, {columns[3]: 10})
                with pytest.raises(sqlock.NotFound):
                    await tx.version(table, name + "-missing")
            assert await stock.read(name) == 9
            assert (name, 9) in await stock.list()
        if not url.startswith("sqlite:"):  # which has one writer
            async with registry.atransaction() as tx, registry.atransaction() as two:
                await tx.lock_row(table, name, 60, share=True)
                await two.lock_row(table, name, 0, share=True)
                assert await tx.lock(name, 60) == {name}
                taken = await two.lock([name, name + "/b"], skip_locked=True)
                assert taken == {name + "/b"}
                with pytest.raises(sqlock.Busy):
                    await two.lock_row(table, name, 0)
                await two.rollback()

    asyncio.run(main())


def test_a_guard_of_many_sees_a_loss(registry, other, name):
    names = [name, name + "/b"]

    async def main():
        leases = await registry.aacquire_many(names, ttl=60)
        async with registry.atransaction() as tx:
            await tx.guard(leases)
            with pytest.raises(sqlock.InUse):
                leases[0].release()
        lose(other, names[1])
        with pytest.raises(sqlock.LockLost):
            async with registry.atransaction() as tx:
                await tx.guard(leases)
        with pytest.raises(sqlock.LockLost):
            await leases.arelease()

    asyncio.run(main())


@pytest.mark.databases("postgres", "mysql")
def test_a_cancelled_task_rolls_back_after_its_statement(registry, other, name):
    change = "UPDATE INT_STOCK SET QUANTITY = ? WHERE ITEM = ?"

    async def wait_for_the_row():
        async with registry.atransaction() as tx:
            await tx.execute(change, (1, name + "/b"))
            await tx.execute(change, (2, name))  # another one has this row

    async def main():
        async with await registry.astock() as stock:
            await stock.set(name, 0)
            await stock.set(name + "/b", 0)
            async with other.atransaction() as tx:
                await tx.execute(change, (3, name))
                task = asyncio.create_task(wait_for_the_row())
                await asyncio.sleep(0.2)
                task.cancel()
                await asyncio.sleep(0.05)
            with pytest.raises(asyncio.CancelledError):
                await task
            assert await stock.read(name) == 3
            assert await stock.read(name + "/b") == 0

    asyncio.run(main())


def test_tasks_cancelled_as_they_begin_leave_no_transaction(registry, name):
    async def hold(enter):
        async with registry.atransaction() as tx:
            enter()
            await tx.execute("SELECT 1")

    asyncio.run(cancel_at_moments(hold, 30))
    # Those of tasks that were cancelled at once end in the background.
    deadline = time.monotonic() + 60
    while registry._core.open and time.monotonic() < deadline:
        time.sleep(0.01)
    assert not registry._core.open
    registry.transaction().rollback()


def test_tasks_never_oversell(registry, name):
    async def main():
        sold = refused = 0
        async with await registry.astock() as stock:
            await stock.set(name, 50)

            async def buy(number):
                nonlocal sold, refused
                try:
                    await stock.deduct(name, order=f"{name}/{number}")
                    sold += 1
                except sqlock.Insufficient as why:
                    assert (why.left, why.item) == (0, name)
                    refused += 1

            await asyncio.gather(*[buy(number) for number in range(100)])
            assert (sold, refused) == (50, 50)
            assert await stock.read(name) == 0
            assert stock.stats.operations >= 100
            assert (await stock.deduct(name, order=f"{name}/0")).is_duplicate
        with pytest.raises(sqlock.Closed):
            await stock.read(name)

    asyncio.run(main())


def test_orders_in_asyncio(registry, name):
    async def main():
        async with await registry.astock("optimistic") as stock:
            orders = [f"{name}/o{i}" for i in range(4)]
            for _ in range(2):
                await stock.set(name, 10, order=orders[0])
                await stock.restore(name, 2, order=orders[1])
                left = await stock.deduct_many({name: 1}, order=orders[2])
                assert left == {name: 11}
                left = await stock.restore_many({name: 1}, order=orders[3])
                assert left == {name: 12}
            assert await stock.reserve(name + "/1", {name: 2}, 900) == {name: 10}
            assert (await stock.status(name + "/1"))[0] == "reserved"
            await stock.claim(name + "/1")
            await stock.reserve(name + "/2", {name: 2}, 900)
            await stock.cancel(name + "/2")
            with pytest.raises(sqlock.Conflict):
                await stock.claim(name + "/2")
            with pytest.raises(sqlock.NotFound):
                await stock.status(name + "/3")
            assert await stock.expire() >= 0
            assert min(await stock.reap(dry_run=True)) >= 0
            with pytest.raises(ZeroDivisionError):
                async with registry.atransaction() as tx:
                    await stock.deduct(name, 3, tx=tx)
                    assert await stock.read(name, tx=tx) == 7
                    for method, *arguments in operations(name + "/x"):
                        await getattr(stock, method)(*arguments, tx=tx)
                    raise ZeroDivisionError
            assert await stock.read(name) == 10
            with pytest.raises(sqlock.NotFound):
                await stock.read(name + "/x")
        with pytest.raises(sqlock.SchemaError):
            await registry.astock(
                table="no_such", item_column="item", quantity_column="quantity"
            )
        with pytest.raises(TypeError):
            await registry.astock(no_such_option=1)

    asyncio.run(main())


@pytest.mark.parametrize("in_tx", [False, True])
def test_a_stock_that_is_being_closed_is_closed(registry, name, in_tx, monkeypatch):
    began, goes_on = threading.Event(), threading.Event()
    call = registry._core.call

    async def main():
        stock = await registry.astock()
        await stock.set(name, 5)

        def slow(function, *arguments):
            if function == "stock_deduct":
                began.set()
                assert goes_on.wait(60)
                assert stock._stock._pointer, "the stock was freed under a call"
            call(function, *arguments)

        async def use():
            if not in_tx:
                return await stock.deduct(name)
            async with registry.atransaction() as tx:
                return await stock.deduct(name, tx=tx)

        monkeypatch.setattr(registry._core, "call", slow)
        task = asyncio.create_task(use())
        try:
            while not began.is_set():
                await asyncio.sleep(0.01)
            closing = asyncio.create_task(stock.close())
            while not stock._threads._shutdown:
                await asyncio.sleep(0.01)
            with pytest.raises(sqlock.Closed):
                await stock.deduct(name)
            await asyncio.wait([closing], timeout=0.2)  # it must not end yet
        finally:
            goes_on.set()
        assert (await task).left == 4
        await closing
        with pytest.raises(sqlock.Closed):
            await stock.deduct(name)
        await stock.close()

    asyncio.run(main())


def test_an_order_that_was_cancelled_is_asked_for_again(registry, name):
    async def main():
        async with await registry.astock() as stock:
            await stock.set(name, 100)
            for number in range(20):
                order = f"{name}/{number}"
                await cancel_after_moment(stock.deduct(name, order=order), 300)
                await stock.deduct(name, order=order)
            assert await stock.read(name) == 80

    asyncio.run(main())


@pytest.mark.databases("sqlite")
def test_a_connection_of_ones_own_is_adopted(registry, url, name):
    apsw = pytest.importorskip("apsw")
    path = url.split(":", 1)[1].split("?")[0]

    async def main():
        async with await registry.astock() as stock:
            await stock.set(name, 1)
            connection = apsw.Connection(path)
            async with registry.aadopt(connection) as tx:
                await tx.execute(
                    "UPDATE INT_STOCK SET QUANTITY = 2 WHERE ITEM = ?", (name,)
                )
            assert await stock.read(name) == 2
            run = connection.cursor().execute
            run("CREATE TABLE fenced (k TEXT PRIMARY KEY, f INTEGER, o TEXT)")
            run("INSERT INTO fenced VALUES ('row', 5, 'before')")
            table = sqlock.Table(
                "fenced", "k", fence_column="f", fence_owner_column="o"
            )
            async with registry.aadopt(connection) as tx:
                await tx.fence(table, "row", 7, "me")
                await tx.leave()
            assert list(run("SELECT f, o FROM fenced")) == [(7, "me")]
            run("ROLLBACK")
            assert list(run("SELECT f, o FROM fenced")) == [(5, "before")]
            run("DROP TABLE fenced")
            connection.close()

    asyncio.run(main())
