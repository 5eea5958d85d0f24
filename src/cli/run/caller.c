/*
 * caller.c - find out which process has called sqlock
 *
 * A shell runs "$(...)" and pipelines in copies of itself, which end soon: the
 * caller is the process that they are copies of.
 */
#include "cli/cli.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define COPIES_MAX 32 /* of a shell in each other */

size_t cli_read_about(pid_t pid, const char *file, char *out, size_t size)
{
    char path[48];
    ssize_t got = 0;
    int fd;

    (void)snprintf(path, sizeof path, "/proc/%d/%s", (int)pid, file);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd >= 0) {
        got = read(fd, out, size - 1);
        (void)close(fd);
    }
    out[got > 0 ? got : 0] = '\0';
    return got > 0 ? (size_t)got : 0;
}

static pid_t parent_of(pid_t pid)
{
    char text[512];
    const char *at;
    int parent = 0;

    (void)cli_read_about(pid, "stat", text, sizeof text);
    at = strrchr(text, ')'); /* the program's name may have parentheses */
    if (at == NULL || sscanf(at, ") %*c %d", &parent) != 1)
        return 0;
    return parent;
}

/* Return whether two processes have the same arguments. */
static bool are_copies(pid_t one, pid_t other)
{
    char texts[2][2048];
    size_t length = cli_read_about(one, "cmdline", texts[0], sizeof texts[0]);

    return length > 0 &&
           length ==
               cli_read_about(other, "cmdline", texts[1], sizeof texts[1]) &&
           memcmp(texts[0], texts[1], length) == 0;
}

pid_t cli_caller(void)
{
    pid_t pid = getppid();
    pid_t parent = parent_of(pid);
    int i;

    for (i = 0; i < COPIES_MAX && parent > 1 && are_copies(pid, parent); i++) {
        pid = parent;
        parent = parent_of(pid);
    }
    return pid;
}

void cli_name_process(char out[CLI_CALLER_SIZE], pid_t pid)
{
    char name[32];

    (void)cli_read_about(pid, "comm", name, sizeof name);
    name[strcspn(name, "\n")] = '\0';
    if (*name == '\0' || !cli_is_plain(name))
        (void)snprintf(out, CLI_CALLER_SIZE, "for process %d", (int)pid);
    else
        (void)snprintf(out, CLI_CALLER_SIZE, "for %s %d", name, (int)pid);
}
