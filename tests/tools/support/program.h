/*
 * program.h - the command line that all test programs share
 *
 *     SUITE [-t PATTERN]... [--list] [--alone] [--beside-others] [--help]
 *           [option of the suite]... [postgres] [mysql] [sqlite]
 *
 * group.h runs the tests that the command line selects.
 */
#ifndef TESTS_PROGRAM_H
#define TESTS_PROGRAM_H

#include <popt.h>

#include "database.h"

struct program {
    const char *name;
    const char *about;     /* for --help: what the suite proves, a clause */
    const char *arguments; /* other arguments, for --help; NULL: none */
    unsigned databases;    /* ON_...: those it runs on; 0: it uses none */
    const struct poptOption *options; /* more options; NULL: none */
};

/* Read the command line.  --help ends the program, and so does a wrong
 * argument, with status 2.  *program must stay valid until the program ends. */
void program_read(const struct program *program, int argc, char **argv);

/* Return whether a test was selected: each -t PATTERN is a shell pattern for
 * the whole name, or a word in it. */
bool program_wants(const char *test);

/* Return whether a database is to be used: those named on the command line or,
 * if it names none, in SQLOCK_TEST_DATABASES; all if that is not set. */
bool program_wants_database(const struct database *database);

/* Return the arguments that are no options; ends with NULL. */
const char *const *program_arguments(void);

/* Return whether to print the names of tests instead of running them. */
bool program_lists(void);

/* Return whether to run all tests in the program's own process, for a debugger
 * or valgrind. */
bool program_is_alone(void);

/* Return whether other programs use the servers at the same time. */
bool program_is_beside_others(void);

#endif
