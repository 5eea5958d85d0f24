/*
 * redis.c - the cases of a lock in Redis, as its manual describes it: SET with
 * NX and PX, and a script that deletes the key if it still has our token
 *
 * Where Redis is installed, a private server is started.  It logs each change
 * to a file, and flushes that before it answers ("always"), as the databases
 * do, or once a second ("everysec"), where a crash of the machine frees locks
 * that are held.
 */
#include "cases.h"

#include <errno.h>
#include <ftw.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <spawn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define PORT_VARIABLE "SQLOCK_BENCH_REDIS_" /* and the value of appendfsync */
#define TTL_MS "10000"
#define TRIES 500 /* to connect to a server that starts */
#define PAUSE_NS 10000000L
#define TEXT_SIZE 1024
#define DELETE                                                                 \
    "if redis.call('get', KEYS[1]) == ARGV[1] then "                           \
    "return redis.call('del', KEYS[1]) else return 0 end"

struct redis_client {
    int fd;
    char name[48], token[48];
};

struct redis_state {
    pid_t server; /* 0: another process has started it */
    char directory[64];
    uint16_t port;
    char script[41]; /* the digest of DELETE */
    unsigned clients;
    struct redis_client client[BENCH_CLIENTS_MAX];
};

/* ------------------------------------------------------------- protocol -- */

static int send_words(int fd, const char *const *words, size_t count,
                      struct bench_failure *failure)
{
    char text[TEXT_SIZE];
    size_t length = (size_t)snprintf(text, sizeof text, "*%zu\r\n", count);

    for (size_t i = 0; i < count; i++)
        length +=
            (size_t)snprintf(text + length, sizeof text - length,
                             "$%zu\r\n%s\r\n", strlen(words[i]), words[i]);
    if (send(fd, text, length, MSG_NOSIGNAL) != (ssize_t)length)
        return bench_fail(failure, BENCH_REDIS ", send: %s", strerror(errno));
    return 0;
}

/* Send a command of @p count words, and receive the reply, which has so many
 * lines. */
static int call(int fd, const char *const *words, size_t count, unsigned lines,
                char reply[TEXT_SIZE], struct bench_failure *failure)
{
    size_t length = 0;
    ssize_t more;

    if (send_words(fd, words, count, failure) < 0)
        return -1;
    while (lines > 0) {
        more = recv(fd, reply + length, TEXT_SIZE - 1 - length, 0);
        if (more <= 0)
            return bench_fail(failure, BENCH_REDIS ": no reply to %s",
                              words[0]);
        for (; more > 0; more--)
            lines -= reply[length++] == '\n' && lines > 0;
        if (reply[0] == '-')
            break;
    }
    reply[length] = '\0';
    return 0;
}

/* As call(), and expect one line. */
static int expect(int fd, const char *const *words, size_t count,
                  const char *expected, struct bench_failure *failure)
{
    char reply[TEXT_SIZE];

    if (call(fd, words, count, 1, reply, failure) < 0)
        return -1;
    if (strcmp(reply, expected) != 0)
        return bench_fail(failure, BENCH_REDIS ": %s: %s", words[0], reply);
    return 0;
}

/* --------------------------------------------------------------- server -- */

static struct sockaddr_in loopback(uint16_t port)
{
    return (struct sockaddr_in){
        .sin_family = AF_INET,
        .sin_port = htons(port),
        .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
    };
}

/* Return a port that nobody uses now; 0: none. */
static uint16_t free_port(void)
{
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct sockaddr_in address = loopback(0);
    socklen_t size = sizeof address;
    uint16_t port = 0;

    if (bind(fd, (struct sockaddr *)&address, size) == 0 &&
        getsockname(fd, (struct sockaddr *)&address, &size) == 0)
        port = ntohs(address.sin_port);
    (void)close(fd);
    return port;
}

/* Return a connection; -1: nobody answers. */
static int connect_to(uint16_t port)
{
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct sockaddr_in address = loopback(port);
    int on = 1;

    if (connect(fd, (struct sockaddr *)&address, sizeof address) == 0 &&
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on) == 0)
        return fd;
    (void)close(fd);
    return -1;
}

/* Start a server, which ends with this process. */
static int start_server(struct redis_state *state, const char *flush,
                        struct bench_failure *failure)
{
    const char *parent = getenv("SQLOCK_TEST_DIR");
    char port[8];
    const char *words[] = {"setpriv",
                           "--pdeathsig",
                           "TERM",
                           BENCH_REDIS,
                           "--port",
                           port,
                           "--bind",
                           "127.0.0.1",
                           "--dir",
                           state->directory,
                           "--logfile",
                           "log",
                           "--save",
                           "",
                           "--appendonly",
                           "yes",
                           "--appendfsync",
                           flush,
                           NULL};
    int error;

    state->port = free_port();
    (void)snprintf(port, sizeof port, "%u", state->port);
    (void)snprintf(state->directory, sizeof state->directory,
                   "%.40s/redis.XXXXXX", parent != NULL ? parent : "/tmp");
    if (mkdtemp(state->directory) == NULL) {
        state->directory[0] = '\0';
        return bench_fail(failure, "mkdtemp: %s", strerror(errno));
    }
    error = posix_spawnp(&state->server, words[0], NULL, NULL,
                         (char *const *)(uintptr_t)words, environ);
    if (error == 0)
        return 0;
    state->server = 0;
    return bench_fail(failure, "%s: %s", words[0], strerror(error));
}

static int await_server(const struct redis_state *state,
                        struct bench_failure *failure)
{
    const struct timespec pause = {.tv_nsec = PAUSE_NS};
    int fd;

    for (unsigned i = 0; i < TRIES; i++) {
        fd = connect_to(state->port);
        if (fd >= 0) {
            (void)close(fd);
            return 0;
        }
        (void)nanosleep(&pause, NULL);
    }
    return bench_fail(failure, BENCH_REDIS " does not start");
}

static int remove_one(const char *path, const struct stat *status, int kind,
                      struct FTW *where)
{
    (void)status;
    (void)kind;
    (void)where;
    return remove(path);
}

static void end_server(struct redis_state *state)
{
    if (state->server > 0) {
        (void)kill(state->server, SIGTERM);
        (void)waitpid(state->server, NULL, 0);
    }
    if (state->directory[0] != '\0')
        (void)nftw(state->directory, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

/* ---------------------------------------------------------------- cases -- */

/* Start a server and tell client processes its port, or learn it from the
 * benchmark. */
static int find_server(struct redis_state *state,
                       const struct bench_target *target, const char *flush,
                       struct bench_failure *failure)
{
    char variable[48], port[8];
    const char *given;

    (void)snprintf(variable, sizeof variable, PORT_VARIABLE "%s", flush);
    if (target->is_set_up) {
        given = getenv(variable);
        state->port = (uint16_t)(given != NULL ? strtoul(given, NULL, 10) : 0);
        return 0;
    }
    if (start_server(state, flush, failure) < 0)
        return -1;
    (void)snprintf(port, sizeof port, "%u", state->port);
    (void)setenv(variable, port, 1);
    return await_server(state, failure);
}

static int load_script(struct redis_state *state, int fd,
                       struct bench_failure *failure)
{
    const char *words[] = {"SCRIPT", "LOAD", DELETE};
    char reply[TEXT_SIZE];

    if (call(fd, words, 3, 2, reply, failure) < 0)
        return -1;
    if (sscanf(reply, "$40 %40s", state->script) != 1)
        return bench_fail(failure, BENCH_REDIS ": SCRIPT LOAD: %s", reply);
    return 0;
}

static int set_up(void **out, const struct bench_target *target,
                  const char *flush, struct bench_failure *failure)
{
    struct redis_state *state = calloc(1, sizeof *state);
    struct redis_client *client;
    int rc;

    *out = state;
    if (state == NULL)
        return bench_fail(failure, "out of memory");
    rc = find_server(state, target, flush, failure);
    while (rc == 0 && state->clients < target->clients) {
        client = &state->client[state->clients];
        (void)snprintf(client->name, sizeof client->name, "bench client %u",
                       target->first + state->clients);
        (void)snprintf(client->token, sizeof client->token, "%036u",
                       target->first + state->clients);
        client->fd = connect_to(state->port);
        if (client->fd < 0)
            return bench_fail(failure, BENCH_REDIS " takes no connection");
        state->clients++;
        if (state->clients == 1)
            rc = load_script(state, client->fd, failure);
    }
    return rc;
}

int redis_always_setup(void **state, const struct bench_target *target,
                       struct bench_failure *failure)
{
    return set_up(state, target, "always", failure);
}

int redis_everysec_setup(void **state, const struct bench_target *target,
                         struct bench_failure *failure)
{
    return set_up(state, target, "everysec", failure);
}

void redis_teardown(void *opaque)
{
    struct redis_state *state = opaque;

    if (state == NULL)
        return;
    for (unsigned i = 0; i < state->clients; i++)
        (void)close(state->client[i].fd);
    end_server(state);
    free(state);
}

int redis_pair(void *opaque, unsigned number, struct bench_failure *failure)
{
    const struct redis_state *state = opaque;
    const struct redis_client *client = &state->client[number];
    const char *take[] = {"SET", client->name, client->token,
                          "NX",  "PX",         TTL_MS};
    const char *give[] = {"EVALSHA", state->script, "1", client->name,
                          client->token};

    if (expect(client->fd, take, 6, "+OK\r\n", failure) < 0)
        return -1;
    return expect(client->fd, give, 5, ":1\r\n", failure);
}
