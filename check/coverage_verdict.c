/* Verdicts on what each release hands over: the payload of all instances together is whole and each element one's, copies bring the same bytes on
 * every path; and how it is said where not. */
#include "check/coverage.h"

/* "y[3, 64]" of the element behind a bit */
static const char *element_text(Coverage *c, const Pipe *pipe, int f, int64_t bit) {
    const Field *field = &pipe->fields.items[f];
    int64_t at = bit - coverage_field_start(pipe, f), subs[PROG_MAX_RANK];
    Str text = str_new(c->tiles->arena);
    str_add(&text, field->name);
    if (field->is_array) str_printf(&text, "[%lld]", (long long)(at / field->elements));
    at %= field->elements;
    for (int d = field->rank - 1; d >= 0; d--) subs[d] = at % field->extents[d], at /= field->extents[d];
    str_char(&text, '[');
    for (int d = 0; d < field->rank; d++) str_printf(&text, "%s%lld", d ? ", " : "", (long long)subs[d]);
    str_char(&text, ']');
    return text.text;
}

static void report_missing(Coverage *c, const Release *at, const Hold *hold, int f, int64_t bit, bool none) {
    Tiles *tiles = c->tiles;
    const Pipe *pipe = &tiles->prog->pipes.items[hold->pipe];
    const Field *field = &pipe->fields.items[f];
    Diag *diag = none ? diag_at(tiles->diags, P0214, coverage_place_of(hold->acquire), "field `%s` of `%s` is never written",
                                field->name, pipe->name)
                      : diag_at(tiles->diags, P0214, coverage_place_of(hold->acquire),
                                "field `%s` of `%s` is not written as a whole on every path", field->name, pipe->name);
    diag_primary(tiles->diags, diag, "the stage is acquired here");
    diag_label(tiles->diags, diag, at->span, at->stmt->kind == S_LEAVE ? "and left here" : "and passed on here");
    for (size_t i = hold->marks.count; i-- > 0;) {
        const Mark *mark = &hold->marks.items[i];
        if (mark->site->tile->target.field != f || mark->site->row->span.lo < hold->acquire->span.lo) continue;
        diag_label(tiles->diags, diag, mark->site->tile->target.span,
                   mark->vague ? "which elements this writes is not known at compile time" : "written in part here");
        break;
    }
    diag_label(tiles->diags, diag, field->span, "declared here");
    if (!none) diag_note(tiles->diags, diag, "element `%s` may be left unwritten", element_text(c, pipe, f, bit));
    if (none)
        diag_help(tiles->diags, diag, "write it: `%s.%s[..] = ..;`, or leave the field out of the pipe",
                  c->role->handles.items[at->handle].name, field->name);
    else
        diag_help(tiles->diags, diag, "write all of it on every path before the stage is passed on");
}

static void report_left(Coverage *c, const Release *at, const Hold *hold, int f) {
    Pipe *pipe = &c->tiles->prog->pipes.items[hold->pipe];
    const char *name = c->role->handles.items[at->handle].name;
    Diag *diag = diag_at(c->tiles->diags, P0309, at->span, "the block of `%s` is left before its payload is written", name);
    diag_primary(c->tiles->diags, diag, "`%s` has not been written on this path", pipe->fields.items[f].name);
    diag_label(c->tiles->diags, diag, coverage_place_of(hold->acquire), "consumers of `%s` get this stage on every path", pipe->name);
    diag_help(c->tiles->diags, diag, "write every field before, or decide before the stage is acquired");
    pipe->faulty = true;
}

/* One message for each place of acquire and field, however many releases follow */
static bool said_before(Coverage *c, Stmt *acquired, int f) {
    for (size_t i = 0; i < c->said.count; i++)
        if (c->said.items[i].acquired == acquired && c->said.items[i].field == f) return true;
    vec_push(c->tiles->arena, &c->said, (Said){acquired, f});
    return false;
}

/* True where the instances from `first` to before `last` have written the whole payload */
static bool check_payload(Coverage *c, const Release *at, const Hold *hold, int first, int last) {
    const Pipe *pipe = &c->tiles->prog->pipes.items[hold->pipe];
    bool complete = true;
    for (size_t f = 0; f < pipe->fields.count; f++) {
        int64_t start = coverage_field_start(pipe, (int)f), end = start + coverage_field_bits(&pipe->fields.items[f]), missing = -1;
        bool none = true;
        for (int64_t bit = start; bit < end; bit++) {
            uint64_t must = 0, may = 0;
            for (int r = first; r < last; r++) {
                if (!at->holds[r]) continue;
                must |= at->holds[r]->must[bit / 64], may |= at->holds[r]->may[bit / 64];
            }
            if (bit % 64 == 0 && bit + 64 <= end && must == UINT64_MAX) {
                none = false;
                bit += 63;
                continue;
            }
            if (may >> (bit % 64) & 1) none = false;
            if (missing < 0 && !(must >> (bit % 64) & 1)) missing = bit;
        }
        if (missing < 0) continue;
        complete = false;
        if (said_before(c, hold->acquire, (int)f)) continue;
        if (none && at->stmt->kind == S_LEAVE) {
            report_left(c, at, hold, (int)f);
            break;
        }
        report_missing(c, at, hold, (int)f, missing, none);
    }
    return complete;
}

static void report_overlap(Coverage *c, const Release *at, int r, int s, int64_t bit) {
    Tiles *tiles = c->tiles;
    const Hold *a = at->holds[r], *b = at->holds[s];
    const Pipe *pipe = &tiles->prog->pipes.items[a->pipe];
    const Mark *first = NULL, *second = NULL;
    int f = 0;
    while (bit >= coverage_field_start(pipe, f) + coverage_field_bits(&pipe->fields.items[f])) f++;
    for (size_t i = 0; i < a->marks.count; i++)
        if (a->marks.items[i].bits[bit / 64] >> (bit % 64) & 1) first = &a->marks.items[i];
    for (size_t i = 0; i < b->marks.count; i++)
        if (b->marks.items[i].bits[bit / 64] >> (bit % 64) & 1) second = &b->marks.items[i];
    if (!first || !second) return;
    bool vague = first->vague || second->vague;
    Diag *diag = diag_at(tiles->diags, P0215, first->site->tile->target.span,
                         vague ? "instances of `%s` may write the same elements of `%s`"
                               : "instances of `%s` both write elements of `%s`",
                         c->role->name, pipe->name);
    diag_primary(tiles->diags, diag, "by the instance of rank %d", r);
    if (second->site != first->site)
        diag_label(tiles->diags, diag, second->site->tile->target.span, "and here by rank %d", s);
    diag_label(tiles->diags, diag, c->role->span, "%d instances run this role together", c->role->instances);
    if (!vague) diag_note(tiles->diags, diag, "ranks %d and %d write `%s`", r, s, element_text(c, pipe, f, bit));
    diag_help(tiles->diags, diag, "give each instance its own part: `rank*.. + i`");
}

static void report_open(Coverage *c, const Hold *hold) {
    Tiles *tiles = c->tiles;
    const char *pipe = tiles->prog->pipes.items[hold->pipe].name;
    Diag *diag = diag_at(tiles->diags, P0214, coverage_place_of(hold->acquire),
                         "the payload of `%s` is written by more statements, turn by turn, than are followed", pipe);
    diag_primary(tiles->diags, diag, "the stage is acquired here");
    diag_label(tiles->diags, diag, hold->open_at, "followed for %d writes", MAX_WRITES);
    diag_help(tiles->diags, diag, "write more elements in one statement: an index instead of a loop");
}

static bool check_overlap(Coverage *c, const Release *at, int first, int last) {
    for (int r = first; r < last; r++)
        for (int s = r + 1; s < last; s++) {
            if (!at->holds[r] || !at->holds[s]) continue;
            int64_t bit = coverage_first_common(at->holds[r]->may, at->holds[s]->may, at->holds[r]->words);
            if (bit < 0) continue;
            report_overlap(c, at, r, s, bit);
            return false;
        }
    return true;
}

static void report_bytes(Coverage *c, const Release *at, const Hold *hold, Span where, const char *what) {
    Tiles *tiles = c->tiles;
    const char *pipe = tiles->prog->pipes.items[hold->pipe].name;
    Diag *diag = diag_at(tiles->diags, P0216, coverage_place_of(hold->acquire),
                         "copies bring a different number of bytes into `%s` on different paths", pipe);
    diag_primary(tiles->diags, diag, "the stage is acquired here");
    diag_label(tiles->diags, diag, where, "%s", what);
    diag_note(tiles->diags, diag,
              "a stage is full when a certain number of bytes has arrived, the same for every stage");
    diag_help(tiles->diags, diag, "fill a field by copies on all paths or on none, and in all instances alike");
    (void)at;
}

static void check_bytes(Coverage *c, const Release *at, const Hold *hold, bool *set) {
    PipeUse *use = &c->role->pipes[hold->pipe];
    for (int r = 0; r < c->role->instances; r++) {
        const Hold *here = at->holds[r];
        if (!here) continue;
        if (here->differs) {
            report_bytes(c, at, here, here->differs_at, "paths meet here with different numbers of bytes");
            return;
        }
        if (!set[hold->pipe]) use->tx_bytes = (uint32_t)here->bytes, set[hold->pipe] = true;
        if (use->tx_bytes == (uint32_t)here->bytes) continue;
        report_bytes(c, at, here, at->span,
                     arena_printf(c->tiles->arena, "%lld bytes here, %lld at another place or in another instance",
                                  (long long)here->bytes, (long long)use->tx_bytes));
        return;
    }
}

/* A stage of a role in turn is written by one instance, else by all of them together. */
static void judge_release(Coverage *c, const Release *at, size_t before, bool *set) {
    const Hold *hold = NULL;
    bool poisoned = false, fine = true;
    int instances = c->role->instances;
    for (int r = 0; r < instances; r++) {
        if (!at->holds[r]) continue;
        if (!hold) hold = at->holds[r];
        poisoned |= at->holds[r]->poisoned;
    }
    if (!hold || poisoned) return;
    Span body = hold->acquire->kind == S_STAGE ? hold->acquire->span : c->role->body->span;
    if (tiles_reported(c->tiles, before, body)) return;
    if (hold->open) {
        report_open(c, hold);
        return;
    }
    int together = role_takes(c->role, hold->pipe);
    for (int r = 0; r < instances && fine; r += together)
        fine = (together == 1 && !at->holds[r]) ||
               (check_overlap(c, at, r, r + together) && check_payload(c, at, hold, r, r + together));
    if (fine) check_bytes(c, at, hold, set);
}

void coverage_judge(Coverage *c, size_t before) {
    bool *set = NEW_ARRAY(c->tiles->arena, bool, c->tiles->prog->pipes.count + 1);
    for (size_t i = 0; i < c->releases.count; i++) judge_release(c, &c->releases.items[i], before, set);
}
