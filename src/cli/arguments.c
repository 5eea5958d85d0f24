/*
 * arguments.c - options by popt: those of the program and those of a command,
 * in any order.  What they mean is decided by who uses them.
 */
#include "cli.h"

#include <stdlib.h>
#include <string.h>

/* Options that carry a value have no address: popt would lose the first of two
 * copies.  cli_parse() keeps the last. */
static const struct poptOption text_options[] = {
    {"url", 0, POPT_ARG_STRING, NULL, CLI_URL, NULL, NULL},
    {"region", 0, POPT_ARG_STRING, NULL, CLI_REGION, NULL, NULL},
    {"table-prefix", 0, POPT_ARG_STRING, NULL, CLI_PREFIX, NULL, NULL},
    {"rule", 0, POPT_ARG_STRING, NULL, CLI_RULE, NULL, NULL},
    {"peer-ttl", 0, POPT_ARG_STRING, NULL, CLI_PEER_TTL, NULL, NULL},
    POPT_TABLEEND};

bool cli_command_first(char **words)
{
    size_t at = 1;
    size_t i;
    char *name;

    while (words[at] != NULL && words[at][0] == '-') {
        for (i = 0; text_options[i].longName != NULL; i++) {
            if (strncmp(words[at], "--", 2) == 0 &&
                strcmp(words[at] + 2, text_options[i].longName) == 0 &&
                words[at + 1] != NULL) {
                at++;
                break;
            }
        }
        at++;
    }
    if (words[at] == NULL)
        return false;
    name = words[at];
    memmove(&words[2], &words[1], (at - 1) * sizeof *words);
    words[1] = name;
    return true;
}

/* The command line of `run` belongs to somebody else: popt never sees it. */
static void split_off_child(cli *app, char **words)
{
    size_t i;

    for (i = 1; words[i] != NULL; i++) {
        if (strcmp(words[i], "--") == 0) {
            app->child = &words[i + 1];
            return;
        }
    }
}

static void keep_value(char **slot, poptContext context)
{
    free(*slot);
    *slot = poptGetOptArg(context);
}

static int refuse_option(const cli *app, int rc)
{
    char shown[64];
    const char *word = poptBadOption(app->context, POPT_BADOPTION_NOALIAS);
    size_t length = strcspn(word, "=");
    const char *space = app->command != NULL ? " " : "";
    const char *name = app->command != NULL ? app->command->name : "";

    /* What follows "=" might be a password. */
    if (length >= sizeof shown)
        length = sizeof shown - 1;
    memcpy(shown, word, length);
    shown[length] = '\0';
    if (rc == POPT_ERROR_BADOPT)
        cli_error("unknown option %s; see `sqlock%s%s --help`",
                  cli_shown(shown), space, name);
    else
        cli_error("option %s: %s; see `sqlock%s%s --help`", cli_shown(shown),
                  poptStrerror(rc), space, name);
    return CLI_USAGE;
}

static int read_options(cli *app)
{
    const cli_command *command = app->command;
    int val;

    for (;;) {
        val = poptGetNextOpt(app->context);
        if (val == -1)
            return CLI_OK;
        if (val < -1)
            return refuse_option(app, val);
        if (val < CLI_GLOBALS)
            keep_value(&app->globals[val], app->context);
        else if (command != NULL && val >= CLI_OWN &&
                 (size_t)(val - CLI_OWN) < command->value_count)
            keep_value(&command->values[val - CLI_OWN], app->context);
    }
}

int cli_parse(cli *app, char **words)
{
    static const struct poptOption none[] = {POPT_TABLEEND};
    const struct poptOption *own =
        app->command != NULL && app->command->options != NULL
            ? app->command->options
            : none;
    /* popt takes the tables as void *, and does not write to them. */
    const struct poptOption table[] = {
        {"json", 0, POPT_ARG_NONE, &app->json, 0, NULL, NULL},
        {"quiet", 'q', POPT_ARG_NONE, &app->quiet, 0, NULL, NULL},
        {"verbose", 'v', POPT_ARG_NONE, &app->verbose, 0, NULL, NULL},
        {"help", 'h', POPT_ARG_NONE, &app->help, 0, NULL, NULL},
        {"version", 'V', POPT_ARG_NONE, &app->version, 0, NULL, NULL},
        {NULL, 0, POPT_ARG_INCLUDE_TABLE, (void *)(uintptr_t)text_options, 0,
         NULL, NULL},
        {NULL, 0, POPT_ARG_INCLUDE_TABLE, (void *)(uintptr_t)own, 0, NULL,
         NULL},
        POPT_TABLEEND};
    int argc = 0;
    int status;

    if (app->command != NULL && app->command->has_child)
        split_off_child(app, words);
    while (words[argc] != NULL && &words[argc] + 1 != app->child)
        argc++;
    /* The table is on this stack: the context is not used for options after. */
    app->context = poptGetContext("sqlock", argc, (void *)words, table,
                                  POPT_CONTEXT_NO_EXEC);
    if (app->context == NULL) {
        cli_error("out of memory");
        return CLI_SYSTEM;
    }
    status = read_options(app);
    if (status != CLI_OK)
        return status;
    app->args = poptGetArgs(app->context);
    while (app->args != NULL && app->args[app->count] != NULL)
        app->count++;
    return CLI_OK;
}

void cli_parse_clear(cli *app)
{
    size_t i;

    for (i = 0; i < CLI_GLOBALS; i++)
        free(app->globals[i]);
    if (app->command != NULL) {
        for (i = 0; i < app->command->value_count; i++)
            free(app->command->values[i]);
    }
    app->context = poptFreeContext(app->context);
}

int cli_want_args(const cli *app, size_t count, const char *what)
{
    const char *name = app->command->name;

    if (app->count > count) {
        cli_error("%s: one argument too many, \"%s\"; see `sqlock %s --help`",
                  name, cli_shown(app->args[count]), name);
        return CLI_USAGE;
    }
    if (app->count < count) {
        cli_error("%s: %s is missing; see `sqlock %s --help`", name, what,
                  name);
        return CLI_USAGE;
    }
    return CLI_OK;
}
