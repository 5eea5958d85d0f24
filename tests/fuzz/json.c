/*
 * json.c - JSON arguments of statements: Jansson reads the same text again
 */
#include "fuzz.h"

#include <stdio.h>

#include <jansson.h>

#include "base/json.h"
#include "base/text.h"
#include "base/writer.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = fuzz_text(data, size);
    size_t half = lk_utf8_prefix(text, strlen(text) / 2);
    struct lk_writer writer;
    FILE *out = lk_writer_open(&writer);
    char *json;
    json_t *read;

    must(out != NULL);
    (void)fputc('[', out);
    lk_json_text(out, text);
    (void)fputc(',', out);
    lk_json_prefix(out, text, half);
    (void)fputc(']', out);
    json = lk_writer_close(&writer);
    must(json != NULL);
    read = json_loads(json, 0, NULL);
    if (lk_utf8_is_valid(text)) {
        const char *whole = json_string_value(json_array_get(read, 0));
        const char *part = json_string_value(json_array_get(read, 1));

        must(whole != NULL && strcmp(whole, text) == 0);
        must(part != NULL && strlen(part) == half);
        must(strncmp(part, text, half) == 0);
    }
    json_decref(read);
    free(json);
    free(text);
    return 0;
}
