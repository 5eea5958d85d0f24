/*
 * library.c - load the client library (library.h)
 */
#define LK_MYSQL_LIBRARY_C
#include "drivers/mysql/library.h"

#ifdef MARIADB_PACKAGE_VERSION_ID
#define PACKAGE "libmariadb3"
#else
#define PACKAGE "MySQL's client library"
#endif

struct lk_my lk_my;

#define X(name) {#name, (void *)&lk_my.name},
static const struct lk_library_function functions[] = {LK_MY_FUNCTIONS(X)};
#undef X

struct lk_library lk_my_library = {
    .soname = SQLOCK_MYSQL_LIBRARY,
    .package = PACKAGE,
    .copies = "libmariadb*.so.*|libmysqlclient*.so.*",
    .functions = functions,
    .count = sizeof functions / sizeof *functions,
};
