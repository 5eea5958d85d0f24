/*
 * client.c - load libpq (client.h)
 */
#define LK_PG_CLIENT_C
#include "drivers/postgres/client.h"

struct lk_pq lk_pq;

#define X(name) {#name, (void *)&lk_pq.name},
static const struct lk_library_function functions[] = {LK_PQ_FUNCTIONS(X)};
#undef X

struct lk_library lk_pg_library = {
    .soname = SQLOCK_LIBPQ,
    .package = "libpq5",
    .copies = "libpq.so.*|libpq-*.so.*",
    .functions = functions,
    .count = sizeof functions / sizeof *functions,
};
