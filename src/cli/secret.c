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
#include <unistd.h>

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

/* Return where in the URL the value of a parameter begins; NULL: there is none.
 * @p parameter is its name and "=". */
static const char *parameter_of(const char *url, const char *parameter)
{
    const char *at = strchr(url, '?');

    while (at != NULL) {
        at++;
        if (strncmp(at, parameter, strlen(parameter)) == 0)
            return at + strlen(parameter);
        at = strchr(at, '&');
    }
    return NULL;
}

bool cli_has_password(const char *url)
{
    const char *authority = strstr(url, "://");
    const char *at;
    const char *colon;

    if (parameter_of(url, "password=") != NULL ||
        parameter_of(url, "sslpassword=") != NULL)
        return true;
    if (authority == NULL)
        return false;
    /* Look for the last '@': an earlier one may belong to a password that is
     * not percent-encoded. */
    authority += 3;
    at = strrchr(authority, '@');
    colon = strchr(authority, ':');
    return at != NULL && colon != NULL && colon + 1 < at;
}

/* Return the '@' that ends user and password; NULL: there is none. */
static const char *end_of_user(const char *authority)
{
    return memrchr(authority, '@', strcspn(authority, "/?#"));
}

/* Remove a parameter and its value wherever they are in the URL; @p parameter
 * is its name and "=". */
static void remove_parameter(char *url, const char *parameter)
{
    char *value = (char *)(uintptr_t)parameter_of(url, parameter);
    char *from;
    size_t length;

    while (value != NULL) {
        from = value - strlen(parameter);
        length = strcspn(value, "&#");
        if (value[length] == '&')
            length++; /* the '&' behind the value; the one before stays */
        memmove(from, value + length, strlen(value + length) + 1);
        value = (char *)(uintptr_t)parameter_of(url, parameter);
    }
}

/* Return a copy of the URL without its password.  NULL: out of memory; or a
 * part of the password would be left, because it is not percent-encoded and
 * contains a character that looks like its end. */
static char *without_password(const char *url)
{
    const char *authority = strstr(url, "://");
    char *copy = strdup(url);
    const char *at;
    char *colon;

    if (copy == NULL)
        return NULL;
    if (authority != NULL) {
        authority = copy + (authority + 3 - url);
        at = end_of_user(authority);
        colon = strchr(authority, ':');
        if (at != NULL && colon != NULL && colon < at)
            memmove(colon, at, strlen(at) + 1);
    }
    remove_parameter(copy, "password=");
    remove_parameter(copy, "sslpassword=");
    if (!cli_has_password(copy))
        return copy;
    lk_wipe_free(copy);
    return NULL;
}

/* Return a copy of the URL, in which a relative path of a SQLite file is made
 * absolute: "sqlite:file" means another file in another folder.  The path stays
 * relative if the folder's name would have to be percent-encoded.  NULL: out of
 * memory. */
static char *with_whole_path(const char *url)
{
    static const char scheme[] = "sqlite:";
    const char *path = url + sizeof scheme - 1;
    char *folder;
    char *whole = NULL;
    bool is_relative;

    is_relative = strncmp(url, scheme, sizeof scheme - 1) == 0 &&
                  *path != '/' && *path != ':';
    folder = is_relative ? getcwd(NULL, 0) : NULL;
    if (folder == NULL || strpbrk(folder, "%?#") != NULL)
        whole = strdup(url);
    else if (asprintf(&whole, "%s%s/%s", scheme, folder, path) < 0)
        whole = NULL;
    free(folder);
    return whole;
}

char *cli_url_for_child(const char *url, bool is_of_file)
{
    if (!cli_has_password(url))
        return with_whole_path(url);
    return is_of_file ? NULL : without_password(url);
}

char *cli_password_variable(const char *url)
{
    const char *value = parameter_of(url, "password_env=");

    return value != NULL ? strndup(value, strcspn(value, "&#")) : NULL;
}

void cli_forget_variable(const char *name)
{
    if (name != NULL)
        lk_wipe_text(getenv(name));
}
