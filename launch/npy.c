/* launch: .npy files to arrays and back. Files are not trusted: the header has a bound and a
 * parser for exactly its dictionary, products of sizes are checked for overflow, and data of the
 * wrong length is refused. Nothing is converted: a file of another type is refused. Files are
 * written under a temporary name and renamed, so there are no partial ones. The format:
 * numpy/lib/format.py, versions 1.0, 2.0 and 3.0. */
#define PIPEC_OWN_MEMORY
#include "launch/private.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define HEADER_MAX  (64u << 10) /* numpy's own writer stays below 10000 */
#define CHUNK_BYTES (256u << 10)

#if !defined(__BYTE_ORDER__) || __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "arrays are little endian in memory"
#endif

/* ---- the header's dictionary ----------------------------------------------------------------- */

typedef struct Reader {
    const char *at, *end;
    const char *wrong; /* the first fault, NULL: none */
} Reader;

static bool refuse(Reader *reader, const char *what) {
    if (reader->wrong == NULL) reader->wrong = what;
    return false;
}

static void blanks(Reader *reader) {
    while (reader->at < reader->end && (*reader->at == ' ' || *reader->at == '\n' ||
                                        *reader->at == '\t' || *reader->at == '\r'))
        reader->at++;
}

static bool take(Reader *reader, char c) {
    blanks(reader);
    if (reader->at >= reader->end || *reader->at != c) return false;
    reader->at++;
    return true;
}

static bool take_word(Reader *reader, const char *word) {
    blanks(reader);
    size_t length = strlen(word);
    if ((size_t)(reader->end - reader->at) < length || memcmp(reader->at, word, length) != 0)
        return false;
    reader->at += length;
    return true;
}

/* 'text' or "text", without escapes, which no key and no dtype needs */
static bool quoted(Reader *reader, const char **text, size_t *length) {
    blanks(reader);
    if (reader->at >= reader->end || (*reader->at != '\'' && *reader->at != '"'))
        return refuse(reader, "a quoted string is missing");
    char quote = *reader->at++;
    *text = reader->at;
    while (reader->at < reader->end && *reader->at != quote && *reader->at != '\\' &&
           *reader->at >= ' ')
        reader->at++;
    if (reader->at >= reader->end || *reader->at != quote)
        return refuse(reader, "a quoted string does not end");
    *length = (size_t)(reader->at++ - *text);
    return true;
}

static bool extent(Reader *reader, int64_t *out) {
    blanks(reader);
    if (reader->at < reader->end && *reader->at == '-')
        return refuse(reader, "an extent is negative");
    if (reader->at >= reader->end || *reader->at < '0' || *reader->at > '9')
        return refuse(reader, "the shape is not a tuple of whole numbers");
    int64_t value = 0;
    while (reader->at < reader->end && *reader->at >= '0' && *reader->at <= '9')
        if (__builtin_mul_overflow(value, 10, &value) ||
            __builtin_add_overflow(value, *reader->at++ - '0', &value))
            return refuse(reader, "an extent does not fit 64 bits");
    if (reader->at < reader->end && *reader->at == 'L') /* suffix of Python 2's long integers */
        reader->at++;
    *out = value;
    return true;
}

static bool shape(Reader *reader, NpyFile *npy) {
    if (!take(reader, '(')) return refuse(reader, "the shape is not a tuple");
    bool comma = true;
    while (!take(reader, ')')) {
        if (!comma) return refuse(reader, "a comma is missing in the shape");
        if (npy->rank == NPY_MAX_RANK) return refuse(reader, "the shape has more than 32 axes");
        if (!extent(reader, &npy->shape[npy->rank++])) return false;
        comma = take(reader, ',');
    }
    if (npy->rank == 1 && !comma) return refuse(reader, "the shape is not a tuple");
    return true;
}

static bool is_key(const char *text, size_t length, const char *key) {
    return length == strlen(key) && memcmp(text, key, length) == 0;
}

static bool entry(Reader *reader, Arena *arena, NpyFile *npy, bool *have_descr, bool *have_order,
                  bool *have_shape) {
    const char *key, *text;
    size_t key_length, length;
    if (!quoted(reader, &key, &key_length)) return false;
    if (!take(reader, ':')) return refuse(reader, "a colon is missing");
    bool *have = is_key(key, key_length, "descr")           ? have_descr
                 : is_key(key, key_length, "fortran_order") ? have_order
                 : is_key(key, key_length, "shape")         ? have_shape
                                                            : NULL;
    if (have == NULL)
        return refuse(reader, "it has a key other than `descr`, `fortran_order` and `shape`");
    if (*have) return refuse(reader, "a key occurs twice");
    *have = true;
    if (have == have_shape) return shape(reader, npy);
    if (have == have_order) {
        npy->fortran = take_word(reader, "True");
        return npy->fortran || take_word(reader, "False") ||
               refuse(reader, "`fortran_order` is neither True nor False");
    }
    blanks(reader);
    if (reader->at < reader->end && *reader->at == '[')
        return refuse(reader, "`descr` is a list: record types are not supported");
    if (!quoted(reader, &text, &length)) return false;
    if (length == 0 || length > 16) return refuse(reader, "`descr` is not an element type");
    npy->descr = arena_copy(arena, text, length);
    return true;
}

/* NULL if the text is a valid header, otherwise the fault */
static const char *parse_header(Arena *arena, const char *text, size_t length, NpyFile *npy) {
    Reader reader = {text, text + length, NULL};
    bool have_descr = false, have_order = false, have_shape = false;
    if (!take(&reader, '{')) return "it is not a dictionary";
    bool comma = true;
    while (!take(&reader, '}')) {
        if (!comma) refuse(&reader, "a comma is missing");
        if (reader.wrong != NULL ||
            !entry(&reader, arena, npy, &have_descr, &have_order, &have_shape))
            return reader.wrong;
        comma = take(&reader, ',');
    }
    blanks(&reader);
    if (reader.at != reader.end) return "there is text after the dictionary";
    return !have_descr   ? "`descr` is missing"
           : !have_order ? "`fortran_order` is missing"
           : !have_shape ? "`shape` is missing"
                         : NULL;
}

/* ---- opening --------------------------------------------------------------------------------- */

static bool ends_in_npy(const char *file) {
    size_t length = strlen(file);
    return length > 4 && strcmp(file + length - 4, ".npy") == 0;
}

static bool read_header(Arena *arena, NpyFile *npy, Diags *diags) {
    unsigned char head[12];
    const char *file = npy->name;
    if (fread(head, 1, 8, npy->stream) != 8 || memcmp(head, "\x93NUMPY", 6) != 0) {
        if (ferror(npy->stream))
            diag_plain(diags, P0611, "cannot read `%s`: %s", file, strerror(errno));
        else
            diag_note(diags, diag_plain(diags, P0612, "`%s` is not a .npy file", file),
                      "a .npy file begins with the bytes 0x93 `NUMPY`");
        return false;
    }
    if (head[6] < 1 || head[6] > 3 || head[7] != 0) {
        diag_plain(diags, P0613,
                   "`%s` has version %d.%d of the .npy format; supported are 1.0, 2.0 and 3.0",
                   file, head[6], head[7]);
        return false;
    }
    size_t width = head[6] == 1 ? 2 : 4, length = 0;
    if (fread(head + 8, 1, width, npy->stream) != width) {
        diag_plain(diags, P0613, "`%s` ends inside of its header", file);
        return false;
    }
    for (size_t i = width; i > 0; i--) length = length << 8 | head[8 + i - 1];
    if (length > HEADER_MAX) {
        diag_plain(diags, P0613,
                   "the header of `%s` has a length of %zu bytes; at most %u are supported", file,
                   length, HEADER_MAX);
        return false;
    }
    char *text = arena_alloc(arena, length + 1);
    if (fread(text, 1, length, npy->stream) != length) {
        diag_plain(diags, P0613, "`%s` ends inside of its header", file);
        return false;
    }
    const char *wrong = parse_header(arena, text, length, npy);
    if (wrong != NULL) diag_plain(diags, P0613, "the header of `%s` is malformed: %s", file, wrong);
    if (wrong == NULL && npy->bytes_left != UINT64_MAX) npy->bytes_left -= 8 + width + length;
    return wrong == NULL;
}

bool npy_open(Arena *arena, const char *file, NpyFile *out, Diags *diags) {
    *out = (NpyFile){.name = file, .bytes_left = UINT64_MAX};
    out->stream = fopen(file, "rbe");
    struct stat status;
    if (out->stream == NULL || fstat(fileno(out->stream), &status) != 0) {
        diag_plain(diags, P0611, "cannot open `%s`: %s", file, strerror(errno));
        npy_close(out);
        return false;
    }
    if (S_ISDIR(status.st_mode)) {
        diag_plain(diags, P0611, "cannot read `%s`: it is a directory", file);
        npy_close(out);
        return false;
    }
    if (S_ISREG(status.st_mode)) {
        if (!ends_in_npy(file)) {
            Diag *diag = diag_plain(diags, P0612, "`%s` does not end in `.npy`", file);
            diag_help(diags, diag, "write the data to a .npy file with `numpy.save`");
            npy_close(out);
            return false;
        }
        out->bytes_left = (uint64_t)status.st_size;
    }
    if (read_header(arena, out, diags)) return true;
    npy_close(out);
    return false;
}

void npy_close(NpyFile *npy) {
    if (npy->stream != NULL) fclose(npy->stream);
    npy->stream = NULL;
}

/* ---- comparison with the wanted type --------------------------------------------------------- */

/* True if this type is stored as the dtype, ignoring its byte order. Raw bits are V or u of
 * their width. */
static bool dtype_holds(const char *dtype, Element type) {
    const char *own = element_rows[type].npy + 1;
    if (strcmp(dtype, own) == 0) return true;
    return own[0] == 'V' && dtype[0] == 'u' && strcmp(dtype + 1, own + 1) == 0;
}

static const char *dtype_of(const char *descr) {
    return strchr("<>=|", descr[0]) != NULL ? descr + 1 : descr;
}

/* "f64 (`<f8`)", or only the dtype if Pipe has no such type */
static const char *dtype_text(Arena *arena, const char *descr) {
    static const struct {
        const char *dtype, *name;
    } names[] = {{"f2", "f16"},       {"f4", "f32"},        {"f8", "float64"}, {"i1", "i8"},
                 {"i2", "int16"},     {"i4", "i32"},        {"i8", "i64"},     {"u1", "u8"},
                 {"u2", "uint16"},    {"u4", "u32"},        {"u8", "u64"},     {"b1", "bool"},
                 {"c8", "complex64"}, {"c16", "complex128"}};
    for (size_t i = 0; i < COUNT_OF(names); i++)
        if (strcmp(dtype_of(descr), names[i].dtype) == 0)
            return arena_printf(arena, "%s (`%s`)", names[i].name, descr);
    return arena_printf(arena, "`%s`", descr);
}

static bool type_fits(const NpyFile *npy, Element type, const char *tensor, Diags *diags) {
    const ElementRow *row = &element_rows[type];
    if (!dtype_holds(dtype_of(npy->descr), type)) {
        Diag *diag = diag_plain(diags, P0615, "`%s` holds %s, but %s%s%s is %s (`%s`)", npy->name,
                                dtype_text(diags->arena, npy->descr), tensor != NULL ? "`" : "",
                                tensor != NULL ? tensor : "the tensor", tensor != NULL ? "`" : "",
                                row->spelling, row->npy);
        if (row->npy[1] == 'V')
            diag_help(diags, diag, "save %s as raw bits, `V%d` or `u%d`; pipec converts nothing",
                      row->spelling, row->bytes, row->bytes);
        else
            diag_help(
                diags, diag,
                "pipec converts nothing; in NumPy, write `a.astype('%s')` before `numpy.save`",
                row->npy);
        return false;
    }
    if (npy->descr[0] == '>' && row->bytes > 1) {
        Diag *diag = diag_plain(
            diags, P0616, "`%s` is big endian (`%s`), but pipec reads only little endian data",
            npy->name, npy->descr);
        diag_help(diags, diag, "in NumPy, write `a.astype('<%s')` before `numpy.save`",
                  npy->descr + 1);
        return false;
    }
    return true;
}

bool extent_fits(int64_t value) { return value >= 0 && value <= EXTENT_MOST; }

bool npy_fits(const NpyFile *npy, Element type, const char *tensor, Diags *diags) {
    if (!type_fits(npy, type, tensor, diags)) return false;
    if (npy->rank < 1 || npy->rank > MAX_RANK) {
        diag_plain(diags, P0617, "`%s` has %d axes, but a tensor has 1 to %d", npy->name, npy->rank,
                   MAX_RANK);
        return false;
    }
    for (int axis = 0; axis < npy->rank; axis++)
        if (!extent_fits(npy->shape[axis])) {
            diag_plain(diags, P0605,
                       "axis %d of `%s` has %lld elements; the largest extent is %lld", axis,
                       npy->name, (long long)npy->shape[axis], (long long)EXTENT_MOST);
            return false;
        }
    int64_t count;
    size_t bytes;
    if (!array_size(type, npy->rank, npy->shape, &count, &bytes)) {
        diag_plain(diags, P0609, "the shape of `%s` has a size that does not fit 64 bits",
                   npy->name);
        return false;
    }
    if (npy->bytes_left != UINT64_MAX && npy->bytes_left != bytes) {
        diag_plain(diags, P0614, "`%s` has %llu bytes of data, but its shape needs %zu", npy->name,
                   (unsigned long long)npy->bytes_left, bytes);
        return false;
    }
    return true;
}

bool npy_holds(const char *descr, Element type) {
    return descr[0] != '>' && dtype_holds(descr + 1, type);
}

bool npy_peek(Arena *arena, const char *file, int *rank, int64_t *shape, const char **descr) {
    NpyFile npy;
    struct stat status;
    if (stat(file, &status) != 0 || !S_ISREG(status.st_mode) ||
        !npy_open(arena, file, &npy, diags_new(arena, NULL)))
        return false;
    npy_close(&npy);
    *rank = npy.rank;
    *descr = npy.descr;
    for (int axis = 0; axis < npy.rank && axis < MAX_RANK; axis++) shape[axis] = npy.shape[axis];
    return npy.rank >= 1 && npy.rank <= MAX_RANK;
}

/* ---- the data -------------------------------------------------------------------------------- */

/* Fortran order: the first axis varies fastest. Position of the file's next element in the
 * array, in elements. */
typedef struct Walk {
    int rank;
    int64_t extents[NPY_MAX_RANK], strides[NPY_MAX_RANK], index[NPY_MAX_RANK], offset;
} Walk;

static Walk walk_new(const NpyData *into) {
    Walk walk = {.rank = into->rank};
    int64_t stride = 1;
    for (int axis = into->rank - 1; axis >= 0; axis--) {
        walk.extents[axis] = into->shape[axis];
        walk.strides[axis] = stride;
        stride *= into->shape[axis];
    }
    return walk;
}

static void walk_step(Walk *walk) {
    for (int axis = 0; axis < walk->rank; axis++) {
        walk->offset += walk->strides[axis];
        if (++walk->index[axis] < walk->extents[axis]) return;
        walk->offset -= walk->strides[axis] * walk->extents[axis];
        walk->index[axis] = 0;
    }
}

/* Reads the elements; returns the number of bytes, fewer than the array has if the file is
 * short. */
static size_t read_fortran(FILE *stream, const NpyData *into) {
    unsigned char chunk[4096];
    size_t bytes = into->element_bytes, most = sizeof chunk / bytes * bytes, done = 0;
    Walk walk = walk_new(into);
    while (done < into->bytes) {
        size_t wanted = into->bytes - done < most ? into->bytes - done : most;
        size_t got = fread(chunk, 1, wanted, stream);
        for (size_t i = 0; i + bytes <= got; i += bytes, walk_step(&walk))
            memcpy(into->data + (size_t)walk.offset * bytes, chunk + i, bytes);
        done += got;
        if (got < wanted) break;
    }
    return done;
}

static size_t read_plain(FILE *stream, const NpyData *into) {
    size_t done = 0;
    while (done < into->bytes) {
        size_t wanted = into->bytes - done < CHUNK_BYTES ? into->bytes - done : CHUNK_BYTES;
        size_t got = fread(into->data + done, 1, wanted, stream);
        done += got;
        if (got < wanted) break;
    }
    return done;
}

static bool read_data(NpyFile *npy, const NpyData *into, Diags *diags) {
    bool across = npy->fortran && into->rank > 1;
    size_t done = across ? read_fortran(npy->stream, into) : read_plain(npy->stream, into);
    if (ferror(npy->stream)) {
        diag_plain(diags, P0611, "cannot read `%s`: %s", npy->name, strerror(errno));
        return false;
    }
    if (done < into->bytes) {
        diag_plain(diags, P0614,
                   "`%s` is truncated: its shape needs %zu bytes of data, but it has %zu",
                   npy->name, into->bytes, done);
        return false;
    }
    if (fgetc(npy->stream) != EOF) {
        diag_plain(diags, P0614, "`%s` has more than the %zu bytes of data that its shape needs",
                   npy->name, into->bytes);
        return false;
    }
    return true;
}

static NpyData view_of(const Array *array) {
    NpyData view = {.descr = element_rows[array->type].npy,
                    .element_bytes = (uint32_t)element_rows[array->type].bytes,
                    .rank = array->rank,
                    .data = array->data,
                    .bytes = array->bytes};
    for (int axis = 0; axis < array->rank; axis++) view.shape[axis] = array->extents[axis];
    return view;
}

bool npy_data(NpyFile *npy, Array *into, Diags *diags) {
    NpyData view = view_of(into);
    return read_data(npy, &view, diags);
}

bool npy_read(Arena *arena, const char *file, Element type, Array *out, Diags *diags) {
    *out = (Array){0};
    NpyFile npy;
    if (!npy_open(arena, file, &npy, diags)) return false;
    bool fine = npy_fits(&npy, type, NULL, diags);
    if (fine && !array_new(out, type, npy.rank, npy.shape)) {
        diag_plain(diags, P0610, "not enough host memory for the data of `%s`", file);
        fine = false;
    }
    fine = fine && npy_data(&npy, out, diags);
    if (!fine) array_free(out);
    npy_close(&npy);
    return fine;
}

/* ---- files of any type ----------------------------------------------------------------------- */

bool npy_size(NpyData *npy) {
    int64_t bytes = npy->element_bytes;
    bool wraps = false, empty = false;
    for (int axis = 0; axis < npy->rank; axis++) {
        wraps |= __builtin_mul_overflow(bytes, npy->shape[axis] ? npy->shape[axis] : 1, &bytes);
        empty |= npy->shape[axis] == 0;
    }
    npy->bytes = empty ? 0 : (size_t)bytes;
    return !wraps;
}

/* Bytes of an element of a numeric or raw dtype in little endian; 0: another dtype */
static uint32_t bytes_of_dtype(const char *descr) {
    const char *dtype = dtype_of(descr);
    char *end;
    unsigned long bytes = strtoul(dtype[0] ? dtype + 1 : dtype, &end, 10);
    bool known = dtype[0] != 0 && strchr("biufcV", dtype[0]) != NULL && *end == 0 && bytes > 0;
    return known && bytes <= 16 && (descr[0] != '>' || bytes == 1) ? (uint32_t)bytes : 0;
}

static bool size_any(const NpyFile *npy, NpyData *out, Diags *diags) {
    *out = (NpyData){
        .descr = npy->descr, .element_bytes = bytes_of_dtype(npy->descr), .rank = npy->rank};
    memcpy(out->shape, npy->shape, sizeof out->shape);
    if (out->element_bytes == 0)
        diag_plain(diags, P0615, "`%s` holds %s, which has no fixed little-endian form of bytes",
                   npy->name, dtype_text(diags->arena, npy->descr));
    else if (!npy_size(out))
        diag_plain(diags, P0609, "the shape of `%s` has a size that does not fit 64 bits",
                   npy->name);
    else
        return true;
    return false;
}

bool npy_read_any(Arena *arena, const char *file, NpyData *out, Array *bytes, Diags *diags) {
    NpyFile npy;
    *bytes = (Array){0};
    if (!npy_open(arena, file, &npy, diags)) return false;
    bool fine = size_any(&npy, out, diags);
    int64_t count = (int64_t)out->bytes;
    if (fine && !array_new(bytes, E_U8, 1, &count)) {
        diag_plain(diags, P0610, "not enough host memory for the data of `%s`", file);
        fine = false;
    }
    out->data = bytes->data;
    fine = fine && read_data(&npy, out, diags);
    if (!fine) array_free(bytes);
    npy_close(&npy);
    return fine;
}

/* ---- writing --------------------------------------------------------------------------------- */

/* The length of the header makes the data start at a multiple of 64, as numpy's writer does. */
static const char *header_text(Arena *arena, const NpyData *array, size_t *length) {
    Str dictionary = str_new(arena);
    str_printf(&dictionary, "{'descr': '%s', 'fortran_order': False, 'shape': (", array->descr);
    for (int axis = 0; axis < array->rank; axis++)
        str_printf(&dictionary, axis > 0 ? ", %lld" : "%lld", (long long)array->shape[axis]);
    str_add(&dictionary, array->rank == 1 ? ",), }" : "), }");
    while ((10 + dictionary.length + 1) % 64 != 0) str_char(&dictionary, ' ');
    str_char(&dictionary, '\n');
    Str header = str_new(arena);
    str_add_bytes(&header, "\x93NUMPY\x01\0", 8);
    str_char(&header, (char)(dictionary.length & 0xFF));
    str_char(&header, (char)(dictionary.length >> 8));
    str_add_bytes(&header, dictionary.text, dictionary.length);
    *length = header.length;
    return header.text;
}

static bool write_all(int descriptor, const void *bytes, size_t count) {
    for (const char *at = bytes; count > 0;) {
        ssize_t written = write(descriptor, at, count);
        if (written < 0 && errno == EINTR) continue;
        if (written <= 0) return false;
        at += written;
        count -= (size_t)written;
    }
    return true;
}

/* Opens a temporary file in the folder of the wanted one, so that the rename stays within one
 * file system. */
static int open_temporary(Arena *arena, const char *file, const char **temporary) {
    for (int attempt = 0; attempt < 100; attempt++) {
        *temporary = arena_printf(arena, "%s.%ld.%d.part", file, (long)getpid(), attempt);
        int descriptor = open(*temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (descriptor >= 0 || errno != EEXIST) return descriptor;
    }
    return -1;
}

static bool cannot_write(const char *file, int error, Diags *diags) {
    diag_plain(diags, P0618, "cannot write `%s`: %s", file, strerror(error));
    return false;
}

static bool write_array(int descriptor, Arena *arena, const NpyData *array) {
    size_t length;
    const char *header = header_text(arena, array, &length);
    return write_all(descriptor, header, length) &&
           write_all(descriptor, array->data, array->bytes);
}

/* Devices and FIFOs are written directly; a rename would replace them. */
static bool write_special(Arena *arena, const char *file, const NpyData *array, Diags *diags) {
    int descriptor = open(file, O_WRONLY | O_CLOEXEC);
    bool fine = descriptor >= 0 && write_array(descriptor, arena, array);
    int error = errno;
    if (descriptor >= 0 && close(descriptor) != 0 && fine) {
        fine = false;
        error = errno;
    }
    return fine || cannot_write(file, error, diags);
}

bool npy_write_any(Arena *arena, const char *file, const NpyData *array, Diags *diags) {
    struct stat status;
    bool exists = stat(file, &status) == 0;
    if (exists && S_ISDIR(status.st_mode)) return cannot_write(file, EISDIR, diags);
    if (exists && !S_ISREG(status.st_mode)) return write_special(arena, file, array, diags);
    if (!ends_in_npy(file)) {
        Diag *diag =
            diag_plain(diags, P0618, "cannot write `%s`: its name does not end in `.npy`", file);
        diag_help(diags, diag, "name it `%s.npy`", file);
        return false;
    }
    /* A symbolic link is kept: its target is replaced */
    char real[PATH_MAX];
    const char *target = exists && realpath(file, real) != NULL ? real : file, *temporary;
    int descriptor = open_temporary(arena, target, &temporary);
    if (descriptor < 0) return cannot_write(file, errno, diags);
    bool fine = write_array(descriptor, arena, array);
    int error = errno;
    if (close(descriptor) != 0 && fine) {
        fine = false;
        error = errno;
    }
    if (fine && rename(temporary, target) != 0) {
        fine = false;
        error = errno;
    }
    if (!fine) unlink(temporary);
    return fine || cannot_write(file, error, diags);
}

bool npy_write(Arena *arena, const char *file, const Array *array, Diags *diags) {
    NpyData view = view_of(array);
    return npy_write_any(arena, file, &view, diags);
}
