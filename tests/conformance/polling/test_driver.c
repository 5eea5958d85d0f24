/*
 * test_driver.c - an application's own driver that is built on PostgreSQL's: it
 * uses the connections and values of that driver, under another scheme and
 * without a wait queue
 */
#include "suite.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SCHEME "cockroach"

static const sqlock_driver *base;
static sqlock_driver driver;
static sqlock_dialect dialect;

/* Return a URL with PostgreSQL's scheme in place of SCHEME; NULL: no memory.
 * The caller frees it. */
static char *to_base(const char *url)
{
    char *text = NULL;

    if (asprintf(&text, "postgresql%s", url + strlen(SCHEME)) < 0)
        return NULL;
    return text;
}

static int check_url(const char *url, sqlock_error *err)
{
    char *text = to_base(url);
    int rc = text == NULL ? SQLOCK_ENOMEM : base->check_url(text, err);

    free(text);
    return rc;
}

static int resolve_url(const char *url, char **out, sqlock_error *err)
{
    (void)err;
    *out = to_base(url);
    return *out == NULL ? SQLOCK_ENOMEM : 0;
}

static void install(void)
{
    sqlock_error err = {0};

    if (base != NULL)
        return;
    base = sqlock_driver_named("postgres");
    assert_non_null(base);
    dialect = *base->dialect;
    dialect.overrides = base->polling;
    dialect.stale_sessions.text = NULL;
    driver = *base;
    driver.name = "cockroach";
    driver.schemes = SCHEME;
    driver.dialect = &dialect;
    driver.wait_queue = NULL;
    driver.polling = NULL;
    driver.check_url = check_url;
    driver.resolve_url = resolve_url;
    assert_lock_ok(sqlock_driver_register(&driver, &err), &err);
    assert_ptr_equal(sqlock_driver_named("cockroach"), &driver);
}

/* Return the fixture's URL with SCHEME as its scheme.  The caller frees it. */
static char *to_ours(const char *url)
{
    char *text = NULL;

    assert_true(asprintf(&text, SCHEME "%s", strchr(url, ':')) > 0);
    return text;
}

static void test_a_driver_built_on_another_excludes(void **state)
{
    struct fixture *f = *state;
    sqlock_registry *registry;
    sqlock_lock *ours;
    sqlock_lock *theirs = lock_obtain(f->b, f->name);
    int64_t token;
    char *url;

    install();
    url = to_ours(f->url);
    registry = fixture_registry_at(f, url, NULL);
    ours = lock_obtain(registry, f->name);
    lock_take(ours, 0);
    token = sqlock_token(ours);
    assert_fails(SQLOCK_EBUSY, sqlock_acquire(theirs, 0, NULL, &f->err));
    lock_give(ours);
    lock_take(theirs, 400);
    if (f->layout == SQLOCK_LAYOUT_SQLOCK)
        assert_less(token, sqlock_token(theirs));
    /* This waits until the lease of `theirs` is over. */
    assert_ok(sqlock_acquire(ours, 60000, NULL, &f->err));
    lock_give(ours);
    assert_int_not_equal(sqlock_release(theirs, NULL), 0);
    lock_drop(theirs);
    lock_drop(ours);
    registry_end(registry);
    free(url);
}

static void test_its_url_is_checked_by_the_base(void **state)
{
    sqlock_error err = {0};
    sqlock_registry *registry = NULL;

    (void)state;
    install();
    assert_code(
        SQLOCK_EINVAL,
        sqlock_registry_open(&registry, SCHEME "://h/d?no_such=1", NULL, &err),
        &err);
    assert_null(sqlock_driver_named("no such driver"));
    assert_null(sqlock_driver_named(NULL));
}

static const struct test tests[] = {
    TEST_ON(test_a_driver_built_on_another_excludes, ON_POSTGRES, IN_ALL),
    TEST_ON(test_its_url_is_checked_by_the_base, ON_POSTGRES, IN_SQLOCK),
};
const struct topic topic_driver = TOPIC(tests);
