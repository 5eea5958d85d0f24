#!/bin/sh
# embed.sh NAME FILE...: print C that has the texts of the files, one behind the
# other, as `const char NAME[]`.
name=$1
shift
printf '/* from %s */\nextern const char %s[];\nconst char %s[] =\n' "$*" "$name" \
    "$name"
sed -e 's/\\/\\\\/g' -e 's/"/\\"/g' -e 's/^/    "/' -e 's/$/\\n"/' "$@"
echo '    "";'
