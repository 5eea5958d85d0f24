/*
 * cases.h - the functions of the cases
 */
#ifndef BENCH_CASES_H
#define BENCH_CASES_H

#include "bench.h"

#include <pthread.h>

#include "sqlock.h"

#define BENCH_PROGRAM_SIZE 4096
#define BENCH_REDIS "redis-server" /* the program */

/** Find the command that was built with this program, build/bin/sqlock beside
 *  build/tests/bench. */
int bench_find_program(char out[BENCH_PROGRAM_SIZE],
                       struct bench_failure *failure);

int floor_setup(void **state, const struct bench_target *target,
                struct bench_failure *failure);
void floor_teardown(void *state);
int floor_two_updates(void *state, unsigned client,
                      struct bench_failure *failure);
int floor_two_selects(void *state, unsigned client,
                      struct bench_failure *failure);

int lock_setup(void **state, const struct bench_target *target,
               struct bench_failure *failure);
int pooled_setup(void **state, const struct bench_target *target,
                 struct bench_failure *failure);
int shared_setup(void **state, const struct bench_target *target,
                 struct bench_failure *failure);
int permit_setup(void **state, const struct bench_target *target,
                 struct bench_failure *failure);
int readers_setup(void **state, const struct bench_target *target,
                  struct bench_failure *failure);
void lock_teardown(void *state);
int shared_pair(void *state, unsigned client, struct bench_failure *failure);
int permit_pair(void *state, unsigned client, struct bench_failure *failure);
int lock_pair(void *state, unsigned client, struct bench_failure *failure);
int fresh_pair(void *state, unsigned client, struct bench_failure *failure);
int lock_nested(void *state, unsigned client, struct bench_failure *failure);

int redis_always_setup(void **state, const struct bench_target *target,
                       struct bench_failure *failure);
int redis_everysec_setup(void **state, const struct bench_target *target,
                         struct bench_failure *failure);
void redis_teardown(void *state);
int redis_pair(void *state, unsigned client, struct bench_failure *failure);

/* As floor_setup(), but SQLite's connections wait by its own busy timeout;
 * those
   of naive_setup() also commit with its default, synchronous=FULL. */
int contend_setup(void **state, const struct bench_target *target,
                  struct bench_failure *failure);
int naive_setup(void **state, const struct bench_target *target,
                struct bench_failure *failure);

int renew_ones_setup(void **state, const struct bench_target *target,
                     struct bench_failure *failure);
int renew_many_setup(void **state, const struct bench_target *target,
                     struct bench_failure *failure);
int renew_kept_setup(void **state, const struct bench_target *target,
                     struct bench_failure *failure);
int keys_ones_setup(void **state, const struct bench_target *target,
                    struct bench_failure *failure);
int keys_many_setup(void **state, const struct bench_target *target,
                    struct bench_failure *failure);
void many_teardown(void *state);
int renew_ones(void *state, unsigned client, struct bench_failure *failure);
int renew_many(void *state, unsigned client, struct bench_failure *failure);
int keys_ones(void *state, unsigned client, struct bench_failure *failure);
int keys_many(void *state, unsigned client, struct bench_failure *failure);

int tx_setup(void **state, const struct bench_target *target,
             struct bench_failure *failure);
int tx_guarded_setup(void **state, const struct bench_target *target,
                     struct bench_failure *failure);
void tx_teardown(void *state);
int tx_unguarded(void *state, unsigned client, struct bench_failure *failure);
int tx_guarded(void *state, unsigned client, struct bench_failure *failure);
int tx_for_update(void *state, unsigned client, struct bench_failure *failure);
int tx_cas(void *state, unsigned client, struct bench_failure *failure);

int unadopted_setup(void **state, const struct bench_target *target,
                    struct bench_failure *failure);
int adopted_setup(void **state, const struct bench_target *target,
                  struct bench_failure *failure);
void adopted_teardown(void *state);
int unadopted_transaction(void *state, unsigned client,
                          struct bench_failure *failure);
int adopted_transaction(void *state, unsigned client,
                        struct bench_failure *failure);

int queue_setup(void **state, const struct bench_target *target,
                struct bench_failure *failure);
int poller_setup(void **state, const struct bench_target *target,
                 struct bench_failure *failure);
int poller_turn(void *state, unsigned client, struct bench_failure *failure);
void queue_teardown(void *state);
int queue_turn(void *state, unsigned client, struct bench_failure *failure);
int permits_setup(void **state, const struct bench_target *target,
                  struct bench_failure *failure);
int permits_turn(void *state, unsigned client, struct bench_failure *failure);
int row_setup(void **state, const struct bench_target *target,
              struct bench_failure *failure);
void row_teardown(void *state);
int row_turn(void *state, unsigned client, struct bench_failure *failure);
int local_turn(void *state, unsigned client, struct bench_failure *failure);
int beside_setup(void **state, const struct bench_target *target,
                 struct bench_failure *failure);
void beside_teardown(void *state);
int beside_pair(void *state, unsigned client, struct bench_failure *failure);

/* Start a thread that acquires a lock, without a limit for the wait, and
   releases it.  The caller joins the thread. */
void begin_waiter(pthread_t *thread, sqlock_lock *lock);

int idle_setup(void **state, const struct bench_target *target,
               struct bench_failure *failure);
int idle_poller_setup(void **state, const struct bench_target *target,
                      struct bench_failure *failure);
void idle_teardown(void *state);
int idle_look(void *state, unsigned client, struct bench_failure *failure);
int idle_try(void *state, unsigned client, struct bench_failure *failure);
uint64_t idle_statements(void *state);

int first_setup(void **state, const struct bench_target *target,
                struct bench_failure *failure);
void first_teardown(void *state);
int first_prepare(void *state, unsigned client, struct bench_failure *failure);
int first_grant(void *state, unsigned client, struct bench_failure *failure);
void first_settle(void *state, unsigned client);

int turn_setup(void **state, const struct bench_target *target,
               struct bench_failure *failure);
int writer_setup(void **state, const struct bench_target *target,
                 struct bench_failure *failure);
int reader_setup(void **state, const struct bench_target *target,
                 struct bench_failure *failure);
void sharing_teardown(void *state);
int sharing_turn(void *state, unsigned client, struct bench_failure *failure);
int sharing_take(void *state, unsigned client, struct bench_failure *failure);
void sharing_settle(void *state, unsigned client);

int killed_setup(void **state, const struct bench_target *target,
                 struct bench_failure *failure);
void killed_teardown(void *state);
int killed_prepare(void *state, unsigned client, struct bench_failure *failure);
int killed_leader(void *state, unsigned client, struct bench_failure *failure);

int flock_setup(void **state, const struct bench_target *target,
                struct bench_failure *failure);
int start_setup(void **state, const struct bench_target *target,
                struct bench_failure *failure);
void start_teardown(void *state);
int start_command(void *state, unsigned client, struct bench_failure *failure);
void start_settle(void *state, unsigned client);

extern const struct bench_case bench_stock_cases[];

#endif /* BENCH_CASES_H */
