/*
 * loop.c - the main thread of `sqlock run`: wait for the lock, run the command
 * under it, release it
 *
 *     1. Wait for the lock; another thread listens for signals meanwhile.
 *     2. Run: sleep until the supervisor has a message, a signal comes, the
 *        lease is lost, or a point in time is reached.  Nothing may block here,
 *        neither a call of the database nor a write to stderr.
 *     3. Record the success (--once), and keep the lock (--min-hold).
 *     4. Release it, and report the outcome.
 *
 * The supervisor ends the command before the lease ends.  If the supervisor is
 * killed, or fails to do so, sqlock, which is a subreaper, too, ends the
 * remaining processes itself.
 */
#include "run.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <unistd.h>

/* Check this often per TTL whether the lease was renewed. */
#define LOOK_PART 16

typedef struct run_state {
    const run_options *options;
    run_report *report;
    run_lease lease;
    run_signals signals;
    run_terminal terminal;
    int link_fd; /* to the supervisor; -1: it has ended */
    int timer_fd;
    run_listener listener; /* to die of its signal, if there is one */
    bool is_running;       /* the command, or what has to end with it */
    bool was_stopped;      /* the command was stopped by job control */
    bool is_cut;       /* a signal has ended --min-hold, after the success */
    int told_by;       /* the first signal that told the command to end, or 0 */
    int told_serial;   /* its serial number */
    int64_t told_ns;   /* when the loss was sent to the supervisor, or 0 */
    int64_t begun_ns;  /* when the command was to begin */
    int64_t ended_ns;  /* end of the command, and of all that had to end with
                          it; or 0 */
    int status;        /* exit status */
    char message[512]; /* an error, to be written at the end; or "" */
} run_state;

static _Noreturn void die_of(const run_state *run, int number)
{
    run_report_die(run->report, run->options, &run->signals, number);
}

/* Return whether a last message is to be written: wait until stderr takes it,
 * unless a signal ends sqlock.  A candidate waits for no reader, since its next
 * term may follow. */
static bool may_say(run_state *run)
{
    if (run->signals.is_candidate)
        return run_takes_output(STDERR_FILENO);
    run_report_await(run->report, run->options, &run->signals, STDERR_FILENO);
    return true;
}

static void say_last(run_state *run, void (*say)(const char *, ...),
                     const char *text)
{
    if (may_say(run))
        say("%s", text);
}

/* Set the outcome.  The message, which may be "", is written after the lock was
 * released: stderr may block. */
static void end_as(run_state *run, int status, const char *cause,
                   const char *format, ...)
    __attribute__((format(printf, 4, 5)));

static void end_as(run_state *run, int status, const char *cause,
                   const char *format, ...)
{
    va_list arguments;

    run->is_running = false;
    run->status = status;
    run->report->cause = cause;
    va_start(arguments, format);
    (void)vsnprintf(run->message, sizeof run->message, format, arguments);
    va_end(arguments);
}

/* Return when sqlock itself ends the command, if the supervisor has not done so
 * by then. */
static int64_t take_over_ns(const run_state *run)
{
    int64_t lead_ns = run->options->lead_ms * LK_NS_PER_MS;
    int64_t grace_ns = run->options->grace_ms * LK_NS_PER_MS;
    int64_t at_ns = run->lease.deadline_ns - lead_ns / 2;
    int64_t due_ns = run->told_ns + grace_ns + lead_ns;

    return run->told_ns != 0 && due_ns < at_ns ? due_ns : at_ns;
}

static void order(const run_state *run, run_word word, int number)
{
    run_message message = {.word = word,
                           .number = number,
                           .serial = run->signals.serial,
                           .deadline_ns = run->lease.deadline_ns,
                           .grant = run->lease.grant};

    run_link_send(run->link_fd, &message);
}

/* --------------------------------------------------------------- waiting -- */

/* Called in the thread that listens for signals. */
static void die_waiting(void *context, int number)
{
    run_state *run = context;

    run->report->cause = "interrupted";
    die_of(run, number);
}

/* Wait for the lock.  Return as run_lease_take(). */
static int wait_for_lock(run_state *run)
{
    run_listener *listener = &run->listener;
    int rc;

    *listener = (run_listener){.signals = &run->signals,
                               .die = die_waiting,
                               .context = run,
                               .is_held = &run->lease.is_held};
    rc = run_listener_begin(listener, &run->lease.error);
    if (rc < 0)
        return rc;
    rc = run_lease_take(&run->lease, run->options, &listener->number,
                        listener->stop_fd);
    run_listener_end(listener);
    return rc;
}

/* Return whether the command may be started, or set the outcome. */
static bool may_start(run_state *run)
{
    run_message message;

    (void)run_link_receive(&run->link_fd, &message); /* there is none */
    (void)run_lease_look(&run->lease);
    if (run->lease.is_lost ||
        lk_boottime_ns() >=
            take_over_ns(run) - run->options->grace_ms * LK_NS_PER_MS)
        end_as(run, CLI_LOST, "lost",
               "the lease was over before the command was started");
    else if (run->link_fd < 0)
        end_as(run, CLI_SYSTEM, "system",
               "the supervisor was killed before the command was started");
    else
        return true;
    return false;
}

/* --------------------------------------------------------------- signals -- */

/* Pass a signal on to the command; CONT even if the supervisor has reported no
 * stop, since that report may be on its way. */
static void pass_on(run_state *run, int number)
{
    if (number != SIGTSTP && run->was_stopped)
        run_terminal_resume(&run->terminal);
    run->was_stopped = run->was_stopped && number == SIGTSTP;
    run_signals_count(&run->signals, number);
    if (run->told_by == 0 && run_signals_tell_to_end(number)) {
        run->told_by = number;
        run->told_serial = run->signals.serial;
    }
    order(run, RUN_SIGNAL, number);
}

/* Note a signal that tells sqlock to end, once the command has. */
static void note_told(run_state *run, int number)
{
    run->report->was_hung_up = run->report->was_hung_up || number == SIGHUP;
    run->report->was_told =
        run->report->was_told ||
        (run_signals_tell_to_end(number) && number != SIGHUP);
}

/* After the command's success, a signal ends only the hold that follows. */
static void take_signals(run_state *run)
{
    int number = run_signals_take(&run->signals);

    while (number != 0) {
        note_told(run, number);
        if (run->is_running)
            pass_on(run, number);
        else
            run->is_cut = run->is_cut || run_signals_may_end(number);
        number = run_signals_take(&run->signals);
    }
}

/* ------------------------------------------------------- the supervisor -- */

static void take_refusal(run_state *run, int error)
{
    bool is_missing = error == ENOENT || error == ENOTDIR;

    (void)run_terminal_end(&run->terminal, 0);
    end_as(run, is_missing ? CLI_NOT_FOUND : CLI_UNRUNNABLE,
           is_missing ? "not_found" : "not_runnable", "cannot run \"%s\": %s",
           run->options->command[0], strerror(error));
}

/* Return whether the command was told to end while it ran: what it was to do
 * may not be done, though its exit status says so. */
static bool was_told(const run_state *run, const run_message *message)
{
    return run->told_by != 0 && run->told_serial <= message->serial;
}

static void take_end(run_state *run, const run_message *message)
{
    int wait_status = message->number;

    if (run_terminal_end(&run->terminal, wait_status))
        run->report->was_told = true;
    run->ended_ns = lk_boottime_ns();
    run->report->has_ended = true;
    run->report->wait_status = wait_status;
    /* A signal that came after the command's end applies to the hold that
     * follows. */
    run->is_cut = message->serial < run->signals.ending;
    switch (message->why) {
    case RUN_END_LOST:
        end_as(run, CLI_LOST, "lost", "the command was ended: %s",
               run->lease.error.message);
        return;
    case RUN_END_DEADLINE: /* the supervisor has said why */
    case RUN_END_ALONE:
        end_as(run, CLI_LOST, "lost", "%s", "");
        return;
    default:
        break;
    }
    if (WIFSIGNALED(wait_status))
        end_as(run, CLI_SIGNALLED + WTERMSIG(wait_status), "signaled", "%s",
               "");
    else
        end_as(run, WEXITSTATUS(wait_status), "exited", "%s", "");
    if (message->why != RUN_END_OWN)
        run_note("the command left processes behind; they were ended");
    if (run->options->is_once && run->status == CLI_OK &&
        was_told(run, message))
        end_as(run, CLI_SIGNALLED + run->told_by, "interrupted",
               "the command was told to end, and has exited with 0: that is "
               "not recorded as done");
}

static void take_message(run_state *run, const run_message *message)
{
    switch (message->word) {
    case RUN_READY:
        run_terminal_begin(&run->terminal, message->pid);
        order(run, RUN_GO, 0);
        break;
    case RUN_REFUSED:
        take_refusal(run, message->number);
        break;
    case RUN_HALTED:
        if (message->serial < run->signals.waking)
            break; /* a later signal has continued the command */
        run->was_stopped = true;
        if (run_terminal_follow_stop(&run->terminal, message->number))
            pass_on(run, SIGCONT);
        break;
    case RUN_ENDED:
        take_end(run, message);
        break;
    default:
        break;
    }
}

/* The supervisor was killed, or does not do its work, or other processes are in
 * its way: kill all descendants of sqlock, which are the watcher and the
 * supervisor, the command, which the kernel kills when the supervisor dies, and
 * others. */
static void take_over(run_state *run)
{
    bool is_due = lk_boottime_ns() >= take_over_ns(run);

    (void)run_terminal_end(&run->terminal, 0);
    if (run_family_sweep()) {
        /* The lock is not released: it excludes others as long as the lease
         * lasts, since processes of the command still run. */
        run->report->cause = "lost";
        say_last(run, cli_error,
                 "a process of the command cannot be ended; the lock stays "
                 "held until its lease expires");
        run_report_write(run->report, run->options, &run->signals, CLI_LOST);
        _exit(CLI_LOST);
    }
    (void)run_lease_look(&run->lease);
    if (run->lease.is_lost)
        end_as(run, CLI_LOST, "lost", "the command was ended: %s",
               run->lease.error.message);
    else if (is_due)
        end_as(run, CLI_LOST, "lost",
               "the command was ended: the lease was about to expire, and the "
               "supervisor had not ended it");
    else
        end_as(run, CLI_SYSTEM, "system",
               "the supervisor was killed, and the command with it");
}

/* --------------------------------------------------------------- running -- */

/* Sleep until something has happened, or until at_ns. */
static void rest(run_state *run, int64_t at_ns)
{
    int64_t ttl_ms = (int64_t)run->options->registry.ttl_ms;
    int64_t look_ns = lk_boottime_ns() + ttl_ms * LK_NS_PER_MS / LOOK_PART;
    const int fds[] = {run->signals.fd, run->lease.lost_fd, run->link_fd};

    run_sleep(run->timer_fd, at_ns < look_ns ? at_ns : look_ns, fds);
    if (run_lease_look(&run->lease) && run->is_running)
        order(run, RUN_DEADLINE, 0);
}

/* Run the command, until it has ended with all that has to end with it. */
static void run_command(run_state *run)
{
    run_message message;

    run_info("\"%s\" is ours, starting %s", run->options->name,
             run->options->command[0]);
    run->is_running = true;
    run->begun_ns = lk_boottime_ns();
    run_report_grant(run->report, run->options);
    order(run, RUN_START, 0);
    while (run->is_running) {
        rest(run, take_over_ns(run));
        if (run->lease.is_lost && run->told_ns == 0) {
            run->told_ns = lk_boottime_ns();
            order(run, RUN_STOP, 0);
        }
        while (run->is_running && run_link_receive(&run->link_fd, &message))
            take_message(run, &message);
        if (run->is_running &&
            (run->link_fd < 0 || lk_boottime_ns() >= take_over_ns(run)))
            take_over(run);
        take_signals(run);
    }
    (void)close(run->link_fd);
    run->link_fd = -1;
}

/* ------------------------------------------------------------ the outcome
 * -- */

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

/* The command has succeeded: record that, and keep the lock. */
static void succeed(run_state *run)
{
    int64_t until_ns = run->begun_ns + run->options->min_hold_ms * LK_NS_PER_MS;
    int rc = run->options->is_once ? run_lease_record(&run->lease) : 0;

    if (rc < 0) {
        int status = cli_status_of(rc);

        /* which would mean that nothing was run, or be the command's */
        if (status == CLI_BUSY || status == CLI_UNCERTAIN)
            status = CLI_DATABASE;
        end_as(run, status, cause_of(status),
               "the command succeeded, but its success could not be recorded: "
               "%s",
               run->lease.error.message);
        return;
    }
    if (run->options->min_hold_ms > 0)
        run_info("the command has succeeded, keeping the lock");
    take_signals(run);
    while (!run->is_cut && !run->lease.is_lost && lk_boottime_ns() < until_ns) {
        rest(run, until_ns);
        take_signals(run);
    }
}

/* Return whether the lock was certainly still ours when the command ended: its
 * success was recorded under the lock, or a renewal sent later has
 * succeeded. */
static bool was_held_to_the_end(const run_state *run)
{
    int64_t ttl_ns = (int64_t)run->options->registry.ttl_ms * LK_NS_PER_MS;

    return run->ended_ns != 0 &&
           (run->lease.is_done ||
            run->lease.deadline_ns - ttl_ns >= run->ended_ns);
}

static void note_kept(run_state *run, const sqlock_error *err)
{
    if (may_say(run))
        cli_note(
            "the lock could not be released and stays held until its lease "
            "expires: %s",
            err->message);
}

static void release(run_state *run)
{
    sqlock_error err = {0};
    int rc = run_lease_release(&run->lease, &err);

    if (run->message[0] != '\0')
        say_last(run, cli_error, run->message);
    if (rc == 0 || run->status == CLI_LOST)
        return;
    if ((rc == SQLOCK_ELOST || rc == SQLOCK_EEXPIRED) &&
        was_held_to_the_end(run)) {
        say_last(run, cli_note,
                 "the lock was lost after the command had ended");
    } else if (rc == SQLOCK_ELOST) {
        run->report->cause = "lost";
        run->status = CLI_LOST;
        say_last(run, cli_error,
                 "the lease was lost before the command ended: another owner "
                 "may have had the lock at the same time");
    } else if (rc == SQLOCK_EEXPIRED) {
        say_last(run, cli_error,
                 "the lease expired before the command ended; nobody else has "
                 "taken the lock");
    } else {
        note_kept(run, &err);
    }
}

static void say_done(const run_state *run)
{
    char done[CLI_NUMBER_SIZE];
    const char *at = cli_time_text(done, run->lease.done_at_us, false);

    cli_note("\"%s\" was done before%s%s: nothing is run; see `sqlock once`",
             run->options->name, at != NULL ? ", at " : "",
             at != NULL ? at : "");
}

/* End without having run the command: the lock was not to be had, with the
 * result rc. */
static void give_up(run_state *run, int rc)
{
    (void)run_lease_release(&run->lease, NULL);
    run->status = run_wait_status(rc, &run->lease.error);
    if (run->status == CLI_UNCERTAIN) /* which would be the command's */
        run->status = CLI_DATABASE;
    run->report->cause = cause_of(run->status);
    if (run->status == CLI_BUSY) {
        run->status = run->options->busy_status;
        if (!run->lease.is_unsaid)
            return;
    }
    if (may_say(run))
        (void)cli_fail(&run->lease.error);
}

/* End without having run the command: the work was done before, whatever
 * becomes of the lock. */
static void end_as_done(run_state *run)
{
    sqlock_error err = {0};
    int rc = run_lease_release(&run->lease, &err);

    end_as(run, CLI_OK, "done", "%s", "");
    if (may_say(run))
        say_done(run);
    if (rc < 0 && rc != SQLOCK_ELOST && rc != SQLOCK_EEXPIRED)
        note_kept(run, &err);
}

static void work(run_state *run)
{
    int rc = wait_for_lock(run);

    run->report->grant = run->lease.grant;
    if (run->listener.number != 0) {
        run->status = CLI_SIGNALLED + run->listener.number;
        run->report->cause = "interrupted";
    } else if (rc < 0) {
        give_up(run, rc);
        return;
    } else if (run->lease.is_done) {
        end_as_done(run);
        return;
    } else if (may_start(run)) {
        run_command(run);
        if (run->status == CLI_OK)
            succeed(run);
    }
    release(run);
}

static bool begin(run_state *run)
{
    run->timer_fd = timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC | TFD_NONBLOCK);
    if (run->timer_fd < 0) {
        (void)cli_fail_to("cannot open a timer", errno);
        return false;
    }
    (void)prctl(PR_SET_CHILD_SUBREAPER, 1);
    run->link_fd = run_supervisor_start(run->options, &run->signals.before);
    return run->link_fd >= 0;
}

static void end(const run_state *run)
{
    const int fds[] = {run->link_fd, run->timer_fd};
    size_t i;

    if (run->listener.number != 0)
        die_of(run, run->listener.number);
    for (i = 0; i < sizeof fds / sizeof fds[0]; i++) {
        if (fds[i] >= 0)
            (void)close(fds[i]);
    }
}

int run_loop(const run_options *options, const run_signals *signals,
             run_report *report)
{
    run_state run = {
        .options = options,
        .report = report,
        .lease = {.lost_fd = -1, .mutex = PTHREAD_MUTEX_INITIALIZER},
        .link_fd = -1,
        .signals = *signals,
        .timer_fd = -1,
        .status = CLI_SYSTEM};

    report->cause = "system";
    if (begin(&run))
        work(&run);
    end(&run);
    return run.status;
}
