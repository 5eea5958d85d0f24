#!/usr/bin/env bash
# html.sh PAGES OUT: the manual as HTML, a file for each page, and an index by
# topic.  PAGES has the pages of section 3 that pages.pl made of the headers; the
# others are beside this script.
set -eu
here=$(dirname "$0")
pages=$1 out=$2

rm -rf "$out"
mkdir -p "$out"
cp "$here/style.css" "$out/style.css"
for page in "$pages"/*.3 "$here"/*.[17]; do
    mandoc -Thtml -Ostyle=style.css,man=%N.%S.html "$page" |
        sed -e 's|<html>|<html lang="en">|' \
            -e '/<meta name="viewport"/d' \
            -e 's|<head>|&\n<meta name="viewport" content="width=device-width, initial-scale=1">|' \
            -e 's|<body>|&\n<p class="up"><a href="index.html">sqlock manual</a></p>|' \
            >"$out/${page##*/}.html"
done
# A link to another manual, such as fork(2), has no file here.
present=$(cd "$out" && echo *.html | sed 's/ /\n/g')
for file in "$out"/*.html; do
    for target in $(grep -o 'href="[^"#/]*\.html' "$file" | cut -c7- | sort -u); do
        grep -qxF "$target" <<<"$present index.html" ||
            [ "$target" = index.html ] ||
            sed -i "s|<a class=\"Xr\" href=\"$target\"\([^>]*\)>\([^<]*\)</a>|<span class=\"Xr\">\2</span>|g" "$file"
    done
done

# The one-line description of a page that is written by hand.
about() { # FILE
    sed -n 's/^\.Nd //p' "$1"
}
list() { # FILE...
    local file name
    echo '<dl>'
    for file in "$@"; do
        [ -e "$file" ] || continue
        name=${file##*/}
        echo "<dt><a href=\"$name.html\">${name%.*}(${name##*.})</a></dt>"
        echo "<dd>$(about "$file")</dd>"
    done
    echo '</dl>'
}
{
    cat <<'EOF'
<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<link rel="stylesheet" href="style.css">
<title>sqlock manual</title>
</head>
<body class="index">
<h1>sqlock manual</h1>
<p>Locks kept in the SQL database an application already has.</p>
<h2>Start here</h2>
EOF
    list "$here"/sqlock.1 "$here"/sqlock-run.1 "$pages"/sqlock.3
    if ls "$here"/*.7 >/dev/null 2>&1; then
        echo '<h2>Background</h2>'
        list "$here"/*.7
    fi
    perl "$here/pages.pl" --html-index
    echo '</body>'
    echo '</html>'
} >"$out/index.html"
