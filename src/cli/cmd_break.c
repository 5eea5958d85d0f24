/*
 * cmd_break.c - `sqlock break`: end another holder's lease, if it is still the
 * one that the user has seen
 */
#include "cli.h"

#include <inttypes.h>
#include <limits.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <jansson.h>

#define WHO_SIZE 81 /* the library's limit of 80 bytes, and a NUL */
#define WHO_HOST_MAX 40

enum { TOKEN, CLIENT_ID, REASON, VALUES };

static char *values[VALUES];
static int is_now;
static char who[WHO_SIZE];

static const struct poptOption break_options[] = {
    {"token", 0, POPT_ARG_STRING, NULL, CLI_OWN + TOKEN, NULL, NULL},
    {"client-id", 0, POPT_ARG_STRING, NULL, CLI_OWN + CLIENT_ID, NULL, NULL},
    {"reason", 0, POPT_ARG_STRING, NULL, CLI_OWN + REASON, NULL, NULL},
    {"now", 0, POPT_ARG_NONE, &is_now, 0, NULL, NULL},
    POPT_TABLEEND};

/* Write "user@host", and under sudo the user who has called it. */
static void write_who(char *text, size_t size)
{
    const struct passwd *user = getpwuid(getuid());
    const char *sudo = getenv("SUDO_USER");
    char host[HOST_NAME_MAX + 1] = "";
    char name[32] = "";
    int length;

    (void)gethostname(host, sizeof host - 1);
    if (user != NULL)
        (void)snprintf(name, sizeof name, "%s", user->pw_name);
    else
        (void)snprintf(name, sizeof name, "%ld", (long)getuid());
    length = snprintf(text, size, "%s@%.*s", name, WHO_HOST_MAX, host);
    if (sudo != NULL && *sudo != '\0' && strcmp(sudo, name) != 0 &&
        (size_t)length < size)
        (void)snprintf(text + length, size - (size_t)length, " (%.*s)",
                       (int)size - length - 4, sudo);
}

static int read_options(const cli *app, sqlock_break_options *options)
{
    int status = cli_want_name(app, "KEY");

    if (status != CLI_OK)
        return status;
    *options = (sqlock_break_options)SQLOCK_BREAK_INIT;
    if (values[TOKEN] == NULL && values[CLIENT_ID] == NULL) {
        cli_error("break: name the holder with --client-id or --token, as "
                  "`sqlock show` prints them");
        return CLI_USAGE;
    }
    if (values[TOKEN] != NULL &&
        (!cli_parse_int64(values[TOKEN], &options->token) ||
         options->token <= 0)) {
        cli_error("break: --token must be a number above 0");
        return CLI_USAGE;
    }
    if (values[REASON] == NULL || *values[REASON] == '\0') {
        cli_error("break: --reason is missing; it is stored in the row");
        return CLI_USAGE;
    }
    write_who(who, sizeof who);
    options->who = who;
    options->client_id = values[CLIENT_ID];
    options->reason = values[REASON];
    options->now = is_now != 0;
    return CLI_OK;
}

static int report(const cli *app, const sqlock_break_options *options)
{
    if (options->now)
        cli_note("broken; the lock is free now, but its old holder may not "
                 "have noticed yet");
    else
        cli_note("broken; the lock will be free when the old lease would have "
                 "ended");
    if (!app->json)
        return CLI_OK;
    return cli_print_json(json_pack(
        "{s:o, s:b, s:b, s:o, s:o}", "name", cli_json_text(app->args[0]),
        "broken", 1, "now", options->now ? 1 : 0, "who",
        cli_json_text(options->who), "reason", cli_json_text(options->reason)));
}

static int run_break(cli *app)
{
    sqlock_registry *registry = NULL;
    sqlock_break_options options;
    sqlock_error err = {0};
    int status;
    int rc;

    status = read_options(app, &options);
    if (status != CLI_OK)
        return status;
    status = cli_open(app, &registry);
    if (status != CLI_OK)
        return status;
    rc = sqlock_break(registry, app->args[0], &options, &err);
    if (rc == SQLOCK_ENOTFOUND) {
        cli_error("no lock \"%s\" in region %s", app->args[0], cli_region(app));
        status = CLI_NO;
    } else if (rc == SQLOCK_ECONFLICT) {
        cli_error(
            "\"%s\" is no longer held by that owner; nothing was changed: %s",
            app->args[0], err.message);
        status = CLI_NO;
    } else if (rc < 0) {
        status = cli_fail(&err);
    } else {
        status = report(app, &options);
    }
    (void)sqlock_registry_close(registry, NULL);
    return status;
}

const cli_command cli_break = {
    .name = "break",
    .summary = "end another holder's lease",
    .options = break_options,
    .values = values,
    .value_count = VALUES,
    .run = run_break,
};
