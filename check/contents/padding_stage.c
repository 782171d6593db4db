/* Contents of the fields of stages: by pipe, and by the handle of the producer that has written
 * them. Edges are formulas in the algebra of the producer. */
#include "check/padding/padding.h"
#include "flow/match.h"

/* most handles of a producer whose contents are followed apart; beyond, less is accepted */
#define WRITERS_MOST 64

/* ---- writers --------------------------------------------------------------------------------- */

/* Contents are followed by the handle of the producer, or for all together if one moves or there
 * are many. */
static int writers_of(const Padding *p, int pipe) {
    int role = p->tiles->prog->pipes.items[pipe].producer;
    if (role < 0 || p->moves[pipe]) return 1;
    size_t handles = p->tiles->prog->roles.items[role].handles.count;
    return handles > WRITERS_MOST ? 1 : (int)handles;
}

/* Otherwise edges have the loop variables of any of its handles. */
static bool is_by_handle(const Padding *p, int pipe) {
    int role = p->tiles->prog->pipes.items[pipe].producer;
    return role >= 0 && writers_of(p, pipe) == (int)p->tiles->prog->roles.items[role].handles.count;
}

static TileFill *field_of(const Padding *p, int pipe, int writer, int field) {
    size_t fields = p->tiles->prog->pipes.items[pipe].fields.count;
    return &p->fields[pipe][(size_t)writer * fields + (size_t)field];
}

/* The elements of all writers */
static TileFill *all_of(const Padding *p, int pipe, int field) {
    return field_of(p, pipe, writers_of(p, pipe), field);
}

void padding_open_fields(Padding *p, int pipe) {
    const Pipe *row = &p->tiles->prog->pipes.items[pipe];
    const Role *role = row->producer < 0 ? NULL : &p->tiles->prog->roles.items[row->producer];
    for (size_t at = 0; role && at < role->code->rows.count; at++)
        p->moves[pipe] |= role->code->rows.items[at].kind == ROW_MOVE;
    int writers = writers_of(p, pipe);
    p->fields[pipe] = NEW_ARRAY(p->arena, TileFill, (size_t)(writers + 1) * row->fields.count + 1);
    for (int f = 0; f < (int)row->fields.count; f++)
        for (int w = 0; w <= writers && row->fields.items[f].address_taken[END_PRODUCE]; w++)
            *field_of(p, pipe, w, f) = padding_any(p);
}

/* Other roles that write into the pipe are refused by `ends` and have no part in its contents. */
static bool is_producer(const Padding *p, int pipe) {
    const Prog *prog = p->tiles->prog;
    return prog->pipes.items[pipe].producer == (int)(p->code->role - prog->roles.items);
}

TileFill *padding_produced(const Padding *p, const Access *access) {
    if (access->space != SPACE_STAGE) return NULL; /* `object` is another number */
    const Handle *handle = &p->code->role->handles.items[access->object];
    if (handle->end != END_PRODUCE || handle->pipe < 0 || !is_producer(p, handle->pipe))
        return NULL;
    int writer = writers_of(p, handle->pipe) == 1 ? 0 : access->object;
    return field_of(p, handle->pipe, writer, access->field);
}

/* Repeats the roles that have read the stages of the pipe before. */
static void grow(Padding *p, int pipe) {
    const Prog *prog = p->tiles->prog;
    p->versions[pipe]++;
    for (size_t r = 0; r < prog->roles.count; r++)
        p->again[r] |= p->reads[r * prog->pipes.count + (size_t)pipe];
}

void padding_produce(Padding *p, const Access *target, const TileFill *next) {
    TileFill *field = padding_produced(p, target);
    int pipe = p->code->role->handles.items[target->object].pipe;
    bool grown = next->element != field->element;
    for (int d = 0; d < DIMS_MOST; d++) grown |= next->dims[d] != field->dims[d];
    if (!grown) return;
    TileFill *all = all_of(p, pipe, target->field);
    *field = *next;
    all->element =
        fill_join(&p->fills, padding_written(p, all->element), padding_written(p, next->element));
    grow(p, pipe);
}

const TileFill *padding_stage(Padding *p, const Access *read) {
    const Prog *prog = p->tiles->prog;
    const Handle *handle = &p->code->role->handles.items[read->object];
    const TileFill *own = padding_produced(p, read);
    if (handle->pipe < 0 || (handle->end == END_PRODUCE && !own)) return NULL;
    size_t role = (size_t)(p->code->role - prog->roles.items);
    p->reads[role * prog->pipes.count + (size_t)handle->pipe] = true;
    padding_consult_pipe(p, handle->pipe);
    return own ? own : all_of(p, handle->pipe, read->field);
}

/* ---- what a consumer reads ------------------------------------------------------------------- */

/* Contents that the producer has written, in the algebra and the variables of this role, for one
 * way in which the stage may have been filled; NULL: any way */
static const Fill *translated(Padding *p, const Fill *fill, FlowCode *producer,
                              const Fillings *ways, const Filling *way) {
    Draft out;
    if (fill->count == 0) return fill;
    fill_draft(fill, &out);
    for (int i = 0; i < out.count; i++) {
        Edge *edge = &out.edges[i];
        edge->sub = match_formula(ways, way, producer, p->code, edge->sub);
        edge->past =
            edge->past ? algebra_import(p->code->algebra, producer->algebra, edge->past) : NULL;
    }
    draft_merge_unknown(&out);
    return fill_made(&p->fills, &out);
}

static FlowCode *producer_of(const Padding *p, int pipe) {
    int role = p->code->prog->pipes.items[pipe].producer;
    return role >= 0 ? p->code->prog->roles.items[role].code : NULL;
}

/* Contents of a consumed stage's field at the positions of the read, over all ways to fill it */
const Fill *padding_consumed(Padding *p, const Access *read, int d) {
    int pipe = p->code->role->handles.items[read->object].pipe;
    FlowCode *producer = producer_of(p, pipe);
    const Fillings *ways =
        p->proofs && producer ? match_stage(p->arena, producer, p->code, read->object) : NULL;
    bool known = ways && ways->known && is_by_handle(p, pipe);
    size_t count = known ? ways->items.count : (size_t)writers_of(p, pipe);
    const Fill *out = p->unwritten;
    FillKey key = {FILL_IMPORT, 0, {NULL, producer, p->code}};
    for (size_t i = 0; i < count; i++) {
        const Filling *way = known ? &ways->items.items[i] : NULL;
        const Fill *dim = field_of(p, pipe, way ? way->handle : (int)i, read->field)->dims[d];
        if (!dim) continue;
        PathMark mark = algebra_mark(p->code->algebra);
        for (size_t k = 0; way && k < way->facts.count; k++)
            algebra_assume_poly(p->code->algebra, way->facts.items[k]);
        key.of[0] = dim;
        const Fill *fill = ways || !producer ? NULL : fill_recall(&p->fills, &key);
        if (!fill) fill = producer ? translated(p, dim, producer, ways, way) : dim;
        if (!ways && producer) fill_remember(&p->fills, &key, fill);
        fill = padding_at_read(p, fill, read);
        algebra_undo(p->code->algebra, mark);
        out = fill_join(&p->fills, out, fill);
    }
    return out;
}
