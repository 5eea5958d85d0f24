/*
 * leader.c - the text that a leader publishes, in SHARERS: what is written is
 * read again, and whatever else is there is read within its bounds
 */
#include "fuzz.h"

#include <stdio.h>

#include "base/text.h"
#include "lease/leader_text.h"
#include "lease/sharer.h"

#define ID "12345678-1234-4000-8000-000000000001"

static void check_written(const char *text)
{
    char form[LK_LEADER_FORM_SIZE], read[SQLOCK_LEADER_TEXT_MAX + 1];
    char *sharers = NULL;

    if (lk_leader_check(text, NULL) < 0)
        return;
    lk_leader_write(form, text);
    must(asprintf(&sharers,
                  "{\"leader\":\"" ID "\",\"told\":\"0000000000000042\","
                  "\"text\":\"%s\"}",
                  form) > 0);
    must(lk_leader_text(sharers, ID, read) && strcmp(read, text) == 0);
    must(lk_leader_serial(sharers, ID) == 42 && lk_leader_tells(sharers, ID));
    /* no reader of sharers takes it for theirs */
    must(lk_sharers_permits(sharers) == LK_NO_LIMIT);
    must(!lk_sharers_have(sharers, ID));
    free(sharers);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = fuzz_text(data, size);
    char read[SQLOCK_LEADER_TEXT_MAX + 1];

    if (lk_leader_text(text, ID, read))
        must(lk_utf8_is_valid(read) && strlen(read) <= SQLOCK_LEADER_TEXT_MAX);
    must(lk_leader_serial(text, ID) >= 0);
    (void)lk_leader_tells(text, ID);
    check_written(text);
    free(text);
    return 0;
}
