#!/usr/bin/env bash
# recipes.sh: the recipes of sqlock-recipes(7), as they stand there: shell lines
# are run, on a database of their own, and the files are parsed.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"
page=$here/../../src/man/sqlock-recipes.7

recipe() { # NUMBER: the text between .Bd and .Ed
    awk -v wanted="$1" '/^\.Bd/ { n++; on = n == wanted; next }
        /^\.Ed/ { on = 0 } on' "$page" | sed 's/^\\&//; s/\\e/\\/g'
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

# Run the line of cron as cron does: with the variables above it, and otherwise
# the PATH and the shell of cron.  Its minutes of --min-hold become seconds.
cron() {
    recipe 1 | sed -n 's,^PATH=/usr/local/bin,export PATH='"$dir/bin,p"
    recipe 1 | sed -n "s,^SQLOCK_URL=.*,export SQLOCK_URL=$SQLOCK_URL,p"
    recipe 1 | sed -n 's,^0 3 \* \* \* ,,p' |
        sed 's,--min-hold 5m,--min-hold 8s,; s,/srv/,./,'
}
cron >cron
as_cron() {
    env -i HOME="$dir" XDG_CONFIG_HOME=/nonexistent SHELL=/bin/sh \
        PATH=/usr/bin:/bin LOGNAME=root sh cron 2>"$dir/err"
}
is "cron: the recipe has a line" "$(grep -c "sqlock .* -- ./report.sh" cron)" 1
as_cron &
first=$!
helper "$first"
until_true test -s ran
sleep 2
as_cron
is "cron: a host that is two seconds late does nothing, without a word" \
    "$?/$(cat ran "$dir/err")" 0/report
wait "$first"
is "cron: the first host's job succeeded" "$?" 0
rm ran
as_cron
is "cron: the next night it runs again" "$?/$(cat ran)" 0/report

exec_start=$(recipe 2 | sed -n 's/^ExecStart=//p' |
    sed "s,/usr/bin/,,; s,/srv/,./,")
rm -f ran
sh -c "$exec_start"
is "systemd: ExecStart" "$?/$(cat ran)" 0/report

# Two hosts run the service: one leads; when its service dies, the other does,
# and the first one waits.
exec_start=$(recipe 3 | sed -n 's/^ExecStart=//p' |
    sed "s,/srv/importer,./leader.sh,")
is "a leader: sqlock is begun again" \
    "$(recipe 3 | grep -c '^Restart=on-failure$')" 1
printf '#!/bin/sh\necho "$HOST" >>leaders\necho $$ >pid\nexec sleep 600\n' \
    >leader.sh
chmod 755 leader.sh
serve() { # HOST: run the unit once
    HOST=$1 exec env --default-signal=INT,TERM sh -c "exec $exec_start" \
        2>>"$dir/err"
}
serve one &
one=$!
helper "$one"
until_true grep -q one leaders
serve two &
two=$!
helper "$two"
sleep 1
is "a leader: there is one" "$(cat leaders)" one
kill -TERM "$one"
wait "$one"
is "a leader: told to stop, it ends" "$?" 143
until_true grep -q two leaders
is "a leader: then the other one leads" "$(paste -sd ' ' leaders)" "one two"
kill -KILL "$(cat pid)"
until_true eval '[ "$(grep -c two leaders)" -eq 2 ]'
is "a leader: when its service dies, it waits again, and leads" \
    "$(paste -sd ' ' leaders)" "one two two"
kill -TERM "$two"
wait "$two"

given 4
is "an event: it is waited for" "$status/$(paste -sd ' ' ran)" "0/import report"

if /usr/bin/python3 -c 'import yaml' 2>/dev/null; then
    recipe 5 >cronjob.yaml
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

given 6
is "a pipeline's step" "$status/$ran" 0/deploy
given 7
is "in place of flock" "$status/$ran" 0/import
given 8
is "a part of a script" "$status/$ran" 0/import
is "after which the lock is free" \
    "$(sqlock ls import | awk 'NR > 1' | wc -l)" 0

export SQLOCK_URL=sqlite:$dir/spring.db
given 9
is "beside Spring" "$status/$ran" 0/invoices
cd / || exit 1
done_testing
