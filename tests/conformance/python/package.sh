#!/usr/bin/env bash
# package.sh: the tests of the Python package on each database, by pytest.
#
# SUITE_PYTEST has more options of it, such as -k.
# shellcheck source=tests/tools/support/script.sh
. "$(dirname "$0")/../../tools/support/script.sh"
python=${PYTHON:-/usr/bin/python3}
log=$dir/log

$python -c 'import pytest' 2>/dev/null || skip_all "$python has no pytest"
export SQLOCK_LIBRARY=$build/lib/libsqlock.so PYTHONPATH=$PWD/src/python
export PYTHONDONTWRITEBYTECODE=1
# shellcheck disable=SC2086 # options
$python -X dev -m pytest -p no:cacheprovider -q -rA --tb=short --no-header \
    --color=no ${SUITE_PYTEST-} tests/conformance/python >"$log" 2>&1
status=$?
# In the words of tests/run.sh.
sed -E -e 's/^PASSED tests\/conformance\/python\//ok - /' \
    -e 's/^(FAILED|ERROR) tests\/conformance\/python\//not ok - /' \
    -e 's/^SKIPPED /skip - /' "$log"
exit $status
