/*
 * keys.c - the keys of names are those that Spring computes: by the lenient
 * rule of Spring 5, and by the rule of Spring 6 and 7
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "spring.h"

#define NAMES 500
#define NAME_SIZE 128

/* --- the names --- */

/* Write a character, which is no surrogate, as UTF-8 with a NUL after it.
 * Return its length in bytes. */
static size_t encode(char *out, uint32_t c)
{
    size_t length = c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
    static const unsigned char lead[] = {0, 0, 0xc0, 0xe0, 0xf0};

    for (size_t i = length; i-- > 1; c >>= 6)
        out[i] = (char)(0x80 | (c & 0x3f));
    out[0] = (char)(lead[length] | c);
    out[length] = '\0';
    return length;
}

static const char *const chosen[] = {
    "foo",
    "leader",
    "lock with spaces",
    "UPPER/lower",
    "invoice/4711",
    "ünïcödé",
    "日本語のロック",
    "😀",
    "1-1-1-1-1",
    "１-1-1-1-1",
    "1-１-1-1-1",
    "١-٢-٣-٤-٥",
    "१-२-३-४-५",
    "ａ-ｂ-ｃ-ｄ-ｅ",
    "Ａ-Ｂ-Ｃ-Ｄ-Ｆ",
    "Ｇ-1-1-1-1",
    "𝟏-1-1-1-1",
    "𑁦-1-1-1-1",
    "+1-1-1-1-1",
    "1-+1-1-1-1",
    "+-1-1-1-1",
    "++1-1-1-1-1",
    "-1-1-1-1-1",
    "1-1-1-1",
    "1-1-1-1-1-1",
    "1-1-1-1-",
    "-1-1-1-1",
    "1--1-1-1",
    "----",
    "-",
    "g-1-1-1-1",
    "1-12345-1-1-1",
    "123456789-1-1-1-1",
    "ffffffffffffffff-1-1-1-1",
    "7fffffffffffffff-1-1-1-1",
    "8000000000000000-1-1-1-1",
    "1-1-1-1-7fffffffffffffff",
    "00000000000000000000001-1-1-1-1",
    "0000000000000000000000000001-1-1-1-1",
    "00000000000000000000000000001-1-1-1-1",
    "acbd18db-4cc2-385c-adef-654fccc4a4d8",
    "ACBD18DB-4CC2-385C-ADEF-654FCCC4A4D8",
    "Acbd18dB-4cc2-385C-adef-654fcCc4a4d8",
    "acbd18db-4cc2-385c-adef-654fccc4a4d",
    "acbd18db-4cc2-385c-adef-654fccc4a4d8 ",
    " acbd18db-4cc2-385c-adef-654fccc4a4d8",
    "acbd18db-4cc2-385c-adef-654fccc4a4d89",
    "acbd18db4cc2385cadef654fccc4a4d8",
    "{acbd18db-4cc2-385c-adef-654fccc4a4d8}",
    "acbd18dg-4cc2-385c-adef-654fccc4a4d8",
    "acbd18d-b4cc2-385c-adef-654fccc4a4d8",
    "１cbd18db-4cc2-385c-adef-654fccc4a4d8",
    "tab\there",
    "line\nbreak",
    "1-1-1-1-1\n",
    "\001",
    "a\xcc\x88",
    "\xc3\xa4",
    "\xef\xbb\xbf"
    "bom",
};

/* Make up a name that looks like a UUID: five groups of digits of some script,
 * with various lengths.  Some names have a suffix, some have another form. */
static void make_name(char *out, unsigned number)
{
    static const uint32_t zeros[] = {'0',    '0',     '0',    0x660, 0x966,
                                     0xff10, 0x1d7ce, 0xff21, 'A',   'a'};
    uint32_t zero = zeros[number % (sizeof zeros / sizeof zeros[0])];
    unsigned seed = number;
    size_t length = 0;

    for (unsigned group = 0; group < 5; group++) {
        unsigned digits = 1 + number / 10 % 7 + group % 2;

        if (group > 0)
            out[length++] = '-';
        for (unsigned i = 0; i < digits; i++) {
            seed = seed * 1103515245 + 12345;
            length += encode(out + length, zero + seed / 65536 % 6);
        }
    }
    if (number % 17 == 0)
        (void)snprintf(out + length, 16, "/%u", number);
    if (number % 29 == 0)
        (void)snprintf(out, NAME_SIZE, "name %u", number);
}

static unsigned make_names(char (*names)[NAME_SIZE])
{
    const unsigned fixed = sizeof chosen / sizeof chosen[0];

    for (unsigned i = 0; i < NAMES; i++)
        if (i < fixed)
            (void)snprintf(names[i], NAME_SIZE, "%s", chosen[i]);
        else
            make_name(names[i], i);
    return NAMES;
}

/* Make names that begin with a digit, for each character of one UTF-16 unit in
 * place of that digit.  Return how many. */
static unsigned make_digits(char (*names)[NAME_SIZE])
{
    unsigned count = 0;

    for (uint32_t c = 1; c < 0x10000; c++) {
        size_t length;

        if (c >= 0xd800 && c < 0xe000)
            continue; /* surrogates */
        length = encode(names[count], c);
        (void)snprintf(names[count++] + length, 16, "-1-1-1-1");
    }
    return count;
}

/* --- their keys --- */

static void write_names(const char *path, char (*names)[NAME_SIZE],
                        unsigned count)
{
    FILE *file = fopen(path, "w");

    assert_non_null(file);
    for (unsigned i = 0; i < count; i++) {
        for (const char *at = names[i]; *at != '\0'; at++)
            (void)fprintf(file, "%02x", (unsigned char)*at);
        (void)fputc('\n', file);
    }
    assert_int_equal(fclose(file), 0);
}

static void compare(const char *path, char (*names)[NAME_SIZE], unsigned count,
                    sqlock_key_rule rule)
{
    FILE *file = fopen(path, "r");
    sqlock_error err = {0};
    unsigned wrong = 0;

    assert_non_null(file);
    for (unsigned i = 0; i < count; i++) {
        char key[SQLOCK_KEY_SIZE];
        char line[64];

        assert_non_null(fgets(line, sizeof line, file));
        line[strcspn(line, "\n")] = '\0';
        assert_lock_ok(sqlock_key_of(key, names[i], rule, &err), &err);
        if (strcmp(line, key) != 0 && wrong++ < 10)
            print_error("\"%s\": Spring's key is %s, ours %s\n", names[i], line,
                        key);
    }
    (void)fclose(file);
    assert_int_equal(wrong, 0);
}

static void check_names(struct service *service, sqlock_key_rule rule,
                        unsigned (*make)(char (*)[NAME_SIZE]))
{
    const char *dir = getenv("SQLOCK_TEST_DIR");
    char(*names)[NAME_SIZE] = calloc(0x10000, NAME_SIZE);
    char in[256];
    char out[272];
    char expected[16];
    unsigned count;

    assert_non_null(names);
    (void)snprintf(in, sizeof in, "%s/names.%ld", dir != NULL ? dir : "/tmp",
                   (long)getpid());
    (void)snprintf(out, sizeof out, "%s.keys", in);
    count = make(names);
    write_names(in, names, count);
    (void)snprintf(expected, sizeof expected, "%u", count);
    service_expect(expected, service, "keys", "keys %s %s", in, out);
    compare(out, names, count, rule);
    (void)unlink(in);
    (void)unlink(out);
    free(names);
}

static sqlock_key_rule rule_of(const struct service *service)
{
    return service->version[0] == '5' ? SQLOCK_KEY_LEGACY : SQLOCK_KEY_CURRENT;
}

TEST(test_keys_of_500_names_are_springs)
{
    for (unsigned i = 0; i < CONTEST_SERVICES; i++)
        check_names(stage_service(f, i), rule_of(stage_service(f, i)),
                    make_names);
}

TEST(test_digits_are_those_of_java)
{
    for (unsigned i = 0; i < CONTEST_SERVICES; i++)
        check_names(stage_service(f, i), rule_of(stage_service(f, i)),
                    make_digits);
}

/* `sqlock key` prints the key of the row that a service has written. */
TEST(test_the_command_tells_the_key_of_the_row)
{
    struct service *service = stage_service(f, 0);
    bool legacy = rule_of(service) == SQLOCK_KEY_LEGACY;
    const char *name = "１-1-1-1-1";
    char out[256];

    stage_open_peer(service, f, "key", STAYING_TTL_MS, NULL);
    service_expect("true", service, "key", "try key %s 0", name);
    assert_int_equal(stage_command(f, out, sizeof out, "key '%s' --rule %s",
                                   name, legacy ? "legacy" : "current"),
                     0);
    out[strcspn(out, "\n")] = '\0';
    assert_string_equal(out,
                        legacy ? "00000001-0001-0001-0001-000000000001" : out);
    assert_int_equal(sql_integer(&f->sql,
                                 "SELECT COUNT(*) FROM %s WHERE LOCK_KEY = "
                                 "'%s'",
                                 f->table, out),
                     1);
    service_expect("ok", service, "key", "close key");
}
