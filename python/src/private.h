/* python, private: the extension module `_pipec`, which the files of python/pipec use. C does what
 * each call of a kernel does (arguments, tensors, launch) and hands facts and diagnostics over;
 * the rest is Python.
 *
 * A Unit is a compiled kernel with the tables of its parameters; the Kernel objects that share it
 * differ in the options of a launch. Functions that return a PyObject * or false have set an
 * exception when they fail. */
#ifndef PIPEC_PYTHON_PRIVATE_H
#define PIPEC_PYTHON_PRIVATE_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "include/pipec.h"
#include "python/src/dlpack.h"

#define PARAMETERS_MOST 64
#define EXTENTS_MOST    16 /* extents that a call can give by name */
#define EXTENTS_ALL     (PARAMETERS_MOST * PIPEC_MAX_RANK) /* of a kernel: each has an axis */
#define DEVICES_MOST    64
#define ADAPTERS        8

/* ---- module ---------------------------------------------------------------------------------- */

/* How tensors of a Python type are read */
typedef struct Adapter {
    PyObject *type; /* NULL: free */
    /* BY_DEVICE: by DLPack on a GPU, as a buffer on the host */
    enum { BY_EXCHANGE, BY_BUFFER, BY_DLPACK, BY_DEVICE } how;
    const DLExchange *exchange;
    /* PyTorch: the method that tells the negative bit, as a C function where it is one, and the
     * attribute that tells whether a gradient is required; otherwise NULL */
    PyObject *is_negative, *requires_grad;
    PyCFunction is_negative_c;
    descrgetfunc get_requires_grad;
    bool immutable; /* JAX: arrays are values, so they are never written */
} Adapter;

typedef struct State {
    PyTypeObject *kernel;       /* the type Kernel */
    PyTypeObject *plans, *plan; /* (plans.c, plan.c) */
    PyObject *make_error;       /* pipec._errors.make */
    PyObject *describe;         /* pipec._arrays: the functions of these names */
    PyObject *as_bits, *refuse_scalar;
    PyObject *empty;
    PyObject *current_stream;
    PyObject *grad_enabled;           /* torch.is_grad_enabled; NULL: not looked up yet */
    PyObject *dlpack, *dlpack_device; /* names of attributes */
    Adapter adapters[ADAPTERS];       /* of the types that were seen last */
    int next_adapter;
    /* number of forks between the first process and this one (fork.c) */
    int forks;
    bool uses_driver; /* this process, or one that it was forked from, has opened the driver */
    bool lost_driver; /* it was one of those */
} State;

/* ---- kernels --------------------------------------------------------------------------------- */

typedef struct Parameter {
    PyObject *name; /* interned */
    PipecParameter fact;
    DLType type;
    bool is_float; /* a scalar */
} Parameter;

typedef struct Unit {
    int users; /* Kernel objects; guarded by the GIL */
    PipecProgram *program;
    const char *name;
    Parameter parameters[PARAMETERS_MOST];
    int count;
    int positions[PARAMETERS_MOST]; /* the parameters that are given by position, in order */
    int position_count;
    PipecKernel *loaded[DEVICES_MOST]; /* by device; guarded by the GIL */
    PyThread_type_lock lock;           /* of the program, which one thread may use at a time */
    State *state;
    int forks;                  /* State.forks, when the program and its lock were made */
    bool decides;               /* tensors of a call decide statics (pipec_program_for) */
    struct Unit *others, *next; /* units of programs for such tensors; the program owns theirs */
    bool is_other;
    PyObject *origin; /* makes the program again: the arguments of kernel_compile, or of .. */
    /* .. kernel_load_image, of kernel_load_bundle */
    enum { FROM_SOURCE, FROM_IMAGE, FROM_BUNDLE } from;
} Unit;

/* `vectorcallfunc`, which the limited API has since Python 3.12 */
typedef PyObject *(*VectorCall)(PyObject *self, PyObject *const *args, size_t count,
                                PyObject *names);

typedef struct Kernel {
    PyObject_HEAD VectorCall call;
    PyObject *module; /* keeps the state */
    State *state;
    Unit *unit;
    bool on_stream; /* otherwise the current stream of the arrays' library */
    void *stream;
    int multiprocessors;
    bool programmatic, ordered;
    double seconds; /* that a run on the emulator may take; 0: any number */
    PyObject
        *progress; /* function of the part that is done and seconds; False: no progress is .. */
                   /* .. shown; None or NULL: on a terminal */
} Kernel;

extern PyType_Spec kernel_spec;
PyObject *kernel_new(PyObject *module, PyTypeObject *type, Unit *unit);
/* Functions of the module, which make kernels (compile.c) */
PyObject *kernel_compile(PyObject *module, PyObject *args);
PyObject *kernel_load_image(PyObject *module, PyObject *args);
PyObject *kernel_load_bundle(PyObject *module, PyObject *args);
void unit_drop(Unit *unit);
/* The unit of a program that the unit's own one has for some tensors (compile.c) */
Unit *unit_other(Unit *unit, PipecProgram *program);
/* After a fork, before the first use of the unit: its program may have been in use by a thread that
 * the process no longer has, and is then made again (compile.c). */
bool unit_renew(Unit *unit);
/* For os.register_at_fork; and whether a GPU can be used since (fork.c) */
PyObject *forked(PyObject *module, PyObject *unused);
bool driver_use(State *state, const char *name);
/* Compiled for the device, loaded at the first call; NULL and an exception */
PipecKernel *kernel_on(Kernel *kernel, int device);
PyObject *kernel_facts(const Unit *unit);         /* what Python shows of a kernel, as a dict */
PyObject *tune(PyObject *module, PyObject *args); /* (tune.c) */

PyObject *kernel_tuned(PyObject *self, PyObject *args);
PyObject *kernel_choose(PyObject *self, PyObject *args);
PyObject *kernel_prepare(PyObject *self, PyObject *args); /* (prepare.c) */
PyObject *kernel_run(PyObject *self, PyObject *args);     /* (run.c) */
/* A tuple of texts as an array, whose texts live as long as the tuple; PyMem_Free frees it */
bool read_texts(PyObject *tuple, const char ***out, size_t *count);

/* ---- errors ---------------------------------------------------------------------------------- */

/* Sets the exception for a status; NULL. */
PyObject *error_raise(const State *state, PipecStatus status, const PipecDiagnostics *diagnostics);
/* The same for a program that was not accepted; it says how to accept it, if that is possible. */
PyObject *error_unaccepted(const State *state, const PipecProgram *program);
/* Diagnostics as a list of tuples */
/* A tuple of (name, text), or None: *out is NULL. False, and an exception: it is wrong; *out is to
 * be freed with PyMem_Free */
bool read_files(PyObject *tuple, PipecFile **out, size_t *count);
PyObject *error_items(const PipecDiagnostics *diagnostics);

/* ---- calls ----------------------------------------------------------------------------------- */

/* A tensor that is an argument. What it holds is given back by tensor_release. */
typedef struct Tensor {
    void *data;
    DLType type;
    int rank;
    int device;     /* -1: host */
    uint64_t bytes; /* from the first element to the end of the last one */
    bool read_only;
    Py_buffer *buffer;
    DLManaged *managed;
    DLVersioned *versioned;
} Tensor;

typedef struct Call {
    Kernel *kernel;
    State *state;
    Unit *unit;
    PyObject *objects[PARAMETERS_MOST]; /* NULL: not given */
    Tensor tensors[PARAMETERS_MOST];    /* of the tensors that are given */
    PipecArgument arguments[PARAMETERS_MOST];
    bool given[PARAMETERS_MOST];
    PipecValue extents[EXTENTS_MOST]; /* given by name */
    size_t extent_count;
    int first;       /* the first tensor that is given; -1: none */
    int device;      /* of all tensors; -1: host */
    Adapter adapter; /* of the first tensor */
    void *stream;    /* of the launch, once it is known */
    bool stream_known;
    bool holds; /* some tensor is to be released */
    bool bits;  /* some tensor has the bits of a type as unsigned integers */
    PyObject *created[PARAMETERS_MOST]; /* outputs that are allocated; owned */
} Call;

/* Fills objects, scalars and extents from the arguments of a call (bind.c). */
bool bind_arguments(Call *call, PyObject *const *args, size_t count, PyObject *names);
/* How tensors of the type of `object` are read; valid until Python runs. NULL: an exception, which
 * names the kernel and its parameter (tensors.c) */
const Adapter *adapter_find(State *state, PyObject *object, const char *kernel,
                            const char *parameter);
/* Questions to PyTorch, whose types have `is_negative`. False: an exception */
bool tensor_is_negative(const Adapter *adapter, PyObject *object, bool *negative);
bool tensor_needs_gradient(const Adapter *adapter, PyObject *object, bool *needed);
bool gradient_mode(State *state, bool *on);
/* Reads and checks the tensors that are given (tensors.c). */
bool tensors_read(Call *call);
bool tensor_read(Call *call, int index);
void tensors_release(Call *call);
/* Refuses host arrays that are written and share memory (overlaps.c). */
bool overlaps_check(const Call *call);
/* Sets an exception whose text begins with the kernel and the parameter. False. */
bool tensor_wrong(const Call *call, int index, PyObject *exception, const char *format, ...);
/* "bf16" and the codes of DLPack (types.c) */
bool type_of(const char *name, DLType *type);
/* The type of an item of the buffer protocol; false: none of those */
bool type_of_format(const char *format, Py_ssize_t bytes, DLType *type);
/* Elements of the type, or unsigned integers with its bits: *bits */
bool type_matches(DLType given, DLType wanted, bool *bits);
/* "f32"; NULL: Pipe has no such type */
const char *type_name(DLType type);
void type_print(DLType type, char *out, size_t bytes); /* "float32" */
/* Extents of tensors that are not given; compares those that are (outputs.c) */
bool outputs_infer(Call *call);
/* All extents by name, once those of all tensors are known; room for EXTENTS_ALL */
size_t call_extents(const Call *call, PipecValue *extents);
bool outputs_missing(const Call *call);
bool outputs_create(Call *call);
PyObject *outputs_result(const Call *call);
/* Runs on the emulator; `verify`: compares with `ensures`, *verdict is a text (emulate.c) */
bool emulate(Call *call, bool verify, PyObject **verdict);
/* Of a run on the emulator without the GIL (watch.c): watch() is its `progress`. */
typedef struct Watch {
    const Kernel *kernel;
    PyThreadState *thread;
    double begun, last; /* seconds: of the run, and when it was seen last */
    bool shown;         /* a line of progress */
    bool raised;        /* an exception, which ends the run */
} Watch;
void watch_begin(Watch *watch, const Kernel *kernel);
bool watch(void *data, const PipecProgress *progress);
/* Handles signals alone: of a comparison, whose parts are not those of the run */
bool watch_signals(void *data, const PipecProgress *progress);
void watch_end(Watch *watch);
bool launch(Call *call);                     /* on the device of the tensors (launch.c) */
PyObject *launch_recorded(const Call *call); /* what launch() has launched, for plan_new */
bool launch_on(Kernel *kernel, int device, void *stream, const PipecArgument *arguments,
               size_t count);
bool find_stream(Call *call, PyObject *object, void **stream);
/* Waits for all work of a device; an error of the driver, or 0 (wait.c). Without the GIL */
int device_wait(int ordinal);
PyObject *module_wait(PyObject *module, PyObject *argument);
PyObject *module_rates(PyObject *module, PyObject *argument);

/* A call of the kernel, and the same without a run: its extents and scalars by name (call.c) */
PyObject *call_kernel(PyObject *self, PyObject *const *args, size_t count, PyObject *names);
PyObject *call_verify(PyObject *self, PyObject *const *args, Py_ssize_t count, PyObject *names);
PyObject *call_values(PyObject *self, PyObject *const *args, Py_ssize_t count, PyObject *names);
/* (the result of a call, what it has launched on a GPU or None) */
PyObject *call_record(PyObject *self, PyObject *const *args, Py_ssize_t count, PyObject *names);

/* ---- plans: calls of operations that are repeated -------------------------------------------- */

#define FACTS_BYTES  1024 /* of a key, without an allocation */
#define FACTS_PLACES 24   /* arguments and new tensors, the same */

/* What a plan depends on of the arguments of an operation: types, devices, alignments, extents and
 * strides of tensors, all else by its value. And what it does not: the addresses. */
typedef struct Facts {
    State *state;
    char *key, key_room[FACTS_BYTES];
    size_t used, bytes;                          /* of the key */
    uint64_t *places, places_room[FACTS_PLACES]; /* addresses of tensors, by position */
    size_t count;                                /* of the arguments */
    int device;                                  /* of all tensors; -1: there is none */
    const DLExchange *exchange;                  /* their library's functions */
    bool needs_gradient;                         /* some tensor does, if grad mode is on */
} Facts;

typedef enum Found { FOUND, NOT_FOUND, FOUND_ERROR } Found;

/* Begins with the name. Places have room for `more` tensors after the arguments (keys.c). */
bool facts_open(Facts *facts, State *state, PyObject *name, size_t count, size_t more);
/* NOT_FOUND: no plan is about such an argument, or such a combination */
Found facts_add(Facts *facts, PyObject *argument);
void facts_close(Facts *facts);

typedef struct Plan Plan;

extern PyType_Spec plan_spec, plans_spec;
#define PLAN_NEW_MOST 8 /* new tensors */
/* new(..): see plan.c */
PyObject *plan_new(PyObject *module, PyObject *args);
PyObject *plans_new(PyObject *module, PyObject *args);
/* The results as a tuple. `scalars` are numbers by position, for those steps that take them. */
PyObject *plan_run(Plan *plan, Facts *facts, PyObject *const *arguments, PyObject *scalars);

#endif
