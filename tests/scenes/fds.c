/*
 * fds.c - descriptors that end waits: eventfds and pipes
 */
#include "actor.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

struct cancel *actor_cancel(struct actor *actor, const char *name)
{
    struct cancel *cancel = actor->cancels;

    pthread_mutex_lock(&actor->mutex);
    while (cancel->name[0] != '\0' && strcmp(cancel->name, name) != 0)
        cancel++;
    if (cancel->name[0] == '\0') {
        (void)snprintf(cancel->name, sizeof cancel->name, "%s", name);
        if (strncmp(name, "pipe:", 5) == 0) {
            int ends[2] = {-1, -1};

            (void)!pipe2(ends, O_CLOEXEC);
            cancel->fd = ends[0];
            cancel->writer = ends[1];
        } else {
            cancel->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
            cancel->writer = cancel->fd;
        }
    }
    pthread_mutex_unlock(&actor->mutex);
    return cancel;
}

int actor_fd(struct player *player, const char *option)
{
    const char *fd = step_option(&player->step, option);

    if (fd == NULL)
        return 0;
    return strcmp(fd, "negative") == 0 ? -1
                                       : actor_cancel(player->actor, fd)->fd;
}

static volatile sig_atomic_t handler_fd;

static void write_to_fd(int signal_number)
{
    uint64_t one = 1;

    (void)signal_number;
    (void)!write(handler_fd, &one, sizeof one);
}

/* Write to the descriptor fd=, read it, close it, or give its number away. */
static int use(struct player *player)
{
    const char *verb = player->step.verb;
    struct cancel *cancel =
        actor_cancel(player->actor, step_option(&player->step, "fd"));
    uint64_t one = 1;
    int another;

    if (strcmp(verb, "raises") == 0)
        return write(cancel->writer, &one, sizeof one) == sizeof one ? 0 : -1;
    if (strcmp(verb, "reads") == 0) /* how often it was raised */
        return read(cancel->fd, &one, sizeof one) == sizeof one ? (int)one : 0;
    if (strcmp(verb, "hangs_up") == 0)
        return close(cancel->writer);
    if (strcmp(verb, "handles") == 0) {
        handler_fd = cancel->writer;
        return signal(SIGUSR2, write_to_fd) == SIG_ERR ? -1 : 0;
    }
    /* replaces: the number belongs to another eventfd from now on. */
    another = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (dup3(another, cancel->fd, O_CLOEXEC) < 0)
        return -1;
    return close(another);
}

void actor_use_fd(struct player *player)
{
    player->outcome.rc = use(player);
}
