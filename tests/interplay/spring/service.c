/*
 * service.c - a JVM with a Spring service in it (src/sqlock/Service.java),
 * which reads requests and writes answers, one a line
 */
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/url.h"
#include "spring.h"

/* --- in the child, a JVM --- */

static const char *jdbc_scheme(const struct fixture *fixture)
{
    if (fixture->database->bit == ON_POSTGRES)
        return "postgresql";
    return getenv("SQLOCK_TEST_SPRING_MYSQL") != NULL ? "mysql" : "mariadb";
}

/* Pass the database to the JVM by its environment: a password in an argument
 * could be seen by others. */
static void set_database(const struct fixture *fixture)
{
    sqlock_error err = {0};
    struct lk_url url = {0};
    char text[512];

    if (lk_url_parse(&url, fixture->url, &err) < 0)
        _exit(96);
    (void)snprintf(text, sizeof text, "jdbc:%s://%s:%s%s%s",
                   jdbc_scheme(fixture), url.host, url.port, url.path,
                   getenv("SQLOCK_TEST_SPRING_MYSQL") != NULL
                       ? "?sslMode=DISABLED&allowPublicKeyRetrieval=true"
                       : "");
    (void)setenv("SPRING_JDBC_URL", text, 1);
    (void)setenv("SPRING_JDBC_USER", url.user, 1);
    (void)setenv("SPRING_JDBC_PASSWORD", url.password, 1);
    lk_url_clear(&url);
}

static void become(const struct fixture *fixture,
                   const struct service_kind *kind, const int *orders,
                   const int *says)
{
    const char *home = getenv("SQLOCK_TEST_SPRING");
    const char *faketime = getenv("SQLOCK_TEST_SPRING_FAKETIME");
    char path[2048];
    char zone[64];

    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    (void)signal(SIGPIPE, SIG_DFL);
    if (dup2(orders[0], STDIN_FILENO) < 0 || dup2(says[1], STDOUT_FILENO) < 0)
        _exit(97);
    set_database(fixture);
    if (kind->clock != NULL && faketime != NULL) {
        (void)setenv("LD_PRELOAD", faketime, 1);
        (void)setenv("FAKETIME", kind->clock, 1);
    }
    (void)snprintf(path, sizeof path, "%s/%s/classes:%s/%s/lib/*", home,
                   kind->line, home, kind->line);
    (void)snprintf(zone, sizeof zone, "-Duser.timezone=%s",
                   kind->zone != NULL ? kind->zone : "UTC");
    (void)execlp("java", "java", "-Xmx96m", "-XX:+UseSerialGC",
                 "-XX:TieredStopAtLevel=1", zone, "-cp", path, "sqlock.Service",
                 (char *)NULL);
    _exit(98);
}

/* --- in the test --- */

void service_start(struct service *service, const struct fixture *fixture,
                   const struct service_kind *kind)
{
    struct answer ready;
    int orders[2];
    int says[2];

    if (getenv("SQLOCK_TEST_SPRING") == NULL)
        fail_msg("%s", "run this by tests/interplay/spring/with.sh");
    memset(service, 0, sizeof *service);
    assert_int_equal(pipe2(orders, O_CLOEXEC), 0);
    assert_int_equal(pipe2(says, O_CLOEXEC), 0);
    (void)fflush(NULL);
    service->pid = fork();
    assert_true(service->pid >= 0);
    if (service->pid == 0)
        become(fixture, kind, orders, says);
    (void)close(orders[0]);
    (void)close(says[1]);
    service->orders = orders[1];
    service->says = fdopen(says[0], "r");
    assert_non_null(service->says);
    setvbuf(service->says, NULL, _IONBF, 0); /* poll() cannot see a buffer */
    service_hear(service, "ready", &ready);
    (void)snprintf(service->version, sizeof service->version, "%.31s",
                   ready.text);
}

static void forget(struct service *service)
{
    int status;

    (void)close(service->orders);
    assert_int_equal(waitpid(service->pid, &status, 0), service->pid);
    (void)fclose(service->says);
    memset(service, 0, sizeof *service);
}

void service_kill(struct service *service)
{
    assert_int_equal(kill(service->pid, SIGKILL), 0);
    forget(service);
}

/* The JVM ends when its standard input does. */
void service_end(struct service *service)
{
    if (service->pid != 0)
        forget(service);
}

static void tell(struct service *service, const char *thread,
                 const char *format, va_list arguments)
{
    char line[2048];
    size_t length;

    length = (size_t)snprintf(line, sizeof line, "%s ", thread);
    (void)vsnprintf(line + length, sizeof line - length - 1, format, arguments);
    length = strlen(line);
    line[length++] = '\n';
    assert_int_equal(write(service->orders, line, length), (ssize_t)length);
}

void service_tell(struct service *service, const char *thread,
                  const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    tell(service, thread, format, arguments);
    va_end(arguments);
}

static bool take_unread(struct service *service, const char *thread,
                        struct answer *answer)
{
    for (size_t i = 0; i < service->unread_count; i++)
        if (strcmp(service->unread[i].thread, thread) == 0) {
            *answer = service->unread[i];
            service->unread[i] = service->unread[--service->unread_count];
            return true;
        }
    return false;
}

static void read_answer(struct service *service, struct answer *answer)
{
    struct pollfd poller = {.fd = fileno(service->says), .events = POLLIN};
    char line[1024];
    char *space;

    if (poll(&poller, 1, JVM_WAIT_MS) != 1)
        fail_msg("%s", "the JVM does not answer");
    if (fgets(line, sizeof line, service->says) == NULL)
        fail_msg("%s", "the JVM has ended");
    line[strcspn(line, "\n")] = '\0';
    space = strchr(line, ' ');
    assert_non_null(space);
    *space = '\0';
    (void)snprintf(answer->thread, sizeof answer->thread, "%.15s", line);
    (void)snprintf(answer->text, sizeof answer->text, "%.999s", space + 1);
}

void service_hear(struct service *service, const char *thread,
                  struct answer *answer)
{
    if (take_unread(service, thread, answer))
        return;
    for (;;) {
        read_answer(service, answer);
        if (strcmp(answer->thread, thread) == 0)
            return;
        assert_true(service->unread_count < ANSWERS_MAX);
        service->unread[service->unread_count++] = *answer;
    }
}

void service_expect(const char *expected, struct service *service,
                    const char *thread, const char *format, ...)
{
    struct answer answer;
    va_list arguments;
    va_list again;
    char asked[1024];

    va_start(arguments, format);
    va_copy(again, arguments);
    (void)vsnprintf(asked, sizeof asked, format, again);
    va_end(again);
    tell(service, thread, format, arguments);
    va_end(arguments);
    service_hear(service, thread, &answer);
    if (strcmp(answer.text, expected) != 0)
        fail_msg("Spring %s: \"%s\" gave \"%s\", not \"%s\"", service->version,
                 asked, answer.text, expected);
}
