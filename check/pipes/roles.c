/* Checks that each end of a pipe is acquired only by its roles, and by all of them. */
#include "check/passes.h"

const char *word_of(End end) { return end == END_PRODUCE ? "produce" : "consume"; }

typedef struct Ends {
    Arena *arena;
    Prog *prog;
    Diags *diags;
    Role *role;
    int role_index;
    bool *acquires; /* by pipe: this role acquires its own end */
    /* some acquire of this role is refused or names no pipe: nothing is reported as missing */
    bool unknown;
} Ends;

static const char *consumer_names(Ends *ends, const Pipe *pipe) {
    Str text = str_new(ends->arena);
    for (size_t i = 0; i < pipe->consumers.count; i++) {
        if (!valid_index(pipe->consumers.items[i], ends->prog->roles.count)) continue;
        str_printf(&text, "%s`%s`",
                   !text.length                     ? ""
                   : i + 1 == pipe->consumers.count ? " and "
                                                    : ", ",
                   ends->prog->roles.items[pipe->consumers.items[i]].name);
    }
    return text.length ? text.text : "no role";
}

static bool has_end(const Ends *ends, const Pipe *pipe, End end) {
    return end == END_PRODUCE ? pipe->producer == ends->role_index
                              : pipe_consumed_by(pipe, ends->role_index);
}

/* The pipe of which this role has an end, with the most similar name */
static const char *other_pipe(Ends *ends, const char *wanted, End end) {
    VEC(const char *) names = {0};
    for (size_t i = 0; i < ends->prog->pipes.count; i++) {
        const Pipe *pipe = &ends->prog->pipes.items[i];
        if (has_end(ends, pipe, end) && !pipe_is_implied(ends->prog, (int)i))
            vec_push(ends->arena, &names, pipe->name);
    }
    const char *near = closest_name(wanted, names.items, names.count);
    return near || names.count != 1 ? near : names.items[0];
}

static void refuse_end(Ends *ends, int index, End end, Span span) {
    Pipe *pipe = &ends->prog->pipes.items[index];
    bool produce = end == END_PRODUCE;
    bool other_end = has_end(ends, pipe, produce ? END_CONSUME : END_PRODUCE);
    pipe->faulty = ends->unknown = true;
    Diag *diag =
        diag_at(ends->diags, produce ? P0400 : P0401, span, "role `%s` does not %s pipe `%s`",
                ends->role->name, word_of(end), pipe->name);
    const char *producer = valid_index(pipe->producer, ends->prog->roles.count)
                               ? ends->prog->roles.items[pipe->producer].name
                               : "?";
    diag_label(ends->diags, diag, pipe->span, "produced by `%s`, consumed by %s", producer,
               consumer_names(ends, pipe));
    const char *near = other_pipe(ends, pipe->name, end);
    if (other_end)
        diag_help(ends->diags, diag, "did you mean `%s <%s>`?",
                  word_of(produce ? END_CONSUME : END_PRODUCE), pipe->name);
    else if (near)
        diag_help(ends->diags, diag, "did you mean `%s <%s>`?", word_of(end), near);
    else if (produce)
        diag_help(ends->diags, diag, "a pipe has one producer: give `%s` a pipe of its own",
                  ends->role->name);
    else
        diag_help(ends->diags, diag, "add `%s` to the consumers of `%s`", ends->role->name,
                  pipe->name);
}

/* A role that tests an end must have it, because it needs the cursor. */
static void look_at_try(Ends *ends, const Row *row) {
    const Hint *hint = &ends->role->hints.items[row->hint];
    if (!valid_index(hint->pipe, ends->prog->pipes.count)) {
        ends->unknown = true;
        return;
    }
    if (!has_end(ends, &ends->prog->pipes.items[hint->pipe], hint->end))
        refuse_end(ends, hint->pipe, hint->end, row->head);
}

static void look_at_acquire(Ends *ends, const Row *row) {
    if (!valid_index(row->handle, ends->role->handles.count) ||
        !valid_index(ends->role->handles.items[row->handle].pipe, ends->prog->pipes.count)) {
        ends->unknown = true;
        return;
    }
    const Handle *what = &ends->role->handles.items[row->handle];
    const Pipe *pipe = &ends->prog->pipes.items[what->pipe];
    ends->unknown |= what->forgotten;
    if (!valid_index(pipe->producer, ends->prog->roles.count)) return;
    if (!has_end(ends, pipe, what->end)) refuse_end(ends, what->pipe, what->end, row->head);
    ends->acquires[(size_t)what->pipe * 2 + (what->end == END_CONSUME)] = true;
}

static void look(Ends *ends, const Row *row) {
    if (row->kind == ROW_ASK) look_at_try(ends, row);
    if (row->kind == ROW_ACQUIRE) look_at_acquire(ends, row);
    /* a cursor: elaborate checked that it is this role's */
    if (row->unsafe && row->unsafe->pipe >= 0 && row->unsafe->handle < 0)
        ends->acquires[(size_t)row->unsafe->pipe * 2 + (row->unsafe->end == END_CONSUME)] = true;
}

/* Reports roles that never acquire their end of the pipe, both ends in one message */
static void refuse_missing(const Prog *prog, Diags *diags, const Pipe *pipe, const Ends *producer,
                           const Ends *const *consumers, size_t count) {
    const Ends *first = producer ? producer : count ? consumers[0] : NULL;
    if (!first) return;
    End end = producer ? END_PRODUCE : END_CONSUME;
    bool all = producer && count == pipe->consumers.count;
    Diag *diag = all ? diag_at(diags, P0402, pipe->span,
                               "pipe `%s` is neither produced nor consumed", pipe->name)
                     : diag_at(diags, P0402, pipe->span, "pipe `%s` is never %sd by `%s`",
                               pipe->name, word_of(end), first->role->name);
    if (!all)
        diag_primary(diags, diag,
                     end == END_CONSUME ? "its producer would wait forever when the ring is full"
                                        : "its consumers would wait forever");
    if (producer)
        diag_label(diags, diag, producer->role->span, "no path of this role reaches `produce <%s>`",
                   pipe->name);
    for (size_t i = 0; i < count && i + 3 < DIAG_MAX_LABELS; i++)
        diag_label(diags, diag, consumers[i]->role->span,
                   "no path of this role reaches `consume <%s>`", pipe->name);
    if (!producer && first->role_index != pipe->producer)
        diag_label(diags, diag, prog->roles.items[pipe->producer].span, "produces it");
    if (all)
        diag_help(diags, diag, "use the pipe, or remove it");
    else
        diag_help(diags, diag, "%s it there, or remove `%s` from the declaration of the pipe",
                  word_of(end), first->role->name);
}

/* After syntax errors statements may be missing: nothing is reported as missing. P0020 only counts
 * other diagnostics. */
bool words_failed(const Diags *diags) {
    for (size_t i = 0; i < diags->items.count; i++) {
        Code code = diags->items.items[i]->code;
        if (code < P0100 && code != P0020) return true;
    }
    return false;
}

/* The instance that produces a stage of a role in turn also consumes it: nothing is exchanged. */
static void refuse_in_turn(const Prog *prog, Diags *diags, const Pipe *pipe) {
    const Role *role = &prog->roles.items[pipe->producer];
    Diag *diag = diag_at(diags, P0403, pipe->span,
                         "pipe `%s` leads from role `%s`, which is `in turn`, back to it",
                         pipe->name, role->name);
    diag_primary(diags, diag, "`%s` is the producer and a consumer", role->name);
    diag_label(diags, diag, role->span,
               "each stage belongs to one instance, which would pass it to itself");
    diag_help(diags, diag, "use a `shared` tile, or another role as producer or consumer");
}

void roles_check(Arena *arena, Prog *prog, Diags *diags) {
    size_t pipes = prog->pipes.count, roles = prog->roles.count;
    bool silent = words_failed(diags);
    Ends *all = NEW_ARRAY(arena, Ends, roles + 1);
    for (size_t r = 0; r < roles; r++) {
        all[r] = (Ends){.arena = arena,
                        .prog = prog,
                        .diags = diags,
                        .role = &prog->roles.items[r],
                        .role_index = (int)r,
                        .unknown = prog->roles.items[r].forgotten,
                        .acquires = NEW_ARRAY(arena, bool, pipes * 2 + 1)};
        const FlowCode *code = prog->roles.items[r].code;
        for (size_t at = 0; at < code->rows.count; at++) look(&all[r], &code->rows.items[at]);
    }
    for (size_t p = 0; p < pipes; p++) {
        Pipe *pipe = &prog->pipes.items[p];
        if (valid_index(pipe->producer, roles) && pipe_consumed_by(pipe, pipe->producer) &&
            prog->roles.items[pipe->producer].in_turn) {
            refuse_in_turn(prog, diags, pipe);
            pipe->faulty = true;
            continue;
        }
        if (pipe->faulty || !valid_index(pipe->producer, roles)) continue;
        const Ends *producer = &all[pipe->producer];
        VEC(const Ends *) missing = {0};
        for (size_t c = 0; c < pipe->consumers.count; c++) {
            int role = pipe->consumers.items[c];
            if (valid_index(role, roles) && !all[role].acquires[p * 2 + 1] && !all[role].unknown)
                vec_push(arena, &missing, &all[role]);
        }
        bool silent_producer = !producer->acquires[p * 2] && !producer->unknown;
        if (silent)
            pipe->faulty |= silent_producer || missing.count > 0;
        else
            refuse_missing(prog, diags, pipe, silent_producer ? producer : NULL, missing.items,
                           missing.count);
    }
}
