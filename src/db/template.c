/*
 * template.c - write a template with its fragments
 *
 * The marks in an argument are resolved where the argument was written, so an
 * "{it}" in it is the argument of the fragment around.
 */
#include "db/template.h"

#include <stdbool.h>
#include <string.h>

#define DEEPEST 32 /* levels; with more, a fragment contains itself */

struct text {
    const char *at;
    size_t length;
};

struct scope {
    const struct lk_fragments *fragments;
    struct text argument;
    const struct scope *outer; /* where the argument was written */
    int depth;
};

static int write_in(FILE *out, struct text text, const struct scope *scope);

/* Find the bytes between the '{' at the start of the text and its '}'.  Return
 * false if there is no such '}'. */
static bool find_mark(struct text text, struct text *mark)
{
    int depth = 0;

    for (size_t i = 0; i < text.length; i++) {
        depth += (text.at[i] == '{') - (text.at[i] == '}');
        if (depth == 0) {
            *mark = (struct text){.at = text.at + 1, .length = i - 1};
            return true;
        }
    }
    return false;
}

static bool is_name(struct text mark, const char *name)
{
    return strncmp(mark.at, name, mark.length) == 0 &&
           name[mark.length] == '\0';
}

static const char *find_fragment(const struct lk_fragments *fragments,
                                 struct text name)
{
    for (size_t i = 0; i < LK_FRAGMENT_LISTS; i++) {
        const sqlock_fragment *fragment = fragments->lists[i];

        for (; fragment != NULL && fragment->name != NULL; fragment++)
            if (is_name(name, fragment->name))
                return fragment->text;
    }
    return NULL;
}

/* Write the text for a mark, which is "it", "name" or "name argument". */
static int write_mark(FILE *out, struct text mark, const struct scope *scope)
{
    const char *blank = memchr(mark.at, ' ', mark.length);
    struct text name = mark;
    struct scope inner = {
        .fragments = scope->fragments,
        .outer = scope,
        .depth = scope->depth + 1,
    };
    const char *text;

    if (is_name(mark, "it"))
        return scope->outer == NULL
                   ? SQLOCK_EINVAL
                   : write_in(out, scope->argument, scope->outer);
    if (blank != NULL) {
        name.length = (size_t)(blank - mark.at);
        inner.argument.at = blank + 1;
        inner.argument.length = mark.length - name.length - 1;
    }
    text = find_fragment(scope->fragments, name);
    if (text == NULL || inner.depth > DEEPEST)
        return SQLOCK_EINVAL;
    return write_in(out, (struct text){.at = text, .length = strlen(text)},
                    &inner);
}

static bool is_parameter(struct text mark)
{
    return mark.length == 1 && mark.at[0] >= '0' && mark.at[0] <= '9';
}

static int write_in(FILE *out, struct text text, const struct scope *scope)
{
    int rc = 0;

    while (rc == 0 && text.length > 0) {
        struct text mark = {0};
        size_t passed = 1;

        if (*text.at != '{' || !find_mark(text, &mark) || mark.length == 0) {
            (void)fputc(*text.at, out);
        } else {
            passed = mark.length + 2;
            if (is_parameter(mark))
                (void)fwrite(text.at, 1, passed, out);
            else
                rc = write_mark(out, mark, scope);
        }
        text.at += passed;
        text.length -= passed;
    }
    return rc;
}

int lk_template_write(FILE *out, const char *text,
                      const struct lk_fragments *fragments)
{
    const struct scope scope = {.fragments = fragments};

    return write_in(out, (struct text){.at = text, .length = strlen(text)},
                    &scope);
}
