/*
 * text.c - texts for a log, a terminal and the lock table: what is shown has no
 * control character, is valid and fits; of a command line no secret is shown
 */
#include "fuzz.h"

#include "base/command_line.h"
#include "base/text.h"
#include "cli/cli.h"

static void check_shown(const char *shown)
{
    must(lk_utf8_is_valid(shown));
    for (; *shown != '\0'; shown++)
        must((unsigned char)*shown >= ' ' && *shown != 0x7f);
}

static void check_characters(const char *text)
{
    uint32_t character;
    size_t length;

    while ((length = lk_utf8_decode(text, &character)) > 0) {
        must(length == (size_t)1 + (character >= 0x80) + (character >= 0x800) +
                           (character >= 0x10000));
        must(character <= 0x10ffff && character >> 11 != 0x1b);
        text += length;
    }
}

static void check_sizes(const char *text, size_t size)
{
    char *out = malloc(size + 1);

    must(out != NULL);
    lk_text_escape(out, size, text);
    if (size > 0)
        check_shown(out);
    lk_text_to_ascii(out, size, text);
    for (size_t i = 0; size > 0 && out[i] != '\0'; i++)
        must((unsigned char)out[i] < 0x80);
    free(out);
}

static void check_terminal(const char *text, size_t width)
{
    char *escaped = cli_escape(text);
    char *cut;

    must(escaped != NULL);
    check_shown(escaped);
    if (cli_is_plain(text))
        must(strcmp(escaped, text) == 0 && cli_width(text) == strlen(text));
    cut = cli_cut(escaped, width + 1);
    must(cut != NULL && cli_width(cut) <= width + 1);
    free(cut);
    free(escaped);
}

/* A word behind an option that is named like a secret's is not shown. */
static void check_command_line(const uint8_t *data, size_t size)
{
    static const char before[] = "--password\0s3cr3t";
    char *words = malloc(sizeof before + size + 1);
    char shown[73];

    must(words != NULL);
    memcpy(words, before, sizeof before);
    memcpy(words + sizeof before, data, size);
    words[sizeof before + size] = '\0';
    lk_command_line_show(shown, sizeof shown, words, sizeof before + size + 1);
    must(strncmp(shown, " --password ...", 15) == 0);
    check_shown(shown);
    free(words);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    size_t limit = size > 0 ? data[0] : 0;
    char *text = fuzz_text(data + (size > 0), size - (size > 0));
    size_t end = lk_utf8_prefix(text, limit);

    must(end <= limit && end <= strlen(text));
    must(!lk_utf8_is_valid(text) || strlen(text) <= limit || end + 4 > limit);
    check_characters(text);
    check_sizes(text, limit);
    check_terminal(text, limit);
    (void)lk_text_matches(text, "a*|*b");
    (void)lk_text_matches("abc", text);
    if (size > 0)
        check_command_line(data + 1, size - 1);
    free(text);
    return 0;
}
