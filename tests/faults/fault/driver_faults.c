/*
 * driver_faults.c - faults that come from the driver, or from other users of
 * the file: seven for SQLite, which has no network, and for every database each
 * way in which a driver may refuse a statement before it is sent
 */
#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>

#include "fault.h"

static bool was_met(void)
{
    return fault_times() > 0;
}

static void arm(enum fault_point point, int code, unsigned stall_ms,
                void (*hook)(void *))
{
    const struct fault_plan plan = {
        .call = TAP_EXECUTE,
        .nth = 1,
        .point = point,
        .code = code,
        .stall_ms = stall_ms,
        .hook = hook,
    };

    fault_arm(&plan);
}

/* Return the code for a fault that begins at that point of a statement: once
 * that is sent, its result is lost; at other points only the hook acts. */
static int lost_at(enum fault_point point)
{
    return point == FAULT_SENT ? SQLOCK_EUNCERTAIN : 0;
}

/* ---------------------------------------------------------------- SQLite -- */

static void arm_broken(const struct fault *fault, enum fault_point point,
                       enum op op)
{
    (void)fault;
    (void)op;
    arm(point, point == FAULT_SENT ? SQLOCK_EUNCERTAIN : SQLOCK_EUNREACHABLE, 0,
        NULL);
}

static void arm_stalled(const struct fault *fault, enum fault_point point,
                        enum op op)
{
    (void)fault;
    (void)op;
    arm(point, 0, DELAY_MS, NULL);
}

/* Let write(2) to a file fail with EFBIG in this process; file_size keeps the
 * limit to be restored. */
static struct rlimit file_size;

static void forbid_writing(void *context)
{
    struct rlimit none;

    (void)context;
    (void)signal(SIGXFSZ, SIG_IGN);
    (void)getrlimit(RLIMIT_FSIZE, &file_size);
    none = file_size;
    none.rlim_cur = 0;
    (void)setrlimit(RLIMIT_FSIZE, &none);
}

static void arm_io_error(const struct fault *fault, enum fault_point point,
                         enum op op)
{
    (void)fault;
    (void)op;
    (void)getrlimit(RLIMIT_FSIZE, &file_size);
    arm(point, lost_at(point), 0, forbid_writing);
}

static void heal_io_error(void)
{
    (void)setrlimit(RLIMIT_FSIZE, &file_size);
    fault_heal();
}

/* Another connection, which takes SQLite's write lock. */
static struct sql locker;
static pthread_t unlocker;
static bool has_unlocker;

static void lock_file(void *context)
{
    (void)context;
    assert_int_equal(
        sql_open(&locker, stage.fixture.database, stage.fixture.url), 0);
    assert_int_equal(sql_begin(&locker), 0);
}

static void arm_locked(const struct fault *fault, enum fault_point point,
                       enum op op)
{
    (void)op;
    arm(point, lost_at(point), 0, fault->hook);
}

static void *unlock_soon(void *argument)
{
    check_sleep(DELAY_MS);
    (void)sql_rollback(&locker);
    return argument;
}

static void lock_file_a_while(void *context)
{
    lock_file(context);
    has_unlocker = pthread_create(&unlocker, NULL, unlock_soon, NULL) == 0;
}

static void unlock_file(void)
{
    if (has_unlocker)
        (void)pthread_join(unlocker, NULL);
    else if (locker.connection != NULL)
        (void)sql_rollback(&locker);
    has_unlocker = false;
    sql_close(&locker);
    fault_heal();
}

const struct fault sqlite_faults[] = {
    {.name = "connection broken",
     .databases = ON_SQLITE,
     .arm = arm_broken,
     .was_met = was_met,
     .heal = fault_heal,
     .outcomes = {GOES_THROUGH, GOES_THROUGH, GOES_THROUGH}},
    /* A release in doubt may be resolved by reading only, which still works. */
    {.name = "file cannot be written",
     .databases = ON_SQLITE,
     .arm = arm_io_error,
     .was_met = was_met,
     .heal = heal_io_error,
     .outcomes = {IS_REFUSED, IS_EITHER, IS_REFUSED}},
    {.name = "file locked past the deadline",
     .databases = ON_SQLITE,
     .arm = arm_locked,
     .hook = lock_file,
     .was_met = was_met,
     .heal = unlock_file,
     .outcomes = {IS_REFUSED, IS_REFUSED, IS_REFUSED}},
    {.name = "file locked within the deadline",
     .databases = ON_SQLITE,
     .arm = arm_locked,
     .hook = lock_file_a_while,
     .was_met = was_met,
     .heal = unlock_file,
     .outcomes = {GOES_THROUGH, GOES_THROUGH, GOES_THROUGH}},
    {.name = "stalled",
     .databases = ON_SQLITE,
     .arm = arm_stalled,
     .was_met = was_met,
     .heal = fault_heal,
     .outcomes = {GOES_THROUGH, GOES_THROUGH, GOES_THROUGH}},
    {.name = "process killed",
     .databases = ON_SQLITE,
     .place = A_IS_KILLED,
     .heal = fault_heal},
    {.name = "process stopped",
     .databases = ON_SQLITE,
     .place = A_IS_STOPPED,
     .outcomes = {IS_EITHER, IS_EITHER, IS_EITHER}},
};
const size_t sqlite_fault_count = sizeof sqlite_faults / sizeof *sqlite_faults;

/* ------------------------------------------------------- refused, unsent -- */

static void arm_code(const struct fault *fault, enum fault_point point,
                     enum op op)
{
    (void)op;
    arm(point, fault->code, 0, NULL);
}

/* A hook for a statement at which the connection breaks: refuse the next
 * attempt to open one. */
static void refuse_next_open(void *context)
{
    const struct fault_plan plan = {.call = TAP_OPEN,
                                    .nth = 1,
                                    .point = FAULT_BEFORE,
                                    .code = SQLOCK_EUNREACHABLE};

    (void)context;
    fault_arm(&plan);
}

static void arm_open_refused(const struct fault *fault, enum fault_point point,
                             enum op op)
{
    (void)fault;
    (void)op;
    arm(point, SQLOCK_EUNREACHABLE, 0, refuse_next_open);
}

/* Once for the statement, once for the connection. */
static bool was_met_twice(void)
{
    return fault_times() >= 2;
}

#define REFUSAL(name_, code_, outcome_)                                        \
    {                                                                          \
        .name = (name_), .databases = ON_ALL, .only_before = true,             \
        .arm = arm_code, .code = (code_), .was_met = was_met,                  \
        .heal = fault_heal, .outcomes = {                                      \
            (outcome_),                                                        \
            (outcome_),                                                        \
            (outcome_)                                                         \
        }                                                                      \
    }

const struct fault code_faults[] = {
    REFUSAL("EUNREACHABLE", SQLOCK_EUNREACHABLE, GOES_THROUGH),
    REFUSAL("ERETRY", SQLOCK_ERETRY, GOES_THROUGH),
    /* A release tries again while there is time; other operations need not. */
    REFUSAL("EBUSY", SQLOCK_EBUSY, IS_EITHER),
    REFUSAL("ERESOURCE", SQLOCK_ERESOURCE, GOES_THROUGH),
    /* Several leases are renewed and released in halves then. */
    REFUSAL("ECANCELED", SQLOCK_ECANCELED, IS_EITHER),
    {.name = "open refused",
     .databases = ON_ALL,
     .only_before = true,
     .arm = arm_open_refused,
     .was_met = was_met_twice,
     .heal = fault_heal,
     .outcomes = {GOES_THROUGH, GOES_THROUGH, GOES_THROUGH}},
};
const size_t code_fault_count = sizeof code_faults / sizeof *code_faults;
