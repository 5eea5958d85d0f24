/*
 * pty.c - pty COLUMNS [-e TEXT -s TEXT]... COMMAND...: run a command on a
 * terminal of its own, as the session's leader, and copy its output to stdout
 *
 * For each pair, wait until the command has printed the TEXT behind -e, then
 * type the TEXT behind -s ("^C" and "^Z" are those keys, "\n" is return).  Exit
 * status: that of the command; 128+N if signal N ended it; 99 if it printed
 * nothing for 20 s, or ended before a TEXT that is waited for; 98 if there is
 * no terminal.
 */
#include <poll.h>
#include <pty.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define LIMIT_MS 20000

static char seen[1 << 20];
static size_t seen_bytes;

static bool is_late;

/* Copy some output.  Return false at its end, or after LIMIT_MS without any. */
static bool copy(int terminal)
{
    struct pollfd file = {.fd = terminal, .events = POLLIN};
    ssize_t got;

    if (poll(&file, 1, LIMIT_MS) <= 0) {
        is_late = true;
        return false;
    }
    got = read(terminal, seen + seen_bytes, sizeof seen - seen_bytes - 1);
    if (got <= 0)
        return false;
    (void)fwrite(seen + seen_bytes, 1, (size_t)got, stdout);
    seen_bytes += (size_t)got;
    seen[seen_bytes] = '\0';
    return true;
}

static void type(int terminal, const char *text)
{
    for (; *text != '\0'; text++) {
        char key = *text;

        if (key == '^' && text[1] != '\0')
            key = (char)(*++text & 0x1f);
        else if (key == '\\' && text[1] == 'n' && text++ != NULL)
            key = '\n';
        if (write(terminal, &key, 1) != 1)
            return;
    }
}

static int status_of(pid_t pid)
{
    int status = 0;

    (void)waitpid(pid, &status, 0);
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

int main(int argc, char **argv)
{
    struct winsize size = {.ws_row = 24};
    int terminal;
    int first = 2;
    int at;
    pid_t pid;

    if (argc < 3)
        return 98;
    size.ws_col = (unsigned short)strtoul(argv[1], NULL, 10);
    while (first + 4 < argc && strcmp(argv[first], "-e") == 0)
        first += 4;
    pid = forkpty(&terminal, NULL, NULL, &size);
    if (pid < 0) /* kill(-1) below would end all processes */
        return 98;
    if (pid == 0) {
        execvp(argv[first], argv + first);
        _exit(127);
    }
    for (at = 2; at < first; at += 4) {
        size_t from = seen_bytes;

        if (at == 2)
            from = 0;
        while (strstr(seen + from, argv[at + 1]) == NULL) {
            if (!copy(terminal)) {
                (void)kill(pid, SIGKILL);
                return 99;
            }
        }
        type(terminal, argv[at + 3]);
    }
    while (copy(terminal))
        continue;
    if (is_late) {
        (void)kill(pid, SIGKILL);
        return 99;
    }
    return status_of(pid);
}
