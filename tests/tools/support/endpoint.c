/*
 * endpoint.c - see endpoint.h
 */
#include "endpoint.h"

#include <netdb.h>
#include <stdio.h>
#include <string.h>

/* Return where host:port begins in the URL, and its length. */
static const char *authority(const char *url, size_t *length)
{
    const char *begin = strstr(url, "://");
    const char *at;

    begin = begin != NULL ? begin + 3 : url;
    *length = strcspn(begin, "/?");
    at = memrchr(begin, '@', *length);
    if (at != NULL) {
        *length -= (size_t)(at + 1 - begin);
        begin = at + 1;
    }
    return begin;
}

int endpoint_find(const char *url, const char *default_port,
                  struct sockaddr_storage *address, socklen_t *size)
{
    const struct addrinfo wanted = {.ai_family = AF_INET,
                                    .ai_socktype = SOCK_STREAM};
    struct addrinfo *found = NULL;
    char host[256];
    const char *port = default_port;
    char *colon;
    size_t length;
    const char *begin = authority(url, &length);

    (void)snprintf(host, sizeof host, "%.*s", (int)length, begin);
    colon = strrchr(host, ':');
    if (colon != NULL) {
        *colon = '\0';
        port = colon + 1;
    }
    if (getaddrinfo(host, port, &wanted, &found) != 0)
        return -1;
    memcpy(address, found->ai_addr, found->ai_addrlen);
    *size = found->ai_addrlen;
    freeaddrinfo(found);
    return 0;
}

const char *endpoint_replace(char out[1024], const char *url, int port)
{
    size_t length;
    const char *begin = authority(url, &length);

    (void)snprintf(out, 1024, "%.*s127.0.0.1:%d%s", (int)(begin - url), url,
                   port, begin + length);
    return out;
}
