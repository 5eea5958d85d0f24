/*
 * cmd_acquire.c - `sqlock acquire`: acquire a lock for a program that sqlock
 * does not start, such as a shell script
 *
 * When sqlock ends, the lease goes on, and the program refers to it by the id
 * that sqlock has printed.  With --for, a helper process renews the lease until
 * the given process ends, and then releases it.
 */
#include "run.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <jansson.h>

static int64_t for_pid; /* 0: not given */

static const cli_option options_table[] = {
    RUN_ASKED_OPTIONS,
    {"shared", 's', .flag = &run_asked.is_shared},
    {"for", .number = &for_pid, .least = 1, .most = INT32_MAX},
    {.name = NULL}};

/* A lock with what is needed to hold it. */
typedef struct holding {
    sqlock_registry *registry;
    sqlock_lock *lock;
    int lost_fd;
    atomic_bool is_held;
    run_signals signals; /* blocked: they end the wait, or give the lock back */
    run_listener listener;
} holding;

/* --------------------------------------------------------------- options -- */

/* Return a note that names the process for which the lock is held, since the
 * one in HOLDER is sqlock's: that of --for, or else our caller, "bash 4711". */
static const char *name_caller(void)
{
    static char note[CLI_CALLER_SIZE];

    cli_name_process(note, for_pid != 0 ? (pid_t)for_pid : cli_caller());
    return note;
}

static int read_options(const cli *app, run_options *options)
{
    options->name = app->args[0];
    options->url = cli_where(app, &options->registry);
    options->registry.holder_note = name_caller();
    return options->url != NULL && run_asked_read("acquire", options)
               ? CLI_OK
               : CLI_USAGE;
}

/* Report that the process of --for cannot be observed.  Return an exit status.
 */
static int fail_for(int error)
{
    cli_error("acquire: --for %d: %s", (int)for_pid, strerror(error));
    return error == ESRCH ? CLI_USAGE : CLI_SYSTEM;
}

/* Open a descriptor of the process that --for names; without the option, store
 * -1.  Return CLI_OK, or an exit status after a message. */
static int open_process(int *pid_fd)
{
    *pid_fd = for_pid == 0 ? -1 : pidfd_open((pid_t)for_pid, 0);
    return for_pid == 0 || *pid_fd >= 0 ? CLI_OK : fail_for(errno);
}

/* ---------------------------------------------------------------- taking -- */

/* Called in the thread that listens for signals. */
static void die_waiting(void *context, int number)
{
    run_signals_die_of(context, number);
}

/* Return the signal that has come and ends a process, or 0. */
static int take_signal(run_signals *signals)
{
    int number;

    do {
        number = run_signals_take(signals);
        if (number == SIGTSTP)
            run_signals_stop();
    } while (number != 0 && !run_signals_may_end(number));
    return number;
}

/* Give back what is held, and end by the signal that has come. */
static _Noreturn void die_of(holding *held, int number)
{
    (void)sqlock_registry_close(held->registry, NULL);
    run_signals_die_of(&held->signals, number);
}

/* Wait for the lock, and describe its lease.  A signal ends the wait, which
 * leaves the queue.  Return as run_wait_acquire(). */
static int wait_for_lock(const run_options *options, holding *held,
                         run_grant *lease, sqlock_error *err)
{
    run_listener *listener = &held->listener;
    run_wait wait;
    int rc;

    run_wait_begin(&wait, options, &listener->number, listener->stop_fd);
    rc = run_wait_open(&wait, &options->registry, &held->registry, err);
    if (rc == 0)
        rc = run_wait_acquire(&wait, held->registry, &held->lock,
                              &held->lost_fd, err);
    held->is_held = rc == 0;
    if (rc == 0)
        rc = run_wait_describe(&wait, held->lock, lease, err);
    if (rc < 0) {
        (void)sqlock_registry_close(held->registry, NULL);
        held->registry = NULL;
    }
    return rc;
}

/* Acquire the lock, with signals blocked: one that comes when the lock was
 * granted must not leave it held.  Return CLI_OK, or an exit status after a
 * message. */
static int take(const run_options *options, holding *held, run_grant *lease)
{
    sqlock_error err = {0};
    int number;
    int status;
    int rc;

    if (!run_signals_block(&held->signals))
        return CLI_SYSTEM;
    held->listener = (run_listener){.signals = &held->signals,
                                    .die = die_waiting,
                                    .context = &held->signals,
                                    .is_held = &held->is_held};
    rc = run_listener_begin(&held->listener, &err);
    if (rc == 0) {
        rc = wait_for_lock(options, held, lease, &err);
        run_listener_end(&held->listener);
    }
    number = held->listener.number;
    if (number == 0)
        number = take_signal(&held->signals);
    if (number != 0)
        die_of(held, number);
    if (rc < 0)
        (void)pthread_sigmask(SIG_SETMASK, &held->signals.before, NULL);
    status = run_wait_status(rc, &err);
    if (rc < 0 && status != CLI_BUSY)
        (void)cli_fail(&err);
    return status;
}

static int print(const cli *app, const run_grant *lease)
{
    int status = CLI_OK;

    if (!app->json)
        puts(lease->lease);
    else
        status = cli_print_json(
            json_pack("{s:s, s:o, s:s, s:s, s:I, s:s}", "lease", lease->lease,
                      "name", cli_json_text(app->args[0]), "region",
                      cli_region(app), "key", lease->key, "token",
                      (json_int_t)lease->token, "client_id", lease->client_id));
    return status == CLI_OK ? cli_flush() : status;
}

/* Give the lock back if a signal has come with it, and let the next one end
 * this process at once: the reader of the output may do nothing. */
static void unblock_signals(holding *held)
{
    int number = take_signal(&held->signals);

    if (number != 0)
        die_of(held, number);
    (void)pthread_sigmask(SIG_SETMASK, &held->signals.before, NULL);
}

/* Acquire, and leave no helper process behind that renews the lease.  On
 * success, end this process without releasing the lock: the lease goes on. */
static int acquire(const cli *app, const run_options *options)
{
    holding held = {.lost_fd = -1};
    run_grant lease = {0};
    int status = take(options, &held, &lease);

    if (status == CLI_OK) {
        unblock_signals(&held);
        status = print(app, &lease);
    }
    if (status == CLI_OK)
        _exit(CLI_OK);
    (void)sqlock_registry_close(held.registry, NULL);
    return status;
}

/* ---------------------------------------------------------------- helper -- */

enum { LINK_FD = 3, PROCESS_FD, FREE_FD };

/* Close all descriptors but those of the link, of the process and of stderr: a
 * shell that reads the output of sqlock waits until no process has it open.
 * stderr stays open until the lock is held. */
static bool keep_files(int link_fd, int pid_fd)
{
    int link = fcntl(link_fd, F_DUPFD_CLOEXEC, FREE_FD);
    int process = fcntl(pid_fd, F_DUPFD_CLOEXEC, FREE_FD);
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);

    return link >= 0 && process >= 0 && null >= 0 &&
           dup3(link, LINK_FD, O_CLOEXEC) >= 0 &&
           dup3(process, PROCESS_FD, O_CLOEXEC) >= 0 &&
           dup2(null, STDIN_FILENO) >= 0 && dup2(null, STDOUT_FILENO) >= 0 &&
           close_range(FREE_FD, ~0U, 0) == 0;
}

/* Leave the session, the terminal and the stderr of the program that has called
 * sqlock, and outlive the parent, whose end would kill this process. */
static void leave_caller(void)
{
    (void)prctl(PR_SET_PDEATHSIG, 0);
    (void)setsid();
    (void)dup2(STDIN_FILENO, STDERR_FILENO);
    cli_rename("lock-helper");
}

/* Hear TERM, also where the program ignores it: only that ends a helper whose
 * lease is told. */
static bool hear_term(run_signals *signals)
{
    (void)close(signals->fd);
    (void)signal(SIGTERM, SIG_DFL);
    return run_signals_block(signals);
}

/* Return whether the parent has printed the id, or may yet: it says so by a
 * byte, and ends without one if nobody has got the id. */
static bool may_be_told(struct pollfd *parent)
{
    char byte;

    if (parent->revents == 0)
        return true;
    parent->fd = -1; /* poll() ignores it from now on */
    return read(LINK_FD, &byte, sizeof byte) == (ssize_t)sizeof byte;
}

/* Wait until the process of --for ends, a signal comes, the lease is lost, or
 * its id cannot be told; a thread of the library renews the lease meanwhile. */
static void hold(holding *held)
{
    struct pollfd files[] = {{.fd = PROCESS_FD, .events = POLLIN},
                             {.fd = held->lost_fd, .events = POLLIN},
                             {.fd = LINK_FD, .events = POLLIN},
                             {.fd = held->signals.fd, .events = POLLIN}};

    do {
        files[0].revents = files[1].revents = files[2].revents = 0;
        (void)poll(files, sizeof files / sizeof files[0], -1);
    } while (files[0].revents == 0 && files[1].revents == 0 &&
             may_be_told(&files[2]) && take_signal(&held->signals) == 0);
}

static bool is_ignored(int number)
{
    struct sigaction action;

    return sigaction(number, NULL, &action) == 0 &&
           action.sa_handler == SIG_IGN;
}

static _Noreturn void be_helper(const run_options *options, int link_fd,
                                int pid_fd, pid_t parent)
{
    holding held = {.lost_fd = -1};
    run_grant lease = {0};
    int status = CLI_SYSTEM;

    /* If the parent is killed, the helper must not go on waiting for a lock,
     * but leave the queue. */
    (void)prctl(PR_SET_PDEATHSIG, is_ignored(SIGTERM) ? SIGKILL : SIGTERM);
    if (getppid() != parent)
        _exit(CLI_SYSTEM);
    if (keep_files(link_fd, pid_fd))
        status = take(options, &held, &lease);
    else
        (void)cli_fail_to("cannot prepare a process", errno);
    if (status == CLI_OK) {
        bool hears = hear_term(&held.signals); /* or stderr has a message */

        leave_caller();
        status = CLI_SYSTEM; /* unless the parent has the lease */
        if (hears &&
            write(LINK_FD, &lease, sizeof lease) == (ssize_t)sizeof lease) {
            status = CLI_OK;
            hold(&held);
        }
    }
    (void)sqlock_registry_close(held.registry, NULL);
    _exit(status);
}

/* Return the exit status that the helper's end means for ours. */
static int status_of(pid_t pid)
{
    pid_t ended;
    int status;

    do {
        ended = waitpid(pid, &status, 0);
    } while (ended < 0 && errno == EINTR);
    if (ended != pid)
        return CLI_SYSTEM;
    return WIFSIGNALED(status) ? CLI_SIGNALLED + WTERMSIG(status)
                               : WEXITSTATUS(status);
}

/* Wait for the helper's lease, while the process of --for runs: our end tells
 * the helper to leave the queue, or to give the lock back.  Return CLI_OK, or
 * an exit status, after a message of ours or the helper's. */
static int await_lease(pid_t helper, int link_fd, int pid_fd, run_grant *lease)
{
    struct pollfd files[] = {{.fd = link_fd, .events = POLLIN},
                             {.fd = pid_fd, .events = POLLIN}};

    while (poll(files, 2, -1) < 0)
        continue;
    if (files[1].revents != 0)
        return fail_for(ESRCH);
    return read(link_fd, lease, sizeof *lease) == (ssize_t)sizeof *lease
               ? CLI_OK
               : status_of(helper);
}

static int acquire_for(const cli *app, const run_options *options, int pid_fd)
{
    run_grant lease = {0};
    int link[2];
    pid_t parent = getpid();
    pid_t pid;
    int status;

    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, link) != 0)
        return cli_fail_to("cannot open a socket pair", errno);
    /* Where it is ignored, the kernel keeps no exit status of a child. */
    (void)signal(SIGCHLD, SIG_DFL);
    pid = fork();
    if (pid == 0)
        be_helper(options, link[1], pid_fd, parent);
    (void)close(link[1]);
    if (pid < 0)
        return cli_fail_to("cannot start a process", errno);
    status = await_lease(pid, link[0], pid_fd, &lease);
    if (status == CLI_OK)
        status = print(app, &lease);
    if (status == CLI_OK)
        (void)!write(link[0], "", 1); /* for may_be_told() */
    return status;
}

static int run_acquire(cli *app)
{
    run_options options = {.name = NULL};
    int status = read_options(app, &options);
    int pid_fd;

    if (status == CLI_OK)
        status = open_process(&pid_fd);
    if (status != CLI_OK)
        return status;
    /* Without a reader of its id a lease is released, as by any failure to
     * write. */
    (void)signal(SIGPIPE, SIG_IGN);
    if (pid_fd < 0)
        return acquire(app, &options);
    cli_forget_variable("SQLOCK_URL"); /* options.url is a copy */
    return acquire_for(app, &options, pid_fd);
}

const cli_command cli_acquire = {
    .name = "acquire",
    .summary = "acquire a lock, and print the id of its lease",
    .argument = "NAME",
    .options = options_table,
    .run = run_acquire,
};
