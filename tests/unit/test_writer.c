/*
 * test_writer.c - a text written to memory is complete, or refused
 */
#include "support/test.h"

#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/writer.h"

TEST(test_a_text_is_what_was_written)
{
    enum { LINES = 5000, LINE = 16 };
    struct lk_writer writer;
    FILE *out = lk_writer_open(&writer);
    char *text;

    assert_non_null(out);
    for (int i = 0; i < LINES; i++)
        assert_int_equal(fprintf(out, "%*d\n", LINE - 1, i), LINE);
    text = lk_writer_close(&writer);
    assert_non_null(text);
    assert_int_equal(strlen(text), LINES * LINE);
    for (int i = 0; i < LINES; i++)
        assert_int_equal(strtol(text + i * LINE, NULL, 10), i);
    free(text);
}

TEST(test_a_text_may_be_empty)
{
    struct lk_writer writer;
    char *text;

    assert_non_null(lk_writer_open(&writer));
    text = lk_writer_close(&writer);
    assert_string_equal(text, "");
    free(text);
}

#if SLOWNESS == 1 /* a sanitizer's own memory would run out first */
/* Let the process allocate at most `more` bytes more.  On failure end the
 * process with status 3. */
static void limit_memory(rlim_t more)
{
    struct rlimit limit;
    long pages = 0;
    FILE *file = fopen("/proc/self/statm", "re");

    if (file == NULL || fscanf(file, "%ld", &pages) != 1 ||
        getrlimit(RLIMIT_AS, &limit) < 0)
        _exit(3);
    (void)fclose(file);
    limit.rlim_cur = more == RLIM_INFINITY
                         ? limit.rlim_max
                         : (rlim_t)pages * (rlim_t)sysconf(_SC_PAGESIZE) + more;
    if (setrlimit(RLIMIT_AS, &limit) < 0)
        _exit(3);
}

/* In a child: write more than memory has room for, then a line when there is
 * memory again.  Return 0 if the text is refused, 1 if not, 3 if the test
 * cannot begin. */
static int write_without_memory(void)
{
    enum { MIB = 1 << 20 };
    static const char line[] = "0123456789abcdef0123456789abcdef\n";
    struct lk_writer writer;
    FILE *out = lk_writer_open(&writer);

    if (out == NULL)
        return 3;
    limit_memory(4 * MIB);
    for (size_t written = 0; written < 32 * MIB; written += strlen(line))
        (void)fputs(line, out);
    limit_memory(RLIM_INFINITY);
    (void)fputs("the end\n", out);
    return lk_writer_close(&writer) == NULL ? 0 : 1;
}

/* Memory runs out in the middle of a text, and is there again at its end.  The
 * text would have a gap, so it is refused. */
TEST(test_a_text_without_memory_is_refused)
{
    int status = 0;
    pid_t child;

    child = fork();
    assert_true(child >= 0);
    if (child == 0)
        _exit(write_without_memory());
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
}
#endif
