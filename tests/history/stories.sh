#!/usr/bin/env bash
# stories.sh: hand-made histories are judged as they should be
#
# A story is right, or breaks the one property that its file is named for.
# shellcheck source=tests/tools/support/script.sh
. "$(dirname "$0")/../tools/support/script.sh"

${PYTHON:-/usr/bin/python3} -IS tests/history/check.py --stories \
    tests/history/*.history || status=1
exit $status
