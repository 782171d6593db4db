/* Masks as a program would write them, for the helps of messages. */
#include "check/padding/padding.h"

#define TEXT_MOST 72 /* longest text of a subscript in a help */

/* ---- formulas -------------------------------------------------------------------------------- */

static bool print(const Padding *p, const Poly *poly, Str *out);

static bool print_call(const Padding *p, const char *name, const Atom *atom, Str *out) {
    bool printed = true;
    str_printf(out, "%s(", name);
    for (int i = 0; i < 2; i++) {
        if (i > 0) str_add(out, ", ");
        printed &= print(p, atom->args[i], out);
    }
    str_char(out, ')');
    return printed;
}

static bool print_operand(const Padding *p, const Poly *poly, Str *out) {
    bool single = poly && poly->count == 1 && poly->terms[0].count <= 1;
    if (single) return print(p, poly, out);
    str_char(out, '(');
    bool printed = print(p, poly, out);
    str_char(out, ')');
    return printed;
}

static bool print_operands(const Padding *p, char sign, const Atom *atom, Str *out) {
    str_char(out, '(');
    bool printed = print_operand(p, atom->args[0], out);
    str_printf(out, " %c ", sign);
    printed &= print_operand(p, atom->args[1], out);
    str_char(out, ')');
    return printed;
}

/* False: the program has no name for it. */
static bool print_atom(const Padding *p, int id, Str *out) {
    const Atom *atom = &p->code->algebra->atoms.items[id];
    const Prog *prog = p->code->prog;
    switch (atom->kind) {
    case ATOM_SYMBOL: str_add(out, prog->symbols.items[atom->index].name); return true;
    case ATOM_AXIS: str_add(out, prog->axes.items[atom->index].name); return true;
    case ATOM_LOCAL:
        str_add(out, atom->role->locals.items[atom->index].name);
        return atom->role == p->code->role;
    case ATOM_RANK: str_add(out, "rank"); return true;
    case ATOM_INDEX:
        if (atom->index >= p->space->count) return false;
        str_add(out, p->space->items[atom->index].name);
        return true;
    case ATOM_CEIL: return print_call(p, "ceil", atom, out);
    case ATOM_MIN: return print_call(p, "min", atom, out);
    case ATOM_MAX: return print_call(p, "max", atom, out);
    case ATOM_WRAP: return print(p, atom->args[0], out);
    case ATOM_DIV: return print_operands(p, '/', atom, out);
    case ATOM_MOD: return print_operands(p, '%', atom, out);
    case ATOM_SELECT:
    case ATOM_TRUTH:
    case ATOM_FLOOR:
    case ATOM_WHOLE:
    case ATOM_REST:
    case ATOM_BOUND:
    case ATOM_SUM:
    case ATOM_FIRST:
    case ATOM_OPAQUE: break;
    }
    return false;
}

static bool print_term(const Padding *p, const Term *term, bool first, Str *out) {
    int64_t coef = term->coef;
    bool printed = coef != INT64_MIN;
    if (!printed) return false;
    if (coef < 0 || !first) str_add(out, first ? "-" : coef < 0 ? " - " : " + ");
    if (coef < 0) coef = -coef;
    for (int k = 0; k < term->count && printed; k++) {
        if (k > 0) str_char(out, '*');
        printed = print_atom(p, term->atoms[k], out);
    }
    if (term->count == 0 || coef != 1)
        str_printf(out, term->count ? "*%lld" : "%lld", (long long)coef);
    return printed;
}

/* The constant stands last. */
static bool print(const Padding *p, const Poly *poly, Str *out) {
    bool printed = poly != NULL, first = true;
    for (int constant = 0; constant < 2 && printed; constant++)
        for (int t = 0; t < poly->count && printed; t++) {
            if ((poly->terms[t].count == 0) != (constant == 1)) continue;
            printed = print_term(p, &poly->terms[t], first, out);
            first = false;
        }
    if (printed && first) str_char(out, '0');
    return printed;
}

static const char *formula(const Padding *p, const Poly *poly) {
    Str out = {.arena = p->arena};
    if (!print(p, poly, &out) || out.length > TEXT_MOST) return NULL;
    return arena_copy(p->arena, out.text, out.length);
}

/* ---- masks ----------------------------------------------------------------------------------- */

const char *padding_written_text(const Padding *p, Span span) {
    const Source *source = p->tiles->diags->source;
    if (!source || span.hi <= span.lo || span.hi > source->length || span.hi - span.lo > TEXT_MOST)
        return NULL;
    for (uint32_t at = span.lo; at < span.hi; at++)
        if (source->text[at] == '\n') return NULL;
    return arena_copy(p->arena, source->text + span.lo, span.hi - span.lo);
}

/* As the present statement could write it; NULL: it has no names for it */
static const char *here(const Padding *p, const Edge *edge) {
    const char *text = edge->direct && edge->sub ? padding_written_text(p, edge->text) : NULL;
    return text || !edge->sub ? text : formula(p, edge->sub);
}

Mask padding_mask(const Padding *p, const Edge *edge, const char *name) {
    Mask mask = {.position = edge->earlier ? NULL : here(p, edge)};
    const char *past = formula(p, edge->past), *sub = mask.position;
    mask.here = sub != NULL;
    if (!sub) sub = mask.position = padding_written_text(p, edge->text);
    if (!sub) sub = arena_printf(p->arena, ".. + %s", name);
    if (!past) past = "extent";
    const char *above = arena_printf(p->arena, "%s >= 0", sub),
               *below = arena_printf(p->arena, "%s < %s", sub, past);
    mask.condition = edge->above   ? below
                     : edge->below ? above
                                   : arena_printf(p->arena, "%s && %s", above, below);
    return mask;
}
