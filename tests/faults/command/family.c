/*
 * family.c - see command.h
 *
 * It runs in processes of its own, where assertions of the test would not work.
 */
#include "command.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

static struct activity *activity;

static long long now_us(void)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_REALTIME, &now);
    return (long long)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

static void be_active(void)
{
    long long now = now_us();
    long long last = atomic_load(&activity->last_us);

    while (last < now &&
           !atomic_compare_exchange_weak(&activity->last_us, &last, now))
        continue;
    atomic_store(&activity->last_pid, getpid());
}

static void rest(long ms)
{
    struct timespec pause = {.tv_nsec = ms * 1000000};

    (void)nanosleep(&pause, NULL);
}

static void live(void)
{
    (void)atomic_fetch_add(&activity->members, 1);
    for (;;) {
        be_active();
        rest(5);
    }
}

static void ignore_all(void)
{
    int number;

    for (number = 1; number < NSIG; number++)
        (void)signal(number, SIG_IGN);
}

/* Be a chain of processes: each forks the next one, which makes a session of
 * its own, and ends. */
static void pass_on(void)
{
    (void)atomic_fetch_add(&activity->members, 1);
    for (;;) {
        be_active();
        rest(2);
        if (fork() > 0)
            _exit(0);
        (void)setsid();
    }
}

static void count_term(int number)
{
    (void)number;
    (void)atomic_fetch_add(&activity->terms, 1);
}

static void be_stubborn(void)
{
    sigset_t all;

    ignore_all();
    if (fork() == 0)
        live(); /* in the command's process group */
    if (fork() == 0) {
        (void)setsid();
        if (fork() == 0)
            live(); /* in the session that its parent has made */
        live();
    }
    if (fork() == 0) { /* a daemon: its parent ends */
        (void)setsid();
        if (fork() > 0)
            _exit(0);
        (void)sigfillset(&all);
        (void)sigprocmask(SIG_SETMASK, &all, NULL);
        live();
    }
    if (fork() == 0)
        pass_on();
    (void)signal(SIGTERM, count_term);
    live();
}

static void give_up(const char *what)
{
    (void)dprintf(STDERR_FILENO, "family: %s: %s\n", what, strerror(errno));
    _exit(99);
}

void family_main(char **arguments)
{
    int fd = open(arguments[1], O_RDWR | O_CLOEXEC);

    if (fd < 0)
        give_up("open");
    activity =
        mmap(NULL, sizeof *activity, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (activity == MAP_FAILED)
        give_up("mmap");
    if (strcmp(arguments[0], "brief") == 0) {
        (void)atomic_fetch_add(&activity->members, 1);
        rest(5);
        _exit(0);
    }
    if (strcmp(arguments[0], "stubborn") == 0)
        be_stubborn();
    live();
    give_up("live");
}
