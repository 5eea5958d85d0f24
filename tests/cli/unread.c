/*
 * unread.c - preloaded: make the supervisor of `sqlock run` end with a message
 * from sqlock unread, before sqlock has read the supervisor's last message
 *
 * The supervisor is delayed after it has collected the command, and sqlock's
 * first thread before it receives a message.
 */
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static void be_late(long ms)
{
    const struct timespec late = {.tv_nsec = ms * 1000000};

    (void)nanosleep(&late, NULL);
}

pid_t waitpid(pid_t child, int *status, int options)
{
    int told = 0;
    pid_t pid = (pid_t)syscall(SYS_wait4, child, &told, options, NULL);

    if (status != NULL)
        *status = told;
    /* The supervisor leads a session. */
    if (child == -1 && pid > 0 && WIFEXITED(told) && getsid(0) == getpid())
        be_late(600);
    return pid;
}

ssize_t recv(int fd, void *buffer, size_t size, int flags)
{
    /* sqlock's first thread: another one talks to the database. */
    if (getsid(0) != getpid() && gettid() == getpid())
        be_late(150);
    return syscall(SYS_recvfrom, fd, buffer, size, flags, NULL, NULL);
}
