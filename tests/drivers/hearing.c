/*
 * hearing.c - see hearing.h
 */
#include "drivers/hearing.h"

#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static const sqlock_bell *bell(void)
{
    return subject.driver->bell;
}

int begin_hearing(struct session *session, const char *name, int64_t until_ms)
{
    return bell()->begin(session->connection, name, check_deadline_ns(until_ms),
                         check_deadline_ns(DEADLINE_MS), &session->err);
}

int end_hearing(struct session *session)
{
    return bell()->end(session->connection, check_deadline_ns(DEADLINE_MS),
                       &session->err);
}

static void on_ring(void *context, const char *text)
{
    struct heard *heard = context;
    char *end;
    unsigned long number = strtoul(text, &end, 10);

    heard->count++;
    (void)snprintf(heard->last, sizeof heard->last, "%s", text);
    heard->is_lossy |= *text == '\0';
    if (end != text && *end == '\0' && number < TEXTS_MAX)
        heard->numbers[number] = true;
}

int hear(struct session *session, struct heard *heard)
{
    memset(heard, 0, sizeof *heard);
    return bell()->hear(session->connection, on_ring, heard);
}

static bool is_readable(struct session *session, int ms)
{
    struct pollfd entry = {.fd = bell()->descriptor(session->connection),
                           .events = POLLIN};

    assert_true(entry.fd >= 0);
    return poll(&entry, 1, ms) == 1;
}

/* A readable descriptor may turn out to mean nothing. */
int await_ring(struct session *session, struct heard *heard)
{
    int rc = hear(session, heard);

    while (rc == SQLOCK_EBUSY && is_readable(session, PATIENCE_MS))
        rc = hear(session, heard);
    return rc;
}

/* Assert that the next thing that is heard is that text, and nothing else. */
void hears(struct session *session, const char *text)
{
    static struct heard heard;

    assert_int_equal(await_ring(session, &heard), 0);
    assert_string_equal(heard.last, text);
    assert_int_equal(heard.count, 1);
}

void hears_nothing(struct session *session)
{
    static struct heard heard;

    assert_int_equal(hear(session, &heard), SQLOCK_EBUSY);
    assert_int_equal(heard.count, 0);
}

void skip_behind_a_pooler(void)
{
    if (database_is_pooled(subject.database))
        skip_or_fail("a pooler shares the sessions");
}

const char *ringing(char out[160], const char *name, const char *text)
{
    (void)snprintf(out, 160,
                   subject.database->bit == ON_SQLITE
                       ? "sqlock_ring('%s', '%s')"
                       : "pg_notify('sqlock_' || '%s', '%s')",
                   name, text);
    return out;
}

void ring(struct session *session, const char *name, const char *text)
{
    char expression[160];

    session_run(session, "SELECT %s", ringing(expression, name, text));
}

struct session *hearer(struct fixture *f)
{
    skip_behind_a_pooler();
    session_ok(&f->a, begin_hearing(&f->a, BELL, 0));
    return &f->a;
}

void close_both(struct fixture *f)
{
    session_close(&f->a);
    session_close(&f->b);
}

/* Do the child's part; a signal ends a child that hangs. */
static void run_child(int told, int go_on, int (*first)(struct session *),
                      int (*second)(struct session *))
{
    struct session session;
    char byte = 0;
    int rc;

    (void)signal(SIGALRM, SIG_DFL);
    (void)alarm(2 * PATIENCE_MS / 1000);
    rc = session_open_at(&session, subject.url, LOCK_TIMEOUT_MS);
    if (rc == 0 && first != NULL)
        rc = first(&session);
    if (rc == 0 && write(told, &byte, 1) == 1)
        rc = (int)read(go_on, &byte, 1);
    if (rc == 0 && second != NULL)
        rc = second(&session);
    _exit(rc == 0 ? 0 : 1);
}

void start_child(struct child *child, int (*first)(struct session *),
                 int (*second)(struct session *))
{
    int told[2];
    int go_on[2];
    char byte;

    assert_int_equal(pipe(told), 0);
    assert_int_equal(pipe(go_on), 0);
    child->pid = fork();
    assert_true(child->pid >= 0);
    if (child->pid == 0) {
        (void)close(told[0]);
        (void)close(go_on[1]);
        run_child(told[1], go_on[0], first, second);
    }
    (void)close(told[1]);
    (void)close(go_on[0]);
    child->told = told[0];
    child->go_on = go_on[1];
    assert_int_equal(read(child->told, &byte, 1), 1);
}

void end_child(struct child *child, bool is_killed)
{
    int status;

    if (is_killed)
        (void)kill(child->pid, SIGKILL);
    (void)close(child->go_on);
    (void)close(child->told);
    assert_int_equal(waitpid(child->pid, &status, 0), child->pid);
    assert_true(is_killed ? WIFSIGNALED(status)
                          : WIFEXITED(status) && WEXITSTATUS(status) == 0);
}
