/*
 * template.h - put fragments into templates: a template is SQL that databases
 * and layouts share, a fragment SQL in which they differ
 *
 * The mark "{now}" stands for the text of the fragment `now`, and "{later {4}}"
 * for that of `later`, with "{4}" instead of each "{it}".  A fragment's text
 * may contain marks, too.  Marks of parameters, {0} to {9}, are left to
 * statement.c.
 */
#ifndef LK_TEMPLATE_H
#define LK_TEMPLATE_H

#include <stdio.h>

#include "db/driver.h"

#define LK_FRAGMENT_LISTS 7

/* Lists of fragments.  The first list that has a name counts; a list may be
 * NULL. */
struct lk_fragments {
    const sqlock_fragment *lists[LK_FRAGMENT_LISTS];
};

/* Write a template with its fragments.  Return 0, or SQLOCK_EINVAL if a name is
 * in no list, a fragment contains itself, or "{it}" is in no fragment.  Errors
 * of the stream are not reported. */
int lk_template_write(FILE *out, const char *text,
                      const struct lk_fragments *fragments);

#endif
