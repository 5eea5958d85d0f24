"""What the tests of the Python package share: a registry on each database."""

import asyncio
import contextlib
import faulthandler
import os
import pathlib
import random
import signal
import subprocess
import sys
import tempfile
import threading
import uuid

import pytest

import sqlock

ROOT = pathlib.Path(__file__).resolve().parents[3]
# A test that takes longer hangs.
TEST_SECONDS = 400
STDERR = pytest.StashKey()

DATABASES = {"postgres": "POSTGRES", "mysql": "MYSQL", "sqlite": "SQLITE"}


def pytest_configure(config):
    # Whatever this run was started with: programs inherit what is ignored.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    config.addinivalue_line("markers", "databases(*names): run on these only")
    config.stash[STDERR] = os.dup(2)  # which is not captured yet


def pytest_generate_tests(metafunc):
    """A test runs on each database that it is for and the library has."""
    if "url" in metafunc.fixturenames:
        only = metafunc.definition.get_closest_marker("databases")
        built = os.environ.get("DRIVERS", "sqlite postgres mysql").split()
        metafunc.parametrize(
            "url",
            [d for d in (only.args if only else DATABASES) if d in built],
            indirect=True,
            scope="session",
        )


@pytest.fixture(autouse=True)
def limit(pytestconfig):
    """Of a test that hangs the run prints where, in each thread, and ends."""
    faulthandler.dump_traceback_later(
        TEST_SECONDS, exit=True, file=pytestconfig.stash[STDERR]
    )
    yield
    faulthandler.cancel_dump_traceback_later()


@pytest.fixture(scope="session")
def url(request):
    """Of each database that the run has, with the tables made."""
    found = os.environ.get(f"SQLOCK_TEST_{DATABASES[request.param]}_URL")
    if not found:
        pytest.skip(f"no {request.param} here")
    sqlock.create_schema(found)
    sqlock.create_stock_schema(found)
    sqlock.create_once_schema(found)
    return found


@pytest.fixture
def registry(url):
    with sqlock.open(url) as opened:
        yield opened


@pytest.fixture
def other(url):
    """Another process's registry, as far as the database can tell."""
    with sqlock.open(url) as opened:
        yield opened


@pytest.fixture
def name():
    """A name that no other test uses."""
    return f"python-{uuid.uuid4().hex}"


@pytest.fixture
def counter(registry, name):
    """A row with a number: read and set, each in a transaction of its own."""

    class Counter:
        def __init__(self):
            self.stock = registry.stock()
            self.set(0)

        def read(self):
            return self.stock.read(name)

        def set(self, n):
            self.stock.set(name, n)

    return Counter()


def lose(registry, name):
    """Let the holder of a lock lose it, from outside."""
    row = registry.show(name)
    registry.break_lock(name, client_id=row.client_id, reason="test", now=True)


chance = random.Random(16)


async def moment(part):
    """At most that part of a second."""
    await asyncio.sleep(chance.random() / part)


async def cancel_after_moment(work, part):
    """Cancel a task at some stage: before, while and after it does its work."""
    task = asyncio.create_task(work)
    await moment(part)
    task.cancel()
    try:
        await task
    except asyncio.CancelledError:
        pass


async def cancel_at_moments(work, least):
    """Cancel tasks at each stage of their work: at least so many, of which five
    have come to the call that they make of what they are given, and five not."""
    inside = outside = 0
    longest = 1 / 200
    while inside + outside < least or min(inside, outside) < 5:
        entered = []
        await cancel_after_moment(work(lambda: entered.append(True)), 1 / longest)
        inside += bool(entered)
        outside += not entered
        assert inside + outside < 20 * least, f"{inside} inside, {outside} not"
        # towards the moment at which it comes there, whatever the machine does
        longest *= 0.8 if entered else 1.25


async def cancel_all(tasks):
    """Cancel tasks that wait; each ends by that."""
    for task in tasks:
        task.cancel()
    for came in await asyncio.gather(*tasks, return_exceptions=True):
        assert isinstance(came, asyncio.CancelledError)


@contextlib.contextmanager
def reaper_held_up(registry):
    """Let what is left to the registry's reaper wait until the block's end."""
    begun, ended = threading.Event(), threading.Event()

    class Task:
        def set(self):
            begun.set()
            ended.wait()

    registry._core.hand_over("tell", Task())
    assert begun.wait(60)
    try:
        yield
    finally:
        ended.set()


class Program:
    """A Python program beside the tests."""

    def __init__(self, source, *arguments, **environment):
        self.errors = tempfile.TemporaryFile("w+")
        self.process = subprocess.Popen(
            [sys.executable, "-c", source, *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self.errors,
            text=True,
            env={**os.environ, **environment},
        )

    def says(self, expected):
        line = self.process.stdout.readline().rstrip("\n")
        assert line == expected, self.complaint()

    def ends(self):
        """Its exit status, and what else it has printed."""
        rest = self.process.communicate()[0]
        return self.process.returncode, rest

    def complaint(self):
        """What it has written to its standard error."""
        self.errors.seek(0)
        return self.errors.read()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.communicate()
        self.errors.close()
