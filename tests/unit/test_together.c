/*
 * test_together.c - claims and releases that wait for a place are sent in one
 * statement, and each has an outcome of its own
 *
 * Without SQLite's driver the suite is empty.
 */
#include "together.h"

#ifdef SQLOCK_WITH_SQLITE

#include <string.h>

#define SCENE_TEST(name_)                                                      \
    TEST_WITH(name_, .open = open_scene, .close = close_scene)

SCENE_TEST(test_each_has_its_own_row)
{
    add_and_begin(stage, CLAIM, FIRST);
    add_and_begin(stage, CLAIM, '3');
    add_and_begin(stage, RELEASE, '5');
    add_and_begin(stage, CLAIM, '1');
    add_and_begin(stage, RELEASE, '4');
    add_and_begin(stage, CLAIM, '2');
    end_all(stage);
    assert_string_equal(sent, "claim 0, claims 123, releases 45, ");
    for (size_t i = 0; i < stage->count; i++)
        expect_done(&stage->members[i]);
}
SCENE_TEST(test_those_not_free_are_told_alone)
{
    claim_to(stage, '4');
    atomic_store(&taken, '3');
    end_all(stage);
    assert_string_equal(sent, "claim 0, claims 1234, ");
    for (size_t i = 0; i < stage->count; i++)
        if (i == 3)
            expect_nothing(&stage->members[i]);
        else
            expect_done(&stage->members[i]);
}

/* A lease that is released late has the key of the one after it; one that may
 * be a share has its place among the others. */
SCENE_TEST(test_a_key_is_sent_once)
{
    struct member *shared;
    int64_t done = 0;

    add_and_begin(stage, RELEASE, FIRST);
    add_and_begin(stage, RELEASE, '2');
    shared = add(stage, RELEASE, '1');
    shared->item.lease.believed.may_be_share = true;
    begin(shared);
    add_and_begin(stage, RELEASE, '2');
    end_all(stage);
    assert_string_equal(sent, "release 0, releases 12, ");
    expect_done(&stage->members[2]);
    for (size_t i = 1; i <= 3; i += 2) {
        assert_lock_ok(stage->members[i].rc, &stage->members[i].worker.err);
        done += stage->members[i].affected;
    }
    assert_int_equal(done, 1);
}

SCENE_TEST(test_a_statement_is_about_sixty_four_at_most)
{
    for (size_t i = 0; i < MEMBERS; i++)
        add_and_begin(stage, CLAIM, KEYS[i]);
    end_all(stage);
    for (size_t i = 0; i < MEMBERS; i++)
        expect_done(&stage->members[i]);
    assert_int_equal(strchr(strstr(sent, "claims "), ',') -
                         (strstr(sent, "claims ") + strlen("claims ")),
                     64);
}

/* The refusal may be due to one of them. */
SCENE_TEST(test_after_a_refusal_each_goes_on_alone)
{
    claim_to(stage, '2');
    atomic_store(&many_give, SQLOCK_EDATABASE);
    end_all(stage);
    assert_string_equal(sent, "claim 0, claims 12, ");
    for (size_t i = 1; i < stage->count; i++) {
        expect_nothing(&stage->members[i]);
        assert_int_equal(stage->members[i].batch.items[0].lease.believed.cap_ms,
                         0);
    }
}

/* The table is locked while the first statement for several is sent. */
static void meet_a_locked_table(struct scene *scene, sqlock_statement_kind kind,
                                int rc)
{
    add_and_begin(scene, kind, FIRST);
    add_and_begin(scene, kind, '1');
    add_and_begin(scene, kind, '2');
    atomic_store(&many_times, 1);
    atomic_store(&many_give, SQLOCK_EBUSY);
    end_all(scene);
    for (size_t i = 1; i < scene->count; i++)
        assert_code(rc, scene->members[i].rc, &scene->members[i].worker.err);
}

SCENE_TEST(test_releases_outlast_a_locked_table)
{
    meet_a_locked_table(stage, RELEASE, 0);
    assert_string_equal(sent, "release 0, releases 12, releases 12, ");
}

SCENE_TEST(test_claims_do_not_wait_for_a_locked_table)
{
    meet_a_locked_table(stage, CLAIM, SQLOCK_EBUSY);
    assert_string_equal(sent, "claim 0, claims 12, ");
}

/* The statement may yet arrive, and shorten the lease of each. */
SCENE_TEST(test_each_is_in_doubt_without_an_answer)
{
    claim_to(stage, '2');
    atomic_store(&many_give, SQLOCK_EUNCERTAIN);
    end_all(stage);
    for (size_t i = 1; i < stage->count; i++) {
        const struct member *member = &stage->members[i];

        assert_code(SQLOCK_EUNCERTAIN, member->rc, &member->worker.err);
        assert_int_not_equal(member->batch.sent_boot_ns, 0);
        assert_true(member->run.was_uncertain);
        assert_int_equal(member->item.lease.believed.cap_ms, TTL_MS);
    }
}

/* Those who are patient get the time of a statement from then on. */
SCENE_TEST(test_each_is_told_that_the_database_is_full)
{
    stage->store.options.statement_timeout_ms = 2000;
    add_and_begin(stage, RELEASE, FIRST);
    for (int key = '1'; key <= '2'; key++) {
        struct member *member = add(stage, RELEASE, (char)key);

        member->run.patient_until_ns = check_deadline_ns(PATIENCE_MS);
        member->batch.deadline_ns = 1;
        begin(member);
    }
    atomic_store(&many_give, SQLOCK_ERESOURCE);
    end_all(stage);
    assert_contains(sent, "release 0, releases 12, ");
    for (size_t i = 1; i < stage->count; i++) {
        const struct member *member = &stage->members[i];

        assert_code(SQLOCK_ERESOURCE, member->rc, &member->worker.err);
        assert_true(member->batch.deadline_ns > 1);
        assert_true(member->run.deadline_ns > 1);
    }
}

/* Statements that began before a call was asked for say nothing of it; one that
 * is asked for just now is sent. */
SCENE_TEST(test_an_outage_is_shared_by_those_asked_before)
{
    static const struct {
        int64_t asked_ns[2];
        int code;
    } rows[] = {
        {{10, 20}, SQLOCK_EUNREACHABLE},
        {{10, 40}, 0},
        {{40, 10}, 0},
        {{10, 0}, 0},
        {{0, 10}, 0},
    };

    for (size_t row = 0; row < sizeof rows / sizeof *rows; row++) {
        atomic_store(&executed, 0);
        atomic_store(&is_held, true);
        /* An answer would end the outage. */
        atomic_store(&first_gives, SQLOCK_EDATABASE);
        atomic_store(&stage->store.in_vain_since_ns, 0);
        memset(stage->members, 0, sizeof stage->members);
        stage->count = 0;
        add_and_begin(stage, CLAIM, FIRST);
        for (size_t i = 0; i < 2; i++) {
            struct member *member = add(stage, CLAIM, KEYS[i + 1]);

            member->run.asked_ns = rows[row].asked_ns[i];
            begin(member);
        }
        atomic_store(&stage->store.in_vain_since_ns, 30);
        end_all(stage);
        for (size_t i = 1; i <= 2; i++)
            assert_code(rows[row].code, stage->members[i].rc,
                        &stage->members[i].worker.err);
    }
}

SCENE_TEST(test_whose_time_is_over_leaves_the_others)
{
    struct member *late;

    add_and_begin(stage, CLAIM, FIRST);
    for (int key = '1'; key <= '3'; key++) {
        late = add(stage, CLAIM, key == '1' ? 'a' : key == '2' ? 'b' : 'c');
        late->batch.deadline_ns = check_deadline_ns(1);
        run_to_its_end(late);
        assert_code(SQLOCK_ERESOURCE, late->rc, &late->worker.err);
        add_and_begin(stage, CLAIM, (char)key);
    }
    end_all(stage);
    assert_string_equal(sent, "claim 0, claims 123, ");
}

/* Its deadline begins when it has a connection. */
SCENE_TEST(test_whoever_was_patient_goes_on_alone)
{
    struct member *patient;

    add_and_begin(stage, RELEASE, FIRST);
    patient = add(stage, RELEASE, '1');
    patient->batch.deadline_ns = 1;
    patient->run.patient_until_ns = check_deadline_ns(1);
    run_to_its_end(patient);
    expect_done(patient);
    end_all(stage);
    assert_string_equal(sent, "release 0, release 1, ");
}

SCENE_TEST(test_nobody_waits_for_a_statement_that_hangs)
{
    stage->store.together.places = 2;
    add_and_begin(stage, CLAIM, FIRST);
    for (int key = '1'; key <= '4'; key++)
        run_to_its_end(add(stage, CLAIM, (char)key));
    end_all(stage);
    for (size_t i = 0; i < stage->count; i++)
        expect_done(&stage->members[i]);
}

static uint64_t waits(struct scene *scene)
{
    uint64_t count = 0;

    for (size_t i = 0; i < SQLOCK_STATS_BUCKETS; i++)
        count += atomic_load(&scene->store.db.stats.pool_wait.buckets[i]);
    return count;
}

/* So that statements are about many: but not if there is none to wait for. */
SCENE_TEST(test_a_crowd_waits_while_places_are_free)
{
    stage->store.together.places = 2;
    stage->store.together.members = 2; /* others */
    add_and_begin(stage, CLAIM, FIRST);
    assert_int_equal(waits(stage), 1); /* for a connection */
    run_to_its_end(add(stage, CLAIM, '1'));
    assert_int_equal(waits(stage), 3);
    stage->store.together.members -= 2;
    end_all(stage);
}

SCENE_TEST(test_nobody_waits_where_no_rows_are_returned)
{
    add_and_begin(stage, CLAIM, FIRST);
    atomic_store(&stage->store.db.pool.returns_no_rows, true);
    run_to_its_end(add(stage, CLAIM, '1'));
    end_all(stage);
    assert_string_equal(sent, "claim 0, claim 1, ");
}

#endif
