"""Arguments of the wrong kind, or out of bounds: one line says which one it is,
and what it must be."""

from decimal import Decimal

import pytest

import sqlock
from sqlock.lease import acquire_options
from sqlock.registry import _options

BIG = 2**63
HUGE = 10**400  # as a float it would be infinite
TABLE = sqlock.Table(
    "INT_STOCK",
    "ITEM",
    version_column="VERSION",
    fence_column="VERSION",
    fence_owner_column="ITEM",
)

# Of a registry.
CALLS = [
    (lambda r: r.adopt(None), TypeError, "connection must not be None"),
    (lambda r: r.adopt(2**64), ValueError, "connection is out of range"),
    (lambda r: r.adopt(-1), ValueError, "connection is out of range"),
    (lambda r: r.acquire("x", ttl=HUGE), ValueError, "ttl must be less than"),
    (lambda r: r.acquire("x", on_lost=5), TypeError, "on_lost must be a function"),
    (lambda r: r.acquire("x", permits="3"), TypeError, "permits must be an int"),
    (lambda r: r.acquire("x", permits=1.5), TypeError, "permits must be an int"),
    (lambda r: r.semaphore("x", None), TypeError, "permits must be an int"),
    (lambda r: r.set_permits("x", "3"), TypeError, "permits must be an int"),
    (lambda r: r.acquire_many(None), TypeError, "names must be a list, not None"),
    (lambda r: r.acquire_many("x"), TypeError, "names must be a list, not str"),
    (lambda r: r.break_lock("x", token=BIG), ValueError, "token is out of range"),
    (lambda r: r.break_lock("x", token="5"), TypeError, "token must be an int"),
    (lambda r: r.list(limit=None), TypeError, "limit must be an int, not None"),
    (lambda r: r.list(sort=["name"]), ValueError, "sort must be one of name"),
    (lambda r: r.reap(HUGE), ValueError, "retention must be less than"),
    (lambda r: sqlock.quorum(r, "x"), TypeError, "registries must be a list"),
    (lambda r: sqlock.quorum(["x"], "x"), TypeError, "must be a Registry, not str"),
    (lambda r: r.stock(batch=1.5), TypeError, "batch must be an int"),
    (lambda r: r.stock(["hopeful"]), ValueError, "strategy must be one of"),
]

# Of a stock.
STOCK_CALLS = [
    (lambda s: s.deduct("x", BIG), ValueError, "a quantity is out of range"),
    (lambda s: s.set("x", -BIG - 1), ValueError, "a quantity is out of range"),
    (lambda s: s.deduct("x", "1"), TypeError, "a quantity must be an int, not str"),
    (lambda s: s.deduct("x", True), TypeError, "a quantity must be an int, not bool"),
    (lambda s: s.deduct("x", Decimal("1.5")), TypeError, "int, not Decimal"),
    (lambda s: s.deduct("x", Decimal("NaN")), TypeError, "int, not Decimal"),
    (lambda s: s.deduct("x", tx=5), TypeError, "tx must be a Transaction, not int"),
    (lambda s: s.deduct_many(["x"]), TypeError, "quantities must be a dict"),
    (lambda s: s.restore_many([("x", 1)]), TypeError, "quantities must be a dict"),
    (lambda s: s.deduct_many(None), TypeError, "quantities must be a dict"),
    (lambda s: s.deduct_many({"x": BIG}), ValueError, "quantity is out of range"),
    (lambda s: s.reserve("o", "x", 5), TypeError, "quantities must be a dict"),
]

# Of a transaction.
TX_CALLS = [
    (lambda t: t.execute("SELECT ?", 5), TypeError, "parameters must be a list"),
    (lambda t: t.execute("SELECT ?", "x"), TypeError, "list, not str"),
    (lambda t: t.execute("SELECT ?", {"x": 5}), TypeError, "list, not dict"),
    (lambda t: t.execute("SELECT ?", {5}), TypeError, "list, not set"),
    (lambda t: t.execute("SELECT ?", [BIG]), ValueError, "or a str"),
    (lambda t: t.lock(None), TypeError, "names must be a list, not None"),
    (lambda t: t.lock_row("INT_STOCK", "x"), TypeError, "table must be a Table"),
    (lambda t: t.fence(TABLE, "x", 1.5, "me"), TypeError, "token must be an int"),
    (lambda t: t.fence(TABLE, "x", BIG, "me"), ValueError, "token is out of range"),
    (lambda t: t.update(TABLE, "x", 1, ["QUANTITY"]), TypeError, "must be a dict"),
    (lambda t: t.update(TABLE, "x", 1, None), TypeError, "values must be a dict"),
    (lambda t: t.update(TABLE, "x", 1.5, {}), TypeError, "an int or a str"),
    (lambda t: t.update(TABLE, "x", BIG, {}), ValueError, "version is out of range"),
    (lambda t: t.update(TABLE, "x", "v" * 64, {}), ValueError, "more than 63 bytes"),
    (lambda t: t.guard("x"), TypeError, "lease must be a Lease, Leases or Quorum"),
]


# Of open(): the library's name of each, and what it was given.
OPTIONS = [
    ({"ttl": 1e6}, "ttl_ms is 1000000000"),
    ({"ttl": 5, "margin": 6}, "margin_ms is 6000"),
    ({"ttl": 5, "renew_period": 6}, "renew_period_ms is 6000"),
    ({"peer_ttl": 1e6}, "peer_ttl_ms is 1000000000"),
    ({"pool_size": 10**6}, "pool_size is 1000000"),
]


def fields(struct):
    """What differs from the default."""
    found = {name: getattr(struct, name) for name, *_ in struct._fields_[1:]}
    return {n: v for n, v in found.items() if v and not hasattr(v, "argtypes")}


def test_each_option_has_its_field():
    given = {"region": "a", "table_prefix": "b", "note": "c", "pool_size": 2}
    times = ["ttl", "margin", "connect_timeout", "statement_timeout", "poll"]
    times += ["renew_period", "peer_ttl"]
    given.update({name: i + 1.0001 for i, name in enumerate(times)})
    choices = {"key_rule": "legacy", "no_peers": True, "waiting": "poll"}
    told = fields(_options(**given, **choices))
    expected = {name + "_ms": 1001 + 1000 * i for i, name in enumerate(times)}
    expected.update(region=b"a", table_prefix=b"b", holder_note=b"c", pool_size=2)
    expected.update(key_rule=1, no_peers=True, waiting=1, ownership=2)
    assert told == expected
    told = fields(acquire_options(1, False, 2, True, False, True, 3, 4))
    assert told.pop("actor")
    assert told == {
        "ttl_ms": 1000,
        "max_hold_ms": 2000,
        "fenced": True,
        "mode": 1,
        "permits": 3,
        "weight": 4,
    }
    told = fields(acquire_options(None, True, None, False, True, False, 0, 0))
    assert told.pop("actor")
    assert told == {"auto_renew": True, "fail_fast": True}


@pytest.mark.databases("sqlite")
def test_each_option_of_a_stock_has_its_field(registry, monkeypatch):
    given = []
    call = registry._core.call

    def noted(name, *arguments):
        given.append(arguments[-1])
        call(name, *arguments)

    names = ["table", "item_column", "quantity_column", "version_column"]
    monkeypatch.setattr(registry._core, "call", noted)
    with pytest.raises(sqlock.SchemaError):
        texts = {name: name[:4] for name in names}
        registry.stock("optimistic", **texts, batch=2, attempts=3, deadline=4)
    expected = {name: name[:4].encode() for name in names}
    expected.update(strategy=2, batch=2, attempts=3, deadline_ms=4000)
    assert fields(given[0]._obj) == expected


@pytest.mark.databases("sqlite")
@pytest.mark.parametrize("options, text", OPTIONS)
def test_of_open(url, options, text):
    with pytest.raises(sqlock.Error, match=text):
        sqlock.open(url, **options)


@pytest.mark.databases("sqlite")
@pytest.mark.parametrize("call, kind, text", CALLS)
def test_of_a_registry(registry, call, kind, text):
    with pytest.raises(kind, match=text):
        call(registry)


@pytest.mark.databases("sqlite")
@pytest.mark.parametrize("call, kind, text", STOCK_CALLS)
def test_of_a_stock(registry, call, kind, text):
    with registry.stock() as stock, pytest.raises(kind, match=text):
        call(stock)


@pytest.mark.databases("sqlite")
@pytest.mark.parametrize("call, kind, text", TX_CALLS)
def test_of_a_transaction(registry, call, kind, text):
    with pytest.raises(kind, match=text), registry.transaction() as tx:
        call(tx)


@pytest.mark.databases("sqlite")
def test_a_wait_of_any_length_is_waited(registry, name):
    registry.acquire(name, wait=HUGE).release()


@pytest.mark.databases("sqlite")
def test_what_a_database_gives_is_an_argument(registry):
    """A column NUMERIC is read as a Decimal, and a row may be a dict."""
    row = {"item": "x", "quantity": Decimal(3)}
    with registry.stock() as stock:
        stock.set("x", row["quantity"])
        assert stock.deduct("x", Decimal(1)).left == 2
    with registry.transaction() as tx:
        values = [row["item"], 5]
        assert tx.execute("SELECT ?, ?", dict(enumerate(values)).values()) == [("x", 5)]
