/* .npy files: numpy's files are read in every version and order, written files read back the
 * same, and malformed or different files are refused with the reason. All files are made in a
 * temporary folder. */
#include "launch/launch.h"

#include "tests/unit/expect.h"

#include <dirent.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

typedef struct Bench {
    Scratch scratch;
    char folder[64];
} Bench;

static const char *path(Bench *bench, const char *name) {
    return arena_printf(bench->scratch.arena, "%s/%s", bench->folder, name);
}

static const char *put(Bench *bench, const char *name, const void *bytes, size_t count) {
    const char *file = path(bench, name);
    FILE *stream = fopen(file, "wb");
    if (EXPECT(stream != NULL)) {
        EXPECT(fwrite(bytes, 1, count, stream) == count);
        fclose(stream);
    }
    return file;
}

/* Magic, version, length, the given dictionary, data */
static const char *put_npy(Bench *bench, int version, const char *dictionary, const void *data,
                           size_t bytes) {
    Str file = str_new(bench->scratch.arena);
    size_t length = strlen(dictionary);
    str_add_bytes(&file, "\x93NUMPY", 6);
    str_char(&file, (char)version);
    str_char(&file, 0);
    for (int i = 0; i < (version == 1 ? 2 : 4); i++)
        str_char(&file, (char)(length >> (8 * i) & 0xFF));
    str_add_bytes(&file, dictionary, length);
    str_add_bytes(&file, data, bytes);
    return put(bench, "made.npy", file.text, file.length);
}

#define GOOD_F4 "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }          \n"

static const float six[6] = {0, 1, 2, 3, 4, 5};

/* ---- accepted files -------------------------------------------------------------------------- */

static void reads(Bench *bench, int version, const char *dictionary, int rank) {
    Array array;
    const char *file = put_npy(bench, version, dictionary, six, sizeof six);
    if (EXPECT(npy_read(bench->scratch.arena, file, E_F32, &array, bench->scratch.diags))) {
        EXPECT(array.rank == rank && array.count == 6 && array.bytes == sizeof six);
        EXPECT(memcmp(array.data, six, sizeof six) == 0);
        EXPECT(array.data[-1] == GUARD_BYTE && array.data[sizeof six] == GUARD_BYTE);
        EXPECT((uintptr_t)array.data % 4096 == 0);
        array_free(&array);
    }
    EXPECT_CLEAN(&bench->scratch);
}

static void well_formed(Bench *bench) {
    for (int version = 1; version <= 3; version++) reads(bench, version, GOOD_F4, 2);
    reads(bench, 1, "{'shape':(6,),'fortran_order':True,\"descr\":\"=f4\"}", 1);
    reads(bench, 1,
          "{ 'descr' : 'f4' , 'fortran_order' : False , 'shape' : ( 1 , 1 , 2 , 3 , 1 ) }\n", 5);
    /* Python 2 */
    reads(bench, 1, "{'descr': '<f4', 'fortran_order': False, 'shape': (2L, 3L)}", 2);
}

static void fortran_order(Bench *bench) {
    static const int32_t columns[24] = {0, 12, 4, 16, 8,  20, 1, 13, 5, 17, 9,  21,
                                        2, 14, 6, 18, 10, 22, 3, 15, 7, 19, 11, 23};
    Array array;
    const char *file =
        put_npy(bench, 1, "{'descr': '<i4', 'fortran_order': True, 'shape': (2, 3, 4), }", columns,
                sizeof columns);
    if (EXPECT(npy_read(bench->scratch.arena, file, E_I32, &array, bench->scratch.diags))) {
        for (int i = 0; i < 24; i++) EXPECT(element_load_integer(E_I32, array.data + 4 * i) == i);
        array_free(&array);
    }
    EXPECT_CLEAN(&bench->scratch);
}

static void empty(Bench *bench) {
    Array array;
    const char *file =
        put_npy(bench, 1, "{'descr': '<f4', 'fortran_order': True, 'shape': (0, 3), }", "", 0);
    if (EXPECT(npy_read(bench->scratch.arena, file, E_F32, &array, bench->scratch.diags))) {
        EXPECT(array.count == 0 && array.extents[0] == 0 && array.extents[1] == 3);
        array_free(&array);
    }
    EXPECT_CLEAN(&bench->scratch);
}

/* Pairs of dtype and type: raw bits may be V or u, nothing is converted. */
static void types(Bench *bench) {
    static const struct {
        const char *descr;
        Element type;
    } fine[] = {{"<V2", E_BF16}, {"|V2", E_BF16}, {"<u2", E_BF16}, {"|V1", E_E4M3}, {"|u1", E_E4M3},
                {"|u1", E_E5M2}, {"|u1", E_U8},   {"|i1", E_I8},   {"<f2", E_F16},  {"<u4", E_U32},
                {"<i8", E_I64},  {"<u8", E_U64},  {"<f4", E_TF32}},
      wrong[] = {{"<f8", E_F32},  {"<i4", E_F32}, {"<f4", E_I32}, {"<u4", E_I32}, {"<f2", E_BF16},
                 {"<i2", E_BF16}, {"|V1", E_U8},  {"|i1", E_U8},  {"|b1", E_U8},  {"<V4", E_F32},
                 {"|O", E_F32},   {"<c8", E_F32}, {"<f", E_F32},  {"<f44", E_F32}};
    static const unsigned char data[8 * 3];
    for (size_t i = 0; i < COUNT_OF(fine) + COUNT_OF(wrong); i++) {
        bool good = i < COUNT_OF(fine);
        const char *descr = good ? fine[i].descr : wrong[i - COUNT_OF(fine)].descr;
        Element type = good ? fine[i].type : wrong[i - COUNT_OF(fine)].type;
        const char *dictionary = arena_printf(
            bench->scratch.arena, "{'descr': '%s', 'fortran_order': False, 'shape': (3,)}", descr);
        Array array;
        const char *file =
            put_npy(bench, 1, dictionary, data, 3 * (size_t)element_rows[type].bytes);
        EXPECT(npy_read(bench->scratch.arena, file, type, &array, bench->scratch.diags) == good);
        if (good) {
            EXPECT_CLEAN(&bench->scratch);
            array_free(&array);
        } else {
            EXPECT_ERROR(&bench->scratch, P0615, descr);
        }
    }
}

/* ---- refused files --------------------------------------------------------------------------- */

static void refused(Bench *bench, const char *file, Code code, const char *text) {
    Array array;
    EXPECT(!npy_read(bench->scratch.arena, file, E_F32, &array, bench->scratch.diags));
    EXPECT(array.block == NULL);
    EXPECT_ERROR(&bench->scratch, code, text);
}

static void hostile_headers(Bench *bench) {
#define HEAD "{'descr': '<f4', 'fortran_order': False, 'shape': "
    static const struct {
        const char *dictionary;
        Code code;
        const char *text;
    } rows[] = {
        {"", P0613, "not a dictionary"},
        {"[1, 2]", P0613, "not a dictionary"},
        {"{", P0613, "quoted string"},
        {"{}", P0613, "`descr` is missing"},
        {"{'descr': '<f4', 'fortran_order': False}", P0613, "`shape` is missing"},
        {"{'descr': '<f4', 'shape': (6,)}", P0613, "`fortran_order` is missing"},
        {"{'fortran_order': False, 'shape': (6,)}", P0613, "`descr` is missing"},
        {HEAD "(6,), 'shape': (6,)}", P0613, "twice"},
        {HEAD "(6,), 'more': 1}", P0613, "a key other than"},
        {HEAD "(6,) 'more': 1}", P0613, "comma"},
        {HEAD "(6,)", P0613, "comma"},
        {HEAD "(6,)}x", P0613, "after the dictionary"},
        {HEAD "(6,)}\n{}", P0613, "after the dictionary"},
        {HEAD "(6)}", P0613, "not a tuple"},
        {HEAD "[6]}", P0613, "not a tuple"},
        {HEAD "6}", P0613, "not a tuple"},
        {HEAD "(2 3)}", P0613, "comma"},
        {HEAD "(2,,3)}", P0613, "whole numbers"},
        {HEAD "(2, 3", P0613, "comma"},
        {HEAD "(2, ", P0613, "whole numbers"},
        {HEAD "(6.0,)}", P0613, "comma"},
        {HEAD "(-6,)}", P0613, "negative"},
        {HEAD "(99999999999999999999,)}", P0613, "64 bits"},
        {HEAD "(1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,6)}", P0613,
         "32 axes"},
        {HEAD "(1,1,1,1,1,6)}", P0617, "6 axes"},
        {HEAD "()}", P0617, "0 axes"},
        {HEAD "(2147483648,)}", P0605, "2147483648"},
        {HEAD "(9223372036854775807,)}", P0605, "9223372036854775807"},
        {HEAD "(2146435072, 2146435072, 2146435072)}", P0609, "64 bits"},
        {HEAD "(2146435072, 2146435072)}", P0609, "64 bits"},
        {HEAD "(2146435072, 1073741823)}", P0614, "shape needs 9218868428641665024"},
        {HEAD "(2146435072,)}", P0614, "24 bytes"},
        {HEAD "(7,)}", P0614, "24 bytes"},
        {HEAD "(5,)}", P0614, "24 bytes"},
        {"{'descr': '>f4', 'fortran_order': False, 'shape': (6,)}", P0616, "big endian"},
        {"{'descr': '', 'fortran_order': False, 'shape': (6,)}", P0613, "element type"},
        {"{'descr': '<', 'fortran_order': False, 'shape': (6,)}", P0615, "`<`"},
        {"{'descr': '<f444444444444444444', 'fortran_order': False, 'shape': (6,)}", P0613,
         "element type"},
        {"{'descr': '<f4, 'fortran_order': False, 'shape': (6,)}", P0613, ""},
        {"{'descr': '<f4\\'', 'fortran_order': False, 'shape': (6,)}", P0613, "does not end"},
        {"{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (6,)}", P0613, "record types"},
        {"{'descr': '<f4', 'fortran_order': 0, 'shape': (6,)}", P0613, "True nor False"},
        {"{'descr' '<f4'}", P0613, "colon"},
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++)
        for (int version = 1; version <= 3; version++)
            refused(bench, put_npy(bench, version, rows[i].dictionary, six, sizeof six),
                    rows[i].code, rows[i].text);
#undef HEAD
}

static void hostile_files(Bench *bench) {
    refused(bench, put(bench, "none.npy", "", 0), P0612, "not a .npy file");
    refused(bench, put(bench, "short.npy", "\x93NUM", 4), P0612, "not a .npy file");
    refused(bench, put(bench, "zip.npy", "PK\3\4aaaaaaaaaaaaaaaaa", 20), P0612, "not a .npy file");
    refused(bench, put(bench, "version.npy", "\x93NUMPY\4\0aaaa", 12), P0613, "version 4.0");
    refused(bench, put(bench, "version.npy", "\x93NUMPY\1\1aaaa", 12), P0613, "version 1.1");
    refused(bench, put(bench, "length.npy", "\x93NUMPY\1\0\1", 9), P0613,
            "ends inside of its header");
    refused(bench, put(bench, "length.npy", "\x93NUMPY\2\0\1\0\0", 11), P0613,
            "ends inside of its header");
    refused(bench, put(bench, "length.npy", "\x93NUMPY\2\0\xFF\xFF\xFF\xFF{}", 14), P0613,
            "4294967295 bytes");
    refused(bench, put(bench, "length.npy", "\x93NUMPY\1\0\xFF\xFF{}", 12), P0613,
            "ends inside of its header");
    refused(bench, put(bench, "nul.npy", "\x93NUMPY\1\0\4\0\0\0\0\0", 14), P0613,
            "not a dictionary");
    refused(bench, put(bench, "data.bin", six, sizeof six), P0612, "does not end in `.npy`");
    refused(bench, path(bench, "absent.npy"), P0611, "No such file");
    refused(bench, bench->folder, P0611, "directory");
    refused(bench, "", P0611, "No such file");
    if (geteuid() != 0) {
        const char *file = put_npy(bench, 1, GOOD_F4, six, sizeof six);
        chmod(file, 0);
        refused(bench, file, P0611, "Permission denied");
        unlink(file);
    }
}

/* Every prefix of a valid file is refused, and so is one byte too many. */
static void truncated(Bench *bench) {
    Str whole = str_new(bench->scratch.arena);
    str_add_bytes(&whole, "\x93NUMPY\1\0", 8);
    str_char(&whole, (char)(sizeof GOOD_F4 - 1));
    str_char(&whole, 0);
    str_add(&whole, GOOD_F4);
    str_add_bytes(&whole, (const char *)six, sizeof six);
    str_char(&whole, 0);
    for (size_t length = 0; length <= whole.length; length++) {
        if (length == whole.length - 1) continue;
        Array array;
        const char *file = put(bench, "cut.npy", whole.text, length);
        EXPECT(!npy_read(bench->scratch.arena, file, E_F32, &array, bench->scratch.diags));
        Code code = length < 8 ? P0612 : length < 10 + sizeof GOOD_F4 - 1 ? P0613 : P0614;
        EXPECT_ERROR(&bench->scratch, code, "cut.npy");
    }
}

/* A FIFO has no size: the bytes are counted. */
static void streams(Bench *bench) {
    for (int delta = -1; delta <= 1; delta++) {
        const char *made =
            put_npy(bench, 1, GOOD_F4, "abcdefghijklmnopqrstuvwxy", (size_t)(24 + delta));
        const char *pipe_file = path(bench, "fifo");
        EXPECT(mkfifo(pipe_file, 0600) == 0);
        const char *command = arena_printf(bench->scratch.arena, "cat %s > %s &", made, pipe_file);
        EXPECT(system(command) == 0);
        Array array;
        bool fine = npy_read(bench->scratch.arena, pipe_file, E_F32, &array, bench->scratch.diags);
        EXPECT(fine == (delta == 0));
        if (fine)
            array_free(&array);
        else
            EXPECT_ERROR(&bench->scratch, P0614, delta < 0 ? "but it has 23" : "has more than");
        unlink(pipe_file);
    }
}

/* ---- written files --------------------------------------------------------------------------- */

static int files_in(const char *folder) {
    DIR *directory = opendir(folder);
    int count = 0;
    for (struct dirent *entry; directory != NULL && (entry = readdir(directory)) != NULL;)
        count += entry->d_name[0] != '.';
    if (directory != NULL) closedir(directory);
    return count;
}

static void round_trips(Bench *bench) {
    const int64_t shapes[][MAX_RANK] = {
        {6, 1, 1, 1, 1}, {2, 3, 1, 1, 1}, {1, 2, 1, 3, 1}, {0, 4, 0, 0, 0}};
    const int ranks[] = {1, 2, 5, 2};
    for (int type = 0; type < E_COUNT; type++)
        for (size_t s = 0; s < COUNT_OF(ranks); s++) {
            Array array, back;
            const char *file = path(bench, "round.npy");
            if (!EXPECT(array_new(&array, (Element)type, ranks[s], shapes[s]))) continue;
            for (size_t i = 0; i < array.bytes; i++) array.data[i] = (unsigned char)(i * 7 + 1);
            EXPECT(npy_write(bench->scratch.arena, file, &array, bench->scratch.diags));
            if (EXPECT(npy_read(bench->scratch.arena, file, (Element)type, &back,
                                bench->scratch.diags))) {
                EXPECT(back.rank == array.rank && back.bytes == array.bytes);
                EXPECT(memcmp(back.extents, array.extents, sizeof back.extents) == 0);
                EXPECT(memcmp(back.data, array.data, array.bytes) == 0);
                array_free(&back);
            }
            array_free(&array);
            EXPECT_CLEAN(&bench->scratch);
        }
}

/* numpy.save(np.arange(6, dtype='<f4').reshape(2, 3)) writes exactly these bytes before the data */
static void header_bytes(Bench *bench) {
    Array array;
    const char *file = path(bench, "bytes.npy");
    if (!EXPECT(array_new(&array, E_F32, 2, (const int64_t[]){2, 3}))) return;
    memcpy(array.data, six, sizeof six);
    EXPECT(npy_write(bench->scratch.arena, file, &array, bench->scratch.diags));
    array_free(&array);
    char got[256];
    FILE *stream = fopen(file, "rb");
    EXPECT(stream != NULL && fread(got, 1, sizeof got, stream) == 128 + sizeof six);
    if (stream != NULL) fclose(stream);
    EXPECT(memcmp(got,
                  "\x93NUMPY\1\0\x76\0{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }",
                  10 + 59) == 0);
    EXPECT(got[127] == '\n' && got[126] == ' ' && memcmp(got + 128, six, sizeof six) == 0);
}

static void refused_writes(Bench *bench) {
    Scratch *scratch = &bench->scratch;
    Array array;
    if (!EXPECT(array_new(&array, E_F32, 1, (const int64_t[]){6}))) return;
    memset(array.data, 0, array.bytes);
    int before = files_in(bench->folder);
    EXPECT(!npy_write(scratch->arena, path(bench, "none/x.npy"), &array, scratch->diags));
    EXPECT_ERROR(scratch, P0618, "No such file");
    EXPECT(!npy_write(scratch->arena, bench->folder, &array, scratch->diags));
    EXPECT_ERROR(scratch, P0618, "directory");
    EXPECT(!npy_write(scratch->arena, path(bench, "x.txt"), &array, scratch->diags));
    EXPECT_ERROR(scratch, P0618, ".npy");
    EXPECT(!npy_write(scratch->arena, "/dev/full", &array, scratch->diags));
    EXPECT_ERROR(scratch, P0618, "No space left");
    EXPECT(npy_write(scratch->arena, "/dev/null", &array, scratch->diags));
    EXPECT_CLEAN(scratch);
    struct stat status;
    EXPECT(stat("/dev/null", &status) == 0 && S_ISCHR(status.st_mode));
    EXPECT(files_in(bench->folder) == before); /* no partial file remains */
    array_free(&array);
}

/* A symbolic link is kept; a failed write keeps the old file. */
static void links(Bench *bench) {
    Array array;
    struct stat status;
    if (!EXPECT(array_new(&array, E_F32, 1, (const int64_t[]){6}))) return;
    memset(array.data, 0, array.bytes);
    const char *file = path(bench, "target.npy"), *link_file = path(bench, "link.npy");
    EXPECT(npy_write(bench->scratch.arena, file, &array, bench->scratch.diags));
    EXPECT(symlink(file, link_file) == 0);
    EXPECT(npy_write(bench->scratch.arena, link_file, &array, bench->scratch.diags));
    EXPECT(lstat(link_file, &status) == 0 && S_ISLNK(status.st_mode));
    EXPECT_CLEAN(&bench->scratch);
    array_free(&array);
}

int main(void) {
    Bench bench = {.scratch = scratch_new(), .folder = "/tmp/pipec-npy-XXXXXX"};
    if (!EXPECT(mkdtemp(bench.folder) != NULL)) return 1;
    well_formed(&bench);
    fortran_order(&bench);
    empty(&bench);
    types(&bench);
    hostile_headers(&bench);
    hostile_files(&bench);
    truncated(&bench);
    streams(&bench);
    round_trips(&bench);
    header_bytes(&bench);
    refused_writes(&bench);
    links(&bench);
    EXPECT(system(arena_printf(bench.scratch.arena, "rm -r %s", bench.folder)) == 0);
    scratch_free(&bench.scratch);
    return expect_failures();
}
