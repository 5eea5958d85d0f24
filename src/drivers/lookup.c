/*
 * lookup.c - see lookup.h
 *
 * A thread asks the resolver, which nothing interrupts, and outlives the call
 * if its answer comes too late.  Calls that ask for a host meanwhile wait for
 * the same answer, so that there is one such thread for each host.
 */
#include "drivers/lookup.h"

#include <netdb.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/thread.h"

struct lookup {
    struct lookup *next;
    pthread_cond_t done;
    unsigned users; /* the thread, and the calls that wait */
    bool is_done;
    int rc; /* getaddrinfo()'s */
    char host[];
};

LK_STATIC_MUTEX(guard);

/* Lookups that are not done, of the process `owner`: a child does not have its
 * parent's threads. */
static struct lookup *running;
static pid_t owner;

static int ask(const char *host, int flags)
{
    const struct addrinfo wanted = {.ai_socktype = SOCK_STREAM,
                                    .ai_flags = flags};
    struct addrinfo *found = NULL;
    int rc = getaddrinfo(host, NULL, &wanted, &found);

    if (rc == 0)
        freeaddrinfo(found);
    return rc;
}

/* --- the caller holds the mutex --- */

static struct lookup *find(const char *host)
{
    struct lookup *at;

    if (owner != getpid())
        running = NULL;
    owner = getpid();
    at = running;
    while (at != NULL && strcmp(at->host, host) != 0)
        at = at->next;
    return at;
}

static void leave(struct lookup *lookup)
{
    if (--lookup->users > 0)
        return;
    (void)pthread_cond_destroy(&lookup->done);
    free(lookup);
}

static void finish(struct lookup *lookup, int rc)
{
    struct lookup **at = &running;

    while (*at != lookup)
        at = &(*at)->next;
    *at = lookup->next;
    lookup->rc = rc;
    lookup->is_done = true;
    (void)pthread_cond_broadcast(&lookup->done);
    leave(lookup);
}

/* --- */

static void *look_up(void *argument)
{
    struct lookup *lookup = argument;
    int rc = ask(lookup->host, 0);

    pthread_mutex_lock(&guard);
    finish(lookup, rc);
    pthread_mutex_unlock(&guard);
    return NULL;
}

/* Begin a lookup, with the mutex.  If no thread can be started, it is made
 * here, without the mutex meanwhile.  Return NULL if out of memory. */
static struct lookup *begin(const char *host)
{
    size_t size = strlen(host) + 1;
    struct lookup *lookup = calloc(1, sizeof *lookup + size);
    pthread_t thread;
    int rc;

    if (lookup == NULL)
        return NULL;
    memcpy(lookup->host, host, size);
    lk_condition_init(&lookup->done);
    lookup->users = 2;
    lookup->next = running;
    running = lookup;
    if (lk_thread_start(&thread, look_up, lookup, NULL) == 0) {
        (void)pthread_detach(thread);
        return lookup;
    }
    pthread_mutex_unlock(&guard);
    rc = ask(host, 0);
    pthread_mutex_lock(&guard);
    finish(lookup, rc);
    return lookup;
}

/* Return getaddrinfo()'s result, or EAI_AGAIN at the deadline. */
static int await(struct lookup *lookup, int64_t deadline_ns)
{
    struct timespec at = lk_timespec(deadline_ns);
    int error = 0;

    while (!lookup->is_done && error == 0)
        error = pthread_cond_timedwait(&lookup->done, &guard, &at);
    return lookup->is_done ? lookup->rc : EAI_AGAIN;
}

static int look_up_in_time(const char *host, int64_t deadline_ns)
{
    struct lookup *lookup;
    int rc = EAI_MEMORY;

    pthread_mutex_lock(&guard);
    lookup = find(host);
    if (lookup != NULL)
        lookup->users++;
    else
        lookup = begin(host);
    if (lookup != NULL) {
        rc = await(lookup, deadline_ns);
        leave(lookup);
    }
    pthread_mutex_unlock(&guard);
    return rc;
}

int lk_look_up(const char *host, int64_t deadline_ns, sqlock_error *err)
{
    int rc = ask(host, AI_NUMERICHOST);

    if (rc == EAI_NONAME)
        rc = look_up_in_time(host, deadline_ns);
    if (rc == 0)
        return 0;
    if (rc == EAI_MEMORY)
        return lk_error_nomem(err);
#ifdef EAI_NODATA
    if (rc == EAI_NODATA)
        rc = EAI_NONAME;
#endif
    if (rc == EAI_NONAME)
        return lk_error(err, SQLOCK_EINVAL,
                        "the host %s of the URL is not known", host);
    return lk_error(
        err, SQLOCK_EUNREACHABLE,
        "no name server could tell in time where the host %s is: %s", host,
        gai_strerror(rc));
}
