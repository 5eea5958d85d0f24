/*
 * check.c - check the arguments of public functions (check.h)
 */
#include "base/check.h"

#include <fcntl.h>
#include <inttypes.h>
#include <string.h>

/* Return whether no struct has that size: where it ends is within a member.
 * All have a size or a pointer, and so its alignment. */
static bool is_cut(size_t size)
{
    return size % _Alignof(void *) != 0;
}

static size_t size_of(const void *given)
{
    size_t size;

    memcpy(&size, given, sizeof size);
    return size;
}

int lk_sized_check(const struct lk_sized *sized, const void *given,
                   sqlock_error *err)
{
    if (given == NULL)
        return lk_error(err, SQLOCK_EINVAL, "%s must not be NULL", sized->type);
    if (size_of(given) < sizeof(size_t) || size_of(given) > sized->size ||
        is_cut(size_of(given)))
        return lk_error(err, SQLOCK_EINVAL,
                        "%s.size is %zu: begin with %s, and do not use a "
                        "library that is older than the header",
                        sized->type, size_of(given), sized->init);
    return 0;
}

int lk_sized_read(void *out, const struct lk_sized *sized, const void *given,
                  sqlock_error *err)
{
    int rc = given != NULL ? lk_sized_check(sized, given, err) : 0;

    memset(out, 0, sized->size);
    if (rc == 0 && given != NULL)
        memcpy(out, given, size_of(given));
    memcpy(out, &sized->size, sizeof sized->size);
    return rc;
}

void lk_sized_write(void *out, const void *full)
{
    size_t size = size_of(out);

    memcpy(out, full, size);
    memcpy(out, &size, sizeof size);
}

int lk_row_check(const struct lk_row_size *row, size_t given, sqlock_error *err)
{
    if (given >= row->least && given <= row->size && !is_cut(given))
        return 0;
    return lk_error(err, SQLOCK_EINVAL,
                    "the size of %s is %zu, but %zu here: give its sizeof, and "
                    "do not use a library that is older than the header",
                    row->type, given, row->size);
}

void lk_rows_pack(void *rows, size_t count, size_t size, size_t given)
{
    char *at = rows;

    for (size_t i = 1; given < size && i < count; i++)
        memmove(at + i * given, at + i * size, given);
}

int lk_check_wait(int64_t wait_ms, int cancel_fd, sqlock_error *err)
{
    if (wait_ms < SQLOCK_FOREVER)
        return lk_error(err, SQLOCK_EINVAL,
                        "wait_ms is %" PRId64 ": use 0, a time in ms, or "
                        "SQLOCK_FOREVER",
                        wait_ms);
    if (cancel_fd != 0 && fcntl(cancel_fd, F_GETFD) < 0)
        return lk_error(err, SQLOCK_EINVAL,
                        "cancel_fd is %d, which is not open: use a descriptor, "
                        "or 0 for none",
                        cancel_fd);
    return 0;
}

int lk_check_number(const char *name, uint32_t *value, uint32_t otherwise,
                    uint32_t least, uint32_t most, sqlock_error *err)
{
    if (*value == 0)
        *value = otherwise;
    if (*value < least || *value > most)
        return lk_error(err, SQLOCK_EINVAL, "%s is %u, but must be %u to %u",
                        name, *value, least, most);
    return 0;
}
