/* Copies through tensor maps.
 *
 * A box of the tensor is stored in shared memory row by row, innermost dimension first, with the
 * 16-byte chunks of each address permuted by the swizzle. Elements outside the tensor are filled
 * with zero, or not stored. Coordinates are signed 32-bit. The barrier counts the bytes of the
 * whole box. */
#include "emulator/machine.h"

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

bool tensor_element(const TensorMap *map, uint32_t shared, const int32_t *coordinates,
                    uint32_t address, int64_t *at) {
    if (address < shared || address - shared >= map->box_bytes) return false;
    uint32_t element = (swizzled(map->swizzle, address) - shared) / map->element_bytes;
    for (uint32_t i = 0; i < map->rank; i++) {
        at[i] = (int64_t)coordinates[i] + element % map->box[i];
        element /= map->box[i];
    }
    return true;
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
                     .bytes = bytes,
                     .op = op};
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

/* The hardware clips stores to whole 16 bytes: bytes between the end of a tensor and the next
 * multiple of 16 are overwritten (seen on an H200; loads are clipped per element). If that is
 * foreign memory, the access is a finding. */
static uint32_t stored_bytes(const Row *row) { return (row->bytes + 15) / 16 * 16; }

static bool is_clipped(const Async *op) {
    for (uint32_t i = 0; i < op->map->rank; i++) {
        int64_t at = op->coordinates[i];
        if (at < 0 || (uint64_t)at + op->map->box[i] > op->map->extents[i]) return true;
    }
    return false;
}

/* Copies bytes of the box to the same place in the buffer. */
static bool read_piece(Block *block, const Async *op, uint32_t at, uint32_t bytes) {
    const unsigned char *from = reach(block, op, ACCESS_READ, SPACE_SHARED, op->shared + at, bytes);
    if (from) memcpy(op->buffer + at, from, bytes);
    return from != NULL;
}

static bool read_row(Block *block, const Async *op, const Row *row) {
    Swizzle swizzle = op->map->swizzle;
    uint32_t first = row->at + row->skip;
    if (swizzle == SWIZZLE_NONE) return read_piece(block, op, first, stored_bytes(row));
    for (uint32_t at = first; at < first + row->bytes; at += 16)
        if (!read_piece(block, op, (uint32_t)swizzled(swizzle, op->shared + at) - op->shared, 16))
            return false;
    return true;
}

/* Elements of the box outside of the tensor are not stored, and need not be written. */
bool tensor_read_box(Block *block, const Async *op) {
    uint32_t index[MAX_RANK] = {0}, number = 0;
    if (!is_clipped(op)) return read_piece(block, op, 0, op->bytes);
    do {
        Row row = row_of(op, index, number++);
        if (row.bytes && !read_row(block, op, &row)) return false;
    } while (next_row(op->map, index));
    return true;
}

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
            memory_reduce_all(op->reduce, op->map->type, to, from, stored_bytes(&row));
        else
            memcpy(to, from, stored_bytes(&row));
    } while (next_row(op->map, index));
    return true;
}
