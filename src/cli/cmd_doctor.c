/*
 * cmd_doctor.c - `sqlock doctor`: check all that locks rely on, and print what
 * to change; with --after-restore, free all locks of a restored database
 */
#include "cli.h"
#include "sqlock/doctor.h"
#include "sqlock/operator.h"

#include <stdio.h>
#include <stdlib.h>

#include <jansson.h>

#define INDENT 22 /* column in which the text of a check begins */
#define ADVICE 24 /* column in which its advice begins */

/* Time limit of the statement of --after-restore.  It writes all rows of the
 * table: with many rows, the default limit would not suffice. */
#define RESTORE_LIMIT_MS 3600000u

static bool is_after_restore;
static bool is_confirmed;

static const cli_option doctor_options[] = {
    {"after-restore", .flag = &is_after_restore},
    {"yes", .flag = &is_confirmed},
    {.name = NULL}};

static const char *severity_name(sqlock_severity severity)
{
    static const char *const names[] = {"ok", "warning", "failure", NULL};

    return cli_name_in(names, severity);
}

static const char *colour_of(sqlock_severity severity)
{
    if (severity == SQLOCK_WARNING)
        return "\033[1;35m"; /* yellow is hard to read on white */
    return severity == SQLOCK_FINE ? "\033[32m" : "\033[31m";
}

static void print_text(const char *text, size_t indent)
{
    char *escaped = cli_escape(text);

    cli_print_wrapped(escaped != NULL ? escaped : "", indent);
    free(escaped);
}

static void print_checks(const sqlock_check *checks, size_t count)
{
    bool has_colour = cli_has_colour();
    size_t i;

    for (i = 0; i < count; i++) {
        printf("%s%-8s%s %-12s ",
               has_colour ? colour_of(checks[i].severity) : "",
               severity_name(checks[i].severity), has_colour ? "\033[0m" : "",
               checks[i].check);
        print_text(checks[i].found, INDENT);
        if (checks[i].advice == NULL)
            continue;
        printf("%*s", ADVICE, "");
        print_text(checks[i].advice, ADVICE);
    }
}

/* ---------------------------------------------------------- capabilities -- */

static const char *support_name(sqlock_support support)
{
    static const char *const names[] = {"refused", "weaker", "full", NULL};

    return cli_name_in(names, support);
}

static void print_capabilities(const sqlock_capabilities *given)
{
    printf("%-*sleases %s, row locks %s, guards %s, wake-ups %s\n", INDENT,
           "gives", support_name(given->leases), support_name(given->row_locks),
           support_name(given->guards), support_name(given->wakeups));
}

static json_t *capabilities_json(const sqlock_capabilities *given)
{
    if (given == NULL)
        return json_null();
    return json_pack(
        "{s:s, s:s, s:s, s:s}", "leases", support_name(given->leases),
        "row_locks", support_name(given->row_locks), "guards",
        support_name(given->guards), "wakeups", support_name(given->wakeups));
}

/* ---------------------------------------------------------------- report -- */

static int print_json(const cli *app, const sqlock_check *checks, size_t count,
                      sqlock_severity worst, const sqlock_capabilities *given)
{
    json_t *list = json_array();
    json_t *one;
    size_t i;

    for (i = 0; i < count; i++) {
        one = json_pack("{s:s, s:s, s:o, s:o}", "check", checks[i].check,
                        "result", severity_name(checks[i].severity), "found",
                        cli_json_text(checks[i].found), "advice",
                        cli_json_text(checks[i].advice));
        list = cli_json_append(list, one);
    }
    return cli_print_json(
        json_pack("{s:s, s:o, s:o, s:o}", "result", severity_name(worst),
                  "region", cli_json_text(cli_region(app)), "checks", list,
                  "capabilities", capabilities_json(given)));
}

/* Print the checks, and the capabilities unless they are unknown: NULL.  @p why
 * is the error of sqlock_diagnose(); NULL: none.  Return the exit status: of a
 * failed output, or else of the error, or else of the worst check. */
static int report(const cli *app, const sqlock_check *checks, size_t count,
                  const sqlock_capabilities *given, const sqlock_error *why)
{
    sqlock_severity worst = SQLOCK_FINE;
    int status = CLI_OK;
    size_t i;

    for (i = 0; i < count; i++) {
        if (checks[i].severity > worst)
            worst = checks[i].severity;
    }
    if (app->json)
        status = print_json(app, checks, count, worst, given);
    else
        print_checks(checks, count);
    if (!app->json && given != NULL)
        print_capabilities(given);
    if (status != CLI_OK)
        return status;
    if (why != NULL)
        return cli_status_of_error(why);
    return worst == SQLOCK_FAILURE ? CLI_NO : CLI_OK;
}

static int diagnose(const cli *app)
{
    sqlock_capabilities given = SQLOCK_CAPABILITIES_INIT;
    sqlock_check *checks = NULL;
    sqlock_options options;
    sqlock_error err = {0};
    const char *url = cli_where(app, &options);
    size_t count = 0;
    bool is_known;
    int status;
    int rc;

    if (url == NULL)
        return CLI_USAGE;
    rc = sqlock_diagnose(url, &options, &checks, &count, &err);
    if (rc < 0 && count == 0)
        return cli_fail(&err);
    is_known =
        rc == 0 && sqlock_capabilities_of(url, &options, &given, &err) == 0;
    if (rc == 0 && !is_known)
        cli_info("the capabilities of the database are unknown: %s",
                 err.message);
    status = report(app, checks, count, is_known ? &given : NULL,
                    rc < 0 ? &err : NULL);
    sqlock_checks_free(checks, count);
    return status;
}

static int after_restore(cli *app)
{
    sqlock_error err = {0};
    int64_t rows = 0;
    int status;

    if (!is_confirmed) {
        cli_error("doctor: --after-restore frees all locks of the table, in "
                  "all regions, even held ones: stop the programs that use it, "
                  "then confirm with --yes");
        return CLI_USAGE;
    }
    status = cli_open(app, RESTORE_LIMIT_MS);
    if (status != CLI_OK)
        return status;
    if (sqlock_after_restore(app->registry, &rows, &err) < 0)
        return cli_fail(&err);
    return cli_print_count(app, "rows", rows);
}

static int run_doctor(cli *app)
{
    if (is_after_restore)
        return after_restore(app);
    if (is_confirmed) {
        cli_error("doctor: --yes is only for --after-restore");
        return CLI_USAGE;
    }
    return diagnose(app);
}

const cli_command cli_doctor = {
    .name = "doctor",
    .summary = "check all that locks rely on, and say what to change",
    .options = doctor_options,
    .run = run_doctor,
};
