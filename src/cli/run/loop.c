/*
 * loop.c - the main thread of `sqlock run`: it sleeps until a signal, a
 * change of the lease, a message of the supervisor or a point in time comes,
 * and then takes the next step.  The main thread never waits for the database.
 *
 *     WAITING --held--> RUNNING --ended--> (RECORDING) --> (HOLDING) --+
 *                          |                                           |
 *                          |                                           v
 *                          +--supervisor killed--> SWEEPING --> RELEASING
 *                                                                      |
 *                                                                      v
 *                                                                     DONE
 *
 * The supervisor ends the command before the lease ends.  If the supervisor is
 * killed, or fails to do so, sqlock, which is a subreaper, too, ends the
 * remaining processes itself.  The main thread writes no message while the
 * command runs, since a write to stderr might block.
 */
#include "run.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <unistd.h>

typedef enum run_phase {
    WAITING,
    RUNNING,
    SWEEPING,
    RECORDING,
    HOLDING,
    RELEASING,
    DONE
} run_phase;

typedef struct run_state {
    const run_options *options;
    run_report *report;
    run_lease lease;
    run_lease_news news;
    int link_fd; /* to the supervisor; -1: it has ended */
    run_signals signals;
    run_terminal terminal;
    run_phase phase;
    int64_t told_ns;   /* when the supervisor was told of the loss, or 0 */
    run_cgroup cgroup; /* SWEEPING: the group that the supervisor has made */
    bool was_stopped;  /* the command was stopped by job control */
    /* a signal has ended --min-hold, after the command's success */
    bool is_cut;
    int64_t held_ns; /* when the lock was acquired */
    /* end of the command, and of all that had to end with it; or 0 */
    int64_t ended_ns;
    int64_t swept_ns; /* when SWEEPING began */
    int status;
    int death; /* signal to die of at the end, or 0 */
    int timer_fd;
} run_state;

/* --------------------------------------------------------------- signals -- */

static _Noreturn void die_of(const run_state *run, int number)
{
    run_report_write(run->report, run->options, CLI_SIGNALLED + number);
    run_signals_die_of(&run->signals, number);
}

/* Begin to release the lock.  Call it before the reason is written: stderr may
 * block. */
static void start_releasing(run_state *run, int status)
{
    run->status = status;
    run->phase = RELEASING;
    run_lease_stop(&run->lease);
}

/* Return when sqlock itself ends the command, if the supervisor has not done so
 * by then. */
static int64_t take_over_ns(const run_state *run)
{
    int64_t lead_ns = run->options->lead_ms * RUN_NS_PER_MS;
    int64_t grace_ns = run->options->grace_ms * RUN_NS_PER_MS;
    int64_t at_ns = run->news.deadline_ns - lead_ns / 2;
    int64_t due_ns = run->told_ns + grace_ns + lead_ns;

    return run->told_ns != 0 && due_ns < at_ns ? due_ns : at_ns;
}

static void order(const run_state *run, run_word word, int number)
{
    run_message message = {.word = word,
                           .number = number,
                           .serial = run->signals.serial,
                           .deadline_ns = run->news.deadline_ns,
                           .token = run->news.token};

    memcpy(message.key, run->news.key, sizeof message.key);
    memcpy(message.client_id, run->news.client_id, sizeof message.client_id);
    memcpy(message.lease, run->news.lease, sizeof message.lease);
    memcpy(message.tag, run->news.tag, sizeof message.tag);
    run_link_send(run->link_fd, &message);
}

static void take_signal_waiting(run_state *run, int number)
{
    if (number == SIGTSTP) {
        run_signals_stop();
    } else if (run_signals_may_end(number)) {
        run->report->cause = "interrupted";
        /* A claim under way cannot be withdrawn: if it is granted, the row
         * expires after the TTL. */
        if (run->news.state == RUN_LEASE_WAITING && !run->news.was_held)
            die_of(run, number);
        run->death = number;
        start_releasing(run, CLI_SIGNALLED + number);
    }
}

/* Pass a signal on to the command; CONT even if the supervisor has reported no
 * stop, since that report may be on its way. */
static void pass_on(run_state *run, int number)
{
    if (number != SIGTSTP && run->was_stopped)
        run_terminal_resume(&run->terminal);
    run->was_stopped = run->was_stopped && number == SIGTSTP;
    run_signals_count(&run->signals, number);
    order(run, RUN_SIGNAL, number);
}

static void take_signal(run_state *run, int number)
{
    switch (run->phase) {
    case WAITING:
        take_signal_waiting(run, number);
        break;
    case RUNNING:
        pass_on(run, number);
        break;
    case RECORDING:
    case HOLDING:
        /* The command has succeeded: a signal ends only the hold after it. */
        run->is_cut = run->is_cut || run_signals_may_end(number);
        break;
    default:
        break;
    }
}

static void take_signals(run_state *run)
{
    int number = run_signals_take(&run->signals);

    while (number != 0) {
        take_signal(run, number);
        number = run_signals_take(&run->signals);
    }
}

/* ------------------------------------------------------- the supervisor -- */

static void report_refusal_to_run(run_state *run, int error)
{
    bool is_missing = error == ENOENT || error == ENOTDIR;

    run->report->cause = is_missing ? "not_found" : "not_runnable";
    start_releasing(run, is_missing ? CLI_NOT_FOUND : CLI_UNRUNNABLE);
    cli_error("cannot run \"%s\": %s", run->options->command[0],
              strerror(error));
}

/* Begin to release after the command was ended because of its lease. */
static void end_lost(run_state *run)
{
    run->report->cause = "lost";
    start_releasing(run, CLI_LOST);
}

static void say_loss(const run_state *run)
{
    cli_error("the command was ended: %s", run->news.error.message);
}

static void start_holding(run_state *run)
{
    run->phase = HOLDING;
    if (run->options->min_hold_ms > 0)
        run_info("the command has succeeded, keeping the lock");
}

static void succeed(run_state *run)
{
    if (run->options->is_once) {
        run->phase = RECORDING;
        run_lease_record(&run->lease);
    } else {
        start_holding(run);
    }
}

static void take_own_end(run_state *run, int wait_status)
{
    if (WIFSIGNALED(wait_status)) {
        run->report->cause = "signaled";
        start_releasing(run, CLI_SIGNALLED + WTERMSIG(wait_status));
    } else {
        run->report->cause = "exited";
        run->status = WEXITSTATUS(wait_status);
        if (run->status == CLI_OK)
            succeed(run);
        else
            start_releasing(run, run->status);
    }
}

static void take_end(run_state *run, const run_message *message)
{
    int wait_status = message->number;
    bool is_own;

    run_terminal_end(&run->terminal, wait_status);
    run->ended_ns = run_now_ns();
    run->report->has_ended = true;
    run->report->wait_status = wait_status;
    /* A signal that came after the command's end applies to the hold that
     * follows. */
    run->is_cut = message->serial < run->signals.ending;
    is_own = message->why == RUN_END_OWN || message->why == RUN_END_LEFT ||
             message->why == RUN_END_TOLD;
    if (is_own)
        take_own_end(run, wait_status);
    else
        end_lost(run);
    if (is_own && message->why != RUN_END_OWN)
        cli_note("the command left processes behind; they were ended");
    else if (message->why == RUN_END_LOST)
        say_loss(run);
}

static void take_message(run_state *run, const run_message *message)
{
    switch (message->word) {
    case RUN_READY:
        run_terminal_begin(&run->terminal, message->pid);
        order(run, RUN_GO, 0);
        break;
    case RUN_REFUSED:
        run_terminal_end(&run->terminal, 0);
        report_refusal_to_run(run, message->number);
        break;
    case RUN_HALTED:
        if (message->serial < run->signals.waking)
            break; /* a later signal has continued the command */
        run->was_stopped = true;
        run_terminal_follow_stop(&run->terminal);
        break;
    case RUN_ENDED:
        take_end(run, message);
        break;
    default:
        break;
    }
}

static void start_sweeping(run_state *run)
{
    run->phase = SWEEPING;
    run->swept_ns = run_now_ns();
    run_cgroup_find(&run->cgroup, getpid());
    run_terminal_end(&run->terminal, 0);
}

static void take_messages(run_state *run)
{
    run_link_result result = RUN_LINK_MESSAGE;
    run_message message;

    while (result == RUN_LINK_MESSAGE && run->link_fd >= 0) {
        result = run_link_receive(run->link_fd, &message);
        if (result == RUN_LINK_MESSAGE && run->phase == RUNNING)
            take_message(run, &message);
    }
    if (result != RUN_LINK_CLOSED)
        return;
    (void)close(run->link_fd);
    run->link_fd = -1;
    if (run->phase == RUNNING)
        start_sweeping(run);
}

/* ----------------------------------------------------------------- steps -- */

static const char *cause_of(int status)
{
    switch (status) {
    case CLI_BUSY:
        return "busy";
    case CLI_LOST:
        return "lost";
    case CLI_USAGE:
        return "usage";
    case CLI_DENIED:
        return "denied";
    case CLI_SYSTEM:
        return "system";
    default:
        return "database";
    }
}

static void say_done(const run_state *run)
{
    char done[CLI_NUMBER_SIZE];
    const char *at = cli_time_text(done, run->news.done_at_us, false);

    cli_note("\"%s\" was done before%s%s: nothing is run; see `sqlock once`",
             run->options->name, at != NULL ? ", at " : "",
             at != NULL ? at : "");
}

static void report_outcome_of_waiting(run_state *run)
{
    run->phase = DONE;
    run->status = cli_status_of(run->news.result);
    if (run->status == CLI_OK) {
        say_done(run);
        run->report->cause = "done";
        return;
    }
    run->report->cause = cause_of(run->status);
    if (run->status == CLI_BUSY)
        run->status = run->options->busy_status;
    else
        (void)cli_fail(&run->news.error);
}

static void step_waiting(run_state *run)
{
    if (run->news.state == RUN_LEASE_WAITING)
        return;
    if (run->news.state == RUN_LEASE_OVER) {
        report_outcome_of_waiting(run);
        return;
    }
    run->report->token = run->news.token;
    memcpy(run->report->key, run->news.key, sizeof run->report->key);
    memcpy(run->report->client_id, run->news.client_id,
           sizeof run->report->client_id);
    if (run->news.state == RUN_LEASE_LOST ||
        run_now_ns() >=
            take_over_ns(run) - run->options->grace_ms * RUN_NS_PER_MS) {
        run->report->cause = "lost";
        start_releasing(run, CLI_LOST);
        cli_error("the lease was over before the command was started");
        return;
    }
    if (run->link_fd < 0) {
        run->report->cause = "system";
        start_releasing(run, CLI_SYSTEM);
        cli_error("the supervisor was killed before the command was started");
        return;
    }
    run_info("\"%s\" is ours, starting %s", run->options->name,
             run->options->command[0]);
    run->held_ns = run_now_ns();
    run->phase = RUNNING;
    run_report_grant(run->report, run->options);
    order(run, RUN_START, 0);
}

static void step_running(run_state *run)
{
    if (run->news.state == RUN_LEASE_LOST && run->told_ns == 0) {
        run->told_ns = run_now_ns();
        order(run, RUN_STOP, 0);
    }
    if (run_now_ns() < take_over_ns(run))
        return;
    /* The supervisor is stopped, or the processes it has to end do not end. */
    start_sweeping(run);
}

/* The supervisor does not do its work, or other processes are in its way: kill
 * all descendants of sqlock, which are the watcher and the supervisor (run.h),
 * the command, which the kernel kills when the supervisor dies, and others. */
static void step_sweeping(run_state *run)
{
    int wait_status;
    bool is_told;

    run_cgroup_kill(&run->cgroup);
    if (run_family_kill(RUN_ANY_SESSION, 0, &wait_status, &is_told)) {
        if (run_now_ns() - run->swept_ns < RUN_GIVE_UP_NS)
            return;
        /* The lock is not released: it excludes others as long as the lease
         * lasts, since processes of the command still run. */
        cli_error("a process of the command cannot be ended; the lock stays "
                  "held until its lease expires");
        run->report->cause = "lost";
        run_report_write(run->report, run->options, CLI_LOST);
        _exit(CLI_LOST);
    }
    run_cgroup_clear(&run->cgroup);
    if (run->news.state == RUN_LEASE_LOST) {
        end_lost(run);
        say_loss(run);
    } else if (run->swept_ns >= take_over_ns(run)) {
        end_lost(run);
        cli_error("the command was ended: the lease was about to expire, and "
                  "the supervisor had not ended it");
    } else {
        run->report->cause = "system";
        start_releasing(run, CLI_SYSTEM);
        cli_error("the supervisor was killed, and the command with it");
    }
}

static void step_recording(run_state *run)
{
    if (!run->news.is_recorded)
        return;
    if (run->news.is_done) {
        start_holding(run);
        return;
    }
    run->status = cli_status_of(run->news.error.code);
    run->report->cause = cause_of(run->status);
    start_releasing(run, run->status);
    cli_error(
        "the command succeeded, but its success could not be recorded: %s",
        run->news.error.message);
}

static int64_t hold_until_ns(const run_state *run)
{
    return run->held_ns + run->options->min_hold_ms * RUN_NS_PER_MS;
}

static void step_holding(run_state *run)
{
    if (run->is_cut || run_now_ns() >= hold_until_ns(run) ||
        run->news.state != RUN_LEASE_HELD)
        start_releasing(run, run->status);
}

/* Return whether the lock was certainly still ours when the command ended: its
 * success was recorded under the lock, or a renewal sent later has
 * succeeded. */
static bool was_held_to_the_end(const run_state *run)
{
    int64_t ttl_ns = (int64_t)run->options->registry.ttl_ms * RUN_NS_PER_MS;

    return run->ended_ns != 0 &&
           (run->news.is_done ||
            run->news.deadline_ns - ttl_ns >= run->ended_ns);
}

static void step_releasing(run_state *run)
{
    int result = run->news.result;

    if (run->news.state != RUN_LEASE_OVER)
        return;
    run->phase = DONE;
    if (result == 0 || run->status == CLI_LOST)
        return;
    if ((result == SQLOCK_ELOST || result == SQLOCK_EEXPIRED) &&
        was_held_to_the_end(run)) {
        cli_note("the lock was lost after the command had ended");
    } else if (result == SQLOCK_ELOST) {
        cli_error("the lease was lost before the command ended: another owner "
                  "may have had the lock at the same time");
        run->report->cause = "lost";
        run->status = CLI_LOST;
    } else if (result == SQLOCK_EEXPIRED) {
        cli_error("the lease expired before the command ended; nobody else has "
                  "taken the lock");
    } else {
        cli_note("the lock could not be released and stays held until its "
                 "lease expires: %s",
                 run->news.error.message);
    }
}

static void (*const steps[])(run_state *) = {
    [WAITING] = step_waiting,   [RUNNING] = step_running,
    [SWEEPING] = step_sweeping, [RECORDING] = step_recording,
    [HOLDING] = step_holding,   [RELEASING] = step_releasing,
};

static void step(run_state *run)
{
    run_phase before;

    do {
        before = run->phase;
        if (run->phase != DONE)
            steps[run->phase](run);
    } while (run->phase != before);
}

/* ------------------------------------------------------------------ loop -- */

static int64_t next_ns(const run_state *run)
{
    switch (run->phase) {
    case RUNNING:
        return take_over_ns(run);
    case SWEEPING:
        return run_now_ns() + RUN_TICK_NS;
    case HOLDING:
        return hold_until_ns(run);
    default:
        return 0;
    }
}

static void wait_for_event(run_state *run)
{
    struct pollfd files[] = {
        {.fd = run->signals.fd, .events = POLLIN},
        {.fd = run->lease.event_fd, .events = POLLIN},
        {.fd = run->link_fd, .events = POLLIN},
        {.fd = run->timer_fd, .events = POLLIN},
    };
    int64_t deadline_ns = run->news.deadline_ns;

    run_set_timer(run->timer_fd, next_ns(run));
    (void)poll(files, sizeof files / sizeof files[0], -1);
    run_lease_read(&run->lease, &run->news);
    if (run->phase == RUNNING && run->news.deadline_ns != deadline_ns)
        order(run, RUN_DEADLINE, 0);
    take_messages(run);
    take_signals(run);
}

static bool begin(run_state *run)
{
    if (!run_signals_block(&run->signals))
        return false;
    run->timer_fd = timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC | TFD_NONBLOCK);
    if (run->timer_fd < 0) {
        cli_error("timerfd: %s", strerror(errno));
        return false;
    }
    (void)prctl(PR_SET_CHILD_SUBREAPER, 1);
    run->link_fd = run_supervisor_start(run->options, &run->signals.before);
    return run->link_fd >= 0;
}

int run_loop(const run_options *options, run_report *report)
{
    run_state run = {.options = options,
                     .report = report,
                     .link_fd = -1,
                     .cgroup = {.dir_fd = -1, .parent_fd = -1},
                     .signals = {.fd = -1},
                     .timer_fd = -1};
    bool has_lease;

    run.status = CLI_SYSTEM;
    report->cause = "system";
    has_lease = begin(&run) && run_lease_start(&run.lease, options);
    while (has_lease && run.phase != DONE) {
        wait_for_event(&run);
        step(&run);
    }
    if (has_lease)
        run_lease_clear(&run.lease);
    if (run.link_fd >= 0)
        (void)close(run.link_fd);
    if (run.timer_fd >= 0)
        (void)close(run.timer_fd);
    run_signals_clear(&run.signals);
    if (run.death != 0)
        die_of(&run, run.death);
    return run.status;
}
