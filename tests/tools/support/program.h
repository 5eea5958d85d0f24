/*
 * program.h - the command line that all test programs share
 *
 *     SUITE [-t PATTERN] [--list] [--help] [option of its own]... [postgres]
 *           [mysql] [sqlite]
 *
 * group.h runs the tests that it asks for.
 */
#ifndef TESTS_PROGRAM_H
#define TESTS_PROGRAM_H

#include <popt.h>

#include "database.h"

struct program {
    const char *name;
    const char *about;     /* for --help: what the suite proves, a clause */
    const char *arguments; /* that are no databases, for --help; NULL: none */
    unsigned databases;    /* ON_...: that it runs on; 0: it uses none */
    const struct poptOption *options; /* of its own; NULL: none */
};

/* Read it.  Ends the program after --help, and with status 2 after a mistake.
 * `program` is still used afterwards. */
void program_read(const struct program *program, int argc, char **argv);

/* Tell whether a test was selected: -t PATTERN is a shell pattern for the whole
 * name, or a word in it. */
bool program_wants(const char *test);

/* Tell whether a database is to be used: one named on the command line or, if
 * there is none, in SQLOCK_TEST_DATABASES; all if that is not set. */
bool program_wants_database(const struct database *database);

/* Return the arguments that are no options; ends with NULL. */
const char *const *program_arguments(void);

/* Tell whether to print names instead of running tests. */
bool program_lists(void);

/* Tell whether tests run in the program's own process, for a debugger or
 * valgrind. */
bool program_is_alone(void);

#endif
