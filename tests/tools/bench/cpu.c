/*
 * cpu.c - see cpu.h
 *
 * Linux's /proc has the times.  Threads and processes that have ended are not
 * counted, so a difference of two results is right only while connections stay
 * open.
 */
#include "cpu.h"

#include <dirent.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>

static int64_t first_number(const char *path)
{
    FILE *file = fopen(path, "re");
    int64_t value = -1;

    if (file == NULL)
        return -1;
    if (fscanf(file, "%" SCNd64, &value) != 1)
        value = -1;
    (void)fclose(file);
    return value;
}

/* Return the time of all threads of a process; -1: no such process.  The first
 * number of schedstat is the time on a processor, in ns. */
static int64_t cpu_of_threads(pid_t process)
{
    char path[320];
    DIR *threads;
    const struct dirent *entry;
    int64_t sum = 0;
    int64_t one;

    (void)snprintf(path, sizeof path, "/proc/%ld/task", (long)process);
    threads = opendir(path);
    if (threads == NULL)
        return -1;
    for (entry = readdir(threads); entry != NULL; entry = readdir(threads)) {
        if (entry->d_name[0] == '.')
            continue;
        (void)snprintf(path, sizeof path, "/proc/%ld/task/%s/schedstat",
                       (long)process, entry->d_name);
        one = first_number(path);
        if (one > 0)
            sum += one;
    }
    (void)closedir(threads);
    return sum;
}

int64_t bench_cpu_of(pid_t server)
{
    char path[64];
    FILE *children;
    int64_t sum;
    int64_t one;
    long child;

    sum = server > 0 ? cpu_of_threads(server) : -1;
    if (sum < 0)
        return -1;
    (void)snprintf(path, sizeof path, "/proc/%ld/task/%ld/children",
                   (long)server, (long)server);
    children = fopen(path, "re");
    if (children == NULL)
        return -1;
    while (fscanf(children, "%ld", &child) == 1) {
        one = cpu_of_threads((pid_t)child);
        if (one > 0)
            sum += one;
    }
    (void)fclose(children);
    return sum;
}
