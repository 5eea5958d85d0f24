/*
 * test.c - see test.h
 */
#include "test.h"

#include <string.h>

static struct test *first;

static bool is_before(const struct test *one, const struct test *other)
{
    int order = strcmp(one->file, other->file);

    return order < 0 || (order == 0 && one->line < other->line);
}

void tests_add(struct test *test)
{
    struct test **at = &first;

    while (*at != NULL && !is_before(test, *at))
        at = &(*at)->next;
    test->next = *at;
    *at = test;
}

const struct test *tests_first(void)
{
    return first;
}
