/* Verdicts at each release: all instances together have written the complete payload and each
 * element once, copies bring the same bytes on every path; and the messages. */
#include "check/paths/verdicts.h"

typedef struct Reported {
    int acquire, field;
} Reported;

typedef struct Judge {
    Written *w;
    size_t before;          /* number of errors at the start */
    VEC(Reported) reported; /* of missing fields */
    bool *set;              /* by pipe: .. */
    int64_t *bytes;         /* .. the bytes that copies write to a stage */
} Judge;

static const Row *row_of(const Written *w, int at) { return &w->code->rows.items[at]; }

/* "y[3, 64]" */
static const char *element_text(Written *w, const Pipe *pipe, int f, int64_t element) {
    const Field *field = &pipe->fields.items[f];
    int64_t at = element - written_field_start(pipe, f), subs[PROG_MAX_RANK];
    Str text = str_new(w->arena);
    str_add(&text, field->name);
    if (field->is_array) str_printf(&text, "[%lld]", (long long)(at / field->elements));
    at %= field->elements;
    for (int d = field->rank - 1; d >= 0; d--)
        subs[d] = at % field->extents[d], at /= field->extents[d];
    str_char(&text, '[');
    for (int d = 0; d < field->rank; d++)
        str_printf(&text, "%s%lld", d ? ", " : "", (long long)subs[d]);
    str_char(&text, ']');
    return text.text;
}

/* ---- payload --------------------------------------------------------------------------------- */

static void report_missing(Written *w, const Release *at, const Hold *hold, int f, int64_t element,
                           bool none) {
    Tiles *tiles = w->tiles;
    const Pipe *pipe = &tiles->prog->pipes.items[hold->pipe];
    const Field *field = &pipe->fields.items[f];
    Span acquired = written_place_of(w, hold->acquire);
    Diag *diag = none ? diag_at(tiles->diags, P0214, acquired,
                                "field `%s` of `%s` is never written", field->name, pipe->name)
                      : diag_at(tiles->diags, P0214, acquired,
                                "field `%s` of `%s` is not completely written on every path",
                                field->name, pipe->name);
    diag_primary(tiles->diags, diag, "stage acquired here");
    diag_label(tiles->diags, diag, row_of(w, at->row)->span,
               row_of(w, at->row)->leaving ? "left here" : "passed on here");
    for (const Mark *mark = hold->marks; mark; mark = mark->before) {
        if (mark->site->tile->target.field != f || mark->site->row->span.lo < acquired.lo) continue;
        diag_label(tiles->diags, diag, mark->site->tile->target.span,
                   mark->vague ? "the elements that this writes are unknown at compile time"
                               : "written in part here");
        break;
    }
    diag_label(tiles->diags, diag, field->span, "declared here");
    if (!none)
        diag_note(tiles->diags, diag, "element `%s` may stay unwritten",
                  element_text(w, pipe, f, element));
    if (none)
        diag_help(tiles->diags, diag, "write `%s.%s[..] = ..;`, or remove the field from the pipe",
                  w->role->handles.items[row_of(w, at->row)->handle].name, field->name);
    else
        diag_help(tiles->diags, diag,
                  "write all of it on every path before the stage is passed on");
}

static void report_left(Written *w, const Release *at, const Hold *hold, int f) {
    Pipe *pipe = &w->tiles->prog->pipes.items[hold->pipe];
    const char *name = w->role->handles.items[row_of(w, at->row)->handle].name;
    Diag *diag = diag_at(w->tiles->diags, P0309, row_of(w, at->row)->span,
                         "the block of `%s` is left before all fields are written", name);
    diag_primary(w->tiles->diags, diag, "field `%s` is not written on this path",
                 pipe->fields.items[f].name);
    diag_label(w->tiles->diags, diag, written_place_of(w, hold->acquire),
               "consumers of `%s` receive this stage on every path", pipe->name);
    diag_help(w->tiles->diags, diag,
              "write every field before this, or move the condition before the acquire");
    pipe->faulty = true;
}

/* One message for each acquire and field, for any number of releases */
static bool already_reported(Judge *j, int acquire, int f) {
    arena_count(j->w->arena, 1 + j->reported.count / 4);
    for (size_t i = 0; i < j->reported.count; i++)
        if (j->reported.items[i].acquire == acquire && j->reported.items[i].field == f) return true;
    vec_push(j->w->arena, &j->reported, (Reported){acquire, f});
    return false;
}

/* Elements that the instances from `first` to `last`, exclusive, have written together: on every
 * path, or on some */
static const Elements *together(Written *w, const Release *at, int first, int last, bool every) {
    const Elements *all = elements_none();
    for (int r = first; r < last; r++) {
        const Hold *hold = at->holds[r];
        if (hold)
            all = written_known(w, elements_union(w->arena, all, every ? hold->must : hold->may),
                                all);
    }
    return all;
}

/* True if the instances from `first` to `last`, exclusive, have written the whole payload */
static bool check_payload(Judge *j, const Release *at, const Hold *hold, int first, int last) {
    Written *w = j->w;
    const Pipe *pipe = &w->tiles->prog->pipes.items[hold->pipe];
    const Elements *must = together(w, at, first, last, true),
                   *may = together(w, at, first, last, false);
    bool complete = true;
    arena_count(w->arena, pipe->fields.count);
    int64_t start = 0, end;
    for (size_t f = 0; f < pipe->fields.count; f++, start = end) {
        end = start + written_field_elements(&pipe->fields.items[f]);
        const Elements *field = elements_span(w->arena, start, end);
        if (elements_hold(must, field)) continue;
        const Elements *missing = written_known(w, elements_less(w->arena, field, must), field);
        bool none = elements_first_common(may, field) < 0;
        complete = false;
        if (already_reported(j, hold->acquire, (int)f)) continue;
        if (none && row_of(w, at->row)->leaving) {
            report_left(w, at, hold, (int)f);
            break;
        }
        report_missing(w, at, hold, (int)f, elements_first(missing), none);
    }
    return complete;
}

/* ---- two instances --------------------------------------------------------------------------- */

static const Mark *newest_mark(const Written *w, const Hold *hold, int64_t element) {
    const Mark *found = NULL;
    for (const Mark *mark = hold->marks; mark && !found; mark = mark->before) {
        arena_count(w->arena, 1);
        if (elements_has(mark->set, element)) found = mark;
    }
    return found;
}

static void report_overlap(Written *w, const Release *at, int r, int s, int64_t element) {
    Tiles *tiles = w->tiles;
    const Hold *a = at->holds[r], *b = at->holds[s];
    const Pipe *pipe = &tiles->prog->pipes.items[a->pipe];
    const Mark *first = newest_mark(w, a, element), *second = newest_mark(w, b, element);
    int f = 0;
    while (element >= written_field_start(pipe, f) + written_field_elements(&pipe->fields.items[f]))
        f++;
    if (!first || !second) return;
    bool vague = first->vague || second->vague;
    Diag *diag = diag_at(tiles->diags, P0215, first->site->tile->target.span,
                         vague ? "instances of `%s` may write the same elements of `%s`"
                               : "instances of `%s` both write elements of `%s`",
                         w->role->name, pipe->name);
    diag_primary(tiles->diags, diag, "written by the instance of rank %d", r);
    if (second->site != first->site)
        diag_label(tiles->diags, diag, second->site->tile->target.span,
                   "also written here, by rank %d", s);
    diag_label(tiles->diags, diag, w->role->span, "%d instances run this role together",
               w->role->instances);
    if (!vague)
        diag_note(tiles->diags, diag, "ranks %d and %d write `%s`", r, s,
                  element_text(w, pipe, f, element));
    diag_help(tiles->diags, diag, "give each instance its own part: `rank*extent + i`");
}

static bool check_overlap(Written *w, const Release *at, int first, int last) {
    for (int r = first; r < last; r++)
        for (int s = r + 1; s < last; s++) {
            if (!at->holds[r] || !at->holds[s]) continue;
            int64_t element = elements_first_common(at->holds[r]->may, at->holds[s]->may);
            if (element < 0) continue;
            report_overlap(w, at, r, s, element);
            return false;
        }
    return true;
}

/* ---- bytes ----------------------------------------------------------------------------------- */

static void report_open(Written *w, const Hold *hold) {
    Tiles *tiles = w->tiles;
    const char *pipe = tiles->prog->pipes.items[hold->pipe].name;
    Diag *diag =
        diag_at(tiles->diags, P0214, written_place_of(w, hold->acquire),
                "a stage of `%s` is written by more statements than the checker follows", pipe);
    diag_primary(tiles->diags, diag, "stage acquired here");
    diag_label(tiles->diags, diag, hold->open_at, "the limit of %d writes is reached here",
               WRITES_MOST);
    diag_help(tiles->diags, diag,
              "write more elements in one statement: use an index instead of a loop");
}

static void report_bytes(Written *w, const Hold *hold, Span where, const char *what) {
    Tiles *tiles = w->tiles;
    const char *pipe = tiles->prog->pipes.items[hold->pipe].name;
    Diag *diag = diag_at(tiles->diags, P0216, written_place_of(w, hold->acquire),
                         "paths copy different numbers of bytes into a stage of `%s`", pipe);
    diag_primary(tiles->diags, diag, "stage acquired here");
    diag_label(tiles->diags, diag, where, "%s", what);
    diag_note(tiles->diags, diag,
              "the full barrier of a pipe expects the same number of bytes for every stage");
    diag_help(tiles->diags, diag,
              "write each field by copies on every path or on no path, alike "
              "in all instances: `s.x[i] = condition ? X[i] : 0;`");
}

static void check_bytes(Judge *j, const Release *at, const Hold *hold) {
    Written *w = j->w;
    int64_t *bytes = &j->bytes[hold->pipe];
    for (int r = 0; r < w->role->instances; r++) {
        const Hold *hold_of_rank = at->holds[r];
        if (!hold_of_rank) continue;
        if (hold_of_rank->differs) {
            report_bytes(w, hold_of_rank, hold_of_rank->differs_at,
                         "paths with different byte counts meet here");
            return;
        }
        if (!j->set[hold->pipe]) *bytes = hold_of_rank->bytes, j->set[hold->pipe] = true;
        if (*bytes == hold_of_rank->bytes) continue;
        report_bytes(w, hold_of_rank, row_of(w, at->row)->span,
                     arena_printf(w->arena,
                                  "this path copies %lld bytes, another path or "
                                  "instance copies %lld",
                                  (long long)hold_of_rank->bytes, (long long)*bytes));
        return;
    }
}

/* ---- releases -------------------------------------------------------------------------------- */

/* True if one of the first `before` errors is in this text: statements may then be missing. */
static bool is_reported(const Tiles *tiles, size_t before, Span span) {
    for (size_t i = 0; i < before; i++) {
        const Diag *diag = tiles->diags->items.items[i];
        if (code_rows[diag->code].severity == SEVERITY_ERROR && diag->has_place &&
            diag->labels[0].span.lo >= span.lo && diag->labels[0].span.hi <= span.hi)
            return true;
    }
    return false;
}

/* The text from the acquire to the release: its block, or the whole role */
static Span body_of(const Written *w, int acquire) {
    const Row *row = row_of(w, acquire);
    for (size_t at = (size_t)acquire; row->block && at < w->code->rows.count; at++) {
        const Row *end = row_of(w, (int)at);
        bool releases = end->kind == ROW_RELEASE;
        if (releases && end->block && !end->leaving && end->stmt == row->stmt)
            return (Span){row->span.lo, end->span.hi};
    }
    return w->code->regions.items[0].span;
}

/* A stage of a role in turn is written by one instance, others by all of them together. */
static void judge_release(Judge *j, const Release *at) {
    Written *w = j->w;
    const Hold *hold = NULL;
    bool poisoned = false, fine = true;
    int instances = w->role->instances;
    for (int r = 0; r < instances; r++) {
        if (!at->holds[r]) continue;
        if (!hold) hold = at->holds[r];
        poisoned |= at->holds[r]->poisoned;
    }
    if (!hold || poisoned || is_reported(w->tiles, j->before, body_of(w, hold->acquire))) return;
    if (hold->open) {
        report_open(w, hold);
        return;
    }
    int takes = role_takers(w->role, hold->pipe);
    for (int r = 0; r < instances && fine; r += takes) /* sets are unknown: reported elsewhere */
        fine = (takes == 1 && !at->holds[r]) || w->beyond ||
               (check_overlap(w, at, r, r + takes) && check_payload(j, at, hold, r, r + takes));
    if (fine) check_bytes(j, at, hold);
}

/* ---- roles ----------------------------------------------------------------------------------- */

static void judge(Written *w, size_t before) {
    size_t pipes = w->tiles->prog->pipes.count + 1;
    Judge j = {.w = w,
               .before = before,
               .set = NEW_ARRAY(w->arena, bool, pipes),
               .bytes = NEW_ARRAY(w->arena, int64_t, pipes)};
    for (size_t at = 0; at < w->code->rows.count; at++)
        if (w->releases[at].holds) judge_release(&j, &w->releases[at]);
}

static void judge_role(Written *w, size_t before) {
    report_stages(w);
    judge(w, before);
    /* statements may be missing */
    bool reported =
        is_reported(w->tiles, w->tiles->diags->items.count, w->code->regions.items[0].span);
    if (!reported && !w->beyond && (!w->findings.count || !w->cut))
        report_tiles(w);
    else if (!reported)
        incomplete_report(w->tiles->diags, w->role,
                          "every element is written before it is read or passed on");
}

void tiles_written(Arena *arena, Tiles *tiles) {
    size_t before = tiles->diags->items.count;
    for (size_t r = 0; r < tiles->prog->roles.count; r++) {
        Written *w = written_follow(arena, tiles, &tiles->prog->roles.items[r]);
        if (w) judge_role(w, before);
    }
}
