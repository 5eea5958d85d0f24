/*
 * endpoint.h - the host and port of a URL
 */
#ifndef TESTS_ENDPOINT_H
#define TESTS_ENDPOINT_H

#include <sys/socket.h>

/* Find the IPv4 address of the URL.  Return 0, or -1 if it has none. */
int endpoint_find(const char *url, const char *default_port,
                  struct sockaddr_storage *address, socklen_t *size);

/* Write the URL to out with 127.0.0.1:port as its host; return out. */
const char *endpoint_replace(char out[1024], const char *url, int port);

#endif
