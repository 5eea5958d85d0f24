/*
 * nemesis.c - kill and pause nodes under the load (see galera.h)
 */
#include "galera.h"

#include <signal.h>
#include <stdlib.h>

/* The other nodes exclude a silent node after 2 to 4 s
 * (tools/servers/galera_node.sh): a short pause ends before that, a long one
 * after it. */
enum fault { KILL, SHORT_PAUSE, LONG_PAUSE, FAULTS };
#define SHORT_PAUSE_MS 1000
#define LONG_PAUSE_MS 6000

#define ENOUGH 20 /* grants to wait for, before a fault and after */

static void await_grants(void)
{
    unsigned before = load_grants();

    if (wait_until(load_grants() >= before + ENOUGH, 4 * PATIENCE_MS))
        return;
    for (unsigned i = 1; i <= NODES; i++)
        node_print(i);
    load_print();
    fail_msg("%u grants and no more", load_grants());
}

static void rest(int64_t ms)
{
    int64_t end = check_deadline_ns(ms);

    while (check_pause(end))
        continue;
}

static void pause_node(pid_t pid, int64_t ms)
{
    assert_int_equal(kill(pid, SIGSTOP), 0);
    rest(ms);
    assert_int_equal(kill(pid, SIGCONT), 0);
}

static void strike(unsigned node, enum fault fault)
{
    pid_t pid = node_pid(node);

    assert_true(pid > 1);
    switch (fault) {
    case KILL:
        assert_int_equal(kill(pid, SIGKILL), 0);
        await_grants(); /* at the two nodes that are left */
        assert_becomes_true(node_pid(node) > 1 && node_pid(node) != pid,
                            4 * PATIENCE_MS);
        break;
    case SHORT_PAUSE:
        pause_node(pid, SHORT_PAUSE_MS);
        break;
    default:
        pause_node(pid, LONG_PAUSE_MS);
        break;
    }
}

void test_F64_nodes_are_killed_and_paused(void **state)
{
    static const char *const words[FAULTS] = {"killed", "paused for 1 s",
                                              "paused for 6 s"};
    unsigned rounds = check_scale(FAULTS, 50);

    (void)state;
    if (getenv("SQLOCK_TEST_GALERA_1_PIDFILE") == NULL)
        skip_or_fail("the nodes are not ours to kill");
    load_start();
    for (unsigned round = 0; round < rounds; round++) {
        unsigned node = 1 + round % NODES;
        enum fault fault = (round / NODES + round) % FAULTS;

        await_grants();
        strike(node, fault);
        for (unsigned i = 1; i <= NODES; i++)
            node_await(i, NODES);
        await_grants();
        print_message("round %u: node %u %s, %u grants so far\n", round + 1,
                      node, words[fault], load_grants());
    }
    load_end();
}
