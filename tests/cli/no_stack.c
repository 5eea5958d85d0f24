/*
 * no_stack.c - preloaded: the client library of MariaDB finds no memory for
 * LEAST bytes or more
 */
#include <dlfcn.h>
#include <link.h>
#include <stdlib.h>
#include <string.h>

void *__libc_malloc(size_t size);

void *malloc(size_t size)
{
    const char *least = getenv("LEAST");
    struct dl_find_object object;

    if (least != NULL && size >= (size_t)atol(least) &&
        _dl_find_object(__builtin_return_address(0), &object) == 0 &&
        strstr(object.dlfo_link_map->l_name, "libmariadb") != NULL)
        return NULL;
    return __libc_malloc(size);
}
