/*
 * inject.c - see inject.h
 */
#include "inject.h"

#include <dlfcn.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>
#include <unistd.h>

const char *const exhaust_names[EXHAUST_KINDS] = {"memory", "descriptors",
                                                  "threads", "poll", "signals"};

static atomic_int armed_kind = -1;
static atomic_int armed_thread; /* 0: any */
static atomic_bool armed_lasting;
static atomic_bool is_paused;
static atomic_int left; /* calls until one fails */
static atomic_uint failed;
static _Atomic uintptr_t where;

void exhaust_arm(enum exhaust_kind kind, unsigned nth, bool is_lasting,
                 bool everywhere)
{
    atomic_store(&left, (int)nth);
    atomic_store(&failed, 0);
    atomic_store(&armed_lasting, is_lasting);
    atomic_store(&armed_thread, everywhere ? 0 : (int)gettid());
    atomic_store(&is_paused, false);
    atomic_store(&armed_kind, (int)kind);
}

void exhaust_pause(void)
{
    atomic_store(&is_paused, true);
}

void exhaust_go_on(void)
{
    atomic_store(&is_paused, false);
}

unsigned exhaust_disarm(void)
{
    atomic_store(&armed_kind, -1);
    return atomic_load(&failed);
}

const char *exhaust_where(void)
{
    static char text[256];
    uintptr_t at = atomic_load(&where);
    Dl_info info = {0};

    if (dladdr((void *)at, &info) == 0) /* NOLINT: an address of code */
        return "nowhere";
    (void)snprintf(text, sizeof text, "%s, at 0x%zx of the program",
                   info.dli_sname != NULL ? info.dli_sname : "a function",
                   (size_t)(at - (uintptr_t)info.dli_fbase));
    return text;
}

static bool is_due(enum exhaust_kind kind, const void *caller)
{
    int thread = atomic_load(&armed_thread);
    int before;

    if (atomic_load(&armed_kind) != (int)kind || atomic_load(&is_paused) ||
        (thread != 0 && thread != (int)gettid()))
        return false;
    before = atomic_fetch_sub(&left, 1);
    if (before > 1 || (before < 1 && !atomic_load(&armed_lasting)))
        return false;
    atomic_store(&where, (uintptr_t)caller);
    (void)atomic_fetch_add(&failed, 1);
    return true;
}

#define IS_DUE(kind) is_due((kind), __builtin_return_address(0))
#define NO_MEMORY() (IS_DUE(EXHAUST_MEMORY) && (errno = ENOMEM) != 0)

/* ---------------------------------------------------------------- memory -- */

void *exhaust_malloc(size_t size);
void *exhaust_malloc(size_t size)
{
    return NO_MEMORY() ? NULL : malloc(size);
}

void *exhaust_calloc(size_t count, size_t size);
void *exhaust_calloc(size_t count, size_t size)
{
    return NO_MEMORY() ? NULL : calloc(count, size);
}

void *exhaust_realloc(void *old, size_t size);
void *exhaust_realloc(void *old, size_t size)
{
    return NO_MEMORY() ? NULL : realloc(old, size);
}

char *exhaust_strdup(const char *text);
char *exhaust_strdup(const char *text)
{
    return NO_MEMORY() ? NULL : strdup(text);
}

char *exhaust_strndup(const char *text, size_t size);
char *exhaust_strndup(const char *text, size_t size)
{
    return NO_MEMORY() ? NULL : strndup(text, size);
}

static int print(char **out, bool fails, const char *format, va_list arguments)
    __attribute__((format(printf, 3, 0)));
static int print(char **out, bool fails, const char *format, va_list arguments)
{
    if (fails)
        return -1;
    return vasprintf(out, format, arguments);
}

int exhaust_asprintf(char **out, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
int exhaust_asprintf(char **out, const char *format, ...)
{
    bool fails = NO_MEMORY();
    va_list arguments;
    int length;

    va_start(arguments, format);
    length = print(out, fails, format, arguments);
    va_end(arguments);
    return length;
}

int exhaust_asprintf_chk(char **out, int flag, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
int exhaust_asprintf_chk(char **out, int flag, const char *format, ...)
{
    bool fails = NO_MEMORY();
    va_list arguments;
    int length;

    (void)flag;
    va_start(arguments, format);
    length = print(out, fails, format, arguments);
    va_end(arguments);
    return length;
}

FILE *exhaust_fopencookie(void *cookie, const char *mode,
                          cookie_io_functions_t functions);
FILE *exhaust_fopencookie(void *cookie, const char *mode,
                          cookie_io_functions_t functions)
{
    return NO_MEMORY() ? NULL : fopencookie(cookie, mode, functions);
}

/* --------------------------------------------------------------- waiting -- */

static bool poll_fails(const void *caller)
{
    if (is_due(EXHAUST_POLL, caller))
        errno = ENOMEM;
    else if (is_due(EXHAUST_SIGNALS, caller))
        errno = EINTR;
    else
        return false;
    return true;
}

int exhaust_epoll_wait(int epoll, struct epoll_event *events, int count,
                       int timeout_ms);
int exhaust_epoll_wait(int epoll, struct epoll_event *events, int count,
                       int timeout_ms)
{
    if (poll_fails(__builtin_return_address(0)))
        return -1;
    return epoll_wait(epoll, events, count, timeout_ms);
}

int exhaust_poll(struct pollfd *waits, nfds_t count, int timeout_ms);
int exhaust_poll(struct pollfd *waits, nfds_t count, int timeout_ms)
{
    if (poll_fails(__builtin_return_address(0)))
        return -1;
    return poll(waits, count, timeout_ms);
}

int exhaust_poll_chk(struct pollfd *waits, nfds_t count, int timeout_ms,
                     size_t size);
int exhaust_poll_chk(struct pollfd *waits, nfds_t count, int timeout_ms,
                     size_t size)
{
    (void)size;
    if (poll_fails(__builtin_return_address(0)))
        return -1;
    return poll(waits, count, timeout_ms);
}

int exhaust_ppoll(struct pollfd *waits, nfds_t count,
                  const struct timespec *timeout, const sigset_t *mask);
int exhaust_ppoll(struct pollfd *waits, nfds_t count,
                  const struct timespec *timeout, const sigset_t *mask)
{
    if (poll_fails(__builtin_return_address(0)))
        return -1;
    return ppoll(waits, count, timeout, mask);
}

int exhaust_ppoll_chk(struct pollfd *waits, nfds_t count,
                      const struct timespec *timeout, const sigset_t *mask,
                      size_t size);
int exhaust_ppoll_chk(struct pollfd *waits, nfds_t count,
                      const struct timespec *timeout, const sigset_t *mask,
                      size_t size)
{
    (void)size;
    if (poll_fails(__builtin_return_address(0)))
        return -1;
    return ppoll(waits, count, timeout, mask);
}

/* -------------------------------------------------- descriptors, threads -- */

static bool no_descriptor(const void *caller)
{
    bool fails = is_due(EXHAUST_DESCRIPTORS, caller);

    if (fails)
        errno = EMFILE;
    return fails;
}

int exhaust_eventfd(unsigned count, int flags);
int exhaust_eventfd(unsigned count, int flags)
{
    if (no_descriptor(__builtin_return_address(0)))
        return -1;
    return eventfd(count, flags);
}

int exhaust_epoll_create1(int flags);
int exhaust_epoll_create1(int flags)
{
    if (no_descriptor(__builtin_return_address(0)))
        return -1;
    return epoll_create1(flags);
}

int exhaust_timerfd_create(clockid_t clock, int flags);
int exhaust_timerfd_create(clockid_t clock, int flags)
{
    if (no_descriptor(__builtin_return_address(0)))
        return -1;
    return timerfd_create(clock, flags);
}

FILE *exhaust_fopen(const char *path, const char *mode);
FILE *exhaust_fopen(const char *path, const char *mode)
{
    if (no_descriptor(__builtin_return_address(0)))
        return NULL;
    return fopen(path, mode);
}

int exhaust_pthread_create(pthread_t *thread, const pthread_attr_t *attributes,
                           void *(*run)(void *), void *argument);
int exhaust_pthread_create(pthread_t *thread, const pthread_attr_t *attributes,
                           void *(*run)(void *), void *argument)
{
    if (IS_DUE(EXHAUST_THREADS))
        return EAGAIN;
    return pthread_create(thread, attributes, run, argument);
}
