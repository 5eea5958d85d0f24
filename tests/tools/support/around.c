/*
 * around.c - see around.h
 */
#include "around.h"

#include <stdio.h>
#include <string.h>

#include "db/drivers.h"

bool around_make(struct around *around, struct fixture *f, const char *name)
{
    if (around->real != NULL)
        return false;
    assert_ok(lk_driver_find(&around->real, f->url, &f->err));
    (void)snprintf(around->schemes, sizeof around->schemes, "%s+%.*s", name,
                   (int)strcspn(f->url, ":"), f->url);
    around->prefix = strlen(name) + 1;
    around->driver = *around->real;
    around->driver.name = name;
    around->driver.schemes = around->schemes;
    return true;
}

void around_register(struct around *around)
{
    assert_true(lk_driver_add(&around->driver));
}

const char *around_url(char out[1024], const struct around *around,
                       const struct fixture *f)
{
    (void)snprintf(out, 1024, "%.*s%s", (int)around->prefix, around->schemes,
                   f->url);
    return out;
}

int around_enqueue_nothing(void *connection, int64_t queue, int64_t until_ns,
                           sqlock_error *err)
{
    (void)connection;
    (void)queue;
    (void)until_ns;
    (void)err;
    return 0;
}

int around_leave_nothing(void *connection, int64_t queue, int64_t deadline_ns,
                         sqlock_error *err)
{
    return around_enqueue_nothing(connection, queue, deadline_ns, err);
}
