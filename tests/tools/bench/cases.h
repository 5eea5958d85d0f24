/*
 * cases.h - the functions of the cases
 */
#ifndef BENCH_CASES_H
#define BENCH_CASES_H

#include "bench.h"

#include <pthread.h>

#include "sqlock.h"

#define BENCH_REDIS "redis-server" /* the program */

/** As bench_fail(), of a call of sqlock.  @return -1 */
int bench_fail_call(struct bench_failure *failure, const char *what, int rc,
                    const sqlock_error *err);

int floor_setup(void **state, const struct bench_target *target,
                struct bench_failure *failure);
void floor_teardown(void *state);
int floor_two_updates(void *state, unsigned client,
                      struct bench_failure *failure);
int floor_transaction(void *state, unsigned client,
                      struct bench_failure *failure);

int lock_setup(void **state, const struct bench_target *target,
               struct bench_failure *failure);
int fast_setup(void **state, const struct bench_target *target,
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

int redis_always_setup(void **state, const struct bench_target *target,
                       struct bench_failure *failure);
int redis_everysec_setup(void **state, const struct bench_target *target,
                         struct bench_failure *failure);
void redis_teardown(void *state);
int redis_pair(void *state, unsigned client, struct bench_failure *failure);

int tx_setup(void **state, const struct bench_target *target,
             struct bench_failure *failure);
int tx_guarded_setup(void **state, const struct bench_target *target,
                     struct bench_failure *failure);
void tx_teardown(void *state);
int tx_unguarded(void *state, unsigned client, struct bench_failure *failure);
int tx_guarded(void *state, unsigned client, struct bench_failure *failure);

int adopted_setup(void **state, const struct bench_target *target,
                  struct bench_failure *failure);
void adopted_teardown(void *state);
int adopted_transaction(void *state, unsigned client,
                        struct bench_failure *failure);

int fast_queue_setup(void **state, const struct bench_target *target,
                     struct bench_failure *failure);
int queue_setup(void **state, const struct bench_target *target,
                struct bench_failure *failure);
int poller_setup(void **state, const struct bench_target *target,
                 struct bench_failure *failure);
int poller_turn(void *state, unsigned client, struct bench_failure *failure);
void queue_teardown(void *state);
int queue_turn(void *state, unsigned client, struct bench_failure *failure);
int crowded_setup(void **state, const struct bench_target *target,
                  struct bench_failure *failure);
int crowded_begin(void *state, struct bench_failure *failure);
void crowded_end(void *state);
int crowded_turn(void *state, unsigned client, struct bench_failure *failure);
void crowded_teardown(void *state);
int permits_setup(void **state, const struct bench_target *target,
                  struct bench_failure *failure);
int permits_turn(void *state, unsigned client, struct bench_failure *failure);
int row_setup(void **state, const struct bench_target *target,
              struct bench_failure *failure);
void row_teardown(void *state);
int row_turn(void *state, unsigned client, struct bench_failure *failure);
int local_turn(void *state, unsigned client, struct bench_failure *failure);

extern const struct bench_case bench_stock_cases[];

#endif /* BENCH_CASES_H */
