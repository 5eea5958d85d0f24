/*
 * secret.c - keep the password of a URL out of the process list and of messages
 *
 * A password on the command line can be seen between execve() and the call of
 * cli_take_arguments(); --help says how to avoid that.
 */
#include "cli.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>

#include "base/secret.h"

/* The memory of the original arguments, which is contiguous. */
static struct {
    char *text;
    size_t size; /* including the last NUL */
} arguments;

/* Return the part of a word that may be a URL: the text after "--url=", or the
 * whole word; NULL: none.  @p is_value: the word before was "--url". */
static char *secret_in(char *word, bool is_value)
{
    if (is_value)
        return word;
    if (strncmp(word, "--url=", 6) == 0)
        return word + 6;
    return strstr(word, "://") != NULL ? word : NULL;
}

static void hide(char *text)
{
    size_t length = strlen(text);

    lk_wipe(text, length);
    memcpy(text, "***", length < 3 ? length : 3);
}

/* Keep passwords from core files and debuggers.  Programs that sqlock executes
 * are not affected.  AddressSanitizer's leak checker works as a debugger, and
 * would be kept out, too. */
static void refuse_dumps(void)
{
#if !defined(__SANITIZE_ADDRESS__)
    (void)prctl(PR_SET_DUMPABLE, 0);
#endif
}

char **cli_take_arguments(int argc, char **argv)
{
    char **words = calloc((size_t)argc + 2, sizeof *words);
    bool is_value = false;
    char *secret;
    int i;

    refuse_dumps();
    if (words == NULL)
        return NULL;
    if (argc > 0) {
        arguments.text = argv[0];
        arguments.size =
            (size_t)(argv[argc - 1] - argv[0]) + strlen(argv[argc - 1]) + 1;
    }
    for (i = 0; i < argc; i++) {
        words[i] = strdup(argv[i]);
        if (words[i] == NULL) {
            cli_free_arguments(words);
            return NULL;
        }
    }
    /* The words after "--" are the user's command, and stay unchanged. */
    for (i = 1; i < argc && strcmp(words[i], "--") != 0; i++) {
        secret = secret_in(argv[i], is_value);
        is_value = strcmp(words[i], "--url") == 0;
        if (secret != NULL)
            hide(secret);
    }
    return words;
}

void cli_free_arguments(char **words)
{
    size_t i;

    for (i = 0; words[i] != NULL; i++)
        lk_wipe_free(words[i]);
    free(words);
}

/* If the last byte of the arguments is no NUL, the kernel takes them for one
 * text, which ends at the first NUL. */
void cli_rename(const char *name)
{
    (void)prctl(PR_SET_NAME, name);
    if (arguments.size < 3)
        return;
    lk_wipe(arguments.text, arguments.size);
    (void)snprintf(arguments.text, arguments.size - 1, "%s", name);
    arguments.text[arguments.size - 1] = ' ';
}

const char *cli_shown(const char *word)
{
    static char shown[48];
    const char *colon = strstr(word, "://");

    if (colon == NULL)
        return word;
    (void)snprintf(shown, sizeof shown, "%.*s://***",
                   colon - word < 24 ? (int)(colon - word) : 24, word);
    return shown;
}

/* Return whether a text, which follows "://", may have a password. */
static bool may_have_password(const char *text, size_t length)
{
    const char *colon = memchr(text, ':', length);

    return memchr(text, '=', length) != NULL ||
           (colon != NULL &&
            memchr(colon, '@', length - (size_t)(colon - text)) != NULL);
}

void cli_mask(char *message)
{
    char *at = message;

    while ((at = strstr(at, "://")) != NULL) {
        size_t length = strcspn(at += 3, " \n");
        const char *quote = memrchr(at, '"', length);

        /* A message has names in quotation marks, and goes on behind them. */
        if (quote != NULL)
            length = (size_t)(quote - at);
        if (!may_have_password(at, length))
            continue;
        (void)memset(at, '*', length < 3 ? length : 3);
        if (length > 3)
            (void)memmove(at + 3, at + length, strlen(at + length) + 1);
    }
}

void cli_forget_variable(const char *name)
{
    if (name != NULL)
        lk_wipe_text(getenv(name));
}
