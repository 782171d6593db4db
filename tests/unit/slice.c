/* Slices of Code: the rows that are kept; a slice is a valid Code. Each row is a role's body and
 * the rows of the slice that keeps the acquires of `p`. */
#include "flow/slice.h"
#include "tests/unit/program.h"

#include <stdlib.h>

static const struct {
    const char *body, *rows;
} cases[] = {
    {"for m in grid { # }", "block loop acquire next end end exit"},
    {"for m in grid { for k in 0 .. n { } # }", "block loop acquire next end end exit"},
    {"for m in grid { for k in 0 .. n { var z = k; if z > 2 { break; } # } }",
     "block loop loop if leave else end acquire next end next end end exit"},
    /* No kept row is skipped by a leave */
    {"for m in grid { for k in 0 .. n { # if n > k { continue; } } }",
     "block loop loop acquire next end next end end exit"},
    {"for m in grid { # } if n > 2 { return; }", "block loop acquire next end end exit"},
    {"for m in grid { for k in 0 .. n { if k > 3 { break; } } # }",
     "block loop acquire next end end exit"},
    /* A `break` decides whether a `return` is reached that skips an acquire */
    {"for m in grid { for k in 0 .. n { if k > 3 { break; } if k > b { return; } } # }",
     "block loop loop if leave else end if leave else end next end acquire next end end exit"},
    {"for m in grid { if n > 2 { # } else { if b > 2 { continue; } } # }",
     "block loop if acquire else if leave else end end acquire next end end exit"},
    {"for m in grid { if n > 2 { if b > 1 { continue; } } else { # } }",
     "block loop if else acquire end next end end exit"},
};

static bool keeps(const FlowCode *code, const Row *row, const void *data) {
    (void)code, (void)data;
    return row->kind == ROW_ACQUIRE;
}

static void try_case(const char *body, const char *rows) {
    Arena *arena = arena_new();
    const char *text = arena_printf(arena,
                                    "kernel k(X: f32[M], n: i32, b: i32) for sm_90a {\n"
                                    "grid (m: M); pipe p[4] load -> work;\n"
                                    "role load: 1 warp { %s }\nrole work: 1 warp { } }",
                                    program_replaced(arena, body, "produce <p> as s { }"));
    Prog *prog = program_elaborated(arena, text);
    if (prog) {
        const FlowCode *slice =
            code_slice(arena, code_lower(arena, prog, &prog->roles.items[0]), keeps, NULL);
        Str out = str_new(arena), why = str_new(arena);
        for (size_t at = 0; at < slice->rows.count; at++)
            str_printf(&out, "%s%s", at ? " " : "", row_names[slice->rows.items[at].kind]);
        if (strcmp(out.text, rows) != 0)
            fprintf(stderr, "slice of: %s\n    %s\nis not\n    %s\n", body, out.text, rows);
        EXPECT(strcmp(out.text, rows) == 0);
        EXPECT(code_valid(arena, slice, &why));
    }
    arena_free(arena);
}

int main(void) {
    for (size_t i = 0; i < COUNT_OF(cases); i++) try_case(cases[i].body, cases[i].rows);
    return expect_failures();
}
