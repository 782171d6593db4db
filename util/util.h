/* util: memory, text, diagnostics. Public header of the lowest floor.
 *
 * All other floors allocate from an Arena, read text from a Source, and report through Diags.
 * There is no global state: a compilation owns one Arena and frees it as a whole. No function of
 * this floor, or of any below cli/, exits; when memory runs out the arena jumps to the handler
 * that its owner has set. */
#ifndef PIPEC_UTIL_H
#define PIPEC_UTIL_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#if defined(__GNUC__)
#define PRINTF_LIKE(text, first) __attribute__((format(printf, text, first)))
#define NO_RETURN                __attribute__((noreturn))
/* Kept out of the functions that call it */
#define RARE __attribute__((cold, noinline))
/* enum ONE_BYTE Name { .. }: for enums in structs of which there are many */
#define ONE_BYTE __attribute__((packed))
#else
#define PRINTF_LIKE(text, first)
#define NO_RETURN
#define RARE
#define ONE_BYTE
#endif

#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

/* ---- memory ---------------------------------------------------------------------------------- */

typedef struct Arena Arena;

Arena *arena_new(void); /* NULL: no memory */
/* a child arena that fails as its parent does; freed with it, or before */
Arena *arena_scratch(Arena *parent);
void arena_free(Arena *arena); /* frees all of its objects; NULL is allowed */
/* longjmp(*where, 1) when an allocation fails; NULL: abort() */
void arena_on_failure(Arena *arena, jmp_buf *where);
/* takes that jump, for memory that is not from the arena */
NO_RETURN void arena_fail(Arena *arena);
/* bytes allocated so far, including freed scratch arenas: a measure of work */
size_t arena_bytes(const Arena *arena);
static inline void *arena_alloc(Arena *arena, size_t bytes); /* zeroed, aligned to 16; never NULL */
/* keeps the old bytes, zeroes the new ones */
void *arena_grow(Arena *arena, void *old, size_t old_bytes, size_t new_bytes);
/* Gives the memory of a large object back, which nothing refers to */
void arena_drop(Arena *arena, void *object);
/* The same as arena_grow, for an object that nothing refers to, so that its memory is given back */
void *arena_regrow(Arena *arena, void *old, size_t old_bytes, size_t new_bytes);
/* Shrinks an object to `fewer` bytes if it is the last one; the freed bytes must still be zero. */
void arena_trim(Arena *arena, void *object, size_t bytes, size_t fewer);
char *arena_copy(Arena *arena, const char *text, size_t length); /* NUL-terminated */
char *arena_printf(Arena *arena, const char *format, ...) PRINTF_LIKE(2, 3);
char *arena_vprintf(Arena *arena, const char *format, va_list args);

/* size * count; fails the arena on overflow */
static inline size_t arena_array_bytes(Arena *arena, size_t size, size_t count);

#define NEW(arena, Type) ((Type *)arena_alloc((arena), sizeof(Type)))
#define NEW_ARRAY(arena, Type, count)                                                              \
    ((Type *)arena_alloc((arena), arena_array_bytes((arena), sizeof(Type), (size_t)(count))))

/* The meter of an arena and its scratch arenas: work in steps of some 10 ns, memory in bytes
 * that the arenas hold. */
typedef struct Times Times;
typedef struct Meter {
    uint64_t steps, steps_most;
    uint64_t bytes, bytes_most;
    Times *times; /* NULL: times are not measured */
} Meter;

/* Runs work(data), which is ended as soon as the meter exceeds its limits; earlier work counts
 * too. False: it was ended, and its scratch arenas are freed. Must not be nested. */
bool arena_metered(Arena *arena, void (*work)(void *), void *data);
Meter *arena_meter(const Arena *arena); /* without limits unless they are set */
/* counts steps of work that allocates nothing; allocation is counted by itself */
static inline void arena_count(Arena *arena, uint64_t steps);

/* Of arena.c, and of the functions below: most objects are small, and calls would take longer */
struct Arena {
    struct Block *blocks;
    struct Block *spare; /* of a root: cut blocks of freed scratch arenas */
    char *next, *end;    /* the free part of the current block, a multiple of ARENA_ALIGNMENT */
    size_t bytes;
    jmp_buf *on_failure;
    /* of a root: jump target when the meter ends the work; NULL: it does not end */
    jmp_buf *on_end;
    Meter own, *meter; /* the root's meter */
    /* parent: of a scratch arena; scratches: its live scratch arenas */
    Arena *parent, *scratches, *next_scratch;
};

#define ARENA_ALIGNMENT 16u
/* bytes whose initialisation takes about one step of the meter */
#define ARENA_BYTES_A_STEP 16

/* The meter is exceeded: jumps out of the metered work, if there is any. */
void arena_end(Arena *arena);
/* The current block has no room for the object, or it has no bytes */
void *arena_alloc_anew(Arena *arena, size_t bytes);

static inline void arena_count(Arena *arena, uint64_t steps) {
    Meter *meter = arena->meter;
    meter->steps += steps;
    if (meter->steps > meter->steps_most) arena_end(arena);
}

static inline void *arena_alloc(Arena *arena, size_t bytes) {
    char *object = arena->next;
    if (bytes == 0 || bytes > (size_t)(arena->end - object)) return arena_alloc_anew(arena, bytes);
    arena->next = object + (bytes + ARENA_ALIGNMENT - 1) / ARENA_ALIGNMENT * ARENA_ALIGNMENT;
    arena->bytes += bytes;
    arena_count(arena, 1 + bytes / ARENA_BYTES_A_STEP);
    return object;
}

static inline size_t arena_array_bytes(Arena *arena, size_t size, size_t count) {
    size_t bytes;
    if (__builtin_mul_overflow(size, count, &bytes) || bytes > SIZE_MAX / 4) arena_fail(arena);
    return bytes;
}

/* Many small objects that live as long as the arena: cut from pieces of it, so that fewer bytes are
 * lost between them */
#define CUT_PIECE     4096u
#define CUT_ALIGNMENT 8u
typedef struct Cut {
    Arena *arena;
    char *next, *end;
} Cut;
void *cut_alloc_anew(Cut *cut, size_t bytes); /* the piece has no room for the object */

static inline void *cut_alloc(Cut *cut, size_t bytes) { /* zeroed, aligned to 8 */
    char *object = cut->next;
    size_t rounded = (bytes + CUT_ALIGNMENT - 1) / CUT_ALIGNMENT * CUT_ALIGNMENT;
    if (rounded > (size_t)(cut->end - object)) return cut_alloc_anew(cut, bytes);
    cut->next = object + rounded;
    return object;
}

/* A share of the meter's steps, for an analysis that gives up after them and reports that, so
 * that later analyses get their share. */
typedef struct Budget {
    const Meter *meter;
    uint64_t end; /* value of the meter at its end */
} Budget;

Budget arena_budget(Arena *arena, uint64_t steps); /* the next `steps` steps */
/* the next `steps` steps, within the share */
Budget budget_of(Budget budget, uint64_t steps);
bool budget_is_used(Budget budget);

/* Time per part (times.c): after times_start on an arena, times_end adds the time since
 * times_begin to the part `name`; without times_start both do nothing. A part that the meter
 * ends is not counted. */
typedef struct Spent {
    uint64_t nanoseconds; /* CPU time */
    uint64_t steps;       /* steps of the meter */
} Spent;
typedef struct Str Str;
/* Starts measuring for the arena */
void times_start(Arena *arena);
/* Present CPU time and meter value; zeros without times_start */
Spent times_begin(const Arena *arena);
/* the name must outlive the arena */
void times_end(const Arena *arena, const char *name, Spent begin);
/* a line for each part; nothing without times_start */
void times_print(const Arena *arena, Str *out);

/* A growable array in an arena: `VEC(int) v = {0}; vec_push(arena, &v, 3);` read as v.items[0 ..
 * v.count). */
#define VEC(Type)                                                                                  \
    struct {                                                                                       \
        Type *items;                                                                               \
        size_t count;                                                                              \
        size_t capacity;                                                                           \
    }
#define vec_push(arena, vec, ...)                                                                  \
    ((vec)->count < (vec)->capacity                                                                \
         ? (void)0                                                                                 \
         : vec_reserve((arena), (void **)&(vec)->items, &(vec)->capacity, (vec)->count + 1,        \
                       sizeof *(vec)->items),                                                      \
     (void)((vec)->items[(vec)->count++] = (__VA_ARGS__)))
void vec_reserve(Arena *arena, void **items, size_t *capacity, size_t wanted, size_t item_bytes);
/* For long arrays. Nothing may refer to an item across a push, and the array must have no copy. */
#define vec_push_alone(arena, vec, ...)                                                            \
    ((vec)->count < (vec)->capacity                                                                \
         ? (void)0                                                                                 \
         : vec_reserve_alone((arena), (void **)&(vec)->items, &(vec)->capacity, (vec)->count + 1,  \
                             sizeof *(vec)->items),                                                \
     (void)((vec)->items[(vec)->count++] = (__VA_ARGS__)))
void vec_reserve_alone(Arena *arena, void **items, size_t *capacity, size_t wanted,
                       size_t item_bytes);

/* ---- numbers --------------------------------------------------------------------------------- */

int64_t common_divisor(int64_t a, int64_t b); /* the greatest one, 0 of two zeros */
/* The 64-bit hash FNV-1a, continued from another one or from FNV_START. It tells texts apart that
 * differ by accident; one with a given hash can be made on purpose. */
#define FNV_START UINT64_C(0xCBF29CE484222325)
uint64_t fnv1a(uint64_t from, const void *bytes, size_t count);

/* ---- text ------------------------------------------------------------------------------------ */

/* A string builder; `text` is NUL-terminated after the first addition. */
struct Str {
    Arena *arena;
    char *text;
    size_t length, capacity;
};

/* An empty string */
Str str_new(Arena *arena);
/* Reserves this many bytes more: a text that grows leaves its old copy in the arena */
void str_reserve(Str *str, size_t more);
void str_add(Str *str, const char *text);
void str_add_bytes(Str *str, const char *bytes, size_t count);
void str_char(Str *str, char c);
void str_integer(Str *str, int64_t value); /* as "%" PRId64, and faster */
void str_printf(Str *str, const char *format, ...) PRINTF_LIKE(2, 3);
void str_vprintf(Str *str, const char *format, va_list args);
/* quoted and escaped, invalid UTF-8 as U+FFFD; NULL prints null */
void str_json(Str *str, const char *text);
/* For terminals: control characters, invalid bytes and invisible direction marks are printed as
 * \xNN or \u{NNNN} */
void str_visible(Str *str, const char *bytes, size_t count);

/* Interned names: equal spelling gives the same pointer. */
typedef struct Names Names;
Names *names_new(Arena *arena);
const char *names_intern(Names *names, const char *text, size_t length);
/* Of an interned name: they are counted from 0 in the order in which they came */
uint32_t names_number(const char *name);

/* A name in the text: as two numbers, because there are many */
typedef struct Occurrence {
    uint32_t name; /* names_number */
    uint32_t at;
} Occurrence;
typedef struct Occurrences {
    Arena *arena;
    VEC(Occurrence) list;
} Occurrences;

/* Length in bytes of the UTF-8 character at the start of `left` bytes: 1 to 4, or 0 if it is not
 * valid (overlong forms, surrogates and values over U+10FFFF are not). */
int utf8_length(const char *text, size_t left);
/* Number of bytes from 1 to 127 at the start of `left` bytes */
size_t ascii_length(const char *text, size_t left);

/* The candidate with the smallest edit distance, at most max(length / 3, 1), and with a common
 * character; NULL if there is none. For "did you mean". */
const char *closest_name(const char *wanted, const char *const *candidates, size_t count);

/* Names of other languages (foreign.def): the type of Pipe for one of their types, the function for
 * one of their functions, and what to write instead of another name; NULL for all others. */
const char *foreign_type(const char *text, size_t length);
const char *foreign_function(const char *name);
const char *foreign_advice(const char *name);

/* ---- kinds of work --------------------------------------------------------------------------- */

/* The plan counts them, the manifest lists them, a launcher adds them up. */

typedef enum WorkKind {
#define WORK(name, ...) WORK_##name,
#include "util/work.def"
#undef WORK
    WORK_KINDS
} WorkKind;

extern const char *const work_names[WORK_KINDS]; /* "copy in" */

/* ---- element types --------------------------------------------------------------------------- */

typedef enum ONE_BYTE Element {
#define ELEMENT(name, spelling, bytes, kind, widens, npy, map, ptx, what) E_##name,
#include "util/elements.def"
#undef ELEMENT
    E_COUNT
} Element;

typedef enum ElementKind {
    ELEMENT_FLOAT,
    ELEMENT_SIGNED,
    ELEMENT_UNSIGNED,
    ELEMENT_BOOLEAN
} ElementKind;

typedef struct ElementRow {
    const char *spelling; /* in Pipe: "bf16" */
    int bytes;            /* size in memory */
    ElementKind kind;
    Element widens;  /* type of its values in arithmetic */
    const char *npy; /* dtype in .npy files */
    int map;         /* CUtensorMapDataType, -1: none */
    /* "s32", "f32", ..: the PTX type of its values in arithmetic, widened */
    const char *ptx;
    const char *what;
} ElementRow;

extern const ElementRow element_rows[E_COUNT];

/* Most elements of a tensor along an axis, and most tiles of a grid: 2^31 - 2^20, so that the
 * index of an element in the last tile, or in the tile after it, still fits 32 bits */
#define EXTENT_MOST INT64_C(2146435072)

/* The type with this spelling in Pipe, "bf16"; false: none */
bool element_by_name(const char *spelling, Element *out);
/* true if one can be copied as the other: tf32 is stored as f32 */
bool element_same_bits(Element a, Element b);

/* Host conversions between stored bits and numbers. Storing rounds to nearest even (fp8:
 * saturates to finite, as cvt.rn.satfinite; NaN of e5m2 and e4m3 stays NaN; integers: truncates
 * and saturates, as cvt.rzi). f64 represents every value of the 8-, 16- and 32-bit types. */
double element_load(Element type, const void *from);
void element_store(Element type, void *to, double value);
/* 64-bit integers do not fit a double: these are exact for every integer type */
int64_t element_load_integer(Element type, const void *from);
void element_store_integer(Element type, void *to, int64_t value);

/* ---- source text ----------------------------------------------------------------------------- */

/* Bytes lo .. hi of a source, hi exclusive. Lines and columns are computed when they are
 * printed. */
typedef struct Span {
    uint32_t lo, hi;
} Span;

#define SOURCE_MAX_BYTES (16u << 20)

/* A file of a source: the first one, or one that is included */
typedef struct SourceFile {
    const char *name; /* as shown */
    /* relative to the folder of the first file, "lib/sums.pipe"; "" for the first file */
    const char *path;
    uint32_t lo, hi; /* its bytes in the text of the source */
    uint32_t rows;   /* lines of the text before it */
} SourceFile;

/* One text, or several files one after the other with a newline between them. A line of the whole
 * text is a row; what people read are files and their lines. */
typedef struct Source {
    const char *name; /* of the first file, as given by the user; "<stdin>" for standard input */
    /* NUL-terminated after `length` bytes; may contain NULs before */
    const char *text;
    uint32_t length;
    const uint32_t *line_starts;
    uint32_t lines;
    const struct Milestone *milestones; /* for columns; see source.c */
    const SourceFile *files;            /* at least one */
    uint32_t file_count;
} Source;

/* A file that is to become part of a source */
typedef struct SourceText {
    const char *name, *path, *text; /* name and path as of SourceFile */
    size_t length;
} SourceText;

/* Copies the text. The caller must refuse texts over SOURCE_MAX_BYTES. */
Source *source_new(Arena *arena, const char *name, const char *text, size_t length);
/* The same without a copy: the text is NUL-terminated, and lives as long as the arena */
Source *source_of(Arena *arena, const char *name, const char *text, size_t length);
/* Several files; all is copied */
Source *source_join(Arena *arena, const SourceText *files, size_t count);
Source *source_copy(Arena *arena, const Source *source);
/* The file that contains the offset */
const SourceFile *source_file(const Source *source, uint32_t offset);
/* 1-based line in its file, and 1-based column counted in characters (UTF-8 aware) */
void source_place(const Source *source, uint32_t offset, uint32_t *line, uint32_t *column);
uint32_t source_line(const Source *source, uint32_t offset); /* only the line in its file */
uint32_t source_row(const Source *source, uint32_t offset);  /* the 1-based line of the text */
/* "line 12", or "line 3 of `lib/sums.pipe`" in another file than that of `from` */
const char *source_where(Arena *arena, const Source *source, uint32_t offset, uint32_t from);
Span span_join(Span a, Span b); /* the smallest span that contains both */

/* ---- diagnostics ----------------------------------------------------------------------------- */

/* Codes: errors.def, one row each. The meaning of a code never changes; numbers are never
 * reused. */
typedef enum Code {
#define DIAG(number, severity, title) P##number,
#include "util/errors.def"
#undef DIAG
    CODE_COUNT
} Code;

/* An incomplete verdict is not an error: something could not be decided. */
typedef enum Severity {
    SEVERITY_ERROR,
    SEVERITY_INCOMPLETE,
    SEVERITY_WARNING,
    SEVERITY_NOTE
} Severity;

typedef struct CodeRow {
    const char *name; /* "P0102" */
    Severity severity;
    const char *title; /* one line: the subject of this code */
} CodeRow;

extern const CodeRow code_rows[CODE_COUNT];
bool code_by_name(const char *name, Code *out); /* ignores case */
const char *code_near(const char *name);        /* the most similar code, or NULL */

#define DIAG_MAX_LABELS 6
/* A check that has reported so many errors stops and says so: the reader sees 20 of each code. */
#define ERRORS_MOST 1000

typedef struct Label {
    Span span;
    /* text at this place; may be empty for the primary label */
    const char *text;
} Label;

/* Levels of incomplete verdicts, warnings and notes: denied ones count as errors, incomplete
 * verdicts that are accepted as warnings; warnings and notes that a comment allows at a line are
 * not reported there. Errors are always reported. */
typedef struct Allow {
    Code code;
    uint32_t row; /* 1-based: diagnostics that begin there are silenced */
    Span word;    /* the code in the comment */
} Allow;

typedef struct Levels {
    bool denied[CODE_COUNT], accepted[CODE_COUNT];
    VEC(Allow) allows; /* sorted by row */
} Levels;

typedef struct Diag {
    Code code;
    /* that of the code; after diags_finish an error if denied, a warning if accepted */
    Severity severity;
    /* readable without labels; lower case, no full stop, names in backquotes */
    const char *message;
    /* false: about the whole file, the data or the machine; then there are no labels */
    bool has_place;
    Label labels[DIAG_MAX_LABELS]; /* [0] is the primary one */
    int label_count;
    VEC(const char *) notes; /* "note: ..." explains */
    VEC(const char *) helps; /* "help: ..." says how to correct it */
    /* diags_finish: it was looked for a form of another language; where that ends, 0 for none;
     * what follows is in that language too */
    bool asked, form_rest;
    uint32_t form_end;
} Diag;

typedef struct Diags {
    Arena *arena;
#ifdef PIPEC_WITHOUT
    const char *place; /* the call that reported it, as file:line */
#endif
    const Source *source; /* NULL if no diagnostic has a place */
    VEC(Diag *) items;
    size_t errors; /* number of errors */
    size_t made;   /* number of diagnostics, silenced ones included */
    size_t asked;  /* number of errors for which a form of another language was looked for */
    /* what was found; a list of the same text that is asked instead, and lives longer; or NULL */
    VEC(struct FormAsked *) forms;
    struct Diags *shares;
    /* Of the text's errors, warnings and notes, the first DIAGS_MOST places of each code are kept.
     * By code: number of places, of diagnostics that are kept, and of others */
    uint32_t places[CODE_COUNT], kept[CODE_COUNT], dropped[CODE_COUNT];
    size_t errors_dropped; /* by diags_finish: errors among those, which `errors` contains */
    Diag *other;          /* takes the place of one that is not kept; its additions are discarded */
    const Levels *levels; /* NULL: the severities of the codes */
    bool *used;           /* one per allow: it has silenced something */
} Diags;

/* An empty list of diagnostics for a text */
Diags *diags_new(Arena *arena, const Source *source);
/* must precede the first diagnostic that the levels concern */
void diags_set_levels(Diags *diags, const Levels *levels);
Diag *diag_at(Diags *diags, Code code, Span span, const char *format, ...) PRINTF_LIKE(4, 5);
/* without a place */
Diag *diag_plain(Diags *diags, Code code, const char *format, ...) PRINTF_LIKE(3, 4);
/* the build of tools/rules.sh, which can silence one call */
#ifdef PIPEC_WITHOUT
Diags *diags_from(Diags *diags, const char *place);
#define PLACE_TEXT(line)  #line
#define PLACE(file, line) file ":" PLACE_TEXT(line)
#define FROM_HERE(diags)  diags_from(diags, PLACE(__FILE__, __LINE__))
/* (diag_at)(..) keeps the caller's place */
#define diag_at(diags, ...)    diag_at(FROM_HERE(diags), __VA_ARGS__)
#define diag_plain(diags, ...) diag_plain(FROM_HERE(diags), __VA_ARGS__)
#endif
/* These return their first argument, so that calls can be chained. */
/* text of the primary label */
Diag *diag_primary(Diags *diags, Diag *diag, const char *format, ...) PRINTF_LIKE(3, 4);
Diag *diag_label(Diags *diags, Diag *diag, Span span, const char *format, ...) PRINTF_LIKE(4, 5);
Diag *diag_note(Diags *diags, Diag *diag, const char *format, ...) PRINTF_LIKE(3, 4);
Diag *diag_help(Diags *diags, Diag *diag, const char *format, ...) PRINTF_LIKE(3, 4);

/* Sorts by place, then code, then order of report; removes exact duplicates; turns denied ones
 * into errors, accepted ones into warnings. Must be called before printing. */
void diags_finish(Diags *diags);

/* Reads comments `// allow P0241: the reason`: at the end of a line they apply to diagnostics
 * that begin on it, otherwise to the next line with tokens. `comments` are sorted. Errors in
 * them are warnings. */
void allows_read(Levels *levels, const Span *comments, size_t count, Diags *diags);
/* Warns of allows that have silenced nothing, if a check alone can decide that. */
void allows_unused(Diags *diags);
/* In the style of rustc; `colours`: with ANSI colours */
/* A form of another language in the text: a row of habits.def, with the text's own names */
typedef struct Habit {
    Span whole, shown; /* shown: the part on one line that is at fault */
    const char *message, *help;
    bool rest; /* what follows is probably in that language too */
} Habit;

/* True if the text at an error of this code has such a form. diags_finish asks for each error. */
bool habit_find(Arena *arena, const Source *source, Code code, Span at, Habit *out);

void diags_render(const Diags *diags, bool colours, Str *out);
/* {"file":..,"diagnostics":[{code, severity, message, labels:[{line, column, end_line,
 * end_column, lo, hi, text}], notes, helps}]}; a label in an included file has its "file" */
void diags_json(const Diags *diags, Str *out);

/* SARIF 2.1.0: the diagnostics of several texts as one log of one run */
typedef struct Sarif Sarif;
Sarif *sarif_new(Arena *arena);
void sarif_add(Sarif *sarif, const Diags *diags); /* finished ones; copied */
void sarif_print(const Sarif *sarif, const char *version, Str *out);

/* ---- texts that are compiled in -------------------------------------------------------------- */

/* docs/errors/PNNNN.md, kernels/NAME.pipe and what these include, compiled in by tools/pages.sh;
 * sorted by name */
typedef struct Page {
    const char *name, *text;
} Page;
extern const Page explain_pages[], shipped_kernels[], shipped_files[];
extern const size_t explain_pages_count, shipped_kernels_count, shipped_files_count;

/* The floors must not use the allocator of the C library, only arenas. util/arena.c and files
 * that own memory of another lifetime (device buffers, arrays of a run) define PIPEC_OWN_MEMORY
 * before they include this header. */
#ifndef PIPEC_OWN_MEMORY
#undef malloc
#undef calloc
#undef realloc
#undef free
#undef strdup
#define malloc  use_arena_alloc_instead_of_malloc
#define calloc  use_arena_alloc_instead_of_calloc
#define realloc use_arena_grow_instead_of_realloc
#define strdup  use_arena_copy_instead_of_strdup
#endif

#endif
