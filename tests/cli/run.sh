#!/bin/sh
# run.sh BUILD_DIR: the command line: exit codes, messages, files. One line per case, then "N
# passed, N failed[, N skipped]". The stand-in driver replaces a GPU, so that the cases are the same
# on every machine.
set -u
here=$(cd "$(dirname "$0")" && pwd)
B=$(cd "$1" && pwd)
P=$B/pipec
STANDIN=$B/standin/libcuda.so.1
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cd "$scratch" || exit 1
cp "$here"/*.pipe "$here"/../../examples/*.pipe .
PIPEC_LIBCUDA=/nonexistent/libcuda.so.1
PIPEC_CACHE=$scratch/cache
export PIPEC_LIBCUDA PIPEC_CACHE
passed=0 failed=0 skipped=0

# verdict NAME PROBLEM: an empty problem is a pass
verdict() {
    if [ -z "$2" ]; then
        echo "pass  $1"
        passed=$((passed + 1))
    else
        echo "FAIL  $1: $2"
        sed 's/^/      | /' out err 2>/dev/null | head -n 20
        failed=$((failed + 1))
    fi
}

# expect NAME CODE TEXT COMMAND..: checks the exit code, and for a text in the output; `-`: no
# output
expect() {
    name=$1 code=$2 text=$3
    shift 3
    "$@" >out 2>err </dev/null
    got=$?
    problem=
    [ $got -eq "$code" ] || problem="exit code $got, not $code"
    if [ "$text" = - ]; then
        [ ! -s out ] && [ ! -s err ] || problem="${problem} prints something"
    elif ! cat out err | grep -qF -- "$text"; then
        problem="${problem} does not print \"$text\""
    fi
    verdict "$name" "$problem"
}

# holds NAME COMMAND..: the command succeeds; in the scratch folder
holds() {
    name=$1
    shift
    if "$@" >/dev/null 2>&1; then verdict "$name" ""; else verdict "$name" "not so"; fi
}

# skip WHAT: prints and counts it
skip() {
    echo "SKIP  $1"
    skipped=$((skipped + 1))
}

absent() { for file in "$@"; do [ ! -e "$file" ] || return 1; done; }
printed() { grep -qF -- "$1" out; }
reported() { grep -qF -- "$1" err; }

# gpu NAME CODE TEXT WORDS COMMAND..: as expect, with WORDS for the stand-in driver
gpu() {
    name=$1 code=$2 text=$3 words=$4
    shift 4
    expect "$name" "$code" "$text" env PIPEC_LIBCUDA="$STANDIN" PIPEC_STANDIN="$words" "$@"
}

# ---- the command itself
expect "no command" 2 "pipec check" "$P"
expect "help" 0 "pipec explain" "$P" --help
expect "version" 0 "pipec 0." "$P" --version
expect "unknown command" 2 'error: unknown command `frob`' "$P" frob
holds "the commands are one line away" \
    sh -c 'grep -qF "pipec --help" err && [ "$(wc -l <err)" = 2 ]'
# The README shows this run; the time and the reason for the emulator are those of a machine
shown() { sed -e 's|^examples/||' -e 's/driver: .*)$/driver: ..)/' \
    -e 's/^  [0-9.]* [mun]*s, .*/  time/'; }
sed -n '/^examples\/axpy.pipe: kernel/,/^```/p' "$here/../../README.md" | sed '$d' | shown >readme
"$P" run axpy.pipe 2>&1 | shown >printed
holds "the run in the README" cmp readme printed
expect "a command that is nearly right" 2 'did you mean `check`?' "$P" chekc axpy.pipe
# An option of other compilers | a part of its help | what following it gives
while IFS='|' read -r option help follow; do
    expect "the option $option of other compilers" 2 "help: $help" "$P" build copy.pipe "$option"
    # shellcheck disable=SC2086
    holds "$option, after the help" "$P" $follow
done <<'EOF'
-v|remove it|build copy.pipe --report
--verbose|remove it|build copy.pipe --report
-V|`pipec --version`|--version
-q|remove it|build copy.pipe
-O3|remove it|build copy.pipe
-c|remove it: `pipec build FILE -o FILE.ptx`|build copy.pipe -o copy.ptx
-S|remove it: `pipec build FILE -o FILE.ptx`|build copy.pipe -o copy.ptx
--ptx|remove it: `pipec build FILE -o FILE.ptx`|build copy.pipe -o copy.ptx
-g|remove it|build copy.pipe
-lineinfo|remove it|build copy.pipe
--arch=sm_90|write `--target sm_90a`, or in the program|build copy.pipe --target sm_90a
-arch=sm_90a|write `--target sm_90a`, or in the program|build copy.pipe --target sm_90a
-gencode=arch=compute_90|write `--target sm_90a`, or in the program|build copy.pipe --target sm_90a
-Wall|`-D warnings`|build copy.pipe -D warnings
-Dwarnings|write `-D warnings`|build copy.pipe -D warnings
-use_fast_math|remove it|build copy.pipe
--BN=128|write a static, an extent or a scalar without `-`: `BN=128`|build gemm.pipe BN=128
-DBN=128|write a static, an extent or a scalar without `-`: `BN=128`|build gemm.pipe BN=128
EOF
expect "a kernel in the place of a variant" 2 'write the kernel after the file: `two.pipe second`' \
    "$P" build two.pipe:second
holds "a kernel after the file" "$P" build two.pipe second
expect "an option that is nearly right" 2 'did you mean `--seed`?' "$P" run axpy.pipe --seeds=3
expect "an option of one dash" 2 'did you mean `--on`?' "$P" run axpy.pipe -on emulator
expect "a wrong option" 2 'help: `pipec run --help` lists its arguments' \
    "$P" run axpy.pipe --frobnicate
holds "two short lines" sh -c '[ "$(wc -l <err)" = 2 ] && [ "$(wc -c <err)" -lt 120 ]'
expect "standard output is closed" 2 "cannot write standard output: it is closed" \
    sh -c "'$P' run axpy.pipe N=5 --on emulator >&-"
expect "closed and silent" 0 - sh -c "'$P' check axpy.pipe >&-"
expect "a file does not become standard output" 2 "it is closed" \
    sh -c "'$P' run axpy.pipe N=5 --on emulator --save Y=closed.npy >&-"
holds "the file holds data alone" \
    sh -c "'$P' run axpy.pipe N=5 --on emulator --save Y=open.npy && cmp open.npy closed.npy"
expect "standard error is closed" 1 - sh -c "echo kernel | '$P' check - 2>&-"
expect "standard input is closed" 2 "error[P0900]" sh -c "'$P' check - <&-"
expect "a file for a command" 2 'help: `pipec run axpy.pipe` runs it' "$P" axpy.pipe
for command in check build run cache explain; do
    expect "$command --help" 0 "Usage: pipec $command" "$P" $command --help
    expect "$command --frob" 2 'unknown option `--frob`' "$P" $command --frob
done
expect "option without its value" 2 '`--seed` needs a value' "$P" run axpy.pipe --seed
expect "bench without a GPU" 0 '`--bench` measures a GPU only' "$P" run axpy.pipe N=10 --bench
expect "flag with a value" 2 '`--bench` takes no value' "$P" run axpy.pipe --bench=3

# ---- check
expect "check is silent when all is right" 0 - "$P" check axpy.pipe two.pipe
expect "check of what is not proved" 4 \
    "incomplete[P0490]: the operations on the barriers of pipe \`rows\` are not proved" \
    "$P" check axpy.pipe unproved.pipe
expect "an error is worse than what is not proved" 1 "incomplete[P0490]" \
    sh -c "echo kernel >bad.pipe; '$P' check unproved.pipe bad.pipe"
expect "what is not proved, denied" 1 "error[P0490]" "$P" check -D incomplete unproved.pipe
expect "build of what is not proved" 4 "incomplete[P0490]" "$P" build unproved.pipe
holds "goes on" test -s unproved.ptx
expect "run of what is not proved" 4 "right (all 1000 elements checked)" "$P" run unproved.pipe
expect "check with times" 0 "part             runs           ms      %        steps" \
    "$P" check --times two.pipe
holds "times of the kernels" sh -c "grep -Eq '^written +2 ' err && grep -Eq '^races +2 ' err"
expect "check without times" 0 - "$P" check two.pipe
expect "check without a file" 2 "no file is given" "$P" check
expect "check reads standard input" 1 "<stdin>:1:" sh -c "echo kernel | '$P' check -"
expect "check counts errors" 1 "2 errors" \
    sh -c "printf 'const A = B;\nconst C = D;\nkernel k(X: f32[N]) for sm_90a {}' | \
        '$P' check - 2>&1 | sed 's/^[3-9] errors/2 errors/'; \
        echo kernel | '$P' check - >/dev/null 2>&1"
expect "check has more than a missing file" 1 "error[P0900]: cannot open" \
    sh -c "echo kernel >bad.pipe; '$P' check missing.pipe bad.pipe"
expect "missing file" 2 'error[P0900]: cannot open `missing.pipe`: No such file' \
    "$P" check missing.pipe
expect "a shipped kernel" 0 "kernel \`linear:low\`" "$P" run kernels:linear M=3 N=8 K=8
expect "a variant of it" 0 "kernel \`linear:swapped\`" "$P" run kernels:linear:swapped M=3 N=8 K=8
expect "check of one" 0 - "$P" check kernels:linear:in_turn
expect "choose of one" 0 "chosen" "$P" choose kernels:linear M=64 N=64 K=64
expect "no shipped kernel" 2 "these are shipped: \`kernels:" "$P" check kernels:none
expect "a file with the name of one" 2 'cannot open `./kernels:linear`' "$P" check ./kernels:linear
expect "build of one" 0 - "$P" build kernels:linear:low
holds "into a file of its name" test -s linear.ptx
expect "folder" 2 "is a folder" "$P" check .
expect "json of right files" 0 '{"file":"axpy.pipe","diagnostics":[]}' \
    "$P" check --format=json axpy.pipe
expect "json of a missing file" 2 '{"file":"missing.pipe","diagnostics":[{"code":"P0900"' \
    "$P" check --format=json missing.pipe
expect "json has places" 1 '"line":1,"column":' sh -c "echo 'kernel 7' | '$P' check - --format=json"
expect "format is text, json or sarif" 2 'takes text, json or sarif' \
    "$P" check axpy.pipe --format=xml
expect "other commands have no sarif" 2 'takes text or json' "$P" build axpy.pipe --format=sarif

# ---- check: statics
expect "every combination of statics" 1 "note: with CAUSAL = 1" "$P" check arms.pipe
holds "reported once" sh -c '[ "$(grep -c "error\[P0301\]" err)" = 1 ]'
expect "a static that is given" 0 - "$P" check arms.pipe CAUSAL=0
expect "the arm that is given" 1 "P0301" "$P" check CAUSAL=1 arms.pipe
holds "is no other combination" sh -c '! grep -q "note: with" err'
expect "build takes its own combination" 0 - "$P" build arms.pipe
expect "check of an extent" 2 '`N` is set at launch' "$P" check copy.pipe N=5
expect "check of another static" 2 'did you mean `CAUSAL`' "$P" check arms.pipe CAUSAL=0 CAUSA=0
expect "each file takes its statics" 0 - "$P" check arms.pipe copy.pipe CAUSAL=0 T=128
expect "a value that no file takes" 2 'no file has a static `Z`' "$P" check axpy.pipe copy.pipe Z=1
expect "a value of several kernels" 2 '`two.pipe` has no static `Z`' "$P" check two.pipe Z=1
cp copy.pipe T=1.pipe
expect "a file with an equals sign" 0 - "$P" check ./T=1.pipe
expect "combinations that do not fit are a note" 0 "11 of 18 combinations" "$P" check gemm.pipe
expect "and denied an error" 1 "error[P0162]" "$P" check -D notes gemm.pipe
expect "what build refuses, check refuses" 1 "error[P0290]" "$P" check reduces.pipe
expect "as build does" 1 "error[P0290]" "$P" build reduces.pipe

# ---- check: SARIF
valid() { (cd "$here/../.." && "$B/unit/sarif" "$scratch/out"); }
expect "sarif of right files" 0 '"results":[]' "$P" check --format=sarif axpy.pipe two.pipe
holds "sarif without results is valid" valid
echo 'kernel 7' >'b d.pipe'
expect "sarif of several files is one log" 1 '"uri":"b%20d.pipe"' \
    "$P" check --format=sarif axpy.pipe 'b d.pipe' missing.pipe uncovered.pipe
holds "sarif is valid" valid
holds "sarif is one run" sh -c '[ "$(grep -c "\"runs\"" out)" = 1 ]'
holds "sarif has the missing file" printed '{"uri":"missing.pipe"}}'
holds "sarif has the note" printed '"level":"note","message":{"text":"`ensures` has no claim'
holds "sarif goes to standard output alone" test ! -s err
expect "sarif of denied notes" 1 '"level":"error","message":{"text":"`ensures` has no claim' \
    "$P" check --format=sarif -D P0149 uncovered.pipe
holds "sarif of denied notes is valid" valid

# ---- check: standard input under a name, several files, order
expect "standard input has a name" 1 " --> src/k.pipe:1:8" \
    sh -c "echo 'kernel 7' | '$P' check - --name src/k.pipe"
expect "json of named standard input" 1 '{"file":"src/k.pipe","diagnostics":[{"code":"P0001"' \
    sh -c "echo 'kernel 7' | '$P' check --name src/k.pipe --format=json -"
expect "a name without standard input" 2 '`--name` is for standard input' \
    "$P" check axpy.pipe --name k.pipe

# ---- included files
mkdir -p inc/lib
printf 'include "lib/half.pipe";\nfn twice(x: f32) -> f32 { return x * 2; }\n' >inc/common.pipe
printf 'fn half(x: f32) -> f32 { return x / 2; }\n' >inc/lib/half.pipe
{
    echo 'include "common.pipe";'
    sed 's/= X\[b\*T + i\]/= half(twice(X[b*T + i]))/' <<'END'
kernel k(X: f32[N], out Y: f32[N]) for sm_90a {
    static T = 128 in {128, 256};
    ensures Y[i] == X[i];
    example N = 1000;
    grid (b: ceil(N, T));
    role work: 4 warps { for b in grid { Y[b*T + i] = X[b*T + i] for i in 0 .. T; } }
}
END
} >inc/k.pipe
expect "a file that includes others" 0 - "$P" check inc/k.pipe
expect "its run" 0 "right (all 1000 elements checked)" "$P" run inc/k.pipe --on emulator
expect "its files" 0 "inc/lib/half.pipe" "$P" build inc/k.pipe --emit=files
expect "a file without a kernel" 0 "note[P0046]" "$P" check inc/common.pipe
expect "a build of it" 2 "error[P0903]" "$P" build inc/common.pipe
expect "includes of standard input" 2 "error[P0044]" sh -c "'$P' check - <inc/k.pipe"
expect "standard input with a folder" 0 - sh -c "'$P' check - --folder inc <inc/k.pipe"
expect "a build of it" 0 ".visible .entry k" sh -c "'$P' build - --folder inc -o - <inc/k.pipe"
expect "a run of it" 0 "right" sh -c "'$P' run - --folder=inc --on emulator <inc/k.pipe"
expect "a folder that is not there" 2 "cannot include \`none\`" \
    sh -c "'$P' check - --folder none <inc/k.pipe"
expect "a folder without standard input" 2 '`--folder` is for standard input' \
    "$P" check inc/k.pipe --folder inc
expect "a build with a folder of a file" 2 '`--folder` is for standard input' \
    "$P" build inc/k.pipe --folder inc
expect "a run with a folder of a file" 2 '`--folder` is for standard input' \
    "$P" run inc/k.pipe --folder inc
expect "a choice of it" 0 "chosen" sh -c "'$P' choose - --folder inc <inc/k.pipe"
expect "none without a folder" 2 "error[P0044]" sh -c "'$P' choose - <inc/k.pipe"
expect "a choice with a folder of a file" 2 '`--folder` is for standard input' \
    "$P" choose inc/k.pipe --folder inc
expect "no why without a folder" 2 "error[P0044]" sh -c "'$P' cache why - <inc/k.pipe"
expect "why with a folder of a file" 2 '`--folder` is for standard input' \
    "$P" cache why inc/k.pipe --folder inc
expect "a list with a folder" 2 '`--folder` is for `cache why -`' "$P" cache list --folder inc
expect "tuning with a folder of a file" 2 '`--folder` is for standard input' \
    "$P" tune inc/k.pipe --folder inc
expect "a choice that is saved" 0 "chosen" "$P" choose inc/k.pipe --save inc/fixed.json
expect "holds for the files" 0 "(by inc/fixed.json)" "$P" run inc/k.pipe --choices inc/fixed.json
sed 's/x \/ 2/x * 0.5/' inc/lib/half.pipe >inc/lib/other.pipe
mv inc/lib/half.pipe inc/lib/half.old
mv inc/lib/other.pipe inc/lib/half.pipe
expect "not for one that changed" 2 "error[P0932]" "$P" run inc/k.pipe --choices inc/fixed.json
mv inc/lib/half.old inc/lib/half.pipe
sed 's/f32 { return x \/ 2/f32 { return y \/ 2/' inc/lib/half.pipe >inc/lib/wrong.pipe
sed 's/half.pipe/wrong.pipe/' inc/common.pipe >inc/common2.pipe
sed 's/common.pipe/common2.pipe/' inc/k.pipe >inc/wrong.pipe
expect "an error in an included file" 1 " --> inc/lib/wrong.pipe:1:33" "$P" check inc/wrong.pipe
expect "the same in JSON" 1 '"labels":[{"file":"inc/lib/wrong.pipe","line":1,"column":33,' \
    "$P" check --format=json inc/wrong.pipe
expect "the same in SARIF" 1 '{"uri":"inc/lib/wrong.pipe"},"region":{"startLine":1,' \
    "$P" check --format=sarif inc/wrong.pipe
holds "sarif of an included file is valid" valid
mkfifo inc/fifo
sed 's/common.pipe/fifo/' inc/k.pipe >inc/waits.pipe
expect "a named pipe is not waited for" 2 "it is not a regular file" \
    timeout 20 "$P" check inc/waits.pipe
expect "includes of a bundle" 0 "" "$P" build inc/k.pipe N=100..200 --bundle inc/bundle
holds "a bundle needs no included file" sh -c "! grep -l 'return x' inc/bundle/*"

expect "standard input twice" 2 "(standard input) is given twice" "$P" check - -
expect "json is an object a line a file" 1 '"P0149"' \
    "$P" check --format=json axpy.pipe uncovered.pipe 'b d.pipe' copy.pipe
holds "four files, four lines" sh -c '[ "$(wc -l <out)" = 4 ]'
"$P" check 'b d.pipe' uncovered.pipe missing.pipe 2>first
"$P" check 'b d.pipe' uncovered.pipe missing.pipe 2>second
holds "the same words each time" cmp first second

# ---- warnings and notes that are denied or allowed
expect "a note is no error" 0 "note[P0149]" "$P" check uncovered.pipe
expect "a denied note is an error" 1 "error[P0149]" "$P" check -D P0149 uncovered.pipe
holds "the note names the option" reported 'note: this note is denied by `-D`'
expect "notes are denied" 1 "error[P0149]" "$P" check -D warnings -D notes uncovered.pipe
expect "warnings are no notes" 0 "note[P0149]" "$P" check -D warnings uncovered.pipe
expect "a code in lower case" 1 "1 error" "$P" check -D p0149 uncovered.pipe
expect "build with a denied note" 1 "error[P0149]" "$P" build -D P0149 uncovered.pipe
holds "and no files" absent uncovered.ptx uncovered.json
expect "run with a denied note" 1 "error[P0149]" "$P" run -D P0149 uncovered.pipe
expect "run without" 0 "note[P0149]" "$P" run uncovered.pipe
expect "an unknown code is not denied" 2 'error[P0916]: `P0194` is not a code' \
    "$P" check -D P0194 axpy.pipe two.pipe
holds "with the nearest" reported 'did you mean `P01'
holds "and once" sh -c '[ "$(grep -c P0916 err)" = 1 ]'
expect "words are no code" 2 '`everything` is not a code' "$P" build -D everything copy.pipe
expect "an error is not denied" 2 '`P0102` is already an error' "$P" run -D P0102 copy.pipe
sed 's|{$|{ // allow P0149: compared by the caller|;:a;n;ba' uncovered.pipe >allowed.pipe
expect "an allowed note is not reported" 0 - "$P" check -D notes -D warnings allowed.pipe
sed 's|P0149: .*|P0241: blocks differ|' allowed.pipe >idle.pipe
expect "an idle allow warns" 0 "warning[P0033]" "$P" check idle.pipe
expect "an idle allow is denied" 1 "error[P0033]" "$P" check -D warnings idle.pipe
expect "build does not look for idle allows" 0 "note[P0149]" "$P" build idle.pipe
truncate -s 104857600 large.pipe
expect "a file of 100 MB" 2 "error[P0901]" "$P" check large.pipe
expect "100 MB on standard input" 2 "error[P0901]" sh -c "'$P' check - <large.pipe"
rm large.pipe
expect "NUL byte" 1 "error[P0007]" sh -c "printf 'kernel \\000 k' | '$P' check -"
expect "invalid UTF-8" 1 "error[P0006]" sh -c "printf 'kernel \\377 k' | '$P' check -"
expect "comment that is not closed" 1 "error[P0003]" sh -c "printf '/* kernel' | '$P' check -"
expect "empty file" 1 "error[P0009]" sh -c "printf '' | '$P' check -"
expect "10,000 nested blocks" 1 "error[P0008]" \
    sh -c "{ printf 'kernel k() for sm_90a { role r: 1 warp '; \
        head -c 10000 /dev/zero | tr '\\0' '{'; } | '$P' check -"
if [ "$(id -u)" -ne 0 ]; then
    cp axpy.pipe closed.pipe && chmod 0 closed.pipe
    expect "unreadable file" 2 "Permission denied" "$P" check closed.pipe
fi
printf '\033' >escape
expect "no colours without a terminal" 1 "error[" sh -c "echo kernel | '$P' check -"
holds "no escape in the output" sh -c '! grep -qF "$(cat escape)" err'
if script -qec true /dev/null >/dev/null 2>&1; then
    script -qec "TERM=xterm '$P' check missing.pipe" /dev/null >out 2>&1 </dev/null
    holds "colours on a terminal" grep -qF "$(cat escape)[1;31m" out
    script -qec "TERM=xterm NO_COLOR=1 '$P' check missing.pipe" /dev/null >out 2>&1 </dev/null
    holds "NO_COLOR" sh -c '! grep -qF "$(cat escape)" out'
else
    skip "colours on a terminal: script(1) is not there, or gives no pseudo-terminal"
fi

# ---- build
expect "build writes two files" 0 - "$P" build copy.pipe
holds "PTX and manifest are there" test -s copy.ptx -a -s copy.json
rm -f copy.ptx copy.json
mkdir folder
expect "build writes into the current folder" 0 - sh -c "cd folder && '$P' build ../copy.pipe"
holds "STEM of a path" test -s folder/copy.ptx
expect "build -o" 0 - "$P" build copy.pipe -o folder/other.ptx
holds "its manifest" test -s folder/other.json
expect "build -o -" 0 ".visible .entry copy" "$P" build copy.pipe -o -
holds "and no file" absent copy.ptx copy.json
expect "build of standard input" 0 ".visible .entry copy" sh -c "'$P' build - -o - <copy.pipe"
if git -C "$here" rev-parse >/dev/null 2>&1; then
    for left in copy.ptx copy.json copy.cubin examples/copy.ptx; do
        holds "git does not list $left" git -C "$here/../.." check-ignore -q $left
    done
fi
expect "build into a device" 0 - "$P" build copy.pipe -o /dev/null
holds "without a manifest" absent /dev/null.json /dev/null.ptx
expect "emit into a device" 0 - "$P" build copy.pipe --emit=ast -o /dev/null
cp copy.pipe source.json
cp copy.pipe source.ptx
ln source.ptx hard.ptx
ln -s ../source.ptx folder/soft.ptx
# spares NAME SOURCE COMMAND..: refused with 2, and the source is unchanged
spares() {
    name=$1 source=$2
    shift 2
    expect "$name" 2 "is the source and would be overwritten" "$@"
    holds "$name: it is intact" cmp copy.pipe "$source"
}
spares "the manifest onto the source" source.json "$P" build source.json -o source.ptx
spares "the default onto the source" source.ptx "$P" build source.ptx
spares "the PTX onto the source" source.ptx "$P" build source.ptx -o ./folder/../source.ptx
spares "the PTX onto a hard link" source.ptx "$P" build source.ptx -o hard.ptx
spares "the PTX onto a symbolic link" source.ptx "$P" build source.ptx -o folder/soft.ptx
spares "a form onto the source" source.ptx "$P" build source.ptx --emit=ast -o source.ptx
spares "the PTX onto standard input" source.ptx sh -c "'$P' build - -o source.ptx <source.ptx"
rm source.* hard.ptx folder/soft.ptx
expect "another ending" 2 "must end in .ptx or .cubin" "$P" build copy.pipe -o copy.txt
expect "folder that is not there" 2 "No such file or directory" \
    "$P" build copy.pipe -o missing/copy.ptx
mkdir half.json
expect "manifest cannot be written" 2 "cannot write \`half.json\`" "$P" build copy.pipe -o half.ptx
holds "then there is no PTX either" absent half.ptx
holds "and no temporary file" sh -c '! ls | grep -q "half\.[a-z]*\.."'
expect "refused program leaves no file" 1 "error[" \
    sh -c "echo kernel >bad.pipe; '$P' build bad.pipe"
holds "no file of it" absent bad.ptx bad.json
if [ -w /dev/full ]; then
    expect "full disk" 2 "cannot write standard output" sh -c "'$P' build copy.pipe -o - >/dev/full"
fi
expect "broken pipe" 2 - sh \
    -c "{ sleep 0.3; '$P' build axpy.pipe -o -; echo \$? >code; } | true; exit \$(cat code)"
# An early launch runs beside the kernel ahead of it until it waits, before it accesses memory
waits_first() {
    for kernel in "$@"; do
        "$P" build "$kernel" -o - 2>/dev/null | awk '
            /griddepcontrol.wait/ { waits++ }
            /(ld|st|red|atom)[.a-z]*[.]global|cp[.]async|cp[.]reduce/ { early += !waits }
            END { exit early > 0 || waits != 1 }' || echo "$kernel" >>early
    done
    ! test -e early
}
holds "kernels wait for the one ahead of them" waits_first gemm.pipe axpy.pipe axpy_pipes.pipe \
    softmax.pipe rowsum.pipe transpose.pipe attention.pipe kernels:softmax:rows \
    kernels:softmax:parts kernels:softmax:stage kernels:layer_norm:rows \
    kernels:cross_entropy:parts kernels:linear:large
"$P" build axpy.pipe -o twice.ptx >/dev/null 2>&1
axpy='"entry": "axpy", "grid": 5, "block": 256,
    "arguments": ["array:X", "array:Y", "i32:5000", "f32:2"]'
echo "{\"ptx\": \"twice.ptx\", \"arrays\": {\"X\": \"zeros:f32[5000]\", \"Y\": \"zeros:f32[5000]\"},
    \"launches\": [{$axpy}, {$axpy, \"programmatic\": true}]}" >twice.json
expect "a launch that starts early and reads what the one before it writes" 0 "10 blocks" \
    "$P" emulate twice.json
grep -v griddepcontrol twice.ptx >waitless.ptx
sed 's/twice.ptx/waitless.ptx/' twice.json >waitless.json
expect "the same, if it does not wait" 1 "the earlier launch may still run" \
    "$P" emulate waitless.json
expect "static" 0 "copy.pipe" "$P" build copy.pipe T=128 -o -
expect "extent is no static" 2 '`N` is set at launch' "$P" build copy.pipe N=128
expect "static that is not there" 2 'did you mean `T`' "$P" build copy.pipe t=128
expect "static twice" 2 '`T` is given twice' "$P" build copy.pipe T=128 T=256
expect "static that is no number" 2 "is no number or element type" "$P" build copy.pipe T=x
expect "several kernels" 2 'kernels: `first`, `second`' "$P" build two.pipe
expect "one of several" 0 "entry second" "$P" build two.pipe second -o -
expect "unknown kernel" 2 'unknown kernel `third`' "$P" build two.pipe third
expect "extent without a value" 2 "help: a word without \`=\` names the kernel" \
    "$P" build two.pipe N
expect "kernel with a slip" 2 "help: did you mean \`first\`?" "$P" build two.pipe firts
expect "file without a kernel" 2 "error[P0903]" sh -c "echo 'const A = 3;' | '$P' build -"
expect "check of a file without a kernel" 0 "note[P0046]" \
    sh -c "echo 'const A = 3;' | '$P' check -"
expect "two kernels named" 2 "is not NAME=VALUE, and the kernel is already given" \
    "$P" build two.pipe first second
expect "the forms are listed" 0 "prog       the checked program" "$P" build --emit=list
for form in $("$P" build --emit=list | cut -d ' ' -f 1); do
    "$P" build copy.pipe --emit=$form >out 2>err
    holds "emit $form" test -s out -a ! -s err
done
for form in $("$P" build --emit=list | cut -d ' ' -f 1 |
    grep -v -e manifest -e report -e ptx -e prog -e plan); do
    expect "emit $form of what is refused" 1 "error[P0306]" "$P" build refused.pipe --emit=$form
    holds "its $form is there" test -s out
done
expect "emit PTX of what is refused" 1 "error[P0306]" "$P" build refused.pipe --emit=ptx
holds "there is none" test ! -s out
expect "emit rows before their diagnostics" 1 "error[P0306]" \
    sh -c "'$P' build refused.pipe --emit=code >all 2>&1; code=\$?; cat all; exit \$code"
holds "rows come first" sh -c 'head -n 1 all | grep -q "^role load" && grep -q "^error" all'
expect "emit rows of what is no program" 1 "error[" sh -c "echo kernel | '$P' build - --emit=code"
holds "there are none" test ! -s out
expect "emit something else" 2 ', not `llvm`' "$P" build copy.pipe --emit=llvm
expect "emit into a file" 0 - "$P" build copy.pipe --emit=ast -o copy.ast
holds "it is there" test -s copy.ast
expect "report" 0 "pipe p[2]" "$P" build copy.pipe --report
holds "report of initialisation" printed "fence.mbarrier_init"
holds "report and files" test -s copy.ptx
expect "report of a reduction over rows, in vectors along columns" 0 "axis 0 in vectors of 4" \
    "$P" build "$here/../../examples/colsum.pipe" --report
holds "report of a sum over a loop" \
    printed "\`sums\` is partial in each thread, completed on line 46, between 2 lanes by shuffles"
expect "plan of a sum over a loop" 0 "are combined in region" \
    "$P" build "$here/../../examples/colsum.pipe" --emit=plan
expect "an index that subscripts no register tile is spread over all threads" 0 \
    "(1 read for 8 vectors)" \
    "$P" build "$here/../run/reductions-beside-long-rows.pipe" --emit=plan
expect "report of a group in flight across a condition" 0 \
    "except the last 1 group: \`s\`, which they use" \
    "$P" build "$here/../ptx/in-flight-across-a-condition.pipe" --report
holds "only the stages of the second group make it complete" sh -c \
    '[ "$(grep "all matrix instructions" out | grep -vc released)" = 0 ]'
expect "report of matrix moves" 0 "is written by stmatrix" "$P" build gemm.pipe --report
holds "report of blocks of an SM" printed "1 block of 384 threads per SM, limited by shared memory"
holds "report of stages in flight" printed "147456 bytes in flight per SM at 1 block"
sed -n 's/^    //p' "$here"/../../docs/report.md >wanted
holds "the report is that of its page" sh -c 'test -s wanted && ! grep -vxFf out wanted'
holds "report of swizzles" printed "swizzled over 128 bytes"
expect "report of an early release" 0 "\`s\` is released when the elements that this reads" \
    "$P" build "$here/../run/released-after-the-last-read.pipe" later --report
expect "report of a release after a store" 0 "kernel stored" \
    "$P" build "$here/../run/released-after-the-last-read.pipe" stored --report
holds "a store keeps the release in its place" sh -c "! grep -q 'are in registers' out"
expect "report of blocks that fit with fewer registers" 0 \
    "4 to 16 blocks of 128 threads per SM, limited by registers; at most 128 registers per thread" \
    "$P" build "$here/../../examples/softmax_masked.pipe" T=8192 R=1 --report
holds "report of loads in flight" printed \
    "65536 bytes in flight per SM at 4 blocks: in each 0 in stages that copies fill, 16384 in loads"
expect "report of narrow copies" 0 "box 64 128, loaded, L2 fetches no more than that" \
    "$P" build colsum.pipe --report
holds "manifest of narrow copies" grep -q '"promotion": 0' colsum.json
expect "report of other copies" 0 "of \`A\`: extents K M, box 64 128, loaded" \
    "$P" build gemm.pipe --report
holds "manifest of other copies" grep -q '"promotion": 3' gemm.json
expect "report of padding" 0 "rows padded by 4 bytes" "$P" build transpose_by_lanes.pipe --report
expect "file limit" 2 "cannot write" \
    sh -c 'ulimit -f 1; exec "$@"' sh "$P" build axpy.pipe -o limited.ptx
holds "file limit, nothing left" sh -c '! ls limited* >/dev/null 2>&1'
expect "watchdog" 0 "globaltimer" "$P" build copy.pipe --watchdog -o -
"$P" build copy.pipe -o - >out 2>err
holds "no watchdog" sh -c '! grep -q globaltimer out'
expect "cubin without ptxas" 2 "error[P0907]" \
    env PIPEC_PTXAS= "$P" build copy.pipe -o copy.cubin
mkdir bin
printf '#!/bin/sh\necho "ptxas $5, line 30; error   : Unknown symbol" >&2\nexit 255\n' >bin/ptxas
chmod +x bin/ptxas
rm -f copy.json
expect "ptxas rejects" 3 "error[P0908]: ptxas: error   : Unknown symbol" \
    env PATH="$scratch/bin:$PATH" "$P" build copy.pipe -o copy.cubin
holds "its place" reported " --> copy.pipe:"
holds "no cubin, no manifest" absent copy.cubin copy.json
cat >byhand.pipe <<'EOF'
kernel byhand(out Y: f32[N]) for sm_90a {
    example N = 4;
    grid (t: N);
    role work: 1 warp { for t in grid {
        unsafe { ptx "mov.b32 oops;"; }
        Y[t] = 1;
    } }
}
EOF
cat >bin/ptxas <<'EOF'
#!/bin/sh
for text; do :; done
while [ "$1" != -o ]; do shift; done
line=$(grep -n oops "$text" | cut -d: -f1)
[ -z "$line" ] && { echo code >"$2"; exit 0; }
echo "ptxas $text, line $line; error   : Arguments mismatch for instruction 'mov'" >&2
exit 255
EOF
expect "ptxas rejects inline PTX" 1 \
    "error[P0704]: inline PTX cannot be read: error   : Arguments mismatch" \
    env PATH="$scratch/bin:$PATH" "$P" build byhand.pipe -o byhand.cubin
holds "its place" reported " --> byhand.pipe:5:"
holds "no cubin, no manifest" absent byhand.cubin byhand.json
expect "the emulator rejects inline PTX" 1 "error[P0704]: inline PTX cannot be read: PTX line" \
    "$P" run byhand.pipe --on emulator
holds "its place" reported " --> byhand.pipe:5:"
sed 's/mov.b32 oops/unheard.of.b32 %r0/' byhand.pipe >unheard.pipe
expect "the emulator does not know inline PTX" 4 "error[P0701]: PTX line" \
    "$P" run unheard.pipe --on emulator
holds "its place" reported " --> unheard.pipe:5:"
printf '#!/bin/sh\necho "ptxas $5, line 30; warning : Odd" >&2\n'\
'while [ "$1" != -o ]; do shift; done\necho code >"$2"\n' >bin/ptxas
expect "ptxas warns" 0 "warning[P0909]: ptxas: warning : Odd" \
    env PATH="$scratch/bin:$PATH" "$P" build copy.pipe -o copy.cubin
holds "cubin and manifest" test -s copy.cubin -a -s copy.json
holds "no temporary file" sh -c '! ls | grep -q "cubin\.."'
# fake NAME CODE TEXT WORDS..: a ptxas that prints the words, one a line, and makes a file
fake() {
    name=$1 code=$2 text=$3
    shift 3
    printf '%s\n' "$@" >bin/words
    printf \
        '#!/bin/sh\ncat %s/bin/words >&2\nwhile [ "$1" != -o ]; do shift; done\necho code >"$2"\n' \
        "$scratch" >bin/ptxas
    expect "$name" "$code" "$text" env PATH="$scratch/bin:$PATH" "$P" build copy.pipe -o copy.cubin
}
fake "ptxas serialises" 0 \
    "warning[P0810]: matrix instructions wait for each other in \`copy\`: the registers do not \
suffice" \
    "ptxas info    : (C7511) Potential Performance Loss: wgmma.mma_async instructions are \
serialized due to insufficient register resources"
holds "at the kernel's head" reported " --> copy.pipe:"
holds "help" reported "share them among more warpgroups"
fake "ptxas inserts a fence" 0 "warning[P0810]" \
    "ptxas info    : (C7519) warpgroup.arrive is injected in around line 60 by compiler \
to allow use of registers in GMMA in function 'copy'" \
    "ptxas info    : (C7519) warpgroup.arrive is injected in around line 60 by compiler \
to allow use of registers in GMMA in function 'copy'"
holds "its PTX line" reported "line 60 of the PTX is of"
holds "reported once" sh -c 'test $(grep -c "warning" err) = 1'
fake "ptxas ignores setmaxnreg" 0 "warning[P0811]" \
    "ptxas info    : (C7508) Potential Performance Loss: 'setmaxnreg' ignored; unable to \
determine register count at entry."
fake "ptxas spills" 0 \
    "warning[P0812]: \`copy\` keeps values in local memory: a frame of 40 bytes per thread, \
8 bytes of spill stores, 16 of spill loads" \
    "    40 bytes stack frame, 8 bytes spill stores, 16 bytes spill loads"
fake "ptxas uses local memory" 0 "warning[P0812]" \
    "ptxas info    : Used 16 registers, used 1 barriers, 32 bytes lmem"
fake "a number that is not known" 0 "warning[P0909]: ptxas: info    : (C7599) Something new" \
    "ptxas info    : (C7599) Something new"
fake "ptxas is content" 0 - "ptxas info    : 0 bytes gmem" \
    "    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads" \
    "ptxas info    : Used 16 registers, used 1 barriers"
expect "time in ptxas" 0 "time: " \
    env PATH="$scratch/bin:$PATH" "$P" build copy.pipe -o copy.cubin --report
expect "no time without it" 0 "pipe p[2]" "$P" build copy.pipe --report
holds "none" sh -c '! grep -q "^time" out'
rm -r bin
if command -v ptxas >/dev/null; then
    expect "cubin" 0 - "$P" build copy.pipe -o real.cubin
    holds "a real one" test -s real.cubin
fi

# ---- run
expect "run says where" 0 "on the emulator (no GPU)" "$P" run axpy.pipe N=10000
holds "sizes" printed "X: f32[10000], Y: f32[10000], a = 2.5"
holds "rate" printed "B/s"
holds "verdict" printed "right (all 10000 elements checked"
expect "not checked" 0 "not checked: the kernel has no \`ensures\`" "$P" run two.pipe second
expect "--all" 0 "all.pipe: kernel \`same\` on the emulator (no GPU)" \
    sh -c "sed 's/, 100000}/, 99999}/' same.pipe >all.pipe && '$P' run all.pipe --all"
holds "one line each" sh -c '[ $(grep -c "^  T=[0-9]* STAGES=[12]  right (all" out) = 4 ]'
holds "and those that cannot" printed "  2 cannot run, the first T=99999 STAGES="
expect "--all with a static" 0 "right (all" "$P" run all.pipe --all T=128
holds "leaves the others" sh -c '[ $(grep -c "^  STAGES=[12]  right (all" out) = 2 ]'
sed 's/ensures/static C = 1 in {0, 1};\n    ensures/
    s/= s.y\[i\]/= f32(C) * s.y[i]/' same.pipe >some.pipe
expect "--all, some wrong" 1 "error[P0850]" "$P" run some.pipe --all T=128 STAGES=1
holds "a line of each" sh -c 'grep -q "^  C=1  right" out && grep -q "^  C=0  WRONG" out'
expect "--all --no-check" 0 "C=0  not checked (--no-check), " \
    "$P" run some.pipe --all T=128 STAGES=1 --no-check
expect "--all of variants" 0 "  small  right (all 4096" \
    "$P" run "$here/../run/variants.pipe" --all M=4096 N=1
expect "json of --all" 1 '"variant":"same","chosen":"C=0"' \
    "$P" run some.pipe --all T=128 STAGES=1 --format=json
holds "one object each" sh -c '[ "$(grep -c "\"kernel\":\"same\"" out)" = 2 ]'
expect "--all of one" 0 "right (all" "$P" run axpy.pipe --all
holds "is a plain run" printed "tiles in"
expect "--all of one that is not proved" 4 "incomplete[" \
    "$P" run unproved.pipe --all --on emulator
cat >mixed.pipe <<'END'
kernel mixed(X: f32[N], To: i32[N], out Y: f32[N]) for sm_90a {
    static T = 128 in {128, 256, 99999}, BY = 0 in {0, 1};
    ensures Y[i] == 2 * X[i];
    example N = 1024, To[i] = i;
    grid (t: ceil(N, T));
    role work: 4 warps {
        shared twice: f32[T];
        for t in grid {
            twice[i] = 2 * X[t*T + i];
            if BY == 1 { Y[To[t*T + i]] = twice[i] where t*T + i < N; }
            if BY == 0 { Y[t*T + i] = twice[i]; }
        }
    }
}
END
expect "--all, some not proved" 4 \
    "  2 are not proved and were not run, the first T=128 BY=1: P0237: " \
    "$P" run mixed.pipe --all
holds "beside those that cannot run" printed "  2 cannot run, the first T=99999 BY="
holds "and the others" sh -c '[ $(grep -c "^  T=[0-9]* BY=0  right (all" out) = 2 ]'
expect "json of --all, some not proved" 4 '"chosen":"T=128 BY=0"' \
    "$P" run mixed.pipe --all --format=json
expect "--all without the proof" 0 "  T=256 BY=1  right (all" \
    "$P" run mixed.pipe --all --accept P0237
holds "all were run" sh -c '! grep -q "not proved" out'
expect "--all, wrong and not proved" 1 "2 are not proved" \
    sh -c "sed 's/2 \* X\[i\]/3 * X[i]/' mixed.pipe >wrong2.pipe && '$P' run wrong2.pipe --all"
expect "choose counts what is not proved" 0 \
    "0 more that can run, 2 that cannot, 2 that are not proved" \
    "$P" choose mixed.pipe
expect "json of it" 0 '"unfit":2,"unproved":2' "$P" choose mixed.pipe --format=json
expect "none is proved" 4 "error[P0915]" "$P" run mixed.pipe --all BY=1
expect "--all of none" 1 "error[P0500]" "$P" run all.pipe --all T=99999
expect "--all saves nothing" 2 "so \`--save\` does not go with it" \
    "$P" run all.pipe --all --save Y=y.npy
expect "--all on one machine" 2 "there is no \`--on both\`" "$P" run all.pipe --all --on both
expect "--all of standard input" 2 "not standard input" "$P" run - --all
expect "--strided" 0 "with gaps between rows" "$P" run gemm.pipe M=64 N=64 K=64 --strided
holds "is right" printed "right (all"
expect "--strided of data" 0 "with gaps" "$P" run gemm.pipe M=64 N=64 K=64 --strided --save C=c.npy
holds "that is saved without them" sh -c '[ "$(wc -c <c.npy)" = 8320 ]'
expect "--least-aligned" 0 "right (all" "$P" run axpy.pipe N=1000 --least-aligned
expect "--no-check" 0 "not checked (--no-check)" "$P" run wrong.pipe --no-check
holds "compares nothing" sh -c '! test -s err && ! grep -q WRONG out'
expect "--no-check, wrong on the emulator" 1 "error[P07" "$P" run schedules.pipe --no-check
expect "json of --no-check" 0 '"status":0,"text":"not checked (--no-check)"' \
    "$P" run wrong.pipe --no-check --format=json
expect "sarif of --no-check" 0 '"results":[]' "$P" run wrong.pipe --no-check --format=sarif
holds "says it on standard error" reported "not checked (--no-check)"
expect "--no-check saves" 0 "not checked" "$P" run wrong.pipe --no-check --save Y=unchecked.npy
holds "the result" test -s unchecked.npy
expect "--no-check of what is not proved" 4 "not checked (--no-check)" \
    "$P" run unproved.pipe --on emulator --no-check
cp "$here/../run/too-costly.pipe" .
costly="$P run too-costly.pipe N=30000"
expect "too costly to check" 4 "not checked: it would take too long on the host" $costly
holds "which claim" reported "incomplete[P0853]"
expect "too costly, denied" 1 "error[P0853]" $costly -D incomplete
expect "json of too costly" 4 '"verdict":"not checked","status":4' $costly --format=json
expect "sarif of too costly" 4 '"ruleId":"P0853","ruleIndex":0,"level":"warning"' \
    $costly --format=sarif
expect "too costly, --no-check" 0 "not checked (--no-check)" $costly --no-check
expect "too costly, saved" 4 "not checked" $costly --save Y=costly.npy
holds "the result of it" test -s costly.npy
expect "a sample" 0 "right (a sample of" "$P" run gemm.pipe M=512 N=512 K=512
expect "wrong" 1 "WRONG" "$P" run wrong.pipe
holds "worst elements" reported "expected"
expect "never written" 1 "error[P0851]: 256 of 1024 elements of \`Z\`" "$P" run untouched.pipe
expect "several kernels, none named" 2 "error[P0902]" "$P" run two.pipe
cp "$here/../run/variants.pipe" .
expect "the first variant that the sizes fit" 0 '`scale:small`' "$P" run variants.pipe M=4096 N=1
expect "another one" 0 '`scale:rows`' "$P" run variants.pipe M=4097 N=1
expect "the only one with this static" 0 '`scale:copied`' "$P" run variants.pipe W=64
expect "a variant by name" 0 '`scale:rows`' "$P" run variants.pipe:rows M=5
expect "as a kernel" 0 '`scale:rows`' "$P" run variants.pipe scale:rows M=5
holds "its own example replaces one value" printed "X: f32[5, 8]"
expect "a named variant is not replaced" 2 "error[P0608]" "$P" run variants.pipe:small M=4097
expect "no variant fits" 2 "error[P0623]" "$P" run variants.pipe N=6 W=64
expect "no variant has both statics" 2 "error[P0904]" "$P" run variants.pipe W=64 BLOCK=64
expect "unknown variant" 2 'did you mean `small`' "$P" run variants.pipe:smal
expect "check of one variant" 0 - "$P" check variants.pipe:rows
expect "check of an unknown variant" 2 "error[P0157]" "$P" check variants.pipe:row
expect "build of no variant" 2 "error[P0902]" "$P" build variants.pipe -o -
holds "their names" reported 'variants: `scale:small`, `scale:copied`, `scale:rows`'
holds "one way" reported 'name one: `variants.pipe:small`'
holds "and the other" reported "pipec build variants.pipe M=4096 .."
expect "build for sizes" 0 'chosen: `scale:rows`, of 4 (the fastest as predicted for h200)' \
    "$P" build variants.pipe M=5000 N=6
"$P" build variants.pipe:rows -o rows.ptx
holds "writes what was chosen" cmp variants.ptx rows.ptx
expect "build for sizes as predicted" 0 'chosen: `gemm` BM=' \
    "$P" build gemm.pipe M=64 N=64 K=64 -o /dev/null
expect "for another machine" 0 "the fastest as predicted for h100" \
    "$P" build gemm.pipe M=64 N=64 K=64 -o /dev/null --machine h100
expect "for none that is known" 2 "error[P0925]" "$P" build gemm.pipe M=64 N=64 K=64 --machine h10
expect "build for sizes of no variant" 2 "error[P0623]" "$P" build variants.pipe M=70 N=6 W=64
expect "of no combination" 2 "kernel \`gemm\` cannot run on these data" \
    "$P" build gemm.pipe M=64 N=65 K=64
expect "build for a name that is no size" 2 "error[P0601]" "$P" build variants.pipe Q=5
expect "build of a variant" 0 ".visible .entry scale(" "$P" build variants.pipe:rows -o -
cp "$here/../run/extents-and-types-that-are-statics.pipe" scale.pipe
"$P" run scale.pipe M=7 D=100 T=f16 --save X=x.npy >/dev/null
expect "files decide an extent and a type" 0 "X: f16[7, 100], W: f32[100]" \
    "$P" run scale.pipe X=x.npy
expect "and beside them the model chooses" 0 "chosen: WARPS=" "$P" run scale.pipe X=x.npy
expect "values that are given stay" 2 "error[P0615]" "$P" run scale.pipe X=x.npy T=bf16
expect "of the extent too" 2 "error[P0604]" "$P" run scale.pipe X=x.npy D=64
expect "a value that no kernel takes" 1 "error[P0145]" "$P" run scale.pipe D=65
expect "choose prints the code" 1 "P0145" "$P" choose scale.pipe D=65
cat >excluded.pipe <<'TEXT'
kernel copy(X: f32[M, D], out Y: f32[M, D]) for sm_90a {
    ensures Y[m, d] == X[m, d];
    example M = 6, D = 300;
    variant fixed {
        static D = 64, R = 1 in {1, 2};
        requires D <= 256;
        grid (m: M);
        role w: R warps { for m in grid { Y[m, i] = X[m, i] for i in 0 .. D; } }
    }
    variant any {
        static R = 1 in {1, 2, 4};
        grid (m: M);
        role w: R warps {
            for m in grid {
                for d in 0 .. ceil(D, 128) { Y[m, d*128 + i] = X[m, d*128 + i] for i in 0 .. 128; }
            }
        }
    }
}
TEXT
expect "a value excludes a variant, not the run" 0 '`copy:any`' "$P" run excluded.pipe D=300
expect "the other variant takes it if it fits" 0 '`copy:' "$P" run excluded.pipe D=64 R=2
expect "the kernel's example is for the others" 0 - "$P" check excluded.pipe
expect "choose says why a variant is excluded" 0 "P0145" "$P" choose excluded.pipe D=300
expect "an extent is no condition for a variant" 0 'chosen: any R=' "$P" run excluded.pipe D=300
expect "missing extent" 2 "N=1024" "$P" run copy.pipe
expect "static and extent" 0 "4 tiles" "$P" run copy.pipe N=512 T=128
expect "unknown parameter" 2 'did you mean `N`' "$P" run copy.pipe n=512
expect "extent twice" 2 "error[P0602]" "$P" run copy.pipe N=512 N=5
expect "extent is no number" 2 "error[P0607]" "$P" run copy.pipe N=abc
expect "negative extent" 2 "error[P0605]" "$P" run copy.pipe N=-4
expect "extent over 2^31" 2 "error[P0605]" "$P" run copy.pipe N=5000000000
expect "fraction" 2 "error[P0605]" "$P" run copy.pipe N=5.5
case $B in
*asan*) ;; # its shadow needs the address space
*)
    expect "no memory on the host" 2 "error[P0610]" \
        sh -c "ulimit -v 2000000; '$P' run copy.pipe N=2146435072"
    sed 's/^    ensures/    example X[i] = i % 7;\n&/' copy.pipe >formula.pipe
    expect "a formula fills a tensor" 0 "right" "$P" run formula.pipe N=5000
    expect "no memory for its values" 2 "error[P0905]" \
        sh -c "ulimit -v 300000; '$P' run formula.pipe N=100000000"
    ;;
esac
expect "no elements" 0 "right" "$P" run copy.pipe N=0
expect "scalar of no range" 2 "too large for 64-bit floating point" "$P" run axpy.pipe N=16 a=1e999
expect "scalar that is too small" 2 "too small for 64-bit floating point" \
    "$P" run axpy.pipe N=16 a=1e-400
expect "scalar that would be 0" 2 "it rounds to 0 in f32" "$P" run axpy.pipe N=16 a=1e-60
expect "fill of no range" 2 "error[P0606]" "$P" run axpy.pipe N=16 --fill X=1e999
expect "static of no range" 2 "error[P0606]" "$P" build copy.pipe T=1e999
expect "scalar that does not fit" 2 "error[P0606]" "$P" run axpy.pipe N=16 a=1e300
expect "number for a tensor" 2 "error[P0607]" "$P" run copy.pipe N=512 X=3
expect "data for an out tensor" 2 "error[P0607]" "$P" run copy.pipe N=512 Y=y.npy
expect "precondition" 2 "error[P0608]" "$P" run colsum.pipe M=8 N=9
holds "the reason" reported "16 bytes"
expect "unknown fill" 2 "normal" "$P" run copy.pipe N=512 --fill X=norml
expect "fill" 0 "right" "$P" run copy.pipe N=512 --fill X=iota
expect "seed" 2 "takes an integer" "$P" run copy.pipe N=512 --seed x
expect "place" 2 "gpu, emulator or both" "$P" run copy.pipe N=512 --on tpu
expect "json of findings" 1 '"code":"P0850"' "$P" run wrong.pipe --format=json
expect "without the watchdog" 0 "right" "$P" run copy.pipe N=512 --watchdog 0
expect "watchdog's patience" 2 "number of seconds" "$P" run copy.pipe N=512 --watchdog soon

# ---- schedules of the emulator
expect "schedules agree" 0 "the same result on 5 schedules of the emulator" \
    "$P" run axpy.pipe N=10000 --schedules 5
expect "schedules begin with the same data" 0 "right" \
    "$P" run axpy.pipe N=600 --fill X=iota --fill Y=1 a=2 --schedules 3 --save Y=many.npy
expect "one schedule" 0 "right" \
    "$P" run axpy.pipe N=600 --fill X=iota --fill Y=1 a=2 --save Y=one.npy --on emulator
holds "what is saved is the first one's" cmp one.npy many.npy
expect "the plain schedule shows the race" 1 "error[P0751]: role" "$P" run schedules.pipe
holds "both sides of the race" sh -c 'test "$(grep -c " [|] .*[\^-][\^-] " err)" -ge 2'
expect "the race as json" 1 '"code":"P0751","severity":"error"' \
    "$P" run schedules.pipe --format=json
related='"relatedLocations":[{"physicalLocation":{"artifactLocation":{"uri":'
expect "the race as sarif" 1 "$related\"schedules.pipe\"},\"region\"" \
    "$P" run schedules.pipe --format=sarif
expect "races are on or off" 2 'takes on or off, not `yes`' "$P" run schedules.pipe --races yes
expect "the plain schedule without the search for races" 4 "right" \
    "$P" run schedules.pipe --races off
expect "another one does" 1 'elements of `Y` depend on the schedule' \
    "$P" run schedules.pipe --races off --schedules 40
holds "how to repeat it" reported '`--schedule '
seed=$(sed -n 's/.*`--schedule \([0-9]*\)` runs.*/\1/p' err)
holds "the schedules are the same each time" \
    sh -c "cp err first
    '$P' run schedules.pipe --races off --schedules 40 2>second; cmp first second"
expect "the seed repeats it" 4 "right" \
    "$P" run schedules.pipe --races off --schedule "${seed:-none}" --save Y=raced.npy
holds "with another result" sh \
    -c "'$P' run schedules.pipe --races off --save Y=plain.npy
    test -s plain.npy && ! cmp plain.npy raced.npy"
expect "differences as json" 1 '"code":"P0852"' \
    "$P" run schedules.pipe --races off --schedule 1 --schedules 40 --format=json
expect "schedules on a GPU" 2 '`--schedules` is for the emulator, which `--on gpu` does not use' \
    "$P" run axpy.pipe --schedules 2 --on gpu
expect "a schedule on a GPU" 2 '`--schedule` is for the emulator' \
    "$P" run axpy.pipe --schedule 2 --on gpu
expect "schedules on a device" 2 '`--schedules` is for the emulator and `--device` for the GPU' \
    "$P" run axpy.pipe --schedules 2 --device 0
expect "no schedule" 2 '`--schedules` must be 1 or more' "$P" run axpy.pipe --schedules 0

# ---- severities and suppressions of findings
expect "a run continues after a warning" 4 "right" "$P" run customary.pipe --on emulator
holds "the warning" reported "warning[P0724]"
expect "a denied warning is an error" 1 "error[P0724]" \
    "$P" run customary.pipe --on emulator -D warnings
expect "severity as json" 4 '"code":"P0724","severity":"warning"' \
    "$P" run customary.pipe --on emulator --format=json
expect "findings as sarif" 4 '"ruleId":"P0724","ruleIndex":1,"level":"warning"' \
    "$P" run customary.pipe --on emulator --format=sarif
holds "one log" sh -c 'test $(grep -c sarif-schema out) = 1 && test ! -s err'
line=$(grep -n 'ptx "' customary.pipe | cut -d: -f1)
printf '# known\nP0724 entry=customary pipe=%s text=several * same mbarrier.init\n' "$line" >known
expect "suppressed" 4 "right" "$P" run customary.pipe --on emulator --suppress known
holds "not reported" sh -c '! grep -q P0724 err'
printf 'P0724 entry=another\n\nP0724 ptx=1\nP0740 text=exits\n' >known
expect "suppressions that match nothing" 4 "warning[P0724]" \
    "$P" run customary.pipe --on emulator --suppress known
holds "each of them" sh -c 'test $(grep -c "note.P0766.: known:[134]: this supp" err) = 3'
for wrong in 'P0710' 'P0999' 'P0100' 'P0724 warp=3' 'P0724 ptx=none'; do
    echo "$wrong" >known
    expect "the suppression \"$wrong\"" 4 "error[P0765]: known:1:" \
        "$P" run customary.pipe --on emulator --suppress known
done
expect "no such file of suppressions" 4 "error[P0900]" \
    "$P" run customary.pipe --on emulator --suppress unknown

# ---- any PTX
PTX=$here/../emulator/programs/scale.ptx
cp "$PTX" .
expect "the list of entries" 0 "0: .b8 arrays, 16 bytes, aligned to 8" "$P" emulate scale.ptx --list
expect "the list as json" 0 '"entry":"scale","block":[32,1,1],"cluster":null,"most_threads":0' \
    "$P" emulate scale.ptx --list --format=json
expect "a kernel by words" 0 "4 blocks on the emulator" \
    "$P" emulate scale.ptx --entry fill --grid 4 --block 32 --arg "out:filled.npy:f32[100]" \
    --arg u32:100
holds "its result" test "$(wc -c <filled.npy)" = 528
echo '["in:filled.npy", "inout:filled.npy:scaled.npy"]' >arrays.json
expect "a structure, on three schedules" 0 "no finding on 3 schedules" "$P" emulate scale.ptx \
    --entry scale --grid 4 --arg struct:arrays.json --arg f32:0.5 --arg u32:100 --schedules 3
holds "its result in another file" test "$(wc -c <scaled.npy)" = 528
cat >launches.json <<'TEXT'
{"ptx": "scale.ptx", "arrays": {"X": "zeros:f32[100]", "Y": "out:y.npy:f32[100]"},
 "launches": [{"entry": "fill", "grid": 4, "block": 32, "arguments": ["array:X", "u32:100"]},
              {"entry": "fill", "grid": 4, "block": 32, "arguments": ["array:Y", "u32:100"]},
              {"entry": "scale", "grid": [4], "arguments": [
               {"struct": ["array:X", "array:Y"]}, "f32:1", "u32:100"]}]}
TEXT
expect "a launch file" 0 '"status":0,"blocks":12' "$P" emulate launches.json --format=json
holds "its result" test -s y.npy
rm y.npy
expect "a budget of blocks" 4 "1 of 4 blocks of kernel \`fill\` have ended in launch 2 of 3" \
    "$P" emulate launches.json --blocks 5
expect "a budget of seconds" 4 "of 2000000000 blocks of kernel \`fill\` have ended" "$P" emulate \
    scale.ptx --entry fill --grid 2000000000 --block 32 --arg "zeros:f32[64]" --arg u32:64 \
    --seconds 0.1
holds "no result without an end" test ! -e y.npy
expect "a finding" 1 "error[P0710]" "$P" emulate scale.ptx --entry fill --grid 4 --block 32 \
    --arg "out:y.npy:f32[99]" --arg u32:100
holds "no result after a finding" test ! -e y.npy
expect "an instruction that is not modelled" 4 "error[P0701]" \
    "$P" emulate "$here"/../emulator/unknown-modifier.ptx --grid 1 --block 32
expect "a text that is not PTX" 2 "error[P0700]" "$P" emulate copy.pipe --grid 1 --block 32
expect "a wrong argument" 2 "error[P0767]: argument 1" \
    "$P" emulate scale.ptx --entry fill --grid 4 --block 32 --arg "zeros:f32[100]" --arg u32:x
expect "too few arguments" 2 "\`fill\` has 2 parameters, but the launch gives 1" \
    "$P" emulate scale.ptx --entry fill --grid 4 --block 32 --arg "zeros:f32[100]"
expect "no grid" 2 "\`--grid\` is missing" "$P" emulate scale.ptx --entry fill
expect "a launch file with an entry" 2 "a launch file describes its launches" \
    "$P" emulate launches.json --entry fill
expect "a list with arguments" 2 "\`--list\` runs nothing" "$P" emulate scale.ptx --list --arg u32:1
expect "two files" 2 "more than one file" "$P" emulate scale.ptx scale.ptx --grid 1
expect "a denied code that is none" 2 "error[P0916]" "$P" emulate launches.json -D P9999
cp "$here"/../emulator/programs/dependent.ptx "$here"/../emulator/mbarrier-init-lanes.ptx .
dependent='{"ptx": "dependent.ptx", "arrays": {"X": "zeros:u32[64]", "Y": "zeros:u32[32]"},
 "launches": [{"entry": "first", "grid": 1, "arguments": ["array:X"]},
              {"entry": "KERNEL", "grid": 1, "programmatic": true,
               "arguments": ["array:X", "array:Y"]}]}'
echo "$dependent" | sed 's/KERNEL/hurries/' >hurries.json
echo "$dependent" | sed 's/KERNEL/waits/' >waits.json
sed 's/true/false/' hurries.json >ordered.json
expect "a dependent launch that does not wait" 1 "no \`griddepcontrol.wait\` before" \
    "$P" emulate hurries.json
holds "names both launches" sh -c 'grep -q "in launch 2 of 2, kernel .hurries." err &&
    grep -q "block 0 of launch 1 (.first.), PTX line 17: .st.global" err'
expect "both places as json" 1 '"labels":[{"line":48,"column":3,"end_line":48,"end_column":29' \
    "$P" emulate hurries.json --format=json
holds "the earlier one too" grep -q '{"line":17,.*"text":"warp 0, lanes 0-3 writes"}],"notes"' err
expect "both places as sarif" 1 "$related\"dependent.ptx\"},\"region\":{\"startLine\":17," \
    "$P" emulate hurries.json --format=sarif
expect "a dependent launch that waits" 0 "2 blocks" "$P" emulate waits.json
expect "a launch after another one" 0 "2 blocks" "$P" emulate ordered.json
expect "races are not looked for" 0 "2 blocks" "$P" emulate hurries.json --races off
expect "races of any PTX are on or off" 2 'takes on or off, not `no`' \
    "$P" emulate hurries.json --races no
line=$(grep -n "ld.global.u32 %r1" dependent.ptx | tail -1 | cut -d: -f1)
echo "P0751 entry=hurries ptx=$line" >known
expect "a race of any PTX is suppressed" 0 "2 blocks" "$P" emulate hurries.json --suppress known
echo 'P0751 entry=first' >known
expect "a race of another kernel is not" 1 "error[P0751]" \
    "$P" emulate hurries.json --suppress known
expect "a suppression of any PTX that matches nothing" 0 "note[P0766]: known:1" \
    "$P" emulate waits.json --suppress known
set -- emulate mbarrier-init-lanes.ptx --grid 1 --arg "zeros:u32[64]"
expect "a warning of any PTX" 0 "warning[P0724]" "$P" "$@"
for command in check build run emulate tune choose calibrate; do
    holds "the manual has the options of $command" sh -c "'$P' $command --help |
        grep -o '[^-]--[a-z]*' | cut -c4- | sort -u | while read -r option; do
            grep -q -- \"Fl .*-\$option\" '$here/../../docs/pipec.1' || exit 1; done"
done
expect "a denied warning of any PTX" 1 "error[P0724]" "$P" "$@" -D P0724
expect "all warnings of any PTX are denied" 1 "error[P0724]" "$P" "$@" -D warnings
expect "a warning of any PTX as json" 0 '{"code":"P0724","severity":"warning"' \
    "$P" "$@" --format=json
expect "sarif of any PTX" 1 '"ruleId":"P0710"' "$P" emulate scale.ptx --entry fill --grid 4 \
    --block 32 --arg "out:y.npy:f32[99]" --arg u32:100 --format=sarif

# ---- data
expect "save" 0 "right" \
    "$P" run axpy.pipe N=600 --fill X=iota --fill Y=1 a=2 --save Y=y.npy --save X=x.npy
expect "read back" 0 "f32[600]" "$P" run copy.pipe X=y.npy --save Y=z.npy
holds "the same bytes" cmp y.npy z.npy
expect "two saves onto one file" 2 'write the same file' \
    "$P" run copy.pipe N=5 --save X=both.npy --save Y=./both.npy
holds "neither is written" absent both.npy
ln z.npy other.npy
expect "two saves onto links of one file" 2 'write the same file' \
    "$P" run copy.pipe N=5 --save X=z.npy --save Y=other.npy
cp copy.pipe source.npy
expect "a save onto the source" 2 'would overwrite the source' \
    "$P" run source.npy N=5 --save Y=source.npy
holds "it is intact" cmp copy.pipe source.npy
expect "a save onto what was read" 0 right "$P" run copy.pipe X=y.npy --save Y=y.npy
expect "save of an unknown tensor" 2 "error[P0906]" "$P" run copy.pipe N=5 --save Z=z.npy
expect "save without a file" 2 "error[P0600]" "$P" run copy.pipe N=5 --save Y
expect "save into a folder that is not there" 2 "error[P0618]" \
    "$P" run copy.pipe N=5 --save Y=missing/y.npy
holds "wrong results are saved too" sh -c "'$P' run wrong.pipe --save Y=w.npy; test -s w.npy"
expect "extents disagree" 2 "error[P0604]" "$P" run copy.pipe X=y.npy N=601
expect "extents of formulas" 0 "f32[1201]" "$P" run doubled.pipe X=x.npy --save Z=z1200.npy
expect "data of a formula's extent" 0 right "$P" run doubled.pipe Z=z1200.npy N=600
expect "data that a formula refuses" 2 'is `2 * N`, but 600 in' \
    "$P" run doubled.pipe X=x.npy Z=x.npy
expect "the formula of data before the example" 0 "f32[600]" "$P" run doubled.pipe Z=z1200.npy
expect "data of an odd extent" 0 right "$P" run copy.pipe N=601 --save Y=odd.npy
expect "no value gives it" 2 'is `2 * N`, but 601 in' "$P" run doubled.pipe Z=odd.npy
expect "data that is not there" 2 "error[P0611]" "$P" run copy.pipe X=none.npy
echo text >y.txt
expect "data of another kind" 2 "error[P0612]" "$P" run copy.pipe X=y.txt
head -c 1000 y.npy >cut.npy
expect "truncated data" 2 "error[P0614]" "$P" run copy.pipe X=cut.npy
head -c 20 y.npy >head.npy
expect "truncated header" 2 "error[P061" "$P" run copy.pipe X=head.npy
sed 's/(600,)/(1e9)/' y.npy >hostile.npy
expect "hostile header" 2 "error[P0613]" "$P" run copy.pipe X=hostile.npy
sed 's/<f4/<f8/' y.npy >double.npy
expect "another element type" 2 "error[P0615]" "$P" run copy.pipe X=double.npy
sed 's/(600,), }  /(20,30), } /' y.npy >matrix.npy
expect "another rank" 2 "error[P0617]" "$P" run copy.pipe X=matrix.npy

# ---- a driver that is not there, and one that is
expect "no driver, GPU wanted" 2 "error[P0800]: no GPU can be used: cannot load the library" \
    "$P" run copy.pipe N=512 --on gpu
expect "no driver, device named" 2 "error[P0800]" "$P" run copy.pipe N=512 --device 0
expect "no driver, both wanted" 2 "error[P0800]" "$P" run copy.pipe N=512 --on both
if [ -e "$STANDIN" ]; then
    gpu "no device" 2 "error[P0800]" devices=0 "$P" run copy.pipe N=512 --on gpu
    gpu "no device: the emulator" 0 "on the emulator (no GPU)" devices=0 "$P" run copy.pipe N=512
    gpu "older GPU" 2 "(8.0)" capability=8.0 "$P" run copy.pipe N=512 --on gpu
    gpu "newer GPU" 2 "(12.0)" capability=12.0 "$P" run copy.pipe N=512 --on gpu
    gpu "newer GPU: the emulator" 0 "on the emulator (no GPU: " capability=12.0 \
        "$P" run copy.pipe N=512
    gpu "device that is not there" 2 "device 7 does not exist" "" \
        "$P" run copy.pipe N=512 --device 7
    gpu "old driver" 2 "too old" driver=11080 "$P" run copy.pipe N=512 --on gpu
    gpu "broken driver" 2 "error[P0800]" init=803 "$P" run copy.pipe N=512 --on gpu
    gpu "no memory on the device" 2 "error[P0803]" memory=1000 "$P" run copy.pipe N=512
    gpu "JIT failure" 3 "error[P0801]" jit "$P" run copy.pipe N=512
    gpu "JIT failure of inline PTX" 1 "error[P0704]" jit,text=oops "$P" run byhand.pipe N=4
    holds "its place" reported " --> byhand.pipe:5:"
    gpu "JIT failure with inline PTX" 3 "error[P0801]" jit "$P" run byhand.pipe N=4
    gpu "JIT warning" 1 "warning[P0802]" warn "$P" run copy.pipe N=512
    holds "serialised" reported "warning[P0810]"
    holds "spilled" reported "warning[P0812]"
    gpu "hang" 1 "error[P0804]" hang "$P" run copy.pipe N=512
    holds "the role that hangs" reported "role"
    gpu "fault" 1 "error[P0805]" fault=700 "$P" run copy.pipe N=512
    gpu "tensor map refused" 3 "error[P0807]" map "$P" run axpy_pipes.pipe N=512
    gpu "nothing is written" 1 "never written" "" "$P" run copy.pipe N=512
    gpu "emulator and GPU disagree" 1 "error[P0852]" "" "$P" run copy.pipe N=512 --on both
    gpu "schedules leave the GPU out" 0 "on 2 schedules of the emulator" "" \
        "$P" run copy.pipe N=512 --schedules 2
    gpu "schedules and the GPU" 1 "on 2 schedules of the emulator" "" \
        "$P" run copy.pipe N=512 --schedules 2 --on both
    gpu "json of both machines" 1 '{"agree":false,"text":"' "" \
        "$P" run copy.pipe N=512 --on both --format=json
    holds "and one of each" \
        sh -c 'grep -q "\"on\":\"gpu\"" out && grep -q "\"on\":\"emulator\"" out &&
            [ "$(wc -l <out)" = 3 ]'
    gpu "bench" 1 "median of 20 launches" "" "$P" run copy.pipe N=512 --bench
fi

# ---- progress of a long run
case $B in
*asan*) skip "progress of a long run: it would take minutes under the sanitizers" ;;
*)
    expect "a long run" 0 "right (a sample" "$P" run gemm.pipe --on emulator M=2048 N=2048 K=640
    # the emulator's own time: the process also generates inputs and checks results
    if awk '$2 ~ /^(ms|s),$/ { ms = $2 == "s," ? $1 * 1000 : $1 } END { exit !(ms >= 2000) }' out; \
        then
        holds "is not silent" grep \
            -Eq '^emulating: [0-9]+ % in [0-9]+ (s|min), about [0-9]+ (s|min) left$' err
        holds "nor noisy" sh -c '[ "$(wc -l <err)" -le 8 ]'
    else
        skip "progress of a long run: this machine is too fast for it"
    fi
    ;;
esac

# ---- progress of the comparison, on a terminal only
cat >pairs.pipe <<'TEXT'
kernel pairs(X: f32[N], out Y: f32[N]) for sm_90a {
    ensures Y[i] ~ X[i] + 0 * sum[a] X[a] * (sum[b] X[b] * X[a] * X[i]) within 1e-3;
    example N = 1000;
    grid (t: ceil(N, 1024));
    role all: 1 warp { for t in grid { Y[t*1024 + i] = X[t*1024 + i] for i in 0 .. 1024; } }
}
TEXT
case $B in
*asan*) skip "progress of the comparison: it would take minutes under the sanitizers" ;;
*)
    if script -qec true /dev/null >/dev/null 2>&1; then
        script -qec "'$P' run pairs.pipe" /dev/null >out 2>&1 </dev/null
        if grep -q 'evaluating `ensures`' out; then
            holds "progress of the comparison" grep -Eq \
                'evaluating `ensures`: [0-9]+ % in [0-9]+ s, about [0-9]+ s left' out
            holds "removed at the end" sh -c \
                'tr "\r" "\n" <out | tail -n 2 | grep -q "^.\[K  right (all"'
        else
            skip "progress of the comparison: this machine is too fast for it"
        fi
    fi
    expect "no progress without a terminal" 0 "right (all 1000" "$P" run pairs.pipe
    holds "not a word" test ! -s err
    ;;
esac

# ---- results as JSON
expect "json of a run" 0 '"verdict":"right","status":0,"text":"right (all 5 elements checked' \
    "$P" run axpy.pipe N=5 --on emulator --format=json
holds "is one object" sh -c '[ "$(wc -l <out)" = 1 ] && ! test -s err'
holds "says where it ran" printed \
    '"on":"emulator","device":"emulator","no_gpu":null,"arguments":"X: f32[5]'
expect "json of a wrong result" 1 '"verdict":"wrong","status":1' \
    "$P" run wrong.pipe --on emulator --format=json
holds "its diagnostics are JSON" reported '"code":"P0850"'
expect "json without ensures" 0 '"verdict":"not checked","status":0' \
    sh -c "sed '/ensures/d' copy.pipe | '$P' run - N=5 --on emulator --format=json"
expect "json of what is refused" 1 '"verdict":"none","status":1}' \
    sh -c "echo kernel | '$P' run - --format=json"
expect "json of a wrong word" 2 '"verdict":"none","status":2}' "$P" run axpy.pipe M=5 --format=json
expect "json of what is not proved" 4 '"verdict":"right","status":4' \
    "$P" run unproved.pipe --on emulator --format=json
printf 'kernel' >"$(printf 'odd\377"\n.pipe')"
expect "json of an odd name" 1 '{"file":"odd\ufffd\"\u000a.pipe","kernel":null' \
    "$P" run odd*.pipe --format=json
expect "json of tune without a GPU" 2 '"trials":[{"kernel":"gemm","values":' \
    "$P" tune gemm.pipe --format=json

# ---- the first build on a bare machine: apt's output is shown only on failure
mkdir bare
printf '#!/bin/sh\necho 0\n' >bare/id
printf '#!/bin/sh\necho "apt: $*"\necho "E: no network" >&2\nexit ${APT_EXIT:-0}\n' >bare/apt-get
chmod +x bare/id bare/apt-get
expect "apt is quiet" 0 "setup: installing flex" \
    env PATH="$scratch/bare:$PATH" FLEX=/nonexistent sh "$here/../../tools/setup.sh"
holds "one line" sh -c '[ "$(cat out err | wc -l)" = 1 ]'
expect "apt fails aloud" 2 "E: no network" \
    env APT_EXIT=100 PATH="$scratch/bare:$PATH" FLEX=/nonexistent sh "$here/../../tools/setup.sh"
expect "a compiler of two words" 0 - env CC="env ${CC:-cc}" sh "$here/../../tools/setup.sh"

# ---- cache
mkdir bin
cat >bin/ptxas <<'EOF'
#!/bin/sh
echo 'tools, release 9.9, V9.9.1'
EOF
chmod +x bin/ptxas
cache() { # NAME CODE TEXT [VARIABLE=VALUE ..] WORDS..
    title=$1 code=$2 text=$3
    shift 3
    expect "$title" "$code" "$text" env -u CUDA_HOME -u CUDA_CACHE_PATH \
        PATH="$scratch/bin:$PATH" PIPEC_CACHE="$scratch/kernels" "$@"
}
cache "cache is empty" 0 "0 kernels, 0 kB of 268 MB" "$P" cache list
cache "cache and ptxas" 0 "of ptxas 9.9.1 ($scratch/bin/ptxas), kept in $scratch/kernels" \
    "$P" cache why
cache "why of standard input" 0 '`k` is not there' \
    sh -c "'$P' cache why - --folder inc <inc/k.pipe"
cache "kernel is not cached" 0 '`axpy` is not there: its first load runs ptxas' \
    "$P" cache why axpy.pipe
cache "no ptxas" 0 "the driver loads the PTX of all kernels: PIPEC_PTXAS is empty" \
    PIPEC_PTXAS= "$P" cache why
cache "driver's cache" 0 "keeps what it assembles in /d (CUDA_CACHE_PATH)" \
    PIPEC_PTXAS= CUDA_CACHE_PATH=/d "$P" cache why axpy.pipe
cache "driver's cache is disabled" 0 "warning: CUDA_CACHE_DISABLE is 1" \
    PIPEC_PTXAS= CUDA_CACHE_DISABLE=1 "$P" cache why
cache "driver's cache is small" 0 "warning: CUDA_CACHE_MAXSIZE is 100" \
    PIPEC_PTXAS= CUDA_CACHE_MAXSIZE=100 "$P" cache why
cache "no home" 0 "warning: neither HOME nor CUDA_CACHE_PATH is set" \
    HOME= PIPEC_PTXAS= "$P" cache why
cache "cache is off" 0 "ptxas is not used" PIPEC_CACHE= "$P" cache why
cache "cache is small" 0 "warning: PIPEC_CACHE_MAXSIZE is 900K" \
    PIPEC_CACHE_MAXSIZE=900K "$P" cache why
cache "limit is no size" 0 "PIPEC_CACHE_MAXSIZE is not a number" \
    PIPEC_CACHE_MAXSIZE=x "$P" cache why
cache "folder is a file" 0 "cubins cannot be written: Not a directory" \
    PIPEC_CACHE="$scratch/axpy.pipe" "$P" cache why
mkdir -m 777 open && chmod 777 open
cache "cache that others can write" 0 \
    "kernels: $(pwd -P)/open can be written by other users (owner $(id -u), mode 0777)" \
    PIPEC_CACHE="$scratch/open" "$P" cache why axpy.pipe
before=$(umask)
umask 0
cache "cache under umask 0" 0 "kept in own/deep/cubins" PIPEC_CACHE=own/deep "$P" cache why
umask "$before"
holds "cache under umask 0 is the user's alone" \
    test -z "$(find own -type d ! -perm 700 -o -type f ! -perm 600)" -a -d own/deep/cubins
rmdir open && rm -r own
cache "cubins only" 0 "CUDA_FORCE_PTX_JIT is 1" CUDA_FORCE_PTX_JIT=1 "$P" cache why
cache "cache is cleared" 0 "removed 1 file" "$P" cache clear
cache "cache why of an error" 2 "error[P0900]" "$P" cache why nofile.pipe
cache "cache without a verb" 2 "write \`list\`, \`clear\` or \`why\`" "$P" cache
cache "cache list as JSON" 0 '"bytes_most":268435456,"entries":[]}' \
    "$P" cache list --format=json
cache "cache clear as JSON" 2 "takes no \`--format\`" "$P" cache clear --format=json
cache "cache list of a file" 2 "takes no \`axpy.pipe\`" "$P" cache list axpy.pipe
rm -r bin kernels

# ---- explain
expect "explain" 0 "# P0100" "$P" explain P0100
expect "explain in small letters" 0 "# P0100" "$P" explain p0100
expect "unknown code" 2 "unknown code" "$P" explain P9999
expect "near code" 2 'did you mean `P0100`' "$P" explain P010O
expect "all codes" 0 "P0850  result violates" "$P" explain
"$P" explain >out 2>err
holds "every code has its page" \
    sh -c "test \$(wc -l <out) -eq \$(grep -c '^DIAG(' '$here/../../util/errors.def')"

# ---- choose: predictions need no GPU
expect "run takes the best" 0 "  chosen: " "$P" run gemm.pipe M=300 N=304 K=64
holds "as choose does" sh -c \
    'chosen=$("$1" choose gemm.pipe M=300 N=304 K=64 | sed -n "s/^ *chosen .* BM=/BM=/p")
    test -n "$chosen" && grep -qF "chosen: $chosen (of " out' sh "$P"
expect "run leaves given statics" 0 '"tiles":15' "$P" run --format=json gemm.pipe M=300 N=304 BN=64
expect "run without a choice" 0 "right (" "$P" run gemm.pipe M=300 N=304 K=64 --untuned
holds "prints none" sh -c '! grep -q chosen: out'
expect "run takes the best variant" 0 "chosen: " "$P" run variants.pipe M=5000
expect "run of a named one" 0 "kernel \`scale:rows\`" "$P" run variants.pipe:rows M=50
holds "chooses none" sh -c '! grep -q chosen: out'
cat >unproved.pipe <<'END'
kernel top(X: f32[M, N], out Y: f32[M]) for sm_90a {
    ensures Y[m] ~ sum[i] X[m, i] within 1e-3;
    requires N <= 64;
    example M = 9, N = 37;
    variant proved {
        grid (m: M);
        role work: 1 warp {
            for m in grid {
                shared x: f32[64];
                x[i] = X[m, i];
                var s = 0.0;
                for i in 0 .. 64 { if i < N { s = s + x[i]; } }
                for u in 0 .. 40 { x[i] = x[i] + 1.0; }
                Y[m] = s;
            }
        }
    }
    variant unproved {
        static T = 64 in {64, 128};
        grid (m: M);
        role work: 1 warp {
            for m in grid {
                shared x: f32[T];
                x[i] = X[m, i];
                var s = x[0] - 9.0;
                for i in 1 .. T { s = s + (i < N ? x[i] : 0) - 9.0; }
                Y[m] = s + 9.0 * T;
            }
        }
    }
}
END
expect "a variant that is not proved" 4 "incomplete[P0236]" "$P" check unproved.pipe:unproved
expect "is not chosen" 0 "chosen: proved (of 3" "$P" run unproved.pipe
expect "nor advised" 0 "proved" "$P" choose unproved.pipe
holds "and says why" printed "top:unproved: P0236"
expect "but can be named" 4 "right" "$P" run unproved.pipe:unproved
cat >scatter.pipe <<'END'
kernel scatter(X: f32[R, 64], To: i32[R], out Y: f32[S, 64]) for sm_90a {
    ensures Y[s, d] == max[r] (To[r] == s ? X[r, d] : -inf);
    example R = 100, S = 100, To[r] = (7 * r) % 100;
    static W = 1 in {1, 2};
    grid persistent (r: R);
    role put: W warps { for r in grid { Y[To[r], d] = X[r, d]; } }
}
END
expect "a scatter is undecided" 4 "if it names none twice, accept that: \`--accept P0237\`" \
    "$P" check scatter.pipe
expect "its check without the proof" 0 "warning[P0237]" "$P" check scatter.pipe --accept P0237
expect "which is the verdict of JSON too" 0 '"code":"P0237","severity":"warning"' \
    "$P" check scatter.pipe --accept incomplete --format=json
expect "another proof that is missing" 4 "incomplete[P0237]" \
    "$P" check scatter.pipe --accept P0236
expect "its check accepts no error" 2 "error[P0916]" "$P" check scatter.pipe --accept P0100
{ cat scatter.pipe; echo 'kernel no(out Y: f32[N]) for sm_90a { grid (n: N); }'; } >beside.pipe
expect "beside an error it is not accepted" 1 "incomplete[P0237]" \
    "$P" check beside.pipe --accept P0237
expect "its run is right, and undecided" 4 "right (all 6400 elements checked" "$P" run scatter.pipe
expect "which is named" 4 "end with exit code 4" "$P" run scatter.pipe
expect "no choice of it" 4 \
    "to use one without the proof: \`--accept P0237\`" "$P" choose scatter.pipe
expect "its run without the proof" 0 "right (all 6400 elements checked" \
    "$P" run scatter.pipe --accept P0237
holds "has a warning" reported "warning[P0237]"
expect "runs of all without the proof" 0 "W=2  right" "$P" run scatter.pipe --all --accept P0237
expect "its build without the proof" 0 "warning[P0237]" \
    "$P" build scatter.pipe -o scatter.ptx --accept incomplete
expect "its choice without the proof" 0 "chosen" "$P" choose scatter.pipe --accept P0237
expect "its bundle without the proof" 0 "of kernel \`scatter\`" \
    "$P" build scatter.pipe R=1..9 S=9 --bundle scattered --accept P0237
expect "a table that names one twice" 1 "error[P07" \
    "$P" run scatter.pipe --fill To=zeros --accept P0237 --schedules 4
expect "an error is never accepted" 2 "error[P0916]" "$P" run scatter.pipe --accept P0100
sed 's/Y\[To\[r\], d\] = X\[r, d\]/Y[s, d] = X[From[s], d]/; s/(r: R)/(s: S)/; s/for r in/for s in/
    s/To: i32\[R\]/From: i32[S]/; s/ensures.*/ensures Y[s, d] == X[From[s], d];/
    s/To\[r\] = (7 \* r)/From[s] = (7 * s)/' scatter.pipe >gather.pipe
expect "it gathers with the inverse table" 0 "note[P0242]" "$P" check gather.pipe
expect "and is right" 0 "right" "$P" run gather.pipe
expect "choose without a file" 2 "no file is given" "$P" choose
expect "choose: help" 0 "pipec choose FILE" "$P" choose --help
expect "choose prints the best" 0 "chosen" "$P" choose gemm.pipe M=4096 N=4096 K=4096
expect "choose counts what does not fit" 0 "that cannot" "$P" choose gemm.pipe M=4096 N=4096 K=4096
expect "choose saves" 0 "chosen" "$P" choose gemm.pipe M=300 N=304 K=64 --save fixed.json
for m in 64 128 192 256 320 384 448 512; do
    "$P" choose gemm.pipe M=$m --save shared.json >/dev/null 2>&1 &
done
wait
holds "choices that are saved at once all stay" test "$(grep -c '"kernel"' shared.json)" = 8
mkdir linked && cp fixed.json linked/real.json && ln -s linked/real.json link.json
expect "choose saves through a link" 0 "chosen" "$P" choose gemm.pipe M=64 --save link.json
holds "which stays" sh -c 'test -L link.json && [ "$(grep -c kernel linked/real.json)" = 2 ]'
expect "and run obeys" 0 "(by fixed.json)" "$P" run gemm.pipe M=300 N=304 K=64 --choices fixed.json
expect "for these sizes only" 0 "chosen: BM=" \
    "$P" run gemm.pipe M=308 N=304 K=64 --choices fixed.json
expect "the statics are others" 2 "none of kernel \`gemm\` with BM=128" \
    "$P" run gemm.pipe BM=128 M=300 N=304 K=64 --choices fixed.json
expect "a file of choices that is not there" 2 "error[P0931]" \
    "$P" run gemm.pipe --choices missing.json
sed 's/within 1e-2/within 2e-2/' gemm.pipe >edited.pipe
expect "choices of another text" 2 "error[P0932]" "$P" run edited.pipe --choices fixed.json
sed 's/BM=128/BM=256/' fixed.json >changed.json
expect "choices that were changed" 2 "it was changed" "$P" run gemm.pipe --choices changed.json
expect "choices or none" 2 "chooses nothing" \
    "$P" run gemm.pipe --choices fixed.json --untuned
expect "choose among invariant ones" 0 "BN=256" \
    "$P" choose kernels:linear M=1 N=4096 K=4096 --invariant
expect "run of invariant ones" 0 "large BN=" \
    "$P" run kernels:linear M=3 N=64 K=64 --invariant --on emulator
expect "no variant is invariant" 1 "error[P0934]" \
    "$P" run kernels:rms_norm_backward M=3 D=64 --invariant
expect "nor is it built" 1 "error[P0934]" \
    "$P" build kernels:rms_norm_backward:rows --invariant -o none.ptx
holds "and nothing is written" sh -c '! test -e none.ptx'
expect "a bundle" 0 "of kernel \`gemm\`" \
    "$P" build gemm.pipe --bundle gemm M=1..300 N=304 K=64,128
holds "has an index and images" sh -c 'test -s gemm/bundle.json && ls gemm/gemm.0.ptx'
expect "a bundle of too many sizes" 2 "error[P0935]" \
    "$P" build gemm.pipe --bundle gemm M=1..8192 N=1..8192 K=64
expect "a bundle without sizes of an extent" 2 "no sizes are given for \`K\`" \
    "$P" build gemm.pipe --bundle gemm M=1..8 N=64
expect "a bundle of wrong sizes" 2 "is not NAME=SIZES" \
    "$P" build gemm.pipe --bundle gemm M=1.. N=64 K=64
expect "a bundle of sizes that cannot run" 0 "warning[P0937]" \
    "$P" build gemm.pipe --bundle gemm M=8 N=64 K=7,8
expect "a bundle for an unknown machine" 2 "error[P0925]" \
    "$P" build gemm.pipe --bundle gemm M=8 N=64 K=8 --machine h200,h999
expect "a bundle and a file" 2 "\`--bundle\` has no" "$P" build gemm.pipe --bundle gemm -o a.ptx M=8
expect "choose for an unknown machine" 2 "error[P0925]" "$P" choose gemm.pipe --machine h999
expect "choose names the machines" 2 "the machines are \`h200\`, \`h100\`" \
    "$P" choose gemm.pipe --machine h999
expect "choose of a kernel with nothing to choose" 0 "chosen" "$P" choose copy.pipe N=1000
expect "choose of no elements" 0 "chosen" "$P" choose gemm.pipe M=0 N=4096 K=4096
expect "choose where no data fit" 2 "error[P0915]" "$P" choose gemm.pipe M=64 N=64 K=3
expect "choose of a wrong program" 1 "error[P0" "$P" choose bad.pipe
expect "choose of several kernels" 2 "error[P0902]" "$P" choose two.pipe
expect "choose of a file that is not there" 2 "error[P0900]" "$P" choose missing.pipe
cat >twice.pipe <<'END'
kernel twice(X: f32[N], out Y: f32[N]) for sm_90a {
    ensures Y[i] ~ X[i] * 2.0 within 1e-6;
    example N = 100;
    variant narrow { requires N <= 1000; grid (b: ceil(N, 128));
        role all: 1 warp { for b in grid {
            var t: f32[128]; t[i] = X[b*128 + i] * 2.0; Y[b*128 + i] = t[i]; } } }
    variant wide { static T = 256 in {256, 512}; grid (b: ceil(N, T));
        role all: 1 warp { for b in grid {
            var t: f32[T]; t[i] = X[b*T + i] * 2.0; Y[b*T + i] = t[i]; } } }
}
END
expect "choose among variants" 0 "wide  T=" "$P" choose twice.pipe N=1000000
expect "choose says why a variant cannot run" 0 "twice:narrow: P0608" \
    "$P" choose twice.pipe N=1000000
sed 's/out Y: f32/out Y: f33/' twice.pipe >thrice.pipe
expect "choose of wrong variants" 1 "error[P0" "$P" choose thrice.pipe N=1000
holds "says their error once" sh -c '[ "$(grep -c "^error" err)" = 1 ]'
expect "choose of one variant" 0 "chosen" "$P" choose twice.pipe:narrow N=1000
expect "choose as JSON" 0 '"candidates":[{"kernel":"twice:wide","values":"T=' \
    "$P" choose twice.pipe N=1000000 --format=json
cat >counted.pipe <<'END'
kernel counted(X: f32[N], K: i32[N], out Y: f32[N]) for sm_90a {
    example N = 4, K[i] = 3;
    grid (b: N);
    role all: 1 warp { for b in grid {
        var s = 0.0;
        for k in 0 .. min(max(K[b], 0), 9) { s += X[k]; }
        Y[b] = s; } }
}
END
expect "choose where data decide" 0 "decide its work" "$P" choose counted.pipe

expect "choose for another machine" 0 "predicted for h100" \
    "$P" choose gemm.pipe M=4096 N=4096 K=4096 --machine h100
expect "calibrate: help" 0 "pipec calibrate" "$P" calibrate --help
expect "calibrate without a GPU" 2 "error[P0800]" "$P" calibrate
expect "calibrate takes no file" 2 "calibrate takes no file" "$P" calibrate gemm.pipe
if [ -e "$STANDIN" ]; then
    gpu "calibrate with the clock of no GPU" 2 "error[P0927]: Stand-in was measured with" "" \
        "$P" calibrate --output machines.json
    holds "saves nothing" absent machines.json cache/machines.json
fi

# ---- targets: chosen, given, and several of them
sed 's/for sm_90a/for sm_90a, sm_80/; s/ensures/example N = 1000;\n    ensures/
     s/T = 256;/T = 256 in {128, 256};/
     s/X\[t\*T + i\];/X[t*T + i] by lanes;/' copy.pipe >several.pipe
sed 's/ by lanes//' several.pipe >lacking.pipe
expect "check of several targets" 0 - "$P" check several.pipe
expect "check of one that lacks something" 1 'error[P0507]: `sm_80` has no tensor' \
    "$P" check lacking.pipe
holds "said of that one" reported 'for `sm_80`'
expect "check of the other" 0 - "$P" check lacking.pipe --target sm_90a
expect "check for a target that it does not name" 0 - "$P" check lacking.pipe --target sm_100a
expect "check for one that lacks something" 1 'error[P0507]: `sm_89`' \
    "$P" check lacking.pipe --target sm_89
holds "why that target" reported "was given in the place of the kernel's targets"
expect "check for an unknown target" 2 'error[P0938]: there is no target `sm_90b`' \
    "$P" check several.pipe copy.pipe --target sm_90b
holds "once, with one that is near" \
    sh -c '[ $(grep -c P0938 err) = 1 ] && grep -qF "did you mean \`sm_90\`" err'
for command in build run tune choose "cache why"; do
    # shellcheck disable=SC2086
    expect "$command for an unknown target" 2 "error[P0938]" \
        "$P" $command several.pipe --target sm_91
done
expect "--target without a kernel" 2 'is for `cache why FILE`' "$P" cache list --target sm_80
mkdir targets
expect "build of several targets" 0 - "$P" build several.pipe -o targets/out.ptx
holds "a file for each" test -s targets/out.sm_90a.ptx -a -s targets/out.sm_80.ptx
holds "each with its manifest" grep -q '"target": "sm_80"' targets/out.sm_80.json
holds "and no other" absent targets/out.ptx targets/out.json
holds "as for one" sh -c \
    '"$1" build several.pipe --target sm_80 -o - | cmp - targets/out.sm_80.ptx' - "$P"
expect "their names by the file" 0 - sh -c 'cd targets && "$1" build ../several.pipe' - "$P"
holds "in the present folder" test -s targets/several.sm_80.ptx -a -s targets/several.sm_90a.json
expect "build for sizes" 0 'chosen: `copy`' "$P" build several.pipe N=4096 -o targets/sizes.ptx
holds "a file for each of them" test -s targets/sizes.sm_90a.ptx -a -s targets/sizes.sm_80.ptx
expect "the report of each" 0 "for sm_80: " "$P" build several.pipe --report -o targets/out.ptx
holds "of the first" printed "for sm_90a: "
expect "build of one of them" 0 - "$P" build several.pipe --target sm_90a -o targets/one.ptx
holds "one file" test -s targets/one.ptx -a -s targets/one.json
expect "several are not one text" 2 'has several targets, and `-o` prints one' \
    "$P" build several.pipe -o -
holds "which to name" reported 'name it: `--target sm_90a` or `--target sm_80`'
expect "nor one form" 2 '`--emit` prints one' "$P" build several.pipe --emit=ptx
expect "the tree is one" 0 "for sm_90a, sm_80" "$P" build several.pipe --emit=ast
sed 's/sm_90a, sm_80/sm_90a, sm_89, sm_80/' lacking.pipe >lacks.pipe
expect "build if one is refused" 1 'error[P0507]: `sm_89`' "$P" build lacks.pipe -o targets/no.ptx
holds "and another" reported '`sm_80` has no tensor'
holds "writes nothing" absent targets/no.sm_90a.ptx targets/no.sm_90a.json
cp several.pipe several.sm_80.json
expect "the source is no output" 2 "is the source" \
    "$P" build several.sm_80.json -o several.ptx
holds "and stays" cmp several.pipe several.sm_80.json
rm -f several.sm_80.json several.sm_90a.ptx several.sm_90a.json
expect "a bundle of several targets" 0 "2 candidates" \
    "$P" build several.pipe N=4096 --bundle bundled
holds "which its files name" test -s bundled/copy.sm_90a.0.ptx -a -s bundled/copy.sm_80.1.ptx
expect "a bundle of one of them" 0 "1 candidate" \
    "$P" build several.pipe N=4096 --target sm_80 --bundle bundled1
holds "as of one target" test -s bundled1/copy.0.ptx
expect "run on the emulator takes the first" 0 '`copy` for sm_90a on the emulator' \
    "$P" run several.pipe
expect "or another" 0 '`copy` for sm_80 on the emulator' "$P" run several.pipe --target sm_80
expect "every combination of one" 0 "on the emulator" "$P" run several.pipe --target sm_80 --all
expect "choose for a target" 0 "predicted for h200" "$P" choose several.pipe --target sm_80
if [ -e "$STANDIN" ]; then
    gpu "an older GPU takes the older target" 0 '`copy` for sm_80 on Stand-in' capability=8.0 \
        "$P" run several.pipe N=512 --no-check
    gpu "a Hopper GPU takes its own" 0 '`copy` for sm_90a on Stand-in' "" \
        "$P" run several.pipe N=512 --no-check
    gpu "a newer one takes what it can run" 0 '`copy` for sm_80 on Stand-in' capability=10.0 \
        "$P" run several.pipe N=512 --no-check
    gpu "each GPU its own" 0 '`copy` for sm_90a on Stand-in 1' devices=2,capability=8.0:9.0 \
        "$P" run several.pipe N=512 --no-check --device 1
    gpu "the target, in JSON" 0 '"target":"sm_80"' capability=8.6 \
        "$P" run several.pipe N=512 --no-check --format=json
    gpu "all combinations take it too" 0 '`copy` for sm_80 on Stand-in' capability=8.0 \
        "$P" run several.pipe N=512 --no-check --all
    gpu "what is given is kept" 2 "device 0 is Stand-in (9.0)" "" \
        "$P" run several.pipe --target sm_100a --on gpu
    gpu "no target fits" 2 "exactly 9.0, or sm_80, which needs compute capability at least 8.0" \
        capability=7.5 "$P" run several.pipe --on gpu
    gpu "nor for tuning" 2 "or sm_80, which needs" capability=7.5 "$P" tune several.pipe
    sed 's/for sm_90a/for sm_90a, sm_90/' same.pipe >both.pipe
    gpu "tune takes the target of the GPU" 0 "on Stand-in" capability=10.0,clock=1000 \
        "$P" tune both.pipe
    holds "and keeps times for it" grep -q '"target=sm_90"' cache/tune.json
    gpu "which a run takes" 0 "tuned: " capability=10.0 "$P" run both.pipe
    gpu "not one for another target" 0 "chosen: " "" "$P" run both.pipe
    rm -f cache/tune.json
fi

# ---- tune: cases that need no GPU, then with the stand-in, whose launches take longer and longer
expect "tune without a file" 2 "no file is given" "$P" tune
expect "tune: help" 0 "pipec tune FILE" "$P" tune --help
expect "tune without a GPU" 2 "error[P0800]: no GPU can be used" "$P" tune same.pipe
holds "the reason" reported "tuning measures times"
expect "tune on the emulator" 2 "tuning measures times, which the emulator cannot give" \
    "$P" tune same.pipe --on emulator
expect "tune on something else" 2 "\`--on\` takes only gpu for tuning" "$P" tune same.pipe --on both
expect "tune in no round" 2 "\`--rounds\` must be 1 to 1000" "$P" tune same.pipe --rounds 0
expect "nothing to tune" 2 "error[P0913]" "$P" tune copy.pipe
expect "nothing left to tune" 2 "error[P0913]" "$P" tune same.pipe T=128 STAGES=1
sed 's/in {1, 2}/in {1, 2, 3, 4, 5, 6, 7, 8}/
    s/T = 256 in {/T = 256 in {8, 16, 24, 32, 40, 48, 56, 64, 72, 80, 88, 96, /
     s/ensures/static A = 0 in {0, 1, 2, 3, 4, 5, 6, 7, 8, 9};\n    ensures/' same.pipe >many.pipe
expect "too many combinations" 2 "error[P0914]" "$P" tune many.pipe
expect "tune of a file that is not there" 2 "error[P0900]" "$P" tune missing.pipe
expect "tune of a wrong program" 1 "error[P0" "$P" tune bad.pipe
expect "tune of several kernels" 2 "error[P0902]" "$P" tune two.pipe
expect "tune of a kernel that is not there" 2 "unknown kernel \`other\`" "$P" tune same.pipe other
expect "tune with a static that does not fit" 2 "error[P0904]" "$P" tune same.pipe STAGES=x.npy
expect "tune with an unknown extent" 2 "error[P060" "$P" tune same.pipe M=5
sed 's/in {128, 256, 100000}/in {100000}/; s/T = 256/T = 100000/' same.pipe >none.pipe
expect "tune where nothing fits" 1 "error[P0500]" "$P" tune none.pipe
holds "the reason stands once" sh -c '[ $(grep -c "P0500" err) = 1 ]'
sed 's/ensures/static U = 1 in {1, 2};\n    requires N % (U * 3 + 7) == 0;\n    ensures/' \
    same.pipe >demanding.pipe
expect "a precondition of some" 2 "error[P0800]" "$P" tune demanding.pipe
expect "a precondition of all" 2 "error[P0915]" "$P" tune demanding.pipe N=1003
holds "nothing is kept so far" absent cache/tune.json
if [ -e "$STANDIN" ]; then
    gpu "tune" 0 "T=128 STAGES=2 " clock=1000 "$P" tune same.pipe
    holds "the fastest comes first" printed " us  best"
    holds "what does not fit is counted" printed "  2 do not fit, the first T=100000 STAGES="
    holds "with its reason" printed "P0500: kernel \`same\` needs 400016 bytes of shared memory"
    holds "its file" printed "kept for N=1000 on Stand-in: T="
    holds "and its name" printed "($scratch/cache/tune.json)"
    best=$(sed -n 's/.*kept for N=1000 on Stand-in: \(T=[^(]*\) (.*/\1/p' out)
    gpu "run takes the choice" 0 "tuned: $best (pipec tune, N=1000 on Stand-in)" "" \
        "$P" run same.pipe
    holds "and is compiled so" printed "8 tiles"
    gpu "tune of one candidate" 0 "3 were not measured: others are expected to be faster" \
        clock=1000 "$P" tune same.pipe --candidates 1 --forget
    gpu "tune of all" 0 "2 do not fit" clock=1000 "$P" tune same.pipe --candidates all --forget
    holds "leaves none" sh -c '! grep -q "expected to be" out'
    gpu "tune counts what is not proved" 1 "2 are not proved, the first T=128 BY=1: P0237: " \
        clock=1000 "$P" tune mixed.pipe --forget
    gpu "and measures it without the proof" 1 "BY=1" clock=1000 \
        "$P" tune mixed.pipe --forget --accept P0237
    holds "all of it" sh -c '! grep -q "not proved" out'
    gpu "tune of none" 2 "\`--candidates\` must be" "" "$P" tune same.pipe --candidates 0
    sed 's/grid persistent/grid/' same.pipe >plain.pipe
    gpu "a slow candidate" 0 "times the best in its first round" clock=1000,slow=4 \
        "$P" tune plain.pipe --forget
    gpu "one that does not end" 1 "error[P0813]" clock=1000,endless=8 \
        "$P" tune plain.pipe --limit 0.05
    holds "is named" reported "while T=128 STAGES=2 ran; nothing more is measured"
    holds "what was measured before is kept" printed "kept for N=1000 on Stand-in: T=256 STAGES=2"
    gpu "near extents" 0 "kept for nearly N=2000 on Stand-in" clock=1000 \
        "$P" tune same.pipe N=2000 --near
    gpu "are taken" 0 "(pipec tune, N=2000 on Stand-in)" "" "$P" run same.pipe N=2100
    holds "as it is measured for them" printed "tuned: "
    gpu "bench too" 0 "tuned: " "" "$P" run same.pipe --bench
    gpu "bench prints the predicted time" 0 "us predicted: " "" "$P" run same.pipe --bench
    gpu "both too" 0 "tuned: " "" "$P" run same.pipe --on both
    sed 's|^// Leaves|// Whatever|; s/    static/        static/' same.pipe >again.pipe
    mv again.pipe same.pipe
    gpu "comments and layout are no change" 0 "tuned: " "" "$P" run same.pipe
    untuned() {
        name=$1
        shift
        env PIPEC_LIBCUDA="$STANDIN" "$@" >out 2>err </dev/null
        holds "$name" sh -c '! grep -q tuned out && ! test -s err && test -s out'
    }
    untuned "fewer elements" "$P" run same.pipe N=999
    untuned "and more" "$P" run same.pipe N=1001
    untuned "that are not near" "$P" run same.pipe N=2300
    untuned "a static that is given" "$P" run same.pipe T=128
    untuned "--untuned" "$P" run same.pipe --untuned
    untuned "the emulator" "$P" run same.pipe --on emulator
    untuned "no cache" env PIPEC_CACHE= "$P" run same.pipe
    untuned "another cache" env PIPEC_CACHE="$scratch/elsewhere" "$P" run same.pipe
    untuned "no GPU" env PIPEC_STANDIN=devices=0 "$P" run same.pipe
    sed 's/same(/different(/' same.pipe >different.pipe
    untuned "another kernel" "$P" run different.pipe
    sed 's/T = 256/T = 128/' same.pipe >default.pipe
    untuned "another text" "$P" run default.pipe
    (echo 'include "keep.pipe";' && sed 's/\(= \)\(o\.y\[i\]\|s\.y\[i\]\)/\1keep(\2)/' same.pipe) \
        >inc/keeps.pipe
    echo 'fn keep(y: f32) -> f32 { return y + 0; }' >inc/keep.pipe
    gpu "tuning of standard input" 0 "kept for N=1000 on Stand-in: T=" clock=1000 \
        sh -c "'$P' tune - --folder inc --rounds 1 <inc/keeps.pipe"
    gpu "it holds for the same text in a file" 0 "tuned: " "" "$P" run inc/keeps.pipe
    gpu "and in standard input" 0 "tuned: " "" sh -c "'$P' run - --folder inc <inc/keeps.pipe"
    echo 'fn keep(y: f32) -> f32 { return y + 0; } // the same' >inc/keep.pipe
    gpu "comments of an included file are no change" 0 "tuned: " "" "$P" run inc/keeps.pipe
    echo 'fn keep(y: f32) -> f32 { return y - 0; }' >inc/keep.pipe
    untuned "another included text" "$P" run inc/keeps.pipe
    gpu "with a static that is given" 0 "kept for N=1000 on Stand-in: T=128 (" "" \
        "$P" tune same.pipe STAGES=2
    gpu "it holds for that" 0 "tuned: T=128 (pipec tune" "" "$P" run same.pipe STAGES=2
    gpu "in the same file as the other" 0 "tuned: T=128 STAGES=2" "" "$P" run same.pipe
    gpu "forget" 0 "not kept: as requested" "" "$P" tune same.pipe N=5000 --forget --rounds 1
    holds "one round" printed "the median of 1 rounds"
    holds "forgotten" sh -c '! grep -q N=5000 cache/tune.json'
    sums='sum[a] old Y[a] * (sum[b] old Y[b] * (sum[c] old Y[c] * old Y[b] * old Y[a]))'
    sed "s/ensures/ensures Y[i] ~ old Y[i] + 0 * $sums within 1e-3; &/" same.pipe >same-costly.pipe
    gpu "tuning that can check nothing" 4 "incomplete[P0853]: the results are not checked" "" \
        "$P" tune same-costly.pipe N=30000 --rounds 1
    holds "says so" sh -c 'grep -qx "  not checked" out'
    gpu "tuning with an empty PIPEC_CACHE" 0 "not kept: PIPEC_CACHE is empty" "" \
        env PIPEC_CACHE= "$P" tune same.pipe
    gpu "no HOME" 0 "not kept: neither HOME nor PIPEC_CACHE is set" "" \
        env -u PIPEC_CACHE -u HOME -u XDG_CACHE_HOME "$P" tune same.pipe
    gpu "in HOME" 0 "$scratch/home/.cache/pipec/tune.json" "" \
        env -u PIPEC_CACHE -u XDG_CACHE_HOME HOME="$scratch/home" "$P" tune same.pipe
    gpu "in XDG_CACHE_HOME" 0 "$scratch/xdg/pipec/tune.json" "" \
        env -u PIPEC_CACHE XDG_CACHE_HOME="$scratch/xdg" "$P" tune same.pipe
    gpu "a file is no folder" 2 "error[P0912]" "" \
        env PIPEC_CACHE="$scratch/same.pipe" "$P" tune same.pipe
    holds "the table stands" printed "best"
    if [ "$(id -u)" != 0 ]; then
        mkdir -m 555 fixed
        gpu "read-only folder" 2 "error[P0912]" "" \
            env PIPEC_CACHE="$scratch/fixed" "$P" tune same.pipe
    fi
    cp cache/tune.json right.json
    sed 's/T=128 STAGES=2/T=96 STAGES=2/' right.json >cache/tune.json
    gpu "a choice outside of its set" 0 'warning[P0911]: the tuned choice `T=96 STAGES=2`' "" \
        "$P" run same.pipe
    holds "is not taken" sh -c '! grep -q T=96 out && grep -q "right (all" out'
    sed 's/T=128 STAGES=2/T=256 Q=1/' right.json >cache/tune.json
    gpu "a choice of no static" 0 'warning[P0911]: the tuned choice `T=256 Q=1`' "" \
        "$P" run same.pipe
    cp right.json cache/tune.json
    head -c 100 cache/tune.json >cut.json
    cp cut.json cache/tune.json
    gpu "a cut file is a warning" 0 "warning[P0911]" "" "$P" run same.pipe
    holds "the run goes on" printed "right (all"
    expect "without a GPU the choices are not used" 0 "right (all" "$P" run same.pipe
    holds "nor warns" test ! -s err
    gpu "tuning puts it aside" 0 "warning[P0911]" "" "$P" tune same.pipe
    holds "nothing is lost" cmp cut.json cache/tune.json.broken
    echo '{"another": "program"}' >cache/tune.json
    gpu "and the next one too" 0 "tune.json.broken.2" "" "$P" tune same.pipe
    gpu "then it is whole again" 0 "tuned: T=128" "" "$P" run same.pipe
    gpu "wrong results" 1 "error[P0915]" "" "$P" tune gemm.pipe M=256 N=256 K=64
    holds "each of them" printed "wrong  "
    gpu "a fault ends it" 1 "error[P0805]" fault=700 "$P" tune same.pipe
    holds "the variant" reported "while T=128 STAGES=2 ran"
    gpu "JIT failure of all" 3 "error[P0915]" jit "$P" tune same.pipe
    gpu "no block fits the device" 1 "P0808" large "$P" tune same.pipe
    gpu "no memory on the device to tune" 2 "error[P0803]" memory=1000 "$P" tune same.pipe
    gpu "a remark of the assembler's" 0 "best  P0810" warn "$P" tune same.pipe
    for calls in 1 2 3 4; do
        env PIPEC_LIBCUDA="$STANDIN" "$P" tune same.pipe N=${calls}0000 --rounds 1 >/dev/null 2>&1 &
    done
    wait
    holds "several at a time" \
        sh -c 'test $(grep -o "N=[0-9]*" cache/tune.json | sort -u | wc -l) = 5'
    holds "nothing lies about" \
        sh -c '! ls cache | grep -qv "^cubins$\|^tune\.json\(\.lock\|\.broken\(\.2\)*\)*$"'
fi

# tools/sanitizer.sh, with a program that prints what compute-sanitizer would
cat >compute-sanitizer <<'END'
#!/bin/sh
count=0 word=errors title=ERROR
case "$*" in *"racecheck "*) title=RACECHECK word="hazards displayed" ;; esac
case "$REPORT $*" in
memory*"memcheck "*"axpy.pipe"*) count=1 ;;
writes*"racecheck "* | write*"racecheck "* | read*"racecheck "*)
    count=1 first=Write other=Read
    case $REPORT in read*) first=Read other=Write ;; writes*) other=Write ;; esac
    echo "========= Error: Race reported between $first access at axpy+0xb50"
    echo "=========     and $other access at axpy+0x8e0 [32 hazards]"
    ;;
esac
[ "$REPORT" = silent ] || echo "========= $title SUMMARY: $count $word"
[ $count = 0 ] || exit 9
END
chmod +x compute-sanitizer
# examine NAME CODE TEXT REPORT EXAMPLE..
examine() {
    name=$1 code=$2 text=$3 report=$4
    shift 4
    expect "sanitizer.sh: $name" "$code" "$text" env REPORT="$report" PIPEC="$P" \
        PIPEC_LIBCUDA="$STANDIN" COMPUTE_SANITIZER="$scratch/compute-sanitizer" \
        sh "$here/../../tools/sanitizer.sh" "$@"
}
examine "clean" 0 "8 passed, 0 failed" none axpy gemm
examine "an error" 1 "7 passed, 1 failed" memory axpy gemm
examine "a tool that says nothing" 1 "0 passed, 4 failed" silent axpy
examine "a known report" 0 "known  racecheck" write axpy_pipes
examine "a known report, its read first" 0 "known  racecheck" read axpy_pipes
examine "the same report of another kernel" 1 "3 passed, 1 failed" write axpy
examine "another report of a known kernel" 1 "3 passed, 1 failed" writes axpy_pipes
expect "sanitizer.sh: no GPU" 0 "0 passed, 0 failed, 4 skipped" env PIPEC="$P" \
    COMPUTE_SANITIZER="$scratch/compute-sanitizer" sh "$here/../../tools/sanitizer.sh"
expect "sanitizer.sh: no compute-sanitizer" 0 "0 passed, 0 failed, 4 skipped" env PIPEC="$P" \
    COMPUTE_SANITIZER=/nonexistent PATH=/usr/bin:/bin sh "$here/../../tools/sanitizer.sh"

line="$passed passed, $failed failed"
[ $skipped -gt 0 ] && line="$line, $skipped skipped"
echo "$line"
[ $failed -eq 0 ]
