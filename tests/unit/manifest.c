/* The manifest as JSON: the whole text of the sample compared with tests/unit/manifest.json, so
 * that a change of a field is seen. Run in the root of the repository; with an argument it
 * prints the text for a new golden. */
#include "launch/launch.h"

#include "tests/unit/expect.h"
#include "tests/unit/sample.h"

static const char *golden(Scratch *scratch) {
    Str text = str_new(scratch->arena);
    FILE *stream = fopen("tests/unit/manifest.json", "r");
    if (!EXPECT(stream != NULL)) return "";
    char chunk[4096];
    for (size_t got; (got = fread(chunk, 1, sizeof chunk, stream)) > 0;)
        str_add_bytes(&text, chunk, got);
    fclose(stream);
    return text.text;
}

int main(int count, char **words) {
    Scratch scratch = scratch_new();
    Str out = str_new(scratch.arena);
    Manifest *sample = sample_manifest(scratch.arena);
    vec_push(scratch.arena, &sample->symbols,
             ((ManifestSymbol){.name = "A.stride0", .is_stride = true, .parameter = SAMPLE_A}));
    sample->parameters.items[SAMPLE_A].stride_alignment = 16;
    sample->parameters.items[SAMPLE_A].joined = 1;
    manifest_json(sample, &out);
    if (count > 1) {
        fputs(out.text, stdout);
        return words[1][0] == 0;
    }
    EXPECT(strcmp(out.text, golden(&scratch)) == 0);
    /* Absent values are null or an empty list; names are escaped */
    Manifest empty = {.kernel = "k\"1", .target = "sm_90a", .ptx_major = 8, .cluster = {1, 1, 1}};
    Str bare = str_new(scratch.arena);
    manifest_json(&empty, &bare);
    EXPECT(strstr(bare.text, "\"kernel\": \"k\\\"1\"") != NULL &&
           strstr(bare.text, "\"source\": null") != NULL);
    EXPECT(strstr(bare.text, "\"marks\": [],") != NULL);
    scratch_free(&scratch);
    return expect_failures();
}
