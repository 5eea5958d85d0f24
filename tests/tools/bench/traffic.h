/*
 * traffic.h - count what clients send and what their database writes
 *
 * Counts only rise; one that is not known is NAN, and so is what is computed
 * of it.
 */
#ifndef BENCH_TRAFFIC_H
#define BENCH_TRAFFIC_H

struct bench_failure;
struct bench_target;

struct bench_traffic {
    double requests;     /* sent by the clients: round trips */
    double wire_bytes;   /* sent and received by the clients, without headers */
    double log_bytes;    /* PostgreSQL's WAL, InnoDB's redo log, and what
                            SQLite writes to its files */
    double binlog_bytes; /* MariaDB's binary log */
};

/**
 * Count what this process has sent and received on the TCP connections that are
 * open now, and on SQLite what it has written.  A difference of two counts is
 * right only while connections stay open.  The logs of a server are not known
 * here.
 */
struct bench_traffic
bench_traffic_of_process(const struct bench_target *target);

/** Count the logs of the server; what clients send is not known here, nor
 *  what SQLite writes.  @return 0; -1 with the reason */
int bench_traffic_of_server(struct bench_traffic *out,
                            const struct bench_target *target,
                            struct bench_failure *failure);

/** Return @p after - @p before; a count that has fallen is not known. */
struct bench_traffic bench_traffic_between(const struct bench_traffic *before,
                                           const struct bench_traffic *after);

/** Add @p more to @p sum. */
void bench_traffic_add(struct bench_traffic *sum,
                       const struct bench_traffic *more);

/** Replace what is not known in @p to by what @p other knows. */
void bench_traffic_complete(struct bench_traffic *to,
                            const struct bench_traffic *other);

#endif /* BENCH_TRAFFIC_H */
