/*
 * holder.c - party A as a process of its own, which may be killed or stopped
 *
 * The process executes this program anew: a child of a process with threads may
 * do little else.  It opens a registry, prepares the operation, and waits for
 * the order to begin.  Its reports go through a pipe.
 */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "fault.h"

#define ORDERS_FD 3
#define REPORTS_FD 4
#define LAST_FD 1023

/* ----------------------------------------------------------- in the test -- */

enum { ARG_URL = 2, ARG_PREFIX, ARG_NAME, ARG_OP, ARG_POINT, ARG_HALT, ARGS };

/* Execute the holder in the child.  Between fork and exec only functions that
 * are async-signal-safe are allowed. */
static void become_holder(pid_t parent, const int *orders, const int *reports,
                          char *const *argv)
{
    check_end_with(parent);
    if (dup2(orders[0], LAST_FD) < 0 || dup2(reports[1], REPORTS_FD) < 0 ||
        dup2(LAST_FD, ORDERS_FD) < 0)
        _exit(97);
    for (int fd = REPORTS_FD + 1; fd <= LAST_FD; fd++)
        (void)close(fd);
    (void)execv("/proc/self/exe", argv);
    _exit(98);
}

void holder_start(struct holder *holder, enum op op, enum fault_point point,
                  enum holder_halt halt)
{
    static char self[] = "fault";
    static char flag[] = "--holder";
    char numbers[3][8];
    char *argv[ARGS + 1] = {
        self,
        flag,
        stage.url,
        stage.fixture.prefix,
        stage.fixture.name,
        numbers[0],
        numbers[1],
        numbers[2],
    };
    pid_t parent = getpid();
    struct report report;
    int orders[2];
    int reports[2];

    (void)snprintf(numbers[0], sizeof numbers[0], "%d", (int)op);
    (void)snprintf(numbers[1], sizeof numbers[1], "%d", (int)point);
    (void)snprintf(numbers[2], sizeof numbers[2], "%d", (int)halt);
    assert_int_equal(pipe2(orders, O_CLOEXEC), 0);
    assert_int_equal(pipe2(reports, O_CLOEXEC), 0);
    holder->pid = fork();
    assert_true(holder->pid >= 0);
    if (holder->pid == 0)
        become_holder(parent, orders, reports, argv);
    (void)close(orders[0]);
    (void)close(reports[1]);
    holder->orders = orders[1];
    holder->reports = reports[0];
    if (!holder_read(holder, &report))
        fail_msg("%s", "the other process did not get ready");
}

bool holder_read(struct holder *holder, struct report *report)
{
    return read(holder->reports, report, sizeof *report) ==
           (ssize_t)sizeof *report;
}

void holder_go(struct holder *holder)
{
    assert_int_equal(write(holder->orders, "g", 1), 1);
}

void holder_kill(struct holder *holder)
{
    int status;

    (void)kill(holder->pid, SIGKILL);
    assert_int_equal(waitpid(holder->pid, &status, 0), holder->pid);
    (void)close(holder->orders);
    (void)close(holder->reports);
}

/* --------------------------------------------------------- in the holder -- */

static void tell(const struct report *report)
{
    if (write(REPORTS_FD, report, sizeof *report) != (ssize_t)sizeof *report)
        _exit(96);
}

static void await_order(void)
{
    char byte;

    if (read(ORDERS_FD, &byte, 1) != 1)
        _exit(95);
}

static void halt(enum holder_halt how)
{
    if (how == HALT_STOP)
        (void)raise(SIGSTOP);
    if (how != HALT_WAIT)
        return;
    for (;;)
        (void)pause(); /* until it is killed */
}

/* A hook at the fault's point: report, then halt as *context says. */
static void on_point(void *context)
{
    const enum holder_halt *how = context;
    struct report report = {0};

    tell(&report);
    halt(*how);
}

static void tell_done(int rc, int64_t asked_ns)
{
    sqlock_lock *first = stage.a.locks[0];
    int64_t now = lk_boottime_ns();
    struct report report = {
        .is_done = true,
        .rc = rc,
        .asked_ns = asked_ns,
        .until_ns = now + sqlock_remaining_ms(first) * 1000000,
        .is_held = sqlock_is_held(first),
        .hold_count = sqlock_hold_count(first),
    };

    for (size_t i = 0; i < LOCKS; i++)
        report.tokens[i] = sqlock_token(stage.a.locks[i]);
    tell(&report);
}

static int set_up(char **argv)
{
    sqlock_options options;
    int rc;

    (void)snprintf(stage.fixture.prefix, sizeof stage.fixture.prefix, "%s",
                   argv[ARG_PREFIX]);
    stage.a.who = PARTY_A;
    stage.a.ttl_ms = TTL_MS;
    options = stage_options();
    tap_install();
    /* a busy machine may need several attempts within these timeouts */
    rc = wait_until(sqlock_registry_open(&stage.a.registry, argv[ARG_URL],
                                         &options, &stage.a.err) == 0,
                    PATIENCE_MS)
             ? 0
             : stage.a.err.code;
    for (size_t i = 0; rc == 0 && i < LOCKS; i++) {
        (void)snprintf(stage.names[i], sizeof stage.names[i], "%s/%zu",
                       argv[ARG_NAME], i);
        history_init(&stage.histories[i]);
        rc = sqlock_obtain(&stage.a.locks[i], stage.a.registry, stage.names[i],
                           &stage.a.err);
    }
    return rc;
}

static int number(const char *text)
{
    return (int)strtol(text, NULL, 10);
}

static void operate(enum op op, enum fault_point point, enum holder_halt how)
{
    const struct fault_plan plan = {
        .call = TAP_EXECUTE,
        .nth = 1,
        .point = point,
        .hook = on_point,
        .context = &how,
    };
    int64_t asked_ns = lk_boottime_ns();
    int rc;

    if (how != HALT_NOT && point != FAULT_REPLIED)
        fault_arm(&plan);
    rc = op_perform(&stage.a, op);
    if (how == HALT_STOP && point == FAULT_REPLIED) {
        on_point(&how);
        asked_ns = lk_boottime_ns();
        rc = op_perform(&stage.a, op_next(op));
    }
    tell_done(rc, asked_ns);
}

int holder_main(char **argv)
{
    const struct report ready = {0};
    enum op op = (enum op)number(argv[ARG_OP]);
    int rc;

    rc = set_up(argv);
    if (rc == 0)
        rc = party_warm_up(&stage.a);
    if (rc == 0)
        rc = op_prepare(&stage.a, op);
    if (rc < 0) {
        print_error("holder: %d %s\n", rc, stage.a.err.message);
        return 1;
    }
    tell(&ready);
    await_order();
    operate(op, (enum fault_point)number(argv[ARG_POINT]),
            (enum holder_halt)number(argv[ARG_HALT]));
    halt(HALT_WAIT); /* until it is killed; its leases last */
    return 0;
}
