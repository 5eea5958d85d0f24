/*
 * arguments.c - read the command line with popt: options of the program and of
 * a command, in any order.  The commands decide what their options mean.
 */
#include "cli.h"

#include <stdlib.h>
#include <string.h>

/* These options have no address for their value: popt would leak the first
 * value of an option that is given twice.  read_options() keeps the last. */
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

/* ------------------------------------------------------ the child's part -- */

typedef const struct poptOption option;

/* Return the table that an entry includes, NULL if the entry is an option. */
static option *included(option *entry)
{
    bool is_table = (entry->argInfo & POPT_ARG_MASK) == POPT_ARG_INCLUDE_TABLE;

    return is_table ? entry->arg : NULL;
}

static bool is_end(option *entry)
{
    return entry->longName == NULL && entry->shortName == '\0' &&
           entry->arg == NULL;
}

/* Return the option with that long name or, if @p name is NULL, with that
 * letter; NULL: there is none. */
static option *find_option(option *table, const char *name, char letter)
{
    option *found = NULL;

    for (; !is_end(table) && found == NULL; table++) {
        if (included(table) != NULL)
            found = find_option(included(table), name, letter);
        else if (name != NULL ? table->longName != NULL &&
                                    strcmp(table->longName, name) == 0
                              : table->shortName == letter)
            found = table;
    }
    return found;
}

static bool takes_value(option *found)
{
    return found != NULL && (found->argInfo & POPT_ARG_MASK) == POPT_ARG_STRING;
}

/* Return whether the value of the option in @p word is the next word. */
static bool has_value_behind(option *table, const char *word)
{
    const char *letter;

    if (strncmp(word, "--", 2) == 0)
        return takes_value(find_option(table, word + 2, '\0'));
    for (letter = word + 1; *letter != '\0'; letter++) {
        if (takes_value(find_option(table, NULL, *letter)))
            return letter[1] == '\0';
    }
    return false;
}

/* Find the command line that `run` is to execute, which popt never sees, and
 * store it in app->child.  The command line begins after "--", or with the
 * first word after the lock's name that is not an option.  @return the number
 * of words before it, or of all words if there is none */
static size_t split_off_child(cli *app, char **words, option *table)
{
    bool has_key = false;
    size_t i;

    for (i = 1; words[i] != NULL; i++) {
        if (strcmp(words[i], "--") == 0) {
            app->child = &words[i + 1];
            break;
        }
        if (words[i][0] == '-' && words[i][1] != '\0') {
            if (has_value_behind(table, words[i]) && words[i + 1] != NULL)
                i++;
        } else if (has_key) {
            app->child = &words[i];
            break;
        } else {
            has_key = true;
        }
    }
    return i;
}

/* --------------------------------------------------------------- options -- */

static void keep_value(char **slot, poptContext context)
{
    free(*slot);
    *slot = poptGetOptArg(context);
}

/* Compare an unknown option with all options of a table. */
static void guess_option(cli_guess *guess, option *table)
{
    for (; !is_end(table); table++) {
        if (included(table) != NULL)
            guess_option(guess, included(table));
        else if (table->longName != NULL)
            cli_guess_try(guess, table->longName);
    }
}

static int refuse_option(const cli *app, option *table, int rc)
{
    char shown[64];
    const char *word = poptBadOption(app->context, POPT_BADOPTION_NOALIAS);
    size_t length = strcspn(word, "=");
    const char *space = app->command != NULL ? " " : "";
    const char *name = app->command != NULL ? app->command->name : "";
    cli_guess guess = {.word = shown + 2};

    /* The text after "=" might be a password. */
    if (length >= sizeof shown)
        length = sizeof shown - 1;
    memcpy(shown, word, length);
    shown[length] = '\0';
    if (rc != POPT_ERROR_BADOPT) {
        cli_error("option %s: %s; see `sqlock%s%s --help`", cli_shown(shown),
                  poptStrerror(rc), space, name);
        return CLI_USAGE;
    }
    if (shown[0] == '-' && shown[1] >= '0' && shown[1] <= '9') {
        cli_error("%s is read as an option, and is none: a number here is not "
                  "below 0",
                  shown);
        return CLI_USAGE;
    }
    if (strncmp(shown, "--", 2) == 0)
        guess_option(&guess, table);
    if (guess.nearest != NULL)
        cli_error("unknown option %s: did you mean --%s?", cli_shown(shown),
                  guess.nearest);
    else
        cli_error("unknown option %s; see `sqlock%s%s --help`",
                  cli_shown(shown), space, name);
    return CLI_USAGE;
}

static int read_options(cli *app, option *table)
{
    const cli_command *command = app->command;
    int val;

    for (;;) {
        val = poptGetNextOpt(app->context);
        if (val == -1)
            return CLI_OK;
        if (val < -1)
            return refuse_option(app, table, val);
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
    size_t argc = 0;
    int status;

    if (app->command != NULL && app->command->has_child)
        argc = split_off_child(app, words, table);
    else
        while (words[argc] != NULL)
            argc++;
    /* The context refers to the table on this stack, but nobody reads options
     * from it after this function. */
    app->context = poptGetContext("sqlock", (int)argc, (void *)words, table,
                                  POPT_CONTEXT_NO_EXEC);
    if (app->context == NULL) {
        cli_error("out of memory");
        return CLI_SYSTEM;
    }
    status = read_options(app, table);
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

int cli_want_name(const cli *app, const char *what)
{
    int status = cli_want_args(app, 1, what);

    if (status == CLI_OK && app->args[0][0] == '\0') {
        cli_error("%s: %s is empty; is a shell variable not set?",
                  app->command->name, what);
        return CLI_USAGE;
    }
    return status;
}
