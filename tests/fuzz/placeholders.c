/*
 * placeholders.c - the application's SQL: without quotes and comments each `?`
 * is counted, without `?` nothing is changed; and what is said to keep locks
 * has nothing in it that could end a transaction
 */
#include "fuzz.h"

#include <stdio.h>
#include <strings.h>

#include "tx/tx.h"

/* Return how many `?` a text has, of which `??` is none. */
static size_t count_of(const char *text)
{
    size_t count = 0;

    while ((text = strchr(text, '?')) != NULL) {
        bool is_doubled = text[1] == '?';

        count += !is_doubled;
        text += 1 + is_doubled;
    }
    return count;
}

/* Replace $1, $2, ... by `?` again, in a text without other `$`. */
static char *undo(const char *text)
{
    char *out = strdup(text), *to = out;
    size_t number = 0;

    must(out != NULL);
    while (*text != '\0') {
        char wanted[24];
        size_t length =
            (size_t)snprintf(wanted, sizeof wanted, "$%zu", number + 1);

        if (*text == '$') {
            must(strncmp(text, wanted, length) == 0);
            *to++ = '?';
            text += length;
            number++;
        } else {
            *to++ = *text++;
        }
    }
    *to = '\0';
    return out;
}

static void check_classes(const char *sql)
{
    size_t blanks = strspn(sql, " \t\r\n");

    if (lk_keeps_locks(sql)) {
        must(strncasecmp(sql + blanks, "commit", 6) != 0);
        must(strncasecmp(sql + blanks, "rollback;", 9) != 0);
        must(strncasecmp(sql + blanks, "end", 3) != 0);
        must(strncasecmp(sql + blanks, "unlock", 6) != 0);
        must(strncasecmp(sql + blanks, "call", 4) != 0);
    }
    if (lk_rolls_back(sql))
        must(strncasecmp(sql + blanks, "commit", 6) != 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *sql = fuzz_text(data, size);
    size_t count = 99;
    char *numbered = lk_placeholders_number(sql, &count);

    must(numbered != NULL);
    must(count <= strlen(sql));
    if (strchr(sql, '?') == NULL)
        must(count == 0 && strcmp(sql, numbered) == 0);
    if (strpbrk(sql, "'\"-/$") == NULL) {
        must(count == count_of(sql));
        if (strstr(sql, "??") == NULL) {
            char *undone = undo(numbered);

            must(strcmp(undone, sql) == 0);
            free(undone);
        }
    }
    check_classes(sql);
    free(numbered);
    free(sql);
    return 0;
}
