/*
 * pooler.h - PgBouncer in transaction mode, in front of the server of a fixture
 */
#ifndef TESTS_POOLER_H
#define TESTS_POOLER_H

#include "fixture.h"

struct pooler {
    pid_t pid;
    char folder[64];
    char url[512];
};

/* Start PgBouncer by tests/tools/servers/pgbouncer.sh, with these lines in its
 * configuration ("": the defaults of the script), and set pooler->url.  Skip
 * the running test if PgBouncer is not installed; fail it if PgBouncer does not
 * start.  pooler_end() ends it. */
void pooler_start(struct pooler *pooler, struct fixture *f,
                  const char *settings);
void pooler_end(struct pooler *pooler);

#endif
