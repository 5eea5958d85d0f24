#!/usr/bin/env bash
# wheel.sh: the wheel has the C library inside, and the tag of this platform; it
# is installed in a new virtual environment and used there, without a package of
# the system's and without any variable.
# shellcheck source=tests/tools/support/script.sh
. "$(dirname "$0")/../../tools/support/script.sh"
python=${PYTHON:-/usr/bin/python3}
$python -c 'import setuptools, wheel, pip, ensurepip' 2>/dev/null ||
    skip_all "$python has no pip, setuptools, wheel or venv"
unset SQLOCK_LIBRARY PYTHONPATH LD_LIBRARY_PATH
export PYTHONDONTWRITEBYTECODE=1
alone() { # COMMAND...: in a folder that has none of our sources
    (cd "$dir" && env -i PATH=/usr/bin:/bin LC_ALL=C.UTF-8 HOME="$dir" "$@")
}

check "the wheel is made" bash src/python/wheel.sh "$build/lib/libsqlock.so" \
    "$dir/wheel"
version=$(sed -n 's/^#define SQLOCK_VERSION_[A-Z]* *\([0-9]*\)$/\1/p' \
    include/sqlock.h | paste -sd .)
platform=$($python -c 'import sysconfig
print(sysconfig.get_platform().replace("-", "_").replace(".", "_"))')
wheel=$dir/wheel/sqlock-$version-py3-none-$platform.whl
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
check "a virtual environment is made" alone $python -m venv "$dir/venv"
check "the wheel is installed there" alone "$dir/venv/bin/pip" install \
    --quiet --no-index --no-cache-dir "$wheel"
check "a program there uses the library of the wheel" alone \
    "$dir/venv/bin/python" -c '
import sys, sqlock
with open("/proc/self/maps") as maps:
    loaded = {line.split()[-1] for line in maps if "libsqlock" in line}
assert len(loaded) == 1 and loaded.pop().startswith(sys.prefix), loaded
assert sqlock.version() == sys.argv[1]
' "$version"
check "it makes a table" alone "$dir/venv/bin/python" -c '
import sqlock
sqlock.create_schema("sqlite:locks.db")'
cp tests/cli/install/loses.py "$dir"
loses() {
    local holder i
    alone "$dir/venv/bin/python" "$dir/loses.py" sqlite:locks.db job \
        >"$dir/says" 2>"$dir/errors" &
    holder=$!
    for ((i = 0; i < 300; i++)); do
        ! grep -q held "$dir/says" || break
        sleep 0.1
    done
    alone "$dir/venv/bin/python" -c '
import sqlock
registry = sqlock.open("sqlite:locks.db")
registry.break_lock("job", client_id=registry.show("job").client_id,
                    reason="test", now=True)'
    wait "$holder" && [ "$(paste -sd, "$dir/says")" = held,lost ] || {
        cat "$dir/says" "$dir/errors"
        return 1
    }
}
check "it takes a lock, and notices that it is lost" loses
exit $status
