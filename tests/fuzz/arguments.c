/*
 * arguments.c - command lines, a word a line: each value and argument that is
 * read is a word, or its end; numbers are what they say
 */
#include "fuzz.h"

#include <stdio.h>

#include "cli/cli.h"

#define WORDS_MAX 64

static const cli_command *const commands[] = {
    &cli_init,  &cli_run,     &cli_lead,      &cli_wait,    &cli_acquire,
    &cli_renew, &cli_release, &cli_guard_sql, &cli_ls,      &cli_show,
    &cli_top,   &cli_metrics, &cli_break,     &cli_permits, &cli_reap,
    &cli_key,   &cli_stock,   &cli_once,      &cli_doctor,
};

static const cli_command *find(const char *name)
{
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++)
        if (strcmp(commands[i]->name, name) == 0)
            return commands[i];
    return NULL;
}

/* Return whether a text is one of the words, or the end of one. */
static bool is_of(const char *text, const char *const *copies, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        size_t length = strlen(copies[i]), end = strlen(text);

        if (end <= length && strcmp(copies[i] + length - end, text) == 0)
            return true;
    }
    return false;
}

static void check_number(const char *text)
{
    char again[CLI_NUMBER_SIZE];
    int64_t number, same;

    if (!lk_text_integer(text, &number))
        return;
    (void)snprintf(again, sizeof again, "%lld", (long long)number);
    must(lk_text_integer(again, &same) && same == number);
}

static void check_parsed(const cli *app, const char *const *copies,
                         size_t count)
{
    must(app->count <= count);
    for (size_t i = 0; i < app->count; i++)
        must(is_of(app->args[i], copies, count));
    for (size_t i = 0; i < CLI_OPTIONS_MAX; i++)
        if (app->given[i] != NULL)
            must(is_of(app->given[i], copies, count));
    for (size_t i = 0; i < CLI_SETTINGS; i++)
        if (app->settings[i] != NULL)
            must(is_of(app->settings[i], copies, count));
    if (app->child != NULL)
        must(app->command->has_child);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = fuzz_text(data, size), *at = text;
    char **words = calloc(WORDS_MAX + 2, sizeof *words);
    const char *copies[WORDS_MAX + 1] = {NULL};
    size_t count = 0;
    cli app = {0};
    int status;

    must(words != NULL);
    words[count] = strdup("sqlock");
    copies[count++] = "";
    while (*at != '\0' && count <= WORDS_MAX) {
        copies[count] = fuzz_line(&at);
        words[count] = strdup(copies[count]);
        check_number(copies[count]);
        count++;
    }
    status = cli_parse(&app, words, find);
    must(status == CLI_OK || status == CLI_USAGE);
    if (status == CLI_OK)
        check_parsed(&app, copies, count);
    if (status != CLI_OK && app.command != NULL && app.command->refused != NULL)
        app.command->refused(&app);
    free(app.args);
    cli_free_arguments(words);
    free(text);
    return 0;
}
