/*
 * command_line.c - describe a process for others (see command_line.h)
 *
 * More users can read the lock table than this host's process list, so only
 * words that look harmless are shown.
 */
#include "base/command_line.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pwd.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#define HIDDEN "..."
#define ARGUMENTS_MAX 72 /* bytes of arguments that are shown */
#define KEYLIKE_MIN 20   /* a word as long as this may be an access key */

static bool is_called_after_a_secret(const char *option)
{
    static const char *const hints[] = {"pass", "pwd",  "secret", "token",
                                        "key",  "auth", "cred",   "user"};

    /* In many programs -p, -P or -u takes a password. */
    if (option[0] != '-')
        return false;
    if (strcasecmp(option, "-p") == 0 || strcmp(option, "-u") == 0)
        return true;
    for (size_t i = 0; i < sizeof hints / sizeof *hints; i++)
        if (strcasestr(option, hints[i]) != NULL)
            return true;
    return false;
}

/* Return whether the word is a mixture of letters and digits, and nothing else,
 * and has at least KEYLIKE_MIN of them. */
static bool is_like_a_key(const char *word)
{
    size_t digits = 0;
    size_t letters = 0;

    for (; isalnum((unsigned char)*word); word++) {
        digits += isdigit((unsigned char)*word) != 0;
        letters += isalpha((unsigned char)*word) != 0;
    }
    return *word == '\0' && digits > 0 && letters > 0 &&
           digits + letters >= KEYLIKE_MIN;
}

/* Return how many bytes of the word may be shown; the rest is hidden. */
static size_t harmless(const char *word)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyz"
                                "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                "0123456789_./:,+%-";
    const char *scheme = strstr(word, "://");
    size_t length = strspn(word, plain);

    if (scheme != NULL && (size_t)(scheme - word) < length)
        return (size_t)(scheme - word) + 3;
    if (word[length] == '=')
        return length + 1;
    if (word[length] != '\0' || is_like_a_key(word))
        return 0;
    if (word[0] == '-' && word[1] != '-' && length > 2)
        return 2;
    return length;
}

void lk_command_line_show(char *out, size_t size, const char *words,
                          size_t length)
{
    const char *before = "";
    size_t used = 0;

    out[0] = '\0';
    for (const char *word = words; word < words + length;
         word += strlen(word) + 1) {
        size_t shown = is_called_after_a_secret(before) ? 0 : harmless(word);
        int added;

        if (*word == '\0') /* the program may have overwritten it */
            continue;
        before = word;
        added = snprintf(out + used, size - used, " %.*s%s", (int)shown, word,
                         word[shown] != '\0' ? HIDDEN : "");

        if (added < 0 || (size_t)added >= size - used) {
            out[used] = '\0'; /* whole words only */
            return;
        }
        used += (size_t)added;
    }
}

void lk_process_name(char *out)
{
    char host[HOST_NAME_MAX + 1] = "";

    (void)gethostname(host, sizeof host - 1);
    (void)snprintf(out, LK_PROCESS_NAME_SIZE, "sqlock %.45s %u", host,
                   (unsigned)getpid());
}

/* Read the arguments of this process, without the program's name, each ending
 * with NUL.  Return their size in bytes; 0 if they cannot be read. */
static size_t read_arguments(char *out, size_t size)
{
    int fd = open("/proc/self/cmdline", O_RDONLY | O_CLOEXEC);
    ssize_t length = fd >= 0 ? read(fd, out, size - 1) : 0;
    size_t program;

    if (fd >= 0)
        (void)close(fd);
    if (length <= 0)
        return 0;
    out[length] = '\0';
    program = strlen(out) + 1;
    if (program >= (size_t)length)
        return 0;
    memmove(out, out + program, (size_t)length + 1 - program);
    return (size_t)length - program;
}

static void name_user(char *out, size_t size)
{
    char buffer[4096];
    struct passwd entry;
    struct passwd *found = NULL;

    if (getpwuid_r(geteuid(), &entry, buffer, sizeof buffer, &found) == 0 &&
        found != NULL)
        (void)snprintf(out, size, "%s", entry.pw_name);
    else
        (void)snprintf(out, size, "%lu", (unsigned long)geteuid());
}

void lk_process_show(char *out, size_t size)
{
    char user[64];
    char host[HOST_NAME_MAX + 1] = "";
    char arguments[1024];
    char shown[ARGUMENTS_MAX + 1];

    name_user(user, sizeof user);
    (void)gethostname(host, sizeof host - 1);
    lk_command_line_show(shown, sizeof shown, arguments,
                         read_arguments(arguments, sizeof arguments));
    (void)snprintf(out, size, "%s@%s %ld %s%s", user, host, (long)getpid(),
                   program_invocation_short_name, shown);
}
