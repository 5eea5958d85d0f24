/*
 * main.c - a server that forgets its last commits when it is killed grants
 * nothing until the leases among them are over; without what tells it of the
 * crash it does, and two hold a lock; one that waits for its disk grants at
 * once
 *
 *     bash tests/faults/crash/with.sh build/tests/crash
 */
#include <stdlib.h>

#include "crash.h"

void user_begin(struct user *user, const char *url, const char *prefix)
{
    sqlock_options options = SQLOCK_OPTIONS_INIT;
    sqlock_error err = {0};

    options.table_prefix = prefix;
    options.ttl_ms = TTL_MS;
    assert_lock_ok(sqlock_registry_open(&user->registry, url, &options, &err),
                   &err);
    assert_lock_ok(sqlock_obtain(&user->lock, user->registry, "lost", &err),
                   &err);
}

void user_end(struct user *user)
{
    (void)!sqlock_release(user->lock, NULL);
    (void)!sqlock_drop(user->lock, NULL);
    (void)!sqlock_registry_close(user->registry, NULL);
}

void user_use(const char *url, const char *prefix)
{
    struct user user;
    sqlock_error err = {0};

    user_begin(&user, url, prefix);
    assert_lock_ok(sqlock_acquire(user.lock, PATIENCE_MS, NULL, &err), &err);
    assert_lock_ok(sqlock_release(user.lock, &err), &err);
    user_end(&user);
}

void check_that_two_hold_it(const struct user *before, const char *url,
                            const char *prefix)
{
    struct user after;
    sqlock_error err = {0};

    user_begin(&after, url, prefix);
    assert_lock_ok(sqlock_acquire(after.lock, 0, NULL, &err), &err);
    assert_true(sqlock_remaining_ms(before->lock) > 0);
    user_end(&after);
}

void check_that_nobody_gets_it(const struct user *before, const char *url,
                               const char *prefix)
{
    int64_t token = sqlock_token(before->lock);
    struct user after;
    sqlock_error err = {0};

    user_begin(&after, url, prefix);
    assert_code(SQLOCK_EBUSY, sqlock_acquire(after.lock, 0, NULL, &err), &err);
    assert_contains(err.message, "forgotten");
    assert_true(sqlock_remaining_ms(before->lock) > 0);
    assert_lock_ok(sqlock_acquire(after.lock, TTL_MS + PATIENCE_MS, NULL, &err),
                   &err);
    assert_int_equal(sqlock_remaining_ms(before->lock), 0);
    assert_true(token > 0 && sqlock_token(after.lock) > token);
    user_end(&after);
}

void crash_again(void (*crash)(void))
{
    const char *text = getenv("SQLOCK_TEST_ROUNDS");
    long rounds = text != NULL ? strtol(text, NULL, 10) : 1;

    for (long i = 0; i < rounds; i++)
        crash();
    print_message("%ld crashes, each of which forgot a lease: 0 overlaps and a "
                  "higher token, and 1 overlap in each without what tells of "
                  "them\n",
                  rounds);
}

int main(int argc, char **argv)
{
    static const struct {
        const struct database *database;
        const struct group *group;
    } all[] = {{&databases[0], &postgres_group},
               {&databases[1], &mariadb_group}};
    static const struct program program = {
        .name = "crash", .about = "servers that forget their last commits"};
    int failed = 0;
    int ran = 0;

    program_read(&program, argc, argv);
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (program_lists() || database_url(all[i].database) != NULL) {
            failed += group_run(all[i].group);
            ran++;
        }
    if (ran == 0)
        print_message("skipped: no servers for crash here\n");
    return ran == 0 ? 77 : failed != 0;
}
