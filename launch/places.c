/* launch: places of a manifest's source, for diagnostics: of lines of the PTX, and of inline PTX.
 */
#include "launch/private.h"

#include <string.h>

Diag *manifest_diag(const Manifest *manifest, Diags *diags, Code code, Span span,
                    const char *format, ...) {
    va_list args;
    va_start(args, format);
    const char *text = arena_vprintf(diags->arena, format, args);
    va_end(args);
    if (manifest->source != NULL && manifest->source == diags->source)
        return diag_at(diags, code, span, "%s", text);
    Diag *diag = diag_plain(diags, code, "%s", text);
    if (manifest->source != NULL && span.hi > span.lo && span.hi <= manifest->source->length) {
        uint32_t line, column;
        source_place(manifest->source, span.lo, &line, &column);
        diag_note(diags, diag, "at %s:%u:%u", source_file(manifest->source, span.lo)->name, line,
                  column);
    }
    return diag;
}

const ManifestMark *manifest_mark(const Manifest *manifest, uint32_t line) {
    const ManifestMark *found = NULL;
    for (size_t i = 0; i < manifest->marks.count && manifest->marks.items[i].line <= line; i++)
        found = &manifest->marks.items[i];
    return found;
}

const ManifestInline *manifest_inline(const Manifest *manifest, uint32_t line) {
    const ManifestInline *found = NULL;
    for (size_t i = 0; i < manifest->inline_ptx.count; i++)
        if (found == NULL || manifest->inline_ptx.items[i].first <= line)
            found = &manifest->inline_ptx.items[i];
    return found;
}

char *manifest_without_inline(Arena *arena, const Manifest *manifest, const char *ptx,
                              size_t length) {
    char *text = arena_copy(arena, ptx, length);
    size_t next = 0;
    uint32_t line = 1;
    for (size_t at = 0; at < length && next < manifest->inline_ptx.count; at++) {
        const ManifestInline *region = &manifest->inline_ptx.items[next];
        if (text[at] == '\n')
            next += line++ == region->last;
        else if (line >= region->first)
            text[at] = ' ';
    }
    return text;
}

void manifest_report_inline(const Manifest *manifest, Diags *diags, uint32_t line,
                            const char *why) {
    const ManifestInline *region = manifest_inline(manifest, line);
    Diag *diag =
        manifest_diag(manifest, diags, P0704, region->span, "inline PTX cannot be read: %s", why);
    if (line < region->first || line > region->last)
        diag_primary(diags, diag, "the error is in this PTX text or in an earlier one");
    diag_help(diags, diag,
              "end each instruction with `;`, and put names and labels in their own braces");
}
