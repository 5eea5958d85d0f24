/*
 * play.c - the statements of the dialects, as the tables *.statements have
 * them: a statement a line, with its arguments and what comes of it (play.h)
 */
#include "drivers/perform.h"
#include "drivers/play.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lease/sharer.h"

#define KEYS_MAX 8
#define SHOWN "somebody (in brackets)"

/* A test that is being played. */
struct play {
    struct fixture *f;
    const struct story *story;
    const struct line *line;
    char keys[KEYS_MAX][SQLOCK_KEY_SIZE]; /* K1, K2, ... */
    int64_t numbers[26];                  /* remembered, by a capital letter */
    struct session c;                     /* beside the test's a and b */
    struct session *session;              /* of the last statement */
    char json[4096];
};

static const struct {
    const char *word;
    sqlock_statement_kind kind;
} kinds[] = {
    {"claim", SQLOCK_SQL_CLAIM},
    {"claim_unqueued", SQLOCK_SQL_CLAIM_UNQUEUED},
    {"claim_reserved", SQLOCK_SQL_CLAIM_RESERVED},
    {"claim_many", SQLOCK_SQL_CLAIM_MANY},
    {"claim_unqueued_many", SQLOCK_SQL_CLAIM_UNQUEUED_MANY},
    {"enqueue", SQLOCK_SQL_ENQUEUE},
    {"leave", SQLOCK_SQL_LEAVE},
    {"renew", SQLOCK_SQL_RENEW},
    {"renew_many", SQLOCK_SQL_RENEW_MANY},
    {"release", SQLOCK_SQL_RELEASE},
    {"release_unqueued", SQLOCK_SQL_RELEASE_UNQUEUED},
    {"release_many", SQLOCK_SQL_RELEASE_MANY},
    {"release_unqueued_many", SQLOCK_SQL_RELEASE_UNQUEUED_MANY},
    {"release_to_peers", SQLOCK_SQL_RELEASE_TO_PEERS},
    {"hand_off", SQLOCK_SQL_HAND_OFF},
    {"read", SQLOCK_SQL_READ},
    {"read_many", SQLOCK_SQL_READ_MANY},
    {"break", SQLOCK_SQL_BREAK},
    {"break_now", SQLOCK_SQL_BREAK_NOW},
    {"share", SQLOCK_SQL_SHARE},
    {"renew_share", SQLOCK_SQL_RENEW_SHARE},
    {"release_share", SQLOCK_SQL_RELEASE_SHARE},
    {"break_share", SQLOCK_SQL_BREAK_SHARE},
    {"downgrade", SQLOCK_SQL_DOWNGRADE},
    {"permits", SQLOCK_SQL_PERMITS},
};

static void fail_at(const struct play *play, const char *why)
{
    print_error("%s:%u: %s\n    %s\n", play->story->file, play->line->number,
                play->line->text, why);
    fail();
}

/* Write the words of a value, with '_' for blanks; return out. */
static const char *with_blanks(char out[256], const char *words)
{
    (void)snprintf(out, 256, "%s", words);
    for (char *c = out; *c != '\0'; c++)
        *c = *c == '_' ? ' ' : *c;
    return out;
}

/* --------------------------------------------------------- the arguments -- */

/* The CLIENT_ID of a letter; of "group", that which the row has now. */
static const char *client_of(struct play *play, const char *word, char out[40])
{
    char c = word[0];

    if (strcmp(word, "group") == 0) {
        assert_true(read_row(&play->f->b, play->f));
        (void)snprintf(out, 40, "%s",
                       cell_text(&play->f->b, 0, LK_INFO_CLIENT));
        return out;
    }
    (void)snprintf(out, 40,
                   "%c%c%c%c%c%c%c%c-%c%c%c%c-4%c%c%c-8%c%c%c-"
                   "%c%c%c%c%c%c%c%c%c%c%c%c",
                   c, c, c, c, c, c, c, c, c, c, c, c, c, c, c, c, c, c, c, c,
                   c, c, c, c, c, c, c, c, c, c);
    return out;
}

static char *key_of(struct play *play, const char *word)
{
    long number = strtol(word + 1, NULL, 10);

    assert_in_range(number, 1, KEYS_MAX);
    return play->keys[number - 1];
}

/* Write items=K1:a,K2:b as JSON, for leases of that time. */
static const char *items_of(struct play *play, const char *value,
                            int64_t ttl_us)
{
    char copy[128];
    char client[40];
    char *save = NULL;
    size_t at = 0;

    (void)snprintf(copy, sizeof copy, "%s", value);
    for (char *item = strtok_r(copy, ",", &save); item != NULL;
         item = strtok_r(NULL, ",", &save)) {
        (void)client_of(play, strchr(item, ':') + 1, client);
        at += (size_t)snprintf(
            play->json + at, sizeof play->json - at,
            "%s{\"k\":\"%s\",\"c\":\"%s\",\"t\":%lld,\"n\":\"it's "
            "\\\"a\\\" \\\\ n\\u00e4me\",\"h\":\"%s host\"}",
            at == 0 ? "[" : ",", key_of(play, item), client, (long long)ttl_us,
            client);
    }
    (void)snprintf(play->json + at, sizeof play->json - at, "]");
    return play->json;
}

/* Arguments that are texts, or integers; ttl= is in seconds. */
static void set_argument(struct play *play, struct lk_arguments *arguments,
                         const char *word, char room[256], int64_t ttl_us)
{
    static const struct {
        const char *name;
        sqlock_parameter parameter;
        enum { TEXT, CLIENT, KEY, INTEGER } type;
    } all[] = {
        {"region=", SQLOCK_P_REGION, TEXT},
        {"name=", SQLOCK_P_NAME, TEXT},
        {"holder=", SQLOCK_P_HOLDER, TEXT},
        {"shown=", SQLOCK_P_SHOWN, TEXT},
        {"old=", SQLOCK_P_OLD_CLIENT, CLIENT},
        {"ticket=", SQLOCK_P_TICKET, CLIENT},
        {"key=", SQLOCK_P_KEY, KEY},
        {"waits=", SQLOCK_P_WAITS, INTEGER},
        {"weight=", SQLOCK_P_WEIGHT, INTEGER},
        {"permits=", SQLOCK_P_PERMITS, INTEGER},
    };

    if (strncmp(word, "items=", 6) == 0) {
        lk_argument_text(arguments, SQLOCK_P_ITEMS,
                         items_of(play, word + 6, ttl_us));
        return;
    }
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        size_t length = strlen(all[i].name);

        if (strncmp(word, all[i].name, length) != 0)
            continue;
        if (all[i].type == INTEGER)
            lk_argument_integer(arguments, all[i].parameter,
                                strtoll(word + length, NULL, 10));
        else
            lk_argument_text(arguments, all[i].parameter,
                             all[i].type == KEY ? key_of(play, word + length)
                             : all[i].type == CLIENT
                                 ? client_of(play, word + length, room)
                                 : with_blanks(room, word + length));
        return;
    }
    fail_at(play, "no such argument");
}

/* Send the statement of the line, on b's session unless its client is a.
 * Return the driver's code. */
static int send_statement(struct play *play)
{
    const struct line *line = play->line;
    struct fixture *f = play->f;
    char room[WORDS_MAX][256];
    char client[40] = "";
    struct lk_arguments arguments;
    int64_t ttl_us = LONG_US;
    size_t at = 1;
    size_t kind = 0;

    while (kind < sizeof kinds / sizeof *kinds &&
           strcmp(kinds[kind].word, line->words[0]) != 0)
        kind++;
    if (kind == sizeof kinds / sizeof *kinds)
        fail_at(play, "no such statement");
    if (line->count > 1 && strlen(line->words[1]) == 1)
        (void)client_of(play, line->words[at++], client);
    for (size_t i = at; i < line->count; i++)
        if (strncmp(line->words[i], "ttl=", 4) == 0)
            ttl_us = (int64_t)(strtod(line->words[i] + 4, NULL) * SECOND_US);
    arguments = arguments_for(f, client, ttl_us);
    lk_argument_text(&arguments, SQLOCK_P_SHOWN, SHOWN);
    lk_argument_text(&arguments, SQLOCK_P_BELL, NULL);
    lk_argument_integer(&arguments, SQLOCK_P_WEIGHT,
                        kinds[kind].kind == SQLOCK_SQL_ENQUEUE ? 0 : 1);
    lk_argument_integer(&arguments, SQLOCK_P_PERMITS, 0);
    if (kinds[kind].kind == SQLOCK_SQL_CLAIM)
        lk_argument_text(&arguments, SQLOCK_P_QUEUE, NULL);
    for (size_t i = at; i < line->count; i++)
        if (strncmp(line->words[i], "ttl=", 4) != 0)
            set_argument(play, &arguments, line->words[i], room[i], ttl_us);
    play->session = client[0] == 'a' ? &f->a : &f->b;
    return statement_try(play->session, f, kinds[kind].kind, &arguments);
}

/* ------------------------------------------------------ what comes of it -- */

static bool is_granted(const struct session *session)
{
    const sqlock_result *result = &session->result;

    return result->rows == 1 && result->cells[0].type == SQLOCK_INT64 &&
           result->cells[0].integer != 0;
}

/* Compare letters such as "b,c", or "none", with the CLIENT_IDs. */
static bool are(struct play *play, const char *letters, const char *text,
                bool (*next)(const char **at, const char **client_id))
{
    const char *found;
    char client[40];

    for (; strcmp(letters, "none") != 0; letters += letters[1] == ',' ? 2 : 1) {
        if (*letters == '\0')
            break;
        if (text == NULL || !next(&text, &found) ||
            strncmp(found, client_of(play, (char[]){*letters, '\0'}, client),
                    36) != 0)
            return false;
    }
    return text == NULL || !next(&text, &found);
}

static bool next_ticket(const char **at, const char **client_id)
{
    struct lk_ticket ticket;
    bool is_one = lk_ticket_next(at, &ticket);

    *client_id = is_one ? ticket.client_id : "";
    return is_one;
}

static bool next_sharer(const char **at, const char **client_id)
{
    struct lk_sharer sharer;
    bool is_one = lk_sharer_next(at, &sharer);

    *client_id = is_one ? sharer.as.client_id : "";
    return is_one;
}

/* Return whether a text of the info row is as the word says. */
static bool has_text(struct play *play, const char *word)
{
    const struct session *session = play->session;
    const char *value = strchr(word, '=') + 1;
    char room[256];
    const char *text;

    if (strncmp(word, "queue=", 6) == 0)
        return are(play, value, cell_text(session, 0, LK_INFO_QUEUE),
                   next_ticket);
    if (strncmp(word, "sharers=", 8) == 0) {
        text = cell_text(session, 0, LK_INFO_CLIENT);
        text = lk_sharers_have(cell_text(session, 0, LK_INFO_SHARERS),
                               text != NULL ? text : "")
                   ? cell_text(session, 0, LK_INFO_SHARERS)
                   : NULL;
        return are(play, value, text, next_sharer);
    }
    if (strncmp(word, "permits=", 8) == 0)
        return lk_sharers_permits(cell_text(session, 0, LK_INFO_SHARERS)) ==
               strtoul(value, NULL, 10);
    text = cell_text(session, 0,
                     word[0] == 'c'   ? LK_INFO_CLIENT
                     : word[0] == 'n' ? LK_INFO_NAME
                     : word[0] == 'k' ? LK_INFO_KEY
                                      : LK_INFO_HOLDER);
    if (strcmp(value, "none") == 0)
        return text == NULL;
    if (text == NULL)
        return false;
    if (word[0] == 'c')
        return strlen(value) != 1 ||
               strcmp(text, client_of(play, value, room)) == 0;
    if (word[0] == 'k')
        return strcmp(text, play->f->key) == 0;
    return strstr(text, with_blanks(room, value)) != NULL;
}

/* "token>T", "ends=E", "left<60", "token:T", which remembers it.  Numbers are
 * seconds; of a claim there is the token only. */
static bool has_number(struct play *play, const char *word)
{
    static const struct {
        const char *name;
        size_t column;
    } all[] = {{"token", LK_INFO_TOKEN},
               {"left", LK_INFO_REMAINING},
               {"since", LK_INFO_ACQUIRED},
               {"ends", LK_INFO_EXPIRES}};
    size_t length = strcspn(word, "<>=:+");
    const char *value = word + length + 1;
    size_t column = 0;
    int64_t number;
    int64_t other;

    if (play->session->result.columns == LK_INFO_COLUMNS)
        for (size_t i = 0; i < sizeof all / sizeof *all; i++)
            if (strncmp(word, all[i].name, length) == 0)
                column = all[i].column;
    number = cell_integer(play->session, 0, column);
    if (word[length] == ':') {
        play->numbers[value[0] - 'A'] = number;
        return true;
    }
    other = value[0] >= 'A' ? play->numbers[value[0] - 'A']
                            : (int64_t)(strtod(value, NULL) * SECOND_US);
    return word[length] == '<'   ? number < other
           : word[length] == '>' ? number > other
           : word[length] == '+' ? number == other + 1
                                 : number == other;
}

/* Return whether the first cell is that number or text. */
static bool has_cell(const struct session *session, const char *text)
{
    const sqlock_value *found = cell(session, 0, 0);
    char number[24];

    (void)snprintf(number, sizeof number, "%lld", (long long)found->integer);
    return strcmp(found->type == SQLOCK_TEXT ? found->text : number, text) == 0;
}

static int code_of(const char *word)
{
#define SQLOCK_X(name, value, text)                                            \
    if (strcmp(word, #name) == 0)                                              \
        return (value);
    SQLOCK_ERRORS(SQLOCK_X)
#undef SQLOCK_X
    return 0;
}

/* Return the first word that is not true of the result; NULL: all are. */
static const char *find_untrue(struct play *play, int rc)
{
    const struct line *line = play->line;
    const sqlock_result *result = &play->session->result;
    int expected = 0;

    for (size_t i = 0; i < line->told_count; i++)
        expected =
            code_of(line->told[i]) < 0 ? code_of(line->told[i]) : expected;
    if (rc != expected)
        return rc < 0 ? play->session->err.message : "it succeeds";
    if (rc < 0 && !check_one_line(play->session->err.message))
        return "its message is not one line";
    for (size_t i = 0; i < line->told_count; i++) {
        const char *word = line->told[i];
        char room[256];
        bool is_true;

        if (strcmp(word, "soon") == 0 || code_of(word) < 0)
            continue;
        if (strcmp(word, "granted") == 0)
            is_true = is_granted(play->session);
        else if (strcmp(word, "refused") == 0)
            is_true = !is_granted(play->session);
        else if (strncmp(word, "rows=", 5) == 0)
            is_true = result->rows == strtoul(word + 5, NULL, 10);
        else if (strcmp(word, "nothing") == 0)
            is_true = result->rows == 0 && result->affected == 0;
        else if (word[strspn(word, "0123456789")] == '\0')
            is_true = result->affected == strtoll(word, NULL, 10);
        else if (strncmp(word, "says=", 5) == 0)
            is_true = strstr(play->session->err.message, word + 5) != NULL;
        else if (strcmp(word, "numbered") == 0)
            is_true = play->session->err.native != 0 ||
                      play->session->err.sqlstate[0] != '\0';
        else if (strcmp(word, "alive") == 0 || strcmp(word, "not_alive") == 0)
            is_true = subject.driver->is_alive(play->session->connection) ==
                      (word[0] == 'a');
        else if (result->rows == 0)
            is_true = false;
        else if (strcmp(word, "rings") == 0 || strcmp(word, "silent") == 0)
            is_true = (result->cells[4].integer != 0) == (word[0] == 'r');
        else if (strcmp(word, "new") == 0 || strcmp(word, "known") == 0)
            is_true = (result->cells[2].integer != 0) == (word[0] == 'n');
        else if (strncmp(word, "cell=", 5) == 0)
            is_true = has_cell(play->session, with_blanks(room, word + 5));
        else if (strncmp(word, "token", 5) == 0 ||
                 strncmp(word, "left", 4) == 0 ||
                 strncmp(word, "since", 5) == 0 ||
                 strncmp(word, "ends", 4) == 0)
            is_true = has_number(play, word);
        else
            is_true = has_text(play, word);
        if (!is_true)
            return word;
    }
    return NULL;
}

/* -------------------------------------------------------------- the play -- */

/* Perform a line that sends nothing to be compared; return false if it is
 * another one. */
static bool perform(struct play *play)
{
    const struct line *line = play->line;

    if (strcmp(line->words[0], "lapses") == 0)
        await_expiry(&play->f->b, play->f);
    else if (strcmp(line->words[0], "key") == 0)
        (void)snprintf(play->f->key, SQLOCK_KEY_SIZE, "%s",
                       key_of(play, line->words[1]));
    else
        return false;
    return true;
}

/* Perform the line of a session; return the driver's code. */
static int run_session(struct play *play)
{
    struct fixture *f = play->f;
    char letter = play->line->text[0];
    struct session *of[] = {&f->a, &f->b, &play->c};
    char numbers[3][24];
    char bell[SQLOCK_KEY_SIZE];
    const struct lk_name names[] = {{"table", subject.tables[f->layout].quoted},
                                    {"values", subject.values.quoted},
                                    {"key", f->key},
                                    {"K1", play->keys[0]},
                                    {"K2", play->keys[1]},
                                    {"bell", bell},
                                    {"a", numbers[0]},
                                    {"b", numbers[1]},
                                    {NULL, NULL}};
    char *to = bell; /* a key without its hyphens is a name of a bell */

    for (const char *from = f->key; *from != '\0'; from++)
        if (*from != '-')
            *to++ = *from;
    *to = '\0';
    for (size_t i = 0; i < 2; i++)
        (void)snprintf(numbers[i], sizeof numbers[i], "%lld",
                       (long long)session_number(of[i]));
    if (letter >= 'a' && letter <= 'c')
        play->session = of[letter - 'a'];
    else
        fail_at(play, "no such session");
    return session_perform(play->session, play->line->sql, names);
}

/* Send what the line says; return the driver's code. */
static int send(struct play *play)
{
    return play->line->sql != NULL ? run_session(play) : send_statement(play);
}

void play_story(struct fixture *f)
{
    struct play play = {.f = f, .story = f->start->story};

    for (size_t i = 0; i < KEYS_MAX; i++)
        next_key(play.keys[i]);
    memcpy(f->key, play.keys[0], sizeof f->key);
    for (size_t i = 0; i < play.story->count; i++) {
        int64_t until = check_deadline_ns(PATIENCE_MS);
        const char *untrue;

        play.line = &play.story->lines[i];
        if (perform(&play))
            continue;
        do
            untrue = find_untrue(&play, send(&play));
        while (untrue != NULL && play.line->is_soon && check_pause(until));
        if (untrue != NULL)
            fail_at(&play, untrue);
    }
    session_close(&play.c);
}
