# help.awk SQLOCK.1 SQLOCK-RUN.1: print, as C, the help texts of the command,
# which are parts of its manual pages: cli_helps[] = {{command, text}, ...}
#
# Of sqlock.1 a command has its item of the list of commands, its item of the
# section JSON, and the section that is named after it; the program, "", has the
# options that all commands take, and the sections below.  Of sqlock-run.1 `run`
# has the beginning of the description and the sections below.  Of mdoc(7) what
# these pages use is understood; an argument (Ar) is written in capitals.

BEGIN {
    part["STOCK"] = "stock"
    part["DOCTOR"] = "doctor"
    part["URLS AND PASSWORDS"] = part["CONFIGURATION"] = part["JSON"] = ""
    part["EXIT STATUS"] = ""
    part["What the command gets", "run"] = part["ENVIRONMENT", "run"] = "run"
    part["EXIT STATUS", "run"] = "run"
    for (i = split("Ar Cm Em Ev Fl Fn In Li Nm Pa Sx Sy Xr", names); i > 0; i--)
        is_mode[names[i]] = 1
    split("Op [] Oo [] Bro {} Pq () Ql `` Sq '' Dq \"\"", names)
    for (i = 1; i in names; i += 2)
        around[names[i]] = names[i + 1]
}

FNR == 1 { page = FILENAME ~ /-run/ ? "run" : ""; section = ""; on = depth = indent = 0 }

# ------------------------------------------------------------ mdoc to text --

function plain(word) {
    gsub(/\\&/, "", word)
    gsub(/\\\(dq/, "\"", word)
    gsub(/\\e/, "\\", word)
    return word
}

function add(text) {
    words = words (is_glued || words == "" ? "" : " ") text
    is_glued = 0
}

function say(mode, word) {
    if (mode == "Ar")
        word = toupper(word)
    else if (mode == "Fl")
        word = "-" word
    else if (mode == "Fn")
        word = word "()"
    else if (mode == "In")
        word = "<" word ">"
    add(word)
}

# Return a line of macros, from the word at `from`, as text.
function render(line, from,    i, n, last, mode, closers, word, list) {
    n = split(line, list, " ")
    words = ""
    is_glued = 1
    for (last = n; last > from && list[last] ~ /^[.,;:)]$/; last--)
        continue
    for (i = from; i <= n; i++) {
        word = list[i]
        if (i == last + 1) { # the punctuation at the end is outside
            words = words closers
            closers = ""
        }
        if (word in around) {
            add(substr(around[word], 1, 1))
            is_glued = 1
            closers = substr(around[word], 2) closers
            mode = ""
        } else if (word == "Oc" || word == "Brc") {
            words = words substr(closers, 1, 1)
            closers = substr(closers, 2)
        } else if (word == "Ns") {
            is_glued = 1
        } else if (word == "Ap") {
            words = words "'"
            is_glued = 1
            mode = ""
        } else if (word == "Nm") {
            add("sqlock")
        } else if (word == "Fl" && (i == n || list[i + 1] == "Fl")) {
            add("-")
            is_glued = 1
        } else if (word in is_mode) {
            mode = word
        } else if (mode == "Xr" && list[i + 1] ~ /^[1-9]$/) {
            add(word "(" list[++i] ")")
        } else if (word ~ /^[.,;:)?!]$/) {
            words = words word
        } else if (word == "|") {
            add(word)
        } else {
            say(mode, plain(word))
        }
    }
    return words closers
}

# --------------------------------------------------------------- paragraphs --

function put(line) {
    if (is_apart && help[target] != "")
        help[target] = help[target] "\n"
    is_apart = 0
    help[target] = help[target] line "\n"
}

# Write the paragraph, wrapped, behind the tag of a list's item.
function flush_text(    n, i, list, line) {
    n = split(text, list, " ")
    line = tag
    if (tag != "" && length(tag) > indent - 1) {
        put(tag)
        line = ""
    }
    if (n == 0 && line != "")
        put(line)
    for (i = 1; i <= n; i++) {
        if (line == "" || (i == 1 && tag != "" && line == tag))
            line = sprintf("%-" indent "s", line) list[i]
        else if (length(line) + 1 + length(list[i]) > 80) {
            put(line)
            line = sprintf("%" indent "s", "") list[i]
        } else
            line = line " " list[i]
    }
    if (n > 0)
        put(line)
    text = tag = ""
}

function apart() {
    flush_text()
    is_apart = 1
}

function usage(head) {
    tag = "Usage: sqlock"
    text = head
    indent = length(tag) + 1
    flush_text()
    indent = 0
}

# Begin the text of a command at an item's head, which is its usage.
function begin(head) {
    flush_text()
    target = head
    sub(/ .*/, "", target)
    if (target == "run") # which has a page of its own
        target = "help"
    indent = 0
    is_apart = 1
    if (section == "JSON")
        text = "JSON:"
    else
        usage(head)
}

/^\.\\"/ { next }

/^\.S[hs]/ {
    apart()
    section = substr($0, 5)
    indent = depth = 0
    key = page == "" ? section : section SUBSEP page
    on = key in part
    target = page == "run" ? "run" : part[key]
    if (on)
        put(section)
    next
}

# The synopsis of `run`: a usage begins with .Nm and ends with the next.
page == "run" && section == "SYNOPSIS" {
    if ($1 == ".Nm" && head != "")
        usage(head)
    if ($1 == ".Nm")
        head = ""
    else if ($0 != ".Op Ar options")
        head = head (head == "" ? "" : " ") render(substr($0, 2), 1)
    next
}
page == "run" && section == "DESCRIPTION" && head != "" {
    usage(head)
    head = ""
    on = is_apart = 1
}

# The lists of commands: their items have texts of their own.
/^\.Bl/ && !depth && page == "" && (section == "JSON" || is_next) {
    depth = 1
    is_next = 0
    next
}
depth == 1 && /^\.It/ { begin(render(substr($0, 2), 2)); on = 1; next }
depth == 1 && /^\.El/ {
    apart()
    depth = 0
    target = ""
    on = section == "DESCRIPTION"
    next
}
/^The commands are:$/ { is_next = 1; next }
!on { next }

/^\.Bl/ { apart(); is_tagged = / -tag/; depth += depth > 0; next }
/^\.El/ { apart(); indent = 0; depth -= depth > 0; next }
/^\.It/ {
    flush_text()
    indent = is_tagged ? 24 : 2
    tag = is_tagged ? render(substr($0, 2), 2) : ""
    tag = (tag ~ /^--/ ? "      " : is_tagged ? "  " : "") tag
    next
}
/^\.Pp/ { apart(); next }
/^\.Dl/ { apart(); put("  " plain(substr($0, 5))); is_apart = 1; next }
/^\.Bd/ { apart(); is_literal = 1; next }
/^\.Ed/ { is_literal = 0; is_apart = 1; next }
is_literal { put("  " plain($0)); next }
/^\./ { text = text " " render(substr($0, 2), 1); next }
{ text = text " " plain($0) }

END {
    flush_text()
    print "/* made by help.awk */\n#include \"cli/cli.h\"\n"
    print "const char *const cli_helps[][2] = {"
    delete help["help"]
    for (name in help) {
        printf "    {\"%s\",\n", name
        n = split(help[name], list, "\n")
        for (i = 1; i < n; i++) {
            gsub(/\\/, "\\\\", list[i])
            gsub(/"/, "\\\"", list[i])
            printf "     \"%s\\n\"\n", list[i]
        }
        print "    },"
    }
    print "    {NULL, NULL},\n};"
}
