/*
 * lead.c - services of which one runs at a time: `sqlock lead` with this
 * program as its command, which notes from when to when it runs
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/clock.h"
#include "chaos.h"

#define BEATS_MAX 2000 /* of a term; then the service fails */

int lead_serve(const char *path, unsigned number)
{
    int fd = open(path, O_RDWR | O_CLOEXEC);
    struct chaos *chaos;
    struct line *line;

    if (fd < 0)
        return 1;
    chaos =
        mmap(NULL, sizeof *chaos, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (chaos == MAP_FAILED || chaos_is_over(chaos))
        return 1;
    line = chaos_line(chaos, "acquire", PROCESSES + 1 + number,
                      (unsigned)getpid(), 1, "lead");
    line->weight = 0;
    line->until_ns = line->from_ns;
    atomic_store(&line->to_ns, line->from_ns);
    atomic_store(&line->is_whole, true);
    for (int i = 0; i < BEATS_MAX && !chaos_is_over(chaos); i++) {
        check_sleep(2);
        line->until_ns = lk_boottime_ns();
    }
    return 1;
}

void lead_become(const struct chaos *chaos, unsigned number)
{
    const char *sqlock = getenv("SQLOCK");
    char ttl[16], text[16], itself[1024];
    ssize_t length = readlink("/proc/self/exe", itself, sizeof itself - 1);
    const char *words[] = {"sqlock",
                           "--table-prefix",
                           chaos->fixture.prefix,
                           "lead",
                           "--ttl",
                           ttl,
                           "lead",
                           "--",
                           itself,
                           "serve",
                           chaos->path,
                           text,
                           NULL};
    int nothing = open("/dev/null", O_RDWR | O_CLOEXEC);

    if (length < 0 || nothing < 0)
        _exit(LEAD_NOT_RUN);
    itself[length] = '\0';
    (void)snprintf(ttl, sizeof ttl, "%dms", TTL_MS);
    (void)snprintf(text, sizeof text, "%u", number);
    (void)setenv("SQLOCK_URL", chaos->urls[number % PROXIES], 1);
    (void)dup2(nothing, STDIN_FILENO);
    (void)dup2(nothing, STDOUT_FILENO);
    (void)dup2(nothing, STDERR_FILENO);
    (void)execv(sqlock != NULL ? sqlock : "build/bin/sqlock",
                (char *const *)(uintptr_t)words);
    _exit(LEAD_NOT_RUN);
}
