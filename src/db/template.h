/*
 * template.h - put fragments into templates: a fragment is SQL that differs
 * between databases and layouts, a template the SQL they share
 *
 * "{now}" stands for the text of the fragment `now`, and "{later {4}}" for that
 * of `later`, in which "{it}" is then "{4}".  A fragment's text may contain
 * marks, too.  Marks of parameters, {0} to {9}, are left to statement.c.
 */
#ifndef LK_TEMPLATE_H
#define LK_TEMPLATE_H

#include <stdio.h>

#include "sqlock/driver.h"

#define LK_FRAGMENT_LISTS 7

/* Lists of fragments; the first one that has a name is used.  Any may be
 * NULL. */
struct lk_fragments {
    const sqlock_fragment *lists[LK_FRAGMENT_LISTS];
};

/* Write a template. 0, EINVAL: a name that no list has, or one that contains
 * itself. */
int lk_template_write(FILE *out, const char *text,
                      const struct lk_fragments *fragments);

#endif
