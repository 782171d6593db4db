/* util: what is text, how do we complain.
 *
 * The ground floor. Everything above takes its memory from an Arena, its text from a Source, and reports through Diags.
 * Nothing here is global: a compilation owns one Arena and drops it whole. Nothing here (or anywhere below cli/) exits;
 * when memory runs out the arena jumps to the handler that its owner has set. */
#ifndef PIPEC_UTIL_H
#define PIPEC_UTIL_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#if defined(__GNUC__)
#define PRINTF_LIKE(text, first) __attribute__((format(printf, text, first)))
#define NO_RETURN __attribute__((noreturn))
#else
#define PRINTF_LIKE(text, first)
#define NO_RETURN
#endif

#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

/* ---- memory ------------------------------------------------------------------------------------------------------ */

typedef struct Arena Arena;

Arena *arena_new(void);                              /* NULL when there is no memory */
Arena *arena_scratch(Arena *parent);                 /* fails as its parent does; freed with it, or before */
void arena_free(Arena *arena);                       /* frees all that came from it; NULL is allowed */
void arena_on_failure(Arena *arena, jmp_buf *where); /* longjmp(*where, 1) when an allocation fails; NULL: abort() */
NO_RETURN void arena_fail(Arena *arena);             /* takes that jump: for memory that does not come from the arena */
size_t arena_bytes(const Arena *arena);              /* handed out so far, also by its scratch arenas that are gone: a measure of work */
void *arena_alloc(Arena *arena, size_t bytes);       /* zeroed, aligned to 16; never NULL */
void *arena_grow(Arena *arena, void *old, size_t old_bytes, size_t new_bytes); /* keeps the old bytes, zeroes the rest */
/* Gives back what the object has after `fewer` bytes, where nothing came after it; that must still be all zeros. */
void arena_trim(Arena *arena, void *object, size_t bytes, size_t fewer);
char *arena_copy(Arena *arena, const char *text, size_t length);               /* ends it with a NUL */
char *arena_printf(Arena *arena, const char *format, ...) PRINTF_LIKE(2, 3);
char *arena_vprintf(Arena *arena, const char *format, va_list args);

#define NEW(arena, Type) ((Type *)arena_alloc((arena), sizeof(Type)))
#define NEW_ARRAY(arena, Type, count) ((Type *)arena_alloc((arena), arena_array_bytes((arena), sizeof(Type), (size_t)(count))))

/* The meter of an arena and its scratch arenas: work is counted in steps of some 10 ns, memory in the bytes that the arenas hold. */
typedef struct Times Times;
typedef struct Meter {
    uint64_t steps, steps_most;
    uint64_t bytes, bytes_most;
    Times *times; /* NULL: nobody asks where the time goes */
} Meter;

/* Runs work(data), which ends as soon as more than the meter allows has been counted, with what came before. False: it ended so,
 * half done; its scratch arenas are gone. Not one within the other. */
bool arena_metered(Arena *arena, void (*work)(void *), void *data);
Meter *arena_meter(const Arena *arena);          /* without limits, until they are set */
void arena_count(Arena *arena, uint64_t steps); /* counts work that takes no memory; memory is work by itself */

/* A part of the steps that the meter allows: for an analysis that gives up where it has taken them,
 * and says so, so that others still come to their turn. */
typedef struct Budget {
    const Meter *meter;
    uint64_t end; /* steps on the meter */
} Budget;

Budget arena_budget(Arena *arena, uint64_t steps);  /* the next ones */
Budget budget_of(Budget budget, uint64_t steps);      /* the next ones, within the share */
bool budget_is_used(Budget budget);

/* Where the time goes (times.c): after times_start on an arena, times_end counts for the part of that name what
 * was measured since times_begin; before, both do nothing. A part that the meter ends is not counted. */
typedef struct Spent {
    uint64_t nanoseconds; /* of the processor */
    uint64_t steps;       /* of the meter */
} Spent;
typedef struct Str Str;
void times_start(Arena *arena);
Spent times_begin(const Arena *arena);
void times_end(const Arena *arena, const char *name, Spent begin); /* the name must live on */
void times_print(const Arena *arena, Str *out); /* a line for each part; nothing without times_start */

size_t arena_array_bytes(Arena *arena, size_t size, size_t count); /* size * count; fails the arena on overflow */

/* A growable array in an arena: `VEC(int) v = {0}; vec_push(arena, &v, 3);` read as v.items[0 .. v.count). */
#define VEC(Type)         \
    struct {              \
        Type *items;      \
        size_t count;     \
        size_t capacity;  \
    }
#define vec_push(arena, vec, ...)                                                                              \
    (vec_reserve((arena), (void **)&(vec)->items, &(vec)->capacity, (vec)->count + 1, sizeof *(vec)->items),    \
     (void)((vec)->items[(vec)->count++] = (__VA_ARGS__)))
void vec_reserve(Arena *arena, void **items, size_t *capacity, size_t wanted, size_t item_bytes);

/* ---- text -------------------------------------------------------------------------------------------------------- */

/* A string under construction; `text` ends with a NUL at all times once something was added. */
struct Str {
    Arena *arena;
    char *text;
    size_t length, capacity;
};

Str str_new(Arena *arena);
void str_add(Str *str, const char *text);
void str_add_bytes(Str *str, const char *bytes, size_t count);
void str_char(Str *str, char c);
void str_integer(Str *str, int64_t value); /* as "%" PRId64, and faster */
void str_printf(Str *str, const char *format, ...) PRINTF_LIKE(2, 3);
void str_vprintf(Str *str, const char *format, va_list args);
void str_json(Str *str, const char *text); /* quoted and escaped, invalid UTF-8 as U+FFFD; NULL prints null */
/* For terminals: control characters, invalid bytes and invisible direction marks as \xNN or \u{NNNN} */
void str_visible(Str *str, const char *bytes, size_t count);

/* Names: equal spelling gives the same pointer. */
typedef struct Names Names;
Names *names_new(Arena *arena);
const char *names_intern(Names *names, const char *text, size_t length);

/* Bytes of the UTF-8 character at `text`, of which `left` bytes are there: 1 to 4, or 0 where it is not valid UTF-8
 * (overlong forms, surrogates and values over U+10FFFF are not). */
int utf8_length(const char *text, size_t left);

/* "did you mean": the candidate at the smallest edit distance, at most max(length / 3, 1), with something in common; NULL when none is near. */
const char *closest_name(const char *wanted, const char *const *candidates, size_t count);

/* ---- element types ----------------------------------------------------------------------------------------------- */

typedef enum Element {
#define ELEMENT(name, spelling, bytes, kind, widens, npy, map, ptx, what) E_##name,
#include "elements.def"
#undef ELEMENT
    E_COUNT
} Element;

typedef enum ElementKind { ELEMENT_FLOAT, ELEMENT_SIGNED, ELEMENT_UNSIGNED, ELEMENT_BOOLEAN } ElementKind;

typedef struct ElementRow {
    const char *spelling; /* in Pipe: "bf16" */
    int bytes;            /* of one element in memory */
    ElementKind kind;
    Element widens;       /* type of its values in arithmetic */
    const char *npy;      /* dtype in .npy files */
    int map;              /* CUtensorMapDataType, -1: none */
    const char *ptx;      /* "s32", "f32", ..: how PTX arithmetic reads its values, widened */
    const char *what;
} ElementRow;

extern const ElementRow element_rows[E_COUNT];

/* Most elements of a tensor along one axis, and most tiles of a grid: 2^31 - 2^20, so that the place of an element in the last tile, or the
 * tile after the last one, still fits 32 bits */
#define EXTENT_MOST INT64_C(2146435072)

bool element_by_name(const char *spelling, Element *out);
bool element_same_bits(Element a, Element b); /* may be copied without a conversion: tf32 is stored as f32 */

/* Host conversions between stored bits and numbers, round to nearest even on the way in (fp8: saturating to finite,
 * as cvt.rn.satfinite does; e5m2 and e4m3 NaN stay NaN; integers: towards zero and clamped, as cvt.rzi does). f64 carries every value of the 8-, 16- and 32-bit types. */
double element_load(Element type, const void *from);
void element_store(Element type, void *to, double value);
/* 64-bit integers do not fit a double: exact access to any integer type */
int64_t element_load_integer(Element type, const void *from);
void element_store_integer(Element type, void *to, int64_t value);

/* ---- source text ------------------------------------------------------------------------------------------------- */

/* Bytes lo .. hi of a source, hi not included. Lines and columns are computed when something is printed. */
typedef struct Span {
    uint32_t lo, hi;
} Span;

#define SOURCE_MAX_BYTES (16u << 20)

typedef struct Source {
    const char *name; /* as given by the user; "<stdin>" for standard input */
    const char *text; /* ends with a NUL beyond `length`; may hold NULs before it */
    uint32_t length;
    const uint32_t *line_starts;
    uint32_t lines;
    const struct Milestone *milestones; /* for columns; see source.c */
} Source;

/* Copies the text. Texts over SOURCE_MAX_BYTES must be refused by the caller before. */
Source *source_new(Arena *arena, const char *name, const char *text, size_t length);
/* 1-based line, and 1-based column counted in characters (UTF-8 aware) */
void source_place(const Source *source, uint32_t offset, uint32_t *line, uint32_t *column);
uint32_t source_line(const Source *source, uint32_t offset); /* the 1-based line alone */
Span span_join(Span a, Span b); /* the smallest span that holds both */

/* ---- diagnostics ------------------------------------------------------------------------------------------------- */

/* Codes: errors.def, one row each. A code means the same thing forever; numbers are flat and never reused. */
typedef enum Code {
#define DIAG(number, severity, title) P##number,
#include "errors.def"
#undef DIAG
    CODE_COUNT
} Code;

/* An incomplete verdict is neither an error nor silence: something could not be decided. */
typedef enum Severity { SEVERITY_ERROR, SEVERITY_INCOMPLETE, SEVERITY_WARNING, SEVERITY_NOTE } Severity;

typedef struct CodeRow {
    const char *name; /* "P0102" */
    Severity severity;
    const char *title; /* one line: what this code is about */
} CodeRow;

extern const CodeRow code_rows[CODE_COUNT];
bool code_by_name(const char *name, Code *out); /* case is ignored */
const char *code_near(const char *name);        /* the code that was probably meant, or NULL */

#define DIAG_MAX_LABELS 6

typedef struct Label {
    Span span;
    const char *text; /* what is here; may be empty for the primary one */
} Label;

/* What becomes of incomplete verdicts, warnings and notes: those that are denied count as errors; warnings and notes that a
 * comment allows at a line are not reported there. Errors stay as they are. */
typedef struct Allow {
    Code code;
    uint32_t line; /* 1-based: what begins there is silenced */
    Span word;     /* the code in the comment */
} Allow;

typedef struct Levels {
    bool denied[CODE_COUNT];
    VEC(Allow) allows; /* their lines do not fall */
} Levels;

typedef struct Diag {
    Code code;
    Severity severity;   /* the code's; of what is denied an error, behind diags_finish */
    const char *message; /* stands alone, lower case, no full stop, names in backquotes */
    bool has_place;      /* false: about the whole file, the data or the machine; then there are no labels */
    Label labels[DIAG_MAX_LABELS]; /* [0] is the primary one */
    int label_count;
    VEC(const char *) notes; /* "note: ..." explains */
    VEC(const char *) helps; /* "help: ..." says the fix */
} Diag;

typedef struct Diags {
    Arena *arena;
#ifdef PIPEC_WITHOUT
    const char *place; /* the call that says something, as file:line */
#endif
    const Source *source; /* may be NULL where nothing has a place */
    VEC(Diag *) items;
    size_t errors; /* how many of them are errors */
    const Levels *levels; /* NULL: all as the codes say */
    bool *used;           /* one an allow: it has silenced something */
} Diags;

Diags *diags_new(Arena *arena, const Source *source);
void diags_set_levels(Diags *diags, const Levels *levels); /* before the first diagnostic that they may be about */
Diag *diag_at(Diags *diags, Code code, Span span, const char *format, ...) PRINTF_LIKE(4, 5);
Diag *diag_plain(Diags *diags, Code code, const char *format, ...) PRINTF_LIKE(3, 4); /* without a place */
#ifdef PIPEC_WITHOUT /* the build of tools/rules.sh, in which one place can be silenced */
Diags *diags_from(Diags *diags, const char *place);
#define PLACE_TEXT(line)      #line
#define PLACE(file, line)     file ":" PLACE_TEXT(line)
#define FROM_HERE(diags)       diags_from(diags, PLACE(__FILE__, __LINE__))
#define diag_at(diags, ...)    diag_at(FROM_HERE(diags), __VA_ARGS__) /* (diag_at)(..): the place stays the caller's */
#define diag_plain(diags, ...) diag_plain(FROM_HERE(diags), __VA_ARGS__)
#endif
/* Each returns its first argument so that calls can be nested or chained. */
Diag *diag_primary(Diags *diags, Diag *diag, const char *format, ...) PRINTF_LIKE(3, 4); /* text at the primary span */
Diag *diag_label(Diags *diags, Diag *diag, Span span, const char *format, ...) PRINTF_LIKE(4, 5);
Diag *diag_note(Diags *diags, Diag *diag, const char *format, ...) PRINTF_LIKE(3, 4);
Diag *diag_help(Diags *diags, Diag *diag, const char *format, ...) PRINTF_LIKE(3, 4);

/* Sorts by place, then code, then as they came; drops exact duplicates; what is denied becomes an error. Call before printing. */
void diags_finish(Diags *diags);

/* Comments `// allow P0241: the reason`, at the end of a line for what begins on it, else for the next line that holds words.
 * `comments` in order. What is wrong with them are warnings. */
void allows_read(Levels *levels, const Span *comments, size_t count, Diags *diags);
/* Warns of allows that have silenced nothing, as far as a check alone decides that. */
void allows_unused(Diags *diags);
/* rustc's manners; `colours` switches ANSI colours on */
void diags_render(const Diags *diags, bool colours, Str *out);
/* {"file":..,"diagnostics":[{code, severity, message, labels:[{line, column, end_line, end_column, lo, hi, text}], notes, helps}]} */
void diags_json(const Diags *diags, Str *out);

/* SARIF 2.1.0: the diagnostics of several texts in one log of one run */
typedef struct Sarif Sarif;
Sarif *sarif_new(Arena *arena);
void sarif_add(Sarif *sarif, const Diags *diags); /* finished ones; they need not live on */
void sarif_print(const Sarif *sarif, const char *version, Str *out);

/* ---- pages of `pipec explain` ------------------------------------------------------------------------------------- */

/* docs/errors/PNNNN.md, compiled in by tools/pages.sh; sorted by code */
typedef struct Page {
    const char *code, *text;
} Page;
extern const Page explain_pages[];
extern const size_t explain_page_count;

/* The allocator of the C library is not for the floors: everything comes from an arena. util/arena.c and the floors
 * that own memory of another life (device buffers, arrays of a run) say PIPEC_OWN_MEMORY before they include this. */
#ifndef PIPEC_OWN_MEMORY
#undef malloc
#undef calloc
#undef realloc
#undef free
#undef strdup
#define malloc use_arena_alloc_instead_of_malloc
#define calloc use_arena_alloc_instead_of_calloc
#define realloc use_arena_grow_instead_of_realloc
#define strdup use_arena_copy_instead_of_strdup
#endif

#endif
