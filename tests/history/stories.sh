#!/usr/bin/env bash
# stories.sh: hand-made histories are judged as they should be
#
# A story is right, or breaks the one property that its file is named for.
# shellcheck source=tests/tools/support/script.sh
. "$(dirname "$0")/../tools/support/script.sh"

${PYTHON:-/usr/bin/python3} -IS tests/history/check.py --stories \
    tests/history/*.history || status=1

# A picture of a wrong history has a frame around the two who are in it.
cat >"$dir/history" <<'END'
a.1 acquire L 1 2 until=100 token=7
b.1 acquire L 10 11 until=50 token=8
c.1 acquire M 10 11 until=50 token=8
a died * 60 60
END
is_whole='import sys, xml.dom.minidom as x; x.parse(sys.argv[1])'
# shellcheck disable=SC2317 # by check
draws_both() {
    /usr/bin/python3 -IS tests/history/picture.py "$dir/history" >"$dir/picture" &&
        /usr/bin/python3 -c "$is_whole" "$dir/picture" &&
        [ "$(grep -c 'stroke="#d00000"' "$dir/picture")" -eq 2 ]
}
check 'a picture shows who had the lock at one time' draws_both
exit $status
