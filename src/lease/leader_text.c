/*
 * leader_text.c - check and read a leader's text (leader_text.h)
 */
#include "lease/leader_text.h"

#include <string.h>

#include "base/error.h"
#include "base/text.h"

#define ID_LENGTH (SQLOCK_KEY_SIZE - 1)
#define TOLD " told "
#define KEPT " kept "
#define WORD_LENGTH (sizeof TOLD - 1)

int lk_leader_check(const char *text, sqlock_error *err)
{
    if (text == NULL)
        return lk_error_null(err, "text");
    if (strnlen(text, SQLOCK_LEADER_TEXT_MAX + 1) > SQLOCK_LEADER_TEXT_MAX)
        return lk_error(err, SQLOCK_EINVAL,
                        "the text of a leader has %d bytes at most",
                        SQLOCK_LEADER_TEXT_MAX);
    if (!lk_utf8_is_valid(text))
        return lk_error(err, SQLOCK_EINVAL,
                        "the text of a leader must be UTF-8");
    return 0;
}

bool lk_leader_read(struct lk_leader *out, const char *leader,
                    const char *client_id)
{
    const char *serial, *word;

    *out = (struct lk_leader){.text = NULL};
    if (leader == NULL || strlen(client_id) != ID_LENGTH ||
        strncmp(leader, client_id, ID_LENGTH) != 0 || leader[ID_LENGTH] != ' ')
        return false;
    serial = leader + ID_LENGTH + 1;
    if (strspn(serial, "0123456789abcdef") != LK_LEADER_SERIAL_LENGTH)
        return false;
    word = serial + LK_LEADER_SERIAL_LENGTH;
    out->tells = strncmp(word, TOLD, WORD_LENGTH) == 0;
    if (!out->tells && strncmp(word, KEPT, WORD_LENGTH) != 0)
        return false;
    out->text = word + WORD_LENGTH;
    return true;
}
