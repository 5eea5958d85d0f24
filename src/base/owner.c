/*
 * owner.c - number the owners of locks, and keep a list of living threads
 *
 * A change of the list is a single store, so that a process forked by another
 * thread at that time has the list from before or after the change.
 */
#include "base/owner.h"

#include <stdatomic.h>
#include <stdlib.h>

#include "base/thread.h"

#define IS_THREAD (UINT64_C(1) << 63)

struct living {
    struct living *next;
    uint64_t id;
};

LK_STATIC_MUTEX(guard); /* guards the list: */
static struct living *threads;

static pthread_key_t key;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static bool has_key;

/* Remove a thread from the list; called when the thread ends. */
static void bury(void *argument)
{
    struct living *thread = argument;
    struct living **at = &threads;

    pthread_mutex_lock(&guard);
    while (*at != NULL && *at != thread)
        at = &(*at)->next;
    if (*at != NULL)
        *at = thread->next;
    pthread_mutex_unlock(&guard);
    free(thread);
}

static void make_key(void)
{
    has_key = pthread_key_create(&key, bury) == 0;
}

/* Add the calling thread's id to the list.  Return false when out of memory, or
 * of keys of pthread_key_create(). */
static bool note_living(uint64_t id)
{
    struct living *thread = malloc(sizeof *thread);

    (void)pthread_once(&once, make_key);
    if (thread == NULL || !has_key || pthread_setspecific(key, thread) != 0) {
        free(thread);
        return false;
    }
    thread->id = id;
    pthread_mutex_lock(&guard);
    thread->next = threads;
    threads = thread;
    pthread_mutex_unlock(&guard);
    return true;
}

uint64_t lk_owner_id(void)
{
    static atomic_uint_fast64_t last;

    return atomic_fetch_add(&last, 1) + 1;
}

uint64_t lk_thread_id(void)
{
    static _Thread_local uint64_t id;

    if (id == 0) {
        uint64_t plain = lk_owner_id();

        /* Without IS_THREAD: a thread whose end cannot be noticed counts as
         * living. */
        id = note_living(plain | IS_THREAD) ? plain | IS_THREAD : plain;
    }
    return id;
}

bool lk_has_ended(uint64_t owner)
{
    const struct living *thread;

    if ((owner & IS_THREAD) == 0)
        return false;
    pthread_mutex_lock(&guard);
    thread = threads;
    while (thread != NULL && thread->id != owner)
        thread = thread->next;
    pthread_mutex_unlock(&guard);
    return thread == NULL;
}
