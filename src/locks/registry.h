/*
 * registry.h - what a registry and a lock are made of; for src/locks only
 *
 * Order of mutexes: keeper, sentinel, canceller, lookout, registry, lock, waiter,
 * then runner and resolver.  None is held during I/O.
 */
#ifndef LK_REGISTRY_H
#define LK_REGISTRY_H

#include <pthread.h>
#include <stdatomic.h>
#include <sys/types.h>

#include "base/hash.h"
#include "db/db.h"
#include "db/table.h"
#include "locks/cancel.h"
#include "locks/gate.h"
#include "locks/keeper.h"
#include "locks/lookout.h"
#include "locks/options.h"
#include "locks/resolver.h"
#include "locks/runner.h"
#include "locks/sentinel.h"
#include "sqlock.h"

#define LK_HOLDER_SIZE 256 /* HOLDER VARCHAR(255): CLIENT_ID, ' ', who */
#define LK_WHO_SIZE (LK_HOLDER_SIZE - SQLOCK_KEY_SIZE)

/* The doorbell of a lease: what has it until the release. */
struct lk_bell {
    struct lk_connection *connection; /* one of those that wait; NULL */
    uint64_t session;                 /* or one of the pool's, by number; 0 */
};

/* Whether the sessions of this registry's connections are their own. */
enum lk_own_sessions {
    LK_SESSIONS_UNKNOWN,
    LK_SESSIONS_OWN,
    LK_SESSIONS_SHARED /* by a proxy: there are no doorbells */
};

struct sqlock_registry {
    pid_t pid; /* of the process that opened it (F17) */
    sqlock_options options;
    char *region;          /* options' strings are copies */
    char who[LK_WHO_SIZE]; /* "host pid program note" */
    sqlock_layout layout;
    struct lk_table table;
    struct lk_db db;
    struct lk_statement statements[SQLOCK_SQL_KINDS];
    struct lk_sentinel sentinel;
    struct lk_keeper keeper;
    struct lk_lookout lookout;
    struct lk_canceller canceller;
    struct lk_runner runner;
    struct lk_resolver resolver;
    /* When the last statement began that has had all its time in vain, 0 once
     * one was answered; and when closing began, or 0.  CLOCK_MONOTONIC. */
    _Atomic int64_t in_vain_since_ns;
    _Atomic int64_t closing_since_ns;
    _Atomic int64_t skew_told_ns; /* when a row was told of (skew.h); 0 */
    pthread_mutex_t mutex;        /* of what follows */
    struct sqlock_lock *locks;
    struct sqlock_request *requests;
    enum lk_own_sessions own_sessions;
    char *identity; /* of server and table, once a transaction has asked */
    bool asked_for_nodes; /* the same of row locks: */
    bool is_one_node;     /* they hold on one node of several */
};

enum lk_phase {
    LK_FREE,     /* nobody of this process is at it */
    LK_BUSY,     /* somebody is claiming or releasing it */
    LK_OCCUPIED, /* acquired and not yet released, whatever the lease says */
};

struct sqlock_lock {
    sqlock_registry *registry;
    char key[SQLOCK_KEY_SIZE];
    char *name;
    UT_hash_handle hh;
    uint32_t references; /* under the registry's mutex */
    uint32_t pins;       /* likewise: batches it is in, requests for it */

    pthread_mutex_t mutex; /* of what follows */
    struct lk_gate gate;
    struct lk_waiter *turn; /* whose it is while it claims; NULL */
    int outage; /* what its attempts give while the database is away; 0 */
    enum lk_phase phase;
    uint32_t handovers; /* between threads of this process, in a row */
    /* read and set by whose turn it is */
    bool is_left_free; /* the row, by us */
    uint32_t crowd;    /* so many acquisitions go to the doorbell first: others
                          wait there */
    bool is_squatted;  /* the doorbell is kept by somebody who does not come */
    struct {           /* Spring services that want it, too: peers.h */
        int64_t share_ns; /* how long it is ours in turn; 0: none was seen */
        int64_t used_ns;  /* of that */
    } peers;
    uint64_t owner; /* lk_owner_id(), where threads own */
    uint32_t hold_count;
    /* the lease */
    struct lk_bell bell;
    char client_id[SQLOCK_KEY_SIZE];
    int64_t token;
    uint32_t ttl_ms;
    uint32_t cap_ms; /* as in lease.h, both */
    bool is_claim_late;
    int64_t deadline_boot_ns;    /* when the holder stops believing */
    struct lk_renewal *renewals; /* under way */
    int lost;                    /* 0, ELOST, EEXPIRED: sticky */
    int lost_fd;                 /* -1: nobody has asked for it */
    uint32_t guards;             /* open transactions that keep it as it is */
    bool is_left_behind;         /* whoever is at it: an abandoned request */
    bool is_told;                /* whoever holds it: that the lease is over */
    struct lk_overdue *overdue;
    /* of whose turn it is: what went with the lease that was set aside last */
    bool is_aside;
    struct lk_bell bell_aside;
    /* as the acquisition asked for */
    bool is_fenced;
    uint32_t max_hold_ms;
    int64_t acquired_boot_ns;
    sqlock_lost_fn on_lost;
    void *lost_context;

    struct lk_watched watched; /* under the sentinel's mutex */
    struct lk_kept kept;       /* under the keeper's mutex */
};

/* 0, EINVAL (NULL), EFORK. */
int lk_registry_check(const sqlock_registry *registry, sqlock_error *err);
int lk_lock_check(const sqlock_lock *lock, sqlock_error *err);

/* Of the calling thread, or for something new that is to own a lock; never given
 * twice in a process, unlike a pthread_t. */
uint64_t lk_thread_id(void);
uint64_t lk_owner_id(void);

/* Whether it is a thread's, and that has ended. */
bool lk_has_ended(uint64_t owner);

/* The number of a key's doorbell: of table, region and key. */
int64_t lk_bell_number(const sqlock_registry *registry, const char *key);

/* The arguments that every statement about a key of this registry has. */
void lk_registry_arguments(const sqlock_registry *registry, const char *key,
                           struct lk_arguments *out);

/* A deadline one statement from now. */
int64_t lk_statement_deadline(const sqlock_registry *registry);

/* Run a statement of the registry.  The result is to be cleared.
 *
 * An outage is shared: once a statement has had all its time in vain that began
 * after another was asked for (lk_run.asked_ns, or with all of them when the
 * registry began to close), that one is told EUNREACHABLE at once. */
int lk_registry_run(sqlock_registry *registry, sqlock_statement_kind kind,
                    struct lk_run *run, sqlock_result *result,
                    sqlock_error *err);

/* Free the lock's memory; nobody may refer to it. */
void lk_lock_free(sqlock_lock *lock);

/* Called with the registry's mutex held: one pin less; the last one frees a lock
 * that nobody refers to. */
void lk_lock_unpin(sqlock_registry *registry, sqlock_lock *lock);

/* One line to the application's log, if it has one. */
void lk_registry_log(const sqlock_registry *registry, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

#endif
