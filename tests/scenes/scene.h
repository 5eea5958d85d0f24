/*
 * scene.h - scenes as they are written in the files *.scene (README.md)
 *
 * A scene is a list of steps.  Reading one needs no database: what a verb means
 * is the business of whoever performs it.
 */
#ifndef TESTS_SCENES_SCENE_H
#define TESTS_SCENES_SCENE_H

#include <stdbool.h>
#include <stddef.h>

#include "support/fixture.h"

#define WORDS_MAX 12
#define SERVERS 3 /* of a quorum; other scenes have one */

/* A line, ACTOR VERB [NAME] [option=value]... [&] [-> RESULT], or ACTOR VERB:
 * STATEMENT [&] [-> RESULT]. */
struct step {
    unsigned line;
    char *text;        /* the words; the members point into it */
    const char *actor; /* "a.1", "a", "spring" */
    const char *verb;  /* "take" */
    const char *name;  /* "L", "L,M"; NULL: none */
    const char *options[WORDS_MAX];
    size_t option_count;
    const char *statement; /* "runs: SELECT 1" has one; else NULL */
    bool goes_on;          /* "&": the scene does not wait for its end */
    const char *expected;  /* "ok" */
};

struct scene {
    char file[256];
    unsigned line;
    char test[120]; /* of the file's name and the title: cancel_ends_a_wait */
    unsigned databases; /* ON_... */
    unsigned layouts;   /* IN_... */
    bool stops_server;
    bool locks_rows; /* as Galera does not */
    bool of_oracle;  /* on MySQL: only on Oracle's, or only on MariaDB */
    bool of_mariadb;
    unsigned tries; /* at most; 0: one */
    struct step *steps;
    size_t count;
};

struct scenes {
    struct scene *all;
    size_t count;
};

/* Read all files *.scene of a folder, in the order of their names.  Print what
 * is wrong, with file and line, and return false if there is anything. */
bool scenes_read(struct scenes *scenes, const char *folder);

/* Return the value of an option: "" for one without a value, NULL if the step
 * does not have it. */
const char *step_option(const struct step *step, const char *option);

/* Split a line in place into a step; return NULL, or what is wrong with it. */
const char *step_parse(struct step *step, char *text);

/* Write the step to out as it is written in a file; return out. */
const char *step_print(char out[512], const struct step *step);

#endif
