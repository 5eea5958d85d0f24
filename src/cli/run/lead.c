/*
 * lead.c - `sqlock lead`: keep a service running in one place
 *
 * Each term is a run of its own (loop.c): wait for the lock, run the command,
 * release the lock.  A service that has failed, or whose lease was lost, waits
 * for the lock again, behind those that wait elsewhere.
 */
#include "run.h"

#include <signal.h>
#include <string.h>
#include <sys/wait.h>

/* Pause after a term, so that a service that cannot begin keeps neither this
 * machine nor the database busy. */
#define PAUSE_MS 1000

/* Return whether another term follows.  HUP may tell a service to read its
 * configuration, so it counts only if the service has ended by it.  A limit by
 * which this process has never come to lead will not let it. */
static bool goes_on(const run_report *report, int status, bool has_led)
{
    static const char *const causes[] = {"exited", "signaled", "lost",
                                         "system"};
    size_t i;

    if (status == CLI_OK || report->was_told ||
        (strcmp(report->cause, "system") == 0 && !has_led) ||
        (report->was_hung_up && report->has_ended &&
         run_ended_by(report->wait_status, SIGHUP)))
        return false;
    for (i = 0; i < sizeof causes / sizeof causes[0]; i++) {
        if (strcmp(report->cause, causes[i]) == 0)
            return true;
    }
    return false;
}

/* Say how the term has ended; loop.c has said why, if sqlock ended it.  Nobody
 * need read it for the next term to come. */
static void say_end(const run_report *report, const char *command)
{
    int status = report->wait_status;

    if (strcmp(report->cause, "exited") == 0)
        run_note("%s has exited with %d", command, WEXITSTATUS(status));
    else if (strcmp(report->cause, "signaled") == 0)
        run_note("%s was ended by the signal SIG%s", command,
                 sigabbrev_np(WTERMSIG(status)));
}

/* Wait for PAUSE_MS, and return the signal that ends the wait, or 0. */
static int pause_between(run_signals *signals)
{
    int64_t until_ns = sqlock_monotonic_ns() + PAUSE_MS * LK_NS_PER_MS;
    int64_t left_ns;

    while ((left_ns = until_ns - sqlock_monotonic_ns()) > 0) {
        int number = run_signals_await(signals, left_ns / LK_NS_PER_MS + 1, -1);

        if (number == SIGTSTP)
            run_signals_stop();
        else if (number != 0 && run_signals_end_wait(signals, number))
            return number;
    }
    return 0;
}

int run_lead(const run_options *options, const run_signals *signals,
             run_report *report)
{
    run_signals ours = *signals;
    bool has_led = false;

    for (;;) {
        int status = run_loop(options, &ours, report);
        int number;

        has_led = has_led || report->grant.token != 0;
        if (!goes_on(report, status, has_led))
            return status;
        say_end(report, options->command[0]);
        report->has_ended = false;
        report->was_hung_up = false;
        report->grant = (run_grant){.token = 0};
        report->cause = "interrupted"; /* if a signal ends the pause */
        number = pause_between(&ours);
        if (number != 0)
            run_report_die(report, options, &ours, number);
        while (waitpid(-1, NULL, WNOHANG) > 0)
            continue; /* daemons that have outlived their term */
        run_info("waiting for \"%s\" again", options->name);
    }
}
