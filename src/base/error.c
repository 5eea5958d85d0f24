/*
 * error.c - fill in an sqlock_error, and give the texts of the error codes
 */
#include "base/error.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/text.h"

int sqlock_error_set(sqlock_error *err, int code, int native,
                     const char *sqlstate, const char *format, ...)
{
    char text[2048];
    va_list arguments;
    size_t length;

    if (err == NULL)
        return code;
    va_start(arguments, format);
    (void)vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);

    /* Messages of servers end with newlines, and some contain them. */
    length = strlen(text);
    while (length > 0 && (text[length - 1] == '\n' || text[length - 1] == ' '))
        text[--length] = '\0';
    if (length == 0) /* a client library may tell no reason */
        (void)snprintf(text, sizeof text, "%s", sqlock_strerror(code));
    for (size_t i = 0; i < length; i++)
        if (text[i] == '\n' || text[i] == '\t' || text[i] == '\r')
            text[i] = ' ';

    memset(err, 0, sizeof *err);
    err->code = code;
    err->native = native;
    if (sqlstate != NULL)
        (void)snprintf(err->sqlstate, sizeof err->sqlstate, "%.5s", sqlstate);
    lk_text_escape(err->message, sizeof err->message, text);
    return code;
}

int lk_error_pass(sqlock_error *err, const sqlock_error *own, int rc)
{
    if (rc < 0 && err != NULL)
        *err = *own;
    return rc;
}

int lk_error_limit(sqlock_error *err, const char *call, int error)
{
    const char *advice = "";

    if (error == EMFILE)
        advice = ": raise `ulimit -n`";
    else if (error == EFBIG)
        advice = ": raise `ulimit -f`";
    else if (error == ENOMEM)
        advice = ": raise `ulimit -v` or `ulimit -d`";
    else if (error == EAGAIN)
        advice = ": raise the limits of processes (`ulimit -u`, a container's "
                 "pids) or of memory (`ulimit -v`, `ulimit -d`)";
    return sqlock_error_set(err, SQLOCK_ERESOURCE, error, NULL, "%s: %s%s",
                            call, strerror(error), advice);
}

/* A connection to a SQLite file takes three, the others fewer. */
#define DESCRIPTORS 4

int lk_error_descriptors_missing(void)
{
    struct rlimit limit;
    int at = open("/", O_PATH | O_CLOEXEC);
    int missing = DESCRIPTORS;

    if (at < 0)
        return errno == ENFILE || errno == EMFILE ? errno : 0;
    (void)close(at);
    if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
        return 0;
    /* All below it are in use, and so may be some above it. */
    for (; missing > 0 && (rlim_t)at < limit.rlim_cur; at++)
        if (fcntl(at, F_GETFD) < 0)
            missing--;
    return missing > 0 ? EMFILE : 0;
}

/* The client libraries, and those that they need, take 15 MB. */
#define LIBRARIES_SIZE ((size_t)32 << 20)

int lk_error_memory_missing(void)
{
    void *room = mmap(NULL, LIBRARIES_SIZE, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

    if (room == MAP_FAILED)
        return errno;
    (void)munmap(room, LIBRARIES_SIZE);
    return 0;
}

bool lk_error_is_limit(const sqlock_error *err)
{
    return err != NULL && err->code == SQLOCK_ERESOURCE &&
           (err->native == EMFILE || err->native == ENFILE ||
            err->native == ENOMEM || err->native == EFBIG ||
            err->native == EAGAIN);
}

const char *sqlock_strerror(int code)
{
    switch (code) {
    case 0:
        return "success";
#define SQLOCK_X(name, value, text)                                            \
    case value:                                                                \
        return text;
        SQLOCK_ERRORS(SQLOCK_X)
#undef SQLOCK_X
    default:
        return "an error this version does not know";
    }
}

#define STRING_OF(x) #x
#define VERSION_TEXT(major, minor, patch)                                      \
    STRING_OF(major) "." STRING_OF(minor) "." STRING_OF(patch)

const char *sqlock_version(void)
{
    return VERSION_TEXT(SQLOCK_VERSION_MAJOR, SQLOCK_VERSION_MINOR,
                        SQLOCK_VERSION_PATCH);
}
