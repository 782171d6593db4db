/* Messages about what the rule `written` finds at a row: elements of a produced stage that are
 * written twice without an order, or read or added to before they have a value (P0209, P0217), and
 * tiles and variables that are read before they are written (P0228). */
#include "check/paths/verdicts.h"

/* ---- stages ---------------------------------------------------------------------------------- */

static void refuse_twice(Written *w, const StageFault *fault) {
    const Mark *first = fault->first;
    const Access *target = &fault->site->tile->target;
    Tiles *tiles = w->tiles;
    Diag *diag =
        diag_at(tiles->diags, P0217, target->span,
                fault->exact && !first->vague
                    ? "elements of %s are written twice, and nothing orders the two writes"
                    : "elements of %s may be written twice, and nothing orders the two writes",
                tiles_object(tiles, w->role, target));
    if (!fault->exact)
        diag_primary(tiles->diags, diag,
                     "the elements that this writes are unknown at compile time");
    diag_label(tiles->diags, diag, first->site->tile->target.span, "%s",
               tile_is_unawaited(first->site->tile)
                   ? "first written by this copy, which may still be in flight"
                   : "first written here by threads; the copy does not wait for them");
    diag_help(tiles->diags, diag,
              "write every element once: select the value in one statement with `?:`, or write "
              "disjoint parts");
}

static void refuse_sum(Written *w, const StageFault *fault) {
    const Access *target = &fault->site->tile->target;
    Diag *diag = diag_at(w->tiles->diags, P0209, target->span, "%s has no value yet",
                         tiles_object(w->tiles, w->role, target));
    diag_label(w->tiles->diags, diag, written_place_of(w, fault->hold->acquire),
               "stage acquired here for writing");
    diag_help(w->tiles->diags, diag, "assign it with `=` first");
}

/* The reason why an element cannot be read; NULL: it can */
static const char *not_there(const Written *w, const Hold *hold, int64_t element) {
    if (elements_has(hold->own, element)) return NULL;
    if (elements_has(hold->flying, element))
        return "an asynchronous copy writes it, and "
               "completes only when the stage is full";
    if (elements_has(hold->may, element)) return "not written on every path";
    return w->role->instances > 1 ? "this instance has not written it"
                                  : "nothing has written it yet";
}

static void refuse_read(Written *w, const StageFault *fault) {
    const Access *read = fault->read;
    const Hold *hold = fault->hold;
    Tiles *tiles = w->tiles;
    const Mark *first = NULL;
    Diag *diag = diag_at(tiles->diags, P0209, read->span, "%s may be read before it is written",
                         tiles_object(tiles, w->role, read));
    diag_primary(tiles->diags, diag, "%s", not_there(w, hold, fault->element));
    diag_label(tiles->diags, diag, written_place_of(w, hold->acquire),
               "stage acquired here for writing");
    for (const Mark *mark = hold->marks; mark; mark = mark->before)
        if (elements_has(mark->set, fault->element)) first = mark;
    if (first) diag_label(tiles->diags, diag, first->site->tile->target.span, "written here");
    if (read->kept) {
        diag_help(tiles->diags, diag,
                  "the elements for which this is false keep their value, which they must have: "
                  "select, `.. = c ? .. : 0`, or write them in the next statement, `where !c`");
        return;
    }
    diag_note(tiles->diags, diag,
              "in a stage that it produces, an instance may read only "
              "elements that its own threads have written");
    diag_help(tiles->diags, diag,
              "compute the value again, or keep it in a `var` or `shared` "
              "tile as well");
}

void report_stages(Written *w) {
    static void (*const refuse[])(Written *,
                                  const StageFault *) = {[FAULT_TWICE] = refuse_twice,
                                                         [FAULT_NO_VALUE] = refuse_sum,
                                                         [FAULT_UNWRITTEN] = refuse_read};
    for (size_t i = 0; i < w->faults.count; i++)
        refuse[w->faults.items[i].kind](w, &w->faults.items[i]);
}

/* ---- tiles and variables --------------------------------------------------------------------- */

static const char *element_text(Written *w, int object, int64_t at) {
    const Object *row = &w->objects[object];
    int64_t subs[PROG_MAX_RANK];
    Str text = str_new(w->arena);
    for (int d = row->tile->rank - 1; d >= 0; d--)
        subs[d] = at % row->tile->extents[d], at /= row->tile->extents[d];
    str_printf(&text, "%s[", row->name);
    for (int d = 0; d < row->tile->rank; d++)
        str_printf(&text, "%s%lld", d ? ", " : "", (long long)subs[d]);
    str_char(&text, ']');
    return text.text;
}

/* True if some row between these two writes the element */
static bool writes_between(const Written *w, const Finding *finding, int from, int to) {
    for (size_t i = 0; i < w->records.count; i++) {
        const Record *known = &w->records.items[i];
        if (known->object == finding->object && known->row > from && known->row < to &&
            elements_has(known->set, finding->element))
            return true;
    }
    return false;
}

/* The reason why a path may skip the write of row `at`: the innermost IF with the other outcome,
 * or loop without iteration, around it and not around the read */
static const char *why_not(const Written *w, const Finding *finding, int at, Span *where) {
    const FlowCode *code = w->code;
    for (int r = code->rows.items[at].region; r >= 0; r = code->regions.items[r].parent) {
        const Region *region = &code->regions.items[r];
        if (finding->row >= region->begin && finding->row <= region->end) return NULL;
        *where = region->head;
        if (region_loops(region) && w->skipped[r])
            return "not written if this loop has no iteration";
        if (region->kind != REGION_IF) continue;
        bool then = at < region->otherwise;
        if (!writes_between(w, finding, then ? region->otherwise : region->begin,
                            then ? region->end : region->otherwise))
            return then ? "not written if this is false" : "not written if this is true";
    }
    return NULL;
}

static void show_loss(Written *w, Diag *diag, const Finding *finding) {
    int last = -1;
    Span where = {0};
    for (size_t i = 0; i < w->records.count; i++) {
        const Record *known = &w->records.items[i];
        bool before =
            known->object == finding->object && known->row < finding->row && known->row > last;
        if (before && elements_has(known->set, finding->element)) last = known->row;
    }
    const char *why = last < 0 ? NULL : why_not(w, finding, last, &where);
    if (why) diag_label(w->tiles->diags, diag, where, "%s", why);
}

static void report(Written *w, const Finding *finding) {
    Tiles *tiles = w->tiles;
    const Object *row = &w->objects[finding->object];
    Diag *diag = diag_at(tiles->diags, P0228, finding->at,
                         finding->any ? "`%s` may be read before all of it is written"
                                      : "`%s` is read, but never written",
                         row->name);
    diag_primary(tiles->diags, diag,
                 finding->kept ? "the elements for which this is false keep their value"
                               : "read here");
    diag_label(tiles->diags, diag, row->span, "declared here without a value");
    show_loss(w, diag, finding);
    if (finding->any)
        diag_label(tiles->diags, diag, finding->written,
                   row->tile ? "written here" : "assigned here");
    if (row->tile && finding->any)
        diag_note(tiles->diags, diag, "element `%s` may not have been written",
                  element_text(w, finding->object, finding->element));
    diag_help(tiles->diags, diag,
              finding->kept
                  ? "initialise it in its declaration, `= 0`, or select: `.. = c ? .. : 0`"
                  : "initialise it in its declaration, `= 0`, or write it on every path "
                    "before the read");
}

void report_tiles(Written *w) {
    for (size_t i = 0; i < w->findings.count; i++) report(w, &w->findings.items[i]);
}
