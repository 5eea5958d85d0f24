/*
 * spring.h - Spring services of three lines beside us, in JVMs of their own
 *
 * The four-column layout is shared with Spring Integration 5 and 6, the other
 * two with 7; a JVM serves all tests of a layout, unless one kills it.
 */
#ifndef TESTS_SPRING_H
#define TESTS_SPRING_H

#include <stdatomic.h>
#include <stdio.h>
#include <sys/types.h>

#include "support/suite_main.h"

extern const struct topic topic_keys;
extern const struct topic topic_exclusion;
extern const struct topic topic_takeover;
extern const struct topic topic_renewal;
extern const struct topic topic_upkeep;
extern const struct topic topic_break;
extern const struct topic topic_upgrade;
extern const struct topic topic_clocks;

/* Longer than a JVM takes for anything on a busy machine. */
#define JVM_WAIT_MS 300000

/* Of both sides: one that no test outlasts, and one that is waited for. */
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
    struct answer unread[ANSWERS_MAX]; /* of threads nobody has asked yet */
    size_t unread_count;
    char version[32];
};

/* Of what a JVM is to be. */
struct service_kind {
    const char *line;  /* "spring5", "spring6", "spring7" */
    const char *clock; /* how far its clock is off, such as "-5s"; NULL: not */
    const char *zone;  /* its time zone; NULL: UTC */
};

void service_start(struct service *service, const struct fixture *fixture,
                   const struct service_kind *kind);
void service_kill(struct service *service);
void service_end(struct service *service);

/* Tell one of its threads something, and wait for what that thread answers. */
void service_tell(struct service *service, const char *thread,
                  const char *format, ...)
    __attribute__((format(printf, 3, 4)));
void service_hear(struct service *service, const char *thread,
                  struct answer *answer);
/* Both, and the answer has to be that one. */
void service_expect(const char *expected, struct service *service,
                    const char *thread, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* --- stage.c --- */

/* The services of the layout: [0] and [1], started when first asked for. */
struct service *stage_service(struct fixture *fixture, unsigned number);
const struct service_kind *stage_kind(const struct fixture *fixture,
                                      unsigned number);
void stage_close(struct fixture *fixture);

/* Make a registry in a service, under a name for it; its client id. */
void stage_open_peer(struct service *service, const struct fixture *fixture,
                     const char *peer, uint32_t ttl_ms,
                     char client[SQLOCK_KEY_SIZE]);

/* Options of ours for peers of this TTL. */
sqlock_options stage_options(const struct fixture *fixture, uint32_t ttl_ms);

/* A registry of ours with these options. */
sqlock_registry *stage_registry(struct fixture *fixture, uint32_t ttl_ms);

/* Check each of the services, by a lock name of its own. */
void stage_each_service(struct fixture *fixture,
                        void (*check)(struct fixture *fixture,
                                      unsigned number));

/* The end of the lease that the row tells, for peers of this TTL. */
int64_t stage_expiry_us(struct fixture *fixture, uint32_t ttl_ms);

/* The `sqlock` command on the fixture's table; its exit status. */
int stage_command(const struct fixture *fixture, char *out, size_t size,
                  const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* --- contest.c: services and workers of ours take turns on one lock --- */

#define CONTEST_WORKERS 4
#define CONTEST_SERVICES 2

struct contest {
    struct fixture *fixture;
    struct service *services[CONTEST_SERVICES];
    char path[256]; /* where the turns are written down */
    struct workers *workers;
    sqlock_registry *registries[CONTEST_WORKERS];
    sqlock_lock *locks[CONTEST_WORKERS];
    atomic_bool is_over;
};

/* Start them; each service takes so many turns, unless it is stopped. */
void contest_start(struct contest *contest, struct fixture *fixture,
                   struct service *first, struct service *second,
                   unsigned turns);
/* One turn more, of the caller's. */
void contest_visit(struct contest *contest, sqlock_lock *lock);
/* Wait until the services have had their turns, or stop them; then judge. */
void contest_end(struct contest *contest, bool stops);

#endif
