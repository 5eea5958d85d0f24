"""What ctypes is told agrees with the headers."""

import ctypes
import os
import re
import shutil
import subprocess

import pytest

from conftest import ROOT
from sqlock import _native

# The struct of C for each of ctypes.
STRUCTS = {
    one: "sqlock_" + re.sub(r"(?<!^)(?=[A-Z])", "_", name).lower()
    for name, one in vars(_native).items()
    if isinstance(one, type)
    and issubclass(one, ctypes.Structure)
    and hasattr(one, "_fields_")
}
STRUCTS[_native.NativeError] = "sqlock_error"


def test_structs_and_codes_are_those_of_the_headers(tmp_path):
    compiler = shutil.which((os.environ.get("CXX") or "g++").split()[-1])
    if compiler is None:
        pytest.skip("no compiler")
    expected, lines = [], []
    for one, name in STRUCTS.items():
        fields = one._fields_
        if issubclass(one, _native.Sized):
            assert fields[0][0] == "size"
        lines.append(f"show(sizeof({name}));")
        expected.append(ctypes.sizeof(one))
        for field in fields:
            lines.append(f"show(offsetof({name}, {field[0]}));")
            lines.append(f"show(sizeof((({name} *)0)->{field[0]}));")
            expected.append(getattr(one, field[0]).offset)
            expected.append(getattr(one, field[0]).size)
    for name, code in _native.CODES.items():
        lines.append(f"show(SQLOCK_{name});")
        expected.append(code)
    lines.append("show(SQLOCK_KEY_SIZE); show(SQLOCK_LEASE_ID_SIZE);")
    lines.append("show(SQLOCK_OWNED_BY_HANDLE); show(SQLOCK_MANY_MAX);")
    expected += [_native.KEY_SIZE, _native.LEASE_ID_SIZE]
    expected += [_native.OWNED_BY_HANDLE, _native.MANY_MAX]
    source = tmp_path / "show.cc"
    headers = ROOT / "include" / "sqlock"
    source.write_text(
        "#include <cstddef>\n#include <cstdio>\n#include <sqlock.h>\n"
        + "".join(f"#include <sqlock/{one.name}>\n" for one in headers.glob("*.h"))
        + 'static void show(long n) { std::printf("%ld\\n", n); }\n'
        + "int main() {\n"
        + "\n".join(lines)
        + "\n}\n"
    )
    program = tmp_path / "show"
    subprocess.run(
        [compiler, "-std=c++17", "-Wno-invalid-offsetof", "-I", ROOT / "include"]
        + [source, "-o", program],
        check=True,
    )
    told = subprocess.run([program], check=True, capture_output=True, text=True)
    assert [int(line) for line in told.stdout.split()] == expected


def test_all_codes_are_known():
    table = (ROOT / "include" / "sqlock.h").read_text()
    for header in (ROOT / "include" / "sqlock").glob("*.h"):
        table += header.read_text()
    declared = dict(re.findall(r"X\((E[A-Z]+), +(-\d+),", table))
    assert {name: int(code) for name, code in declared.items()} == _native.CODES


def test_functions_take_as_many_arguments_as_in_the_headers():
    text = (ROOT / "include" / "sqlock.h").read_text()
    for header in (ROOT / "include" / "sqlock").glob("*.h"):
        text += header.read_text()
    text = re.sub(r"/\*.*?\*/", "", text, flags=re.DOTALL)
    for name, (_, arguments) in _native._PROTOTYPES.items():
        found = re.search(rf"\bsqlock_{name}\(([^;]*?)\)\s*;", text)
        assert found, f"sqlock_{name} is not declared"
        declared = found[1].strip()
        count = 0 if declared == "void" else declared.count(",") + 1
        assert count == len(arguments), name
