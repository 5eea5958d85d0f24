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

/* Whether a test of this name was asked for: -t PATTERN is one of the shell's,
 * which has to match all of the name, or a word that occurs in it. */
bool program_wants(const char *test);

/* Whether a database is to be used: one that is named, or, where none is, one
 * of the environment's SQLOCK_TEST_DATABASES; all where that is not set. */
bool program_wants_database(const struct database *database);

/* The arguments that are no options; ends with NULL. */
const char *const *program_arguments(void);

/* Names are to be printed, no test is to be run. */
bool program_lists(void);

/* Tests run in the program's own process, for a debugger or valgrind. */
bool program_is_alone(void);

#endif
