/* Diagnostics as text in the style of rustc, and as JSON.
 *
 * The places in the file of the primary one come first, then those of other files, each file under
 * its name. The source is shown unchanged, except that tabs become spaces and invisible characters
 * are spelled out (\x00, \u{202E}). A span of several lines is marked on its first and on its last
 * line. Of a line that is too long only the part around its first mark is shown. */
#include "util/util.h"

#include <string.h>

#define TAB    4
#define WIDEST 140 /* most cells of a line that are shown */
/* bytes before the first mark from which the head of a line is cut */
#define CUT_AFTER 400
/* bytes that remain before the mark after a cut */
#define KEPT_BEFORE 60

typedef struct Mark {
    uint32_t row;    /* 0-based line of the text */
    uint32_t lo, hi; /* bytes, hi > lo unless it is a gap */
    const char *text;
    bool primary;
    size_t from, to; /* cells of the visible part, to > from */
    bool printed;    /* its text has been printed */
} Mark;

typedef struct Render {
    const Source *source;
    Str *out;
    bool colours;
    int gutter; /* digits of the largest line number */
    Mark marks[2 * DIAG_MAX_LABELS];
    int count;
} Render;

static const char *paint_of(Severity severity) {
    switch (severity) {
    case SEVERITY_ERROR: return "\033[1;31m";
    case SEVERITY_INCOMPLETE: return "\033[1;35m";
    case SEVERITY_WARNING: return "\033[1;33m";
    case SEVERITY_NOTE: return "\033[1;32m";
    }
    return "";
}

static const char *word_of(Severity severity) {
    switch (severity) {
    case SEVERITY_ERROR: return "error";
    case SEVERITY_INCOMPLETE: return "incomplete";
    case SEVERITY_WARNING: return "warning";
    case SEVERITY_NOTE: return "note";
    }
    return "";
}

#define FRAME "\033[1;34m"
#define BOLD  "\033[1m"

static void paint(Render *r, const char *colour) {
    if (r->colours) str_add(r->out, colour);
}

static void plain(Render *r) { paint(r, "\033[0m"); }

/* ---- lines ----------------------------------------------------------------------------------- */

static uint32_t row_end(const Source *source, uint32_t row) {
    uint32_t end = row + 1 < source->lines ? source->line_starts[row + 1] - 1 : source->length;
    if (end > source->line_starts[row] && source->text[end - 1] == '\r') end--;
    return end;
}

static const SourceFile *file_of(const Render *r, uint32_t row) {
    return source_file(r->source, r->source->line_starts[row]);
}

/* Prints one character as a terminal can show it. Returns its width in cells; *next is the
 * offset after it. */
static size_t show(Str *out, const Source *source, uint32_t at, size_t column, uint32_t *next) {
    int length = utf8_length(source->text + at, source->length - at);
    *next = at + (length ? (uint32_t)length : 1);
    if (source->text[at] == '\t') {
        size_t cells = TAB - column % TAB;
        for (size_t i = 0; i < cells; i++) str_char(out, ' ');
        return cells;
    }
    size_t before = out->length;
    str_visible(out, source->text + at, *next - at);
    bool spelled = out->text[before] == '\\' && source->text[at] != '\\';
    return spelled ? out->length - before : 1;
}

static void gutter(Render *r, uint32_t line) {
    paint(r, FRAME);
    if (line)
        str_printf(r->out, "%*u |", r->gutter, (unsigned)line);
    else
        str_printf(r->out, "%*s |", r->gutter, "");
    plain(r);
}

/* The offset at which the visible part of a line begins if its first mark is at `mark` */
static uint32_t shown_from(const Source *source, uint32_t start, uint32_t mark) {
    if (mark - start <= CUT_AFTER) return start;
    uint32_t at = mark - KEPT_BEFORE;
    for (int i = 0; i < 3 && ((unsigned char)source->text[at] & 0xC0) == 0x80; i++) at++;
    return at;
}

/* Prints a line of the source and computes the cells of its marks */
static void show_line(Render *r, uint32_t row, Mark **marks, int count) {
    const Source *source = r->source;
    uint32_t start = source->line_starts[row], end = row_end(source, row), first = start;
    for (int i = 0; i < count; i++)
        if (i == 0 || marks[i]->lo < first) first = marks[i]->lo;
    uint32_t at = shown_from(source, start, first < end ? first : end);
    Str text = str_new(r->out->arena);
    size_t cells = 0;
    if (at > start) {
        str_add(&text, "...");
        cells = 3;
    }
    bool found[2 * DIAG_MAX_LABELS] = {false};
    for (uint32_t next; at < end && cells < WIDEST; at = next) {
        size_t width = show(&text, source, at, cells, &next);
        for (int i = 0; i < count; i++) {
            if (!found[i] && next > marks[i]->lo) {
                marks[i]->from = cells;
                found[i] = true;
            }
            if (found[i] && at < marks[i]->hi) marks[i]->to = cells + width;
        }
        cells += width;
    }
    for (int i = 0; i < count; i++) {
        if (!found[i]) marks[i]->from = cells;
        if (marks[i]->to <= marks[i]->from) marks[i]->to = marks[i]->from + 1;
    }
    if (at < end) str_add(&text, "...");
    while (text.length && text.text[text.length - 1] == ' ') text.text[--text.length] = 0;
    gutter(r, row + 1 - file_of(r, row)->rows);
    if (text.length) str_char(r->out, ' ');
    str_add(r->out, text.text);
    str_char(r->out, '\n');
}

/* ---- marks under a line ---------------------------------------------------------------------- */

#define CELLS (WIDEST + 16)

/* Prints a row of marks and bars, without trailing blanks */
static void put_row(Render *r, const char *cells, const char *paint_primary) {
    size_t used = CELLS;
    while (used && cells[used - 1] == ' ') used--;
    gutter(r, 0);
    str_char(r->out, ' ');
    for (size_t i = 0; i < used; i++) {
        bool begins = i == 0 || cells[i] != cells[i - 1];
        if (begins && cells[i] != ' ') paint(r, cells[i] == '^' ? paint_primary : FRAME);
        str_char(r->out, cells[i]);
        if (cells[i] != ' ' && (i + 1 == used || cells[i + 1] != cells[i])) plain(r);
    }
}

static void put_text(Render *r, const Mark *mark, const char *paint_primary) {
    paint(r, mark->primary ? paint_primary : FRAME);
    str_visible(r->out, mark->text, strlen(mark->text));
    plain(r);
}

/* The mark whose text is printed in the row of marks: the rightmost one, if it has a text */
static Mark *inline_mark(Mark **marks, int count) {
    Mark *best = NULL;
    for (int i = 0; i < count; i++)
        if (!best || marks[i]->to > best->to ||
            (marks[i]->to == best->to && marks[i]->text[0] && !best->text[0]) ||
            (marks[i]->to == best->to && marks[i]->from > best->from && marks[i]->text[0]))
            best = marks[i];
    return best && best->text[0] ? best : NULL;
}

static Mark *rightmost_unprinted(Mark **marks, int count) {
    Mark *best = NULL;
    for (int i = 0; i < count; i++)
        if (!marks[i]->printed && marks[i]->text[0] && (!best || marks[i]->from > best->from))
            best = marks[i];
    return best;
}

static void bars(char *cells, Mark **marks, int count, size_t before) {
    memset(cells, ' ', CELLS);
    for (int i = 0; i < count; i++)
        if (!marks[i]->printed && marks[i]->text[0] && marks[i]->from < before)
            cells[marks[i]->from] = '|';
}

static void show_marks(Render *r, Mark **marks, int count, const char *paint_primary) {
    char cells[CELLS];
    memset(cells, ' ', sizeof cells);
    for (int primary = 0; primary < 2; primary++)
        for (int i = 0; i < count; i++)
            if (marks[i]->primary == (primary == 1))
                memset(cells + marks[i]->from, primary ? '^' : '-', marks[i]->to - marks[i]->from);
    put_row(r, cells, paint_primary);
    Mark *mark = inline_mark(marks, count);
    if (mark) {
        str_char(r->out, ' ');
        put_text(r, mark, paint_primary);
        mark->printed = true;
    }
    str_char(r->out, '\n');
    if (rightmost_unprinted(marks, count)) {
        bars(cells, marks, count, CELLS);
        put_row(r, cells, paint_primary);
        str_char(r->out, '\n');
    }
    while ((mark = rightmost_unprinted(marks, count))) {
        mark->printed = true;
        bars(cells, marks, count, mark->from);
        size_t used = mark->from;
        while (used && cells[used - 1] == ' ') used--;
        put_row(r, cells, paint_primary);
        str_printf(r->out, "%*s", (int)(mark->from - used), "");
        put_text(r, mark, paint_primary);
        str_char(r->out, '\n');
    }
}

/* ---- one diagnostic -------------------------------------------------------------------------- */

static bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\n'; }

static void add_mark(Render *r, uint32_t row, uint32_t lo, uint32_t hi, const char *text,
                     bool primary) {
    r->marks[r->count++] = (Mark){.row = row, .lo = lo, .hi = hi, .text = text, .primary = primary};
}

/* A span of several lines becomes two marks: the rest of its first line, and its last line */
static void mark_label(Render *r, const Label *label, bool primary) {
    const Source *source = r->source;
    uint32_t lo = label->span.lo < source->length ? label->span.lo : source->length;
    uint32_t most = source_file(source, lo)->hi;
    uint32_t hi = label->span.hi < most ? label->span.hi : most;
    uint32_t first = source_row(source, lo) - 1;
    if (hi > row_end(source, first))
        while (hi > lo && is_blank(source->text[hi - 1])) hi--;
    if (hi < lo) hi = lo;
    uint32_t last = source_row(source, hi) - 1;
    if (first == last) {
        add_mark(r, first, lo, hi, label->text, primary);
        return;
    }
    add_mark(r, first, lo, row_end(source, first), "", primary);
    uint32_t begin = source->line_starts[last];
    while (begin < hi && is_blank(source->text[begin])) begin++;
    add_mark(r, last, begin, hi, label->text, primary);
}

/* By row, those of the file of the primary mark first */
static void sort_marks(Render *r) {
    const SourceFile *own = file_of(r, r->marks[0].row);
    for (int i = 1; i < r->count; i++)
        for (int j = i; j > 0; j--) {
            bool first = file_of(r, r->marks[j].row) == own,
                 second = file_of(r, r->marks[j - 1].row) == own;
            if (first != second ? !first : r->marks[j].row >= r->marks[j - 1].row) break;
            Mark swap = r->marks[j];
            r->marks[j] = r->marks[j - 1];
            r->marks[j - 1] = swap;
        }
}

/* "  --> NAME:LINE:COLUMN" */
static void show_place(Render *r, const char *arrow, uint32_t offset) {
    uint32_t line, column;
    source_place(r->source, offset, &line, &column);
    const char *name = source_file(r->source, offset)->name;
    str_printf(r->out, "%*s", r->gutter, "");
    paint(r, FRAME);
    str_add(r->out, arrow);
    plain(r);
    str_char(r->out, ' ');
    str_visible(r->out, name, strlen(name));
    str_printf(r->out, ":%u:%u\n", (unsigned)line, (unsigned)column);
    gutter(r, 0);
    str_char(r->out, '\n');
}

/* What is between this mark and the one before it: another file, a line, or more lines */
static void show_gap(Render *r, const Mark *before, const Mark *mark) {
    if (file_of(r, before->row) != file_of(r, mark->row)) {
        show_place(r, ":::", mark->lo);
    } else if (mark->row - before->row == 2) {
        show_line(r, mark->row - 1, NULL, 0);
    } else if (mark->row - before->row > 2) {
        paint(r, FRAME);
        str_add(r->out, "...");
        plain(r);
        str_char(r->out, '\n');
    }
}

static void show_lines(Render *r, const char *paint_primary) {
    sort_marks(r);
    for (int i = 0, next; i < r->count; i = next) {
        uint32_t row = r->marks[i].row;
        Mark *on_line[2 * DIAG_MAX_LABELS];
        int count = 0;
        for (next = i; next < r->count && r->marks[next].row == row; next++)
            on_line[count++] = &r->marks[next];
        if (i > 0) show_gap(r, &r->marks[i - 1], &r->marks[i]);
        show_line(r, row, on_line, count);
        show_marks(r, on_line, count, paint_primary);
    }
}

static void show_footers(Render *r, const Diag *diag) {
    for (int kind = 0; kind < 2; kind++) {
        size_t count = kind == 0 ? diag->notes.count : diag->helps.count;
        for (size_t i = 0; i < count; i++) {
            const char *text = kind == 0 ? diag->notes.items[i] : diag->helps.items[i];
            str_printf(r->out, "%*s ", r->gutter, "");
            paint(r, FRAME);
            str_char(r->out, '=');
            plain(r);
            paint(r, BOLD);
            str_add(r->out, kind == 0 ? " note" : " help");
            plain(r);
            str_add(r->out, ": ");
            /* further lines of a text are indented below its first */
            for (const char *line = text; line;) {
                const char *end = strchr(line, '\n');
                str_visible(r->out, line, end ? (size_t)(end - line) : strlen(line));
                line = end ? end + 1 : NULL;
                str_char(r->out, '\n');
                if (line) str_printf(r->out, "%*s", r->gutter + 9, "");
            }
        }
    }
}

static void render(const Diags *diags, const Diag *diag, bool colours, Str *out) {
    const CodeRow *row = &code_rows[diag->code];
    const char *paint_primary = paint_of(diag->severity);
    Render r = {.source = diags->source, .out = out, .colours = colours, .gutter = 1};
    paint(&r, paint_primary);
    str_printf(out, "%s[%s]", word_of(diag->severity), row->name);
    plain(&r);
    paint(&r, BOLD);
    str_add(out, ": ");
    str_visible(out, diag->message, strlen(diag->message));
    plain(&r);
    str_char(out, '\n');
    if (diag->has_place && diags->source) {
        for (int i = 0; i < diag->label_count; i++) mark_label(&r, &diag->labels[i], i == 0);
        uint32_t last = 0;
        for (int i = 0; i < r.count; i++) {
            uint32_t line = r.marks[i].row + 1 - file_of(&r, r.marks[i].row)->rows;
            if (line > last) last = line;
        }
        for (uint32_t digits = last / 10; digits; digits /= 10) r.gutter++;
        show_place(&r, "-->", diag->labels[0].span.lo);
        show_lines(&r, paint_primary);
        if (diag->notes.count + diag->helps.count) {
            gutter(&r, 0);
            str_char(out, '\n');
        }
    }
    show_footers(&r, diag);
}

void diags_render(const Diags *diags, bool colours, Str *out) {
    for (size_t i = 0; i < diags->items.count; i++) {
        if (i > 0) str_char(out, '\n');
        render(diags, diags->items.items[i], colours, out);
    }
}

/* ---- JSON ------------------------------------------------------------------------------------ */

static void json_label(const Source *source, const Label *label, Str *out) {
    uint32_t line, column, end_line, end_column;
    const SourceFile *file = source_file(source, label->span.lo);
    source_place(source, label->span.lo, &line, &column);
    source_place(source, label->span.hi, &end_line, &end_column);
    str_char(out, '{');
    if (file != source->files) {
        str_add(out, "\"file\":");
        str_json(out, file->name);
        str_char(out, ',');
    }
    str_printf(out,
               "\"line\":%u,\"column\":%u,\"end_line\":%u,\"end_column\":%u,\"lo\":%u,\"hi\":%u,"
               "\"text\":",
               (unsigned)line, (unsigned)column, (unsigned)end_line, (unsigned)end_column,
               (unsigned)(label->span.lo - file->lo), (unsigned)(label->span.hi - file->lo));
    str_json(out, label->text);
    str_char(out, '}');
}

static void json_texts(const char *const *texts, size_t count, Str *out) {
    str_char(out, '[');
    for (size_t i = 0; i < count; i++) {
        if (i) str_char(out, ',');
        str_json(out, texts[i]);
    }
    str_char(out, ']');
}

void diags_json(const Diags *diags, Str *out) {
    str_add(out, "{\"file\":");
    str_json(out, diags->source ? diags->source->name : NULL);
    str_add(out, ",\"diagnostics\":[");
    for (size_t i = 0; i < diags->items.count; i++) {
        const Diag *diag = diags->items.items[i];
        const CodeRow *row = &code_rows[diag->code];
        str_printf(out, "%s{\"code\":\"%s\",\"severity\":\"%s\",\"message\":", i ? "," : "",
                   row->name, word_of(diag->severity));
        str_json(out, diag->message);
        str_add(out, ",\"labels\":[");
        for (int j = 0; diag->has_place && diags->source && j < diag->label_count; j++) {
            if (j) str_char(out, ',');
            json_label(diags->source, &diag->labels[j], out);
        }
        str_add(out, "],\"notes\":");
        json_texts(diag->notes.items, diag->notes.count, out);
        str_add(out, ",\"helps\":");
        json_texts(diag->helps.items, diag->helps.count, out);
        str_char(out, '}');
    }
    str_add(out, "]}\n");
}
