/*
 * arguments.c - read the command line: options of the program and of a command,
 * in any order, and other words
 *
 * Before a command that is followed by a command line, reading ends at "--" or
 * at the second word that is no option.
 */
#include "cli.h"

#include <stdlib.h>
#include <string.h>

typedef struct parsing {
    cli *app;
    const cli_option *shared; /* options of the program */
    const cli_option *own;    /* options of the command */
    bool is_refused;          /* a word was, and that was said */
} parsing;

static const cli_option none[] = {{.name = NULL}};

/* ---------------------------------------------------------------- errors -- */

static const char *name_of(const cli *app)
{
    return app->command != NULL ? app->command->name : NULL;
}

static int refuse_value(const parsing *state, const char *name, const char *why)
{
    const char *command = name_of(state->app);

    if (!state->is_refused)
        cli_error("option --%s %s; see `sqlock%s%s --help`", name, why,
                  command != NULL ? " " : "", command != NULL ? command : "");
    return CLI_USAGE;
}

/* Refuse an option that there is not; its text after "=" may be a password. */
static int refuse_option(const parsing *state, const char *word)
{
    const cli_option *table;
    const char *dashes = strncmp(word, "--", 2) == 0 ? "--" : "-";
    char shown[64];
    cli_guess guess = {.word = shown};

    if (state->is_refused)
        return CLI_USAGE;
    if (word[1] >= '0' && word[1] <= '9') {
        cli_error("%s is read as an option, and is none: a number here is not "
                  "below 0",
                  word);
        return CLI_USAGE;
    }
    word += strlen(dashes);
    (void)snprintf(shown, sizeof shown, "%.*s", (int)strcspn(word, "="), word);
    for (table = state->shared; dashes[1] != '\0' && table->name != NULL;
         table++)
        cli_guess_try(&guess, table->name);
    for (table = state->own; dashes[1] != '\0' && table->name != NULL; table++)
        cli_guess_try(&guess, table->name);
    return cli_refuse_word("unknown option ", dashes, &guess, "",
                           name_of(state->app));
}

/* --------------------------------------------------------------- options -- */

/* Return the option of a table with that name, of `length` bytes, or if the
 * name is NULL with that letter; NULL: there is none. */
static const cli_option *find_in(const cli_option *table, const char *name,
                                 size_t length, char letter)
{
    for (; table->name != NULL; table++) {
        if (name != NULL ? strncmp(table->name, name, length) == 0 &&
                               table->name[length] == '\0'
                         : table->letter == letter)
            return table;
    }
    return NULL;
}

static const cli_option *find_option(const parsing *state, const char *name,
                                     size_t length, char letter)
{
    const cli_option *found = find_in(state->own, name, length, letter);

    return found != NULL ? found : find_in(state->shared, name, length, letter);
}

static bool is_number(const char *word)
{
    return word[0] != '\0' && word[strspn(word, "0123456789")] == '\0';
}

/* Return whether the next word, NULL behind the last one, is the option's. */
static bool takes(const cli_option *option, const char *word)
{
    if (option->flag == NULL || word == NULL)
        return word != NULL;
    return option->number != NULL && is_number(word);
}

/* Keep the value of an option: the last one, if it is given twice. */
static void keep(const parsing *state, const cli_option *option,
                 const char *value)
{
    if (option->flag != NULL)
        *option->flag = true;
    if (value == NULL && option->number == NULL)
        value = "";
    if (find_in(state->own, option->name, strlen(option->name), '\0') != NULL)
        state->app->given[option - state->own] = value;
    else if (option->text != NULL)
        *option->text = value;
}

/* Read "--name", "--name=value" or "--name value" at words[*at], and move *at
 * to the last word of it. */
static int read_long(const parsing *state, char **words, size_t *at)
{
    const char *name = words[*at] + 2;
    size_t length = strcspn(name, "=");
    const cli_option *option = find_option(state, name, length, '\0');
    const char *value = name[length] == '=' ? name + length + 1 : NULL;

    if (option == NULL)
        return refuse_option(state, words[*at]);
    if (option->flag != NULL && option->number == NULL && value != NULL)
        return refuse_value(state, option->name, "takes no value");
    if (value == NULL && takes(option, words[*at + 1]))
        value = words[++*at];
    if (option->flag == NULL && value == NULL)
        return refuse_value(state, option->name, "needs a value");
    keep(state, option, value);
    return CLI_OK;
}

/* Read letters, "-n", "-nw5" or "-w 5", as read_long(). */
static int read_letters(const parsing *state, char **words, size_t *at)
{
    const char *letter = words[*at];
    const cli_option *option;

    while (*++letter != '\0') {
        option = find_option(state, NULL, 0, *letter);
        if (option == NULL)
            return refuse_option(state, letter == words[*at] + 1 ? words[*at]
                                                                 : letter - 1);
        if (option->flag != NULL) {
            keep(state, option, NULL);
            continue;
        }
        if (letter[1] == '\0' && words[*at + 1] == NULL)
            return refuse_value(state, option->name, "needs a value");
        keep(state, option, letter[1] != '\0' ? letter + 1 : words[++*at]);
        break;
    }
    return CLI_OK;
}

/* Read the words but the command's name, words[skip], and "help".  After a word
 * that is refused, further options are kept for the command's refused(), and
 * nothing more is said. */
static int read_words(parsing *state, char **words, size_t skip)
{
    cli *app = state->app;
    bool has_child = app->command != NULL && app->command->has_child;
    int status = CLI_OK;
    size_t i;

    for (i = 1; words[i] != NULL; i++) {
        bool is_end = strcmp(words[i], "--") == 0;
        bool is_option = words[i][0] == '-' && words[i][1] != '\0';

        if (i == skip)
            continue;
        if (has_child && (is_end || (!is_option && app->count == 1))) {
            app->child = &words[i + is_end];
            break;
        }
        if (is_end) {
            while (words[++i] != NULL)
                app->args[app->count++] = words[i];
            break;
        }
        if (!is_option)
            app->args[app->count++] = words[i];
        else if (words[i][1] == '-')
            status = read_long(state, words, &i);
        else
            status = read_letters(state, words, &i);
        state->is_refused = state->is_refused || status != CLI_OK;
    }
    return state->is_refused ? CLI_USAGE : CLI_OK;
}

/* Return the index of the first word, from words[at], that is neither an option
 * nor the value of one of the program. */
static size_t next_word(const parsing *state, char **words, size_t at)
{
    const cli_option *option;

    for (; words[at] != NULL && words[at][0] == '-'; at++) {
        option = strncmp(words[at], "--", 2) == 0
                     ? find_in(state->shared, words[at] + 2,
                               strlen(words[at] + 2), '\0')
                     : NULL;
        if (option != NULL && option->flag == NULL && words[at + 1] != NULL)
            at++;
    }
    return at;
}

/* Refuse words behind "help COMMAND". */
static int check_help(const cli *app)
{
    if (app->count == 0)
        return CLI_OK;
    cli_error("help: one argument too many, \"%s\"; see `sqlock --help`",
              cli_shown(app->args[0]));
    return CLI_USAGE;
}

int cli_parse(cli *app, char **words, cli_finder find)
{
    const cli_option shared[] = {
        {"url", .text = &app->settings[CLI_URL]},
        {"region", .text = &app->settings[CLI_REGION]},
        {"table-prefix", .text = &app->settings[CLI_PREFIX]},
        {"rule", .text = &app->settings[CLI_RULE]},
        {"peer-ttl", .text = &app->settings[CLI_PEER_TTL]},
        {"json", .flag = &app->json},
        {"quiet", 'q', .flag = &app->quiet},
        {"verbose", 'v', .flag = &app->verbose},
        {"help", 'h', .flag = &app->help},
        {"version", 'V', .flag = &app->version},
        {.name = NULL},
    };
    parsing state = {.app = app, .shared = shared, .own = none};
    size_t at = next_word(&state, words, 1);
    size_t count = 0;
    bool is_asked;
    size_t i;
    int status;

    while (words[count] != NULL)
        count++;
    app->args = calloc(count + 1, sizeof *app->args);
    if (app->args == NULL) {
        cli_error("out of memory");
        return CLI_SYSTEM;
    }
    /* "help COMMAND" is "COMMAND --help". */
    is_asked = words[at] != NULL && strcmp(words[at], "help") == 0;
    if (is_asked) {
        app->help = true;
        free(words[at]);
        memmove(&words[at], &words[at + 1], (count - at) * sizeof *words);
        at = next_word(&state, words, at);
    }
    if (words[at] != NULL) {
        app->command = find(words[at]);
        if (app->command == NULL)
            return CLI_USAGE;
        if (app->command->options != NULL)
            state.own = app->command->options;
    }
    status = read_words(&state, words, at);
    if (status == CLI_OK && is_asked)
        status = check_help(app);
    for (i = 0; status == CLI_OK && state.own[i].name != NULL; i++) {
        bool is_flag = state.own[i].flag != NULL && state.own[i].number == NULL;

        if (app->given[i] != NULL && !is_flag &&
            !cli_read_value(&state.own[i], app->command->name, app->given[i]))
            status = CLI_USAGE;
    }
    return status;
}

/* ------------------------------------------------------------- arguments -- */

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

int cli_want_text(const cli *app, size_t index, const char *what)
{
    if (app->args[index][0] != '\0')
        return CLI_OK;
    cli_error("%s: %s is empty; is a shell variable not set?",
              app->command->name, what);
    return CLI_USAGE;
}

int cli_want_name(const cli *app, const char *what)
{
    int status = cli_want_args(app, what != NULL, what);

    return status == CLI_OK && what != NULL ? cli_want_text(app, 0, what)
                                            : status;
}
