/* The lines of emitted PTX.
 *
 * In: text with one statement on each line. Out: for each line its label, guard, opcode and
 * operands, the role that it belongs to, and whether it is in a loop. Lines of other kinds
 * (directives, declarations, comments) have neither label nor opcode. */
#include "tests/ptxmutants/ptxmutants.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#define ROLE_MARK "// ---- role "

/* ---- one line -------------------------------------------------------------------------------- */

static const char *skip_blanks(const char *at) {
    while (*at == ' ' || *at == '\t') at++;
    return at;
}

static bool in_name(char c) { return isalnum((unsigned char)c) || strchr("_%$.:", c) != NULL; }

static const char *name_end(const char *at) {
    while (*at != '\0' && in_name(*at)) at++;
    return at;
}

/* Operands are separated by commas outside of brackets */
static void read_operands(Arena *arena, const char *at, Line *line) {
    const char *start = at = skip_blanks(at);
    for (int depth = 0; *at != '\0'; at++) {
        bool end = depth == 0 && (*at == ',' || *at == ';');
        depth += (strchr("[{(", *at) != NULL) - (strchr("]})", *at) != NULL);
        if (!end) continue;
        if (at > start && line->operand_count < OPERANDS_MAX)
            line->operands[line->operand_count++] = arena_copy(arena, start, (size_t)(at - start));
        if (*at == ';') break;
        start = skip_blanks(at + 1);
    }
}

static Line read_line(Arena *arena, const char *text) {
    Line line = {.text = text};
    const char *at = skip_blanks(text), *end = name_end(at);
    if (end > at && end[-1] == ':') {
        line.label = arena_copy(arena, at, (size_t)(end - at - 1));
        return line;
    }
    if (*at == '@') {
        end = at + 1 + strcspn(at + 1, " ");
        line.guard = arena_copy(arena, at + 1, (size_t)(end - at - 1));
        at = skip_blanks(end);
    }
    if (!islower((unsigned char)*at) || strchr(at, ';') == NULL) return line;
    end = name_end(at);
    line.opcode = arena_copy(arena, at, (size_t)(end - at));
    read_operands(arena, end, &line);
    return line;
}

/* ---- roles and loops ------------------------------------------------------------------------- */

static void mark_roles(Arena *arena, Lines *lines) {
    const char *role = "";
    for (size_t i = 0; i < lines->count; i++) {
        Line *line = &lines->items[i];
        const char *mark = strstr(line->text, ROLE_MARK);
        if (mark != NULL) {
            mark += strlen(ROLE_MARK);
            role = arena_copy(arena, mark, strcspn(mark, ":"));
        }
        line->role = role;
        if (line_is(line, "ret")) role = "";
    }
}

static void mark_loops(Lines *lines) {
    for (size_t i = 0; i < lines->count; i++) {
        const Line *branch = &lines->items[i];
        size_t start = 0;
        if (!line_is(branch, "bra")) continue;
        for (; start < i; start++) {
            const char *label = lines->items[start].label;
            if (label != NULL && strcmp(label, branch->operands[0]) == 0) break;
        }
        /* a wait and the branch that repeats it */
        if (start == i || line_next(lines, start) + 1 == i) continue;
        for (; start < i; start++) lines->items[start].looped = true;
    }
}

void lines_read(Arena *arena, const char *ptx, Lines *out) {
    while (*ptx != '\0') {
        size_t length = strcspn(ptx, "\n");
        vec_push(arena, out, read_line(arena, arena_copy(arena, ptx, length)));
        ptx += length + (ptx[length] == '\n');
    }
    mark_roles(arena, out);
    mark_loops(out);
}

/* ---- questions ------------------------------------------------------------------------------- */

/* The length of the words at the beginning of the text that fit those of the pattern, which end
 * at a blank; 0: they do not fit */
static size_t fits(const char *text, const char *pattern) {
    const char *at = text;
    while (*pattern != '\0' && *pattern != ' ') {
        if (*pattern == '#') {
            at += strcspn(at, ".");
            pattern++;
        } else if (*at++ != *pattern++) {
            return 0;
        }
    }
    return *at == '\0' || *at == '.' ? (size_t)(at - text) : 0;
}

static bool has_words(const char *opcode, const char *words) {
    for (const char *at = opcode; at != NULL; at = strchr(at, '.')) {
        at += *at == '.';
        if (fits(at, words) > 0) return true;
    }
    return false;
}

bool line_is(const Line *line, const char *pattern) {
    if (line->opcode == NULL || fits(line->opcode, pattern) == 0) return false;
    for (const char *at = strchr(pattern, ' '); at != NULL; at = strchr(at + 1, ' '))
        if (has_words(line->opcode, at + 2) != (at[1] == '+')) return false;
    return true;
}

size_t line_next(const Lines *lines, size_t at) {
    do at++;
    while (at < lines->count && lines->items[at].opcode == NULL);
    return at;
}

const char *line_with(Arena *arena, const Line *line, int operand, const char *with) {
    Str text = str_new(arena);
    str_add(&text, line->opcode);
    for (size_t i = 0; i < line->operand_count; i++) {
        str_add(&text, i == 0 ? " " : ", ");
        str_add(&text, (int)i == operand ? with : line->operands[i]);
    }
    return text.text;
}

const char *line_guard(Arena *arena, const Line *line) {
    return line->guard != NULL ? arena_printf(arena, "@%s ", line->guard) : "";
}

int64_t address_constant(const char *operand) {
    const char *plus = strrchr(operand, '+');
    return plus != NULL ? strtoll(plus + 1, NULL, 10) : 0;
}

bool line_writes(const Line *line) {
    return line_is(line, "st.shared") || line_is(line, "stmatrix");
}

bool line_accesses(const Line *line) {
    return line_writes(line) || line_is(line, "ld.shared") || line_is(line, "ldmatrix");
}

bool operand_uses(const char *operand, const char *name) {
    size_t length = strlen(name);
    for (const char *at = strstr(operand, name); at != NULL; at = strstr(at + 1, name))
        if (!in_name(at[length])) return true;
    return false;
}
