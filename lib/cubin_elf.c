/* lib: reads a cubin: the bytes of an ELF file of CUDA -> the registers of a kernel at its entry.
 * The file may hold anything: each offset is checked before it is used. */
#include "lib/cubins.h"

#include <elf.h>
#include <string.h>

#define MACHINE_CUDA   190
#define SHT_CUDA_INFO  0x70000000u /* a list of attributes */
#define FORMAT_SIZED   4           /* an attribute with a size, in 16 bits, and as many bytes */
#define ATTRIBUTE_REGS 0x2f        /* registers of a function: index of its symbol, number */

typedef struct Elf {
    const unsigned char *bytes;
    size_t length;
    Elf64_Ehdr head;
} Elf;

/* `count` bytes at `from`; NULL: the file does not have them */
static const unsigned char *part(const Elf *elf, uint64_t from, uint64_t count) {
    return from <= elf->length && count <= elf->length - from ? elf->bytes + from : NULL;
}

static bool read_head(Elf *elf) {
    const unsigned char *head = part(elf, 0, sizeof elf->head);
    if (head == NULL) return false;
    memcpy(&elf->head, head, sizeof elf->head);
    return memcmp(head, ELFMAG, SELFMAG) == 0 && head[EI_CLASS] == ELFCLASS64 &&
           head[EI_DATA] == ELFDATA2LSB && elf->head.e_machine == MACHINE_CUDA &&
           elf->head.e_shentsize == sizeof(Elf64_Shdr);
}

static bool read_section(const Elf *elf, uint32_t index, Elf64_Shdr *out) {
    const unsigned char *at = NULL;
    if (index < elf->head.e_shnum && elf->head.e_shoff <= elf->length)
        at = part(elf, elf->head.e_shoff + (uint64_t)index * sizeof *out, sizeof *out);
    if (at == NULL) return false;
    memcpy(out, at, sizeof *out);
    return out->sh_type == SHT_NOBITS || part(elf, out->sh_offset, out->sh_size) != NULL;
}

/* The text at `offset` of the section of texts; NULL: it is not closed there */
static const char *text_at(const Elf *elf, uint32_t texts, uint32_t offset) {
    Elf64_Shdr section;
    if (!read_section(elf, texts, &section) || section.sh_type != SHT_STRTAB ||
        offset >= section.sh_size)
        return NULL;
    const char *text = (const char *)elf->bytes + section.sh_offset + offset;
    return memchr(text, 0, section.sh_size - offset) != NULL ? text : NULL;
}

/* Finds the section by type and name: `prefix` followed by `name`. */
static bool find_section(const Elf *elf, uint32_t type, const char *prefix, const char *name,
                         Elf64_Shdr *out) {
    for (uint32_t i = 0; i < elf->head.e_shnum; i++) {
        if (!read_section(elf, i, out)) return false;
        const char *text = text_at(elf, elf->head.e_shstrndx, out->sh_name);
        size_t length = strlen(prefix);
        if (out->sh_type == type && text != NULL && strncmp(text, prefix, length) == 0 &&
            strcmp(text + length, name) == 0)
            return true;
    }
    return false;
}

/* Index of the function's symbol; 0: there is none */
static uint32_t find_function(const Elf *elf, const char *name) {
    Elf64_Shdr table;
    if (!find_section(elf, SHT_SYMTAB, ".symtab", "", &table)) return 0;
    for (uint32_t i = 1; i < table.sh_size / sizeof(Elf64_Sym); i++) {
        Elf64_Sym symbol;
        memcpy(&symbol, elf->bytes + table.sh_offset + i * sizeof symbol, sizeof symbol);
        const char *text = text_at(elf, table.sh_link, symbol.st_name);
        if (ELF64_ST_TYPE(symbol.st_info) == STT_FUNC && text != NULL && strcmp(text, name) == 0)
            return i;
    }
    return 0;
}

/* The registers of the function in the list of attributes; -1: they are not there */
static int find_registers(const Elf *elf, const Elf64_Shdr *list, uint32_t function) {
    const unsigned char *at = elf->bytes + list->sh_offset, *end = at + list->sh_size;
    while (end - at >= 4) {
        uint16_t size;
        uint32_t values[2];
        memcpy(&size, at + 2, sizeof size);
        size_t bytes = at[0] == FORMAT_SIZED ? size : 0;
        if (bytes > (size_t)(end - at) - 4) return -1;
        if (at[0] == FORMAT_SIZED && at[1] == ATTRIBUTE_REGS && bytes == sizeof values) {
            memcpy(values, at + 4, sizeof values);
            if (values[0] == function) return values[1] < 256 ? (int)values[1] : -1;
        }
        at += 4 + bytes;
    }
    return -1;
}

int cubin_registers(const void *image, size_t length, const char *kernel) {
    Elf elf = {.bytes = image, .length = length};
    Elf64_Shdr code, list;
    if (!read_head(&elf) || !find_section(&elf, SHT_PROGBITS, ".text.", kernel, &code)) return -1;
    uint32_t function = find_function(&elf, kernel);
    if (function == 0 || !find_section(&elf, SHT_CUDA_INFO, ".nv.info", "", &list)) return -1;
    return find_registers(&elf, &list, function);
}
