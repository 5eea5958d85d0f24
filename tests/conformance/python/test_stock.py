"""Stock: exact counts, orders that happen once, reservations."""

import asyncio
import threading

import pytest

import sqlock
from sqlock import _uses

STRATEGIES = ("conditional", "pessimistic", "optimistic", "coalesced")


def test_what_is_there_and_no_more(registry, name):
    with registry.stock() as stock:
        assert stock.set(name, 5).left == 5
        answer = stock.deduct(name, 2)
        assert (answer.left, answer.is_duplicate) == (3, False)
        with pytest.raises(sqlock.Insufficient) as refused:
            stock.deduct(name, 4)
        assert (refused.value.left, refused.value.item) == (3, name)
        assert stock.restore(name).left == 4
        assert stock.read(name) == 4
        assert (name, 4) in stock.list()
        with pytest.raises(sqlock.NotFound):
            stock.deduct(name + "-missing")
        with pytest.raises(sqlock.Invalid):
            stock.deduct(name, 0)
        with pytest.raises(TypeError):
            stock.deduct(name, 1.5)
        assert stock.stats.operations >= 5
    with pytest.raises(sqlock.Closed):
        stock.read(name)


def test_a_close_that_outlasts_its_patience_leaves_the_stock_open(
    registry, name, monkeypatch
):
    under_way = object()
    with registry.stock() as stock:
        stock.set(name, 5)
        stock._uses.enter(under_way)
        with pytest.raises(sqlock.InUse, match="this thread"):
            stock.close()
        stock._uses._calls[under_way] = 0
        monkeypatch.setattr(_uses, "CLOSE_SECONDS", 0.05)
        with pytest.raises(sqlock.InUse, match="other threads"):
            stock.close()
        stock._uses.leave(under_way)
        assert stock.read(name) == 5

    async def close_in_use():
        async with await registry.astock() as stock:
            uses = stock._stock._uses
            uses._calls[under_way] = 0
            with pytest.raises(sqlock.InUse, match="other threads"):
                await stock.close()
            del uses._calls[under_way]
            assert await stock.read(name) == 5

    asyncio.run(close_in_use())


@pytest.mark.databases("sqlite")
def test_what_is_no_unicode_comes_back_as_it_is(registry, name):
    item = f"{name}\udcff"
    columns = {"table": "t" + item[7:39], "item_column": "k", "quantity_column": "q"}
    table = sqlock.Table(columns["table"], "k", "state", "state")
    with registry.transaction() as tx:
        tx.execute(
            f"CREATE TABLE {table.name} (k TEXT PRIMARY KEY, q INTEGER, state TEXT)"
        )
        tx.execute(
            f"INSERT INTO {table.name} "
            f"SELECT '{name}' || s, 5, s FROM (SELECT CAST(x'ff' AS TEXT) AS s)"
        )
        assert tx.execute(f"SELECT k FROM {table.name}") == [(item,)]
        assert tx.version(table, item) == "\udcff"
        assert tx.update(table, item, "\udcff", {"state": "ok"}) == "ok"
    with registry.stock(**columns) as stock:
        assert stock.list() == [(item, 5)]


@pytest.mark.parametrize("option", ["batch", "attempts"])
def test_numbers_of_more_than_32_bits_are_refused(registry, option):
    for number in (-1, 2**32 + 2):
        with pytest.raises(ValueError, match=f"{option} is out of range"):
            registry.stock(**{option: number})


def test_an_order_happens_once(registry, name):
    stock = registry.stock()
    stock.set(name, 5)
    assert not stock.deduct(name, 2, order=name).is_duplicate
    again = stock.deduct(name, 2, order=name)
    assert (again.is_duplicate, again.left) == (True, 3)
    assert stock.read(name) == 3
    with pytest.raises(sqlock.OrderMismatch):
        stock.deduct(name, 3, order=name)
    assert stock.reap(dry_run=True) == (0, 0)


def areap(stock, *arguments, **options):
    return asyncio.run(sqlock.AsyncStock(stock).reap(*arguments, **options))


@pytest.mark.databases("sqlite")  # whose times are numbers
@pytest.mark.parametrize("reap", [sqlock.Stock.reap, areap])
def test_orders_are_forgotten(registry, name, reap):
    stock = registry.stock()
    stock.set(name, 9)
    stock.deduct(name, order=name)
    stock.reserve(name + "/2", {name: 1}, 600)
    stock.cancel(name + "/2")
    with registry.transaction() as tx:  # a day ago
        for table, column in [("ENTRY", "CREATED_AT"), ("RESERVATION", "EXPIRES_AT")]:
            sql = f"UPDATE INT_STOCK_{table} SET {column} = {column} - {86400 * 10**6}"
            tx.execute(sql + " WHERE ORDER_ID LIKE ?", [name + "%"])
    for hours in (25, 23):
        told = reap(stock, hours * 3600, dry_run=True)
        assert told == ((0, 0) if hours > 24 else (2, 1))
        assert stock.deduct(name, order=name).is_duplicate
    assert reap(stock, 23 * 3600) == (2, 1)
    assert not stock.deduct(name, order=name).is_duplicate


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_many_threads_never_oversell(registry, name, strategy):
    stock = registry.stock(strategy)
    stock.set(name, 20)
    sold, refused = [], []

    def buy():
        for _ in range(4):
            try:
                stock.deduct(name)
                sold.append(1)
            except sqlock.Insufficient:
                refused.append(1)

    threads = [threading.Thread(target=buy) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (len(sold), len(refused)) == (20, 12)
    assert stock.read(name) == 0


def test_several_items_or_none(registry, name):
    stock = registry.stock()
    shoes, laces = name + "-shoes", name + "-laces"
    stock.set(shoes, 2)
    stock.set(laces, 4)
    assert stock.deduct_many({shoes: 1, laces: 2}) == {shoes: 1, laces: 2}
    with pytest.raises(sqlock.Insufficient) as refused:
        stock.deduct_many({shoes: 1, laces: 3})
    assert (refused.value.item, refused.value.left) == (laces, 2)
    assert stock.read(shoes) == 1
    for _ in range(2):
        together = stock.restore_many({shoes: 1, laces: 2}, order=name)
        assert together == {shoes: 2, laces: 4}


def test_reservations(registry, name):
    stock = registry.stock()
    stock.set(name, 5)
    orders = [f"{name}-{i}" for i in range(3)]
    for order in orders[:2]:
        stock.reserve(order, {name: 1}, ttl=600)
    state, remaining = stock.status(orders[0])
    assert state == "reserved"
    assert 0 < remaining <= 600
    stock.claim(orders[0])
    assert stock.claim(orders[0]).is_duplicate
    stock.cancel(orders[1])
    assert [stock.status(one)[0] for one in orders[:2]] == ["claimed", "cancelled"]
    assert stock.read(name) == 4
    stock.reserve(orders[2], {name: 2}, ttl=0.001)
    while stock.status(orders[2])[0] == "reserved":
        pass
    assert stock.expire() > 0  # only then the quantities have to be back
    assert stock.status(orders[2])[0] == "expired"
    assert stock.read(name) == 4
    with pytest.raises(sqlock.LockExpired):
        stock.claim(orders[2])


def test_within_a_transaction(registry, name):
    stock = registry.stock()
    stock.set(name, 5)
    with pytest.raises(ZeroDivisionError):
        with registry.transaction() as tx:
            stock.deduct(name, 2, tx=tx)
            assert stock.read(name, tx=tx) == 3
            raise ZeroDivisionError
    assert stock.read(name) == 5
    with registry.transaction() as tx:
        stock.deduct(name, 2, tx=tx)
    assert stock.read(name) == 3


def operations(name):
    """Each operation that may be part of a transaction."""
    orders = [f"{name}/{i}" for i in range(2)]
    return [
        ("set", name, 5),
        ("restore", name, 1),
        ("deduct_many", {name: 1}),
        ("restore_many", {name: 2}),
        ("reserve", orders[0], {name: 1}, 600),
        ("reserve", orders[1], {name: 1}, 600),
        ("claim", orders[0]),
        ("cancel", orders[1]),
        ("status", orders[0]),
        ("read", name),
    ]


def test_each_operation_is_part_of_a_transaction(registry, name):
    stock = registry.stock()
    stock.set(name, 9)
    with pytest.raises(ZeroDivisionError):
        with registry.transaction() as tx:
            for method, *arguments in operations(name):
                told = getattr(stock, method)(*arguments, tx=tx)
                if method == "status":
                    assert told == ("claimed", 0)
            assert told == 6
            raise ZeroDivisionError
    assert stock.read(name) == 9
    with pytest.raises(sqlock.NotFound):
        stock.status(name + "/0")


def test_times_of_stock_may_be_as_long_as_the_default(registry, name):
    days_90 = 90 * 86400
    stock = registry.stock()
    stock.set(name, 5)
    stock.reserve(name, {name: 1}, days_90)
    assert stock.status(name)[1] > days_90 - 600
    stock.reap(days_90, dry_run=True)


def test_a_strategy_that_is_none(registry):
    with pytest.raises(ValueError, match="strategy must be one of conditional"):
        registry.stock("hopeful")
    with pytest.raises(sqlock.SchemaError):
        registry.stock(
            table="there_is_none", item_column="item", quantity_column="quantity"
        )


@pytest.mark.databases("postgres", "sqlite")  # MySQL commits by a CREATE
def test_what_is_owed_is_known(registry, name):
    table = "t" + name.replace("-", "")
    with registry.transaction() as tx:
        tx.execute(
            f"CREATE TABLE {table} (item VARCHAR(90) PRIMARY KEY, quantity BIGINT)"
        )
        tx.execute(f"INSERT INTO {table} VALUES ('owed', -5), ('unknown', NULL)")
    try:
        stock = registry.stock(
            table=table, item_column="item", quantity_column="quantity"
        )
        assert stock.list() == [("owed", -5), ("unknown", None)]
        assert stock.read("owed") == -5
        assert stock.restore("owed", 2).left == -3
        with pytest.raises(sqlock.Insufficient) as refused:
            stock.deduct("owed")
        assert refused.value.left == -3
        with pytest.raises(sqlock.Insufficient) as refused:
            stock.deduct_many({"owed": 1})
        assert refused.value.left == -3
    finally:
        with registry.transaction() as tx:
            tx.execute(f"DROP TABLE {table}")
