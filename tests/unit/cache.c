/* The file of tuned choices: look-up, files of another form, two writers. */
#include "lib/cache.h"

#include "tests/unit/expect.h"

#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static char folder[] = "/tmp/pipec-cache-XXXXXX";

static Choice choice_of(const char *kernel, const char *values) {
    return (Choice){kernel, "0123", "", "NVIDIA \"H200\"", "M=96 N=5", values, 1.5e-6, false};
}

/* Values of the last choice of the kernel for these extents */
static const char *found(Scratch *scratch, const char *file, Choice like) {
    Choices choices = cache_read(scratch->arena, file, scratch->diags);
    Kept kept = kept_of(scratch->arena, &choices, &like, like.device);
    const char *values = "none";
    size_t count;
    const Choice *choice = kept_find(&kept, like.extents, &count);
    for (size_t i = 0; i < count; i++)
        if (strcmp(choice[i].kernel, like.kernel) == 0) values = choice[i].values;
    return values;
}

static bool store(Scratch *scratch, const char *file, Choice *choice) {
    Choices one = {choice, 1, 1};
    return cache_store(scratch->arena, file, &one, scratch->diags);
}

static void keys(Scratch *scratch) {
    const char *file = arena_printf(scratch->arena, "%s/deep/folder/tune.json", folder);
    Choice one = choice_of("one", "T=1"), two = choice_of("two", "T=2 \\ \t\x01 \xc3\xa9"), like;
    EXPECT(strcmp(found(scratch, file, one), "none") == 0 && !cache_is_there(file));
    EXPECT(store(scratch, file, &one) && store(scratch, file, &two));
    EXPECT(cache_is_there(file) && strcmp(found(scratch, file, one), "T=1") == 0);
    EXPECT(strcmp(found(scratch, file, two), two.values) == 0);
    one.seconds = 0; /* removes it */
    EXPECT(store(scratch, file, &one) && strcmp(found(scratch, file, one), "none") == 0);
    one.seconds = 1;
    one.values = "T=3";
    EXPECT(store(scratch, file, &one) && strcmp(found(scratch, file, one), "T=3") == 0);
    EXPECT(strcmp(found(scratch, file, two), two.values) == 0);
    like = one, like.source = "0124";
    EXPECT(strcmp(found(scratch, file, like), "none") == 0);
    like = one, like.given = "S=1";
    EXPECT(strcmp(found(scratch, file, like), "none") == 0);
    like = one, like.device = "NVIDIA H100";
    EXPECT(strcmp(found(scratch, file, like), "none") == 0);
    like = one, like.device = NULL;
    EXPECT(strcmp(found(scratch, file, like), "T=3") == 0);
    like = one, like.extents = "M=97 N=5";
    EXPECT(strcmp(found(scratch, file, like), "none") == 0);
    EXPECT_CLEAN(scratch);
}

static void put(const char *file, const char *text, size_t length) {
    FILE *out = fopen(file, "w");
    if (!EXPECT(out != NULL)) return;
    fwrite(text, 1, length, out);
    fclose(out);
}

static void is_unreadable(Scratch *scratch, const char *text, size_t length) {
    const char *file = arena_printf(scratch->arena, "%s/odd.json", folder);
    put(file, text, length);
    bool none = strcmp(found(scratch, file, choice_of("one", "")), "none") == 0;
    if (!EXPECT(none) || !EXPECT_ERROR(scratch, P0911, "it does not have the format"))
        fprintf(stderr, "%s\n", text);
}

#define CHOICE                                                                                     \
    "{\"kernel\":\"one\",\"source\":\"0123\",\"given\":\"\",\"device\":\"D\",\"extents\":\"\","    \
    "\"values\":\"T=1\","                                                                          \
    "\"seconds\":1}"
#define WHOLE(choices) "{\"pipec tune\": 1, \"choices\": [" choices "]}"

static void oddities(Scratch *scratch) {
    static const char *const odd[] = {"",
                                      "{",
                                      "[]",
                                      "null",
                                      "{}",
                                      "{\"pipec tune\": 2, \"choices\": []}",
                                      "{\"pipec tune\": 1}",
                                      WHOLE("") "x",
                                      WHOLE("{}"),
                                      WHOLE(CHOICE ","),
                                      WHOLE("," CHOICE),
                                      WHOLE(CHOICE " " CHOICE),
                                      WHOLE("{\"kernel\": 5}"),
                                      WHOLE("{\"kernel\": [\"one\"]}"),
                                      WHOLE("{\"kernel\": \"o\\u12\"}"),
                                      WHOLE("{\"kernel\": \"o\\x\"}"),
                                      WHOLE("{\"kernel\": \"o\\ud800\"}"),
                                      WHOLE("{\"kernel\": \"o\n\"}"),
                                      WHOLE("{\"kernel\": \"o")};
    for (size_t i = 0; i < COUNT_OF(odd); i++) is_unreadable(scratch, odd[i], strlen(odd[i]));
    is_unreadable(scratch, WHOLE(CHOICE) "\0 ", sizeof WHOLE(CHOICE) + 1);
    for (size_t length = 0; length < sizeof WHOLE(CHOICE) - 1; length++) /* truncated anywhere */
        is_unreadable(scratch, WHOLE(CHOICE), length);
    const char *file = arena_printf(scratch->arena, "%s/odd.json", folder);
    static const char more[] = " " WHOLE(
        " { \"new\" : \"x\", \"newer\": -1e5, \"kernel\":\"\\u006f\\u006ee\",\"source\":\"0123\","
        "\"given\":\"\",\"device\":\"D\",\"extents\":\"\",\"values\":\"T=1\",\"seconds\":1}") "\n";
    put(file, more, sizeof more - 1);
    Choice like = {"one", "0123", "", "D", "", NULL, 0, false};
    EXPECT(strcmp(found(scratch, file, like), "T=1") == 0);
    EXPECT_CLEAN(scratch);
    EXPECT(strcmp(found(scratch, folder, like), "none") == 0);
    EXPECT_ERROR(scratch, P0911, "it is not a file");
}

static void aside(Scratch *scratch) {
    const char *file = arena_printf(scratch->arena, "%s/aside.json", folder);
    Choice one = choice_of("one", "T=1");
    for (int i = 0; i < 3; i++) {
        put(file, "mine", 4);
        EXPECT(store(scratch, file, &one));
        EXPECT_ERROR(scratch, P0911,
                     i == 0   ? "was renamed to"
                     : i == 1 ? ".broken.2`"
                              : ".broken.3`");
        EXPECT(strcmp(found(scratch, file, one), "T=1") == 0);
    }
    const char *blocked = arena_printf(scratch->arena, "%s/aside.json/tune.json", folder);
    EXPECT(!store(scratch, blocked, &one));
    EXPECT_ERROR(scratch, P0912, "set PIPEC_CACHE to a writable folder");
}

/* Two processes that add choices at once lose none. */
static void writers(Scratch *scratch) {
    enum { EACH = 40 };
    const char *file = arena_printf(scratch->arena, "%s/many/tune.json", folder);
    pid_t children[2];
    for (int child = 0; child < 2; child++) {
        children[child] = fork();
        if (children[child] != 0) continue;
        bool fine = true;
        for (int i = 0; i < EACH; i++) {
            Choice choice = choice_of(arena_printf(scratch->arena, "k%d.%d", child, i), "T=1");
            fine = store(scratch, file, &choice) && fine;
        }
        _exit(fine ? 0 : 1);
    }
    for (int child = 0; child < 2; child++) {
        int state;
        EXPECT(waitpid(children[child], &state, 0) == children[child] && state == 0);
    }
    for (int child = 0; child < 2; child++)
        for (int i = 0; i < EACH; i++)
            EXPECT(strcmp(found(scratch, file,
                                choice_of(arena_printf(scratch->arena, "k%d.%d", child, i), "")),
                          "T=1") == 0);
    EXPECT_CLEAN(scratch);
}

static void names(Scratch *scratch) {
    const char *why;
    setenv("PIPEC_CACHE", "/a", 1);
    setenv("XDG_CACHE_HOME", "/b", 1);
    setenv("HOME", "/c", 1);
    EXPECT(strcmp(cache_file(scratch->arena, &why), "/a/tune.json") == 0);
    setenv("PIPEC_CACHE", "", 1);
    EXPECT(cache_file(scratch->arena, &why) == NULL && strstr(why, "empty") != NULL);
    unsetenv("PIPEC_CACHE");
    EXPECT(strcmp(cache_file(scratch->arena, &why), "/b/pipec/tune.json") == 0);
    setenv("XDG_CACHE_HOME", "relative", 1); /* the specification says to ignore it */
    EXPECT(strcmp(cache_file(scratch->arena, &why), "/c/.cache/pipec/tune.json") == 0);
    unsetenv("HOME");
    EXPECT(cache_file(scratch->arena, &why) == NULL && strstr(why, "HOME") != NULL);
}

int main(void) {
    Scratch scratch = scratch_new();
    if (!EXPECT(mkdtemp(folder) != NULL)) return 1;
    keys(&scratch);
    oddities(&scratch);
    aside(&scratch);
    writers(&scratch);
    names(&scratch);
    if (system(arena_printf(scratch.arena, "rm -r %s", folder)) != 0) perror(folder);
    scratch_free(&scratch);
    return expect_failures();
}
