/*
 * fault.h - shared by the tests of this suite: the stage, which is a lock table
 * with three locks, two parties that want them, the network between one party
 * and the server, and a history of each lock
 */
#ifndef TESTS_FAULT_H
#define TESTS_FAULT_H

#include <stdatomic.h>

#include "support/fault_driver.h"
#include "support/history.h"
#include "support/proxy.h"
#include "support/suite_main.h"

enum {
    TTL_MS = 2500 * SLOWNESS,
    STATEMENT_MS = 1000 * SLOWNESS,
    CONNECT_MS = 2000 * SLOWNESS,
    DELAY_MS = 60,             /* well within the deadlines */
    PERIOD_MS = 300 * SLOWNESS /* of renewals */
};

#define LOCKS 3

/* A client that acquires the locks: A or B. */
struct party {
    int who;
    sqlock_registry *registry;
    sqlock_lock *locks[LOCKS];
    uint32_t ttl_ms;
    int results[LOCKS]; /* of the last call for all locks */
    sqlock_error err;
};

enum { PARTY_A = 1, PARTY_B = 2 };

/* One per process: set up by stage_open(), then by stage_begin() for each
 * test. */
struct stage {
    struct fixture fixture; /* its registries connect to the server directly */
    struct proxy *proxy;    /* NULL: SQLite, which has no network */
    struct sql admin;
    atomic_uint sessions_ended; /* by end_session_of() */
    char url[1024]; /* through the tap, and the proxy where there is one */
    char names[LOCKS][80];
    struct party a; /* connects through `url`, and so meets the faults */
    struct party b;
    struct history histories[LOCKS];
};

extern struct stage stage;

/* Set up and tear down the group of tests, and each test, as cmocka wants it.
 * stage_open() returns -1 on failure. */
int stage_open(const struct database *database);
void stage_close(void);
int stage_begin(void **state); /* does not change *state */
int stage_end(void **state);

/* Return options with short times, so that faults are soon over. */
sqlock_options stage_options(void);

/* Open another registry that connects as party A does; registry_end() closes
 * it. */
sqlock_registry *stage_registry(const sqlock_options *options);

/* Acquire, renew or release one lock, by its number, or ALL_LOCKS in one call;
 * record the result in the histories, and return it. */
#define ALL_LOCKS (-1)
int party_acquire(struct party *party, int which, int64_t wait_ms);
int party_renew(struct party *party, int which);
int party_release(struct party *party, int which);

/* Acquire without a wait where there is no fault: again while that is late. */
int party_ask(struct party *party, int which);

/* Make calls at locks that nobody else has, and where there is no fault: all of
 * them again while one is late. */
int party_repeat(int (*calls)(struct party *, int which), struct party *party,
                 int which);

/* Return the row of lock i, read without tap and proxy. */
struct row stage_row(size_t i);

/* Skip the test unless it may stop the server (SIGSTOP).  A node of a Galera
 * cluster is not stopped: the others would exclude it, and it would return only
 * some time after it goes on. */
void stage_need_stopping(void);

/* Change the row of lock i, which exists, to one whose holder is dead and whose
 * lease is over. */
void stage_leave_expired(size_t i);

/* A hook for struct proxy_plan: end the session whose connection comes from
 * that port, and count it.  It asserts nothing, so any thread may run it. */
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

/* The required result of an operation that meets a fault. */
enum outcome {
    GOES_THROUGH, /* 0: the library resolves the doubt, or tries again */
    IS_OUTAGE,    /* EUNCERTAIN or EUNREACHABLE */
    IS_REFUSED,   /* any error */
    IS_EITHER     /* 0 or any error */
};

/* Where party A is: in this process, or in one that is killed or stopped. */
enum fault_place { A_HERE, A_IS_KILLED, A_IS_STOPPED };

struct fault {
    const char *name;
    unsigned databases;
    enum fault_place place;
    bool stops_server; /* no other test may use the server meanwhile */
    bool only_before;  /* the fault is possible at FAULT_BEFORE only */
    /* Let the fault begin at that point of A's next statement. */
    void (*arm)(const struct fault *fault, enum fault_point point, enum op op);
    /* For arm(): fields of the tap's fault_plan, then of the proxy_plan. */
    int code;
    void (*hook)(void *context);
    enum proxy_act act;
    unsigned delay_ms;
    bool (*was_met)(void); /* the point was reached */
    void (*heal)(void);
    /* of the operation; at FAULT_REPLIED, of A's next operation */
    enum outcome outcomes[FAULT_POINTS];
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

/* Write the cells of a database to `cells`, in the order of the tables of
 * faults, and return how many; fail the test if there are more than `max`. */
size_t matrix_cells(struct cell *cells, size_t max,
                    const struct database *database, bool stops_server);
void test_cell(void **state);

/* op_locks(): return the locks of the operation, as party_acquire() takes them.
 * op_prepare(): do what must come before it.  op_perform(): perform it.  The
 * last two return a code. */
int op_locks(enum op op);
int op_prepare(struct party *party, enum op op);
int op_perform(struct party *party, enum op op);
enum op op_next(enum op op); /* the one that a party performs after it */

/* Acquire, renew and release, so that rows exist and statements are prepared;
 * return a code. */
int party_warm_up(struct party *party);

/* Let the proxy kill the process when the server has answered A's next request,
 * before A gets the answer. */
void killer_arm(pid_t pid);

/* --------------------------------------------------------------- the holder */

/* Party A in a process of its own has this number in the histories. */
#define PARTY_CHILD 3

struct report {
    bool is_done; /* the operation is done; false: ready, or at the point */
    int rc;
    uint32_t hold_count;
    bool is_held;
    int64_t asked_ns;
    int64_t until_ns;
    int64_t tokens[LOCKS];
};

struct holder {
    pid_t pid;
    int orders;  /* pipe to the process */
    int reports; /* pipe from the process */
};

/* The action of the holder process at the point. */
enum holder_halt {
    HALT_NOT,  /* it goes on: the proxy or the test kills it */
    HALT_WAIT, /* it waits to be killed */
    HALT_STOP  /* it stops itself (SIGSTOP), and goes on after SIGCONT */
};

/* holder_start(): start the process, wait until it has prepared the operation,
 * and fail the test if it does not.  holder_go(): let it perform the operation.
 * holder_read(): wait for its next report; false: it has ended.  holder_kill():
 * kill it, and free what the holder has.  holder_main(): run the process. */
void holder_start(struct holder *holder, enum op op, enum fault_point point,
                  enum holder_halt halt);
void holder_go(struct holder *holder);
bool holder_read(struct holder *holder, struct report *report);
void holder_kill(struct holder *holder);
int holder_main(char **argv);

/* Tests on a server that reads its clock from the file clock_file (NULL:
 * none). */
extern const char *clock_file;

#endif
