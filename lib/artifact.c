/* lib: a program from its manifest and its PTX or cubin, without the source. Manifest and image
 * must be of one build: what shows that they are not is refused. */
#include "lib/cubins.h"
#include "lib/private.h"

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

/* NULL, or why the text is not that of the manifest */
static const char *ptx_fault(const char *ptx, size_t length, const Manifest *manifest) {
    return fnv1a(FNV_START, ptx, length) == manifest->ptx_hash ? NULL : "it is another text";
}

/* NULL, or why the cubin was not made of the text of the manifest */
static const char *mark_fault(Arena *arena, const char *image, size_t length,
                              const Manifest *manifest) {
    size_t mark = strlen(cubin_mark(arena, manifest, image, 0));
    if (length > mark &&
        memcmp(image + length - mark, cubin_mark(arena, manifest, image, length - mark), mark) == 0)
        return NULL;
    return "`pipec build` did not make it of the PTX of this manifest, or it was changed";
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
        const char *why = cubin_fault(program->arena, program->cubin, length, program->manifest);
        return why != NULL ? why : mark_fault(program->arena, it->image, length, program->manifest);
    }
    const char *text = it->image;
    if (length > 0 && text[length - 1] == 0) length--;
    str_add_bytes(&program->ptx, text, length);
    return ptx_fault(text, length, program->manifest);
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
        Diag *diag =
            diag_plain(program->diags, P0923, "the image is not that of the manifest of `%s`: %s",
                       manifest->kernel, why);
        diag_help(program->diags, diag,
                  "pass the two files of one build, unchanged: `pipec build` writes both");
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
    program_levels(program, &options);
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
