/*
 * wire.c - see wire.h
 *
 * PostgreSQL: a simple query is a request, and so are all messages up to a Sync
 * together.  MySQL: a packet with the sequence number 0 is a command.
 */
#include "wire.h"

#include <stdint.h>

static uint32_t big_endian(const unsigned char *at)
{
    return (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 |
           (uint32_t)at[2] << 8 | at[3];
}

#define SSL_REQUEST 80877103u
#define GSS_REQUEST 80877104u

static struct wire_unit startup(struct wire *wire, const unsigned char *bytes,
                                size_t count)
{
    struct wire_unit unit = {0};
    uint32_t code;

    if (count < 8 || count < big_endian(bytes))
        return unit;
    unit.length = big_endian(bytes);
    code = big_endian(bytes + 4);
    wire->is_started = code != SSL_REQUEST && code != GSS_REQUEST;
    return unit;
}

static struct wire_unit next_postgres(struct wire *wire,
                                      const unsigned char *bytes, size_t count)
{
    struct wire_unit unit = {0};
    size_t at = 0;

    if (!wire->is_started)
        return startup(wire, bytes, count);
    while (count - at >= 5) {
        size_t length = 1 + (size_t)big_endian(bytes + at + 1);
        unsigned char type = bytes[at];

        if (count - at < length)
            break;
        at += length;
        if (type == 'p' || type == 'X') { /* a password, Terminate */
            unit.length = at;
            break;
        }
        if (type == 'Q' || type == 'S') { /* Query, Sync */
            unit.length = at;
            unit.is_request = true;
            break;
        }
    }
    return unit;
}

enum { COM_QUIT = 0x01, COM_STMT_SEND_LONG_DATA = 0x18, COM_STMT_CLOSE = 0x19 };

static struct wire_unit next_mysql(const unsigned char *bytes, size_t count)
{
    struct wire_unit unit = {0};
    size_t length;

    if (count < 5)
        return unit;
    length =
        4 + ((size_t)bytes[0] | (size_t)bytes[1] << 8 | (size_t)bytes[2] << 16);
    if (count < length)
        return unit;
    unit.length = length;
    unit.is_request = bytes[3] == 0 && bytes[4] != COM_QUIT &&
                      bytes[4] != COM_STMT_SEND_LONG_DATA &&
                      bytes[4] != COM_STMT_CLOSE;
    return unit;
}

struct wire_unit wire_next(struct wire *wire, const unsigned char *bytes,
                           size_t count)
{
    return wire->kind == WIRE_POSTGRES ? next_postgres(wire, bytes, count)
                                       : next_mysql(bytes, count);
}

bool wire_ends_reply(const struct wire *wire, const unsigned char *bytes,
                     size_t count)
{
    /* MySQL's server sends a short answer in one piece. */
    if (wire->kind == WIRE_MYSQL)
        return count > 0;
    return count >= 6 && bytes[count - 6] == 'Z' &&
           big_endian(bytes + count - 5) == 5;
}
