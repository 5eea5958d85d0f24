/*
 * proxy.c - see proxy.h
 *
 * A request is forwarded as a whole, so that at PROXY_BEFORE the server has got
 * none of it.  Sockets are read when poll(2) reports data, and written at once:
 * requests and answers of the tests are far smaller than the kernel's buffers.
 */
#include "proxy.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "endpoint.h"
#include "wire.h"

#define LINKS_MAX 128
#define BUFFER_SIZE (1u << 20)

/* A client's connection to the proxy, and the proxy's to the server for it. */
struct link {
    int client; /* -1: closed */
    int server;
    int port;               /* the proxy's port of `server` */
    bool is_deaf_to_client; /* data from the client are dropped */
    bool is_deaf_to_server;
    bool is_eaten;    /* a blackhole has dropped data */
    bool is_late;     /* the first unit of `bytes` is still to be sent */
    bool is_awaiting; /* the plan's request has no whole answer yet */
    struct wire wire;
    size_t count;
    unsigned char *bytes; /* from the client, not forwarded yet */
};

struct proxy {
    pthread_t thread;
    int listener;
    int wakeup; /* eventfd */
    int port;
    enum wire_kind kind;
    struct sockaddr_storage target;
    socklen_t target_size;
    struct link links[LINKS_MAX];     /* used by the thread only */
    unsigned char reply[BUFFER_SIZE]; /* used by the thread only */

    pthread_mutex_t mutex; /* guards the following fields */
    pthread_cond_t changed;
    struct proxy_plan plan;
    bool is_armed;
    bool is_black;
    bool is_down;
    bool is_felling; /* proxy_down() waits for the thread */
    bool is_healing; /* proxy_heal() waits for the thread */
    bool is_ending;
    unsigned seen;  /* requests that the plan is for, since proxy_arm() */
    unsigned times; /* how often the plan's point was reached */
    unsigned requests;
    unsigned dangling; /* open sessions whose client is gone */
};

/* ----------------------------------------------------------- the sockets -- */

static void reset(int *fd)
{
    const struct linger now = {.l_onoff = 1, .l_linger = 0};

    if (*fd < 0)
        return;
    (void)setsockopt(*fd, SOL_SOCKET, SO_LINGER, &now, sizeof now);
    (void)close(*fd);
    *fd = -1;
}

static void cut(struct link *link)
{
    reset(&link->client);
    reset(&link->server);
    link->is_awaiting = false;
    free(link->bytes);
    link->bytes = NULL;
}

static void write_all(int fd, const unsigned char *bytes, size_t count)
{
    while (fd >= 0 && count > 0) {
        ssize_t written = send(fd, bytes, count, MSG_NOSIGNAL);

        if (written <= 0)
            return; /* the next recv() reports the error */
        bytes += written;
        count -= (size_t)written;
    }
}

/* Return one of the states that other threads change. */
static bool read_state(struct proxy *proxy, const bool *state)
{
    bool now;

    pthread_mutex_lock(&proxy->mutex);
    now = *state;
    pthread_mutex_unlock(&proxy->mutex);
    return now;
}

static bool is_black(struct proxy *proxy)
{
    return read_state(proxy, &proxy->is_black);
}

/* Connect the link to the server, unless the proxy is a blackhole. */
static void lead_on(struct proxy *proxy, struct link *link)
{
    struct sockaddr_in own = {0};
    socklen_t size = sizeof own;
    const int one = 1;

    if (is_black(proxy)) {
        link->is_eaten = true;
        return;
    }
    link->server =
        socket(proxy->target.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (link->server < 0 ||
        connect(link->server, (struct sockaddr *)&proxy->target,
                proxy->target_size) < 0) {
        cut(link);
        return;
    }
    (void)setsockopt(link->server, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    if (getsockname(link->server, (struct sockaddr *)&own, &size) == 0)
        link->port = ntohs(own.sin_port);
}

static void accept_one(struct proxy *proxy)
{
    int client = accept4(proxy->listener, NULL, NULL, SOCK_CLOEXEC);
    const int one = 1;

    if (read_state(proxy, &proxy->is_down))
        reset(&client);
    for (size_t i = 0; client >= 0 && i < LINKS_MAX; i++) {
        struct link *link = &proxy->links[i];

        if (link->client >= 0 || link->server >= 0)
            continue;
        free(link->bytes);
        memset(link, 0, sizeof *link);
        link->wire.kind = proxy->kind;
        link->client = client;
        link->server = -1;
        link->bytes = malloc(BUFFER_SIZE);
        if (link->bytes == NULL)
            abort();
        (void)setsockopt(client, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
        lead_on(proxy, link);
        return;
    }
    reset(&client);
}

/* -------------------------------------------------------------- the plan -- */

/* Count the request and copy the plan to *plan; return whether the plan is to
 * be carried out at this request. */
static bool is_meant(struct proxy *proxy, const unsigned char *request,
                     size_t length, struct proxy_plan *plan)
{
    bool meant = false;

    pthread_mutex_lock(&proxy->mutex);
    proxy->requests++;
    *plan = proxy->plan;
    if (proxy->is_armed && (plan->containing == NULL ||
                            memmem(request, length, plan->containing,
                                   strlen(plan->containing)) != NULL)) {
        proxy->seen++;
        meant = plan->nth == 0 || proxy->seen == plan->nth;
    }
    pthread_mutex_unlock(&proxy->mutex);
    return meant;
}

static void act(struct proxy *proxy, struct link *link, enum proxy_act what)
{
    switch (what) {
    case PROXY_PASS:
    case PROXY_SWALLOW:
        break;
    case PROXY_LATE:
        link->is_late = true;
        break;
    case PROXY_CUT:
        cut(link);
        break;
    case PROXY_HALF_TO_CLIENT:
        (void)shutdown(link->client, SHUT_WR);
        link->is_deaf_to_server = true;
        break;
    case PROXY_HALF_TO_SERVER:
        (void)shutdown(link->server, SHUT_WR);
        link->is_deaf_to_client = true;
        break;
    case PROXY_BLACKHOLE:
        pthread_mutex_lock(&proxy->mutex);
        proxy->is_black = true;
        pthread_mutex_unlock(&proxy->mutex);
        break;
    }
}

/* Carry the plan out at its point; return whether to forward what was
 * received. */
static bool reach(struct proxy *proxy, struct link *link,
                  const struct proxy_plan *plan)
{
    if (plan->hook != NULL)
        plan->hook(plan->context, link->port);
    check_sleep(plan->delay_ms);
    act(proxy, link, plan->act);
    if (plan->act == PROXY_BLACKHOLE)
        link->is_eaten = true;
    pthread_mutex_lock(&proxy->mutex);
    proxy->times++;
    pthread_cond_broadcast(&proxy->changed);
    pthread_mutex_unlock(&proxy->mutex);
    return plan->act == PROXY_PASS;
}

/* ------------------------------------------------------------ forwarding -- */

/* Forward one whole unit (wire.h) of the client. */
static void forward_unit(struct proxy *proxy, struct link *link,
                         const struct wire_unit *unit)
{
    struct proxy_plan plan;

    if (unit->is_request && is_meant(proxy, link->bytes, unit->length, &plan)) {
        if (plan.point == PROXY_BEFORE && !reach(proxy, link, &plan))
            return;
        link->is_awaiting = plan.point != PROXY_BEFORE;
    }
    if (!link->is_deaf_to_client)
        write_all(link->server, link->bytes, unit->length);
}

static void forward_units(struct proxy *proxy, struct link *link)
{
    while (link->client >= 0 && link->count > 0 && !link->is_late) {
        struct wire_unit unit =
            wire_next(&link->wire, link->bytes, link->count);

        if (unit.length == 0)
            return;
        forward_unit(proxy, link, &unit);
        if (link->bytes == NULL || link->is_late) /* cut, or kept back */
            return;
        link->count -= unit.length;
        memmove(link->bytes, link->bytes + unit.length, link->count);
    }
}

static void from_client(struct proxy *proxy, struct link *link)
{
    ssize_t got = recv(link->client, link->bytes + link->count,
                       BUFFER_SIZE - link->count, 0);

    if (link->is_late || link->is_eaten || is_black(proxy)) {
        link->is_eaten = !link->is_late;
        if (got <= 0)
            reset(&link->client); /* the server is not told */
        return;
    }
    if (got <= 0) {
        reset(&link->client);
        if (link->server >= 0)
            (void)shutdown(link->server, SHUT_WR);
        return;
    }
    if (link->is_deaf_to_client)
        return;
    link->count += (size_t)got;
    forward_units(proxy, link);
}

/* Forward a part of the answer to the plan's request. */
static void forward_reply(struct proxy *proxy, struct link *link,
                          const unsigned char *bytes, size_t count)
{
    struct proxy_plan plan;

    pthread_mutex_lock(&proxy->mutex);
    plan = proxy->plan;
    pthread_mutex_unlock(&proxy->mutex);
    if (plan.point == PROXY_SENT) {
        link->is_awaiting = false;
        if (reach(proxy, link, &plan))
            write_all(link->client, bytes, count);
        return;
    }
    write_all(link->client, bytes, count);
    if (wire_ends_reply(&link->wire, bytes, count)) {
        link->is_awaiting = false;
        (void)reach(proxy, link, &plan);
    }
}

static void from_server(struct proxy *proxy, struct link *link)
{
    unsigned char *bytes = proxy->reply;
    ssize_t got = recv(link->server, bytes, sizeof proxy->reply, 0);

    if (link->is_eaten || is_black(proxy)) {
        link->is_eaten = true;
        if (got <= 0)
            reset(&link->server);
        return;
    }
    if (got <= 0) {
        (void)close(link->server);
        link->server = -1;
        if (link->client >= 0)
            (void)shutdown(link->client, SHUT_WR);
        return;
    }
    if (link->is_awaiting)
        forward_reply(proxy, link, bytes, (size_t)got);
    else if (!link->is_deaf_to_server)
        write_all(link->client, bytes, (size_t)got);
}

/* ------------------------------------------------------------ the thread -- */

/* Send the request that was kept back to the server, and nothing after it. */
static void deliver(struct link *link)
{
    struct wire_unit unit = wire_next(&link->wire, link->bytes, link->count);

    link->is_late = false;
    link->is_deaf_to_client = true;
    link->is_deaf_to_server = true;
    write_all(link->server, link->bytes, unit.length);
    (void)shutdown(link->server, SHUT_WR);
}

/* Do what proxy_down(), proxy_heal() or proxy_close() asks for: reset all
 * connections, or those of which a blackhole has dropped data, and send
 * requests that were kept back.  Return false if the proxy ends. */
static bool obey(struct proxy *proxy)
{
    bool go_on;
    uint64_t pokes;

    if (read(proxy->wakeup, &pokes, sizeof pokes) < 0)
        return true;
    pthread_mutex_lock(&proxy->mutex);
    if (proxy->is_felling) {
        for (size_t i = 0; i < LINKS_MAX; i++)
            cut(&proxy->links[i]);
        proxy->is_felling = false;
        pthread_cond_broadcast(&proxy->changed);
    }
    if (proxy->is_healing) {
        proxy->is_black = false;
        proxy->is_down = false;
        for (size_t i = 0; i < LINKS_MAX; i++)
            if (proxy->links[i].is_eaten)
                cut(&proxy->links[i]);
            else if (proxy->links[i].is_late)
                deliver(&proxy->links[i]);
        proxy->is_healing = false;
        pthread_cond_broadcast(&proxy->changed);
    }
    go_on = !proxy->is_ending;
    pthread_mutex_unlock(&proxy->mutex);
    return go_on;
}

static void serve(struct proxy *proxy, const struct pollfd *polled)
{
    for (size_t i = 0; i < LINKS_MAX; i++) {
        struct link *link = &proxy->links[i];
        const struct pollfd *ends = &polled[2 + 2 * i];

        if (link->client >= 0 && link->client == ends[0].fd &&
            ends[0].revents != 0)
            from_client(proxy, link);
        if (link->server >= 0 && link->server == ends[1].fd &&
            ends[1].revents != 0)
            from_server(proxy, link);
    }
    if (polled[1].revents != 0)
        accept_one(proxy);
}

static void count_dangling(struct proxy *proxy)
{
    unsigned count = 0;

    for (size_t i = 0; i < LINKS_MAX; i++)
        count += proxy->links[i].client < 0 && proxy->links[i].server >= 0;
    pthread_mutex_lock(&proxy->mutex);
    proxy->dangling = count;
    pthread_mutex_unlock(&proxy->mutex);
}

static void *run(void *argument)
{
    struct proxy *proxy = argument;
    struct pollfd polled[2 + 2 * LINKS_MAX];

    for (;;) {
        polled[0] = (struct pollfd){.fd = proxy->wakeup, .events = POLLIN};
        polled[1] = (struct pollfd){.fd = proxy->listener, .events = POLLIN};
        for (size_t i = 0; i < LINKS_MAX; i++) {
            polled[2 + 2 * i] =
                (struct pollfd){.fd = proxy->links[i].client, .events = POLLIN};
            polled[3 + 2 * i] =
                (struct pollfd){.fd = proxy->links[i].server, .events = POLLIN};
        }
        if (poll(polled, sizeof polled / sizeof *polled, -1) < 0)
            continue;
        if (polled[0].revents != 0 && !obey(proxy))
            return NULL;
        serve(proxy, polled);
        count_dangling(proxy);
    }
}

static void poke(struct proxy *proxy)
{
    const uint64_t one = 1;

    if (write(proxy->wakeup, &one, sizeof one) < 0)
        abort();
}

/* --------------------------------------------- the functions of proxy.h -- */

static int listen_anywhere(struct proxy *proxy)
{
    struct sockaddr_in own = {.sin_family = AF_INET};
    socklen_t size = sizeof own;

    own.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    proxy->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (proxy->listener < 0 ||
        bind(proxy->listener, (struct sockaddr *)&own, sizeof own) < 0 ||
        listen(proxy->listener, LINKS_MAX) < 0 ||
        getsockname(proxy->listener, (struct sockaddr *)&own, &size) < 0)
        return -1;
    proxy->port = ntohs(own.sin_port);
    proxy->wakeup = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    return proxy->wakeup < 0 ? -1 : 0;
}

struct proxy *proxy_open(const struct database *database, const char *url)
{
    struct proxy *proxy = calloc(1, sizeof *proxy);

    if (proxy == NULL)
        abort();
    proxy->kind = database->bit == ON_POSTGRES ? WIRE_POSTGRES : WIRE_MYSQL;
    for (size_t i = 0; i < LINKS_MAX; i++) {
        proxy->links[i].client = -1;
        proxy->links[i].server = -1;
    }
    (void)pthread_mutex_init(&proxy->mutex, NULL);
    (void)pthread_cond_init(&proxy->changed, NULL);
    if (endpoint_find(url, proxy->kind == WIRE_POSTGRES ? "5432" : "3306",
                      &proxy->target, &proxy->target_size) < 0 ||
        listen_anywhere(proxy) < 0 ||
        pthread_create(&proxy->thread, NULL, run, proxy) != 0) {
        print_error("proxy: %s\n", strerror(errno));
        free(proxy);
        return NULL;
    }
    return proxy;
}

void proxy_close(struct proxy *proxy)
{
    if (proxy == NULL)
        return;
    pthread_mutex_lock(&proxy->mutex);
    proxy->is_ending = true;
    pthread_mutex_unlock(&proxy->mutex);
    poke(proxy);
    (void)pthread_join(proxy->thread, NULL);
    for (size_t i = 0; i < LINKS_MAX; i++)
        cut(&proxy->links[i]);
    (void)close(proxy->listener);
    (void)close(proxy->wakeup);
    (void)pthread_cond_destroy(&proxy->changed);
    (void)pthread_mutex_destroy(&proxy->mutex);
    free(proxy);
}

const char *proxy_url(const struct proxy *proxy, char out[1024],
                      const char *url)
{
    size_t length;

    (void)endpoint_replace(out, url, proxy->port);
    /* The proxy cannot read encrypted data.  Oracle's client library encrypts
     * if the server can. */
    length = strlen(out);
    if (proxy->kind == WIRE_MYSQL && strchr(out, '?') == NULL)
        (void)snprintf(out + length, 1024 - length, "?tls=off");
    return out;
}

void proxy_arm(struct proxy *proxy, const struct proxy_plan *plan)
{
    pthread_mutex_lock(&proxy->mutex);
    proxy->plan = *plan;
    proxy->is_armed = true;
    proxy->seen = 0;
    proxy->times = 0;
    pthread_mutex_unlock(&proxy->mutex);
}

/* Return one of the counts, which the proxy's thread changes. */
static unsigned read_count(struct proxy *proxy, const unsigned *count)
{
    unsigned now;

    pthread_mutex_lock(&proxy->mutex);
    now = *count;
    pthread_mutex_unlock(&proxy->mutex);
    return now;
}

unsigned proxy_times(struct proxy *proxy)
{
    return read_count(proxy, &proxy->times);
}

bool proxy_await(struct proxy *proxy, int64_t timeout_ms)
{
    return wait_until(proxy_times(proxy) > 0, timeout_ms);
}

bool proxy_await_quiet(struct proxy *proxy, int64_t timeout_ms)
{
    return wait_until(read_count(proxy, &proxy->dangling) == 0, timeout_ms);
}

unsigned proxy_requests(struct proxy *proxy)
{
    return read_count(proxy, &proxy->requests);
}

void proxy_blackhole(struct proxy *proxy)
{
    pthread_mutex_lock(&proxy->mutex);
    proxy->is_black = true;
    pthread_mutex_unlock(&proxy->mutex);
}

/* Have the thread do something, and wait until it has.  The caller holds the
 * mutex, and has set *asked. */
static void have_done(struct proxy *proxy, const bool *asked)
{
    poke(proxy);
    while (*asked)
        pthread_cond_wait(&proxy->changed, &proxy->mutex);
}

void proxy_down(struct proxy *proxy)
{
    pthread_mutex_lock(&proxy->mutex);
    proxy->is_down = true;
    proxy->is_felling = true;
    have_done(proxy, &proxy->is_felling);
    pthread_mutex_unlock(&proxy->mutex);
}

void proxy_heal(struct proxy *proxy)
{
    pthread_mutex_lock(&proxy->mutex);
    proxy->is_armed = false;
    proxy->is_healing = true;
    have_done(proxy, &proxy->is_healing);
    pthread_mutex_unlock(&proxy->mutex);
}
