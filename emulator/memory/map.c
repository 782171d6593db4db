/* Tensor maps: 128 bytes that the emulator encodes and decodes, with the driver's checks.
 *
 * A map is known by its content, wherever it lies: as a parameter, inside of a structure, in global
 * memory. Decoded maps are kept for the run, since copies in flight refer to them. */
#include "emulator/machine.h"

#define MAGIC UINT64_C(0x50414d4345504950) /* "PIPECMAP" */

/* By CUtensorMapDataType's value: bytes of an element, type of its reductions */
static const struct {
    uint32_t bytes;
    Type type;
} type_of_map[] = {{1, T_U8},  {2, T_U16}, {4, T_U32}, {4, T_S32}, {8, T_U64},
                   {8, T_S64}, {2, T_F16}, {4, T_F32}, {8, T_F64}, {2, T_BF16},
                   {4, T_F32}, {4, T_F32}, {4, T_F32}};

uint32_t emulator_map_element(uint32_t type) {
    return type < COUNT_OF(type_of_map) ? type_of_map[type].bytes : 0;
}

/* The 128 bytes; those that are left are zero */
typedef struct MapBytes {
    uint64_t magic, address, strides[MAX_RANK];
    uint64_t extents[MAX_RANK];
    uint16_t box[MAX_RANK];
    uint8_t type, rank, swizzle;
    uint8_t rest[19];
} MapBytes;
_Static_assert(sizeof(MapBytes) == EMULATOR_MAP_BYTES, "a tensor map has 128 bytes");

/* ---- checks ---------------------------------------------------------------------------------- */

static uint32_t swizzle_span(Swizzle swizzle) {
    switch (swizzle) {
    case SWIZZLE_NONE: return UINT32_MAX;
    case SWIZZLE_32: return 32;
    case SWIZZLE_64: return 64;
    case SWIZZLE_128: return 128;
    }
    return 0;
}

static uint64_t box_bytes(const EmulatorMap *map) {
    uint64_t bytes = emulator_map_element(map->type);
    for (uint32_t i = 0; i < map->rank; i++) bytes *= map->box[i];
    return bytes;
}

/* The checks of cuTensorMapEncodeTiled: why it refuses the map, or NULL */
static const char *refusal(const EmulatorMap *map) {
    if (map->rank < 1 || map->rank > MAX_RANK) return "its rank is not from 1 to 5";
    if (emulator_map_element(map->type) == 0) return "it cannot hold elements of this type";
    if (map->address % 16) return "its base is not a multiple of 16 bytes";
    for (uint32_t i = 0; i < map->rank; i++) {
        if (map->extents[i] == 0 || map->extents[i] > UINT64_C(1) << 32)
            return "an extent is not from 1 to 2^32";
        if (map->box[i] == 0 || map->box[i] > 256)
            return "an extent of its box is not from 1 to 256";
        if (i > 0 && (map->strides[i] % 16 || map->strides[i] >= UINT64_C(1) << 40))
            return "a stride is not a multiple of 16 bytes below 2^40";
    }
    uint64_t inner = (uint64_t)map->box[0] * emulator_map_element(map->type);
    if (inner % 16) return "a row of its box is not a multiple of 16 bytes";
    if (inner > swizzle_span(map->swizzle))
        return "a row of its box is longer than the span of its swizzle";
    if (box_bytes(map) > MAX_SHARED) return "its box is larger than shared memory";
    return NULL;
}

static bool fills_spans(const EmulatorMap *map) {
    return map->swizzle == SWIZZLE_NONE || box_bytes(map) % swizzle_span(map->swizzle) == 0;
}

RunStatus emulator_encode_map(const EmulatorMap *map, const char *name,
                              unsigned char out[EMULATOR_MAP_BYTES], Diags *diags) {
    MapBytes bytes = {.magic = MAGIC,
                      .address = map->address,
                      .type = (uint8_t)map->type,
                      .rank = (uint8_t)map->rank,
                      .swizzle = (uint8_t)map->swizzle};
    const char *why = refusal(map);
    if (why != NULL) {
        diag_plain(diags, P0703, "the driver would reject the tensor map of `%s`: %s", name, why);
        return RUN_REJECTED;
    }
    if (!fills_spans(map)) {
        diag_plain(diags, P0701,
                   "the emulator does not model a swizzled box of %llu bytes that does not fill "
                   "its last span (tensor map of `%s`)",
                   (unsigned long long)box_bytes(map), name);
        return RUN_INCOMPLETE;
    }
    for (uint32_t i = 0; i < map->rank; i++) {
        bytes.extents[i] = map->extents[i];
        bytes.strides[i] = map->strides[i];
        bytes.box[i] = (uint16_t)map->box[i];
    }
    memcpy(out, &bytes, sizeof bytes);
    return RUN_DONE;
}

/* ---- decoding -------------------------------------------------------------------------------- */

struct KnownMap {
    KnownMap *next;
    MapBytes bytes;
    TensorMap map;
};

static const char *region_name(const Machine *machine, uint64_t address) {
    for (uint32_t i = 0; i < machine->region_count; i++)
        if (address - machine->regions[i].base < machine->regions[i].bytes)
            return machine->regions[i].name;
    return "?";
}

/* False: these bytes are not a tensor map. Bytes that a kernel has changed are checked again. */
static bool decode(const Machine *machine, const MapBytes *bytes, TensorMap *out) {
    EmulatorMap map = {.type = bytes->type,
                       .rank = bytes->rank,
                       .address = bytes->address,
                       .swizzle = (Swizzle)bytes->swizzle};
    memcpy(map.extents, bytes->extents, sizeof map.extents);
    memcpy(map.strides, bytes->strides, sizeof map.strides);
    for (uint32_t i = 0; i < MAX_RANK; i++) map.box[i] = bytes->box[i];
    if (bytes->magic != MAGIC || bytes->swizzle > SWIZZLE_128 || refusal(&map) ||
        !fills_spans(&map))
        return false;
    *out = (TensorMap){.name = region_name(machine, map.address),
                       .base = map.address,
                       .rank = map.rank,
                       .element_bytes = type_of_map[map.type].bytes,
                       .type = type_of_map[map.type].type,
                       .swizzle = map.swizzle,
                       .box_bytes = (uint32_t)box_bytes(&map)};
    memcpy(out->extents, map.extents, sizeof map.extents);
    memcpy(out->strides, map.strides, sizeof map.strides);
    memcpy(out->box, map.box, sizeof map.box);
    out->strides[0] = out->element_bytes;
    return true;
}

const TensorMap *map_decode(Machine *machine, const unsigned char *from) {
    MapBytes bytes;
    TensorMap map;
    memcpy(&bytes, from, sizeof bytes);
    uint64_t hash = bytes.address ^ bytes.strides[1] ^ bytes.extents[0] << 20 ^
                    (uint64_t)bytes.box[0] << 40 ^ (uint64_t)bytes.box[1] << 50;
    KnownMap **bucket =
        &machine->maps[hash * UINT64_C(0x9e3779b97f4a7c15) >> 32 & (MAP_BUCKETS - 1)];
    for (KnownMap *known = *bucket; known; known = known->next)
        if (!memcmp(&known->bytes, &bytes, sizeof bytes)) return &known->map;
    if (!decode(machine, &bytes, &map)) return NULL;
    KnownMap *known = NEW(machine->arena, KnownMap);
    *known = (KnownMap){*bucket, bytes, map};
    *bucket = known;
    return &known->map;
}

/* A copy reads its map as the thread that issues it. */
const TensorMap *map_read(Block *block, Agent agent, uint64_t address) {
    const Program *program = block->program;
    const char *why = "";
    if (address >= PARAMETER_BASE && address < PARAMETER_BASE + program->parameter_bytes) {
        why = ": it is a parameter address, which needs `cvta.param`";
    } else if (address - WINDOW_SHARED < WINDOW_BYTES || address - WINDOW_LOCAL < WINDOW_BYTES) {
        why = ": tensor maps are in parameter, constant or global memory";
    } else {
        Access access = {.agent = agent,
                         .kind = ACCESS_READ,
                         .proxy = PROXY_MAPS,
                         .space = SPACE_GENERIC,
                         .address = address,
                         .bytes = EMULATOR_MAP_BYTES,
                         .alignment = EMULATOR_MAP_ALIGNMENT};
        const unsigned char *bytes = memory_access(block, &access);
        if (!bytes) return NULL;
        const TensorMap *map = map_decode(block->machine, bytes);
        if (map) return map;
    }
    finding(block, P0716, agent, "0x%llx is not the address of a tensor map%s",
            (unsigned long long)address, why);
    return NULL;
}
