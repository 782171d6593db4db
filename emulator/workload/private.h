/* workload, private: shared by the files of this floor. */
#ifndef PIPEC_WORKLOAD_PRIVATE_H
#define PIPEC_WORKLOAD_PRIVATE_H

#include "emulator/workload/workload.h"

#include "util/json.h"

#include <string.h>

/* ---- types of values ------------------------------------------------------------------------- */

typedef struct ValueType {
    const char *name; /* "f32" */
    uint32_t bytes;
    ElementKind kind;
    const char *npy; /* dtype of .npy files */
    int map;         /* CUtensorMapDataType's value; -1: none */
    bool is_element; /* of pipec, `element` */
    Element element;
} ValueType;

bool value_type(const char *name, size_t length, ValueType *out);
/* CUtensorMapDataType of a dtype of .npy files; -1: none */
int map_type_of_dtype(const char *descr);

/* ---- the description ------------------------------------------------------------------------- */

typedef struct WorkloadArray {
    const char *label; /* names it in findings: the file, or the name in a launch file */
    Array storage;     /* its bytes */
    NpyData data;
    const char *save; /* file of the result; NULL: none */
} WorkloadArray;

typedef struct NamedArray {
    const char *name;
    size_t array;
} NamedArray;

/* Kernels of one file share the text, and with it the variables of the module. */
typedef struct Text {
    const char *path, *ptx;
    size_t length;
} Text;

typedef struct KnownKernel {
    const char *ptx;
    const EmulatorKernel *kernel;
} KnownKernel;

typedef enum ValueKind {
    VALUE_INTEGER,
    VALUE_FLOAT,
    VALUE_POINTER,
    VALUE_MAP,
    VALUE_BYTES /* structures and files */
} ValueKind;

/* A value of a parameter, or of a field of a structure */
typedef struct Value {
    ValueKind kind;
    const unsigned char *bytes;
    uint32_t size, alignment;
    int array; /* VALUE_POINTER, VALUE_MAP: index of the array; otherwise -1 */
} Value;

struct Workload {
    Arena *arena;
    Diags *diags;
    RunStatus status;
    const char *folder; /* of relative paths: "" or ending in a slash */
    const char *where;  /* the argument that is read, for messages; NULL: none */
    VEC(WorkloadArray) arrays;
    VEC(EmulatorRegion) regions; /* one per array */
    VEC(NamedArray) names;       /* of a launch file */
    VEC(Value) values;           /* of the launch that is read, in the order of its arguments */
    VEC(Text) texts;
    VEC(KnownKernel) kernels;
    uint64_t memory_most; /* bytes that all arrays may have; 0: what the machine has */
    VEC(EmulatorLaunch) launches;
};

/* Reports P0767, with the argument before it; false */
bool workload_wrong(Workload *it, const char *format, ...) PRINTF_LIKE(2, 3);
/* The path of a file that the description names */
const char *workload_path(const Workload *it, const char *name);
/* The fields of an object must have these names. */
bool known_fields(Workload *it, const JsonValue *object, const char *const *names, size_t count);

/* Adds the array of a word such as "in:a.npy". False: it has another form, or an error was
 * reported (it->status). `name`: NULL, or names it in findings. */
bool array_word(Workload *it, const char *word, const char *name, size_t *array);
bool is_array_word(const char *word);
/* Adds an array of these bytes, which kernels may write. */
bool array_of_value(Workload *it, const Value *value, const char *name, size_t *array);
/* "NAME" or "NAME+64" after "array:" */
bool array_again(Workload *it, const char *text, size_t *array, uint64_t *offset);

bool value_of_word(Workload *it, const char *word, int depth, Value *out);
bool value_of_json(Workload *it, const JsonValue *json, int depth, Value *out);
bool map_value(Workload *it, const JsonValue *json, Value *out);
/* The tree of a JSON file, which may name files in its own folder: it->folder is changed. */
const JsonValue *json_of_file(Workload *it, const char *name);

/* Adds a launch of `ptx` whose arguments are it->values. The extents are set in `launch`; block 0,
 * 0, 0: what the kernel requires. */
bool add_launch(Workload *it, const char *ptx, const char *entry, bool cooperative,
                EmulatorLaunch launch);
bool read_launches(Workload *it, const JsonValue *file);

#endif
