/* Variables of a module in global and constant memory, as regions: initialised when the first
 * launch of the module begins, and kept until the run ends. */
#include "emulator/findings/demangle.h"
#include "emulator/machine.h"

static ModuleMemory *new_memory(Machine *machine) {
    const Program *program = machine->program;
    ModuleMemory *memory = NEW(machine->arena, ModuleMemory);
    memory->text = program->text;
    memory->regions = NEW_ARRAY(machine->arena, Region, program->variables.count);
    for (int constants = 0; constants < 2; constants++)
        for (size_t i = 0; i < program->variables.count; i++) {
            const ModuleVariable *variable = &program->variables.items[i];
            if (variable->is_constant != (constants == 1)) continue;
            unsigned char *data = arena_alloc(machine->arena, variable->bytes);
            if (variable->image) memcpy(data, variable->image, variable->bytes);
            const char *name = demangle_or_keep(machine->arena, variable->name);
            memory->regions[memory->region_count++] = (Region){.base = variable->address,
                                                               .bytes = variable->bytes,
                                                               .data = data,
                                                               .read_only = variable->is_constant,
                                                               .name = name};
        }
    memory->next = machine->modules;
    machine->modules = memory;
    return memory;
}

void variables_map(Machine *machine) {
    ModuleMemory *memory = machine->modules;
    while (memory && memory->text != machine->program->text) memory = memory->next;
    machine->variables = memory ? memory : new_memory(machine);
}
