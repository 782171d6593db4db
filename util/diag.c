/* Diagnostics: the queue. Rendering is in render.c.
 *
 * A Diag is created with its primary place; then labels, notes and helps are added; it is
 * printed only after diags_finish has sorted all diagnostics in the order of the text. */
#include "util/util.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

const CodeRow code_rows[CODE_COUNT] = {
#define DIAG(number, severity, title) [P##number] = {"P" #number, SEVERITY_##severity, title},
#include "util/errors.def"
#undef DIAG
};

bool code_by_name(const char *name, Code *out) {
    for (int i = 0; i < CODE_COUNT; i++)
        if (strcasecmp(code_rows[i].name, name) == 0) {
            *out = (Code)i;
            return true;
        }
    return false;
}

const char *code_near(const char *name) {
    const char *names[CODE_COUNT];
    char upper[8];
    size_t length = strlen(name);
    for (size_t i = 0; i < CODE_COUNT; i++) names[i] = code_rows[i].name;
    if (length == 0 || length >= sizeof upper) return NULL;
    memcpy(upper, name, length + 1);
    if (upper[0] == 'p') upper[0] = 'P';
    return closest_name(upper, names, CODE_COUNT);
}

Diags *diags_new(Arena *arena, const Source *source) {
    Diags *diags = NEW(arena, Diags);
    diags->arena = arena;
    diags->source = source;
    diags->other = NEW(arena, Diag);
    return diags;
}

void diags_set_levels(Diags *diags, const Levels *levels) {
    diags->levels = levels;
    diags->used = NEW_ARRAY(diags->arena, bool, levels->allows.count + 1);
}

/* True if this code is allowed on the line where the span begins */
static bool silenced(Diags *diags, Code code, Span span) {
    const Levels *levels = diags->levels;
    if (!levels || !levels->allows.count || !diags->source) return false;
    uint32_t row = source_row(diags->source, span.lo);
    size_t low = 0, high = levels->allows.count;
    while (low < high) { /* the first allow at or after this row */
        size_t middle = low + (high - low) / 2;
        if (levels->allows.items[middle].row < row)
            low = middle + 1;
        else
            high = middle;
    }
    for (; low < levels->allows.count && levels->allows.items[low].row == row; low++)
        if (levels->allows.items[low].code == code) return diags->used[low] = true;
    return false;
}

static Diag *create(Diags *diags, Code code, const char *message) {
    Diag *diag = NEW(diags->arena, Diag);
    diags->made++;
    diag->code = code;
    diag->severity = code_rows[code].severity;
    diag->message = message;
    return diag;
}

/* Only in the build of tools/rules.sh: the rule or the place that PIPEC_WITHOUT names reports
 * nothing, and for each diagnostic a line of PIPEC_REPORTED lists the test's item, the code and the
 * place. */
#ifdef PIPEC_WITHOUT
#undef diag_at
#undef diag_plain
Diags *diags_from(Diags *diags, const char *place) {
    diags->place = place;
    return diags;
}

static bool left_out(const Diags *diags, Code code) {
    const char *name = getenv("PIPEC_WITHOUT"), *reported = getenv("PIPEC_REPORTED"),
               *item = getenv("PIPEC_ITEM");
    FILE *log = reported && item && diags->place ? fopen(reported, "a") : NULL;
    if (log) {
        fprintf(log, "%s %s %s\n", item, code_rows[code].name, diags->place);
        fclose(log);
    }
    return name && (strcmp(name, code_rows[code].name) == 0 ||
                    (diags->place && strcmp(name, diags->place) == 0));
}
#else
static bool left_out(const Diags *diags, Code code) {
    (void)diags, (void)code;
    return false;
}
#endif

static Diag *add(Diags *diags, Diag *diag) {
    if (left_out(diags, diag->code)) return diag;
    vec_push(diags->arena, &diags->items, diag);
    if (diag->severity == SEVERITY_ERROR) diags->errors++;
    return diag;
}

/* ---- many of one kind ------------------------------------------------------------------------ */

#define DIAGS_MOST 20
/* Different messages about one place are kept too, but not without a limit */
#define KEPT_MOST 200

static bool is_new_place(const Diags *diags, Code code, Span span) {
    for (size_t i = 0; i < diags->items.count; i++) {
        const Diag *diag = diags->items.items[i];
        if (diag->code == code && diag->has_place && diag->labels[0].span.lo == span.lo &&
            diag->labels[0].span.hi == span.hi)
            return false;
    }
    return true;
}

/* True if enough of this code are kept. Findings of runs (P0600 and above) have limits of their
 * own. */
static bool is_one_too_many(Diags *diags, Code code, Span span) {
    if (!diags->source || code >= P0600) return false;
    bool full = diags->places[code] == DIAGS_MOST || diags->kept[code] == KEPT_MOST;
    if (!full) {
        diags->places[code] += is_new_place(diags, code, span);
        diags->kept[code]++;
        return false;
    }
    diags->dropped[code]++;
    if (code_rows[code].severity == SEVERITY_ERROR) diags->errors++;
    return true;
}

static bool is_denied(const Diags *diags, Code code) {
    return diags->levels && diags->levels->denied[code];
}

/* Says for which codes there were more */
static void report_dropped(Diags *diags) {
    for (int code = 0; code < CODE_COUNT; code++) {
        if (!diags->dropped[code]) continue;
        if (code_rows[code].severity == SEVERITY_ERROR || is_denied(diags, (Code)code))
            diags->errors_dropped += diags->dropped[code];
        diag_plain(diags, P0020, "only the first %d places of %s are shown: %s", DIAGS_MOST,
                   code_rows[code].name, code_rows[code].title);
        diags->dropped[code] = 0;
    }
}

/* ---- making ---------------------------------------------------------------------------------- */

Diag *diag_at(Diags *diags, Code code, Span span, const char *format, ...) {
    if (silenced(diags, code, span) || is_one_too_many(diags, code, span)) {
        diags->made++;
        return diags->other;
    }
    va_list args;
    va_start(args, format);
    Diag *diag = add(diags, create(diags, code, arena_vprintf(diags->arena, format, args)));
    va_end(args);
    if (diags->source) {
        diag->has_place = true;
        diag->labels[0] = (Label){span, ""};
        diag->label_count = 1;
    }
    return diag;
}

Diag *diag_plain(Diags *diags, Code code, const char *format, ...) {
    va_list args;
    va_start(args, format);
    Diag *diag = add(diags, create(diags, code, arena_vprintf(diags->arena, format, args)));
    va_end(args);
    return diag;
}

Diag *diag_primary(Diags *diags, Diag *diag, const char *format, ...) {
    va_list args;
    va_start(args, format);
    if (diag->has_place && diag != diags->other)
        diag->labels[0].text = arena_vprintf(diags->arena, format, args);
    va_end(args);
    return diag;
}

Diag *diag_label(Diags *diags, Diag *diag, Span span, const char *format, ...) {
    va_list args;
    if (diag == diags->other) return diag;
    va_start(args, format);
    const char *text = arena_vprintf(diags->arena, format, args);
    va_end(args);
    if (diag->has_place && diag->label_count < DIAG_MAX_LABELS) {
        diag->labels[diag->label_count++] = (Label){span, text};
    } else if (diags->source) { /* a label beyond the limit becomes a note */
        diag_note(diags, diag, "%s: %s",
                  source_where(diags->arena, diags->source, span.lo, diag->labels[0].span.lo),
                  text);
    } else {
        diag_note(diags, diag, "%s", text);
    }
    return diag;
}

Diag *diag_note(Diags *diags, Diag *diag, const char *format, ...) {
    va_list args;
    if (diag == diags->other) return diag;
    va_start(args, format);
    vec_push(diags->arena, &diag->notes, arena_vprintf(diags->arena, format, args));
    va_end(args);
    return diag;
}

Diag *diag_help(Diags *diags, Diag *diag, const char *format, ...) {
    va_list args;
    if (diag == diags->other) return diag;
    va_start(args, format);
    vec_push(diags->arena, &diag->helps, arena_vprintf(diags->arena, format, args));
    va_end(args);
    return diag;
}

/* ---- order ----------------------------------------------------------------------------------- */

typedef struct Ordered {
    Diag *diag;
    uint64_t place; /* diagnostics without a place come last */
    size_t index;
} Ordered;

static int by_place(const void *a, const void *b) {
    const Ordered *x = a, *y = b;
    if (x->place != y->place) return x->place < y->place ? -1 : 1;
    if (x->diag->code != y->diag->code) return x->diag->code < y->diag->code ? -1 : 1;
    return x->index < y->index ? -1 : x->index > y->index;
}

static bool same(const Diag *a, const Diag *b) {
    return a->code == b->code && a->has_place == b->has_place &&
           a->labels[0].span.hi == b->labels[0].span.hi && strcmp(a->message, b->message) == 0;
}

static void deny(Diags *diags, Diag *diag) {
    if (diag->severity == SEVERITY_ERROR || !diags->levels || !diags->levels->denied[diag->code])
        return;
    static const char *const words[] = {[SEVERITY_ERROR] = "error",
                                        [SEVERITY_INCOMPLETE] = "verdict",
                                        [SEVERITY_WARNING] = "warning",
                                        [SEVERITY_NOTE] = "note"};
    diag_note(diags, diag, "this %s is denied by `-D`", words[diag->severity]);
    diag->severity = SEVERITY_ERROR;
}

static void accept(Diags *diags, Diag *diag) {
    if (diag->severity != SEVERITY_INCOMPLETE || !diags->levels ||
        !diags->levels->accepted[diag->code])
        return;
    diag_note(diags, diag, "this verdict is accepted: the program is used without the proof");
    diag->severity = SEVERITY_WARNING;
}

/* ---- forms of other languages ---------------------------------------------------------------- */

#define HABITS_MOST 50 /* of a text; later errors keep their own messages */

/* The forms before an error, in the order of the text */
typedef struct Forms {
    uint32_t end; /* of the last one; 0: there was none */
    bool rest;    /* further errors of words are consequences */
} Forms;

/* In the last form, or in the rest of its statement on the same line */
static bool is_consequence(const Diags *diags, Code code, uint32_t at, const Forms *forms) {
    if (forms->end == 0) return false;
    if (forms->rest && code < P0100) return true;
    const char *text = diags->source->text;
    uint32_t end = forms->end;
    if (at > end && strchr(";{}", text[end - 1])) return false;
    while (end < at && !strchr(";{}\n", text[end])) end++;
    return at <= end;
}

typedef struct FormAsked {
    Code code;
    Span at;
    bool is; /* there is one */
    Habit habit;
} FormAsked;

/* The form in which the error is; NULL: it is in none. The many lists of one text (of the
 * combinations of its statics) ask once. */
static const Habit *form_of(Diags *diags, Code code, Span at) {
    Diags *all = diags->shares ? diags->shares : diags;
    for (size_t i = 0; i < all->forms.count; i++) {
        const FormAsked *old = all->forms.items[i];
        if (old->code == code && old->at.lo == at.lo && old->at.hi == at.hi)
            return old->is ? &old->habit : NULL;
    }
    FormAsked *asked = NEW(all->arena, FormAsked);
    asked->code = code, asked->at = at;
    asked->is = habit_find(all->arena, diags->source, code, at, &asked->habit);
    vec_push(all->arena, &all->forms, asked);
    return asked->is ? &asked->habit : NULL;
}

/* If the error is in a form of another language, the form's message and help replace its own. */
static void explain(Diags *diags, Diag *diag) {
    if (diag->asked || diags->asked >= HABITS_MOST) return;
    diag->asked = true;
    diags->asked++;
    const Habit *habit = form_of(diags, diag->code, diag->labels[0].span);
    if (!habit) return;
    diag->form_end = habit->whole.hi;
    diag->form_rest = habit->rest;
    diag->message = habit->message;
    diag->labels[0] = (Label){habit->shown, ""};
    diag->label_count = 1;
    diag->notes.count = diag->helps.count = 0;
    diag_help(diags, diag, "%s", habit->help);
}

/* False: the error is a consequence of a form before it */
static bool counts(Diags *diags, Diag *diag, Forms *forms) {
    if (diag->severity != SEVERITY_ERROR || !diag->has_place || diag->code >= P0600) return true;
    if (is_consequence(diags, diag->code, diag->labels[0].span.lo, forms)) return false;
    explain(diags, diag);
    if (diag->form_end == 0) return true;
    forms->end = diag->form_end;
    forms->rest = forms->rest || diag->form_rest;
    return true;
}

void diags_finish(Diags *diags) {
    report_dropped(diags);
    size_t count = diags->items.count, kept = 0;
    Ordered *order = NEW_ARRAY(diags->arena, Ordered, count);
    for (size_t i = 0; i < count; i++) {
        Diag *diag = diags->items.items[i];
        order[i] = (Ordered){diag, diag->has_place ? diag->labels[0].span.lo : UINT64_MAX, i};
    }
    if (count) qsort(order, count, sizeof *order, by_place);
    diags->errors = diags->errors_dropped;
    Forms forms = {0};
    for (size_t i = 0; i < count; i++) {
        bool duplicate = false;
        for (size_t j = i; j-- > 0 && order[j].place == order[i].place && !duplicate;)
            duplicate = same(order[j].diag, order[i].diag);
        if (duplicate || !counts(diags, order[i].diag, &forms)) continue;
        diags->items.items[kept++] = order[i].diag;
        deny(diags, order[i].diag);
        accept(diags, order[i].diag);
        if (order[i].diag->severity == SEVERITY_ERROR) diags->errors++;
    }
    diags->items.count = kept;
}
