#!/bin/sh
# floors.sh: checks includes between floors as listed in CONTRIBUTING.md. Other floors may include
# only the public headers of a floor. cli/ and python/ may include only include/pipec.h and
# themselves.
set -eu
awk '
BEGIN {
    split("util:util lexer:util,lexer parser:util,lexer,parser prog:util,prog " \
          "elaborate:util,parser,prog,elaborate algebra:util,prog,algebra " \
          "flow:util,prog,algebra,flow derive:util,prog,algebra,flow,derive " \
          "check:util,parser,prog,elaborate,algebra,flow,derive,check launch:util,launch " \
          "codegen:util,prog,flow,derive,launch,codegen reference:util,prog,launch,reference " \
          "emulator:util,launch,emulator " \
          "emulator/workload:util,launch,emulator,emulator/workload runtime:util,launch,runtime " \
          "lib:util,lexer,parser,prog,elaborate,flow,derive,check,launch,codegen,reference," \
          "emulator,emulator/workload,runtime,include,lib cli:include,cli " \
          "python:include,python", rows, " ")
    for (i in rows) {
        split(rows[i], row, ":")
        n = split(row[2], may, ",")
        for (j = 1; j <= n; j++) allowed[row[1], may[j]] = 1
    }
    doors = " " \
            "util/util.h " \
            "util/json.h " \
            "util/errors.def " \
            "util/elements.def " \
            "lexer/lexer.h " \
            "parser/parser.h " \
            "parser/ast.h " \
            "prog/prog.h prog/expr.h prog/layout.h prog/target.h prog/tile.h prog/unsafe.h " \
            "prog/eval.h prog/edit.h " \
            "prog/key.h " \
            "prog/stmt.h " \
            "elaborate/elaborate.h " \
            "algebra/algebra.h " \
            "flow/code.h " \
            "flow/solve.h " \
            "flow/elements.h flow/touched.h " \
            "flow/context.h flow/slice.h flow/machine.h " \
            "flow/origin.h " \
            "flow/multiplied.h " \
            "flow/held.h " \
            "flow/uniform.h " \
            "flow/arrivals.h " \
            "flow/values.h flow/again.h " \
            "flow/match.h " \
            "derive/derive.h " \
            "derive/plan.h " \
            "derive/plan/linear.h " \
            "derive/tiles.h " \
            "derive/order.h derive/written.h " \
            "derive/waits/lags.h " \
            "derive/resources/resources.h " \
            "check/check.h " \
            "check/passes.def " \
            "prog/intrinsics.def prog/bits.h prog/number.h prog/rounding.h " \
            "launch/launch.h " \
            "launch/manifest.h launch/pack.h launch/common.h " \
            "codegen/codegen.h " \
            "reference/reference.h " \
            "emulator/emulator.h emulator/workload/workload.h " \
            "runtime/runtime.h " \
            "include/pipec.h "
    # public headers that only some floors may include
    only["parser/ast.h"] = " elaborate lib "
    only["elaborate/elaborate.h"] = " check "
    only["parser/parser.h"] = " lib "
    only["check/check.h"] = " lib "
    # only these fill facts of the program, which all others read
    only["prog/edit.h"] = " elaborate derive "
    only["prog/key.h"] = " flow check "
    only["check/passes.def"] = " lib "
    only["launch/pack.h"] = " lib "
    only["launch/common.h"] = " lib "
    # codegen/ prints rows, without access to the results of rules
    split("solve context slice machine elements touched origin multiplied held uniform " \
          "arrivals values match", rules, " ")
    for (i in rules) only["flow/" rules[i] ".h"] = " derive check lib "
    split("derive tiles order written waits/lags resources/resources", derived, " ")
    for (i in derived) only["derive/" derived[i] ".h"] = " check lib "
    # statements: all other floors read the rows that they are lowered to
    statements = " prog elaborate reference flow/lower.c "
}
function floor(path) {
    if (index(path, "emulator/workload/") == 1) return "emulator/workload"
    sub(/\/.*/, "", path)
    return path
}
function may_walk(file, from) {
    return index(statements, " " from " ") || index(statements, " " file " ")
}
/^#[ \t]*include[ \t]*"/ {
    split($0, quoted, "\""); path = quoted[2]; from = floor(FILENAME); to = floor(path)
    if (path == "pipe.tab.h") next
    why = ""
    if (path !~ /\//) why = path " is not a path from the root"
    else if (!((from, to) in allowed)) why = from "/ may not include " to "/"
    else if (from != to && index(doors, " " path " ") == 0) why = path " is private to " to "/"
    else if (from != to && path in only && index(only[path], " " from " ") == 0)
        why = path " is not for " from "/"
    else if (path == "prog/stmt.h" && !may_walk(FILENAME, from))
        why = FILENAME " reads rows, not statements"
    if (why) { printf "%s:%d: %s\n", FILENAME, FNR, why; bad = 1 }
}
END { exit bad }' $(find util lexer parser prog elaborate algebra flow derive check launch codegen \
    reference emulator runtime lib cli python/src -name '*.[chly]' -o -name '*.def')

# Files of these floors must not call each other in cycles; in codegen/ only expressions and the
# addresses in them do
circles=$(sh tools/circles.sh util parser prog derive launch codegen reference \
    emulator/workload runtime lib cli)
[ "$circles" = "codegen/layout.c codegen/values.c" ] ||
    { echo "call circles: $circles" >&2; exit 1; }
