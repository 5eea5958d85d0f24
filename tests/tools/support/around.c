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
