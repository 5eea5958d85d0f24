/*
 * fault.h - what the tests of this suite share: a stage with a lock table, two
 * parties, the network between one of them and the server, and the history of
 * three locks
 */
#ifndef TESTS_FAULT_H
#define TESTS_FAULT_H

#include "support/fault_driver.h"
#include "support/history.h"
#include "support/proxy.h"
#include "support/suite_main.h"

enum {
    TTL_MS = 2500 * SLOWNESS,
    STATEMENT_MS = 1000 * SLOWNESS,
    CONNECT_MS = 2000 * SLOWNESS,
    DELAY_MS = 60, /* well within the deadlines */
    /* of leases that are to stay, however busy the machine is, and how often
     * they are renewed */
    KEPT_MS = 6000 * SLOWNESS,
    PERIOD_MS = 300 * SLOWNESS
};

#define LOCKS 3

/* One of those who want the locks. */
struct party {
    int who;
    sqlock_registry *registry;
    sqlock_lock *locks[LOCKS];
    uint32_t ttl_ms;
    int results[LOCKS]; /* of the last call about many */
    sqlock_error err;
};

enum { PARTY_A = 1, PARTY_B = 2 };

/* Of one process: set up by stage_open, and anew for each test. */
struct stage {
    struct fixture fixture; /* a and b lead to the server directly */
    struct proxy *proxy;    /* NULL: a database without a wire */
    struct sql admin;
    char url[1024]; /* through the tap, and the proxy where there is one */
    char names[LOCKS][80];
    struct party a; /* through the fault */
    struct party b;
    struct history histories[LOCKS];
};

extern struct stage stage;

/* As cmocka's group and test fixtures. */
int stage_open(const struct database *database);
void stage_close(void);
int stage_begin(void **state); /* leaves the test's own state alone */
int stage_end(void **state);

/* The options of registries whose faults are soon over. */
sqlock_options stage_options(void);

/* Another registry through the fault; registry_end() closes it. */
sqlock_registry *stage_registry(const sqlock_options *options);

/* Results of a party's calls go into the histories.  ALL_LOCKS: all the locks
 * in one call; otherwise the number of one. */
#define ALL_LOCKS (-1)
int party_acquire(struct party *party, int which, int64_t wait_ms);
int party_renew(struct party *party, int which);
int party_release(struct party *party, int which);

/* The row of lock i, read past everything. */
struct row stage_row(size_t i);

/* Skips the test unless the server is ours to stop and comes back as it was: a
 * node of a cluster is put out of it meanwhile, and returns in its own time. */
void stage_need_stopping(void);

/* Make lock i one whose holder is dead and whose lease is over. */
void stage_leave_expired(size_t i);

/* End the session that the server knows by its peer's port; from any thread.
 * For struct proxy_plan. */
void end_session_of(void *context, int port);

/* --------------------------------------------------------------- the matrix */

enum op {
    OP_ACQUIRE,
    OP_TAKE_OVER,
    OP_RENEW,
    OP_RELEASE,
    OP_ACQUIRE_MANY,
    OP_RELEASE_MANY,
    OPS
};
extern const char *const op_names[OPS];

/* The required result of an operation that meets the fault before it is sent,
 * or before it is answered. */
enum outcome {
    GOES_THROUGH, /* 0: the library finds out, or tries again */
    IS_OUTAGE,    /* EUNCERTAIN or EUNREACHABLE */
    IS_REFUSED,   /* any error */
    IS_EITHER     /* as it happens */
};

/* Where party A is, and what becomes of it. */
enum fault_place { A_HERE, A_IS_KILLED, A_IS_STOPPED };

struct fault {
    const char *name;
    unsigned databases;
    enum fault_place place;
    bool stops_server; /* nobody else may use it meanwhile */
    bool only_before;  /* there is nothing like it at the other points */
    /* Arrange it; it sets in at that point of A's next statement. */
    void (*arm)(const struct fault *fault, enum fault_point point, enum op op);
    /* For its arm(): of a plan of the driver's, and of the proxy's. */
    int code;
    void (*hook)(void *context);
    enum proxy_act act;
    unsigned delay_ms;
    bool (*was_met)(void); /* the point was reached */
    void (*heal)(void);
    enum outcome outcomes[FAULT_POINTS]; /* at `replied`, of what A does next */
};

extern const struct fault wire_faults[];
extern const size_t wire_fault_count;
extern const struct fault sqlite_faults[];
extern const size_t sqlite_fault_count;
extern const struct fault code_faults[];
extern const size_t code_fault_count;

struct cell {
    char name[96];
    const struct fault *fault;
    enum fault_point point;
    enum op op;
};

/* The cells of a database, in the order of the tables. */
size_t matrix_cells(struct cell *cells, size_t max,
                    const struct database *database, bool stops_server);
void test_cell(void **state);

/* The locks of an operation; its preparation, the call, and its successor. */
int op_locks(enum op op);
int op_prepare(struct party *party, enum op op);
int op_perform(struct party *party, enum op op);
enum op op_next(enum op op); /* what a party would do after it */

/* Rows are there and statements prepared afterwards. */
int party_warm_up(struct party *party);

/* Kill the process when the answer to A's next request has come: the wire's way
 * to be killed without having seen it. */
void killer_arm(pid_t pid);

/* --------------------------------------------------------------- the holder */

/* Party A as a process of its own, and what it reports. */
#define PARTY_CHILD 3

struct report {
    bool is_done; /* with the operation; otherwise it is at the point */
    int rc;
    uint32_t hold_count;
    bool is_held;
    int64_t asked_ns;
    int64_t until_ns;
    int64_t tokens[LOCKS];
};

struct holder {
    pid_t pid;
    int orders;  /* to it */
    int reports; /* from it */
};

/* The action of the holder process at the point. */
enum holder_halt {
    HALT_NOT,  /* it goes on: somebody else sees to it */
    HALT_WAIT, /* it waits to be killed */
    HALT_STOP  /* it stops itself (SIGSTOP), and goes on when it is let */
};

/* Started, it has done all that comes before the operation, and waits. */
void holder_start(struct holder *holder, enum op op, enum fault_point point,
                  enum holder_halt halt);
void holder_go(struct holder *holder);
bool holder_read(struct holder *holder, struct report *report);
void holder_kill(struct holder *holder);
int holder_main(char **argv);

/* --------------------------------------------------------------- the topics */

extern const struct topic topic_named;
extern const struct topic topic_unknown;
extern const struct topic topic_loss;

/* On a server whose clock is in a file. */
extern const struct topic topic_clock;
extern const char *clock_file;

extern const struct suite suite_history;

#endif
