/*
 * contract.c - see contract.h
 */
#include "contract.h"

#include <stdatomic.h>
#include <stdio.h>

#include "tap.h"

#define STATEMENT_MS (60 * SLOWNESS)
#define TRIES 3

/* Results of a driver that fails.  Only after the last one was the statement
 * carried out. */
static const int failures[] = {
    SQLOCK_EUNREACHABLE, SQLOCK_ERETRY,    SQLOCK_EBUSY,      SQLOCK_ERESOURCE,
    SQLOCK_ECANCELED,    SQLOCK_EREADONLY, SQLOCK_EACCESS,    SQLOCK_ESCHEMA,
    SQLOCK_EDATABASE,    SQLOCK_ENOMEM,    SQLOCK_EUNCERTAIN,
};
#define FAILURES (sizeof failures / sizeof *failures)

/* The driver calls, other than rollback and abort, that fail while a function
 * of the library is checked. */
enum extent {
    /* each statement, but not open, begin and commit; checked first, while the
     * registry has not learnt anything about the database */
    STATEMENTS,
    FIRST, /* the first call */
    EACH,  /* each call */
    EXTENTS
};
static const char *const extents[EXTENTS] = {"each statement", "the first call",
                                             "each call"};

/* The failure that is in force.  Threads of the library read it, too, because
 * they resolve in the background what an earlier call left in doubt. */
static struct {
    atomic_int code;
    _Atomic(enum extent) extent;
    atomic_uint seen; /* calls that could fail */
} now;

static bool is_to_fail(const struct tap_event *event)
{
    if (event->call == TAP_ROLLBACK || event->call == TAP_ABORT)
        return false;
    if (now.extent == STATEMENTS)
        return event->call == TAP_EXECUTE;
    return atomic_fetch_add(&now.seen, 1) == 0 || now.extent == EACH;
}

static int before(void *context, const struct tap_event *event)
{
    (void)context;
    if (now.code == SQLOCK_EUNCERTAIN)
        return 0;
    return is_to_fail(event) ? now.code : 0;
}

/* Replace the result of a driver call by EUNCERTAIN, except that of open and
 * begin, which leave nothing in doubt. */
static int after(void *context, const struct tap_event *event, int rc)
{
    (void)context;
    if (now.code != SQLOCK_EUNCERTAIN || rc < 0 || event->call == TAP_OPEN ||
        event->call == TAP_BEGIN || !is_to_fail(event))
        return rc;
    return SQLOCK_EUNCERTAIN;
}

static const char *name_of(int code)
{
    static const char *const names[] = {
#define NAMED(name, value, text) [-(value)] = #name,
        SQLOCK_ERRORS(NAMED)
#undef NAMED
    };

    return -code < (int)(sizeof names / sizeof *names) ? names[-code] : "?";
}

static bool is_listed(const struct contract_call *call, int rc)
{
    return rc == 0 ||
           (rc < 0 && rc > -32 && (call->codes >> -rc & UINT32_C(1)) != 0);
}

/* Make one call with one failure.  Return whether its result is in its list; if
 * not, write a message to `breach`. */
static bool try_call(struct contract *c, const struct contract_call *call,
                     char *breach, size_t size)
{
    sqlock_error err = {0};
    int given_back = 0;
    int rc;

    for (size_t i = 0; i < 2; i++) {
        fixture_next(c->f);
        c->locks[i] = lock_obtain(c->registry, c->f->name);
        if (call->is_held)
            assert_becomes_true(lock_try(c->locks[i], 0, 0, &c->f->err) == 0,
                                4 * PATIENCE_MS); /* STATEMENT_MS is short */
    }
    if (call->prepare != NULL)
        call->prepare(c);
    atomic_store(&now.seen, 0);
    tap_hooks(before, after, NULL);
    rc = call->call(c, &err);
    tap_hooks(NULL, NULL, NULL);
    if (call->finish != NULL)
        call->finish(c);
    /* The result does not matter: a lease that was not released expires. */
    for (size_t i = 0; i < 2; i++) {
        if (sqlock_hold_count(c->locks[i]) > 0)
            given_back = sqlock_release(c->locks[i], NULL);
        (void)sqlock_drop(c->locks[i], NULL);
    }
    (void)given_back;
    if (is_listed(call, rc) && (rc == 0 || check_one_line(err.message)))
        return true;
    (void)snprintf(breach, size, "%s answered %s where %s gave %s: %s",
                   call->name, rc < 0 ? name_of(rc) : "more than 0",
                   extents[now.extent], name_of(now.code), err.message);
    return false;
}

/* Return whether the call returns a listed code in one of several tries: on a
 * busy machine a statement may exceed its time limit, which is a failure, too,
 * but a rare one. */
static bool keeps_to_list(struct contract *c, const struct contract_call *call)
{
    char breach[600];

    for (int i = 0; i < TRIES; i++)
        if (try_call(c, call, breach, sizeof breach))
            return true;
    print_error("%s\n", breach);
    return false;
}

static unsigned check_call(struct fixture *f, const struct contract_call *call)
{
    struct contract c = {.f = f, .options = fixture_options(f)};
    unsigned breaches = 0;

    tap_install();
    (void)tap_url(c.url, f->url);
    c.options.statement_timeout_ms = STATEMENT_MS;
    c.options.connect_timeout_ms = 200 * SLOWNESS;
    assert_becomes_true(
        sqlock_registry_open(&c.registry, c.url, &c.options, &f->err) == 0,
        PATIENCE_MS);
    for (int extent = STATEMENTS; extent < EXTENTS; extent++)
        for (size_t i = 0; i < FAILURES; i++) {
            now.extent = (enum extent)extent;
            now.code = failures[i];
            if (!keeps_to_list(&c, call))
                breaches++;
        }
    (void)sqlock_registry_close(c.registry, NULL);
    return breaches;
}

void contract_check(struct fixture *f, const struct contract_call *calls,
                    size_t count)
{
    unsigned breaches = 0;

    for (size_t i = 0; i < count; i++)
        if ((calls[i].databases & f->database->bit) != 0)
            breaches += check_call(f, &calls[i]);
    assert_int_equal(breaches, 0);
}
