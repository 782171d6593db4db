# arms.awk -v first=N -v sites=FILE [-v all=1] SOURCE.c: the source with a test before each piece of
# a rule, which can remove the piece. Line numbers do not change. Appends "NUMBER FILE:LINE:NAME" to
# `sites` for each piece, from number `first` on. tools/arms.sh defines the pieces.

function site(name) {
    print first + count, FILENAME ":" at ":" name >> sites
    return first + count++
}

# Adjacent labels of `case` form a group with one body. A group with only a `break` has no arms.
function close_group(body,    i) {
    for (i = 1; i <= open; i++) {
        group_of[++labels] = body ~ /^ *break;/ ? 0 : groups + 1
        is_last[labels] = i == open
    }
    if (open) groups++
    open = 0
}

function find_groups(    i, text) {
    for (i = 1; i <= lines; i++) {
        text = line[i]
        while (match(text, /case [A-Z][A-Za-z0-9_]*:/)) {
            if (substr(text, 1, RSTART - 1) !~ /^ *$/) close_group(substr(text, 1, RSTART - 1))
            open++
            text = substr(text, RSTART + RLENGTH)
        }
        sub(/^ *(\/\*.*)?$/, "", text)
        if (text != "") close_group(text)
    }
}

function mark_labels(text,    out, label) {
    out = ""
    while (match(text, /case [A-Z][A-Za-z0-9_]*:/)) {
        label = substr(text, RSTART + 5, RLENGTH - 6)
        out = out substr(text, 1, RSTART + RLENGTH - 1)
        text = substr(text, RSTART + RLENGTH)
        if (!group_of[++seen] || !steps) continue
        out = out " if (arm_lost(" site(label) ")) break; "
        out = out (is_last[seen] ? "arm_" group_of[seen] ":;" : "goto arm_" group_of[seen] ";")
    }
    return out text
}

function mark_kinds(text,    out, kind) {
    out = ""
    while (steps && match(text, /[=!]= ROW_[A-Z]+/)) {
        kind = substr(text, RSTART + 3, RLENGTH - 3)
        out = out substr(text, 1, RSTART + 2) "(arm_lost(" site(kind) ") ? (RowKind)-1 : " kind ")"
        text = substr(text, RSTART + RLENGTH)
    }
    return out text
}

function is_balanced(text,    opened, closed) {
    opened = text
    closed = text
    return gsub(/\(/, "", opened) == gsub(/\)/, "", closed)
}

# The text from line `at` to the end of its statement or its condition; sets `ends` to the last line
function whole(    text, last) {
    for (ends = at; ends < lines; ends++) {
        last = line[ends]
        sub(/ *\/\*.*\*\/ *$/, "", last)
        text = text last
        if (last ~ /[;{}:]$/ || last ~ /^ *(#|$)/) break
        if (text ~ /^ +(} )?(else )?(if|for|while|switch) / && is_balanced(text)) break
    }
    return text
}

function is_statement(text) {
    if (!is_balanced(text)) return 0
    if (before !~ /[;{}:)]$|\*\/$|else$/ || text !~ /;$/) return 0
    if (text ~ /^ +(else|goto|assert)/ || text ~ /(return|continue|break)[^;]*;/) return 0
    if (text ~ /^ +(if|for) \(/) return 1
    return text ~ /^ +[a-z_]+((->|\.)[a-z_]+|\[[^]]*\])* ?([|&+-]?=[^=]|\(|\+\+)/
}

# A statement, of one or several lines, of a function that joins paths. Line `closes` ends a
# statement that began on a line above.
function mark_joined(text,    question, mark) {
    if (at < closes) return text
    if (at == closes) return text " }"
    if (!joins || !is_statement(whole())) return text
    question = "if (!arm_lost(" site(joins "()") ")) "
    match(text, /^ +/)
    mark = substr(text, 1, RLENGTH)
    text = substr(text, RLENGTH + 1)
    if (text ~ /^if \(/) return mark question text
    closes = ends
    return mark "{ " question text (ends == at ? " }" : "")
}

# The first condition of an `if` on one line is never true.
function mark_conditions(text,    start, past, depth, letter) {
    if (!all || text ~ /^ *(#|\/?\*)/ || !match(text, /(^|[ }])if \(/)) return text
    start = RSTART + RLENGTH
    depth = 1
    for (past = start; depth > 0 && past <= length(text); past++) {
        letter = substr(text, past, 1)
        depth += (letter == "(") - (letter == ")")
    }
    if (depth > 0) return text
    return substr(text, 1, start - 1) "!arm_lost(" site("if") ") && (" \
        substr(text, start, past - 1 - start) ")" substr(text, past - 1)
}

# Rows of tables are emptied at the start of the program.
function mark_rows(text) {
    if (text ~ /^static const [A-Za-z]+ [a-z_]+\[/ && text ~ /= \{$/) {
        table = text
        sub(/^static const [A-Za-z]+ /, "", table)
        sub(/\[.*/, "", table)
        sub(/^static const /, "static ", text)
    } else if (table && text ~ /^    \[[A-Z_]+\] =( \{)?$/) {
        outer = text
        gsub(/^ *|\].*/, "", outer)
        outer = outer "]"
    } else if (table && text ~ /^ +\[[A-Z_]+\] += \{.*\},?$/) {
        inner = text
        gsub(/^ *|\].*/, "", inner)
        inner = inner "]"
        name = table (text ~ /^        / ? outer : "") inner
        cleared = cleared " if (arm_lost(" site(name) "))"
        cleared = cleared " __builtin_memset(&" name ", 0, sizeof " name ");"
    } else if (text ~ /^}/) {
        table = ""
    }
    return text
}

# Hooks that a rule may leave empty
function mark_hooks(text,    rest, hook) {
    if (text ~ /^static const Rule rule = \{/) {
        in_rule = 1
        sub(/^static const /, "static ", text)
    }
    rest = in_rule ? text : ""
    while (match(rest, /\.(enters|second|follows|trips|meets) = [a-z]+/)) {
        hook = substr(rest, RSTART + 1, RLENGTH - 1)
        sub(/ = .*/, "", hook)
        rest = substr(rest, RSTART + RLENGTH)
        cleared = cleared " if (arm_lost(" site("rule." hook) ")) rule." hook " = 0;"
    }
    rest = in_rule ? text : ""
    while (match(rest, /(\.every|\[(ACCESS|SCOPE|STAGE|CONTROL)_[A-Z_]+\]) = [a-z_]+/)) {
        hook = substr(rest, RSTART, RLENGTH)
        sub(/ = .*/, "", hook)
        if (hook ~ /^\[/) hook = "." tolower(substr(hook, 2, index(hook, "_") - 2)) hook
        rest = substr(rest, RSTART + RLENGTH)
        cleared = cleared " if (arm_lost(" site("rule.on" hook) ")) rule.on" hook " = 0;"
    }
    if (text ~ /;$/) in_rule = 0
    return text
}

# Columns of the rows of Code: each effect that a row has is taken from it.
function mark_effects(    row, column, names) {
    split("control stage scope access executes signals", names, " ")
    while ((getline row < "flow/rows.def") > 0) {
        if (row !~ /^ROW\(/) continue
        split(row, column, /[(,] */)
        for (i = 1; i in names; i++) {
            if (column[i + 3] ~ /^(ON|NONE|NOTHING|EACH)$/) continue
            hook = "row_effects[ROW_" column[2] "]." names[i]
            cleared = cleared " if (arm_lost(" site(hook) ")) " hook " = 0;"
        }
    }
}

function enter_function(text) {
    if (text ~ /^[a-zA-Z].*\(/) {
        function_name = text
        sub(/\(.*/, "", function_name)
        sub(/.*[ *]/, "", function_name)
        steps = all || function_name ~ /(^|_)(step|steps|follow|visit|asks)(_|$)/
        joins = function_name ~ /(^|_)(joins?|meets?|both|either|merge|wider)(_|$)/
        joins = joins ? function_name : ""
    } else if (text ~ /^}/) {
        joins = steps = ""
    }
}

{ line[++lines] = $0 }

END {
    find_groups()
    printf "_Bool arm_lost(int); "
    for (at = 1; at <= lines; at++) {
        text = line[at]
        enter_function(text)
        print mark_kinds(mark_joined(mark_labels(mark_conditions(mark_rows(mark_hooks(text))))))
        if (text !~ /^ *$/) before = text
        sub(/ *\/\*.*\*\/ *$/, "", before)
    }
    if (FILENAME == "flow/code.c") mark_effects()
    if (cleared) print "__attribute__((constructor)) static void clear_arms(void) {" cleared " }"
}
