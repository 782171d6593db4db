# list.awk: the preprocessed text of pipec.h becomes a C program that prints the size of each
# structure, the offset and size of each member, the value of each enumerator, and each function.
{ text = text " " $0 }

function trim(word) {
    gsub(/[ \t]+/, " ", word)
    gsub(/^ | $/, "", word)
    return word
}

# Each declarator of "const char *name, *type", "int64_t extents[5]" or "void (*f)(void *)"
function members(name, declaration,   parts, count, i, word) {
    declaration = trim(declaration)
    if (match(declaration, /\(\*[a-z_]+\)/)) {
        print "    MEMBER(" name ", " substr(declaration, RSTART + 2, RLENGTH - 3) ")"
        return
    }
    count = split(declaration, parts, ",")
    for (i = 1; i <= count; i++) {
        word = trim(parts[i])
        sub(/ *\[.*/, "", word)
        if (match(word, /[A-Za-z_0-9]+$/)) print "    MEMBER(" name ", " substr(word, RSTART) ")"
    }
}

function structure(name, body,   parts, count, i) {
    print "    SIZE(" name ")"
    count = split(body, parts, ";")
    for (i = 1; i <= count; i++) members(name, parts[i])
}

function enumeration(body,   parts, count, i, word) {
    count = split(body, parts, ",")
    for (i = 1; i <= count; i++) {
        word = trim(parts[i])
        sub(/ *=.*/, "", word)
        if (word != "") print "    VALUE(" word ")"
    }
}

END {
    rest = text
    while (match(rest, /typedef (struct|enum) Pipec[A-Za-z]* *{[^}]*}/)) {
        item = substr(rest, RSTART, RLENGTH)
        rest = substr(rest, RSTART + RLENGTH)
        split(item, words, / +/)
        body = substr(item, index(item, "{") + 1)
        sub(/}$/, "", body)
        if (words[2] == "struct")
            structure(words[3], body)
        else
            enumeration(body)
    }
    rest = text
    while (match(rest, /__attribute__\(\(visibility\("default"\)\)\)[^;]*;/)) {
        item = substr(rest, RSTART, RLENGTH - 1)
        rest = substr(rest, RSTART + RLENGTH)
        sub(/^__attribute__\(\(visibility\("default"\)\)\)/, "", item)
        print "    puts(\"" trim(item) "\");"
    }
}
