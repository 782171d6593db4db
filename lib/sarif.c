/* lib: diagnostics of several programs as one SARIF log, with its own arena. */
#include "lib/private.h"

struct PipecSarif {
    Arena *arena;
    Sarif *sarif;
    const char *text; /* text of the log so far; NULL: not made yet */
    bool failed;      /* memory ran out */
};

typedef struct Work {
    Arena *arena;
    PipecSarif *it;
    const Diags *diags;
} Work;

static void begin(void *data) {
    Work *work = data;
    work->it = NEW(work->arena, PipecSarif);
    work->it->arena = work->arena;
    work->it->sarif = sarif_new(work->arena);
}

static void add(void *data) {
    const Work *work = data;
    sarif_add(work->it->sarif, work->diags);
}

static void print(void *data) {
    const Work *work = data;
    Str text = str_new(work->arena);
    sarif_print(work->it->sarif, pipec_version(), &text);
    work->it->text = text.text;
}

PIPEC_API PipecSarif *pipec_sarif_new(void) {
    Work work = {.arena = arena_new()};
    if (work.arena == NULL) return NULL;
    if (attempt(work.arena, begin, &work)) return work.it;
    arena_free(work.arena);
    return NULL;
}

PIPEC_API void pipec_sarif_free(PipecSarif *sarif) {
    if (sarif != NULL) arena_free(sarif->arena);
}

PIPEC_API bool pipec_sarif_add(PipecSarif *sarif, const PipecDiagnostics *diagnostics) {
    Work work = {sarif->arena, sarif, diagnostics->diags};
    sarif->text = NULL;
    if (work.diags != NULL && !attempt(sarif->arena, add, &work)) sarif->failed = true;
    return !sarif->failed && (work.diags != NULL || diagnostics->count == 0);
}

PIPEC_API const char *pipec_sarif_text(PipecSarif *sarif) {
    Work work = {.arena = sarif->arena, .it = sarif};
    if (!sarif->failed && sarif->text == NULL && !attempt(sarif->arena, print, &work))
        sarif->failed = true;
    return sarif->failed ? NULL : sarif->text;
}
