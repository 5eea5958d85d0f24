"""Transactions: on a connection of the registry, and on the application's."""

import sqlite3
import urllib.parse

import pytest

import sqlock
from conftest import lose


def connect(url):
    """The application's own connection, and what closes it."""
    if url.startswith("postgresql:"):
        psycopg = pytest.importorskip("psycopg")
        return psycopg.connect(url)
    if url.startswith("sqlite:"):
        apsw = pytest.importorskip("apsw")
        return apsw.Connection(url[len("sqlite:") :].split("?")[0])
    raise AssertionError("no module gives a MYSQL *")


def test_statements_and_their_rows(registry):
    with registry.transaction() as tx:
        rows = tx.execute("SELECT LOCK_KEY FROM INT_LOCK WHERE LOCK_KEY = ?", ["x"])
        assert rows == []
        changed = tx.execute("UPDATE INT_LOCK SET FENCE = 1 WHERE LOCK_KEY = ?", ["x"])
        assert changed.affected == 0
        with pytest.raises(TypeError):
            tx.execute("SELECT ?", [1.5])
        with pytest.raises(ValueError):
            tx.execute("SELECT ?", [2**63])
        with pytest.raises(sqlock.Invalid, match="commit it or roll it back"):
            tx.leave()
        assert tx.execute("SELECT 1") == [(1,)]
    with pytest.raises(sqlock.Closed):
        tx.execute("SELECT 1")
    with pytest.raises(sqlock.SchemaError):
        with registry.transaction() as tx:
            tx.execute("SELECT 1 FROM there_is_none")


def test_values_travel(registry, name):
    stock = registry.stock()
    stock.set(name, 7)
    with registry.transaction() as tx:
        sql = "SELECT ITEM, QUANTITY, NULL FROM INT_STOCK WHERE ITEM = ?"
        assert tx.execute(sql, [name]) == [(name, 7, None)]


def test_a_guard_keeps_a_lost_lease_out(registry, other, name):
    with pytest.raises(sqlock.LockLost):
        with registry.lock(name, ttl=60) as lease:
            lose(other, name)
            with other.lock(name):
                with registry.transaction() as tx:
                    tx.guard(lease)
    with registry.lock(name, ttl=60) as lease:
        with registry.transaction() as tx:
            tx.guard(lease)
            with pytest.raises(sqlock.InUse):
                lease.release()
            with pytest.raises(sqlock.InUse):
                lease.__exit__(None, None, None)
            assert lease.held
    other.acquire(name, 0).release()


# The guard was asked for, so a block that catches its refusal commits nothing.
def test_a_guard_that_is_refused_keeps_the_commit_out(registry, name):
    registry.stock().set(name, 7)
    released = registry.acquire(name, 0)
    released.release()
    for held in (released, "a text"):
        with pytest.raises(sqlock.Invalid, match="held no more"):
            with registry.transaction() as tx:
                with pytest.raises((sqlock.NotOwner, TypeError)):
                    tx.guard(held)
                tx.execute("DELETE FROM INT_STOCK WHERE ITEM = ?", [name])
        with pytest.raises(sqlock.Invalid, match="held no more"):
            with registry.transaction() as tx:
                with pytest.raises((sqlock.NotOwner, TypeError)):
                    tx.guard(held)
    with registry.transaction() as tx:
        assert tx.execute("SELECT ITEM FROM INT_STOCK WHERE ITEM = ?", [name])


# On SQLite the transaction has the file's write lock: the other one of the two
# cannot be released beside it, either.
@pytest.mark.databases("postgres", "mysql")
@pytest.mark.databases("postgres", "mysql")
def test_an_error_has_the_numbers_of_the_database(registry, url):
    with registry.transaction() as tx:
        with pytest.raises(sqlock.Error) as came:
            tx.execute("SELECT 1 FROM there_is_none")
        tx.rollback()
    told = (came.value.native, came.value.sqlstate)
    assert told == ((1146, "42S02") if url.startswith("mysql") else (0, "42P01"))


def test_guarded_locks_are_released_after_the_transaction(registry, other, name):
    leases = registry.acquire_many([name, name + "-more"], ttl=60)
    with registry.transaction() as tx:
        tx.guard(leases[0])
        with pytest.raises(sqlock.InUse):
            leases.release()
        assert leases[0].held
    leases.release()
    other.acquire_many([name, name + "-more"], 60).release()


def test_names_are_locked_until_the_end(registry, other, url, name):
    names = [f"{name}-{i}" for i in range(2)]
    with registry.transaction() as tx:
        assert tx.lock(names, 5) == set(names)
        try:
            # On SQLite any lock is the file's write lock.
            with other.transaction() as late:
                assert late.lock([*names, name], skip_locked=True) == {name}
                assert late.lock(names, skip_locked=True) == set()
                with pytest.raises(sqlock.Busy):
                    late.lock([name + "-more", *names], 0)
                assert late.execute("SELECT 7") == [(7,)]
        except sqlock.Busy:
            assert url.startswith("sqlite:")
    with other.transaction() as tx:
        assert tx.lock(names[0], 0) == {names[0]}


def test_versions(registry, url, name):
    table = sqlock.Table("INT_STOCK", "ITEM", version_column="VERSION")
    if url.startswith("postgresql:"):  # as its catalogue has the names
        table = sqlock.Table("int_stock", "item", version_column="version")
    quantity = table.key_column.replace("ITEM", "QUANTITY").replace("item", "quantity")
    stock = registry.stock()
    stock.set(name, 7)
    with registry.transaction() as tx:
        seen = tx.version(table, name)
        following = tx.update(table, name, seen, {quantity: 9})
        assert following == seen + 1
        with pytest.raises(sqlock.Conflict):
            tx.update(table, name, seen, {quantity: 10})
        with pytest.raises(sqlock.NotFound):
            tx.version(table, name + "-missing")
    assert stock.read(name) == 9
    with registry.transaction() as tx:
        tx.lock_row(table, name, 5)
        tx.lock_row(table, name, share=True)
    if not url.startswith("sqlite:"):  # which has one writer
        with registry.transaction() as tx, registry.transaction() as beside:
            tx.lock_row(table, name, share=True)
            beside.lock_row(table, name, 0, share=True)


@pytest.mark.databases("postgres", "sqlite")  # MySQL commits by a CREATE
def test_fences_and_states(registry, name):
    made, longest = "t" + name.replace("-", ""), "s" * 63
    table = sqlock.Table(made, "k", "state", "state", "fence", "owner")
    with registry.transaction() as tx:
        columns = ["k", "state", "owner"]
        texts = ", ".join(f"{column} VARCHAR(90)" for column in columns)
        tx.execute(f"CREATE TABLE {made} ({texts}, fence BIGINT, UNIQUE (k))")
        tx.execute(f"INSERT INTO {made} VALUES ('row', 'new', 'before', 5)")
    with registry.transaction() as tx:
        tx.fence(table, "row", 7, "me")
        with pytest.raises(sqlock.Conflict):
            tx.fence(table, "row", 6, "late")
        assert tx.execute(f"SELECT fence, owner FROM {made}") == [(7, "me")]
        assert tx.version(table, "row") == "new"
        assert tx.update(table, "row", "new", {"state": longest}) == longest
        with pytest.raises(sqlock.Conflict):
            tx.update(table, "row", "new", {"state": "sold"})
        assert tx.update(table, "row", longest, {"state": "sold"}) == "sold"
        tx.execute(f"DROP TABLE {made}")


@pytest.mark.parametrize("number", [2**63, 2**64 + 5, -(2**63) - 1])
def test_numbers_of_more_than_64_bits_are_refused(registry, name, number):
    table = sqlock.Table(
        "INT_STOCK",
        "ITEM",
        version_column="VERSION",
        fence_column="VERSION",
        fence_owner_column="ITEM",
    )
    with registry.transaction() as tx:
        with pytest.raises(ValueError, match="64 bits"):
            tx.fence(table, name, number, "owner")
        with pytest.raises(ValueError, match="64 bits"):
            tx.update(table, name, number, {"QUANTITY": 9})
        with pytest.raises(ValueError, match="64 bits"):
            tx.update(table, name, 1, {"QUANTITY": number})
    with pytest.raises(ValueError, match="64 bits"):
        registry.break_lock(name, token=number, reason="test")


@pytest.mark.databases("postgres", "sqlite")
def test_the_applications_connection(registry, url, name):
    connection = connect(url)
    stock = registry.stock()
    stock.set(name, 5)
    try:
        with registry.lock(name, ttl=60) as lease:
            with registry.adopt(connection) as tx:
                tx.guard(lease)
                stock.deduct(name, 2, tx=tx)
                cursor = connection.cursor()
                own = f"SELECT QUANTITY FROM INT_STOCK WHERE ITEM = '{name}'"
                assert list(cursor.execute(own)) == [(3,)]
            assert stock.read(name) == 3
            with pytest.raises(ZeroDivisionError):
                with registry.adopt(connection) as tx:
                    stock.deduct(name, 2, tx=tx)
                    raise ZeroDivisionError
            assert stock.read(name) == 3
            tx = registry.adopt(connection)
            tx.guard(lease)
            stock.deduct(name, 1, tx=tx)
            tx.leave()
            if hasattr(connection, "commit"):
                connection.commit()
            else:
                connection.cursor().execute("COMMIT")
            assert stock.read(name) == 2
    finally:
        connection.close()
    with pytest.raises(sqlock.Closed):
        registry.adopt(connection)


@pytest.mark.databases("postgres")
def test_psycopg2(registry, url, name):
    psycopg2 = pytest.importorskip("psycopg2")
    connection = psycopg2.connect(url)
    connection.autocommit = True
    stock = registry.stock()
    stock.set(name, 5)
    with registry.adopt(connection) as tx:
        stock.deduct(name, 2, tx=tx)
        with connection.cursor() as cursor:
            cursor.execute("SELECT QUANTITY FROM INT_STOCK WHERE ITEM = %s", [name])
            assert cursor.fetchall() == [(3,)]
    tx = registry.adopt(connection)
    connection.close()
    with pytest.raises(sqlock.Closed):
        tx.execute("SELECT 1")
    assert stock.read(name) == 3
    with pytest.raises(sqlock.Closed):
        registry.adopt(connection)
    connection = psycopg2.connect(url)
    connection.autocommit = True
    with pytest.raises(ZeroDivisionError):
        with registry.adopt(connection):
            connection.close()
            raise ZeroDivisionError


def test_connections_that_keep_their_handle(registry):
    connection = sqlite3.connect(":memory:")
    with pytest.raises(sqlock.NotSupported) as refused:
        registry.adopt(connection)
    connection.close()
    assert "sqlite3.Connection cannot be had" in str(refused.value)
    with pytest.raises(sqlock.NotSupported):
        registry.adopt(object())


@pytest.mark.databases("mysql")
def test_mysqlclient_keeps_its_handle(registry, url):
    mysqldb = pytest.importorskip("MySQLdb")
    at = urllib.parse.urlsplit(url)
    connection = mysqldb.connect(
        host=at.hostname,
        port=at.port or 3306,
        user=urllib.parse.unquote(at.username or ""),
        password=urllib.parse.unquote(at.password or ""),
        database=at.path.strip("/"),
    )
    with pytest.raises(sqlock.NotSupported, match="MySQLdb"):
        registry.adopt(connection)
    connection.close()


def test_a_registry_may_be_closed_before_a_transaction(url):
    registry = sqlock.open(url)
    tx = registry.transaction()
    registry.close()
    with pytest.raises(sqlock.Closed):
        tx.commit()
