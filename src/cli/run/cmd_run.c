/*
 * cmd_run.c - `sqlock run`: read its options, and refuse times that contradict
 * each other before anything is started; loop.c does the work
 */
#include "run.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define GRACE_DEFAULT_MOST_MS ((int64_t)10000)
#define NOTE_MAX 80

static bool is_impatient;
static bool is_once;
static bool is_fail_fast;
static bool keeps_daemons;
static int64_t wait_ms = SQLOCK_FOREVER;
static int64_t ttl_ms = RUN_TTL_DEFAULT_MS;
static int64_t grace_ms = -1;
static int64_t min_hold_ms;
static int64_t busy_status = CLI_BUSY;
static int64_t status_fd = -1;
static const char *shell_string;

static const cli_option options_table[] = {
    {"status-fd", .number = &status_fd, .most = INT32_MAX},
    {"wait", 'w', .ms = &wait_ms},
    {"no-wait", 'n', .flag = &is_impatient},
    {"fail-fast", .flag = &is_fail_fast},
    {"ttl", 't', .ms = &ttl_ms, .least = RUN_TTL_LEAST_MS,
     .most = RUN_TTL_MOST_MS},
    {"grace", .ms = &grace_ms},
    {"min-hold", .ms = &min_hold_ms, .most = RUN_TTL_MOST_MS},
    {"once", .flag = &is_once},
    {"keep-daemons", .flag = &keeps_daemons},
    {"command", 'c', .text = &shell_string},
    {"conflict-exit-code", 'E', .number = &busy_status, .most = 255},
    {.name = NULL}};

static int64_t clamp(int64_t value, int64_t least, int64_t most)
{
    if (value < least)
        return least;
    return value > most ? most : value;
}

static bool read_times(run_options *options)
{
    if (is_impatient && wait_ms >= 0) {
        cli_error("run: give either --wait or --no-wait");
        return false;
    }
    if (grace_ms > ttl_ms / 2) {
        cli_error("run: --grace must be at most half of --ttl");
        return false;
    }
    options->wait_ms = is_impatient ? 0 : wait_ms;
    /* By default, three renewals, a quarter of the TTL apart, are sent before
     * the grace period begins. */
    options->grace_ms =
        grace_ms >= 0 ? grace_ms : clamp(ttl_ms / 5, 0, GRACE_DEFAULT_MOST_MS);
    options->min_hold_ms = min_hold_ms;
    options->lead_ms = clamp(ttl_ms / 40, 20, 1000);
    options->registry.ttl_ms = (uint32_t)ttl_ms;
    /* A limit for acquiring and releasing; renewals have a shorter one. */
    options->registry.statement_timeout_ms =
        (uint32_t)clamp(ttl_ms / 2, 500, 5000);
    return true;
}

/* Take the command from the command line, or a shell for the string of -c. */
static bool read_command(const cli *app, run_options *options)
{
    static const char *shell[] = {"/bin/sh", "-c", NULL, NULL};

    options->command = (const char *const *)app->child;
    if (shell_string != NULL) {
        if (app->child != NULL)
            cli_error("run: give either -c or a command");
        shell[2] = shell_string;
        options->command = shell;
        return app->child == NULL;
    }
    if (app->child == NULL || app->child[0] == NULL) {
        cli_error("run: the command is missing: sqlock run KEY COMMAND ...");
        return false;
    }
    if (strstr(app->child[0], "://") != NULL) {
        cli_error("run: there is no command \"%s\"", cli_shown(app->child[0]));
        return false;
    }
    return true;
}

/* Take the descriptor of --status-fd.  It must be open already, since otherwise
 * a connection could get its number.  The command inherits it only as one of
 * the standard files. */
static bool read_status_fd(run_report *report)
{
    int fd = (int)status_fd;

    report->fd = -1;
    if (fd < 0)
        return true;
    if (fcntl(fd, F_GETFD) < 0) {
        cli_error("run: --status-fd must be the number of an open descriptor");
        return false;
    }
    report->fd = fcntl(fd, F_DUPFD_CLOEXEC, 3);
    if (report->fd < 0)
        cli_error("run: cannot use the descriptor of --status-fd: %s",
                  strerror(errno));
    if (fd > 2)
        (void)fcntl(fd, F_SETFD, FD_CLOEXEC);
    return report->fd >= 0;
}

static int read_options(const cli *app, run_options *options)
{
    int status;

    if (!read_command(app, options))
        return CLI_USAGE;
    options->name = app->args[0];
    options->is_once = is_once;
    options->is_fail_fast = is_fail_fast;
    options->keeps_daemons = keeps_daemons;
    options->url = cli_url(app);
    if (options->url == NULL)
        return CLI_USAGE;
    status = cli_registry_options(app, &options->registry);
    if (status != CLI_OK)
        return status;
    options->registry.pool_size = 2; /* renewals wait for no other call */
    if (!read_times(options))
        return CLI_USAGE;
    options->busy_status = (int)busy_status;
    if (cli_settings_for_child(app, options->settings))
        return CLI_OK;
    cli_error("out of memory");
    return CLI_SYSTEM;
}

/* Write the command's name to @p note, for users who look up the holder, but
 * not its arguments, which may contain secrets.  A name that is not printable
 * ASCII becomes "". */
static void write_note(const char *command, char note[NOTE_MAX + 1])
{
    const char *slash = strrchr(command, '/');
    const char *name = slash != NULL ? slash + 1 : command;
    const char *at;

    note[0] = '\0';
    for (at = name; *at != '\0'; at++) {
        if (*at < ' ' || *at > '~')
            return;
    }
    (void)snprintf(note, NOTE_MAX + 1, "%s", name);
}

/* Return the part of a lease's id behind the third colon, the key, with all
 * that follows it; "": there is none. */
static const char *key_of_lease(const char *lease)
{
    int colons;

    for (colons = 0; colons < 3; colons++) {
        lease += strcspn(lease, ":");
        lease += *lease == ':';
    }
    return lease;
}

/* Return whether the lease with the id @p lease still holds the lock.  The row
 * decides, since the id in the environment may be of another table, or of a
 * lease that is over.  Also return false if the database does not answer: the
 * wait for the lock reports that. */
static bool is_still_held(const run_options *options, const char *lease)
{
    sqlock_registry *registry = NULL;
    sqlock_info *row = NULL;
    bool is_held = false;
    size_t length = strcspn(lease, ":");

    if (sqlock_registry_open(&registry, options->url, &options->registry,
                             NULL) == 0 &&
        sqlock_show(registry, options->name, &row, NULL) == 0)
        is_held = row->state == SQLOCK_HELD &&
                  strlen(row->client_id) == length &&
                  strncmp(row->client_id, lease, length) == 0;
    sqlock_info_free(row, row != NULL);
    (void)sqlock_registry_close(registry, NULL);
    return is_held;
}

/* Return whether a `sqlock run` that this process descends from holds the lock:
 * waiting for the lock would never end. */
static bool is_held_around(const run_options *options)
{
    const char *lease = getenv(RUN_LEASES);
    char key[SQLOCK_KEY_SIZE];

    if (sqlock_key_of(key, options->name, options->registry.key_rule, NULL) < 0)
        return false;
    while (lease != NULL && *lease != '\0') {
        const char *its_key = key_of_lease(lease);
        size_t length = strcspn(its_key, " ");

        if (length == strlen(key) && strncmp(its_key, key, length) == 0 &&
            is_still_held(options, lease))
            return true;
        lease = its_key + length;
        lease += *lease == ' ';
    }
    return false;
}

static int check_nesting(const run_options *options)
{
    if (!is_held_around(options))
        return CLI_OK;
    cli_error("run: the lock \"%s\" is held by a `sqlock run` around this "
              "command",
              cli_shown(options->name));
    return CLI_USAGE;
}

static int run_run(cli *app)
{
    run_options options = {.name = NULL};
    run_report report = {.cause = "usage"};
    char note[NOTE_MAX + 1];
    char **setting;
    int status;

    if (!read_status_fd(&report))
        return CLI_USAGE;
    status = read_options(app, &options);
    if (status == CLI_OK)
        status = check_nesting(&options);
    if (status == CLI_OK) {
        write_note(shell_string != NULL ? "sh" : options.command[0], note);
        options.registry.holder_note = note[0] != '\0' ? note : NULL;
        cli_forget_variable("SQLOCK_URL"); /* options.url is a copy */
        status = run_loop(&options, &report);
    }
    run_report_write(&report, &options, status);
    for (setting = options.settings; *setting != NULL; setting++)
        free(*setting);
    return status;
}

static void report_refusal(const cli *app)
{
    const run_options options = {.name = app->count > 0 ? app->args[0] : NULL,
                                 .registry.region = app->settings[CLI_REGION]};
    run_report report = {.cause = "usage"};

    if (read_status_fd(&report))
        run_report_write(&report, &options, CLI_USAGE);
}

const cli_command cli_run = {
    .name = "run",
    .summary = "run a command while holding a lock",
    .argument = "KEY",
    .has_child = true,
    .options = options_table,
    .run = run_run,
    .refused = report_refusal,
};
