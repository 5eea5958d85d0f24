/*
 * proxy.h - a TCP proxy between the library and a database server, which fails
 * as a test has planned
 *
 * The proxy listens on 127.0.0.1 and forwards to the server of a URL.  A plan
 * says at which request of a client, and at which point of the request, the
 * proxy does something else; everything before that passes.  The proxy has one
 * thread, which also calls the plan's hook.  The hook may take long, and must
 * not use cmocka's assertions.
 */
#ifndef TESTS_PROXY_H
#define TESTS_PROXY_H

#include "database.h"

enum proxy_point {
    PROXY_BEFORE, /* the client has sent it; the server has none of it */
    PROXY_SENT,   /* the server has answered; the client has nothing of that */
    PROXY_REPLIED /* the client has the answer */
};

enum proxy_act {
    PROXY_PASS,           /* forward, after the hook and the delay */
    PROXY_CUT,            /* reset both connections of the client */
    PROXY_HALF_TO_CLIENT, /* the client reads the end of the stream; the
                             connection to the server stays open */
    PROXY_HALF_TO_SERVER, /* the server reads the end of the stream; the
                             connection to the client stays open */
    PROXY_SWALLOW,        /* drop this request or answer; the rest passes */
    PROXY_LATE,           /* BEFORE only: forward the request at proxy_heal(),
                             even if its client is gone, and drop everything
                             after it on this connection */
    PROXY_BLACKHOLE       /* until proxy_heal() drop everything on all
                             connections, also new ones, and end none */
};

struct proxy_plan {
    enum proxy_point point;
    enum proxy_act act;
    unsigned nth;           /* only the nth since proxy_arm(), from 1; 0: all */
    const char *containing; /* only requests with this text; NULL: all */
    unsigned delay_ms;
    void (*hook)(void *context, int port); /* port: the client's, as the server
                                              shows it for the session */
    void *context;
};

struct proxy;

/* Open a proxy to the server of that URL; or print a message and return
 * NULL. */
struct proxy *proxy_open(const struct database *database, const char *url);
void proxy_close(struct proxy *proxy);

/* Write the URL, led through the proxy, to out; return out. */
const char *proxy_url(const struct proxy *proxy, char out[1024],
                      const char *url);

void proxy_arm(struct proxy *proxy, const struct proxy_plan *plan);

/* proxy_times(): return how often the plan's point was reached since
 * proxy_arm().  proxy_await(): wait for the first time; return false if the
 * timeout ends first. */
unsigned proxy_times(struct proxy *proxy);
bool proxy_await(struct proxy *proxy, int64_t timeout_ms);

/* Remove the plan, end a blackhole and reset the connections of which it
 * dropped data, and send the requests that PROXY_LATE kept back. */
void proxy_heal(struct proxy *proxy);

/* Wait until the server has ended every session whose client is gone, and so
 * has carried out all statements of these; return false if the timeout ends
 * first. */
bool proxy_await_quiet(struct proxy *proxy, int64_t timeout_ms);

/* Make the proxy a blackhole at once. */
void proxy_blackhole(struct proxy *proxy);

/* Reset all connections, and until proxy_heal() each new one at once. */
void proxy_down(struct proxy *proxy);

/* Return how many requests, of all connections, have come so far. */
unsigned proxy_requests(struct proxy *proxy);

#endif
