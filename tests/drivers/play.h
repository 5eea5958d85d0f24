/*
 * play.h - what drivers do, and the statements of the dialects, in tables, the
 * files *.statements: each story is a test on each database and layout that it
 * is for
 *
 *     = TITLE                        a story begins
 *     on postgres mysql sqlite servers      its databases; without it all
 *     in sqlock spring7 spring6      its layouts, or those of the whole file
 *     STATEMENT [CLIENT] [ARGUMENT=VALUE]... [-> WORD...]
 *     key K2                         the next lines are about that key, not K1
 *     lapses                         wait until the lease is over
 *     SESSION: SQL [-> WORD...]      any other one, with {key}, {K1}, {K2},
 *                                    {table}, {values}, a table (K, I, T); \n
 *                                    is a new line
 *     SESSION: prepared SQL          one that may be prepared when sent again
 *     SESSION: begin, commit, rollback
 *     SESSION: aborts, closes, opens [MS]     statements wait MS for a row
 *     SESSION: opens under SETTING = VALUE    of MySQL's server, meanwhile
 *     SESSION: listens BELL [MS], stops       begin and end to hear at a bell;
 *                                    wait for another session for so long
 *     SESSION: rings BELL TEXT
 *     SESSION: hears [TEXT]          that text alone, or "nothing"
 *
 * A line that begins with a blank continues the one before.  The SESSIONs are
 * a, b and c, which is opened by its first line; {a} and {b} are the server's
 * numbers of them, {bell} is the name of a bell.
 *
 * A STATEMENT is that of db/dialect.h, in small letters, of a CLIENT a, b, ...;
 * those of a go by session a, the others by b.  ARGUMENTs are ttl= (in
 * seconds), waits= weight= permits= region= name= holder= shown=, with '_' for
 * blanks, old= and ticket= a CLIENT ("group": that of the row), and
 * items=K1:a,K2:b.
 *
 * The WORDs are a code; a number, of affected rows; "granted", "refused";
 * "new": with a new row, or "known"; "rings": by a holder that rings, or
 * "silent"; "nothing": no row; rows=N; cell= of the first row; says=, in the
 * message; "numbered": the error has the database's number; "alive" or
 * "not_alive", as the driver says; token, left, since or ends, with < > = or +
 * (one more) and a number of seconds, or a capital letter, which ":" remembers;
 * client= key= name= holder= queue=b,c sharers= permits= of an info row; and
 * "soon": the statement is repeated until the others are true.
 */
#ifndef TESTS_DRIVERS_PLAY_H
#define TESTS_DRIVERS_PLAY_H

#include "drivers/suite.h"

#define WORDS_MAX 24

/* STATEMENT [CLIENT] [ARGUMENT=VALUE]... -> WORD... */
struct line {
    unsigned number;
    char *text; /* as it is written */
    char *copy; /* the words point into it */
    char *sql;  /* of a session's line, behind its letter; or NULL */
    const char *words[WORDS_MAX];
    size_t count;
    const char *told[WORDS_MAX]; /* behind "->" */
    size_t told_count;
    bool is_soon; /* it is repeated until all of them are true */
};

struct story {
    char title[160];
    const char *file;
    unsigned databases; /* ON_... */
    unsigned layouts;   /* 1 << SQLOCK_LAYOUT_... */
    struct line *lines;
    size_t count;
};

/* Read all files, once.  Return how many stories there are, and the array; fail
 * with file and line where one is wrong. */
size_t stories_read(const struct story **out);

/* Play f->start->story. */
void play_story(struct fixture *f);

#endif
