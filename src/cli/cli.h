/*
 * cli.h - declarations that the files of the sqlock command share
 *
 * The command is a client of sqlock.h and of nothing else in this tree.  Data
 * goes to stdout, everything said about it goes to stderr, one line each.
 */
#ifndef SQLOCK_CLI_H
#define SQLOCK_CLI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <popt.h>

#include "sqlock.h"
#include "sqlock/admin.h"

/* Exit statuses; the texts are in status.c. */
enum {
    CLI_OK = 0,
    CLI_NO = 1,        /* no such lock, or not in the expected state */
    CLI_USAGE = 64,    /* EX_USAGE */
    CLI_DATABASE = 69, /* EX_UNAVAILABLE */
    CLI_SYSTEM = 71,   /* EX_OSERR */
    CLI_OUTPUT = 74,   /* EX_IOERR */
    CLI_BUSY = 75,     /* EX_TEMPFAIL */
    CLI_LOST = 76,     /* EX_PROTOCOL */
    CLI_DENIED = 77,   /* EX_NOPERM */
    CLI_UNRUNNABLE = 126,
    CLI_NOT_FOUND = 127,
    CLI_SIGNALLED = 128 /* and the signal's number */
};

/* Options with a value that every command has; also their popt values. */
enum {
    CLI_URL = 1,
    CLI_REGION,
    CLI_PREFIX,
    CLI_RULE,
    CLI_PEER_TTL,
    CLI_GLOBALS, /* one past the last */
    CLI_OWN = 32 /* popt value of a command's own first option */
};

/* One run of the program. */
typedef struct cli {
    const struct cli_command *command;
    /* by CLI_URL ...; NULL: given neither as an option nor in the settings read
     * by cli_config() */
    char *globals[CLI_GLOBALS];
    bool is_url_of_file; /* the URL comes from a configuration file */
    int json;
    int quiet;
    int verbose;
    int help;
    int version;
    poptContext context; /* owns the arguments */
    const char **args;   /* what is no option, NULL at the end */
    size_t count;        /* of args */
    char **child;        /* the command line of `run`; NULL: there is none */
} cli;

typedef struct cli_command {
    const char *name;
    const char *summary;
    const char *help;
    bool has_child; /* a command line follows its argument, or "--" */
    const struct poptOption *options; /* its own; NULL: none */
    char **values;                    /* of its options, by val - CLI_OWN */
    size_t value_count;
    int (*run)(cli *app);
} cli_command;

extern const cli_command cli_init;
extern const cli_command cli_run;
extern const cli_command cli_acquire;
extern const cli_command cli_renew;
extern const cli_command cli_release;
extern const cli_command cli_guard_sql;
extern const cli_command cli_ls;
extern const cli_command cli_top;
extern const cli_command cli_show;
extern const cli_command cli_metrics;
extern const cli_command cli_break;
extern const cli_command cli_reap;
extern const cli_command cli_key;
extern const cli_command cli_stock;
extern const cli_command cli_once;
extern const cli_command cli_doctor;

/* ----------------------------------------------------------- arguments -- */

/** Read the options of the program and of its command; @p words begins with the
 *  command's name.  @return CLI_OK, or CLI_USAGE after a message */
int cli_parse(cli *app, char **words);

/** Free what cli_parse() made. */
void cli_parse_clear(cli *app);

/** Move the command's name to the front of @p words, before the options.
 *  @return false: there is no command */
bool cli_command_first(char **words);

/** Require that many arguments.  @return CLI_OK, or CLI_USAGE after a
 * message */
int cli_want_args(const cli *app, size_t count, const char *what);

/** Require one argument, a name that is not empty.  @return CLI_OK, or
 *  CLI_USAGE after a message */
int cli_want_name(const cli *app, const char *what);

/* The known word that is nearest to a word that is unknown. */
typedef struct cli_guess {
    const char *word;    /* the unknown one */
    const char *nearest; /* NULL: none is near */
    size_t distance;     /* letters to insert, remove, replace or exchange */
} cli_guess;

/** Compare the unknown word with one that is known. */
void cli_guess_try(cli_guess *guess, const char *other);

/** Read a duration as milliseconds: "90", "1.5", "250ms", "10m", "2h", "1d";
 *  without a unit, seconds. @return false: not a duration */
bool cli_parse_duration(const char *text, int64_t *ms);

/** Read a whole number in decimal. @return false: not one, or too big */
bool cli_parse_int64(const char *text, int64_t *number);

/** Read a layout: "sqlock", "spring7", "spring6". @return false: none of
 *  them */
bool cli_parse_layout(const char *text, sqlock_layout *layout);
const char *cli_layout_name(sqlock_layout layout);

/** Read a key rule: "current", "legacy", "raw". @return false: none of them */
bool cli_parse_rule(const char *text, sqlock_key_rule *rule);

/* ------------------------------------------------------------- secrets -- */

/** Copy the arguments, then overwrite in the originals whatever may hold a
 *  password, so that `ps` no longer shows it.  @return NULL: out of memory */
char **cli_take_arguments(int argc, char **argv);
void cli_free_arguments(char **words);

/** Change the name of this process in the process list, instead of program and
 *  arguments; at most 15 characters. */
void cli_rename(const char *name);

/** Return a word of the command line, fit to be shown: URLs lose all but the
 *  scheme.  Valid until the next call. */
const char *cli_shown(const char *word);

/** Tell whether the URL contains a password. */
bool cli_has_password(const char *url);

/** Return the variable that the URL's password_env names, or NULL; the caller
 *  frees it. */
char *cli_password_variable(const char *url);

/** Return the URL for the environment of another program: without its password,
 *  and with an absolute path of a SQLite file.  NULL: out of memory, or the
 *  program needs the URL's password (unless that comes from a configuration
 *  file, which it reads itself).  The caller frees it. */
char *cli_url_for_child(const char *url, bool is_of_file);

/** Wipe the value of a variable, so that /proc no longer shows it.  NULL is
 *  allowed. */
void cli_forget_variable(const char *name);

/* ------------------------------------------------------------ messages -- */

/** Write "sqlock: ..." to stderr: cli_error() always, cli_note() unless
 *  --quiet, cli_info() only with --verbose. */
void cli_error(const char *format, ...) __attribute__((format(printf, 1, 2)));
void cli_note(const char *format, ...) __attribute__((format(printf, 1, 2)));
void cli_info(const char *format, ...) __attribute__((format(printf, 1, 2)));
void cli_set_verbosity(bool quiet, bool verbose);
bool cli_is_verbose(void);

/** Return the exit status for a result code of the library. */
int cli_status_of(int code);

/** Print an error.  @return cli_status_of() */
int cli_fail(const sqlock_error *err);

/* -------------------------------------------------------------- common -- */

/** Complete the global options from the environment and the configuration
 *  files. @return CLI_OK, or an exit status after a message */
int cli_config(cli *app);

/** Tell whether an entry of the environment is one that cli_config() reads. */
bool cli_is_setting(const char *entry);

/** Write the settings in use as entries of an environment, ending with NULL,
 *  for a command that is to use the same table; the caller frees them. @return
 *  false: out of memory */
bool cli_settings_for_child(const cli *app, char *entries[CLI_GLOBALS]);

/** Return the URL, or NULL after a message that there is none. */
const char *cli_url(const cli *app);

/** Return the region in use. */
const char *cli_region(const cli *app);

/** Make the options of a registry from the global options.  @return CLI_OK, or
 *  CLI_USAGE after a message */
int cli_registry_options(const cli *app, sqlock_options *options);

/** Open the registry.  @return CLI_OK, or an exit status after a message */
int cli_open(const cli *app, sqlock_registry **registry);

/** Open the registry for statements that may take longer than the default, or
 *  as cli_open() does where the time is 0.  @return the same as cli_open() */
int cli_open_for(const cli *app, uint32_t statement_timeout_ms,
                 sqlock_registry **registry);

/** Restore the quantities of overdue reservations.  @return 0, also if there
 *  are no tables of stock; or a negative code */
int cli_expire_reservations(sqlock_registry *registry, int64_t *expired,
                            sqlock_error *err);

/* -------------------------------------------------------------- output -- */

/** Return @p text with control characters, invisible characters and invalid
 *  UTF-8 escaped; the caller frees it.  NULL: out of memory. */
char *cli_escape(const char *text);

/** Tell whether escaping leaves @p text unchanged, with one column per byte. */
bool cli_is_plain(const char *text);

/** Return the number of terminal columns of an escaped text. */
size_t cli_width(const char *text);

/** Cut escaped text to that many columns, and mark the cut; the caller frees
 * it. */
char *cli_cut(const char *text, size_t width);

/* Size of a number, a time or a duration as text. */
#define CLI_NUMBER_SIZE 40
#define CLI_COLUMNS_MAX 8

/* One row of a table.  A million of them are printed in a second or two: only
 * what must be copied is copied, and nothing is allocated for a number. */
typedef struct cli_row {
    const char *cells[CLI_COLUMNS_MAX]; /* escaped; NULL prints as "-" */
    char numbers[CLI_COLUMNS_MAX][CLI_NUMBER_SIZE]; /* room for such cells */
    /* texts that needed escaping; cli_row_clear() */
    char *escaped[CLI_COLUMNS_MAX];
    const char *colours[CLI_COLUMNS_MAX]; /* on a terminal; NULL: none */
} cli_row;

/** Show @p text, which must outlive the row, escaped.  @return false: out of
 *  memory */
bool cli_row_text(cli_row *row, size_t column, const char *text);

/** Empty the row. */
void cli_row_clear(cli_row *row);

/* A table of text cells, whose rows are requested twice: to measure and to
 * print. */
typedef struct cli_table {
    const char *const *heads;
    size_t columns;
    unsigned flexible; /* bits: columns that may be cut to fit a terminal */
    unsigned right;    /* bits: columns aligned to the right */
    /* columns that a narrow terminal omits, in that order; ends with
     * `columns` */
    const size_t *spare;
    /* columns of text that a cut cell should keep before a column is
     * omitted */
    size_t enough;
    size_t rows;
    const void *context;
    /* Fill in the cells of a row, which is empty.  @return false: out of
     * memory */
    bool (*fill)(cli_row *row, const void *context, size_t number);
} cli_table;

/** Print the table.  @return CLI_OK, or an exit status after a message */
int cli_table_print(const cli_table *table);

/** Print escaped text after the @p indent columns already on the line, and
 *  the end of the line; on a terminal, break the line between words and indent
 *  the rest. */
void cli_print_wrapped(const char *text, size_t indent);

/** Tell whether stdout may be coloured. */
bool cli_has_colour(void);

/** Tell whether stdout is a screen that can be redrawn. */
bool cli_has_screen(void);

/** Write a part of a row as text to @p out, and return it; NULL: nothing to
 *  show. */
const char *cli_time_text(char out[CLI_NUMBER_SIZE], int64_t at_us, bool exact);
const char *cli_duration_text(char out[CLI_NUMBER_SIZE], int64_t ms);
const char *cli_number_text(char out[CLI_NUMBER_SIZE], int64_t number);
const char *cli_state_name(sqlock_state state);

/** Return the sequence that colours a state on a terminal; NULL: none. */
const char *cli_state_colour(sqlock_state state);

/** Read a sort order: "name", "held", "ttl", "token". @return false: none of
 *  them */
bool cli_parse_sort(const char *text, sqlock_sort *sort);

/** Read a number from 1 to UINT32_MAX. @return false: not one */
bool cli_parse_count(const char *text, uint32_t *count);

/** Return the columns and lines of stdout's terminal; 0: it is none. */
void cli_terminal_size(size_t *columns, size_t *lines);

/* The contents of a table of locks. */
typedef struct cli_locks {
    const sqlock_info *rows;
    size_t count;
    bool has_regions; /* with a column for regions */
    /* with the names of waiters instead of their number */
    bool has_names;
} cli_locks;

/** Print the locks as a table.  @return CLI_OK, or an exit status after a
 *  message */
int cli_locks_print(const cli_locks *locks);

struct json_t;
/** Make the JSON value of a row, or of a text, which is escaped where it is no
 *  UTF-8 and may be NULL.  @return NULL: out of memory */
struct json_t *cli_info_json(const sqlock_info *row);
struct json_t *cli_json_text(const char *text);

/** Write a JSON value to stdout in ASCII, formed as jansson's flags ask, with
 *  no end of line, and free it.  @return false: out of memory, having said
 *  so */
bool cli_write_json(struct json_t *value, size_t flags);

/** Write a JSON value to stdout, indented, and free it.  @return CLI_OK, or an
 *  exit status after a message */
int cli_print_json(struct json_t *value);

#endif
