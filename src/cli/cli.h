/*
 * cli.h - declarations that the files of the sqlock command share
 *
 * The command uses the library through its public headers only, and small
 * helpers of src/base.  Data goes to stdout; messages go to stderr, one line
 * each.
 */
#ifndef SQLOCK_CLI_H
#define SQLOCK_CLI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

#include "base/text.h"
#include "sqlock.h"
#include "sqlock/admin.h"

/* Exit statuses; cli_status_of() finds the one of a result code. */
enum {
    CLI_OK = 0,
    CLI_NO = 1,        /* no such lock, or not in the expected state */
    CLI_UNCERTAIN = 2, /* done or not done: no answer came */
    CLI_USAGE = 64,    /* EX_USAGE */
    CLI_DATABASE = 69, /* EX_UNAVAILABLE */
    CLI_SYSTEM = 71,   /* EX_OSERR */
    CLI_OUTPUT = 74,   /* EX_IOERR */
    CLI_BUSY = 75,     /* EX_TEMPFAIL */
    CLI_LOST = 76,     /* EX_PROTOCOL */
    CLI_DENIED = 77,   /* EX_NOPERM */
    CLI_UNRUNNABLE = 126,
    CLI_NOT_FOUND = 127,
    CLI_SIGNALLED = 128 /* plus the signal's number */
};

/* Settings: options of every command that may also be in the environment or in
 * a configuration file. */
enum {
    CLI_URL,
    CLI_REGION,
    CLI_PREFIX,
    CLI_RULE,
    CLI_PEER_TTL,
    CLI_SETTINGS /* their number */
};

/* An option.  One of the pointers says what it takes, and where its value goes;
 * nothing is written if the option is not given.  With `flag` and `number` it
 * may have a number, or none. */
typedef struct cli_option {
    const char *name; /* without dashes */
    char letter;      /* or 0 */
    bool *flag;       /* takes no value */
    const char **text;
    int64_t *ms; /* a time */
    int64_t *number;
    int *word; /* one of `words`: its index */
    const char *const *words;
    int64_t least;    /* of a time or a number */
    int64_t most;     /* 0: there is no limit */
    unsigned actions; /* bits, where a command's actions differ in options */
} cli_option;

#define CLI_OPTIONS_MAX 16 /* of a command */

/* One run of the program. */
typedef struct cli {
    const struct cli_command *command;
    const char *settings[CLI_SETTINGS]; /* NULL: not given anywhere */
    char *copies[CLI_SETTINGS];         /* of those not from the command line */
    bool is_url_of_file; /* the URL comes from a configuration file */
    bool json;
    bool quiet;
    bool verbose;
    bool help;
    bool version;
    const char **args; /* the words that are no options */
    size_t count;      /* of args */
    char **child;      /* the command line of `run`; NULL: there is none */
    /* the options of the command that are given: the text of a value, or "" */
    const char *given[CLI_OPTIONS_MAX];
    sqlock_registry *registry; /* as cli_open() has opened it, or NULL */
} cli;

typedef struct cli_command {
    const char *name;
    const char *summary;
    const char *argument; /* name of its only one; NULL: there is none */
    /* Checks the arguments where they are not that one; NULL: they are.
     * @return CLI_OK, or an exit status after a message */
    int (*check)(const cli *app);
    bool opens; /* it is run with app->registry, opened by cli_open(app, 0) */
    bool has_child;            /* a command line follows, or "--" */
    bool prints_no_data;       /* for --json */
    const cli_option *options; /* that only it has; NULL: none */
    int (*run)(cli *app);
    /* Called if the command is not run, after a message, and perhaps before the
     * values of its options were read; may be NULL. */
    void (*refused)(const cli *app);
} cli_command;

/* The name and the help text of each command, and of the program, "", as
 * src/man/help.awk makes them of the manual pages; NULL at the end. */
extern const char *const cli_helps[][2];

extern const cli_command cli_init;
extern const cli_command cli_run;
extern const cli_command cli_lead;
extern const cli_command cli_wait;
extern const cli_command cli_acquire;
extern const cli_command cli_renew;
extern const cli_command cli_release;
extern const cli_command cli_guard_sql;
extern const cli_command cli_ls;
extern const cli_command cli_top;
extern const cli_command cli_show;
extern const cli_command cli_metrics;
extern const cli_command cli_break;
extern const cli_command cli_permits;
extern const cli_command cli_reap;
extern const cli_command cli_key;
extern const cli_command cli_stock;
extern const cli_command cli_once;
extern const cli_command cli_doctor;

/* ----------------------------------------------------------- arguments -- */

/** Return the command of that name; NULL, after a message: there is none. */
typedef const cli_command *(*cli_finder)(const char *name);

/** Read the command line into @p app, which is otherwise empty and keeps
 *  pointers to @p words; the first word is the name of the program.  @return
 *  CLI_OK, or an exit status after a message */
int cli_parse(cli *app, char **words, cli_finder find);

/** Read the value of an option.  @param command  name for the message; NULL:
 *  none  @return false, after a message: not such a value */
bool cli_read_value(const cli_option *option, const char *command,
                    const char *text);

/** Require exactly @p count arguments; @p what names those that are missing in
 *  the message.  @return CLI_OK, or CLI_USAGE after a message */
int cli_want_args(const cli *app, size_t count, const char *what);

/** Require that an argument, which is there, is not empty; @p what stands for
 *  it in the message.  @return CLI_OK, or CLI_USAGE after a message */
int cli_want_text(const cli *app, size_t index, const char *what);

/** Require one argument, a name that is not empty; @p what stands for it in the
 *  message, and is NULL if there is to be none.  @return CLI_OK, or CLI_USAGE
 *  after a message */
int cli_want_name(const cli *app, const char *what);

/* The known word that is nearest to an unknown word.  Begin with `word` set and
 * all else zero. */
typedef struct cli_guess {
    const char *word;    /* the unknown one */
    const char *nearest; /* NULL: none is near */
    size_t distance;     /* letters to insert, remove, replace or swap */
} cli_guess;

/** Compare the unknown word with the known word @p other, which is kept as the
 *  nearest one, and not copied, if it is similar and no other is nearer. */
void cli_guess_try(cli_guess *guess, const char *other);

/** Report an unknown word, with the nearest known one or else the command whose
 *  help lists the known ones.  @param what     "unknown option ", for example
 *  @param left     what a word has in front, and @p right behind it
 *  @param command  NULL: the program  @return CLI_USAGE */
int cli_refuse_word(const char *what, const char *left, const cli_guess *guess,
                    const char *right, const char *command);

/* The words for the values of sqlock_layout, in their order; then NULL. */
extern const char *const cli_layouts[];

/* ------------------------------------------------------------- secrets -- */

/** Copy the arguments, then overwrite in the originals all that may hold a
 *  password, so that `ps` no longer shows it.  @return the copies, followed by
 *  NULL, to be freed by cli_free_arguments(); NULL: out of memory */
char **cli_take_arguments(int argc, char **argv);

/** Wipe and free the words. */
void cli_free_arguments(char **words);

/** Show @p name, of at most 15 characters, in the process list in place of the
 *  program's name and arguments.  Call cli_take_arguments() before. */
void cli_rename(const char *name);

/** Return a word of the command line for use in a message: of a URL only the
 *  scheme is left.  The text is valid until the next call. */
const char *cli_shown(const char *word);

/** Mask in a message what may be a URL's password, wherever it comes from, such
 *  as a URL that was given as a lock's name: only the scheme is left. */
void cli_mask(char *message);

/** Return whether the URL contains a password, or is a text that is no URL and
 *  may contain one. */
bool cli_has_password(const char *url);

/** Return the name of the environment variable that the URL's parameter
 *  password_env gives; the caller frees it.  NULL: there is none, or out of
 *  memory. */
char *cli_password_variable(const char *url);

/** Return the URL for the environment of another program: without its password,
 *  and with an absolute path of a SQLite file; the caller frees it.
 *
 *  @param is_of_file  the URL comes from a configuration file
 *  @return NULL: out of memory; or the text is no URL; or it has a password and
 *          comes from a file, which that program reads itself */
char *cli_url_for_child(const char *url, bool is_of_file);

/** Wipe the value of an environment variable, so that /proc no longer shows it.
 *  NULL is allowed. */
void cli_forget_variable(const char *name);

/* -------------------------------------------------------------- caller -- */

#define CLI_CALLER_SIZE 64

/** Read a file of a process in /proc into out[size], and end it with NUL.
 *  @return its length; 0: it cannot be read */
size_t cli_read_about(pid_t pid, const char *file, char *out, size_t size);

/** Return the process that has called sqlock: of a shell's copies of itself,
 *  such as "$(...)", the shell. */
pid_t cli_caller(void);

/** Write a note that names a process, such as "for bash 4711". */
void cli_name_process(char out[CLI_CALLER_SIZE], pid_t pid);

/* ------------------------------------------------------------ messages -- */

/** Write one line "sqlock: ..." to stderr: cli_error() always, cli_note()
 *  unless --quiet, cli_info() only with --verbose.  They block while stderr
 *  does. */
void cli_error(const char *format, ...) __attribute__((format(printf, 1, 2)));
void cli_note(const char *format, ...) __attribute__((format(printf, 1, 2)));
void cli_info(const char *format, ...) __attribute__((format(printf, 1, 2)));
void cli_set_verbosity(bool quiet, bool verbose);
bool cli_is_verbose(void);

/** Return the exit status for a result code of the library. */
int cli_status_of(int code);

/** Return that of its code; CLI_SYSTEM for a limit of this process. */
int cli_status_of_error(const sqlock_error *err);

/** Print the message of @p err.  @return cli_status_of_error() */
int cli_fail(const sqlock_error *err);

/** Print that a system call failed, and which limit to raise.  @param what
 *  "cannot ..."  @return CLI_SYSTEM, or another exit status */
int cli_fail_to(const char *what, int error);

/** Report that there is no lock of the name app->args[0].  @return CLI_NO */
int cli_no_lock(const cli *app);

/* -------------------------------------------------------------- common -- */

/** Set the settings that the command line does not give, from the
 *  environment and the configuration files.  @return CLI_OK, or an exit status
 *  after a message */
int cli_config(cli *app);

/** Return whether "NAME=value" is a variable that cli_config() reads. */
bool cli_is_setting(const char *entry);

/** Write the settings in use as "NAME=value", for the environment of a command
 *  that is to use the same table.  The texts, which the caller frees, are
 *  followed by NULL.  The URL is as from cli_url_for_child(), and missing where
 *  that is NULL.  @return false: out of memory */
bool cli_settings_for_child(const cli *app, char *entries[CLI_SETTINGS + 1]);

/** Return the region in use, "DEFAULT" if none was given. */
const char *cli_region(const cli *app);

/** Make the options of a registry from the settings, whose texts are not
 *  copied.  @return the URL; NULL, after a message: they are no good */
const char *cli_where(const cli *app, sqlock_options *options);

/** Read the key rule of the settings.  @return CLI_OK, or CLI_USAGE after a
 *  message */
int cli_key_rule(const cli *app, sqlock_key_rule *rule);

/* Tables that a command creates: all but `layout` may be called or shown. */
typedef struct cli_tables {
    const char *what;   /* begins a message, "the lock table was" */
    const char *layout; /* its name; NULL: there are none to choose from */
    int (*text)(char **sql, const char *url, const sqlock_options *options,
                sqlock_error *err);
    int (*create)(const char *url, const sqlock_options *options,
                  sqlock_error *err);
    /* NULL: they do if a registry can be opened */
    bool (*exist)(sqlock_registry *registry);
} cli_tables;

/** Return what @p asks says of a registry that is opened for it, true if it is
 *  NULL.  Any failure counts as no: only messages depend on the result. */
bool cli_says_so(const cli *app, bool (*asks)(sqlock_registry *registry));

/** Print the SQL that creates the tables.  @return CLI_OK, or an exit status
 *  after a message */
int cli_print_tables(const cli *app, const cli_tables *tables);

/** Create the tables, if they do not exist, and check them.  @param[out]
 *  was_there whether they existed @return CLI_OK, or an exit status after a
 *  message */
int cli_create_tables(const cli *app, const cli_tables *tables,
                      bool *was_there);

/** Open app->registry, which is closed at the end of the program.  @param
 *  statement_timeout_ms  limit for each statement; 0: the default
 *  @return CLI_OK, or an exit status after a message */
int cli_open(cli *app, uint32_t statement_timeout_ms);

/** Tell the user if the server grants nothing now. */
void cli_note_grace(const cli *app);

/* -------------------------------------------------------------- output -- */

/** Return @p text with control and invisible characters, invalid UTF-8 and
 *  blanks at its ends escaped; the caller frees it.  NULL: out of memory. */
char *cli_escape(const char *text);

/** Return whether @p text is printable ASCII, which cli_escape() leaves
 *  unchanged, and which takes one column per byte. */
bool cli_is_plain(const char *text);

/** Return the number of terminal columns of an escaped text. */
size_t cli_width(const char *text);

/** Return a copy of an escaped text.  If it is wider than @p width columns, it
 *  is truncated, and its last column is an ellipsis.  The caller frees it.
 *  NULL: out of memory. */
char *cli_cut(const char *text, size_t width);

/* Size of a number, a time or a duration as text. */
#define CLI_NUMBER_SIZE 40
#define CLI_COLUMNS_MAX 8

/* One row of a table.  A million of them are printed in a second or two: only
 * what must be copied is copied, and nothing is allocated for a number. */
typedef struct cli_row {
    const char *cells[CLI_COLUMNS_MAX]; /* escaped; NULL prints as "-" */
    /* buffers for the cells that are numbers, times or durations */
    char numbers[CLI_COLUMNS_MAX][CLI_NUMBER_SIZE];
    /* copies of texts that had to be escaped, freed by cli_row_clear() */
    char *escaped[CLI_COLUMNS_MAX];
    /* escape sequences, used on a terminal; NULL: none */
    const char *colours[CLI_COLUMNS_MAX];
} cli_row;

/** Set a cell to @p text, which is copied only if it has to be escaped, and so
 *  must outlive the row.  @return false: out of memory */
bool cli_row_text(cli_row *row, size_t column, const char *text);

/** Free the copies of a row, and empty its cells. */
void cli_row_clear(cli_row *row);

/* A table of text cells.  The callback `fill` is called twice for each row: to
 * measure it, and to print it. */
typedef struct cli_table {
    const char *const *heads;
    size_t columns;
    unsigned flexible; /* bits: columns that may be truncated on a terminal */
    unsigned right;    /* bits: columns aligned to the right */
    /* columns that are omitted on a narrow terminal, the first one first; the
     * list ends with the value of `columns`; NULL: none */
    const size_t *spare;
    /* width that a truncated column should keep: `spare` columns are omitted
     * before one gets narrower */
    size_t enough;
    size_t rows;
    const void *context; /* of `fill` */
    /* Fill in the cells of row `number`, from 0.  The row given is empty.
     * @return false: out of memory */
    bool (*fill)(cli_row *row, const void *context, size_t number);
} cli_table;

/** Print the table.  @return CLI_OK, or an exit status after a message */
int cli_table_print(const cli_table *table);

/** Print escaped text and a newline, on a line on which @p indent columns are
 *  printed already.  On a terminal, wrap the text between words, and indent the
 *  further lines as much. */
void cli_print_wrapped(const char *text, size_t indent);

/** Return whether stdout may be coloured. */
bool cli_has_colour(void);

/** Return whether stdout is a terminal whose screen can be redrawn. */
bool cli_has_screen(void);

/** Write a time, in UTC, to @p out, to the second or, if @p exact, in ISO 8601
 *  to the microsecond.  @return @p out; NULL: @p at_us is not above 0, or too
 *  far ahead */
const char *cli_time_text(char out[CLI_NUMBER_SIZE], int64_t at_us, bool exact);

/** Write a duration ("1.5s", "2m05s", "3h00m") or a number to @p out.
 *  @return @p out */
const char *cli_duration_text(char out[CLI_NUMBER_SIZE], int64_t ms);
const char *cli_number_text(char out[CLI_NUMBER_SIZE], int64_t number);

/** Return the name with that index; "unknown": there are not so many before the
 *  NULL. */
const char *cli_name_in(const char *const *names, size_t which);

/** Return the word for a state. */
const char *cli_state_name(sqlock_state state);

/** Return the escape sequence that colours a state on a terminal, or NULL. */
const char *cli_state_colour(sqlock_state state);

/** Store the size of stdout's terminal; 0 and 0 if stdout is none. */
void cli_terminal_size(size_t *columns, size_t *lines);

/* The contents of a table of locks. */
typedef struct cli_locks {
    const sqlock_info *rows;
    size_t count;
    bool has_regions; /* print a column for regions */
    /* print the names of waiters instead of their number */
    bool has_names;
} cli_locks;

/** Print the locks as a table.  @return CLI_OK, or an exit status after a
 *  message */
int cli_locks_print(const cli_locks *locks);

struct json_t;
/** Make the JSON object of a row.  @return NULL: out of memory */
struct json_t *cli_info_json(const cli *app, const sqlock_info *row);

/** Return the token of the row's holder, or the last one; 0: not known, since
 *  a Spring service that has the lock leaves the previous one there. */
int64_t cli_token(const sqlock_info *row);

/** Make a JSON string, escaped as by cli_escape() if @p text is not UTF-8, or
 *  null if @p text is NULL.  @return NULL: out of memory */
struct json_t *cli_json_text(const char *text);

/** Make a JSON integer, or null if it is not known.  @return NULL: out of
 *  memory */
struct json_t *cli_json_number(int64_t number, bool is_known);

/** Append @p item to @p list, which takes it over.  Each may be NULL: out of
 *  memory.  @return the list; NULL, having freed it: out of memory */
struct json_t *cli_json_append(struct json_t *list, struct json_t *item);

/** Write a JSON value to stdout in ASCII, on a line or indented, without a
 *  newline, and free it.  A @p value of NULL counts as out of memory.
 *  @return false, after a message: out of memory */
bool cli_write_json(struct json_t *value, bool is_indented);

/** Write out what was printed, up to now.  @return CLI_OK; or CLI_OUTPUT, after
 *  a message, if some of it could not be written */
int cli_flush(void);

/** Write a JSON value to stdout, indented, and free it; NULL counts as out of
 *  memory.  @return CLI_OK, or an exit status after a message */
int cli_print_json(struct json_t *value);

/** Take the next of the lines from *@p at, and move that behind it.  The caller
 *  frees the line.  @return NULL: there is none, or out of memory */
char *cli_next_line(const char **at);

/** Return whether the row says that somebody has broken the last lease. */
bool cli_is_broken(const sqlock_info *row);

/** Print a number on a line or, as JSON, { name: number }.  @return as
 *  cli_print_json() */
int cli_print_count(const cli *app, const char *name, int64_t number);

#endif
