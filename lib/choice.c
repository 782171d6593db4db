/* lib: the choice of a variant and of values for the data of a run, before it. */
#include "lib/family.h"
#include "lib/fixed.h"
#include "lib/invariant.h"
#include "lib/machine.h"
#include "lib/targets.h"
#include "lib/tune.h"

#include <string.h>

/* ---- the data of a run ----------------------------------------------------------------------- */

typedef enum Basis { BY_ORDER, BY_TUNING, BY_ALL } Basis; /* of a choice */

typedef struct LookUp {
    PipecProgram *program;
    const PipecRunOptions *options;
    const PipecChooseOptions *how;
    Basis basis;
    const char *device; /* NULL: there is none, or it is not used */
    DeviceFacts facts;  /* of it */
    MachineRow row;     /* of the model */
    Kept kept;          /* by tuning */
    DeviceArgument *arguments;
    const char *extents; /* of the data, as in a choice */
    Arena *scratch;      /* freed at the end of the look-up */
    Diags *diags;
    bool numbers; /* of the choice are wanted */
    PipecChoice choice;
    PipecProgram *found;
} LookUp;

/* The arguments that the words of the run stand for. False: they are wrong, which the run reports,
 * or this call if it is strict. */
static bool bind_words(LookUp *it) {
    const PipecProgram *program = it->program;
    const Manifest *manifest = program->manifest;
    Arena *arena = it->scratch;
    Argument *given;
    size_t count;
    Diags *diags = it->how->strict != 0 ? it->diags : diags_new(arena, program->source);
    int64_t *symbols = NEW_ARRAY(arena, int64_t, manifest->symbols.count + 1);
    if (!run_words(arena, program, it->options, &given, &count, diags) ||
        !reference_symbols(arena, program->prog, manifest, given, count, symbols, diags))
        return false;
    it->arguments = NEW_ARRAY(arena, DeviceArgument, manifest->parameters.count + 1);
    it->extents = choice_extents(arena, manifest, symbols);
    return family_arguments(manifest, symbols, it->arguments) &&
           arguments_strides(manifest, it->options, it->arguments, diags);
}

/* Only preconditions and strides exclude a candidate: other errors are those of the data. */
static bool is_excluded(const Diags *diags) {
    for (size_t i = 0; i < diags->items.count; i++)
        if (diags->items.items[i]->code != P0608 && diags->items.items[i]->code != P0621)
            return false;
    return diags->items.count > 0;
}

/* Can the program itself run? *wrong: no candidate can */
static bool runs_itself(const LookUp *it, bool *wrong) {
    const Manifest *manifest = it->program->manifest;
    Arena *arena = it->scratch;
    int64_t tiles, *symbols = NEW_ARRAY(arena, int64_t, manifest->symbols.count + 1);
    Diags *diags = diags_new(arena, it->program->source);
    bool runs = launch_bind(manifest, it->arguments, symbols, &tiles, diags);
    *wrong = !runs && !is_excluded(diags);
    return runs;
}

/* ---- what tuning kept ------------------------------------------------------------------------ */

static void find_device(LookUp *it) {
    const Manifest *manifest = it->program->manifest;
    if (runtime_find(it->program->arena, it->how->device - 1, manifest->target, manifest->ptx_major,
                     manifest->ptx_minor, &it->facts))
        it->device = it->facts.name;
}

/* Reads the file, and asks for the device only if it has a choice for this text, because its driver
 * starts slowly. */
static void read_kept(LookUp *it) {
    PipecProgram *program = it->program;
    const char *why, *file = cache_file(program->arena, &why);
    if (file == NULL || !cache_is_there(file)) return;
    Diags *said = diags_new(program->arena, program->source);
    Choices all = cache_read(program->arena, file, said);
    Choice like = choice_of_text(program->arena, program);
    it->kept = kept_of(program->arena, &all, &like, NULL);
    if (it->device == NULL && (it->kept.count > 0 || said->items.count > 0)) find_device(it);
    if (it->device != NULL) it->kept = kept_of(program->arena, &all, &like, it->device);
    if (it->device != NULL && said->items.count > 0) it->diags = said;
}

static bool is_candidate(const Family *family, const Choice *choice) {
    for (size_t i = 0; i < family->count; i++)
        if (strcmp(choice->kernel, family->items[i].kernel) == 0 &&
            strcmp(choice->values, family->items[i].values) == 0)
            return true;
    return false;
}

/* Choices of the file for these extents that name none of the candidates */
static void warn_of_stale(LookUp *it, const Family *family) {
    const char *why, *file = cache_file(it->program->arena, &why);
    size_t count;
    const Choice *choice = kept_find(&it->kept, it->extents, &count);
    for (; count > 0; choice++, count--) {
        if (is_candidate(family, choice)) continue;
        Diag *diag = diag_plain(it->diags, P0911,
                                "the tuned choice `%s` in `%s` is not a choice of kernel `%s`",
                                choice->values, file, choice->kernel);
        diag_note(it->diags, diag, "it is ignored");
    }
}

/* ---- the choice ------------------------------------------------------------------------------ */

static void report_none(LookUp *it, const Family *family, const Chosen *all) {
    const char *open = it->program->open_kernel;
    Diag *none = open != NULL ? diag_plain(it->diags, P0623,
                                           "no variant of kernel `%s` can run on these data", open)
                              : diag_plain(it->diags, P0623, "kernel `%s` cannot run on these data",
                                           it->program->kernel);
    for (size_t i = 0; i < family->count; i++)
        if (i == 0 || strcmp(family->items[i].kernel, family->items[i - 1].kernel) != 0)
            diag_note(it->diags, none, "`%s`: %s", family->items[i].kernel, all[i].why);
    it->program->status = pipec_worse(it->program->status, PIPEC_UNUSABLE);
}

/* The device that the emulator, and one without a row, stands for */
static bool find_machine(LookUp *it, const MachineRow **row) {
    *row = NULL;
    if (it->basis != BY_ALL) return true;
    if (it->device != NULL && it->how->machine == NULL) {
        it->row = machine_for(it->program->arena, &it->facts, it->diags);
        *row = &it->row;
        return true;
    }
    const char *name = it->how->machine != NULL ? it->how->machine : PIPEC_MACHINE;
    *row = machine_named(it->program->arena, name, it->diags);
    return *row != NULL;
}

static void take(LookUp *it, const Family *family, const Chosen *chosen, const MachineRow *row) {
    Arena *arena = it->program->arena;
    PipecChoice *choice = &it->choice;
    choice->kernel = chosen->candidate->kernel;
    choice->values = chosen->candidate->values;
    if (it->numbers) choice->number_count = value_numbers(arena, choice->values, &choice->numbers);
    choice->machine = row != NULL ? row->name : NULL;
    choice->calibrated = row != NULL && row->calibrated;
    choice->predicted = chosen->predicted.seconds;
    choice->limit = chosen->predicted.seconds > 0 ? model_terms[chosen->predicted.limit] : NULL;
    choice->candidates = family->count;
    if (chosen->kept != NULL) {
        choice->extents = chosen->kept->extents;
        choice->device = chosen->kept->device;
    }
    /* the first is the program itself */
    if (chosen->candidate == family->items) return;
    it->found = family_program(family, chosen->candidate);
    if (it->found == NULL) arena_fail(arena);
}

static void choose(LookUp *it) {
    PipecProgram *program = it->program;
    const MachineRow *row;
    if (!find_machine(it, &row)) return;
    const Family *family = family_of(program);
    if (family == NULL) arena_fail(program->arena);
    Chosen *all = NEW_ARRAY(it->scratch, Chosen, family->count + 1);
    Kept fixed = fixed_of(it->scratch, program, &family->key);
    Wish wish = {.arguments = it->arguments,
                 .machine = row,
                 .fixed = &fixed,
                 .invariant = program->invariant,
                 .kept = it->basis == BY_ORDER ? NULL : &it->kept};
    Limits limits = family_rate(family, &wish, it->scratch, all);
    if (limits.why != NULL) {
        limits_report(program, &limits, it->diags);
        program->status = pipec_worse(program->status, PIPEC_UNUSABLE);
        return;
    }
    Chosen chosen = family_best(family, all);
    if (limits.fixed != NULL) it->choice.fixed = program->fixed_file;
    if (wish.kept != NULL && limits.fixed == NULL) warn_of_stale(it, family);
    if (it->basis == BY_TUNING && chosen.kept == NULL) return;
    if (chosen.candidate != NULL)
        take(it, family, &chosen, row);
    else if (program->open_kernel != NULL || it->how->strict != 0)
        report_none(it, family, all);
}

static void look_up(LookUp *it) {
    PipecProgram *program = it->program;
    bool wrong;
    if (!family_is_open(program) || !bind_words(it)) return;
    bool runs = runs_itself(it, &wrong);
    if (wrong || (runs && it->basis == BY_ORDER)) return;
    bool tuning = it->basis != BY_ORDER && it->how->machine == NULL;
    if (tuning && it->basis == BY_ALL) find_device(it);
    if (tuning && (it->basis == BY_TUNING || it->device != NULL)) read_kept(it);
    if (it->basis != BY_TUNING || (it->kept.count > 0 && it->device != NULL)) choose(it);
}

static void look_up_scratched(void *data) {
    LookUp *it = data;
    it->diags = diags_new(it->program->arena, it->program->source);
    it->scratch = arena_scratch(it->program->arena);
    look_up(it);
    arena_free(it->scratch);
    if (it->diags->items.count > 0) it->program->published = diagnostics_publish(it->diags);
    if (it->how->strict != 0 && it->diags->errors > 0)
        it->program->status = pipec_worse(it->program->status, PIPEC_UNUSABLE);
}

typedef struct Unsized {
    PipecProgram *program;
    const char *name;
    size_t known;
    const void *given;
} Unsized;

static void refuse_options(void *data) {
    const Unsized *it = data;
    Diags *diags = diags_new(it->program->arena, it->program->source);
    size_report(diags, it->name, it->known, it->given);
    it->program->published = diagnostics_publish(diags);
}

/* NULL: `program` itself, or an error, which its diagnostics report */
static PipecProgram *look_up_for(PipecProgram *program, const PipecRunOptions *options,
                                 const PipecChooseOptions *how, Basis basis, PipecChoice *choice) {
    PipecRunOptions known;
    PipecChooseOptions read = {0};
    LookUp it = {.program = program,
                 .options = &known,
                 .how = &read,
                 .basis = basis,
                 .numbers = choice != NULL};
    Unsized wrong = {.program = program};
    if (program->manifest == NULL || program->prog == NULL) return NULL;
    if (basis != BY_ORDER) program->published = &no_diagnostics;
    if (!size_read(&known, sizeof known, options))
        wrong = (Unsized){program, "PipecRunOptions", sizeof known, options};
    else if (!size_read(&read, sizeof read, how))
        wrong = (Unsized){program, "PipecChooseOptions", sizeof read, how};
    if (read.untuned || (basis == BY_ALL && program->untuned)) it.basis = BY_ORDER;
    if (!attempt(program->arena, wrong.name == NULL ? look_up_scratched : refuse_options,
                 wrong.name == NULL ? (void *)&it : (void *)&wrong))
        program->published = &no_memory;
    if (choice != NULL) size_write(choice, &it.choice, sizeof it.choice);
    return it.found;
}

PIPEC_API PipecProgram *pipec_program_variant(PipecProgram *program,
                                              const PipecRunOptions *options) {
    if (program->open_kernel == NULL) return NULL;
    return look_up_for(program, options, NULL, BY_ORDER, NULL);
}

/* ---- for a target, and for tensors ----------------------------------------------------------- */

typedef struct Targeting {
    PipecProgram *program;
    int device;
    PipecProgram *found;
} Targeting;

static void find_target(void *data) {
    Targeting *it = data;
    Arena *words = arena_scratch(it->program->arena);
    RuntimeLack lack;
    const char *why;
    it->found = targets_on(it->program, it->device, words, &lack, &why);
    if (it->found == NULL && why == NULL) arena_fail(words);
    arena_free(words);
}

/* The program for the target of the device. If there is no such device, or none is meant, the
 * program itself. NULL: that for the target is refused, which `program` reports. */
static PipecProgram *for_device(PipecProgram *program, const PipecChooseOptions *how) {
    PipecChooseOptions read;
    if (program->manifest == NULL || program->targets.count < 2 ||
        !size_read(&read, sizeof read, how) || read.machine != NULL)
        return program;
    Targeting it = {.program = program, .device = read.device - 1};
    if (!attempt(program->arena, find_target, &it)) {
        program->published = &no_memory;
        return NULL;
    }
    if (it.found == NULL || it.found == program) return program;
    if (it.found->manifest != NULL) return it.found;
    program->published = it.found->published;
    program->status = pipec_worse(program->status, it.found->status);
    return NULL;
}

/* What belongs to its program: the caller gets another one. */
static PipecProgram *own_copy(const PipecProgram *program) {
    Arena *words = arena_scratch(program->arena);
    PipecProgram *copy = program_again(program, program->kernel, choice_given(words, program),
                                       program->static_count);
    arena_free(words);
    return copy;
}

/* What was found for another program, as that of this one */
static PipecProgram *found_for(PipecProgram *program, PipecProgram *other, PipecProgram *found) {
    if (other == program) return found;
    program->published = other->published;
    bool wrong = pipec_diagnostics_errors(program->published) > 0;
    if (wrong) program->status = pipec_worse(program->status, other->status);
    return found == NULL && !wrong ? own_copy(other) : found;
}

PIPEC_API PipecProgram *pipec_program_tuned(PipecProgram *program, const PipecRunOptions *options,
                                            int device, PipecChoice *choice) {
    PipecChooseOptions how = {.size = sizeof how, .device = device};
    PipecProgram *base = for_device(program, &how);
    if (base == NULL) return NULL;
    PipecProgram *found = look_up_for(base, options, &how, BY_TUNING, choice);
    if (base != program) program->published = base->published;
    return found;
}

typedef struct Deciding {
    PipecProgram *program;
    const PipecRunOptions *options;
    PipecProgram *found;
} Deciding;

static void decide(void *data) {
    Deciding *it = data;
    PipecRunOptions options;
    Diags *diags = diags_new(it->program->arena, it->program->source);
    Arena *words = arena_scratch(it->program->arena);
    it->found = it->program;
    if (size_read(&options, sizeof options, it->options))
        it->found = program_for_files(it->program, &options, words, diags);
    arena_free(words);
    it->program->published = diagnostics_publish(diags);
    if (diags->errors > 0) it->program->status = pipec_worse(it->program->status, PIPEC_UNUSABLE);
}

PIPEC_API PipecProgram *pipec_program_chosen(PipecProgram *program, const PipecRunOptions *options,
                                             const PipecChooseOptions *how, PipecChoice *choice) {
    PipecProgram *base = for_device(program, how);
    if (base == NULL) return NULL;
    Deciding it = {.program = base, .options = options, .found = base};
    if (base->manifest != NULL && base->siblings != NULL && !attempt(base->arena, decide, &it))
        base->published = &no_memory;
    if (it.found == NULL) return found_for(program, base, NULL);
    PipecProgram *found = look_up_for(it.found, options, how, BY_ALL, choice);
    return found_for(program, it.found, found);
}
