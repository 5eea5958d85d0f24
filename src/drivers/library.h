/*
 * library.h - load a client library when it is needed for the first time
 *
 * A program that uses one database loads, and has to install, no other one's
 * client library.  A driver lists the functions that it calls, with their types
 * from the library's header, and gets their addresses here.
 */
#ifndef LK_DRIVERS_LIBRARY_H
#define LK_DRIVERS_LIBRARY_H

#include <stdatomic.h>
#include <stddef.h>

#include "db/driver.h"

/* A function's name, and where its address goes. */
struct lk_library_function {
    const char *name;
    void *address; /* of a pointer to a function */
};

struct lk_library {
    const char *soname;  /* "libpq.so.5": that of the headers of the build */
    const char *package; /* Debian's, for the message */
    const char *copies;  /* patterns of the file names of this library and of
                            others for the same database, with '|' between */
    const struct lk_library_function *functions; /* `count` of them */
    size_t count;
    atomic_bool is_loaded;
};

/* Load the library and find all functions, unless that was done.  The library
 * that the process has loaded already by that soname is used, so that a
 * connection of the application can be adopted.  Return 0; or ENOTSUP if the
 * library, or a function in it, is not there. */
int lk_library_load(struct lk_library *library, sqlock_error *err);

/* Load the library for a connection of the application.  Return 0; or ENOTSUP
 * also if the process has another copy of it, or another library for the same
 * database, since the connection may be of that one. */
int lk_library_adopt(struct lk_library *library, sqlock_error *err);

#endif
