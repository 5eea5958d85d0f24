#!/usr/bin/env bash
# wheel.sh LIBRARY FOLDER: make a wheel of the Python package with that shared
# library inside, sqlock-VERSION-py3-none-PLATFORM.whl in FOLDER.
#
# The client libraries of the databases stay the system's: they are updated by
# it, and an application's own connection must be of the same library.
set -eu
[ $# -eq 2 ] || {
    echo "usage: wheel.sh LIBRARY FOLDER" >&2
    exit 2
}
library=$(realpath "$1") folder=$(realpath -m "$2")
here=$(cd "$(dirname "$0")" && pwd)
python=${PYTHON:-/usr/bin/python3}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

cp "$here/pyproject.toml" "$here/setup.py" "$here/README.md" "$work"
mkdir -p "$work/sqlock" "$folder"
cp "$here"/sqlock/*.py "$here/sqlock/py.typed" "$work/sqlock"
name=$(sed -n 's/^SONAME = "\(.*\)"$/\1/p' "$here/sqlock/_native.py")
${STRIP:-strip} --strip-unneeded -o "$work/sqlock/$name" "$library"
chmod 644 "$work/sqlock/$name"

rm -f "$folder"/sqlock-*.whl
$python -m pip wheel --quiet --no-index --no-deps --no-build-isolation \
    --no-cache-dir --disable-pip-version-check --wheel-dir "$folder" "$work" \
    >"$work/log" 2>&1 || {
    cat "$work/log" >&2
    exit 1
}
for wheel in "$folder"/sqlock-*.whl; do
    echo "  $wheel"
done
