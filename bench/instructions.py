"""Counts the PTX instructions of one element of each intrinsic: the columns of prog/intrinsics.def.

    python3 bench/instructions.py [PIPEC]

Builds a kernel with the call and one with a sum in its place, and prints a row for each intrinsic:
name, instructions of the fast form, those in exact(...). Needs no GPU.
"""
import subprocess
import sys
import tempfile

FAST = "exp exp2 log log2 tanh sigmoid expm1 log1p erf"
BOTH = "abs sqrt rsqrt rcp sin cos floor ceil round"
FORMS = {name: (f"{name}(a[i])", f"exact({name}(a[i]))") for name in BOTH.split()}
FORMS |= {name: (f"{name}(a[i])",) for name in FAST.split()}
FORMS |= {"min": ("min(a[i], b[i])",), "max": ("max(a[i], b[i])",), "fma": ("fma(a[i], b[i], 2.0)",),
          "clamp": ("clamp(a[i], -1.0, 2.0)",), "isnan": ("isnan(a[i]) ? 1.0 : a[i]",),
          "pow": ("pow(a[i], b[i])", "exact(pow(a[i], b[i]))")}
INTEGERS = {"ceil_div": "ceil(a[i], b[i])", "bit_and": "a[i] & b[i]", "bit_or": "a[i] | b[i]",
            "bit_xor": "a[i] ^ b[i]", "shl": "a[i] << b[i]", "shr": "a[i] >> b[i]",
            "mulhi": "mulhi(a[i], b[i])", "popc": "u32(popc(a[i]))", "clz": "u32(clz(a[i]))",
            "random_bits": "random_bits(7, a[i])", "random": "random(7, a[i])"}
TILE = 128


def instructions(pipec, form, kind, result):
    loads = "".join(f"            var {x}: {kind}[{TILE}];\n"
                    f"            {x}[i] = {x.upper()}[t*{TILE} + i];\n"
                    for x in "ab" if f"{x}[i]" in form)
    text = f"""kernel k(A: {kind}[N], B: {kind}[N], out Y: {result}[N]) for sm_90a {{
    requires N % {TILE} == 0;
    grid (t: N / {TILE});
    role work: 1 warp {{
        for t in grid {{
{loads}            Y[t*{TILE} + i] = {form};
        }}
    }}
}}
"""
    with tempfile.NamedTemporaryFile("w", suffix=".pipe") as file:
        file.write(text)
        file.flush()
        ptx = subprocess.run([pipec, "build", file.name, "--emit=ptx"], capture_output=True,
                             text=True, check=True).stdout
    lines = [line.strip() for line in ptx.splitlines()]
    return sum(line.endswith(";") and not line.startswith((".", "//")) for line in lines)


def main():
    pipec = sys.argv[1] if len(sys.argv) > 1 else "build/release/pipec"

    def count(form, kind, result):
        """Beyond those of one sum, whose number of instructions is 1"""
        one = "1" if kind == "u32" else "1.0"
        plain = "a[i] + b[i]" if "b[i]" in form else f"a[i] + {one}"
        least = instructions(pipec, plain, kind, kind)
        # elements of a thread, in all copies of the loop
        elements = instructions(pipec, f"({plain}) * 3", kind, kind) - least
        return 1 + (instructions(pipec, form, kind, result) - least) / elements

    for name, forms in FORMS.items():
        fast = count(forms[0], "f32", "f32")
        exact = count(forms[-1], "f32", "f32")
        print(f"{name} {fast:g} {exact:g}")
    for name, form in INTEGERS.items():
        number = count(form, "u32", "f32" if name == "random" else "u32")
        print(f"{name} {number:g} {number:g}")


main()
