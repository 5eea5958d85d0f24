#!/usr/bin/env bash
# packages.sh: .ci/setup.sh says in one line what it installs, as whom, and how
# to turn that off, and says nothing when all is there.  A script is called in
# place of apt-get, so nothing is installed.
# shellcheck source=tests/tools/support/script.sh
. "$(dirname "$0")/../../tools/support/script.sh"

mkdir -p "$dir/.ci" "$dir/bin"
cp .ci/setup.sh "$dir/.ci"
# This apt-get records its arguments in $dir/calls and, if $dir/works exists,
# makes a program clang-format-14.
# shellcheck disable=SC2016 # for the program
printf '#!/bin/sh\necho "$*" >>"%s/calls"\n[ ! -e "%s/works" ] ||
cp "$0" "%s/bin/clang-format-14"\n' "$dir" "$dir" "$dir" \
    >"$dir/bin/apt-get"
printf '#!/bin/sh\necho 0\n' >"$dir/bin/id"
chmod +x "$dir/bin"/*
for tool in bash env dirname mkdir tail sh cp grep; do
    ln -s "$(command -v $tool)" "$dir/bin/$tool"
done
setup() { # LEVEL: with the programs of $dir/bin alone
    sed "s,^PATH=.*,PATH=$dir/bin," .ci/setup.sh >"$dir/.ci/setup.sh"
    PATH=$dir/bin "$dir/bin/bash" "$dir/.ci/setup.sh" "$1" 2>&1
}

touch "$dir/works"
said=$(setup format)
is "it installs what is missing" "$?" 0
is "and says so in one line" "$said" \
    "setup: installs by apt-get, as root and without asking (SETUP=no leaves it\
 out): clang-format-14"
is "apt-get is called once, without a question" \
    "$(grep -c 'install -y .*clang-format-14' "$dir/calls")" 1
said=$(setup format)
is "when all is there it says nothing" "$? $said" "0 "
is "and calls nobody" "$(wc -l <"$dir/calls")" 1
exit $status
