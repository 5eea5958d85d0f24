/*
 * fork.c - a registry works only in the process that opened it, and a child
 * that ends does not disturb it (F17)
 */
#include "conformance.h"

#include <sys/wait.h>
#include <unistd.h>

#include "sqlock/async.h"
#include "sqlock/leader.h"
#include "sqlock/lease.h"
#include "sqlock/many.h"
#include "sqlock/operator.h"
#include "sqlock/shared.h"
#include "support/tap.h"

struct scene {
    struct fixture *fixture;
    sqlock_registry *registry;
    sqlock_lock *held;
    sqlock_lock *free_one;
    sqlock_request *request;
};

/* Run body in a child process; fail the test unless it returns 0. */
static void in_child(int (*body)(struct scene *), struct scene *scene)
{
    int status = -1;
    pid_t parent = getpid();
    pid_t pid = fork();

    assert_true(pid >= 0);
    if (pid == 0) {
        check_end_with(parent);
        _exit(body(scene));
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    if (!WIFEXITED(status))
        fail_msg("the child ended with status %d", status);
    if (WEXITSTATUS(status) != 0)
        fail_msg("step %d in the child went wrong", WEXITSTATUS(status));
}

static int ask_locks(struct scene *s)
{
    sqlock_error err = {0};
    sqlock_lock *lock = (sqlock_lock *)1;

    if (sqlock_obtain(&lock, s->registry, "x", &err) != SQLOCK_EFORK ||
        lock != NULL || !check_one_line(err.message))
        return 1;
    if (sqlock_acquire(s->free_one, 0, NULL, &err) != SQLOCK_EFORK)
        return 2;
    if (sqlock_acquire(s->held, SQLOCK_FOREVER, NULL, &err) != SQLOCK_EFORK)
        return 3;
    if (sqlock_renew(s->held, 0, &err) != SQLOCK_EFORK)
        return 4;
    if (sqlock_release(s->held, &err) != SQLOCK_EFORK)
        return 5;
    if (sqlock_drop(s->free_one, &err) != SQLOCK_EFORK)
        return 6;
    if (sqlock_drop(s->held, NULL) != SQLOCK_EFORK)
        return 7;
    if (sqlock_is_held(s->held) || sqlock_remaining_ms(s->held) != 0)
        return 8;
    return 0;
}

static int ask_sharing(struct scene *s)
{
    sqlock_acquire_options options = SQLOCK_ACQUIRE_INIT;
    sqlock_info *seen = NULL;

    options.mode = SQLOCK_SHARED;
    for (options.permits = 0; options.permits <= 2; options.permits += 2)
        if (sqlock_acquire(s->free_one, 0, &options, NULL) != SQLOCK_EFORK)
            return 31;
    if (sqlock_downgrade(s->held, NULL) != SQLOCK_EFORK)
        return 32;
    if (sqlock_publish(s->held, "text", NULL) != SQLOCK_EFORK)
        return 33;
    if (sqlock_observe(s->registry, "x", SQLOCK_FOREVER, 0, &seen, NULL) !=
            SQLOCK_EFORK ||
        seen != NULL)
        return 34;
    if (sqlock_set_permits(s->registry, "x", 2, NULL) != SQLOCK_EFORK)
        return 35;
    return 0;
}

static int ask_many(struct scene *s)
{
    char id[SQLOCK_LEASE_ID_SIZE];
    int fd = -1;
    sqlock_lock *locks[] = {s->held, s->free_one};
    int results[2];

    if (sqlock_acquire_many(locks, 2, 0, NULL, results, NULL) != SQLOCK_EFORK)
        return 41;
    if (sqlock_renew_many(locks, 2, results, NULL) != SQLOCK_EFORK)
        return 42;
    if (sqlock_release_many(locks, 2, results, NULL) != SQLOCK_EFORK)
        return 43;
    if (sqlock_cancel(s->held, NULL) != SQLOCK_EFORK)
        return 44;
    if (sqlock_lost_fd(&fd, s->held, NULL) != SQLOCK_EFORK)
        return 45;
    if (sqlock_lease_id(id, s->held, 60000, NULL) != SQLOCK_EFORK)
        return 46;
    return 0;
}

static int ask_registry(struct scene *s)
{
    sqlock_break_options expected = SQLOCK_BREAK_INIT;
    sqlock_error err = {0};
    sqlock_info *rows = NULL;
    size_t count = 0;

    expected.token = 1;
    expected.client_id = "x";
    if (list_all(s->registry, &rows, &count, &err) != SQLOCK_EFORK)
        return 11;
    if (sqlock_show(s->registry, "x", &rows, &err) != SQLOCK_EFORK)
        return 12;
    if (sqlock_break(s->registry, "x", &expected, &err) != SQLOCK_EFORK)
        return 13;
    if (sqlock_reap(s->registry, 0, NULL, &err) != SQLOCK_EFORK)
        return 14;
    if (sqlock_registry_close(s->registry, &err) != SQLOCK_EFORK ||
        !check_one_line(err.message))
        return 15;
    return 0;
}

static int ask_everything(struct scene *s)
{
    int (*const all[])(struct scene *) = {ask_locks, ask_sharing, ask_many,
                                          ask_registry};
    int step = 0;

    for (size_t i = 0; i < sizeof all / sizeof *all && step == 0; i++)
        step = all[i](s);
    return step;
}

/* The child opens a registry of its own, which is another owner: the lock that
 * the parent holds is busy, and the free lock can be acquired. */
static int open_another(struct scene *s)
{
    sqlock_options options = fixture_options(s->fixture);
    sqlock_registry *registry;
    sqlock_lock *lock;

    if (sqlock_registry_open(&registry, s->fixture->url, &options, NULL) < 0)
        return 21;
    if (sqlock_obtain(&lock, registry, sqlock_name(s->held), NULL) < 0)
        return 22;
    if (sqlock_acquire(lock, 0, NULL, NULL) != SQLOCK_EBUSY)
        return 23;
    if (sqlock_obtain(&lock, registry, sqlock_name(s->free_one), NULL) < 0)
        return 24;
    if (sqlock_acquire(lock, 0, NULL, NULL) != 0)
        return 25;
    if (sqlock_release(lock, NULL) != 0)
        return 26;
    return sqlock_registry_close(registry, NULL) == 0 ? 0 : 27;
}

static int do_nothing(struct scene *s)
{
    (void)s;
    return 0;
}

/* Set the scene: a registry through the tap, a held lock and a free one. */
static void set(struct scene *scene, struct fixture *f)
{
    scene->fixture = f;
    scene->registry = fixture_tapped(f, NULL);
    scene->held = lock_obtain(scene->registry, f->name);
    fixture_next(f);
    scene->free_one = lock_obtain(scene->registry, f->name);
    lock_take(scene->held, 0);
    tap_reset();
}

/* Assert that the parent's connection and lock are as set() made them, and
 * close the registry. */
static void strike(struct scene *scene)
{
    struct fixture *f = scene->fixture;

    assert_true(sqlock_is_held(scene->held));
    assert_ok(sqlock_renew(scene->held, 0, &f->err));
    lock_take(scene->free_one, 0);
    lock_give(scene->free_one);
    lock_give(scene->held);
    assert_int_equal(tap_count(TAP_OPEN), 0);
    registry_end(scene->registry);
}

TEST(test_F17_every_call_in_a_child_is_refused)
{
    struct scene scene;

    set(&scene, f);
    in_child(ask_everything, &scene);
    strike(&scene);
}

TEST(test_F17_a_child_that_ends_disturbs_nothing)
{
    struct scene scene;
    int i;

    set(&scene, f);
    for (i = 0; i < 3; i++)
        in_child(do_nothing, &scene);
    strike(&scene);
}

TEST_ON(test_F17_a_child_opens_a_registry_of_its_own, ON_SERVERS, IN_ALL)
{
    struct scene scene;

    set(&scene, f);
    if (CHILD_MAY_OPEN)
        in_child(open_another, &scene);
    strike(&scene);
}

/* SQLite records a process's file locks in memory.  A child inherits this
 * record, but not the file locks, so a registry of the child would exclude
 * nobody.  Opening one is refused. */
static int be_refused(struct scene *s)
{
    sqlock_options options = fixture_options(s->fixture);
    sqlock_registry *registry;

    return sqlock_registry_open(&registry, s->fixture->url, &options, NULL) ==
                   SQLOCK_EFORK
               ? 0
               : 31;
}

TEST_ON(test_F17_a_child_opens_no_file_that_its_parent_has, ON_SQLITE,
        IN_SQLOCK)
{
    struct scene scene;

    set(&scene, f);
    in_child(be_refused, &scene);
    strike(&scene);
}

static int ask_request(struct scene *s)
{
    sqlock_request *another = NULL;

    return sqlock_request_acquire(&another, s->free_one, 0, NULL, 0, NULL) !=
                       SQLOCK_EFORK ||
                   sqlock_request_release(&another, s->held, 0, NULL) !=
                       SQLOCK_EFORK ||
                   sqlock_request_status(s->request) != SQLOCK_REQUEST_FREE ||
                   sqlock_request_finish(s->request, NULL) != SQLOCK_EFORK ||
                   sqlock_request_abandon(s->request, NULL) != SQLOCK_EFORK
               ? 21
               : 0;
}

TEST(test_F17_a_child_has_no_requests)
{
    struct scene scene;

    set(&scene, f);
    assert_ok(sqlock_request_acquire(&scene.request, scene.free_one, 0, NULL, 0,
                                     &f->err));
    assert_becomes_true(sqlock_request_status(scene.request) ==
                            SQLOCK_REQUEST_HELD,
                        PATIENCE_MS);
    in_child(ask_request, &scene);
    assert_ok(sqlock_request_finish(scene.request, &f->err));
    lock_give(scene.free_one);
    strike(&scene);
}
