/*
 * slow_kill.c - preloaded: kill() returns a while after the signal TERM was
 * sent, so that a process which obeys it has ended by then
 */
#include <signal.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

int kill(pid_t pid, int number)
{
    int rc = (int)syscall(SYS_kill, pid, number);

    if (number == SIGTERM)
        (void)usleep(300000);
    return rc;
}
