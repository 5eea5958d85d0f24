/*
 * wire.h - split the data that a client sends into units, each a message or a
 * request; for PostgreSQL's and MySQL's protocols without TLS
 */
#ifndef TESTS_WIRE_H
#define TESTS_WIRE_H

#include <stdbool.h>
#include <stddef.h>

enum wire_kind { WIRE_POSTGRES, WIRE_MYSQL };

struct wire {
    enum wire_kind kind;
    bool is_started; /* PostgreSQL: the startup message has passed */
};

/* The first unit of the client's data. */
struct wire_unit {
    size_t length;   /* 0: not complete yet */
    bool is_request; /* the server answers it, and it is not part of the
                        login */
};

struct wire_unit wire_next(struct wire *wire, const unsigned char *bytes,
                           size_t count);

/* Return whether these bytes end the server's answer to a request. */
bool wire_ends_reply(const struct wire *wire, const unsigned char *bytes,
                     size_t count);

#endif
