/* A cubin for tests of its readers: the sections and the symbol of a kernel `axpy`, without code.
 */
#ifndef TESTS_CUBIN_H
#define TESTS_CUBIN_H

#include <elf.h>
#include <stddef.h>
#include <string.h>

static const char image_names[] = "\0.shstrtab\0.symtab\0.nv.info\0.text.axpy";
enum { SHSTRTAB = 1, SYMTAB = 11, INFO = 19, TEXT = 28, NAME = 34 };

typedef struct Image {
    Elf64_Ehdr head;
    char names[sizeof image_names];
    Elf64_Sym symbols[2];
    unsigned char info[16]; /* another attribute, then the registers of symbol 1 */
    Elf64_Shdr sections[5];
} Image;

static inline Image image_of(int registers) {
    Image out = {.head = {.e_ident = {0x7f, 'E', 'L', 'F', ELFCLASS64, ELFDATA2LSB},
                          .e_machine = 190,
                          .e_shoff = offsetof(Image, sections),
                          .e_shentsize = sizeof(Elf64_Shdr),
                          .e_shnum = 5,
                          .e_shstrndx = 1},
                 .symbols = {{0}, {.st_name = NAME, .st_info = STT_FUNC, .st_shndx = 4}},
                 .info = {3, 0x1b, 0, 0, 4, 0x2f, 8, 0, 1, 0, 0, 0, (unsigned char)registers}};
    memcpy(out.names, image_names, sizeof image_names);
    out.sections[1] = (Elf64_Shdr){.sh_name = SHSTRTAB,
                                   .sh_type = SHT_STRTAB,
                                   .sh_offset = offsetof(Image, names),
                                   .sh_size = sizeof image_names};
    out.sections[2] = (Elf64_Shdr){.sh_name = SYMTAB,
                                   .sh_type = SHT_SYMTAB,
                                   .sh_offset = offsetof(Image, symbols),
                                   .sh_size = sizeof out.symbols,
                                   .sh_link = 1};
    out.sections[3] = (Elf64_Shdr){.sh_name = INFO,
                                   .sh_type = 0x70000000,
                                   .sh_offset = offsetof(Image, info),
                                   .sh_size = sizeof out.info};
    out.sections[4] = (Elf64_Shdr){.sh_name = TEXT, .sh_type = SHT_PROGBITS};
    return out;
}

#endif
