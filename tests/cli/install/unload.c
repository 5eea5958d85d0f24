/*
 * unload.c - load the library, take a lock in a thread, unload the library, and
 * end the thread afterwards
 *
 *     unload LIBRARY URL
 *
 * A plug-in does so in a program that goes on.  Exit status: 0.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <semaphore.h>
#include <sqlock.h>
#include <stdio.h>

#define FIND(name) __typeof__(&(name)) the_##name = dlsym(library, #name)

static void *library;
static const char *url;
static sem_t closed, unloaded;

static void *take(void *failure)
{
    FIND(sqlock_registry_open);
    FIND(sqlock_obtain);
    FIND(sqlock_acquire);
    FIND(sqlock_drop);
    FIND(sqlock_release);
    FIND(sqlock_registry_close);
    sqlock_registry *registry = NULL;
    sqlock_acquire_options options = SQLOCK_ACQUIRE_INIT;
    sqlock_lock *lock = NULL;
    sqlock_error err = {0};
    int *rc = failure;

    options.auto_renew = true;
    *rc = the_sqlock_registry_open(&registry, url, NULL, &err);
    if (*rc == 0)
        *rc = the_sqlock_obtain(&lock, registry, "plug-in", &err);
    if (*rc == 0)
        *rc = the_sqlock_acquire(lock, 5000, &options, &err);
    if (*rc == 0)
        *rc = the_sqlock_release(lock, &err);
    if (*rc == 0)
        *rc = the_sqlock_drop(lock, &err);
    if (*rc == 0)
        *rc = the_sqlock_registry_close(registry, &err);
    if (*rc < 0)
        fprintf(stderr, "unload: %s\n", err.message);
    sem_post(&closed);
    sem_wait(&unloaded);
    return NULL;
}

int main(int argc, char **argv)
{
    int failure = 0;

    if (argc != 3)
        return 2;
    url = argv[2];
    sem_init(&closed, 0, 0);
    sem_init(&unloaded, 0, 0);
    for (int i = 0; i < 2 && failure == 0; i++) {
        pthread_t thread;

        library = dlopen(argv[1], RTLD_NOW);
        if (library == NULL || pthread_create(&thread, NULL, take, &failure))
            return 2;
        sem_wait(&closed);
        if (dlclose(library) != 0)
            return 2;
        sem_post(&unloaded);
        pthread_join(thread, NULL);
    }
    return failure < 0;
}
