/* Names: one namespace without shadowing, in hash tables that are linked from a role to its
 * kernel to its file. Bindings are removed in stack order. Errors in inlined functions are
 * reported once, with the first call. */
#include "elaborate/private.h"

#include <string.h>

/* ---- errors ---------------------------------------------------------------------------------- */

static bool already_reported(Elab *e, Code code, Span span) {
    uint64_t key = (uint64_t)code << 48 ^ (uint64_t)span.lo << 24 ^ span.hi;
    for (size_t i = 0; i < e->reported.count; i++)
        if (e->reported.items[i] == key) return true;
    vec_push(e->arena, &e->reported, key);
    return false;
}

Diag *(elab_error)(Elab *e, Code code, Span span, const char *format, ...) {
    va_list args;
    va_start(args, format);
    const char *text = arena_vprintf(e->arena, format, args);
    va_end(args);
    if (e->frame && already_reported(e, code, span)) return NEW(e->arena, Diag);
    Diag *diag = (diag_at)(e->diags, code, span, "%s", text);
    if (e->frame)
        LABEL(e, diag, e->frame->call, "`%s` is inlined here", e->frame->fn->fn.name.text);
    return diag;
}

bool elab_gives_up(Elab *e) {
    if (e->given_up || e->diags->errors - e->errors_before < ERRORS_MOST) return e->given_up;
    diag_plain(e->diags, P0020, "the check of `%s` stops after %d errors", e->prog->name,
               ERRORS_MOST);
    return e->broken = e->given_up = true;
}

const char *elab_text_of(Elab *e, Span span) {
    const Source *source = e->prog->source;
    Str text = str_new(e->arena);
    uint32_t hi = span.hi < source->length ? span.hi : source->length;
    bool gap = false;
    for (uint32_t i = span.lo; i < hi; i++) {
        char c = source->text[i];
        if (c == ' ' || c == '\n' || c == '\t' || c == '\r') {
            gap = true;
            continue;
        }
        if (gap && text.length) str_char(&text, ' ');
        gap = false;
        if (text.length > 60) {
            str_add(&text, "...");
            break;
        }
        str_char(&text, c);
    }
    return text.length ? text.text : "";
}

/* Syntax of later versions: must not be reported as misspelt. */
static const struct {
    const char *word;
    Capability needs; /* CAP_COUNT: independent of the target */
    const char *what;
} later[] = {
    {"paired", CAP_PAIRS, "there are no matrix instructions of two blocks yet"},
    {"heaviest first", CAP_COUNT, "tiles are ordered by the axes, or by `grouped`"},
    {"hardware", CAP_TILE_SCHEDULER, "write `grid persistent`"},
    {"tmem", CAP_TENSOR_MEMORY, "there is no code generation for tensor memory yet"},
};

void elab_refuse_word(Elab *e, Span span, const char *word) {
    size_t row = 0;
    while (row < COUNT_OF(later) && strcmp(later[row].word, word) != 0) row++;
    if (row < COUNT_OF(later) && later[row].needs != CAP_COUNT &&
        !e->prog->target->has[later[row].needs]) {
        target_lacks(e->arena, e->diags, e->prog, later[row].needs, span);
        return;
    }
    Diag *diag =
        elab_error(e, P0132, span, "this version of the language does not have `%s`", word);
    if (row < COUNT_OF(later)) NOTE(e, diag, "%s", later[row].what);
}

/* ---- scopes ---------------------------------------------------------------------------------- */

static size_t hash_of(const char *text) {
    return (size_t)((uintptr_t)text >> 4) * 0x9E3779B97F4A7C15u >> 20;
}

Scope *elab_scope_new(Elab *e, Scope *outer) {
    Scope *scope = NEW(e->own, Scope);
    scope->outer = outer;
    scope->bucket_count = 32;
    scope->buckets = NEW_ARRAY(e->own, Name *, scope->bucket_count);
    return scope;
}

Name *elab_scope_find(const Scope *scope, const char *text) {
    for (; scope; scope = scope->outer)
        for (Name *name = scope->buckets[hash_of(text) & (scope->bucket_count - 1)]; name;
             name = name->next)
            if (name->text == text) return name;
    return NULL;
}

static void insert(Scope *scope, Name *name) {
    Name **bucket = &scope->buckets[hash_of(name->text) & (scope->bucket_count - 1)];
    name->next = *bucket;
    *bucket = name;
}

static void enlarge(Elab *e, Scope *scope) {
    scope->bucket_count *= 4;
    scope->buckets = NEW_ARRAY(e->own, Name *, scope->bucket_count);
    for (size_t i = 0; i < scope->live.count; i++) insert(scope, scope->live.items[i]);
}

static void add(Elab *e, Scope *scope, Name *name) {
    vec_push(e->own, &scope->live, name);
    if (scope->live.count > scope->bucket_count * 2)
        enlarge(e, scope);
    else
        insert(scope, name);
}

/* `rank` has no meaning in `ensures`, where it may be the rank of an element. */
bool elab_is_word(const Elab *e, const char *name) {
    bool rank = name == e->word_rank && e->place != PLACE_CLAIM;
    return rank || name == e->word_inf || name == e->word_nan;
}

static void report_taken(Elab *e, const char *text, Span span, const Name *old) {
    if (elab_is_word(e, text)) {
        Diag *diag =
            elab_error(e, P0101, span, "`%s` is a built-in name and cannot be declared", text);
        HELP(e, diag, "choose another name");
        return;
    }
    Diag *diag = elab_error(e, P0101, span, "the name `%s` is already declared", text);
    PRIMARY(e, diag, "declared again here");
    if (old->kind == NAME_INDEX)
        LABEL(e, diag, old->span, "`%s` is used as an index here", text);
    else
        LABEL(e, diag, old->span, "first declared here");
    const Source *source = e->diags->source;
    if (source_file(source, span.lo) != source_file(source, old->span.lo)) {
        HELP(e, diag, "give one of them another name: a file and what it includes share all names");
        return;
    }
    NOTE(e, diag, "a name is declared once; an inner scope cannot declare it again");
    if (old->kind == NAME_HANDLE)
        HELP(e, diag,
             "choose another name; for the next stage in the same variable, declare it with `var` "
             "and assign: `%s = ..;`",
             text);
    else
        HELP(e, diag, "choose another name, for example `%s2`", text);
}

/* It is unknown which of two declarations later uses refer to: suppresses errors about stages,
 * and about other kinds of objects. */
static void forget(Elab *e, const Name *old, Name *name) {
    if (old->kind == NAME_HANDLE) elab_forget_stage(e, old);
    if (name->kind == NAME_HANDLE) elab_forget_stage(e, name);
    if (old->kind != name->kind) name->kind = NAME_POISON;
}

Name *elab_scope_bind(Elab *e, Scope *scope, NameKind kind, const char *text, Span span,
                      int index) {
    Name *name = NEW(e->own, Name);
    *name = (Name){.kind = kind, .text = text ? text : "?", .span = span, .index = index};
    if (!text) return name;
    Name *old = elab_scope_find(scope, text);
    if (old || elab_is_word(e, text)) {
        if (!old || old->kind != NAME_POISON) report_taken(e, text, span, old);
        if (old) forget(e, old, name);
    } /* bound anyway: later uses refer to this one */
    add(e, scope, name);
    return name;
}

int elab_table_find(const Scope *table, const char *text) {
    const Name *name = elab_scope_find(table, text);
    return name ? name->index : -1;
}

int elab_table_add(Elab *e, Scope *table, const char *text, int index) {
    int there = elab_table_find(table, text);
    if (there >= 0) return there;
    Name *name = NEW(e->own, Name);
    *name = (Name){.text = text, .index = index};
    add(e, table, name);
    return -1;
}

Object *elab_scope_bind_tile(Elab *e, Scope *scope, AstName name, Object object) {
    Object *bound = NEW(e->own, Object);
    *bound = object;
    elab_scope_bind(e, scope, NAME_TILE, name.text, name.span, 0)->object = bound;
    return bound;
}

size_t elab_scope_mark(const Scope *scope) { return scope->live.count; }

void elab_scope_undo(Scope *scope, size_t mark) {
    while (scope->live.count > mark) {
        const Name *name = scope->live.items[--scope->live.count];
        scope->buckets[hash_of(name->text) & (scope->bucket_count - 1)] = name->next;
    }
}

/* ---- did you mean ---------------------------------------------------------------------------- */

/* All one-letter names are similar, so there is no suggestion. */
const char *elab_suggest(Elab *e, const char *wanted, const char *const *list, size_t count) {
    if (strlen(wanted) < 2 || e->suggestions <= 0) return NULL;
    e->suggestions--;
    const char *near = closest_name(wanted, list, count);
    return near && strcmp(near, wanted) != 0 ? near : NULL;
}

const char *elab_suggest_of(Elab *e, const char *wanted, const Scope *table) {
    VEC(const char *) list = {0};
    if (strlen(wanted) < 2 || e->suggestions <= 0) return NULL;
    for (size_t i = 0; i < table->live.count; i++)
        vec_push(e->arena, &list, table->live.items[i]->text);
    return elab_suggest(e, wanted, list.items, list.count);
}

const char *elab_suggest_name(Elab *e, const char *wanted, bool (*fits)(const Name *)) {
    VEC(const char *) list = {0};
    if (strlen(wanted) < 2 || e->suggestions <= 0) return NULL;
    for (const Scope *scope = e->scope; scope; scope = scope->outer)
        for (size_t i = 0; i < scope->live.count; i++)
            if (!fits || fits(scope->live.items[i]))
                vec_push(e->arena, &list, scope->live.items[i]->text);
    return elab_suggest(e, wanted, list.items, list.count);
}

bool elab_help_name(Elab *e, Diag *diag, const char *wanted, const char *near) {
    const char *advice = foreign_advice(wanted);
    if (advice)
        HELP(e, diag, "%s", advice);
    else if (near)
        HELP(e, diag, "did you mean `%s`?", near);
    return advice || near;
}

/* Notes that the scope of a stage of this name has ended; it is reported once. */
void elab_ended_stage(Elab *e, Diag *diag, const char *text) {
    if (!e->role || e->frame) return;
    for (size_t i = e->role->handles.count; i-- > 0;) {
        Handle *handle = &e->role->handles.items[i];
        if (handle->name != text || handle->parameter) continue;
        LABEL(e, diag, handle->span, "the scope of this stage has ended");
        HELP(e, diag,
             "release it inside of its block, or move it to a `var` that is declared before the "
             "block");
        handle->forgotten = true;
        return;
    }
}

int elab_find_pipe(Elab *e, AstName name) {
    if (!name.text) return -1;
    int pipe = elab_table_find(e->pipes, name.text);
    if (pipe >= 0) return pipe;
    Diag *diag = elab_error(e, P0140, name.span, "unknown pipe `%s`", name.text);
    const char *near = elab_suggest_of(e, name.text, e->pipes);
    if (near) HELP(e, diag, "did you mean `%s`?", near);
    return -1;
}
