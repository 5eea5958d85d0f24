/*
 * program.c - see program.h
 */
#include "program.h"

#include <fnmatch.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct program *program;
static poptContext context; /* owns the arguments */
static const char *const *arguments;
static char **patterns; /* ends with NULL; NULL: all tests */
static int lists;
static int is_alone;
static int is_beside_others;

static void help(poptContext of, enum poptCallbackReason reason,
                 const struct poptOption *option, const char *value,
                 const void *data)
{
    (void)reason;
    (void)option;
    (void)value;
    (void)data;
    poptPrintHelp(of, stdout, 0);
    printf("\n%s: %s.\n", program->name, program->about);
    if (program->databases != 0)
        printf("A database is found at SQLOCK_TEST_POSTGRES_URL, _MYSQL_URL or "
               "_SQLITE_URL;\ntests/tools/servers/with.sh COMMAND runs a "
               "command with servers.  Without a name all\nare used.\n");
    exit(0);
}

static void refuse(const char *what, const char *why)
{
    (void)fprintf(stderr, "%s: %s: %s; see --help\n", program->name, what, why);
    exit(2);
}

static const struct database *named(const char *name)
{
    for (size_t i = 0; i < DATABASES; i++)
        if (strcmp(databases[i].name, name) == 0 &&
            (databases[i].bit & program->databases) != 0)
            return &databases[i];
    return NULL;
}

static const char *usage(void)
{
    static char text[160];

    (void)snprintf(text, sizeof text, "[OPTION...]%s%s%s%s%s",
                   (program->databases & ON_POSTGRES) != 0 ? " [postgres]" : "",
                   (program->databases & ON_MYSQL) != 0 ? " [mysql]" : "",
                   (program->databases & ON_SQLITE) != 0 ? " [sqlite]" : "",
                   program->arguments != NULL ? " " : "",
                   program->arguments != NULL ? program->arguments : "");
    return text;
}

/* Tests send signals to themselves and to what they start, whatever signals our
 * caller ignores. */
static void reset_signals(void)
{
    static const int numbers[] = {SIGHUP,  SIGINT,  SIGQUIT, SIGTERM,
                                  SIGPIPE, SIGCHLD, SIGUSR1, SIGUSR2};

    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        (void)signal(numbers[i], SIG_DFL);
}

void program_read(const struct program *of, int argc, char **argv)
{
    static const char *const nothing[] = {NULL};
    static const struct poptOption none[] = {POPT_TABLEEND};
    static const struct poptOption help_options[] = {
        {NULL, 0, POPT_ARG_CALLBACK, (void *)(uintptr_t)help, 0, NULL, NULL},
        {"help", 'h', POPT_ARG_NONE, NULL, 0, "Show this help", NULL},
        POPT_TABLEEND,
    };
    /* popt takes tables as void *, and does not write to them. */
    const struct poptOption table[] = {
        {"tests", 't', POPT_ARG_ARGV, &patterns, 0,
         "Run the tests whose names match: a pattern of the shell's, or a word "
         "that occurs in them; may be given more than once",
         "PATTERN"},
        {"list", 0, POPT_ARG_NONE, &lists, 0,
         "Print the names of the tests, and run none", NULL},
        {"alone", 0, POPT_ARG_NONE, &is_alone, 0,
         "Run all tests in this process, for a debugger", NULL},
        {"beside-others", 0, POPT_ARG_NONE, &is_beside_others, 0,
         "Leave out tests that stop or change a whole server, since others use "
         "it",
         NULL},
        {NULL, 0, POPT_ARG_INCLUDE_TABLE,
         (void *)(uintptr_t)(of->options != NULL ? of->options : none), 0, NULL,
         NULL},
        {NULL, 0, POPT_ARG_INCLUDE_TABLE, (void *)(uintptr_t)help_options, 0,
         NULL, NULL},
        POPT_TABLEEND,
    };
    int rc;

    reset_signals();
    program = of;
    context = poptGetContext(of->name, argc, (void *)argv, table, 0);
    if (context == NULL)
        abort();
    poptSetOtherOptionHelp(context, usage());
    while ((rc = poptGetNextOpt(context)) >= 0)
        ;
    if (rc < -1)
        refuse(poptBadOption(context, POPT_BADOPTION_NOALIAS),
               poptStrerror(rc));
    arguments = (const void *)poptGetArgs(context);
    if (arguments == NULL)
        arguments = nothing;
    for (size_t i = 0; of->arguments == NULL && arguments[i] != NULL; i++)
        if (named(arguments[i]) == NULL)
            refuse(arguments[i], of->databases != 0
                                     ? "there is no such database"
                                     : "it is no option");
}

static bool matches(const char *pattern, const char *test)
{
    if (strpbrk(pattern, "*?[") == NULL)
        return strstr(test, pattern) != NULL;
    return fnmatch(pattern, test, 0) == 0;
}

bool program_wants(const char *test)
{
    for (size_t i = 0; patterns != NULL && patterns[i] != NULL; i++)
        if (matches(patterns[i], test))
            return true;
    return patterns == NULL;
}

/* Return whether the list, words with spaces between them, has the word. */
static bool lists_word(const char *list, const char *word)
{
    size_t length = strlen(word);

    while (*list != '\0') {
        size_t next = strcspn(list, " ");

        if (next == length && strncmp(list, word, length) == 0)
            return true;
        list += next + strspn(list + next, " ");
    }
    return false;
}

bool program_wants_database(const struct database *database)
{
    const char *all = getenv("SQLOCK_TEST_DATABASES");
    bool are_named = false;

    if ((database->bit & program->databases) == 0)
        return false;
    for (size_t i = 0; arguments[i] != NULL; i++) {
        const struct database *one = named(arguments[i]);

        if (one == database)
            return true;
        are_named = are_named || one != NULL;
    }
    return !are_named && (all == NULL || lists_word(all, database->name));
}

const char *const *program_arguments(void)
{
    return arguments;
}

bool program_lists(void)
{
    return lists != 0;
}

bool program_is_alone(void)
{
    return is_alone != 0;
}

bool program_is_beside_others(void)
{
    return is_beside_others != 0;
}
