/*
 * wire.c - answers of a server that is none, or has lost its mind: a registry
 * that is opened there ends with an error that says so
 *
 * The first byte of the input says which protocol is spoken, and whether the
 * login succeeds first.  The rest is all that the server says; then it closes
 * the connection.
 */
#include "fuzz.h"

#include <arpa/inet.h>
#include <pthread.h>
#include <sys/socket.h>
#include <unistd.h>

#include "sqlock.h"

/* A login that PostgreSQL grants without a password. */
static const char postgres_login[] = "R\0\0\0\10\0\0\0\0"
                                     "S\0\0\0\31client_encoding\0UTF8\0"
                                     "S\0\0\0\31server_version\00015.18\0"
                                     "S\0\0\0\31DateStyle\0ISO, MDY\0\0\0\0"
                                     "K\0\0\0\14\0\0\0\1\0\0\0\2"
                                     "Z\0\0\0\5I";
/* And MySQL's: a greeting, and OK. */
static const char mysql_login[] =
    "\112\0\0\0\12"
    "8.0.30\0"
    "\1\0\0\0"
    "12345678\0"
    "\377\367\10\2\0\377\301\25\0\0\0\0\0\0\0\0\0\0"
    "123456789012\0"
    "mysql_native_password\0"
    "\7\0\0\2\0\0\0\2\0\0\0";

#define SAID_MAX 8192

static int listener = -1;
static int port;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
/* The text that is said on a connection, with the login.  A connection that is
 * served late may hear what is meant for the next.  The mutex guards it. */
static struct said {
    char text[SAID_MAX];
    size_t size;
} said;

static void add(const void *text, size_t size)
{
    size_t room = SAID_MAX - said.size;

    memcpy(said.text + said.size, text, size < room ? size : room);
    said.size += size < room ? size : room;
}

/* Say what is to be said on each connection, and read until its end. */
static void *serve(void *unused)
{
    static struct said now;
    char dropped[4096];

    (void)unused;
    for (;;) {
        int fd = accept(listener, NULL, NULL);

        if (fd < 0)
            continue;
        (void)pthread_mutex_lock(&mutex);
        now = said;
        (void)pthread_mutex_unlock(&mutex);
        (void)!send(fd, now.text, now.size, MSG_NOSIGNAL);
        (void)shutdown(fd, SHUT_WR);
        while (recv(fd, dropped, sizeof dropped, 0) > 0)
            continue;
        (void)close(fd);
    }
    return NULL;
}

int LLVMFuzzerInitialize(int *argc, char ***argv) /* NOLINT: libFuzzer's */
{
    struct sockaddr_in at = {.sin_family = AF_INET,
                             .sin_addr = {htonl(INADDR_LOOPBACK)}};
    socklen_t size = sizeof at;
    pthread_t thread;

    (void)argc;
    (void)argv;
    listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    must(listener >= 0);
    must(bind(listener, (struct sockaddr *)&at, sizeof at) == 0);
    must(listen(listener, 64) == 0);
    must(getsockname(listener, (struct sockaddr *)&at, &size) == 0);
    port = ntohs(at.sin_port);
    must(pthread_create(&thread, NULL, serve, NULL) == 0);
    must(pthread_detach(thread) == 0);
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    sqlock_options options = {.size = sizeof options,
                              .connect_timeout_ms = 200,
                              .statement_timeout_ms = 200};
    sqlock_registry *registry = NULL;
    sqlock_error err = {0};
    bool is_mysql = size > 0 && (data[0] & 1) != 0;
    bool has_login = size > 0 && (data[0] & 2) != 0;
    char url[80];
    int rc;

    if (size == 0)
        return 0;
    (void)pthread_mutex_lock(&mutex);
    said.size = 0;
    if (has_login && is_mysql)
        add(mysql_login, sizeof mysql_login - 1);
    else if (has_login)
        add(postgres_login, sizeof postgres_login - 1);
    add(data + 1, size - 1);
    (void)pthread_mutex_unlock(&mutex);
    (void)snprintf(url, sizeof url, "%s://u:p@127.0.0.1:%d/d",
                   is_mysql ? "mysql" : "postgres", port);
    rc = sqlock_registry_open(&registry, url, &options, &err);
    must(rc < 0 && registry == NULL);
    must(err.code == rc && err.message[0] != '\0');
    must(strchr(err.message, '\n') == NULL);
    return 0;
}
