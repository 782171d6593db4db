/* lib: a program from its manifest and its PTX or cubin, without the source. Manifest and image
 * must be of one build: what shows that they are not is refused. */
#include "lib/cubins.h"
#include "lib/private.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

typedef struct Artifact {
    PipecProgram *program;
    const char *manifest;
    size_t manifest_length;
    const void *image;
    size_t image_length;
    const PipecOptions *given;
} Artifact;

/* ---- the image ------------------------------------------------------------------------------- */

/* The word after `directive` and blanks; NULL: the directive is not there. It may follow only the
 * start of a line or a blank. */
static const char *after(const char *ptx, const char *directive, size_t *length) {
    for (const char *at = strstr(ptx, directive); at != NULL; at = strstr(at + 1, directive)) {
        const char *word = at + strlen(directive);
        if ((at > ptx && !isspace((unsigned char)at[-1])) || *word != ' ') continue;
        word += strspn(word, " ");
        *length = strcspn(word, " \t\r\n,();");
        return word;
    }
    return NULL;
}

static bool is_word(const char *ptx, const char *directive, const char *wanted) {
    size_t length;
    const char *word = after(ptx, directive, &length);
    return word != NULL && length == strlen(wanted) && strncmp(word, wanted, length) == 0;
}

/* Number of parameters of the entry */
static size_t parameters(const char *ptx) {
    size_t length, count = 0;
    const char *entry = after(ptx, ".entry", &length),
               *end = entry != NULL ? strchr(entry, ')') : NULL;
    for (const char *at = entry; end != NULL && (at = strstr(at, ".param")) != NULL && at < end;
         at++)
        count++;
    return count;
}

/* NULL, or why the text is not that of the manifest */
static const char *ptx_fault(Arena *arena, const char *ptx, size_t length,
                             const Manifest *manifest) {
    const char *threads = arena_printf(arena, "%d", manifest->threads);
    if (strlen(ptx) != length) return "it contains a NUL byte, so it is neither PTX nor a cubin";
    while (length > 0 && isspace((unsigned char)ptx[length - 1])) length--;
    if (!is_word(ptx, ".entry", manifest->kernel))
        return arena_printf(arena, "it has no entry `%s`", manifest->kernel);
    if (!is_word(ptx, ".target", manifest->target))
        return arena_printf(arena, "its target is not %s", manifest->target);
    if (!is_word(ptx, ".reqntid", threads))
        return arena_printf(arena, "its blocks do not have %s threads", threads);
    if (parameters(ptx) != manifest->arguments.count)
        return arena_printf(arena, "its entry does not have %zu parameters",
                            manifest->arguments.count);
    if (ptx[length - 1] != '}') return "its end is missing";
    return NULL;
}

/* Copies the image. Returns why it is refused, NULL: it is not. */
static const char *take_image(const Artifact *it) {
    PipecProgram *program = it->program;
    size_t length = it->image_length;
    if (length >= 4 && memcmp(it->image,
                              "\x7f"
                              "ELF",
                              4) == 0) {
        program->cubin = arena_copy(program->arena, it->image, length);
        return cubin_fault(program->arena, program->cubin, length, program->manifest);
    }
    const char *text = it->image;
    if (length > 0 && text[length - 1] == 0) length--;
    str_add_bytes(&program->ptx, text, length);
    return ptx_fault(program->arena, program->ptx.text, length, program->manifest);
}

/* ---- the program ----------------------------------------------------------------------------- */

static void read_program(const Artifact *it, const PipecOptions *options) {
    PipecProgram *program = it->program;
    Manifest *manifest =
        manifest_read(program->arena, it->manifest, it->manifest_length, program->diags);
    if (manifest == NULL) return;
    program->manifest = manifest;
    const char *why = take_image(it);
    if (why != NULL) {
        diag_plain(program->diags, P0923, "the image is not that of the manifest of `%s`: %s",
                   manifest->kernel, why);
        program->manifest = NULL;
        return;
    }
    /* of that name, but without the text: messages name its places */
    const char *name = options->name != NULL      ? options->name
                       : manifest->source != NULL ? manifest->source->name
                                                  : "<manifest>";
    program->source = source_new(program->arena, name, "", 0);
    program->diags->source = program->source;
    program->kernel = manifest->kernel;
    program->kernels = &program->kernel;
    program->kernel_count = 1;
    program_describe(program);
}

static void read_all(void *data) {
    const Artifact *it = data;
    PipecProgram *program = it->program;
    PipecOptions options;
    bool sized = size_read(&options, sizeof options, it->given);
    program->ptx = str_new(program->arena);
    program->source = source_new(program->arena, "<manifest>", "", 0);
    program->diags = diags_new(program->arena, program->source);
    if (!sized) size_report(program->diags, "PipecOptions", sizeof options, it->given);
    program_deny(program, &options);
    if (program->diags->errors == 0) read_program(it, &options);
    program_finish(program);
}

PIPEC_API PipecProgram *pipec_program_from(const char *manifest, size_t manifest_length,
                                           const void *image, size_t image_length,
                                           const PipecOptions *options) {
    Artifact it = {.program = program_new(),
                   .manifest = manifest,
                   .manifest_length = manifest_length,
                   .image = image,
                   .image_length = image_length,
                   .given = options};
    if (it.program == NULL || attempt(it.program->arena, read_all, &it)) return it.program;
    pipec_program_free(it.program);
    return NULL;
}
