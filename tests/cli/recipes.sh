#!/usr/bin/env bash
# recipes.sh: the recipes of sqlock-recipes(7), as they stand there: shell lines
# are run, on a database of their own, and the files are parsed.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"
page=$here/../../src/man/sqlock-recipes.7

recipe() { # NUMBER: the text between .Bd and .Ed
    awk -v wanted="$1" '/^\.Bd/ { n++; on = n == wanted; next }
        /^\.Ed/ { on = 0 } on' "$page" | sed 's/^\\&//'
}
given() { # NUMBER: run it as a script; its status, and what ran
    rm -f ran
    recipe "$1" >script
    sh script 2>"$dir/err"
    status=$?
    ran=$(cat ran 2>/dev/null)
}

mkdir "$dir/bin" "$dir/work"
ln -s "$(realpath "$SQLOCK")" "$dir/bin/sqlock"
PATH=$dir/bin:$PATH
export SQLOCK_URL=sqlite:$dir/recipes.db
cd "$dir/work" || exit 1
for script in report deploy import invoices; do
    printf '#!/bin/sh\necho %s >>ran\n' "$script" >"$script.sh"
    chmod 755 "$script.sh"
done
sqlock -q init

recipe 1 | sed 's/^0 3 \* \* \* //' >cron
sh cron
is "cron: the job ran" "$?/$(cat ran)" 0/report
rm ran
sqlock -q run nightly-report -- sh cron 2>"$dir/err"
is "cron: not while another one has the lock" "$([ -e ran ]; echo $?)" 1
holder=$(sqlock -q acquire nightly-report)
sh cron
is "cron: which is no failure" "$?/$([ -e ran ]; echo $?)" 0/1
sqlock -q release "$holder"

exec_start=$(recipe 2 | sed -n 's/^ExecStart=//p' |
    sed "s,/usr/bin/,,; s,/srv/,./,")
rm -f ran
sh -c "$exec_start"
is "systemd: ExecStart" "$?/$(cat ran)" 0/report

if /usr/bin/python3 -c 'import yaml' 2>/dev/null; then
    recipe 3 >cronjob.yaml
    command=$(/usr/bin/python3 -c '
import shlex, sys, yaml
pod = yaml.safe_load(sys.stdin)["spec"]["jobTemplate"]["spec"]["template"]
print(shlex.join(pod["spec"]["containers"][0]["command"]))' <cronjob.yaml)
    rm -f ran
    sh -c "${command//\/srv\//./}"
    is "Kubernetes: the command" "$?/$(cat ran)" 0/report
else
    skip "Kubernetes" "python3-yaml is not installed"
fi

given 4
is "a pipeline's step" "$status/$ran" 0/deploy
given 5
is "in place of flock" "$status/$ran" 0/import
given 6
is "a part of a script" "$status/$ran" 0/import
is "after which the lock is free" \
    "$(sqlock ls import | awk 'NR > 1' | wc -l)" 0

export SQLOCK_URL=sqlite:$dir/spring.db
given 7
is "beside Spring" "$status/$ran" 0/invoices
cd / || exit 1
done_testing
