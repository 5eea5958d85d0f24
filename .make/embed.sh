#!/bin/sh
# embed.sh FILE NAME: print C that has the text of FILE as `const char NAME[]`.
printf '/* from %s */\nextern const char %s[];\nconst char %s[] =\n' "$1" "$2" "$2"
sed -e 's/\\/\\\\/g' -e 's/"/\\"/g' -e 's/^/    "/' -e 's/$/\\n"/' "$1"
echo '    "";'
