#!/usr/bin/env bash
# chart.sh DIRECTORY JSON...: draw charts of the benchmark's results.
#
# A chart is a pair of files in charts/: NAME.jq picks a table out of the
# results, columns with a head, and NAME.gp draws it.  Each is drawn for every
# database whose results hold what it needs: DIRECTORY/NAME-DATABASE.svg.
set -u
[ $# -ge 2 ] || {
    echo "usage: chart.sh DIRECTORY JSON..." >&2
    exit 2
}
charts=$(cd "$(dirname "$0")" && pwd)/charts
to=$1
shift
mkdir -p "$to" || exit 1
status=0
drawn=0
# Colours for a dark colour scheme.  The chart has a background in any scheme.
dark='<style>@media (prefers-color-scheme: dark) { '
dark+='rect[fill="#ffffff"] { fill: #161b22 } text { fill: #d0d7de } '
dark+='[color="black"] { color: #d0d7de } .gridline { stroke: #373e47 } }</style>'

for rows in "$charts"/*.jq; do
    name=$(basename "$rows" .jq)
    for database in postgres mysql sqlite; do
        data=$to/$name-$database.tsv
        picture=$to/$name-$database.svg
        rm -f "$picture"
        jq -rs --arg database "$database" -f "$rows" "$@" >"$data" || status=1
        [ -s "$data" ] || {
            rm -f "$data"
            continue
        }
        columns=$(head -n 1 "$data" | awk -F '\t' '{ print NF }')
        server=$(jq -rs --arg database "$database" 'first(.[].servers[] |
            select(.database == $database) | .version) | gsub("[^ -~]|['\''\"_{}^@]"; " ")' "$@")
        # gnuplot leaves out missing cells.  If it can draw nothing, it fails,
        # and there is no chart.
        if gnuplot -e "data='$data'; columns=$columns; server='$server'" \
            -e "charts='$charts'" \
            "$charts/style.gp" "$charts/$name.gp" >"$picture.new"; then
            sed "s|^<title>Gnuplot</title>|$dark|" "$picture.new" >"$picture"
            rm "$picture.new"
            echo "  $picture"
            drawn=$((drawn + 1))
        else
            rm -f "$picture.new"
            status=1
        fi
    done
done
[ "$drawn" -gt 0 ] || {
    echo "chart.sh: nothing to draw in $*" >&2
    status=1
}
exit $status
