/*
 * cmd_run.c - the options of `sqlock run`; loop.c does the work
 */
#include "run.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TTL_DEFAULT_MS ((int64_t)30000)
#define TTL_LEAST_MS ((int64_t)1000) /* starting a process takes time, too */
#define TTL_MOST_MS ((int64_t)7 * 86400000)
#define GRACE_DEFAULT_MOST_MS ((int64_t)10000)
#define NOTE_MAX 80

enum {
    WAIT,
    TTL,
    GRACE,
    MIN_HOLD,
    BUSY_STATUS,
    STATUS_FD,
    SHELL_COMMAND,
    VALUES
};

static char *values[VALUES];
static int is_impatient;
static int is_once;
static int is_fail_fast;
static int keeps_daemons;
static char shell[] = "/bin/sh";
static char shell_option[] = "-c";
static char *shell_command[] = {shell, shell_option, NULL, NULL};

static const struct poptOption options_table[] = {
    {"wait", 'w', POPT_ARG_STRING, NULL, CLI_OWN + WAIT, NULL, NULL},
    {"no-wait", 'n', POPT_ARG_NONE, &is_impatient, 0, NULL, NULL},
    {"fail-fast", 0, POPT_ARG_NONE, &is_fail_fast, 0, NULL, NULL},
    {"ttl", 't', POPT_ARG_STRING, NULL, CLI_OWN + TTL, NULL, NULL},
    {"grace", 0, POPT_ARG_STRING, NULL, CLI_OWN + GRACE, NULL, NULL},
    {"min-hold", 0, POPT_ARG_STRING, NULL, CLI_OWN + MIN_HOLD, NULL, NULL},
    {"once", 0, POPT_ARG_NONE, &is_once, 0, NULL, NULL},
    {"keep-daemons", 0, POPT_ARG_NONE, &keeps_daemons, 0, NULL, NULL},
    {"command", 'c', POPT_ARG_STRING, NULL, CLI_OWN + SHELL_COMMAND, NULL,
     NULL},
    {"status-fd", 0, POPT_ARG_STRING, NULL, CLI_OWN + STATUS_FD, NULL, NULL},
    {"conflict-exit-code", 'E', POPT_ARG_STRING, NULL, CLI_OWN + BUSY_STATUS,
     NULL, NULL},
    POPT_TABLEEND};

static int64_t clamp(int64_t value, int64_t least, int64_t most)
{
    if (value < least)
        return least;
    return value > most ? most : value;
}

/* Read a time option; @p ms keeps its default if the option is not given.
 * Return false, after a message, if the value is not valid. */
static bool read_time(int which, const char *name, int64_t least, int64_t most,
                      int64_t *ms)
{
    int64_t given;

    if (values[which] == NULL)
        return true;
    if (!cli_parse_duration(values[which], &given)) {
        cli_error("run: %s must be a time, such as 30, 1.5 or 250ms", name);
        return false;
    }
    if (given < least || given > most) {
        cli_error("run: %s must be from %gs to %gs", name, (double)least / 1000,
                  (double)most / 1000);
        return false;
    }
    *ms = given;
    return true;
}

static bool read_times(run_options *options)
{
    int64_t ttl_ms = TTL_DEFAULT_MS;

    options->wait_ms = is_impatient ? 0 : SQLOCK_FOREVER;
    if (is_impatient && values[WAIT] != NULL) {
        cli_error("run: give either --wait or --no-wait");
        return false;
    }
    if (!read_time(WAIT, "--wait", 0, INT64_MAX, &options->wait_ms) ||
        !read_time(TTL, "--ttl", TTL_LEAST_MS, TTL_MOST_MS, &ttl_ms))
        return false;
    /* By default, three renewals, a quarter of the TTL apart, are sent before
     * the grace period begins. */
    options->grace_ms = clamp(ttl_ms / 5, 0, GRACE_DEFAULT_MOST_MS);
    if (!read_time(GRACE, "--grace (at most half of --ttl)", 0, ttl_ms / 2,
                   &options->grace_ms) ||
        !read_time(MIN_HOLD, "--min-hold", 0, TTL_MOST_MS,
                   &options->min_hold_ms))
        return false;
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
    if (values[SHELL_COMMAND] != NULL) {
        if (app->child != NULL) {
            cli_error("run: give either -c or a command");
            return false;
        }
        shell_command[2] = values[SHELL_COMMAND];
        options->command = shell_command;
        return true;
    }
    if (app->child == NULL || app->child[0] == NULL) {
        cli_error("run: the command is missing: sqlock run KEY COMMAND ...");
        return false;
    }
    if (strstr(app->child[0], "://") != NULL) {
        cli_error("run: there is no command \"%s\"", cli_shown(app->child[0]));
        return false;
    }
    options->command = app->child;
    return true;
}

/* Take the descriptor of --status-fd.  It must be open already, since otherwise
 * a connection could get its number.  The command inherits it only as one of
 * the standard files. */
static bool read_status_fd(run_report *report)
{
    int64_t fd = -1;

    report->fd = -1;
    if (values[STATUS_FD] == NULL)
        return true;
    if (!cli_parse_int64(values[STATUS_FD], &fd) || fd < 0 || fd > INT32_MAX ||
        fcntl((int)fd, F_GETFD) < 0) {
        cli_error("run: --status-fd must be the number of an open descriptor");
        return false;
    }
    report->fd = fcntl((int)fd, F_DUPFD_CLOEXEC, 3);
    if (report->fd < 0)
        cli_error("run: cannot use the descriptor of --status-fd: %s",
                  strerror(errno));
    if (fd > 2)
        (void)fcntl((int)fd, F_SETFD, FD_CLOEXEC);
    return report->fd >= 0;
}

static int read_options(const cli *app, run_options *options)
{
    int64_t busy_status = CLI_BUSY;
    int status;

    if (!read_command(app, options))
        return CLI_USAGE;
    status = cli_want_name(app, "KEY");
    if (status != CLI_OK)
        return status;
    options->name = app->args[0];
    options->is_once = is_once != 0;
    options->is_fail_fast = is_fail_fast != 0;
    options->keeps_daemons = keeps_daemons != 0;
    options->url = cli_url(app);
    if (options->url == NULL)
        return CLI_USAGE;
    status = cli_registry_options(app, &options->registry);
    if (status != CLI_OK)
        return status;
    options->registry.pool_size = 2; /* renewals wait for no other call */
    if (!read_times(options))
        return CLI_USAGE;
    if (values[BUSY_STATUS] != NULL &&
        (!cli_parse_int64(values[BUSY_STATUS], &busy_status) ||
         busy_status < 0 || busy_status > 255)) {
        cli_error("run: --conflict-exit-code must be from 0 to 255");
        return CLI_USAGE;
    }
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
        write_note(values[SHELL_COMMAND] != NULL ? "sh" : options.command[0],
                   note);
        options.registry.holder_note = note[0] != '\0' ? note : NULL;
        cli_forget_variable("SQLOCK_URL"); /* options.url is a copy */
        status = run_loop(&options, &report);
    }
    run_report_write(&report, &options, status);
    for (setting = options.settings; *setting != NULL; setting++)
        free(*setting);
    return status;
}

const cli_command cli_run = {
    .name = "run",
    .summary = "run a command while holding a lock",
    .has_child = true,
    .options = options_table,
    .values = values,
    .value_count = VALUES,
    .run = run_run,
};
