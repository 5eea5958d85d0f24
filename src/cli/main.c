/*
 * main.c - the sqlock command: find the command, read the options and settings,
 * run it, and flush the output
 *
 * All work on locks is in the files of the commands.
 */
#include "cli.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "sqlock/operator.h"

static const cli_command *const commands[] = {
    &cli_init,  &cli_run,     &cli_lead,      &cli_wait,    &cli_acquire,
    &cli_renew, &cli_release, &cli_guard_sql, &cli_ls,      &cli_show,
    &cli_top,   &cli_metrics, &cli_break,     &cli_permits, &cli_reap,
    &cli_key,   &cli_stock,   &cli_once,      &cli_doctor,
};
#define COMMANDS (sizeof commands / sizeof commands[0])

/* Return the help text of a command, or of the program: "". */
static const char *help_of(const char *name)
{
    size_t i = 0;

    while (cli_helps[i][0] != NULL && strcmp(cli_helps[i][0], name) != 0)
        i++;
    return cli_helps[i][1];
}

static void print_help(const cli *app)
{
    size_t i;

    if (app->command != NULL) {
        printf("%s\nOptions of every command: see `sqlock --help`.\n",
               help_of(app->command->name));
        return;
    }
    printf("Usage: sqlock [OPTIONS] COMMAND ...\n"
           "       sqlock help [COMMAND]\n"
           "Locks kept in the SQL database an application already has.\n\n");
    for (i = 0; i < COMMANDS; i++)
        printf("  %-9s %s\n", commands[i]->name, commands[i]->summary);
    printf("\n%s", help_of(""));
}

static void print_version(void)
{
    const char *driver;
    size_t i;

    printf("sqlock %s\n", sqlock_version());
    for (i = 0;; i++) {
        driver = sqlock_driver_info(i);
        if (driver == NULL)
            break;
        printf("  %s\n", driver);
    }
}

/* Open those of stdin, stdout and stderr that are closed; otherwise a database
 * connection could get the number of stderr.  They are opened so that reads and
 * writes still fail. */
static void occupy_standard_files(void)
{
    static const int modes[] = {[STDIN_FILENO] = O_WRONLY,
                                [STDOUT_FILENO] = O_RDONLY,
                                [STDERR_FILENO] = O_RDONLY};
    int fd;

    for (fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++) {
        if (fcntl(fd, F_GETFD) < 0)
            /* the new descriptor is fd, the lowest that is free */
            (void)open("/dev/null", modes[fd] | O_CLOEXEC);
    }
}

/* Return what a word means that other programs have for a command; NULL: it
 * means nothing here. */
static const char *meaning_of(const char *name)
{
    static const char *const words[][2] = {
        {"version", "`sqlock --version`"},
        {"status", "`sqlock ls`, `sqlock show` and `sqlock doctor`"},
        {"list", "`sqlock ls`"},
        {"info", "`sqlock show`"},
        {"check", "`sqlock doctor`"},
        {"lock", "`sqlock acquire` and `sqlock run`"},
        {"exec", "`sqlock run`"},
        {"unlock", "`sqlock release` and `sqlock break`"},
        {"create", "`sqlock init`"},
        {"slots", "`sqlock run --slots` and `sqlock permits`"},
        {"semaphore", "`sqlock run --slots` and `sqlock permits`"},
        {"elect", "`sqlock lead`"},
        {"leader", "`sqlock lead`"},
    };
    size_t i;

    for (i = 0; i < sizeof words / sizeof words[0]; i++) {
        if (strcmp(words[i][0], name) == 0)
            return words[i][1];
    }
    return NULL;
}

static const cli_command *find_command(const char *name)
{
    cli_guess guess = {.word = name};
    const char *meaning = meaning_of(name);
    size_t i;

    for (i = 0; i < COMMANDS; i++) {
        if (strcmp(commands[i]->name, name) == 0)
            return commands[i];
        cli_guess_try(&guess, commands[i]->name);
    }
    if (meaning != NULL)
        cli_error("unknown command \"%s\": see %s", name, meaning);
    else
        (void)cli_refuse_word("unknown command ", "\"", &guess, "\"", NULL);
    return NULL;
}

/* Refuse options of the program that would do nothing. */
static int check_options(const cli *app)
{
    const char *name = app->command->name;

    if (app->quiet && app->verbose)
        cli_error("%s: give either --quiet or --verbose", name);
    else if (app->json && app->command->prints_no_data)
        cli_error("%s: it takes no --json; see `sqlock %s --help`", name, name);
    else
        return CLI_OK;
    return CLI_USAGE;
}

/* Check the words of the command, read its settings, and open its registry. */
static int prepare(cli *app)
{
    const cli_command *command = app->command;
    int status;

    if (command == NULL) {
        cli_error("a command is missing; see `sqlock --help`");
        return CLI_USAGE;
    }
    status = check_options(app);
    if (status == CLI_OK)
        status = command->check != NULL ? command->check(app)
                                        : cli_want_name(app, command->argument);
    if (status == CLI_OK)
        status = cli_config(app);
    if (status == CLI_OK && command->opens)
        status = cli_open(app, 0);
    return status;
}

static int dispatch(cli *app, char **words)
{
    int status = cli_parse(app, words, find_command);

    cli_set_verbosity(app->quiet, app->verbose);
    if (status == CLI_OK && app->help) {
        print_help(app);
    } else if (status == CLI_OK && app->version) {
        print_version();
    } else {
        if (status == CLI_OK)
            status = prepare(app);
        if (status == CLI_OK)
            status = app->command->run(app);
        else if (app->command != NULL && app->command->refused != NULL)
            app->command->refused(app);
    }
    return status;
}

static void clear(cli *app)
{
    size_t i;

    (void)sqlock_registry_close(app->registry, NULL);
    for (i = 0; i < CLI_SETTINGS; i++)
        free(app->copies[i]);
    free(app->args);
}

int main(int argc, char **argv)
{
    cli app = {.command = NULL};
    char **words;
    int status;

    words = cli_take_arguments(argc, argv);
    occupy_standard_files();
    if (words == NULL) {
        cli_error("out of memory");
        return CLI_SYSTEM;
    }
    status = dispatch(&app, words);
    clear(&app);
    cli_free_arguments(words);

    return status == CLI_OK ? cli_flush() : status;
}
