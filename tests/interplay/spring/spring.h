/*
 * spring.h - services of Spring Integration 5, 6 and 7 beside us, each in a JVM
 * of its own
 *
 * On the four-column layout the services are of Spring 5 and 6, on the other
 * two layouts of Spring 7.  A JVM serves all tests of a layout, unless a test
 * kills it.
 */
#ifndef TESTS_SPRING_H
#define TESTS_SPRING_H

#include <stdatomic.h>
#include <stdio.h>
#include <sys/types.h>

#include "support/suite_main.h"

/* Longer than a JVM takes for anything on a busy machine. */
#define JVM_WAIT_MS 300000

/* TTLs of both sides: one longer than any test, and one that a test waits
 * for. */
#define STAYING_TTL_MS 1200000
#define PASSING_TTL_MS 6000

/* --- service.c: a JVM --- */

#define ANSWERS_MAX 16

struct answer {
    char thread[16];
    char text[1000];
};

struct service {
    pid_t pid;  /* 0: none runs */
    int orders; /* its standard input */
    FILE *says;
    struct answer unread[ANSWERS_MAX]; /* of other threads than asked for */
    size_t unread_count;
    char version[32];
};

/* The JVM to start. */
struct service_kind {
    const char *line;  /* "spring5", "spring6", "spring7" */
    const char *clock; /* its offset, such as "-5s"; NULL: none */
    const char *zone;  /* its time zone; NULL: UTC */
};

/* service_start(): start a JVM, and wait until it answers.  service_kill():
 * kill it.  service_end(): if it runs, end it by closing its standard input. */
void service_start(struct service *service, const struct fixture *fixture,
                   const struct service_kind *kind);
void service_kill(struct service *service);
void service_end(struct service *service);

/* service_tell(): send a request of src/sqlock/Service.java to a thread of the
 * service, which is started if it is new.  service_hear(): wait for the next
 * answer of that thread.  A failure fails the test. */
void service_tell(struct service *service, const char *thread,
                  const char *format, ...)
    __attribute__((format(printf, 3, 4)));
void service_hear(struct service *service, const char *thread,
                  struct answer *answer);
/* Send a request, and check that the answer is `expected`. */
void service_expect(const char *expected, struct service *service,
                    const char *thread, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* --- stage.c --- */

/* stage_service(): return service 0 or 1 of the layout, which is started when
 * it is first asked for.  stage_kind(): return which JVM that is.
 * stage_close(): end both. */
struct service *stage_service(struct fixture *fixture, unsigned number);
const struct service_kind *stage_kind(const struct fixture *fixture,
                                      unsigned number);
void stage_close(struct fixture *fixture);

/* Open a registry in a service, under the name `peer`.  Its client id is stored
 * in `client`, unless that is NULL.  A failure fails the test. */
void stage_open_peer(struct service *service, const struct fixture *fixture,
                     const char *peer, uint32_t ttl_ms,
                     char client[SQLOCK_KEY_SIZE]);

/* Return options for a registry of ours: this TTL is its own, and that of its
 * peers. */
sqlock_options stage_options(const struct fixture *fixture, uint32_t ttl_ms);

/* Open a registry of ours with these options; close it with registry_end(). */
sqlock_registry *stage_registry(struct fixture *fixture, uint32_t ttl_ms);

/* Call `check` for each of the services, with a new lock name each time. */
void stage_each_service(struct fixture *fixture,
                        void (*check)(struct fixture *fixture,
                                      unsigned number));

/* Return the end of the lease in the row of the fixture's lock; on four
 * columns, CREATED_DATE plus the TTL of the peers.  Without a row the test
 * fails. */
int64_t stage_expiry_us(struct fixture *fixture, uint32_t ttl_ms);

/* Run the `sqlock` command on the fixture's table, and store its output and
 * messages in `out`.  Return its exit status. */
int stage_command(const struct fixture *fixture, char *out, size_t size,
                  const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* --- contest.c: services and workers of ours on one lock --- */

#define CONTEST_WORKERS 4
#define CONTEST_SERVICES 2

#define CONTEST_KEYS 5

/* Kinds of workers of ours. */
enum contest_kind {
    CONTEST_ALONE,   /* acquire the lock */
    CONTEST_FRESH,   /* the same, with a handle for each turn */
    CONTEST_FIVE,    /* acquire one of five locks, in turn, as the services */
    CONTEST_READERS, /* share the lock */
    CONTEST_PERMITS, /* share it, two at a time */
    CONTEST_MANY     /* acquire two locks in one call */
};

static inline bool contest_shares(enum contest_kind kind)
{
    return kind == CONTEST_READERS || kind == CONTEST_PERMITS;
}

static inline unsigned contest_keys(enum contest_kind kind)
{
    return kind == CONTEST_FIVE ? CONTEST_KEYS : 1;
}

/* How services and workers go on. */
struct pace {
    unsigned idle_ms;  /* between two attempts */
    unsigned think_ms; /* after each turn */
    enum contest_kind kind;
};

struct contest {
    struct fixture *fixture;
    struct pace pace;
    struct service *services[CONTEST_SERVICES]; /* NULL: threads act as them */
    char path[256];                             /* log of enter and leave */
    char names[CONTEST_KEYS][96];
    struct workers *workers; /* ours; those that act as services */
    sqlock_registry *registries[CONTEST_WORKERS];
    sqlock_lock *locks[CONTEST_WORKERS][CONTEST_KEYS];
    atomic_bool is_over;
    int64_t began_ns, until_ns; /* until_ns is 0: until the end */
    /* after the end */
    unsigned theirs, ours;              /* turns */
    int64_t first_ms[CONTEST_SERVICES]; /* of a service; INT64_MAX: none */
    int64_t longest_ms; /* between two turns of a service, or until the end */
};

/* JdbcLockRegistry's own pace, and turns without a pause. */
extern const struct pace contest_pace;

/* Start the services and workers, which acquire and release the fixture's lock
 * again and again.  Each service does so `turns` times, unless it is stopped
 * before; the workers go on until the services have ended. */
void contest_start(struct contest *contest, struct fixture *fixture,
                   struct service *first, struct service *second,
                   unsigned turns, const struct pace *pace);
/* Acquire and release the lock once more, in the calling thread. */
void contest_visit(struct contest *contest, sqlock_lock *lock);
/* Wait until the services have ended, or with `stops` stop them before.  Then
 * end the workers, and fail the test if two held the lock at a time, a
 * contender never had it, or on PostgreSQL a token did not rise. */
void contest_end(struct contest *contest, bool stops);

#endif
