/*
 * proxy.h - a network between the library and a database server that fails when
 * it is told to
 *
 * It listens on 127.0.0.1 and forwards to the server of a URL.  A plan says at
 * which request of a client, and at which point of it, what is to happen;
 * meanwhile everything passes.  It runs on one thread, which also runs the
 * plan's hook: that may take its time, and must not assert.
 */
#ifndef TESTS_PROXY_H
#define TESTS_PROXY_H

#include "database.h"

enum proxy_point {
    PROXY_BEFORE, /* the client has sent it; the server gets none of it */
    PROXY_SENT,   /* the server has answered; the client gets none of it */
    PROXY_REPLIED /* the client has the answer */
};

enum proxy_act {
    PROXY_PASS,           /* go on, after the hook and the delay */
    PROXY_CUT,            /* both ends are reset */
    PROXY_HALF_TO_CLIENT, /* the client reads the end of the stream, the
                             server's end stays open */
    PROXY_HALF_TO_SERVER, /* the other way round */
    PROXY_SWALLOW,        /* this request or answer vanishes, the rest passes */
    PROXY_LATE,           /* BEFORE only: it reaches the server at
                             proxy_heal(), whether or not its client is still
                             there; the rest of the connection vanishes */
    PROXY_BLACKHOLE       /* on all connections, also new ones, everything
                             vanishes and nothing ends, until proxy_heal() */
};

struct proxy_plan {
    enum proxy_point point;
    enum proxy_act act;
    unsigned nth;           /* request since proxy_arm(), from 1; 0: each */
    const char *containing; /* only those with this text; NULL: any */
    unsigned delay_ms;
    void (*hook)(void *context, int port); /* port: of the server's peer, by
                                              which it knows the session */
    void *context;
};

struct proxy;

/* Open a proxy to the server of that URL; NULL with a message printed. */
struct proxy *proxy_open(const struct database *database, const char *url);
void proxy_close(struct proxy *proxy);

/* Write the URL through the proxy to out. */
const char *proxy_url(const struct proxy *proxy, char out[1024],
                      const char *url);

void proxy_arm(struct proxy *proxy, const struct proxy_plan *plan);

/* Return how often the plan's point was reached since proxy_arm(); and wait for
 * the first time. */
unsigned proxy_times(struct proxy *proxy);
bool proxy_await(struct proxy *proxy, int64_t timeout_ms);

/* Forget the plan.  Connections from which a blackhole took data are reset. */
void proxy_heal(struct proxy *proxy);

/* Wait until the server has ended every session whose client is gone, and so
 * has carried out all their statements. */
bool proxy_await_quiet(struct proxy *proxy, int64_t timeout_ms);

/* Make it a blackhole at once. */
void proxy_blackhole(struct proxy *proxy);

/* Requests that have passed or been stopped so far, of all connections. */
unsigned proxy_requests(struct proxy *proxy);

#endif
