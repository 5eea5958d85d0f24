/*
 * cmd_run.c - `sqlock run` and `sqlock lead`: read their options, and refuse
 * times that contradict each other before anything is started; loop.c does the
 * work
 */
#include "run.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "sqlock/leader.h"

#define GRACE_DEFAULT_MOST_MS ((int64_t)10000)
#define NOTE_MAX 80

static bool is_once;
static bool keeps_daemons;
static int64_t grace_ms = -1;
static int64_t min_hold_ms;
static int64_t busy_status = CLI_BUSY;
static int64_t status_fd = -1;
static const char *shell_string;
static const char *published;

/* clang-format off */
#define OPTIONS_OF_BOTH                                                        \
    RUN_ASKED_OPTIONS,                                                         \
    {"status-fd", .number = &status_fd, .most = INT32_MAX},                    \
    {"grace", .ms = &grace_ms},                                                \
    {"keep-daemons", .flag = &keeps_daemons},                                  \
    {"command", 'c', .text = &shell_string},                                   \
    {"conflict-exit-code", 'E', .number = &busy_status, .most = 255}
/* clang-format on */

static const cli_option options_of_run[] = {
    OPTIONS_OF_BOTH,
    {"shared", 's', .flag = &run_asked.is_shared},
    {"min-hold", .ms = &min_hold_ms, .most = RUN_TTL_MOST_MS},
    {"once", .flag = &is_once},
    {.name = NULL}};

static const cli_option options_of_lead[] = {
    OPTIONS_OF_BOTH, {"publish", .text = &published}, {.name = NULL}};

static int64_t clamp(int64_t value, int64_t least, int64_t most)
{
    if (value < least)
        return least;
    return value > most ? most : value;
}

static bool read_times(const char *command, run_options *options)
{
    int64_t ttl_ms = run_asked.ttl_ms;

    if (grace_ms > ttl_ms / 2) {
        cli_error("%s: --grace must be at most half of --ttl", command);
        return false;
    }
    /* By default, three renewals, a quarter of the TTL apart, are sent before
     * the grace period begins. */
    options->grace_ms =
        grace_ms >= 0 ? grace_ms : clamp(ttl_ms / 5, 0, GRACE_DEFAULT_MOST_MS);
    options->min_hold_ms = min_hold_ms;
    options->lead_ms = clamp(ttl_ms / 40, 20, 1000);
    /* A limit for acquiring and releasing; renewals have a shorter one. */
    options->registry.statement_timeout_ms =
        (uint32_t)clamp(ttl_ms / 2, 500, 5000);
    return true;
}

/* Take the command from the command line, or a shell for the string of -c. */
static bool read_command(const cli *app, run_options *options)
{
    static const char *shell[] = {"/bin/sh", "-c", NULL, NULL};
    const char *name = app->command->name;

    options->command = (const char *const *)app->child;
    if (shell_string != NULL) {
        if (app->child != NULL)
            cli_error("%s: give either -c or a command", name);
        shell[2] = shell_string;
        options->command = shell;
        return app->child == NULL;
    }
    if (app->child == NULL || app->child[0] == NULL) {
        cli_error("%s: the command is missing: sqlock %s KEY COMMAND ...", name,
                  name);
        return false;
    }
    if (strstr(app->child[0], "://") != NULL) {
        cli_error("%s: there is no command \"%s\"", name,
                  cli_shown(app->child[0]));
        return false;
    }
    return true;
}

/* Take the descriptor of --status-fd.  It must be open already, since otherwise
 * a connection could get its number.  The command inherits it only as one of
 * the standard files. */
static bool read_status_fd(const cli *app, run_report *report)
{
    int fd = (int)status_fd;

    report->fd = -1;
    if (fd < 0)
        return true;
    if (fcntl(fd, F_GETFD) < 0) {
        cli_error("%s: --status-fd must be the number of an open descriptor",
                  app->command->name);
        return false;
    }
    report->fd = fcntl(fd, F_DUPFD_CLOEXEC, 3);
    if (report->fd < 0)
        cli_error("%s: cannot use the descriptor of --status-fd: %s",
                  app->command->name, strerror(errno));
    if (fd > 2)
        (void)fcntl(fd, F_SETFD, FD_CLOEXEC);
    return report->fd >= 0;
}

static bool read_published(run_options *options)
{
    options->text = published;
    if (published == NULL)
        return true;
    if (options->mode == SQLOCK_SHARED)
        cli_error("lead: --publish needs the lock alone, without --slots");
    else if (strlen(published) > SQLOCK_LEADER_TEXT_MAX ||
             !lk_utf8_is_valid(published))
        cli_error("lead: --publish must be a text of at most %d bytes, in "
                  "UTF-8",
                  SQLOCK_LEADER_TEXT_MAX);
    else
        return true;
    return false;
}

static int read_options(const cli *app, run_options *options)
{
    if (!read_command(app, options))
        return CLI_USAGE;
    options->name = app->args[0];
    options->is_once = is_once;
    options->keeps_daemons = keeps_daemons;
    options->is_listener = run_child_is_listener();
    options->url = cli_where(app, &options->registry);
    if (options->url == NULL || !run_asked_read(app->command->name, options) ||
        !read_times(app->command->name, options))
        return CLI_USAGE;
    if (is_once && options->mode == SQLOCK_SHARED) {
        cli_error("run: --once needs the lock alone, without --shared or "
                  "--slots");
        return CLI_USAGE;
    }
    if (!read_published(options))
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

/* Return whether the row is held by the lease with the id @p lease, alone or
 * with others. */
static bool is_of_lease(sqlock_registry *registry, const sqlock_info *row,
                        const char *lease)
{
    char id[SQLOCK_LEASE_ID_SIZE];
    size_t length = strcspn(lease, ":");

    if (row->state != SQLOCK_HELD)
        return false;
    if (strlen(row->client_id) == length &&
        strncmp(row->client_id, lease, length) == 0)
        return true;
    /* One of those who share the lock is known by its renewal only. */
    (void)snprintf(id, sizeof id, "%.*s", (int)strcspn(lease, " "), lease);
    return sqlock_lease_renew(registry, id, 0, NULL, NULL) == 0;
}

/* Return whether a lease of the environment is still held.  The row decides,
 * since the id may be of another table, or of a lease that is over.  Also
 * return false if the database does not answer: the wait for the lock reports
 * that. */
static bool is_still_held(const run_options *options, const char *lease)
{
    sqlock_registry *registry = NULL;
    sqlock_info *row = NULL;
    bool is_held = false;

    if (sqlock_registry_open(&registry, options->url, &options->registry,
                             NULL) == 0 &&
        sqlock_show(registry, options->name, &row, NULL) == 0)
        is_held = is_of_lease(registry, row, lease);
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

static int check_nesting(const cli *app, const run_options *options)
{
    if (!is_held_around(options))
        return CLI_OK;
    cli_error("%s: the lock \"%s\" is held by a `sqlock run` around this "
              "command",
              app->command->name, cli_shown(options->name));
    return CLI_USAGE;
}

static int run_with(const cli *app,
                    int (*run)(const run_options *options,
                               const run_signals *signals, run_report *report))
{
    run_options options = {.name = NULL};
    run_report report = {.cause = "usage"};
    run_signals signals = {.fd = -1, .is_candidate = run == run_lead};
    char note[NOTE_MAX + 1];
    char **setting;
    int status;

    if (!read_status_fd(app, &report))
        return CLI_USAGE;
    status = read_options(app, &options);
    if (status == CLI_OK)
        status = check_nesting(app, &options);
    if (status == CLI_OK) {
        write_note(shell_string != NULL ? "sh" : options.command[0], note);
        options.registry.holder_note = note[0] != '\0' ? note : NULL;
        cli_forget_variable("SQLOCK_URL"); /* options.url is a copy */
        status = run_signals_block(&signals) ? run(&options, &signals, &report)
                                             : CLI_SYSTEM;
    }
    run_report_write(&report, &options, &signals, status);
    for (setting = options.settings; *setting != NULL; setting++)
        free(*setting);
    return status;
}

static int run_run(cli *app)
{
    return run_with(app, run_loop);
}

static int run_leader(cli *app)
{
    return run_with(app, run_lead);
}

/* Report that the command line is not valid.  The values of its options may not
 * have been read. */
static void report_refusal(const cli *app)
{
    const cli_option *options_of = app->command->options;
    const run_options options = {.name = app->count > 0 ? app->args[0] : NULL,
                                 .registry.region = app->settings[CLI_REGION]};
    run_report report = {.cause = "usage"};
    run_signals signals = {.fd = -1};
    size_t i;

    for (i = 0; options_of[i].number != &status_fd; i++)
        continue;
    if (app->given[i] != NULL && lk_text_integer(app->given[i], &status_fd) &&
        status_fd >= 0 && status_fd <= INT32_MAX &&
        fcntl((int)status_fd, F_GETFD) >= 0 && read_status_fd(app, &report))
        run_report_write(&report, &options, &signals, CLI_USAGE);
}

const cli_command cli_run = {
    .name = "run",
    .summary = "run a command while holding a lock",
    .argument = "KEY",
    .has_child = true,
    .prints_no_data = true,
    .options = options_of_run,
    .run = run_run,
    .refused = report_refusal,
};

const cli_command cli_lead = {
    .name = "lead",
    .summary = "run a service in one place at a time, wherever it can run",
    .argument = "KEY",
    .has_child = true,
    .prints_no_data = true,
    .options = options_of_lead,
    .run = run_leader,
    .refused = report_refusal,
};
