# Classifies the differences of programs, for same.sh. Input: the causes, the names of programs, and
# `diff -rN -U0 base present` of the folders with their outputs. Prints "listed NAME" or "unlisted
# NAME" for each name; appends "ROW NUMBER" to the file `used` for each cause that explains some, and
# "OUTPUT" to the file `which` for each output of an unlisted program that differs.
#
# A cause is a row "OUTPUTS | PATTERN | REASON": names of outputs with commas, and a regular
# expression that a changed line matches, with its sign: "-" is the line of the commit, "+" the
# present one. A difference is explained if each changed line of each output is. Lines of the output
# `instructions` are those of the PTX without the numbers of registers and labels: if all of them
# are explained, so is the PTX; `~` is the line of PTX that differs in these numbers only.
BEGIN { FS = "\n" }

FILENAME == ARGV[1] {
    cut = index($0, " | ")
    rest = substr($0, cut + 3)
    end = index(rest, " | ")
    rows++
    outputs[rows] = "," substr($0, 1, cut - 1) ","
    gsub(/ /, "", outputs[rows])
    pattern[rows] = substr(rest, 1, end - 1)
    next
}

FILENAME == "-" {
    flat = $0
    gsub(/\//, "_", flat)
    order[++names] = flat
    name[flat] = $0
    next
}

# "diff -rN -U0 base/FLAT/OUTPUT present/FLAT/OUTPUT"
/^diff -rN -U0 / {
    count = split($0, part, "/")
    output = part[count]
    flat = part[count - 1]
    head = 2
    next
}
head > 0 && /^(---|\+\+\+) / { head--; next }
/^@@ / { next }
/^[-+]/ { line($0) }

# row of the output that explains the line; 0: none
function row_of(output, text,    i) {
    for (i = 1; i <= rows; i++)
        if (index(outputs[i], "," output ",") && text ~ pattern[i]) return i
    return 0
}

function line(text,    row) {
    changed[flat, output]++
    # the manifest names the PTX by its hash
    if (output == "manifest" && text ~ /^[-+] *"ptx_hash": /) { hash[flat] = 1; return }
    if (output == "manifest") others[flat] = 1
    row = row_of(output, text)
    if (row) uses[flat, output, row] = 1
    else wrong[flat, output] = 1
}

function explained(flat, output,    i) {
    if (!((flat, output) in changed) || (flat, output) in wrong) return 0
    for (i = 1; i <= rows; i++) if ((flat, output, i) in uses) by[i] = 1
    return 1
}

function ptx_explained(flat,    row) {
    if (explained(flat, "ptx")) return 1
    if ((flat, "instructions") in changed) return explained(flat, "instructions")
    row = row_of("instructions", "~")
    if (row) by[row] = 1
    return row
}

function verdict(flat,    i, n, word, fine, any) {
    fine = 1
    split("", by)
    n = split("exit diagnostics json code manifest report", word, " ")
    for (i = 1; i <= n; i++) {
        if (!((flat, word[i]) in changed)) continue
        any = 1
        if (word[i] == "manifest" && !(flat in others) && (flat, "ptx") in changed) continue
        if (word[i] == "manifest" && flat in hash && !((flat, "ptx") in changed)) fine = 0
        if (!explained(flat, word[i])) fine = 0
    }
    if ((flat, "ptx") in changed) {
        any = 1
        if (!ptx_explained(flat)) fine = 0
    }
    return any && fine
}

function tell(flat,    i, n, word) {
    n = split("exit diagnostics json code ptx manifest report", word, " ")
    for (i = 1; i <= n; i++) if ((flat, word[i]) in changed) print word[i] >>which
}

END {
    for (k = 1; k <= names; k++) {
        fine = verdict(order[k])
        print (fine ? "listed " : "unlisted ") name[order[k]]
        if (fine) for (i in by) total[i]++
        else tell(order[k])
    }
    for (i in total) print i, total[i] >>used
}
