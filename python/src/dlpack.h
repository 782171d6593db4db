/* python: the structures of DLPack 1.3, by which array libraries exchange tensors without copies.
 * Facts from the specification (https://dmlc.github.io/dlpack); sizes and offsets are asserted, as
 * a wrong one would read other memory than the producer wrote. */
#ifndef PIPEC_PYTHON_DLPACK_H
#define PIPEC_PYTHON_DLPACK_H

#include <stddef.h>
#include <stdint.h>

#define DLPACK_MAJOR 1
#define DLPACK_MINOR 3

typedef struct DLVersion {
    uint32_t major, minor;
} DLVersion;

enum { DL_CPU = 1, DL_CUDA = 2, DL_CUDA_HOST = 3, DL_CUDA_MANAGED = 13 };

typedef struct DLDevice {
    int32_t type; /* DL_CPU .. */
    int32_t id;
} DLDevice;

/* Codes of element types; those of 8 bits have one code for each format */
enum {
    DL_INT = 0,
    DL_UINT = 1,
    DL_FLOAT = 2,
    DL_BFLOAT = 4,
    DL_COMPLEX = 5,
    DL_BOOL = 6,
    DL_E4M3FN = 10,
    DL_E5M2 = 12
};

typedef struct DLType {
    uint8_t code, bits;
    uint16_t lanes;
} DLType;

typedef struct DLTensor {
    void *data;
    DLDevice device;
    int32_t rank;
    DLType type;
    int64_t *extents;
    int64_t *strides; /* in elements; NULL: C order without gaps */
    uint64_t offset;  /* bytes from `data` to the first element */
} DLTensor;

/* In capsules named "dltensor", of producers before version 1.0 */
typedef struct DLManaged {
    DLTensor tensor;
    void *context;
    void (*release)(struct DLManaged *self); /* may be NULL */
} DLManaged;

#define DL_READ_ONLY UINT64_C(1)
#define DL_COPIED    UINT64_C(2) /* not the memory of the object */

/* In capsules named "dltensor_versioned" */
typedef struct DLVersioned {
    DLVersion version;
    void *context;
    void (*release)(struct DLVersioned *self); /* may be NULL */
    uint64_t flags;
    DLTensor tensor;
} DLVersioned;

/* The C functions of an array library: `type(x).__dlpack_c_exchange_api__`, a capsule named
 * "dlpack_exchange_api". They return 0, or -1 with a Python exception; objects are PyObject. */
typedef struct DLExchange {
    DLVersion version;
    struct DLExchange *previous; /* for consumers of an older major version; may be NULL */
    /* a new tensor: type, rank, extents and device are read from the first argument; failures are
     * reported by the function */
    int (*allocate)(DLTensor *like, DLVersioned **out, void *error,
                    void (*fail)(void *error, const char *kind, const char *message));
    int (*managed_of)(void *object, DLVersioned **out);
    int (*object_of)(DLVersioned *tensor, void **object); /* takes over the tensor */
    /* without ownership: valid while the object lives and is not resized; may be NULL */
    int (*tensor_of)(void *object, DLTensor *out);
    int (*current_stream)(int32_t device_type, int32_t device, void **stream);
} DLExchange;

#define DLPACK_AT(type, member, bytes)                                                             \
    _Static_assert(offsetof(type, member) == (bytes), "offset of " #member " in " #type)
DLPACK_AT(DLTensor, data, 0);
DLPACK_AT(DLTensor, device, 8);
DLPACK_AT(DLTensor, rank, 16);
DLPACK_AT(DLTensor, type, 20);
DLPACK_AT(DLTensor, extents, 24);
DLPACK_AT(DLTensor, strides, 32);
DLPACK_AT(DLTensor, offset, 40);
_Static_assert(sizeof(DLTensor) == 48, "size of DLTensor");
DLPACK_AT(DLManaged, context, 48);
DLPACK_AT(DLManaged, release, 56);
_Static_assert(sizeof(DLManaged) == 64, "size of DLManaged");
DLPACK_AT(DLVersioned, context, 8);
DLPACK_AT(DLVersioned, release, 16);
DLPACK_AT(DLVersioned, flags, 24);
DLPACK_AT(DLVersioned, tensor, 32);
_Static_assert(sizeof(DLVersioned) == 80, "size of DLVersioned");
DLPACK_AT(DLExchange, previous, 8);
DLPACK_AT(DLExchange, allocate, 16);
DLPACK_AT(DLExchange, managed_of, 24);
DLPACK_AT(DLExchange, object_of, 32);
DLPACK_AT(DLExchange, tensor_of, 40);
DLPACK_AT(DLExchange, current_stream, 48);
_Static_assert(sizeof(DLExchange) == 56, "size of DLExchange");

#endif
