/*
 * cmd_break.c - `sqlock break`: end another holder's lease, if it is still the
 * one that the user has seen
 */
#include "cli.h"

#include <limits.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <jansson.h>

#define WHO_SIZE 81 /* the library's limit of 80 bytes, and a NUL */
#define WHO_HOST_MAX 40

static sqlock_break_options how = SQLOCK_BREAK_INIT;
static char who[WHO_SIZE];
static bool is_grace;

static const cli_option break_options[] = {
    {"token", .number = &how.token, .least = 1},
    {"client-id", .text = &how.client_id},
    {"reason", .text = &how.reason},
    {"now", .flag = &how.now},
    {"grace", .flag = &is_grace},
    {.name = NULL}};

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

static int check(const cli *app)
{
    int status = cli_want_name(app, is_grace ? NULL : "KEY");

    if (status != CLI_OK)
        return status;
    if (is_grace && (how.token != 0 || how.client_id != NULL || how.now)) {
        cli_error("break: --grace is about the server, not about a lock: it "
                  "takes --reason only");
        return CLI_USAGE;
    }
    if (!is_grace && how.token == 0 && how.client_id == NULL) {
        cli_error("break: name the holder with --client-id or --token, as "
                  "`sqlock show` prints them");
        return CLI_USAGE;
    }
    if (how.reason == NULL || *how.reason == '\0') {
        cli_error("break: --reason is missing; it is stored in the row");
        return CLI_USAGE;
    }
    return CLI_OK;
}

static int report(const cli *app)
{
    cli_note(how.now ? "broken; others may have the lock now, but its old "
                       "holder may not have noticed yet"
                     : "broken; others may have the lock when the old lease "
                       "would have ended");
    if (!app->json)
        return CLI_OK;
    return cli_print_json(json_pack(
        "{s:o, s:b, s:b, s:o, s:o}", "name", cli_json_text(app->args[0]),
        "broken", 1, "now", how.now ? 1 : 0, "who", cli_json_text(how.who),
        "reason", cli_json_text(how.reason)));
}

static int end_grace(const cli *app)
{
    sqlock_error err = {0};
    int rc = sqlock_grace_end(app->registry, how.reason, &err);

    if (rc == SQLOCK_ENOTFOUND) {
        cli_error("%s; nothing was changed", err.message);
        return CLI_NO;
    }
    if (rc < 0)
        return cli_fail(&err);
    cli_note("the server grants locks again; a holder whose lease it has "
             "forgotten may not have noticed yet");
    return app->json
               ? cli_print_json(json_pack("{s:b, s:o}", "granting", 1, "reason",
                                          cli_json_text(how.reason)))
               : CLI_OK;
}

static int run_break(cli *app)
{
    sqlock_error err = {0};
    int rc;

    if (is_grace)
        return end_grace(app);
    write_who(who, sizeof who);
    how.who = who;
    rc = sqlock_break(app->registry, app->args[0], &how, &err);
    if (rc == SQLOCK_ENOTFOUND)
        return cli_no_lock(app);
    if (rc == SQLOCK_ECONFLICT) {
        cli_error(
            "\"%s\" is no longer held by that owner; nothing was changed: %s",
            app->args[0], err.message);
        return CLI_NO;
    }
    return rc < 0 ? cli_fail(&err) : report(app);
}

const cli_command cli_break = {
    .name = "break",
    .summary = "end another holder's lease",
    .argument = "KEY",
    .check = check,
    .opens = true,
    .options = break_options,
    .run = run_break,
};
