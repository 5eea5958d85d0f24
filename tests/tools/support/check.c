/*
 * check.c - the assertions of check.h
 *
 * They print the code, its name and the text the library gave, with the
 * caller's line, before they fail the running test.
 */
#include "check.h"

#include <dirent.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#include "db/driver.h"

static const char *code_name(int code)
{
    switch (code) {
    case 0:
        return "0";
#define SQLOCK_X(name, value, text)                                            \
    case (value):                                                              \
        return #name;
        SQLOCK_ERRORS(SQLOCK_X)
#undef SQLOCK_X
    default:
        return "unknown";
    }
}

static const char *row;

void check_row(const char *name)
{
    row = name;
}

void check_row_end(void)
{
    if (row != NULL)
        print_error("in the row: %s\n", row);
    row = NULL;
}

bool check_one_line(const char *message)
{
    const char *p;

    if (message == NULL || *message == '\0')
        return false;
    for (p = message; *p != '\0'; p++)
        if ((unsigned char)*p < 0x20 || *p == 0x7f)
            return false;
    return true;
}

static void report(int rc, const sqlock_error *err)
{
    print_error("got %d %s (%s)\n", rc, code_name(rc), sqlock_strerror(rc));
    if (rc != 0 && err != NULL)
        print_error("error: code %d native %d sqlstate \"%s\": %s\n", err->code,
                    err->native, err->sqlstate, err->message);
}

/* Fail the test if rc is an error, and *err does not have that code and a
 * message of one line. */
static void check_error(int rc, const sqlock_error *err, const char *file,
                        int line)
{
    if (rc == 0 || err == NULL)
        return;
    if (err->code != rc) {
        print_error("the error says code %d, returned was %d\n", err->code, rc);
        report(rc, err);
        _fail(file, line);
    }
    if (!check_one_line(err->message)) {
        print_error("the message is not one clear line: \"%s\"\n",
                    err->message);
        _fail(file, line);
    }
}

void check_code(int expected, int rc, const sqlock_error *err, const char *file,
                int line)
{
    if (rc != expected) {
        print_error("expected %d %s\n", expected, code_name(expected));
        report(rc, err);
        _fail(file, line);
    }
    check_error(rc, err, file, line);
}

void check_code_of(int one, int other, int rc, const sqlock_error *err,
                   const char *file, int line)
{
    if (rc != one && rc != other) {
        print_error("expected %s or %s\n", code_name(one), code_name(other));
        report(rc, err);
        _fail(file, line);
    }
    check_error(rc, err, file, line);
}

void check_less(int64_t smaller, int64_t larger, const char *smaller_text,
                const char *larger_text, const char *file, int line)
{
    if (smaller < larger)
        return;
    print_error("not true: %s (%lld) < %s (%lld)\n", smaller_text,
                (long long)smaller, larger_text, (long long)larger);
    _fail(file, line);
}

void check_contains(const char *haystack, const char *needle, bool wanted,
                    const char *file, int line)
{
    if ((strstr(haystack, needle) != NULL) == wanted)
        return;
    print_error("%s \"%s\": %s\n", wanted ? "lacks" : "holds", needle,
                haystack);
    _fail(file, line);
}

int64_t check_deadline_ns(int64_t timeout_ms)
{
    return sqlock_monotonic_ns() + timeout_ms * 1000000;
}

bool check_pause(int64_t deadline_ns)
{
    const struct timespec pause = {.tv_nsec = 2000000};

    if (sqlock_monotonic_ns() >= deadline_ns)
        return false;
    (void)nanosleep(&pause, NULL);
    return true;
}

void check_sleep(int64_t ms)
{
    const struct timespec time = {.tv_sec = ms / 1000,
                                  .tv_nsec = (long)(ms % 1000) * 1000000};

    if (ms > 0)
        (void)nanosleep(&time, NULL);
}

static bool is_set(const char *variable, const char *value)
{
    const char *text = getenv(variable);

    return text != NULL && strcmp(text, value) == 0;
}

unsigned check_scale(unsigned test, unsigned campaign)
{
    return is_set("SQLOCK_SCALE", "campaign") ? campaign : test;
}

bool check_skips_fail(void)
{
    return is_set("SKIPS_FAIL", "1");
}

void check_end_with(pid_t parent)
{
    if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 || getppid() != parent)
        _exit(98);
}

size_t check_entries(const char *path)
{
    DIR *directory = opendir(path);
    size_t count = 0;

    assert_non_null(directory);
    while (readdir(directory) != NULL)
        count++;
    (void)closedir(directory);
    return count;
}
