/*
 * perform.h - the lines of sessions in the tables *.statements (play.h)
 */
#ifndef TESTS_DRIVERS_PERFORM_H
#define TESTS_DRIVERS_PERFORM_H

#include "drivers/suite.h"

/* Perform what stands behind a session's letter, with the names in it replaced;
 * return the driver's code. */
int session_perform(struct session *session, const char *line,
                    const struct lk_name *names);

/* Return the server's number of the session; 0: it has none. */
int64_t session_number(struct session *session);

#endif
