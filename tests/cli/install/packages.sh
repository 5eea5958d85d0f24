#!/usr/bin/env bash
# packages.sh: .ci/setup.sh says in one line what it installs, as whom, and how
# to turn that off; and says nothing when all is there.  apt-get is another
# program here: nothing is installed.
set -u
cd "$(dirname "$0")/../../.." || exit 1
work=$(mktemp -d /tmp/sqlock-packages.XXXXXX) || exit 1
trap 'rm -rf "$work"' EXIT
status=0

is() { # WHAT GOT EXPECTED
    if [ "$2" = "$3" ]; then
        echo "ok - $1"
    else
        echo "not ok - $1: got \"$2\", not \"$3\""
        status=1
    fi
}

mkdir -p "$work/.ci" "$work/bin"
cp .ci/setup.sh "$work/.ci"
# clang-format-14 is there once apt-get has installed it.
# shellcheck disable=SC2016 # for the program
printf '#!/bin/sh\necho "$*" >>"%s/calls"\n[ ! -e "%s/works" ] ||
cp "$0" "%s/bin/clang-format-14"\n' "$work" "$work" "$work" \
    >"$work/bin/apt-get"
printf '#!/bin/sh\necho 0\n' >"$work/bin/id"
chmod +x "$work/bin"/*
for tool in bash env dirname mkdir tail sh cp grep; do
    ln -s "$(command -v $tool)" "$work/bin/$tool"
done
setup() { # LEVEL: with the programs of $work/bin alone
    sed "s,^PATH=.*,PATH=$work/bin," .ci/setup.sh >"$work/.ci/setup.sh"
    PATH=$work/bin "$work/bin/bash" "$work/.ci/setup.sh" "$1" 2>&1
}

touch "$work/works"
said=$(setup format)
is "it installs what is missing" "$?" 0
is "and says so in one line" "$said" \
    "setup: installs by apt-get, as root and without asking (SETUP=no leaves it\
 out): clang-format-14"
is "apt-get is called once, without a question" \
    "$(grep -c 'install -y .*clang-format-14' "$work/calls")" 1
said=$(setup format)
is "when all is there it says nothing" "$? $said" "0 "
is "and calls nobody" "$(wc -l <"$work/calls")" 1
exit $status
