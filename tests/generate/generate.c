/* The generator: a shape of the index space, inputs with several orders of its axes, a chain of
 * roles over pipes, outputs. */
#include "tests/generate/generate.h"

#include <string.h>

#define RANK       4
#define MAX_INPUTS 4
#define MAX_PIPES  6
#define MAX_FIELDS 12

typedef enum Mode { PLAIN, REVERSED, STRIDED } Mode;

typedef struct Tensor { /* an input: its axes of the space, and their order */
    Element type;
    bool has[RANK];
    Mode mode[RANK];
    int halo[RANK];
    int copies;  /* tiles of an array field, and a leading axis of the tensor; 0: one plain tile */
    bool direct; /* read by the computing roles directly */
} Tensor;

typedef struct Field {
    int pipe;
    int input; /* copied from, or -1: computed */
    Element type;
    int order[RANK]; /* axes of the space, outermost first */
    int rank;
    /* computed: its value, in the tensors' coordinates */
    const char *claim;
    bool exact;
} Field;

typedef struct Pipe {
    int stages, consumers;
    bool computed;
} Pipe;

typedef struct Kernel {
    Arena *arena;
    Random random;
    bool integers, by_lanes, persistent, clustered;
    bool in_turn; /* of the current role */
    /* axes, and the number of them in the grid; the others are ranges */
    int rank, grid;
    int tile[RANK];
    Tensor inputs[MAX_INPUTS];
    int input_count;
    Pipe pipes[MAX_PIPES];
    int pipe_count;
    Field fields[MAX_FIELDS];
    int field_count;
    int outputs;
    Str parameters, claims, pipe_text, roles; /* under construction */
    Str pipe_fields[MAX_PIPES];
    const char *pipe_ends[MAX_PIPES];
} Kernel;

static const char *const INDEX[] = {"i", "j", "k", "l"}, *const EXTENT[] = {"A", "B", "C", "D"},
                         *const LOOP[] = {"m", "n", "p", "q"};

/* ---- random numbers -------------------------------------------------------------------------- */

uint32_t draw(Random *random, uint32_t below) { /* splitmix64 */
    uint64_t z = random->state += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return (uint32_t)((z ^ z >> 31) >> 32) % below;
}

bool chance(Random *random, int percent) { return draw(random, 100) < (uint32_t)percent; }

static uint32_t pick(Kernel *k, uint32_t below) { return draw(&k->random, below); }
static bool often(Kernel *k, int percent) { return chance(&k->random, percent); }

static Element any_type(Kernel *k) {
    static const Element reals[] = {E_F32, E_F32, E_F16, E_BF16},
                         whole[] = {E_I32, E_I8, E_U8, E_U32, E_I32};
    return k->integers ? whole[pick(k, COUNT_OF(whole))] : reals[pick(k, COUNT_OF(reals))];
}

/* Of a value that both sides compute alike: a step of these types is larger than any tolerance. */
static Element exact_type(Kernel *k) {
    if (k->integers || !often(k, 20)) return any_type(k);
    return often(k, 50) ? E_E4M3 : E_E5M2;
}

static const char *spelling(Element type) { return element_rows[type].spelling; }

/* ---- the space ------------------------------------------------------------------------------- */

static void choose_space(Kernel *k) {
    static const int last[] = {16, 32, 48, 64, 96, 128, 40, 24, 264, 320, 512},
                     line[] = {64, 128, 256, 1000, 1024, 384, 2048, 48},
                     outer[] = {1, 2, 3, 4, 6, 8, 12};
    k->rank = 1 + (int)pick(k, 3) + often(k, 15);
    k->grid = 1 + (int)pick(k, (uint32_t)k->rank);
    k->integers = often(k, 40);
    k->persistent = often(k, 60);
    k->by_lanes = k->rank > 1 && often(k, 25);
    k->clustered = often(k, 40);
    int64_t total = 1;
    for (int d = k->rank - 1; d >= 0; d--) {
        if (k->rank == 1)
            k->tile[d] = line[pick(k, COUNT_OF(line))];
        else
            k->tile[d] =
                d == k->rank - 1 ? last[pick(k, COUNT_OF(last))] : outer[pick(k, COUNT_OF(outer))];
        if (total * k->tile[d] > 4096) k->tile[d] = 2;
        total *= k->tile[d];
    }
}

/* True if all innermost axes must be multiples of 16 elements: those of tensor copies */
static bool aligned(const Kernel *k) {
    bool rows = k->rank > 1;
    for (int i = 0; i < k->input_count; i++) rows |= k->inputs[i].copies > 0;
    return rows && !k->by_lanes;
}

static void choose_input(Kernel *k) {
    Tensor *t = &k->inputs[k->input_count++];
    *t = (Tensor){.type = exact_type(k), .direct = often(k, 15)};
    bool any = false;
    for (int d = 0; d < k->rank; d++)
        any |= t->has[d] = often(k, k->clustered && d < k->grid ? 50 : 85);
    if (!any) t->has[k->rank - 1] = true;
    bool plain = !k->by_lanes && !t->direct;
    for (int d = 0; d < k->rank; d++) {
        if (!plain && often(k, 20)) t->mode[d] = often(k, 50) ? REVERSED : STRIDED;
        if (often(k, 20)) t->halo[d] = d == k->rank - 1 ? 16 : 1;
    }
    if (!t->direct && often(k, 20)) t->copies = 2 + (int)pick(k, 2);
}

/* ---- coordinates ----------------------------------------------------------------------------- */

/* The tensor's coordinate for position `at` of the space, shifted by `by` */
static void add_coordinate(Str *out, const Tensor *t, int d, const char *at, int by) {
    switch (t->mode[d]) {
    case PLAIN: str_add(out, at); break;
    case REVERSED: str_printf(out, "%s - 1 - (%s", EXTENT[d], at); break;
    case STRIDED: str_printf(out, "2*(%s", at); break;
    }
    if (by != 0) str_printf(out, " %c %d", by > 0 ? '+' : '-', by > 0 ? by : -by);
    if (t->mode[d] != PLAIN) str_add(out, t->mode[d] == STRIDED ? ") + 1" : ")");
}

/* X0[copy, ..] at the positions `at` of the space */
static const char *tensor_text(Kernel *k, int input, const char *copy, const char *const *at,
                               const int *by) {
    const Tensor *t = &k->inputs[input];
    Str out = str_new(k->arena);
    const char *comma = "";
    str_printf(&out, "X%d[", input);
    if (copy != NULL) str_add(&out, copy), comma = ", ";
    for (int d = 0; d < k->rank; d++) {
        if (!t->has[d]) continue;
        str_add(&out, comma);
        add_coordinate(&out, t, d, at[d], by[d]);
        comma = ", ";
    }
    str_char(&out, ']');
    return out.text;
}

/* ---- expressions ----------------------------------------------------------------------------- */

/* A value as the role writes it and as `ensures` does; exact: both compute exactly the same */
typedef struct Text {
    const char *role, *claim;
    bool exact, leaf;
} Text;

typedef struct Scene { /* the context in a computing role */
    Kernel *k;
    bool held[MAX_PIPES]; /* pipes from which it holds a stage */
    bool parted;          /* instances share axis 0 */
    int part;             /* elements of axis 0 of an instance */
    /* a tile `t` holds the first leaf; in a `var` tile */
    bool started, registers;
    Text kept;
    const char *row[RANK];   /* local index of each axis: "i", or "rank*4 + i" */
    const char *place[RANK]; /* position in the space: "m*8 + i" */
} Scene;

static const char *widened(Kernel *k, Element type, const char *text) {
    if (!k->integers)
        return element_rows[type].kind == ELEMENT_FLOAT ? text
                                                        : arena_printf(k->arena, "f32(%s)", text);
    return type == E_U32 ? arena_printf(k->arena, "i32(%s)", text) : text;
}

static Text input_leaf(Scene *s, int input, const char *handle, int field) {
    Kernel *k = s->k;
    const Tensor *t = &k->inputs[input];
    int by[RANK] = {0};
    const char *copy =
        t->copies > 0 ? arena_printf(k->arena, "%u", pick(k, (uint32_t)t->copies)) : NULL;
    Str role = str_new(k->arena);
    if (handle != NULL) str_printf(&role, "%s.f%d", handle, field);
    if (handle != NULL && copy != NULL) str_printf(&role, "[%s]", copy);
    const char *comma = "[";
    for (int d = 0; d < k->rank; d++) {
        int shift = t->halo[d] > 0 ? 1 + (int)pick(k, (uint32_t)(2 * t->halo[d]))
                                   : 0; /* a bare index would run over the halo too */
        by[d] = shift - t->halo[d];
        if (!t->has[d] || handle == NULL) continue;
        str_printf(&role, "%s%s", comma, s->row[d]);
        if (shift > 0) str_printf(&role, " + %d", shift);
        comma = ", ";
    }
    if (handle != NULL) str_char(&role, ']');
    const char *text = handle != NULL ? role.text : tensor_text(k, input, copy, s->place, by);
    return (Text){widened(k, t->type, text),
                  widened(k, t->type, tensor_text(k, input, copy, INDEX, by)), true, true};
}

static Text field_leaf(Scene *s, int number) {
    Kernel *k = s->k;
    const Field *field = &k->fields[number];
    const char *handle = arena_printf(k->arena, "s%d", field->pipe);
    if (field->input >= 0) return input_leaf(s, field->input, handle, number);
    Str role = str_new(k->arena);
    str_printf(&role, "%s.f%d[", handle, number);
    for (int a = 0; a < field->rank; a++)
        str_printf(&role, "%s%s", a > 0 ? ", " : "", s->row[field->order[a]]);
    str_char(&role, ']');
    return (Text){widened(k, field->type, role.text), widened(k, field->type, field->claim),
                  field->exact, true};
}

static Text constant(Kernel *k) {
    const char *text = k->integers ? arena_printf(k->arena, "%u", 1 + pick(k, 9))
                                   : arena_printf(k->arena, "%u.%u", pick(k, 3), 1 + pick(k, 9));
    return (Text){text, text, true, false};
}

static Text leaf(Scene *s) {
    Kernel *k = s->k;
    if (s->started && often(k, 40)) return s->kept;
    for (int tries = 0; tries < 20; tries++) {
        uint32_t which = pick(k, (uint32_t)(k->field_count + k->input_count + 1));
        if (which < (uint32_t)k->field_count) {
            if (s->held[k->fields[which].pipe]) return field_leaf(s, (int)which);
        } else if (which < (uint32_t)(k->field_count + k->input_count)) {
            int input = (int)which - k->field_count;
            if (k->inputs[input].direct) return input_leaf(s, input, NULL, 0);
        } else if (often(k, 40)) {
            return (Text){"a", "a", true, false};
        }
    }
    return constant(k);
}

/* A condition that both sides decide in the same way */
static Text condition(Scene *s) {
    Kernel *k = s->k;
    int d = (int)pick(k, (uint32_t)k->rank);
    Text a = leaf(s), b = constant(k);
    if (a.exact && a.leaf && often(k, 60)) {
        static const char *const ops[] = {"<", "<=", ">", ">=", "==", "!="};
        const char *op = ops[pick(k, COUNT_OF(ops))];
        return (Text){arena_printf(k->arena, "%s %s %s", a.role, op, b.role),
                      arena_printf(k->arena, "%s %s %s", a.claim, op, b.claim), true, false};
    }
    uint32_t by = 2 + pick(k, 5);
    return (Text){arena_printf(k->arena, "(%s) %% %u != 0", s->place[d], by),
                  arena_printf(k->arena, "%s %% %u != 0", INDEX[d], by), true, false};
}

static Text expression(Scene *s, int depth);

static Text combined(Scene *s, const char *format, int depth) {
    Kernel *k = s->k;
    Text a = expression(s, depth - 1), b = expression(s, depth - 1);
    Str r = str_new(k->arena), c = str_new(k->arena);
    for (const char *f = format; *f != '\0'; f++) { /* @ and # are the operands */
        if (*f == '@')
            str_add(&r, a.role), str_add(&c, a.claim);
        else if (*f == '#')
            str_add(&r, b.role), str_add(&c, b.claim);
        else
            str_char(&r, *f), str_char(&c, *f);
    }
    return (Text){r.text, c.text, a.exact && b.exact && k->integers, false};
}

static Text expression(Scene *s, int depth) {
    static const char *const real[] = {"(@ + #)",
                                       "(@ - #)",
                                       "(@ * #)",
                                       "min(@, #)",
                                       "max(@, #)",
                                       "fma(@, #, 0.5)",
                                       "abs(@ - #)",
                                       "(@ + # / 3)",
                                       "(@ * # + @)",
                                       "-(@ * #)",
                                       "sqrt(abs(@) + 1)",
                                       "(@ / 0.7 - #)",
                                       "exact(@ + #)",
                                       "exact(sin(clamp(@, -8, 8)) + cos(clamp(#, -8, 8)))",
                                       "pow(abs(@) + 0.5, clamp(#, -2, 2))"};
    static const char *const whole[] = {
        "(@ + #)",      "(@ - #)",          "(@ * 3 - #)",  "min(@, #)",      "max(@, #)",
        "abs(@ - #)",   "(@ / 3 + #)",      "(@ % 7 - #)",  "-(@ + #)",       "(@ & #)",
        "(@ & ~#)",     "(@ ^ #)",          "(@ >> 1 | #)", "((@ << 2) - #)", "(popc(@) + #)",
        "(@ << 3 | #)", "(@ & 12 | # >> 2)"};
    Kernel *k = s->k;
    if (depth == 0) return leaf(s);
    if (often(k, 20)) {
        Text c = condition(s), a = expression(s, depth - 1), b = expression(s, depth - 1);
        return (Text){arena_printf(k->arena, "(%s ? %s : %s)", c.role, a.role, b.role),
                      arena_printf(k->arena, "(%s ? %s : %s)", c.claim, a.claim, b.claim),
                      a.exact && b.exact, false};
    }
    return combined(
        s, k->integers ? whole[pick(k, COUNT_OF(whole))] : real[pick(k, COUNT_OF(real))], depth);
}

static const char *narrowed(Kernel *k, Element type, const char *text) {
    bool plain = type == (k->integers ? E_I32 : E_F32);
    return plain ? text : arena_printf(k->arena, "%s(%s)", spelling(type), text);
}

/* ---- pipes and outputs ----------------------------------------------------------------------- */

static int new_pipe(Kernel *k, bool computed) {
    static const int depths[] = {1, 2, 3, 4, 2, 6};
    int pipe = k->pipe_count++;
    k->pipes[pipe] = (Pipe){.stages = depths[pick(k, COUNT_OF(depths))], .computed = computed};
    k->pipe_fields[pipe] = str_new(k->arena);
    str_add(&k->pipe_fields[pipe], "");
    k->pipe_ends[pipe] = "";
    return pipe;
}

static int new_field(Kernel *k, int pipe, const Field *like) {
    int number = k->field_count++;
    Field *field = &k->fields[number];
    *field = *like;
    field->pipe = pipe;
    Str *out = &k->pipe_fields[pipe];
    const Tensor *t = field->input >= 0 ? &k->inputs[field->input] : NULL;
    str_printf(out, " f%d", number);
    if (t != NULL && t->copies > 0) str_printf(out, "[%d]", t->copies);
    str_printf(out, ": %s[", spelling(field->type));
    for (int a = 0; a < field->rank; a++) {
        int d = field->order[a];
        str_printf(out, "%s%d", a > 0 ? ", " : "", k->tile[d] + (t != NULL ? 2 * t->halo[d] : 0));
    }
    str_add(out, "];");
    return number;
}

static void natural_order(const Kernel *k, Field *field) {
    field->rank = k->rank;
    for (int d = 0; d < k->rank; d++) field->order[d] = d;
}

static void maybe_transposed(Kernel *k, Field *field) {
    natural_order(k, field);
    if (k->rank < 2 || !often(k, 25)) return;
    int a = (int)pick(k, (uint32_t)k->rank), b = (int)pick(k, (uint32_t)k->rank),
        axis = field->order[a];
    field->order[a] = field->order[b];
    field->order[b] = axis;
}

/* "[i, j]" in an order of axes */
static const char *subscripts(Kernel *k, const Field *like, const char *const *at) {
    Str out = str_new(k->arena);
    for (int a = 0; a < like->rank; a++)
        str_printf(&out, "%s%s", a > 0 ? ", " : "[", at[like->order[a]]);
    str_char(&out, ']');
    return out.text;
}

/* Declares an output and claims what it holds; returns its number */
static int new_output(Kernel *k, const Field *like, bool inout, const char *claim, bool exact) {
    int number = k->outputs++;
    Str *p = &k->parameters;
    str_printf(p, ", %s Y%d: %s%s", inout ? "inout" : "out", number, spelling(like->type),
               subscripts(k, like, EXTENT));
    const char *at = subscripts(k, like, INDEX);
    str_printf(&k->claims, "        Y%d%s %s ", number, at, exact ? "==" : "~");
    if (inout) str_printf(&k->claims, "old Y%d%s + ", number, at);
    str_printf(&k->claims, "%s%s;\n", claim,
               exact                 ? ""
               : like->type == E_F32 ? " within 2e-2"
                                     : " within 5e-2");
    return number;
}

/* ---- loops ----------------------------------------------------------------------------------- */

static void open_loops(Kernel *k, const char *role, const char *team, bool turn) {
    Str *out = &k->roles;
    str_printf(out, "    role %s: %s {\n        for (", role, team);
    for (int d = 0; d < k->grid; d++) str_printf(out, "%s%s", d > 0 ? ", " : "", LOOP[d]);
    str_printf(out, ") in grid {%s\n", turn ? " turn {" : "");
    for (int d = k->grid; d < k->rank; d++)
        str_printf(out, "        for %s in r%s {\n", LOOP[d], LOOP[d]);
}

static void close_loops(Kernel *k, bool turn) {
    for (int d = k->grid; d < k->rank; d++) str_add(&k->roles, "        }\n");
    str_printf(&k->roles, "        }%s\n    }\n", turn ? " }" : "");
}

/* Positions of this tile in the space: "m*8 + i" */
static void places(Kernel *k, const char *const *row, const char **place) {
    for (int d = 0; d < k->rank; d++)
        place[d] = arena_printf(k->arena, "%s*%d + %s", LOOP[d], k->tile[d], row[d]);
}

static const char *warps(Kernel *k, int count) {
    return arena_printf(k->arena, "%d warp%s", count, count == 1 ? "" : "s");
}

static int any_warps(Kernel *k) {
    static const int counts[] = {1, 2, 3, 4, 1, 5};
    return counts[pick(k, COUNT_OF(counts))];
}

/* Acquires, as block or flat; close_stages undoes it in reverse order */
typedef struct Held {
    int pipe;
    bool block, produce;
} Held;

static void open_stage(Kernel *k, Held *held, int pipe, bool produce, bool may_lag) {
    *held = (Held){pipe, often(k, 60), produce};
    const char *verb = produce ? "produce" : "consume";
    int lag = !produce && may_lag && held->block && k->pipes[pipe].stages >= 3 && often(k, 40)
                  ? 1 + (int)pick(k, (uint32_t)k->pipes[pipe].stages - 2)
                  : 0;
    const char *hint = "";
    if (!k->in_turn && often(k, 15)) {
        hint = arena_printf(k->arena, " if ready%d", pipe);
        str_printf(&k->roles, "            let ready%d = try %s <p%d>;\n", pipe, verb, pipe);
    }
    if (!held->block)
        str_printf(&k->roles, "            let s%d = %s <p%d>%s;\n", pipe, verb, pipe, hint);
    else if (lag > 0)
        str_printf(&k->roles, "            consume <p%d>%s lag %d as s%d {\n", pipe, hint, lag,
                   pipe);
    else
        str_printf(&k->roles, "            %s <p%d>%s as s%d {\n", verb, pipe, hint, pipe);
}

static void close_stage(Kernel *k, const Held *held) {
    if (held->block)
        str_add(&k->roles, "            }\n");
    else
        str_printf(&k->roles, "            release s%d;\n", held->pipe);
}

static void note_end(Kernel *k, int pipe, const char *role) {
    k->pipe_ends[pipe] = arena_printf(k->arena, "%s%s%s", k->pipe_ends[pipe],
                                      *k->pipe_ends[pipe] != '\0' ? ", " : "", role);
    k->pipes[pipe].consumers++;
}

/* ---- roles ----------------------------------------------------------------------------------- */

static void copy_input(Kernel *k, int number, const char *copy, bool rank) {
    const Field *field = &k->fields[number];
    const Tensor *t = &k->inputs[field->input];
    const char *place[RANK];
    int by[RANK];
    bool lanes = k->by_lanes;
    for (int d = 0; d < k->rank; d++) {
        by[d] = -t->halo[d];
        if (t->mode[d] != PLAIN && t->has[d]) lanes = true;
    }
    places(k, INDEX, place);
    if (copy != NULL && !rank) str_printf(&k->roles, "            for c in 0 .. %d {\n", t->copies);
    str_printf(&k->roles, "            s%d.f%d", field->pipe, number);
    if (copy != NULL) str_printf(&k->roles, "[%s]", copy);
    str_printf(&k->roles, "%s = %s%s;\n", subscripts(k, field, INDEX),
               tensor_text(k, field->input, copy, place, by), lanes ? " by lanes" : "");
    if (copy != NULL && !rank) str_add(&k->roles, "            }\n");
}

static void load_role(Kernel *k, int number, const int *inputs, int count) {
    int pipe = new_pipe(k, false), fields[MAX_INPUTS];
    bool rank = k->inputs[inputs[0]].copies > 0;
    for (int i = 0; i < count; i++) {
        const Tensor *t = &k->inputs[inputs[i]];
        Field field = {.input = inputs[i], .type = t->type, .exact = true};
        rank = rank && t->copies == k->inputs[inputs[0]].copies;
        for (int d = 0; d < k->rank; d++)
            if (t->has[d]) field.order[field.rank++] = d;
        fields[i] = new_field(k, pipe, &field);
    }
    rank = rank && often(k, 40);
    const char *role = arena_printf(k->arena, "load%d", number);
    k->pipe_ends[pipe] = "";
    open_loops(k, role,
               rank ? arena_printf(k->arena, "%d warpgroups", k->inputs[inputs[0]].copies)
                    : warps(k, often(k, 50) ? 1 : any_warps(k)),
               false);
    Held held;
    open_stage(k, &held, pipe, true, false);
    for (int i = 0; i < count; i++)
        copy_input(k, fields[i], k->inputs[inputs[i]].copies > 0 ? rank ? "rank" : "c" : NULL,
                   rank);
    close_stage(k, &held);
    close_loops(k, false);
    str_printf(&k->pipe_text, "    pipe p%d[%d] %s -> @%d {%s }\n", pipe, k->pipes[pipe].stages,
               role, pipe, k->pipe_fields[pipe].text);
}

static Field result_like(Scene *s, Text value) {
    Kernel *k = s->k;
    Field field = {.input = -1, .exact = value.exact};
    field.type = value.exact && value.leaf ? exact_type(k) : any_type(k);
    if (s->registers)
        natural_order(k, &field); /* elements of registers stay in their threads */
    else
        maybe_transposed(k, &field);
    field.claim = narrowed(k, field.type, value.claim);
    if (!k->integers && field.type != E_F32 && !value.leaf) field.exact = false;
    return field;
}

/* A statement on a tensor: of all elements; with the ranges of its indexes, whose first has `part`
 * elements; or as two statements, for the elements at even and at odd indexes */
static void store(Kernel *k, const char *statement, int part, const char *suffix) {
    bool halves = often(k, 15), ranges = often(k, 15);
    Str range = str_new(k->arena);
    str_add(&range, "");
    for (int d = 0; d < k->rank && ranges; d++)
        str_printf(&range, "%s %s in 0 .. %d", d > 0 ? "," : " for", INDEX[d],
                   d == 0 ? part : k->tile[d]);
    if (!halves) {
        str_printf(&k->roles, "            %s%s%s;\n", statement, suffix, range.text);
        return;
    }
    str_printf(&k->roles, "            %s where i %% 2 == 0%s;\n", statement, range.text);
    str_printf(&k->roles, "            %s%s where i %% 2 == 1;\n", statement, range.text);
}

/* One value of a computing role, written to a field of the produced stage or to memory */
static void compute_value(Scene *s, int pipe) {
    Kernel *k = s->k;
    Text value = expression(s, (int)pick(k, 4));
    if (pipe < 0 || s->parted) { /* only a tile subscripted by the bare index gives it an extent */
        value.role = arena_printf(k->arena, "(%s + %s)", s->kept.role, value.role);
        value.claim = arena_printf(k->arena, "(%s + %s)", s->kept.claim, value.claim);
        value.exact = value.exact && s->kept.exact && k->integers;
        value.leaf = false;
    }
    if (k->by_lanes && value.leaf) /* excludes a tensor copy */
        value.role = arena_printf(k->arena, "min(%s, %s)", value.role, value.role);
    Field field = result_like(s, value);
    const char *text = narrowed(k, field.type, value.role);
    if (pipe >= 0) {
        int number = new_field(k, pipe, &field);
        str_printf(&k->roles, "            s%d.f%d%s = %s;\n", pipe, number,
                   subscripts(k, &field, s->row), text);
        return;
    }
    bool inout = often(k, 30);
    if (inout)
        field.type = k->integers ? E_I32 : E_F32, field.claim = value.claim,
        field.exact = value.exact && k->integers, text = value.role;
    int output = new_output(k, &field, inout, field.claim, field.exact);
    store(k,
          arena_printf(k->arena, "Y%d%s %s %s", output, subscripts(k, &field, s->place),
                       inout ? "+=" : "=", text),
          s->part, "");
}

/* Stores the first leaf in a register or shared tile, for the role's own part of axis 0 if
 * instances share it */
static void keep_leaf(Scene *s, int part, int warps_of_it) {
    Kernel *k = s->k;
    int64_t total = part;
    for (int d = 1; d < k->rank; d++) total *= k->tile[d];
    bool too_many = total / (32 * warps_of_it) > 32; /* for the registers of a thread */
    Text first = leaf(s), second = expression(s, 1);
    Str dims = str_new(k->arena), at = str_new(k->arena);
    for (int d = 0; d < k->rank; d++) {
        str_printf(&dims, "%s%d", d > 0 ? ", " : "", d == 0 ? part : k->tile[d]);
        str_printf(&at, "%s%s", d > 0 ? ", " : "", INDEX[d]);
    }
    const char *type = k->integers ? "i32" : "f32";
    bool shared = part == k->tile[0] && (too_many || often(k, 40));
    str_printf(&k->roles, "            %s t: %s[%s];\n            t[%s] = %s;\n",
               shared ? "shared" : "var", type, dims.text, at.text, first.role);
    bool add = often(k, 50);
    if (add) str_printf(&k->roles, "            t[%s] += %s;\n", at.text, second.role);
    s->kept =
        (Text){arena_printf(k->arena, "t[%s]", at.text),
               add ? arena_printf(k->arena, "(%s + %s)", first.claim, second.claim) : first.claim,
               add ? first.exact && second.exact && k->integers : first.exact, !add};
    s->started = true;
    s->registers = !shared;
}

/* True if instances in turn may acquire without a `turn`: one stage of each pipe per iteration,
 * and rings that are multiples of the instances */
static bool rings_fit(const Kernel *k, int instances) {
    bool fit = k->grid == k->rank;
    for (int p = 0; p < k->pipe_count; p++) fit &= k->pipes[p].stages % instances == 0;
    return fit;
}

static const char *team_text(Kernel *k, int instances, bool in_turn, int count_of_warps) {
    if (instances == 1) return warps(k, count_of_warps);
    return arena_printf(k->arena, "%d warpgroups%s", instances, in_turn ? " in turn" : "");
}

static void compute_role(Kernel *k, int number, bool last) {
    Scene scene = {.k = k};
    Held held[MAX_PIPES + 1];
    int count = 0, instances = 1 + (int)pick(k, 3), out = -1;
    const char *role = arena_printf(k->arena, "work%d", number);
    int count_of_warps = any_warps(k);
    bool in_turn = instances > 1 && often(k, 30);
    if (!in_turn && (k->tile[0] % instances != 0 || often(k, 60))) instances = 1;
    bool turn = in_turn && (!rings_fit(k, instances) || often(k, 30));
    int parts = in_turn ? 1 : instances;
    for (int d = 0; d < k->rank; d++) scene.row[d] = INDEX[d];
    scene.parted = parts > 1;
    scene.part = k->tile[0] / parts;
    if (scene.parted) scene.row[0] = arena_printf(k->arena, "rank*%d + i", k->tile[0] / parts);
    k->in_turn = in_turn;
    places(k, scene.row, scene.place);
    open_loops(k, role, team_text(k, instances, in_turn, count_of_warps), turn);
    int before = k->pipe_count;
    bool nested = false;
    for (int p = 0; p < before; p++) {
        bool need = k->pipes[p].consumers == 0 && (last || p == before - 1);
        if (!need && !often(k, 50)) continue;
        open_stage(k, &held[count], p, false, !nested && !in_turn);
        nested |= held[count].block;
        scene.held[p] = true;
        note_end(k, p, role);
        count++;
    }
    bool produces = !last || often(k, 65);
    if (instances > 1 || !produces || often(k, 40))
        keep_leaf(&scene, k->tile[0] / parts, instances > 1 ? 4 : count_of_warps);
    if (produces) {
        out = new_pipe(k, true);
        if (in_turn && !turn) k->pipes[out].stages = instances * (1 + (int)pick(k, 2));
        open_stage(k, &held[count++], out, true, false);
    }
    for (int values = 1 + (int)pick(k, 2); values > 0; values--) compute_value(&scene, out);
    while (count > 0) close_stage(k, &held[--count]);
    close_loops(k, turn);
    k->in_turn = false;
    if (out >= 0)
        str_printf(&k->pipe_text, "    pipe p%d[%d] %s -> @%d {%s }\n", out, k->pipes[out].stages,
                   role, out, k->pipe_fields[out].text);
}

static bool storable(const Kernel *k, const Field *field) {
    if (field->input < 0) return true;
    const Tensor *t = &k->inputs[field->input];
    for (int d = 0; d < k->rank; d++)
        if (!t->has[d] || t->halo[d] > 0) return false;
    return t->copies == 0;
}

static bool has_storable(const Kernel *k, int pipe) {
    for (int f = 0; f < k->field_count; f++)
        if (k->fields[f].pipe == pipe && storable(k, &k->fields[f])) return true;
    return false;
}

static void store_role(Kernel *k, int pipe) {
    const char *role = arena_printf(k->arena, "store%d", pipe), *place[RANK];
    int none[RANK] = {0};
    Held held;
    open_loops(k, role, warps(k, often(k, 65) ? 1 : any_warps(k)), false);
    open_stage(k, &held, pipe, false, true);
    places(k, INDEX, place);
    for (int f = 0; f < k->field_count; f++) {
        Field *field = &k->fields[f];
        if (field->pipe != pipe || !storable(k, field)) continue;
        const char *claim =
            field->input >= 0 ? tensor_text(k, field->input, NULL, INDEX, none) : field->claim;
        Field as = *field;
        if (often(k, 15)) maybe_transposed(k, &as);
        int output = new_output(k, &as, false, claim, field->exact);
        store(k,
              arena_printf(k->arena, "Y%d%s = s%d.f%d%s", output, subscripts(k, &as, place), pipe,
                           f, subscripts(k, field, INDEX)),
              k->tile[0], k->by_lanes ? " by lanes" : "");
    }
    close_stage(k, &held);
    close_loops(k, false);
    note_end(k, pipe, role);
}

/* ---- program --------------------------------------------------------------------------------- */

static void declare_inputs(Kernel *k) {
    for (int i = 0; i < k->input_count; i++) {
        const Tensor *t = &k->inputs[i];
        const char *comma = "";
        str_printf(&k->parameters, "%sX%d: %s[", i > 0 ? ", " : "", i, spelling(t->type));
        if (t->copies > 0) str_printf(&k->parameters, "%d", t->copies), comma = ", ";
        for (int d = 0; d < k->rank; d++)
            if (t->has[d]) str_printf(&k->parameters, "%s%s", comma, EXTENT[d]), comma = ", ";
        str_char(&k->parameters, ']');
    }
}

static void build_roles(Kernel *k) {
    int list[MAX_INPUTS], count = 0, loads = 0;
    for (int i = 0; i < k->input_count; i++) {
        if (k->inputs[i].direct) continue;
        list[count++] = i;
        if (often(k, 30)) load_role(k, loads++, list, count), count = 0;
    }
    if (count > 0) load_role(k, loads++, list, count);
    int computes = (int)pick(k, 3);
    for (int p = 0; p < k->pipe_count && computes == 0; p++)
        if (!has_storable(k, p)) computes = 1;
    if (k->pipe_count == 0 && computes == 0) computes = 1;
    for (int c = 0; c < computes; c++) compute_role(k, c, c + 1 == computes);
    for (int p = 0; p < k->pipe_count; p++)
        if (k->pipes[p].consumers == 0 || (has_storable(k, p) && often(k, 20))) store_role(k, p);
}

/* Extents of about whole tiles; sometimes zero */
static const char *choose_sizes(Kernel *k) {
    Str out = str_new(k->arena);
    for (int d = 0; d < k->rank; d++) {
        int t = k->tile[d], choices[] = {1, t - 1, t, t + 1, 2 * t, 2 * t + 3, 3 * t - 2, 5},
            size = choices[pick(k, COUNT_OF(choices))];
        if (often(k, 4) || size < 0) size = 0;
        if (aligned(k)) size = (size + 15) / 16 * 16;
        if (k->rank > 2 && size > 3 * t && size > 32) size = 32;
        str_printf(&out, "%s=%d ", EXTENT[d], size);
    }
    str_add(&out, k->integers ? "a=3" : "a=1.25");
    return out.text;
}

/* Inputs that lack axes of the grid: the blocks of a cluster along those axes share their tiles. */
static void add_cluster(Kernel *k, Str *text) {
    static const int sizes[] = {1, 2, 2, 3, 4, 5, 8};
    int blocks = 1;
    if (!k->clustered) return;
    str_add(text, "    cluster (");
    for (int d = 0; d < k->grid; d++) {
        int size = sizes[pick(k, COUNT_OF(sizes))];
        if (blocks * size > 8) size = 1;
        blocks *= size;
        str_printf(text, "%s%s: %d", d > 0 ? ", " : "", LOOP[d], size);
    }
    str_add(text, ");\n");
}

/* Replaces "@3" in the pipes' heads by the roles that consume pipe 3, which are known at the end */
static void add_pipes(const Kernel *k, Str *out) {
    for (const char *c = k->pipe_text.text; *c != '\0'; c++) {
        if (*c == '@')
            str_add(out, k->pipe_ends[*++c - '0']);
        else
            str_char(out, *c);
    }
}

Generated generate(Arena *arena, uint64_t seed) {
    Kernel k = {.arena = arena, .random = {seed * 0x2545f4914f6cdd1du + 1}};
    Generated result;
    k.parameters = str_new(arena), k.claims = str_new(arena), k.pipe_text = str_new(arena),
    k.roles = str_new(arena);
    str_add(&k.pipe_text, "");
    choose_space(&k);
    for (uint32_t inputs = 1 + pick(&k, MAX_INPUTS - 1); inputs > 0; inputs--) choose_input(&k);
    declare_inputs(&k);
    build_roles(&k);
    Str text = str_new(arena);
    for (int i = 0; i < SIZES; i++) {
        result.sizes[i] = choose_sizes(&k);
        str_printf(&text, "//> run %s\n", result.sizes[i]);
    }
    str_printf(&text,
               "kernel k%llu(%s, a: %s) for sm_90a {\n    ensures {\n%s    }\n    example %s",
               (unsigned long long)seed, k.parameters.text, k.integers ? "i32" : "f32",
               k.claims.text, k.integers ? "a = 3" : "a = 1.25");
    for (int d = 0; d < k.rank; d++)
        str_printf(&text, ", %s = %d", EXTENT[d],
                   aligned(&k) ? (k.tile[d] + 31) / 16 * 16 : k.tile[d] + 3);
    bool dynamic = k.persistent && !k.clustered && seed % 2 == 0;
    str_printf(&text, ";\n    grid%s (", dynamic ? " dynamic" : k.persistent ? " persistent" : "");
    for (int d = 0; d < k.grid; d++)
        str_printf(&text, "%s%s: ceil(%s, %d)", d > 0 ? ", " : "", LOOP[d], EXTENT[d], k.tile[d]);
    str_add(&text, ");\n");
    add_cluster(&k, &text);
    for (int d = k.grid; d < k.rank; d++)
        str_printf(&text, "    range r%s = 0 .. ceil(%s, %d);\n", LOOP[d], EXTENT[d], k.tile[d]);
    add_pipes(&k, &text);
    str_add(&text, k.roles.text);
    str_add(&text, "}\n");
    result.text = text.text;
    return result;
}
