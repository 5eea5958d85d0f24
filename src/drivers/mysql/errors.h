/*
 * errors.h - classify errors of MySQL and MariaDB
 */
#ifndef LK_MYSQL_ERRORS_H
#define LK_MYSQL_ERRORS_H

#include <stdbool.h>

#include "sqlock.h"

/* How far a connection or statement had got when an error came. */
enum lk_mysql_stage {
    LK_MYSQL_CONNECTING, /* no statement was sent */
    LK_MYSQL_PREPARING,  /* the statement was not started */
    LK_MYSQL_RUNNING,    /* the statement was sent, in a transaction */
    LK_MYSQL_AUTOCOMMIT, /* it was sent outside one, and commits itself */
    LK_MYSQL_COMMITTING  /* a COMMIT was sent, and may have happened */
};

#define LK_MYSQL_LOCK_WAIT_TIMEOUT 1205
#define LK_MYSQL_LOCK_TABLE_FULL 1206
#define LK_MYSQL_UNKNOWN_STATEMENT 1243
#define LK_MYSQL_UNKNOWN_SAVEPOINT 1305

/** Return the result code for an error number at that stage. */
int lk_mysql_classify(unsigned int number, enum lk_mysql_stage stage);

/** Return whether an error means that the connection is lost or unusable. */
bool lk_mysql_breaks(unsigned int number);

/** Return advice to append to an error's message, or "". */
const char *lk_mysql_hint(unsigned int number);

#endif /* LK_MYSQL_ERRORS_H */
