#!/usr/bin/env bash
# wheel.sh: the wheel has the C library inside, and the tag of this platform; it
# is installed in a new virtual environment and used there, without a package of
# the system's and without any variable.
set -u
cd "$(dirname "$0")/../../.." || exit 1
build=$(realpath "${SQLOCK_BUILD:-build}")
python=${PYTHON:-/usr/bin/python3}
work=$(mktemp -d /tmp/sqlock-wheel.XXXXXX) || exit 1
trap 'rm -rf "$work"' EXIT
status=0

check() { # WHAT COMMAND...
    local what=$1
    shift
    if "$@" >"$work/out" 2>&1; then
        echo "ok - $what"
    else
        tail -n 30 "$work/out"
        echo "not ok - $what"
        status=1
    fi
}
$python -c 'import setuptools, wheel, pip, ensurepip' 2>/dev/null || {
    echo "skip - $python has no pip, setuptools, wheel or venv"
    exit 77
}
unset SQLOCK_LIBRARY PYTHONPATH LD_LIBRARY_PATH
export PYTHONDONTWRITEBYTECODE=1
alone() { # COMMAND...: in a folder that has none of our sources
    (cd "$work" && env -i PATH=/usr/bin:/bin LC_ALL=C.UTF-8 HOME="$work" "$@")
}

check "the wheel is made" bash src/python/wheel.sh "$build/lib/libsqlock.so" \
    "$work/wheel"
version=$(sed -n 's/^#define SQLOCK_VERSION_[A-Z]* *\([0-9]*\)$/\1/p' \
    include/sqlock.h | paste -sd .)
platform=$($python -c 'import sysconfig
print(sysconfig.get_platform().replace("-", "_").replace(".", "_"))')
wheel=$work/wheel/sqlock-$version-py3-none-$platform.whl
check "its name has the library's version and this platform" test -s "$wheel"
check "it has the library, the types and the sources inside" \
    $python - "$wheel" <<'END'
import sys
import zipfile

names = zipfile.ZipFile(sys.argv[1]).namelist()
assert "sqlock/libsqlock.so.0.1" in names, names
assert "sqlock/py.typed" in names, names
assert "sqlock/registry.py" in names, names
END
check "a virtual environment is made" alone $python -m venv "$work/venv"
check "the wheel is installed there" alone "$work/venv/bin/pip" install \
    --quiet --no-index --no-cache-dir "$wheel"
check "a program there uses the library of the wheel" alone \
    "$work/venv/bin/python" -c '
import sys, sqlock
with open("/proc/self/maps") as maps:
    loaded = {line.split()[-1] for line in maps if "libsqlock" in line}
assert len(loaded) == 1 and loaded.pop().startswith(sys.prefix), loaded
assert sqlock.version() == sys.argv[1]
' "$version"
check "it makes a table" alone "$work/venv/bin/python" -c '
import sqlock
sqlock.create_schema("sqlite:locks.db")'
cp tests/cli/install/loses.py "$work"
loses() {
    local holder i
    alone "$work/venv/bin/python" "$work/loses.py" sqlite:locks.db job \
        >"$work/says" 2>"$work/errors" &
    holder=$!
    for ((i = 0; i < 300; i++)); do
        ! grep -q held "$work/says" || break
        sleep 0.1
    done
    alone "$work/venv/bin/python" -c '
import sqlock
registry = sqlock.open("sqlite:locks.db")
registry.break_lock("job", client_id=registry.show("job").client_id,
                    reason="test", now=True)'
    wait "$holder" && [ "$(paste -sd, "$work/says")" = held,lost ] || {
        cat "$work/says" "$work/errors"
        return 1
    }
}
check "it takes a lock, and notices that it is lost" loses
exit $status
