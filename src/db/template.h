/*
 * template.h - fragments put into templates: what differs between databases and
 * layouts has a name, and what they share is written once
 *
 * "{now}" stands for the text of the fragment `now`, and "{later {4}}" for that
 * of `later`, in which "{it}" is then "{4}".  A fragment's text may hold marks,
 * too.  Marks of parameters, {0} to {9}, stay for statement.c.
 */
#ifndef LK_TEMPLATE_H
#define LK_TEMPLATE_H

#include <stdio.h>

#include "sqlock/driver.h"

#define LK_FRAGMENT_LISTS 7

/* The first list that has a name counts; any of them may be NULL. */
struct lk_fragments {
    const sqlock_fragment *lists[LK_FRAGMENT_LISTS];
};

/* Write a template. 0, EINVAL: a name that no list has, or one that contains
 * itself. */
int lk_template_write(FILE *out, const char *text,
                      const struct lk_fragments *fragments);

#endif
