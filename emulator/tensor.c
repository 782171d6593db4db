/* Tensor maps: built from the manifest's fields, with the driver's checks; and copies through
 * them.
 *
 * A box of the tensor is stored in shared memory row by row, innermost dimension first, with the
 * 16-byte chunks of each address permuted by the swizzle. Elements outside the tensor are filled
 * with zero, or not stored. Coordinates are signed 32-bit. The barrier counts the bytes of the
 * whole box. */
#include "machine.h"

/* ---- encoding -------------------------------------------------------------------------------- */

static bool reject(Machine *machine, const TensorMap *map, const char *why) {
    diag_plain(machine->diags, P0703, "the driver would reject the tensor map of `%s`: %s",
               map->name, why);
    machine->status = RUN_REJECTED;
    return false;
}

static uint32_t swizzle_span(Swizzle swizzle) {
    switch (swizzle) {
    case SWIZZLE_NONE: return UINT32_MAX;
    case SWIZZLE_32: return 32;
    case SWIZZLE_64: return 64;
    case SWIZZLE_128: return 128;
    }
    return 0;
}

/* The checks of cuTensorMapEncodeTiled */
static bool check_map(Machine *machine, const TensorMap *map) {
    uint64_t inner = (uint64_t)map->box[0] * map->element_bytes, bytes = inner;
    if (map->base % 16) return reject(machine, map, "its base is not a multiple of 16 bytes");
    for (uint32_t i = 0; i < map->rank; i++) {
        if (map->extents[i] == 0 || map->extents[i] > UINT64_C(1) << 32)
            return reject(machine, map, "an extent is not from 1 to 2^32");
        if (map->box[i] == 0 || map->box[i] > 256)
            return reject(machine, map, "an extent of its box is not from 1 to 256");
        if (i > 0 && (map->strides[i] % 16 || map->strides[i] >= UINT64_C(1) << 40))
            return reject(machine, map, "a stride is not a multiple of 16 bytes below 2^40");
        bytes *= i > 0 ? map->box[i] : 1;
    }
    if (inner % 16) return reject(machine, map, "a row of its box is not a multiple of 16 bytes");
    if (inner > swizzle_span(map->swizzle))
        return reject(machine, map, "a row of its box is longer than the span of its swizzle");
    if (map->swizzle != SWIZZLE_NONE && bytes % swizzle_span(map->swizzle)) {
        diag_plain(machine->diags, P0701,
                   "the emulator does not model a swizzled box of %llu bytes that does not fill "
                   "its last span (tensor map of `%s`)",
                   (unsigned long long)bytes, map->name);
        machine->status = RUN_INCOMPLETE;
        return false;
    }
    if (bytes > 232448) return reject(machine, map, "its box is larger than shared memory");
    return true;
}

static bool encode(Machine *machine, const Launch *launch, const ManifestMap *from,
                   TensorMap *map) {
    const Manifest *manifest = launch->manifest;
    map->name = manifest->parameters.items[from->parameter].name;
    map->type = from->type;
    map->element_bytes = (uint32_t)element_rows[from->type].bytes;
    map->swizzle = from->swizzle;
    map->rank = (uint32_t)from->rank;
    map->box_bytes = map->element_bytes;
    if (from->rank < 1 || from->rank > MAX_RANK)
        return reject(machine, map, "its rank is not from 1 to 5");
    if (element_rows[from->type].map < 0)
        return reject(machine, map, "it cannot hold elements of this type");
    MapShape shape;
    if (map_evaluate(from, launch->symbols, &shape) != FORMULA_FINE)
        return reject(machine, map, "an extent or a stride overflows");
    /* Each array is a separate region, in the order of parameters: see emulator.c */
    map->base = shape.is_empty ? machine->base_of_empty[from->stored]
                               : machine->base_of_parameter[from->parameter];
    for (uint32_t i = 0; i < map->rank; i++) {
        map->extents[i] = shape.extents[i];
        map->strides[i] = shape.strides[i];
        map->box[i] = from->box[i];
        map->box_bytes *= from->box[i] <= 256 ? from->box[i] : 1;
    }
    return check_map(machine, map);
}

bool maps_encode(Machine *machine, const Launch *launch) {
    const Manifest *manifest = launch->manifest;
    machine->maps = NEW_ARRAY(machine->arena, TensorMap, manifest->maps.count + 1);
    for (size_t i = 0; i < manifest->maps.count; i++)
        if (!encode(machine, launch, &manifest->maps.items[i], &machine->maps[i])) return false;
    return true;
}

/* ---- copies ---------------------------------------------------------------------------------- */

/* PTX ISA 5.5.6: some bits of the address of a 16-byte chunk are XORed with the bits three above
 * them */
static uint32_t swizzled(Swizzle swizzle, uint32_t address) {
    switch (swizzle) {
    case SWIZZLE_NONE: return address;
    case SWIZZLE_32: return address ^ (address >> 3 & 0x10);
    case SWIZZLE_64: return address ^ (address >> 3 & 0x30);
    case SWIZZLE_128: return address ^ (address >> 3 & 0x70);
    }
    return address;
}

/* A row of a box: its position in the box, and the part of it that is inside the tensor. */
typedef struct Row {
    uint32_t at;          /* bytes from the start of the box */
    uint32_t skip, bytes; /* inside: bytes from the start of the row; 0: all outside */
    uint64_t global;      /* address of that part */
} Row;

static Row row_of(const Async *op, const uint32_t *index, uint32_t number) {
    const TensorMap *map = op->map;
    uint32_t row_bytes = map->box[0] * map->element_bytes;
    Row row = {.at = number * row_bytes};
    uint64_t address = map->base;
    for (uint32_t i = 1; i < map->rank; i++) {
        int64_t at = (int64_t)op->coordinates[i] + index[i];
        if (at < 0 || (uint64_t)at >= map->extents[i]) return row;
        address += (uint64_t)at * map->strides[i];
    }
    int64_t first = op->coordinates[0], end = first + map->box[0];
    int64_t low = first < 0 ? 0 : first,
            high = end > (int64_t)map->extents[0] ? (int64_t)map->extents[0] : end;
    if (low >= high) return row;
    row.skip = (uint32_t)(low - first) * map->element_bytes;
    row.bytes = (uint32_t)(high - low) * map->element_bytes;
    row.global = address + (uint64_t)low * map->element_bytes;
    return row;
}

static bool next_row(const TensorMap *map, uint32_t *index) {
    for (uint32_t i = 1; i < map->rank; i++) {
        if (++index[i] < map->box[i]) return true;
        index[i] = 0;
    }
    return false;
}

static unsigned char *reach(Block *block, const Async *op, AccessKind kind, Space space,
                            uint64_t address, uint32_t bytes) {
    Access access = {.agent = op->agent,
                     .kind = kind,
                     .proxy = PROXY_ASYNC,
                     .space = space,
                     .address = address,
                     .bytes = bytes};
    return memory_access(block, &access);
}

/* `box` is the location of the shared address op->shared. The swizzle permutes chunks within
 * 1024 bytes of address bits and never leaves the box, because a box of more than one row has
 * rows of whole spans. */
static void place_row(const Async *op, unsigned char *box, const Row *row,
                      const unsigned char *from) {
    const TensorMap *map = op->map;
    uint32_t row_bytes = map->box[0] * map->element_bytes;
    if (map->swizzle == SWIZZLE_NONE) {
        memset(box + row->at, 0, row->bytes ? row->skip : row_bytes);
        if (row->bytes) {
            memcpy(box + row->at + row->skip, from, row->bytes);
            memset(box + row->at + row->skip + row->bytes, 0, row_bytes - row->skip - row->bytes);
        }
        return;
    }
    for (uint32_t at = 0; at < row_bytes; at += 16) {
        unsigned char chunk[16] = {0};
        uint32_t low = at > row->skip ? at : row->skip, high = row->skip + row->bytes;
        high = high < at + 16 ? high : at + 16;
        if (low < high) memcpy(chunk + (low - at), from + (low - row->skip), high - low);
        memcpy(box + (swizzled(map->swizzle, op->shared + row->at + at) - op->shared), chunk, 16);
    }
}

bool tensor_load(Block *block, const Async *op) {
    uint32_t index[MAX_RANK] = {0}, number = 0;
    unsigned char *box = reach(op->target, op, ACCESS_WRITE, SPACE_SHARED, op->shared, op->bytes);
    if (!box) return false;
    do {
        Row row = row_of(op, index, number++);
        const unsigned char *from =
            row.bytes ? reach(block, op, ACCESS_READ, SPACE_GLOBAL, row.global, row.bytes) : NULL;
        if (row.bytes && !from) return false;
        place_row(op, box, &row, from);
    } while (next_row(op->map, index));
    return true;
}

static Type type_of_element(Element type) {
    switch (type) {
    case E_F32:
    case E_TF32: return T_F32;
    case E_F16: return T_F16;
    case E_BF16: return T_BF16;
    case E_I32: return T_S32;
    case E_U32: return T_U32;
    case E_I64: return T_S64;
    case E_U64: return T_U64;
    case E_I8:
    case E_U8:
    case E_E4M3:
    case E_E5M2: return T_U8;
    case E_BOOL:
    case E_COUNT: break;
    }
    return T_U8;
}

static void reduce_row(const Async *op, unsigned char *to, const unsigned char *from,
                       uint32_t bytes) {
    Type type = type_of_element(op->map->type);
    for (uint32_t at = 0; at < bytes; at += op->map->element_bytes) {
        uint64_t value = 0;
        memcpy(&value, from + at, op->map->element_bytes);
        memory_reduce(op->reduce, type, to + at, value, 0);
    }
}

/* The hardware clips stores to whole 16 bytes: bytes between the end of a tensor and the next
 * multiple of 16 are overwritten (seen on an H200; loads are clipped per element). If that is
 * foreign memory, the access is a finding. */
static uint32_t stored_bytes(const Row *row) { return (row->bytes + 15) / 16 * 16; }

bool tensor_store(Block *block, const Async *op) {
    uint32_t index[MAX_RANK] = {0}, number = 0;
    unsigned char *line = op->buffer;
    unsigned char row_copy[256 * 8];
    do {
        Row row = row_of(op, index, number++);
        if (!row.bytes) continue;
        const unsigned char *from = line + row.at + row.skip;
        if (op->map->swizzle != SWIZZLE_NONE) {
            for (uint32_t at = 0; at < op->map->box[0] * op->map->element_bytes; at += 16)
                memcpy(row_copy + at,
                       line + (swizzled(op->map->swizzle, op->shared + row.at + at) - op->shared),
                       16);
            from = row_copy + row.skip;
        }
        unsigned char *to = reach(block, op, op->reduce ? ACCESS_ATOMIC : ACCESS_WRITE,
                                  SPACE_GLOBAL, row.global, stored_bytes(&row));
        if (!to) return false;
        if (op->reduce)
            reduce_row(op, to, from, stored_bytes(&row));
        else
            memcpy(to, from, stored_bytes(&row));
    } while (next_row(op->map, index));
    return true;
}
