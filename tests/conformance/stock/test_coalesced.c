/*
 * test_coalesced.c - a thread that is cancelled while it sells for others
 * (counter.h)
 */
#include "counter.h"

static void *call_until_cancelled(void *context)
{
    (void)counter_call(context);
    pthread_testcancel();
    return NULL;
}

/* A thread that is cancelled while it leads answers its round, and makes
 * another thread the leader. */
TEST(test_a_leader_that_dies_hands_over)
{
    struct caller first = {.quantity = 1};
    struct worker leader = {.context = &first};
    struct worker followers[3];
    struct caller callers[3] = {
        {.quantity = 2}, {.quantity = 3}, {.quantity = 4}};
    struct counter counter;
    void *ended = NULL;

    counter_open(&counter, f, 10);
    assert_int_equal(
        pthread_create(&leader.thread, NULL, call_until_cancelled, &leader), 0);
    assert_becomes_true(atomic_load(&counter.is_held), PATIENCE_MS);
    for (int i = 0; i < 3; i++) {
        worker_start(&followers[i], counter_call, &callers[i]);
        assert_becomes_true(worker_is_parked(&followers[i]), PATIENCE_MS);
    }
    assert_int_equal(pthread_cancel(leader.thread), 0);
    (void)sem_post(&counter.go);
    assert_int_equal(pthread_join(leader.thread, &ended), 0);
    assert_ptr_equal(ended, PTHREAD_CANCELED);
    for (int i = 0; i < 3; i++) {
        worker_join(&followers[i]);
        assert_int_equal(callers[i].rc, 0);
    }
    assert_int_equal(first.rc, 0);
    assert_int_equal(callers[2].answer.left, 0);
    assert_int_equal(shop_there(f, counter.item), 0);
    counter_close(&counter);
}
