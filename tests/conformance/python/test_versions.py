"""The package is for Python 3.9 and later."""

import ast
import os
import pathlib
import re
import shutil
import subprocess
import sys

import pytest

from conftest import ROOT

PACKAGE = ROOT / "src" / "python"
OLDEST = (3, 9)

# The first calls of an application, by thread and by task.
PROGRAM = """
import asyncio, sys, sqlock

url = "sqlite:" + sys.argv[1]
sqlock.create_schema(url)
sqlock.create_stock_schema(url)

async def main(registry):
    async with registry.alock("one", 5) as lease:
        lease.check()
    async with registry.alock_many(["one", "two"], 5) as leases:
        async with registry.atransaction() as tx:
            await tx.guard(leases)
            assert await tx.execute("SELECT 1") == [(1,)]
    async with await registry.astock() as stock:
        await stock.set("item", 3)
        assert (await stock.deduct("item")).left == 2

with sqlock.open(url) as registry:
    with registry.lock("one", 5) as lease:
        lease.check()
    asyncio.run(main(registry))
print("done")
"""


def pythons():
    """Interpreters of each version that are here, from the oldest on."""
    for minor in range(OLDEST[1], 30):
        name = f"python3.{minor}"
        homes = sorted(pathlib.Path.home().glob(f".pyenv/versions/3.{minor}.*/bin"))
        found = shutil.which(name, path=os.pathsep.join(map(str, homes)))
        if found is None and minor == sys.version_info[1]:
            found = sys.executable
        if found is None:
            found = shutil.which(name)
        if (
            found
            and not subprocess.run(
                [found, "-c", "import ctypes"], capture_output=True
            ).returncode
        ):
            yield found


def test_the_oldest_version_is_the_one_that_is_declared():
    text = (PACKAGE / "pyproject.toml").read_text()
    declared = re.search(r'requires-python = ">=(\d+)\.(\d+)"', text)
    assert tuple(map(int, declared.groups())) == OLDEST


@pytest.mark.parametrize(
    "source",
    sorted(PACKAGE.rglob("*.py")),
    ids=lambda source: source.name,
)
def test_sources_have_no_newer_syntax(source):
    ast.parse(source.read_text(), str(source), feature_version=OLDEST)


def test_each_version_that_is_here_runs_it(tmp_path):
    if "sqlite" not in os.environ.get("DRIVERS", "sqlite"):
        pytest.skip("the library has no driver of SQLite")
    found = list(pythons())
    assert found
    for python in found:
        ran = subprocess.run(
            [python, "-W", "error", "-X", "dev", "-c", PROGRAM]
            + [str(tmp_path / (pathlib.Path(python).name + ".db"))],
            env={**os.environ, "PYTHONPATH": str(PACKAGE)},
            capture_output=True,
            text=True,
        )
        assert ran.stdout == "done\n", f"{python}: {ran.stderr}"
        # In -X dev asyncio tells of a busy machine.
        told = [one for one in ran.stderr.splitlines() if "Executing <" not in one]
        assert told == [], python
