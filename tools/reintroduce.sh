#!/bin/sh
# reintroduce.sh [NAME..]: tests that the adversary finds faults that the checker or the code
# generator once had (docs/adversary.md). Each call of put_back puts one of them into a copy of the
# present sources; adversary-test must then fail, with the options of tools/test.sh or in one of two
# larger samples. A change that has no effect on the sources, or does not build, is a failure too.
# JOBS (2) processes have a copy each. The last line has the numbers of faults that were put back
# and noticed. Takes about half a minute per fault; not part of `make test`.
set -u
JOBS=${JOBS:-2}
trees=${BUILD:-build}/reintroduce
wanted=$*
floors=$(sed -n '/^FLOORS := /,/[^\\]$/{s/^FLOORS := //; s/\\$//; p;}' Makefile)

# restore: restores the sources; unchanged files are not compiled again
restore() {
    for folder in $floors; do
        mkdir -p "$tree/$folder"
        (cd "$tree" && find "$folder" -type f) | while read -r made; do
            [ -e "$made" ] || rm -f "$tree/$made"
        done
        find "$folder" -type f | while read -r source; do
            cmp -s "$source" "$tree/$source" && continue
            mkdir -p "$tree/${source%/*}"
            cp "$source" "$tree/$source"
        done
    done
}

build() {
    (cd "$tree" && make -j2 CC="${CC:-cc}" CFLAGS="-O1 -w" build/release/adversary-test) \
        >"$tree/make.log" 2>&1
}

run() { timeout 3000 build/release/adversary-test "$@" >adversary.log 2>&1; }
adversary() {
    (cd "$tree" && run && run --theme each && run --theme each --count 4200 --seed 100000 &&
        run --theme edges --count 1000)
}

# put_back NAME FILE WHAT EXPRESSION..: a description of the fault, and the sed expressions that
# make it
put_back() {
    name=$1 file=$2 what=$3
    shift 3
    case " ${wanted:-$name} " in *" $name "*) ;; *) return ;; esac
    number=$((number + 1))
    [ $((number % JOBS)) -eq $((job % JOBS)) ] || return
    echo put
    restore
    cp "$file" "$tree/$file"
    for expression; do
        sed "$expression" "$tree/$file" >"$tree/changed"
        cmp -s "$tree/$file" "$tree/changed" &&
            { echo "reintroduce: $name does not apply to $file any more"; return; }
        mv "$tree/changed" "$tree/$file"
    done
    if ! build; then
        echo "reintroduce: $name does not build"
    elif adversary; then
        echo "reintroduce: nothing fails with $name: $what"
    elif grep -q ' escapes, the first' "$tree/adversary.log"; then
        echo noticed
        grep ' escapes, the first' "$tree/adversary.log" | grep -v '^with ' |
            sed "s/^/reintroduce: with $name, /"
    else
        echo "reintroduce: with $name it ends without an escape: $(tail -n 1 "$tree/adversary.log")"
    fi
}

set_up() {
    mkdir -p "$tree"
    for name in *; do
        case " build $floors " in *" $name "*) continue ;; esac
        [ -e "$tree/$name" ] || ln -s "$PWD/$name" "$tree/$name"
    done
    restore
}

faults() {
put_back A1 derive/plan/plan_control.c 'a turn is handed over under a condition of lanes' \
    's/ || control_of_lanes(branch)) {/) {/'
put_back A2 algebra/range.c 'numbers have no width' \
    's/^    if (!residue || algebra->launched || !type_is_integer(type)) return/    return/'
put_back A3 check/padding/padding_refuse.c 'any condition is a mask' \
    's/^    if (!refused->controls .*find_mask, &mask);/& if (mask.found) return;/'
put_back A4 flow/solve.c 'a loop is followed once' \
    's/^    for (bool again = changed || !last; again;) {/    int rounds = 0; &/' \
    's/^        again = join_head(.*next.*;/& again = again \&\& ++rounds < 1;/'
in_loop='w->code->regions.items[row->region].depth > 1'
put_back A5 derive/written/written.c 'a variable that is declared in a loop counts as written' \
    "s/OBJECT_LOCAL) written_open(\(.*\));/OBJECT_LOCAL \&\& $in_loop) written_set(\1, ALL);/" \
    's/ALL/elements_span(w->arena, 0, 1)/'
put_back A6 check/races/races.c 'a race that contents of memory decide' \
    's/^\(        if (who\)) report/\1 \&\& !a->notes->unseen \&\& !b->notes->unseen) report/'
put_back A7 check/grid/carried.c 'what is carried from tile to tile of the grid' \
    's/^    if (!prog->persistent || has_one_tile(prog)) return;/    return;/'
put_back A8 algebra/range.c 'no divisor is 0' \
    's/^    return range.least <= 0 \&\& range.most >= 0 \&\& !is_nonzero.*/    return false;/'
put_back A9 check/contents/padding_number.c 'padding divided by what may be 0 is 0' \
    's/^    if (pad_has_zero(b)) return pad_any();/    if (pad_is(a, 0)) return a; &/'
put_back A10 check/races/races_value.c 'tiles write an element in one iteration only' \
    's/^    if (d.loops.count == 0 && d.ranks == NULL) return 0;/    return 0;/'
put_back A11 check/contents/padding_fill.c 'a condition decides if one of its operands does' \
    's/^    return !operand->padding && ((op == PAD_AND/    return ((op == PAD_AND/'
put_back A12 check/contents/padding_fill.c 'all tensors end at the same position' \
    's/^    if (!a->sub != !b->sub || !same_poly(a->sub/    return true; &/'
put_back A13 check/contents/padding_number.c 'integers that are at least 0 do not wrap' \
    's/ || value.hi > all.hi) return all;/) return all; value.hi = fmin(value.hi, all.hi);/'
put_back A14 check/deadlock/deadlock_tiles.c 'stages held across tiles add no deadlock' \
    's/ || !passes_in_section(role, pipes)//'
put_back A15 check/grid/carried.c 'a later tile fills a stage' \
    's/ && (stage || tile->op != ASSIGN_SET)/ \&\& tile->op != ASSIGN_SET/'
put_back A16 algebra/form.c 'a sum of floats is rounded in one way only' \
    's/^\(    Rounding rounding = \)rounding_of(role, expr);/\1OWN;/' \
    's/ OWN;/ {.a = expr->binary.left, .b = expr->binary.right};/'
put_back A17 prog/rounding.c 'the inverse of a divisor is a number of f32' \
    's/^        if (!isnormal(inverse)) return/        if (!isfinite(1 \/ divisor)) return/'
held='padding_written(p, tile->element)->at[0].element'
held="pad_within(pad_within($held, OP_LE, 0x1p63), OP_GE, -0x1p63)"
put_back A18 check/contents/padding_read.c 'what a variable or a tile holds is finite' \
    "s/^    if (!axis.single) return .*/    if (!axis.single) return fill_of(\&p->fills, $held);/"
put_back A19 check/contents/padding_number.c \
    'a number of padding fits the type that it is cast to' \
    's/number_rounded(to, /number_rounded(E_F32, /g'
put_back A20 check/contents/padding_fill.c 'what padding decides in a loop is combined by nothing' \
    's/^        if (carried .*marks |= MARK_CARRIED;//'
put_back A21 codegen/chunks.c 'elements that a statement does not store are read' \
    's/^    bool masks = walk->moves->masks;/    bool masks = false;/'
put_back A22 check/padding/padding_refuse.c 'what memory holds is the same in all iterations' \
    's/^        poly_has_version(.*region->next))$/        false)/'
put_back A23 flow/versions.c 'a producer reads from memory what its consumer reads' \
    's/is_of_producer, v)) >= 0;)/is_of_producer, v)) >= 0 \&\& false;)/'
put_back A24 check/contents/padding_number.c \
    'an integer that a cast wraps is computed from no other' \
    's/^    all.marks = a.marks & MARKS_EARLIER .*//'
put_back A25 check/padding/padding_named.c 'an element that the program names is of the tensor' \
    's/^\(    return fill->padded\) ?/\1 \&\& false ?/'
put_back A26 check/padding/padding_named.c 'an element that the program names is no position' \
    's/if (sub->kind != X_INDEX && check_subscript/if (false \&\& check_subscript/'
}

rm -f "$trees"/*.log
tree=$trees/1
set_up
build || { cat "$tree/make.log"; echo "reintroduce: it does not build"; exit 2; }
adversary || { cat "$tree/adversary.log"; echo "reintroduce: it fails without any fault"; exit 2; }
for job in $(seq "$JOBS"); do
    tree=$trees/$job number=0
    set_up
    faults >"$trees/$job.log" &
done
wait
grep -hvx -e put -e noticed "$trees"/[0-9]*.log
back=$(grep -hx put "$trees"/[0-9]*.log | wc -l)
noticed=$(grep -hx noticed "$trees"/[0-9]*.log | wc -l)
echo "$back put back, $noticed noticed"
[ "$back" -eq "$noticed" ]
