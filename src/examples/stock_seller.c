/*
 * stock_seller.c - sell stock for all processes of a machine: many of them that
 * want one item wait for each other's commits, while the threads of one process
 * are served together, by one commit
 *
 *     stock_seller URL SOCKET [TABLE-PREFIX]
 *
 * A client connects to the Unix socket, which only this user may, and sends
 * lines "ORDER ITEM QUANTITY".  It gets a line for each: "0 LEFT" is sold,
 * "CODE LEFT" is refused, CODE as in sqlock.h.  After EUNCERTAIN, or without
 * an answer, it is not known which, and the client asks again with the same
 * ORDER, here or at another seller: an order is carried out once.  So the
 * seller may be killed and started at any time.  `sqlock stock init` makes the
 * tables.
 */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "sqlock/stock.h"

struct client {
    sqlock_stock *stock;
    int fd;
};

/* Carry out one line.  Return the result, and write what is left to *left. */
static int sell(sqlock_stock *stock, char *line, int64_t *left)
{
    sqlock_stock_answer answer = SQLOCK_STOCK_ANSWER_INIT;
    sqlock_error err = {0};
    char *rest = NULL;
    const char *order = strtok_r(line, " \n", &rest);
    const char *item = strtok_r(NULL, " \n", &rest);
    const char *quantity = strtok_r(NULL, " \n", &rest);
    bool is_all = strtok_r(NULL, " \n", &rest) == NULL;
    char *end = NULL;
    long long number;
    int rc = SQLOCK_EINVAL;

    errno = 0;
    number = quantity == NULL ? 0 : strtoll(quantity, &end, 10);

    *left = -1;
    if (end != NULL && *end == '\0' && errno == 0 && is_all)
        rc = sqlock_stock_deduct(stock, NULL, order, item, number, &answer,
                                 &err);
    if (rc < 0 && rc != SQLOCK_EINSUFFICIENT)
        (void)fprintf(stderr, "stock_seller: %d %s\n", rc, err.message);
    if (rc == 0 || rc == SQLOCK_EINSUFFICIENT)
        *left = answer.left;
    return rc;
}

/* A thread for each client: COALESCED combines what several wait for. */
static void *serve(void *argument)
{
    struct client *client = argument;
    FILE *lines = fdopen(client->fd, "r");
    char line[512];

    while (lines != NULL && fgets(line, sizeof line, lines) != NULL &&
           strchr(line, '\n') != NULL) {
        int64_t left;
        int rc = sell(client->stock, line, &left);

        if (dprintf(client->fd, "%d %lld\n", rc, (long long)left) < 0)
            break;
    }
    if (lines == NULL)
        (void)close(client->fd);
    else
        (void)fclose(lines);
    free(client);
    return NULL;
}

/* Serve the client at that descriptor.  Return false if there is no room. */
static bool admit(sqlock_stock *stock, int fd)
{
    struct client *client = fd < 0 ? NULL : malloc(sizeof *client);
    pthread_t thread;

    if (client != NULL) {
        *client = (struct client){stock, fd};
        if (pthread_create(&thread, NULL, serve, client) == 0)
            return pthread_detach(thread) == 0;
    }
    if (fd >= 0)
        (void)close(fd);
    free(client);
    return false;
}

static int listen_at(const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct stat old;

    errno = ENAMETOOLONG;
    if (strlen(path) >= sizeof address.sun_path)
        goto fail;
    (void)snprintf(address.sun_path, sizeof address.sun_path, "%s", path);
    if (lstat(path, &old) == 0 && S_ISSOCK(old.st_mode))
        (void)unlink(path); /* of a seller before this one */
    (void)umask(0077);
    if (bind(fd, (struct sockaddr *)&address, sizeof address) == 0 &&
        listen(fd, SOMAXCONN) == 0)
        return fd;
fail:
    (void)fprintf(stderr, "stock_seller: %s: %s\n", path, strerror(errno));
    exit(EXIT_FAILURE);
}

int main(int argc, char **argv)
{
    sqlock_stock_options options = SQLOCK_STOCK_INIT;
    sqlock_options tables = SQLOCK_OPTIONS_INIT;
    sqlock_registry *registry;
    sqlock_stock *stock;
    sqlock_error err = {0};
    int fd;

    if (argc != 3 && argc != 4) {
        (void)fprintf(stderr,
                      "usage: stock_seller URL SOCKET [TABLE-PREFIX]\n");
        return 2;
    }
    (void)signal(SIGPIPE, SIG_IGN);
    options.strategy = SQLOCK_STOCK_COALESCED;
    tables.table_prefix = argv[3]; /* NULL: the default */
    if (sqlock_registry_open(&registry, argv[1], &tables, &err) < 0 ||
        sqlock_stock_open(&stock, registry, &options, &err) < 0) {
        (void)fprintf(stderr, "stock_seller: %s\n", err.message);
        return EXIT_FAILURE;
    }
    for (fd = listen_at(argv[2]);;)
        if (!admit(stock, accept(fd, NULL, NULL)))
            (void)poll(NULL, 0, 10); /* until there is room */
}
