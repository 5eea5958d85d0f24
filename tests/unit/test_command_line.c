/*
 * test_command_line.c - the command line of a holder as others see it, without
 * secrets
 */
#include "support/test.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/command_line.h"

/* Assert how a command line is shown.  A space separates words, '~' stands for
 * a space within a word. */
static void check(const char *line, const char *expected)
{
    char words[256];
    char shown[200];
    size_t length = strlen(line) + 1;

    memcpy(words, line, length);
    for (size_t i = 0; i < length; i++) {
        words[i] = words[i] == ' ' ? '\0' : words[i];
        words[i] = words[i] == '~' ? ' ' : words[i];
    }
    lk_command_line_show(shown, sizeof shown, words, length);
    assert_string_equal(shown, expected);
}

TEST(test_plain_words_are_shown)
{
    check("run   --ttl 30 migrate -- ./migrate.sh", " run --ttl 30 migrate -- "
                                                    "./migrate.sh");
    check("/opt/shop/bin/worker 7 -v", " /opt/shop/bin/worker 7 -v");
}

TEST(test_what_may_be_a_secret_is_not)
{
    check("--url postgresql://u:hunter2@db/shop x",
          " --url postgresql://... x");
    check("--dsn=postgresql://u:hunter2@db", " --dsn=...");
    check("--password=hunter2", " --password=...");
    check("--password hunter2 next", " --password ... next");
    check("--api-TOKEN hunter2", " --api-TOKEN ...");
    check("-p hunter2", " -p ...");
    check("-phunter2", " -p...");
    check("-u anna:hunter2", " -u ...");
    check("--db-user a --pwd b --secret c --key d --auth e --cred f",
          " --db-user ... --pwd ... --secret ... --key ... --auth ... --cred "
          "...");
    check("PGPASSWORD=hunter2 psql", " PGPASSWORD=... psql");
    check("host=db~password=hunter2", " host=...");
    check("u:hunter2@tcp(db)/shop", " ...");
    check("-c mysql~-phunter2", " -c ...");
    check("{\"password\":\"hunter2\"}", " ...");
    check("ghp16C7e42F292c6912E7710c838347Ae178B4a", " ...");
    check("k3y4567890123456789 k3y45678901234567890", " k3y4567890123456789 "
                                                      "...");
    check("\xc3\xa4", " ...");
}

TEST(test_whole_words_are_left_out_at_the_end)
{
    static const char words[] = "one\0two\0three";
    char shown[10];

    lk_command_line_show(shown, sizeof shown, words, sizeof words);
    assert_string_equal(shown, " one two");
    lk_command_line_show(shown, sizeof shown, words, 0);
    assert_string_equal(shown, "");
}

TEST(test_a_process_is_user_host_pid_and_program)
{
    char shown[300];
    char pid[32];

    lk_process_show(shown, sizeof shown);
    (void)snprintf(pid, sizeof pid, " %ld unit", (long)getpid());
    assert_contains(shown, pid);
    assert_contains(shown, "@");
}
