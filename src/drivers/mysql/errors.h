/*
 * errors.h - what an error of MySQL means for the statement
 */
#ifndef LK_MYSQL_ERRORS_H
#define LK_MYSQL_ERRORS_H

#include <stdbool.h>

#include "sqlock.h"

/* How far things had gone. */
enum lk_mysql_stage {
    LK_MYSQL_CONNECTING, /* nothing can have been carried out */
    LK_MYSQL_PREPARING,  /* the statement was not started */
    LK_MYSQL_RUNNING,    /* in a transaction */
    LK_MYSQL_AUTOCOMMIT, /* outside one: the statement commits itself */
    LK_MYSQL_COMMITTING  /* a cancelled commit may have happened */
};

#define LK_MYSQL_LOCK_WAIT_TIMEOUT 1205
#define LK_MYSQL_LOCK_TABLE_FULL 1206

/** Return the result code for an error number. */
int lk_mysql_classify(unsigned int number, enum lk_mysql_stage stage);

/** Tell whether the connection is gone, or out of step, after this error. */
bool lk_mysql_breaks(unsigned int number);

/** Return advice for an error, or "". */
const char *lk_mysql_hint(unsigned int number);

#endif /* LK_MYSQL_ERRORS_H */
