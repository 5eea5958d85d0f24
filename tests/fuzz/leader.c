/*
 * leader.c - the text that a leader publishes, in LEADER: what is written is
 * read again, and whatever else is there is read within its bounds
 */
#include "fuzz.h"

#include <stdio.h>

#include "lease/leader_text.h"

#define ID "12345678-1234-4000-8000-000000000001"

static void check_written(const char *text)
{
    struct lk_leader leader;
    char *written = NULL;

    if (lk_leader_check(text, NULL) < 0)
        return;
    must(asprintf(&written, ID " 0000000000000042 told %s", text) > 0);
    must(lk_leader_read(&leader, written, ID));
    must(leader.tells && strcmp(leader.text, text) == 0);
    free(written);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = fuzz_text(data, size);
    struct lk_leader leader;

    if (lk_leader_read(&leader, text, ID))
        must(leader.text > text && leader.text <= text + strlen(text));
    check_written(text);
    free(text);
    return 0;
}
