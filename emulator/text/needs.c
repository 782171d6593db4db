/* What an instruction needs of the module's .version and .target, by needs.def. A module without a
 * .target is not compared. */
#include "emulator/text/text.h"

#include <string.h>

typedef enum NeedRule { FROM, ARCH, ONLY, AT } NeedRule;

typedef struct NeedRow {
    const char *begins, *has, *lacks;
    int version;
    NeedRule rule;
    int target;
} NeedRow;

static const NeedRow need_rows[] = {
#define NEEDS(begins, has, lacks, version, rule, target, example)                                  \
    {begins, has, lacks, version, rule, target},
#define FIRST(target, suffix, version)
#include "emulator/text/needs.def"
#undef NEEDS
#undef FIRST
};

static const struct {
    int target;
    char suffix;
    int version;
} first_rows[] = {
#define NEEDS(begins, has, lacks, version, rule, target, example)
#define FIRST(target, suffix, version) {target, suffix, version},
#include "emulator/text/needs.def"
#undef NEEDS
#undef FIRST
};

/* ---- words ----------------------------------------------------------------------------------- */

static bool is_end(const Token *word, size_t at) {
    return at == word->length || word->text[at] == '.';
}

static bool begins(const Token *word, const char *with) {
    size_t length = strlen(with);
    return length <= word->length && memcmp(word->text, with, length) == 0 && is_end(word, length);
}

/* Is `part` between two dots of the word, or at its end? "": yes */
static bool has(const Token *word, const char *part) {
    size_t length = strlen(part);
    for (size_t at = 0; length > 0 && at + length < word->length; at++)
        if (word->text[at] == '.' && memcmp(word->text + at + 1, part, length) == 0 &&
            is_end(word, at + 1 + length))
            return true;
    return length == 0;
}

static bool applies(const NeedRow *row, const Token *word, bool counted) {
    if (*row->begins != 0 && !begins(word, row->begins)) return false;
    if (*row->has == ',' ? !counted : !has(word, row->has)) return false;
    return *row->lacks == 0 || !has(word, row->lacks);
}

/* ---- the module ------------------------------------------------------------------------------ */

static bool target_fits(const NeedRow *row, const ModuleTarget *module) {
    switch (row->rule) {
    case FROM: return module->number >= row->target;
    case ARCH: return module->number >= row->target && module->suffix != 0;
    case ONLY: return module->number == row->target && module->suffix == 'a';
    case AT: break;
    }
    return true;
}

static const char *target_text(Arena *arena, const NeedRow *row) {
    switch (row->rule) {
    case FROM: return arena_printf(arena, ", and sm_%d or later", row->target);
    case ARCH: return arena_printf(arena, ", and sm_%da or a later one with a letter", row->target);
    case ONLY: return arena_printf(arena, ", and sm_%da", row->target);
    case AT: break;
    }
    return arena_printf(arena, " on sm_%d", row->target);
}

void needs_check(Reader *reader, const Token *word, bool counted) {
    const ModuleTarget *module = &reader->target;
    if (module->number == 0) return;
    for (size_t i = 0; i < COUNT_OF(need_rows); i++) {
        const NeedRow *row = &need_rows[i];
        if (row->rule == AT && module->number != row->target) continue;
        bool fits = module->version >= row->version && target_fits(row, module);
        if (fits || !applies(row, word, counted)) continue;
        text_reject(reader, word->line,
                    "`%.*s`%s needs PTX %d.%d%s; this module is PTX %d.%d for sm_%d%.1s",
                    (int)(word->length < 80 ? word->length : 80), word->text,
                    *row->has == ',' ? " with a count" : "", row->version / 10, row->version % 10,
                    target_text(reader->arena, row), module->version / 10, module->version % 10,
                    module->number, &module->suffix);
    }
}

/* "8.0" */
void needs_version(Reader *reader, const Token *word) {
    int version = 0;
    for (uint32_t i = 0; i < word->length && version < 1000; i++)
        if (word->text[i] >= '0' && word->text[i] <= '9')
            version = 10 * version + (word->text[i] - '0');
    reader->target.version = version;
}

/* "sm_90a" */
void needs_target(Reader *reader, const Token *word) {
    ModuleTarget *module = &reader->target;
    int number = 0;
    size_t at = 3;
    if (word->kind != TOKEN_WORD || word->length < 4 || memcmp(word->text, "sm_", 3) != 0) return;
    while (at < word->length && number < 1000 && word->text[at] >= '0' && word->text[at] <= '9')
        number = 10 * number + (word->text[at++] - '0');
    module->number = number;
    module->suffix = at < word->length ? word->text[at] : 0;
    for (size_t i = 0; i < COUNT_OF(first_rows); i++)
        if (first_rows[i].target == number && first_rows[i].suffix == module->suffix &&
            module->version < first_rows[i].version)
            text_reject(reader, word->line, "`%.*s` needs PTX %d.%d; this module is PTX %d.%d",
                        (int)word->length, word->text, first_rows[i].version / 10,
                        first_rows[i].version % 10, module->version / 10, module->version % 10);
}
