/*
 * traffic.c - see traffic.h
 *
 * The kernel counts the bytes of each TCP connection, and the segments with
 * data that were sent.  A request is small: one segment.
 */
#include "traffic.h"
#include "floor.h"

#include <dirent.h>
#include <math.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include <linux/tcp.h>

#define CONNECTIONS_MAX 32768 /* more are not counted at all */

struct connection {
    uint64_t cookie; /* of the socket, the same for all its descriptors */
    double requests;
    double bytes;
};

static const struct bench_traffic not_known = {NAN, NAN, NAN, NAN};

/* Read one TCP connection's counts.  Return whether the descriptor is one. */
static bool read_socket(struct connection *to, int fd)
{
    struct tcp_info info = {0};
    socklen_t size = sizeof info;

    if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &size) != 0)
        return false;
    /* Those that were sent again, to a busy peer, count once. */
    to->requests = (double)info.tcpi_data_segs_out - info.tcpi_total_retrans;
    to->bytes =
        (double)info.tcpi_bytes_acked + (double)info.tcpi_bytes_received;
    size = sizeof to->cookie;
    return getsockopt(fd, SOL_SOCKET, SO_COOKIE, &to->cookie, &size) == 0;
}

static int compare_cookies(const void *left, const void *right)
{
    const struct connection *a = left;
    const struct connection *b = right;

    return (a->cookie > b->cookie) - (a->cookie < b->cookie);
}

/* Count each connection once, although a driver may have two descriptors of
 * it. */
static void sum_up(struct bench_traffic *to, struct connection *all,
                   size_t count)
{
    to->requests = to->wire_bytes = 0;
    qsort(all, count, sizeof *all, compare_cookies);
    for (size_t i = 0; i < count; i++) {
        if (i > 0 && all[i].cookie == all[i - 1].cookie)
            continue;
        to->requests += all[i].requests;
        to->wire_bytes += all[i].bytes;
    }
}

static void count_sockets(struct bench_traffic *to)
{
    DIR *descriptors = opendir("/proc/self/fd");
    struct connection *all = calloc(CONNECTIONS_MAX, sizeof *all);
    const struct dirent *entry;
    size_t count = 0;

    while (descriptors != NULL && all != NULL && count < CONNECTIONS_MAX &&
           (entry = readdir(descriptors)) != NULL) {
        if (entry->d_name[0] != '.' &&
            read_socket(&all[count], (int)strtol(entry->d_name, NULL, 10)))
            count++;
    }
    if (descriptors != NULL && all != NULL && count < CONNECTIONS_MAX)
        sum_up(to, all, count);
    free(all);
    if (descriptors != NULL)
        (void)closedir(descriptors);
}

/* Return how many bytes this process has written by write() and its kin, which
 * are not used for sockets. */
static double count_written(void)
{
    FILE *file = fopen("/proc/self/io", "re");
    double written = NAN;
    char line[64];

    if (file == NULL)
        return NAN;
    while (fgets(line, sizeof line, file) != NULL) {
        if (strncmp(line, "wchar: ", 7) == 0)
            written = strtod(line + 7, NULL);
    }
    (void)fclose(file);
    return written;
}

struct bench_traffic bench_traffic_of_process(const struct bench_target *target)
{
    struct bench_traffic now = not_known;

    if (target->floor->written == NULL)
        now.log_bytes = count_written();
    else
        count_sockets(&now);
    return now;
}

static int read_count(struct floor_connection *connection, const char *query,
                      double *out, struct bench_failure *failure)
{
    int64_t bytes = 0;
    int rc = floor_number(connection, query, &bytes, failure);

    *out = (double)bytes;
    return rc;
}

int bench_traffic_of_server(struct bench_traffic *out,
                            const struct bench_target *target,
                            struct bench_failure *failure)
{
    const struct floor_driver *floor = target->floor;
    int rc;

    *out = not_known;
    if (floor->written == NULL)
        return 0;
    rc = read_count(target->observer, floor->written, &out->log_bytes, failure);
    return rc == 0 && floor->written_binlog != NULL
               ? read_count(target->observer, floor->written_binlog,
                            &out->binlog_bytes, failure)
               : rc;
}

static double rise(double before, double after)
{
    return after >= before ? after - before : NAN;
}

struct bench_traffic bench_traffic_between(const struct bench_traffic *before,
                                           const struct bench_traffic *after)
{
    return (struct bench_traffic){
        .requests = rise(before->requests, after->requests),
        .wire_bytes = rise(before->wire_bytes, after->wire_bytes),
        .log_bytes = rise(before->log_bytes, after->log_bytes),
        .binlog_bytes = rise(before->binlog_bytes, after->binlog_bytes),
    };
}

void bench_traffic_add(struct bench_traffic *sum,
                       const struct bench_traffic *more)
{
    sum->requests += more->requests;
    sum->wire_bytes += more->wire_bytes;
    sum->log_bytes += more->log_bytes;
    sum->binlog_bytes += more->binlog_bytes;
}

void bench_traffic_complete(struct bench_traffic *to,
                            const struct bench_traffic *other)
{
    if (isnan(to->requests))
        to->requests = other->requests;
    if (isnan(to->wire_bytes))
        to->wire_bytes = other->wire_bytes;
    if (isnan(to->log_bytes))
        to->log_bytes = other->log_bytes;
    if (isnan(to->binlog_bytes))
        to->binlog_bytes = other->binlog_bytes;
}
