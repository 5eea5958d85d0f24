/*
 * event_loop.c - wait for many locks in one thread, which goes on meanwhile
 *
 *     event_loop URL NAME...
 *
 * Each lock is asked for by a request.  The library writes to one eventfd
 * whenever a request is over, so a lock is one more descriptor to poll(2).
 * Exit status: 0 each was taken and given back, 1 not.
 */
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "sqlock/async.h"

enum { MOST = 100, WAIT_MS = 30000, TICK_MS = 500 };

struct item {
    sqlock_lock *lock;
    sqlock_request *request; /* NULL: nothing is under way */
    bool is_held;
};

/* Act on a request that is over: the work of this program is to print. */
static int advance(struct item *item, int done_fd, sqlock_error *err)
{
    int rc;

    rc = sqlock_request_finish(item->request, err);
    item->request = NULL;
    if (rc < 0)
        return rc;
    (void)printf("%s: %s\n", sqlock_name(item->lock),
                 item->is_held ? "given back" : "taken");
    item->is_held = !item->is_held;
    if (!item->is_held)
        return 0;
    return sqlock_request_release(&item->request, item->lock, done_fd, err);
}

static bool is_over(const struct item *item)
{
    sqlock_request_state state = sqlock_request_status(item->request);

    return item->request != NULL && state != SQLOCK_REQUEST_FETCHING &&
           state != SQLOCK_REQUEST_RELEASING;
}

static int loop(struct item *items, size_t count, int done_fd,
                sqlock_error *err)
{
    struct pollfd done = {.fd = done_fd, .events = POLLIN};
    size_t left = count;
    uint64_t times;
    int rc = 0;

    while (rc == 0 && left > 0) {
        if (poll(&done, 1, TICK_MS) == 1)
            (void)!read(done_fd, &times, sizeof times); /* before looking */
        for (size_t i = 0; rc == 0 && i < count; i++) {
            if (!is_over(&items[i]))
                continue;
            rc = advance(&items[i], done_fd, err);
            if (rc == 0 && items[i].request == NULL)
                left--;
        }
    }
    return rc;
}

int main(int argc, char **argv)
{
    struct item items[MOST] = {{0}};
    sqlock_registry *registry = NULL;
    sqlock_error err = {0};
    size_t count = (size_t)argc - 2;
    int done_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    int rc;

    if (argc < 3 || count > MOST || done_fd < 0) {
        (void)fprintf(stderr, "usage: event_loop URL NAME...\n");
        return 2;
    }
    rc = sqlock_registry_open(&registry, argv[1], NULL, &err);
    for (size_t i = 0; rc == 0 && i < count; i++) {
        rc = sqlock_obtain(&items[i].lock, registry, argv[i + 2], &err);
        if (rc == 0)
            rc = sqlock_request_acquire(&items[i].request, items[i].lock,
                                        WAIT_MS, NULL, done_fd, &err);
    }
    if (rc == 0)
        rc = loop(items, count, done_fd, &err);
    (void)sqlock_registry_close(registry, NULL); /* abandons what is left */
    (void)close(done_fd);
    if (rc < 0)
        (void)fprintf(stderr, "event_loop: %s\n", err.message);
    return rc < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}
