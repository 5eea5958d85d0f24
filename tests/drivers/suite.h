/*
 * suite.h - the contract of db/driver.h, tried on one driver
 *
 * A test has two connections a and b, and calls the driver through its vtable.
 * Of the library it uses little more than the rendering of templates.  There
 * are tables of the three layouts, and one of plain values.  Each test gets new
 * connections and the key of a lock that no other test has used.
 */
#ifndef TESTS_DRIVERS_SUITE_H
#define TESTS_DRIVERS_SUITE_H

#include "db/statement.h"
#include "db/table.h"
#include "support/check.h"
#include "support/database.h"
#include "support/test.h"
#include "support/workers.h"

#define DEADLINE_MS 20000
#define LOCK_TIMEOUT_MS 10000
#define REGION "R"
#define SECOND_US INT64_C(1000000)
#define LONG_US (60 * SECOND_US)
#define PEER_TTL_US (10 * SECOND_US)

/* SQL texts that differ between the databases. */
struct spelling {
    unsigned bit;
    const char *text_type; /* column type for 10 000 bytes of UTF-8 */
    const char *slow;      /* a statement that takes a minute */
    const char *set_zone;  /* NULL: sessions have no time zone */
    const char *own_id;    /* query of this session's number; or NULL */
    /* query to which a session's number is appended: 1 if that session runs
     * the slow statement, or else 0; NULL: there is no server */
    const char *in_flight;
};

/* The driver under test, while its group runs. */
struct subject {
    const struct database *database;
    const struct spelling *spelling;
    const sqlock_driver *driver;
    const char *url;
    struct lk_table tables[SQLOCK_LAYOUTS];
    struct lk_table values; /* I BIGINT, T text, K VARCHAR(36) PRIMARY KEY */
    struct lk_statement statements[SQLOCK_LAYOUTS][SQLOCK_SQL_KINDS];
    uint32_t ids; /* of these statements; session_values() has those behind */
    unsigned serial;
};
extern struct subject subject;

/* A connection, and the result and error of its last call. */
struct session {
    void *connection;
    bool is_open;
    sqlock_result result;
    sqlock_error err;
};

/* Where a test begins: initial state of each. */
struct start {
    sqlock_layout layout;
    const struct story *story; /* that is played; or NULL */
    void (*body)(struct fixture *f);
};

struct fixture {
    const struct start *start;
    sqlock_layout layout;
    struct session a, b;
    char key[SQLOCK_KEY_SIZE];
    char client_a[SQLOCK_KEY_SIZE];
    char client_b[SQLOCK_KEY_SIZE];
};

/* Group and test fixtures. */
int suite_open(void **state);
int suite_close(void **state);
int test_open(void **state);
int test_close(void **state);

/* Open a connection on which statements wait for a row lock at most
 * lock_timeout_ms, and return the driver's code.  session_open() and
 * session_open_url() use LOCK_TIMEOUT_MS, and fail the test on an error.  Close
 * each session, also after a failure. */
int session_open_at(struct session *session, const char *url,
                    uint32_t lock_timeout_ms);
void session_open(struct session *session);
#define session_open_url(session, url)                                         \
    session_ok((session), session_open_at((session), (url), LOCK_TIMEOUT_MS))
void session_close(struct session *session);

/* In a child: open a session and send a statement.  Return a code.  A signal
 * ends a child that hangs. */
int session_open_in_child(void);

/* Send a statement, and return the driver's code.  The result is in
 * session->result.  session_try() sends a text without parameters, within
 * DEADLINE_MS. */
int session_send(struct session *session, const sqlock_statement *statement,
                 const sqlock_value *values, size_t count, int64_t deadline_ns);
int session_try(struct session *session, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Run a statement on the table of values, {table}, and return a code.  Each `?`
 * is a parameter.  With an id other than 0 it is prepared. */
int session_values(struct session *session, uint32_t id, const char *text,
                   const sqlock_value *values, size_t count);

/* Assert that a call, which leaves its error in the session, succeeds, or that
 * it returns that code. */
#define session_ok(session, call) assert_lock_ok((call), &(session)->err)
#define session_fails(code, session, call)                                     \
    assert_code((code), (call), &(session)->err)

/* Run a statement, and assert that it succeeds.  session_integer() returns
 * the first cell of the result. */
#define session_run(session, ...)                                              \
    session_ok((session), session_try((session), __VA_ARGS__))
int64_t session_integer(struct session *session, const char *text);

/* Begin, commit or roll back, within DEADLINE_MS, and return the driver's
 * code. */
int session_begin(struct session *session);
int session_commit(struct session *session);
int session_rollback(struct session *session);

/* Return a cell of the last result.  One that does not exist, or has another
 * type, fails the test. */
const sqlock_value *cell(const struct session *session, size_t row,
                         size_t column);
int64_t cell_integer(const struct session *session, size_t row, size_t column);
const char *cell_text(const struct session *session, size_t row,
                      size_t column); /* NULL for null */

/* --------------------------------------------- statements of the dialect -- */

/* Return values for all parameters, for this test's lock and that client. */
struct lk_arguments arguments_for(const struct fixture *f, const char *client,
                                  int64_t duration_us);

/* Run a statement of the test's layout, and return the driver's code, or
 * ENOTSUP if the dialect lacks the statement. */
int statement_try(struct session *session, const struct fixture *f,
                  sqlock_statement_kind kind,
                  const struct lk_arguments *arguments);

/* Run a statement of the test's layout, and assert that it succeeds. */
#define statement_run(session, f, kind, arguments)                             \
    session_ok((session), statement_try((session), (f), (kind), (arguments)))

/* Claim this test's lock.  Return the token; 0: another client has the lock. */
int64_t claim(struct session *session, const struct fixture *f,
              const char *client, int64_t ttl_us);
/* Renew or release the lease.  Return the number of affected rows. */
int64_t renew(struct session *session, const struct fixture *f,
              const char *client, int64_t ttl_us);
int64_t release(struct session *session, const struct fixture *f,
                const char *client);
/* Read the info row of this test's lock into session->result.  read_row()
 * returns whether there is a row; remaining_us() fails the test if not. */
bool read_row(struct session *session, const struct fixture *f);
int64_t remaining_us(struct session *session, const struct fixture *f);

/* Read the row until the lease is over. */
void await_expiry(struct session *session, const struct fixture *f);

/* Return the time of the database's clock, as the dialect reads it. */
int64_t now_us(struct session *session);

/* Make a key of 36 characters that sorts behind those made before. */
void next_key(char key[SQLOCK_KEY_SIZE]);

#endif
