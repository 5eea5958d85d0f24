/*
 * lease.c - beginning, prolonging and ending a lease.
 *
 * A connection that breaks with one of these in flight leaves the outcome
 * unknown (F38 to F42).  Each is written so that sending it again finds out: a
 * claim carries its own CLIENT_ID and admits it, a renewal is the same twice, a
 * release is judged by the row it leaves.
 *
 * A row that was left free is taken with a cheaper statement.  Nothing rests on
 * its being free: whatever else than a grant comes of it, the claim finds out.
 */
#include "lease/lease.h"

#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/random.h"
#include "base/text.h"
#include "lease/queue.h"
#include "lease/skew.h"

#define NAME_BYTES 255 /* LOCK_NAME VARCHAR(255) */

int64_t lk_believe_until(const struct lk_store *store, int64_t sent_ns,
                         uint32_t ttl_ms)
{
    uint32_t margin = lk_margin_ms(&store->options, ttl_ms);

    return lk_after_ms(sent_ns, (int64_t)ttl_ms - margin);
}

int64_t lk_believe_row_until(const struct lk_store *store,
                             int64_t asked_boot_ns, int64_t remaining_us,
                             uint32_t ttl_ms)
{
    uint32_t margin = lk_margin_ms(&store->options, ttl_ms);

    return asked_boot_ns + remaining_us * LK_NS_PER_US -
           (int64_t)margin * LK_NS_PER_MS;
}

void lk_lease_cap(struct lk_lease *lease, uint32_t ttl_ms)
{
    if (lease->cap_ms == 0 || ttl_ms < lease->cap_ms)
        lease->cap_ms = ttl_ms;
    if (lease->ttl_ms > lease->cap_ms)
        lease->ttl_ms = lease->cap_ms;
}

/* --- reading --- */

void lk_row_from_cells(struct lk_row *row, const sqlock_value *cells)
{
    row->exists = true;
    if (cells[1].type == SQLOCK_TEXT)
        (void)snprintf(row->client_id, sizeof row->client_id, "%s",
                       cells[1].text);
    row->token = cells[2].type == SQLOCK_INT64 ? cells[2].integer : 0;
    row->remaining_us = cells[3].integer;
    row->acquired_at_us = cells[4].integer;
    row->expires_at_us = cells[5].integer;
    /* A peer's takeover leaves HOLDER as it was. */
    row->is_sqlocks =
        row->client_id[0] != '\0' && cells[7].type == SQLOCK_TEXT &&
        strncmp(cells[7].text, row->client_id, strlen(row->client_id)) == 0;
    row->is_taken = row->client_id[0] != '\0' && row->remaining_us >= 0;
}

/* The info row of a key, if there is one. */
static int read_info(struct lk_store *store, const char *key,
                     int64_t deadline_ns, sqlock_result *result,
                     sqlock_error *err)
{
    struct lk_arguments arguments;
    struct lk_run run = {
        .arguments = &arguments,
        .deadline_ns = deadline_ns,
        .is_repeatable = true,
    };
    int rc;

    lk_store_arguments(store, key, &arguments);
    rc = lk_store_run(store, SQLOCK_SQL_READ, &run, result, err);
    if (rc == 0 && result->rows > 1)
        rc = lk_error(err, SQLOCK_ESCHEMA,
                      "%s has two rows for one key: its primary key is missing",
                      store->table.plain);
    return rc;
}

int lk_lease_read(struct lk_store *store, const char *key, int64_t deadline_ns,
                  struct lk_row *row, sqlock_error *err)
{
    sqlock_result result = {0};
    int rc = read_info(store, key, deadline_ns, &result, err);

    memset(row, 0, sizeof *row);
    if (rc == 0 && result.rows == 1)
        lk_row_from_cells(row, result.cells);
    if (row->exists)
        lk_skew_tell(store, result.cells);
    sqlock_result_clear(&result);
    return rc;
}

int lk_lease_holder(struct lk_store *store, const char *key,
                    char holder[LK_HOLDER_SIZE], sqlock_error *err)
{
    sqlock_result result = {0};
    int rc = read_info(store, key, lk_store_deadline(store), &result, err);

    holder[0] = '\0';
    if (rc == 0 && result.rows == 1) {
        struct lk_row row = {.exists = false};

        lk_row_from_cells(&row, result.cells);
        if (row.is_taken)
            (void)snprintf(holder, LK_HOLDER_SIZE, "%s",
                           row.is_sqlocks ? result.cells[7].text
                                          : row.client_id);
    }
    sqlock_result_clear(&result);
    return rc;
}

/* --- claiming --- */

static void claim_arguments(const struct lk_store *store,
                            const struct lk_lease *lease, char *name,
                            char *holder, struct lk_arguments *out)
{
    lk_store_arguments(store, lease->key, out);
    lk_argument_text(out, SQLOCK_P_CLIENT, lease->client_id);
    lk_argument_integer(out, SQLOCK_P_DURATION_US,
                        (int64_t)lease->ttl_ms * 1000);
    if (lease->name != NULL) {
        size_t length = lk_utf8_prefix(lease->name, NAME_BYTES);

        memcpy(name, lease->name, length);
        name[length] = '\0';
        lk_argument_text(out, SQLOCK_P_NAME, name);
    }
    (void)snprintf(holder, LK_HOLDER_SIZE, "%s %s", lease->client_id,
                   store->identity);
    lk_argument_text(out, SQLOCK_P_HOLDER, holder);
    if (lease->observed == NULL)
        return;
    if (lease->observed->client_id[0] != '\0')
        lk_argument_text(out, SQLOCK_P_OTHER, lease->observed->client_id);
    lk_argument_integer(out, SQLOCK_P_TOKEN, lease->observed->expires_at_us);
}

/* Which statement it is. */
static sqlock_statement_kind claim_kind(const struct lk_lease *lease)
{
    return lease->observed != NULL ? SQLOCK_SQL_CLAIM_OBSERVED
                                   : SQLOCK_SQL_CLAIM;
}

static bool says_so(const sqlock_result *result, size_t column)
{
    return result->columns > column &&
           result->cells[column].type == SQLOCK_INT64 &&
           result->cells[column].integer != 0;
}

/* What a claim's rows say. */
static int judge_claim(struct lk_store *store, struct lk_lease *lease,
                       int64_t sent_boot_ns, const sqlock_result *result,
                       sqlock_error *err)
{
    if (result->rows == 0)
        return lk_error(err, SQLOCK_EBUSY, "the lock is held by another owner");
    if (result->rows > 1 || result->columns < 1 ||
        result->cells[0].type != SQLOCK_INT64)
        return lk_error(err, SQLOCK_ESCHEMA,
                        "%s answered a claim with %zu rows: is its primary key "
                        "missing?",
                        store->table.plain, result->rows);
    lease->token = result->cells[0].integer;
    lease->is_contended = says_so(result, 1);
    lease->is_new_row = says_so(result, 2);
    lease->deadline_boot_ns =
        lk_believe_until(store, sent_boot_ns, lease->ttl_ms);
    return 0;
}

/* Whether a claim, sent again, has left no doubt. */
static bool is_settled(int rc)
{
    return rc == 0 || rc == SQLOCK_EUNCERTAIN;
}

static int claim_once(struct lk_store *store, const struct lk_lease *lease,
                      struct lk_run *run, sqlock_result *result,
                      sqlock_error *err)
{
    run->deadline_ns = lk_store_deadline(store);
    if (lease->is_left_free && lease->observed == NULL &&
        store->statements[SQLOCK_SQL_TAKE].text != NULL) {
        int rc;

        rc = lk_store_run(store, SQLOCK_SQL_TAKE, run, result, err);
        if (rc < 0 || result->rows > 0)
            return rc;
        sqlock_result_clear(result);
    }
    return lk_store_run(store, claim_kind(lease), run, result, err);
}

/* The connection broke under the claim: send the same one on a fresh one. */
static int claim_again(struct lk_store *store, const struct lk_lease *lease,
                       struct lk_run *run, sqlock_result *result,
                       sqlock_error *err)
{
    int rc;

    run->deadline_ns = lk_store_deadline(store);
    run->is_repeatable = true;
    rc = lk_store_run(store, claim_kind(lease), run, result, err);
    if (!is_settled(rc))
        rc = lk_error(err, SQLOCK_EUNCERTAIN,
                      "the connection broke under the claim, and the database "
                      "did not say in time what became of it");
    return rc;
}

int lk_lease_claim(struct lk_store *store, struct lk_lease *lease,
                   sqlock_error *err)
{
    char name[NAME_BYTES + 1];
    char holder[LK_HOLDER_SIZE];
    struct lk_arguments arguments;
    struct lk_run run = {
        .arguments = &arguments,
        .is_session_wanted = lk_queue_is_of_claim(store),
        .asked_ns = lease->asked_ns,
    };
    sqlock_result result = {0};
    bool was_uncertain;
    int rc;

    if (!lease->is_in_doubt) {
        lk_random_uuid(lease->client_id);
        lease->cap_ms = 0;
    }
    claim_arguments(store, lease, name, holder, &arguments);
    rc = claim_once(store, lease, &run, &result, err);
    lease->is_left_free = false;
    was_uncertain = lease->is_in_doubt || rc == SQLOCK_EUNCERTAIN;
    if (rc == SQLOCK_EUNCERTAIN)
        rc = claim_again(store, lease, &run, &result, err);
    if (was_uncertain || run.was_uncertain)
        lk_lease_cap(lease, lease->ttl_ms);
    if (rc == 0)
        rc = judge_claim(store, lease, run.sent_boot_ns, &result, err);
    if (rc == 0 && lease->place.connection == NULL)
        lk_queue_of_claim(store, &lease->place, run.session);
    lease->is_in_doubt = was_uncertain && rc != 0 && rc != SQLOCK_EBUSY;
    /* Also after "busy": the first one may yet reach the table (F39). */
    if (was_uncertain && rc == SQLOCK_EBUSY)
        lk_resolver_add_claim(store, lease, lk_boottime_ns());
    lease->is_claim_late = was_uncertain;
    sqlock_result_clear(&result);
    if (rc == 0 && lease->deadline_boot_ns <= lk_boottime_ns()) {
        (void)lk_lease_release(store, lease, NULL);
        rc = lk_error(err, SQLOCK_ETIMEDOUT,
                      "the claim took longer than the lease of %u ms: raise "
                      "ttl_ms",
                      lease->ttl_ms);
    }
    return rc;
}

/* --- handing off --- */

/* The hand-off got no answer, and sent again changed nothing: the row tells.
 * On the four-column layout the token is the clock: it is worked back from the
 * lease's end. */
static int judge_repeated_hand_off(struct lk_store *store, struct lk_lease *to,
                                   int64_t first_sent_ns, sqlock_error *err)
{
    struct lk_row row;
    int rc;

    rc = lk_lease_read(store, to->key, lk_store_deadline(store), &row, err);
    if (rc == 0 && row.is_taken && strcmp(row.client_id, to->client_id) == 0) {
        to->token = row.token != 0
                        ? row.token
                        : row.expires_at_us - (int64_t)to->ttl_ms * 1000;
        to->deadline_boot_ns =
            lk_believe_until(store, first_sent_ns, to->ttl_ms);
        return 0;
    }
    return lk_error(err, SQLOCK_EUNCERTAIN,
                    "the connection broke under the hand-off of the lock to "
                    "the next thread");
}

static int run_hand_off(struct lk_store *store, const struct lk_lease *from,
                        struct lk_lease *to, struct lk_run *run,
                        sqlock_result *result, sqlock_error *err)
{
    char name[NAME_BYTES + 1];
    char holder[LK_HOLDER_SIZE];
    struct lk_arguments arguments;
    int rc;

    lk_random_uuid(to->client_id);
    claim_arguments(store, to, name, holder, &arguments);
    lk_argument_text(&arguments, SQLOCK_P_OTHER, from->client_id);
    run->arguments = &arguments;
    run->deadline_ns = lk_store_deadline(store);
    run->is_repeatable = true;
    rc = lk_store_run(store, SQLOCK_SQL_HAND_OFF, run, result, err);
    run->arguments = NULL;
    return rc;
}

int lk_lease_hand_off(struct lk_store *store, const struct lk_lease *from,
                      struct lk_lease *to, sqlock_error *err)
{
    int64_t first_sent_ns = lk_boottime_ns();
    struct lk_run run = {0};
    sqlock_result result = {0};
    int rc;

    if (store->statements[SQLOCK_SQL_HAND_OFF].text == NULL)
        return SQLOCK_EBUSY;
    rc = run_hand_off(store, from, to, &run, &result, err);
    if (run.was_uncertain)
        lk_lease_cap(to, to->ttl_ms);
    if (rc == 0 && result.rows > 0)
        rc = judge_claim(store, to, run.sent_boot_ns, &result, err);
    else if (run.was_uncertain)
        rc = judge_repeated_hand_off(store, to, first_sent_ns, err);
    else
        rc = SQLOCK_EBUSY;
    sqlock_result_clear(&result);
    if (rc == SQLOCK_EUNCERTAIN)
        lk_resolver_add_claim(store, to, lk_boottime_ns());
    if (rc == 0)
        to->place = from->place;
    if (rc == 0 && to->deadline_boot_ns <= lk_boottime_ns()) {
        (void)lk_lease_release(store, to, NULL);
        rc = SQLOCK_ETIMEDOUT;
    }
    return rc;
}

/* --- renewing --- */

/* Nothing was changed: is it over, another's, or was it the same already? */
static int judge_unchanged(struct lk_store *store, struct lk_lease *lease,
                           uint32_t ttl_ms, sqlock_error *err)
{
    int64_t asked_ns = lk_boottime_ns();
    struct lk_row row;
    int rc;

    rc = lk_lease_read(store, lease->key, lk_store_deadline(store), &row, err);
    if (rc < 0)
        return rc;
    if (strcmp(row.client_id, lease->client_id) != 0)
        return lk_error(err, SQLOCK_ELOST,
                        "the lease is lost: another owner has had the lock");
    if (!row.is_taken)
        return lk_error(err, SQLOCK_EEXPIRED,
                        "the lease ran out before it was renewed");
    /* Renewed twice within the column's resolution (F19): what the row says. */
    if (lease->cap_ms != 0 && row.remaining_us > (int64_t)lease->cap_ms * 1000)
        row.remaining_us = (int64_t)lease->cap_ms * 1000;
    lease->deadline_boot_ns =
        lk_believe_row_until(store, asked_ns, row.remaining_us, ttl_ms);
    return 0;
}

int lk_lease_renew(struct lk_store *store, struct lk_lease *lease,
                   uint32_t ttl_ms, sqlock_error *err)
{
    int64_t before_ns = lk_boottime_ns();
    struct lk_arguments arguments;
    struct lk_run run = {.arguments = &arguments, .is_repeatable = true};
    sqlock_result result = {0};
    int64_t old_deadline = lease->deadline_boot_ns;
    int rc;

    if (lease->cap_ms != 0 && ttl_ms > lease->cap_ms)
        ttl_ms = lease->cap_ms;
    lk_store_arguments(store, lease->key, &arguments);
    lk_argument_text(&arguments, SQLOCK_P_CLIENT, lease->client_id);
    lk_argument_integer(&arguments, SQLOCK_P_DURATION_US,
                        (int64_t)ttl_ms * 1000);
    /* A renewal may shorten a lease: until it is known whether it did, the
     * sooner deadline holds. */
    lease->deadline_boot_ns =
        lk_sooner(old_deadline, lk_believe_until(store, before_ns, ttl_ms));
    run.deadline_ns = lk_store_deadline(store);
    rc = lk_store_run(store, SQLOCK_SQL_RENEW, &run, &result, err);
    if (run.was_uncertain)
        lk_lease_cap(lease, ttl_ms);
    if (rc == 0 && result.affected > 0) {
        lease->ttl_ms = ttl_ms;
        lease->deadline_boot_ns =
            lk_believe_until(store, run.sent_boot_ns, ttl_ms);
    } else if (rc == 0) {
        rc = judge_unchanged(store, lease, ttl_ms, err);
    } else if (rc != SQLOCK_EUNCERTAIN) {
        lease->deadline_boot_ns = old_deadline; /* not carried out */
    }
    sqlock_result_clear(&result);
    return rc;
}

/* --- releasing --- */

/* The release was sent twice and the second one changed nothing: did the first
 * one free the lock, or was it lost before? */
static int judge_repeated_release(struct lk_store *store,
                                  const struct lk_lease *lease,
                                  int64_t first_sent_ns, sqlock_error *err)
{
    struct lk_row row;
    int rc;

    rc = lk_lease_read(store, lease->key, lk_store_deadline(store), &row, err);
    if (rc == 0 && row.exists && row.client_id[0] == '\0' &&
        row.token == lease->token)
        return 0; /* free, and nobody has had it since */
    if (rc == 0 && !row.exists && first_sent_ns < lease->deadline_boot_ns)
        return 0; /* deleted before anybody could have taken it */
    return lk_error(err, SQLOCK_EUNCERTAIN,
                    "the connection broke under the release, and the row does "
                    "not say whether the lock had been lost before");
}

/* On any session; *has_notified: on that of its queue lock, and so waiters are
 * notified. */
static int send_release(struct lk_store *store, const struct lk_lease *lease,
                        struct lk_run *run, bool *has_notified,
                        sqlock_result *result, sqlock_error *err)
{
    int rc;

    run->session = lease->place.session;
    rc = lk_store_run(store, SQLOCK_SQL_RELEASE, run, result, err);
    *has_notified = rc == 0 && result->affected > 0 &&
                    lease->place.connection == NULL &&
                    run->session == lease->place.session;
    return rc;
}

/* Where its queue lock is, so that it notifies with the release; elsewhere when
 * nothing came of that, within the same time. */
static int release_at_queue(struct lk_store *store,
                            const struct lk_lease *lease, struct lk_run *run,
                            bool *has_notified, sqlock_result *result,
                            sqlock_error *err)
{
    int rc = SQLOCK_EUNREACHABLE;

    *has_notified = false;
    if (lease->place.connection != NULL) {
        rc = lk_queue_release(store, &lease->place, run, result, err);
        *has_notified = rc == 0 && result->affected > 0;
    }
    if (rc == SQLOCK_EBUSY || /* of a session that could not wait, too */
        (rc < 0 && lk_db_may_try_again(&store->db, run, rc)))
        rc = send_release(store, lease, run, has_notified, result, err);
    return rc;
}

/* What the database said to it; the queue lock has come to its end. */
static int release_row(struct lk_store *store, struct lk_lease *lease,
                       bool *was_uncertain, int64_t *affected,
                       sqlock_error *err)
{
    struct lk_arguments arguments;
    struct lk_run run = {
        .arguments = &arguments,
        .deadline_ns = lk_store_deadline(store),
        .waits_for_row = true,
        .asked_ns = lease->asked_ns,
    };
    sqlock_result result = {0};
    bool has_notified;
    int rc;

    lk_store_arguments(store, lease->key, &arguments);
    lk_argument_text(&arguments, SQLOCK_P_CLIENT, lease->client_id);
    rc = release_at_queue(store, lease, &run, &has_notified, &result, err);
    *was_uncertain = rc == SQLOCK_EUNCERTAIN;
    (void)lk_queue_end(store, lease->key, &lease->place, has_notified,
                       lk_is_outage(rc));
    if (*was_uncertain) {
        run.is_repeatable = true;
        run.deadline_ns = lk_store_deadline(store);
        rc = send_release(store, lease, &run, &has_notified, &result, err);
        if (rc < 0)
            rc = lk_error(err, SQLOCK_EUNCERTAIN,
                          "the connection broke under the release; if it was "
                          "not carried out, it is tried again until the lease "
                          "is over");
    }
    *affected = result.affected;
    sqlock_result_clear(&result);
    return rc;
}

int lk_lease_release(struct lk_store *store, struct lk_lease *lease,
                     sqlock_error *err)
{
    int64_t first_sent_ns = lk_boottime_ns();
    bool was_uncertain;
    int64_t affected;
    int rc;

    rc = release_row(store, lease, &was_uncertain, &affected, err);
    if (rc < 0)
        lk_resolver_add_release(store, lease);
    else if (lease->is_claim_late)
        lk_resolver_add_claim(store, lease, first_sent_ns);
    if (rc < 0)
        return rc;
    if (affected == 0 && was_uncertain)
        rc = judge_repeated_release(store, lease, first_sent_ns, err);
    else if (affected == 0)
        rc = lk_error(err, SQLOCK_ELOST,
                      "the lease was lost before the release: what the lock "
                      "protects may be compromised");
    if (rc == 0 && first_sent_ns >= lease->deadline_boot_ns)
        rc = lk_error(err, SQLOCK_EEXPIRED,
                      "the lease had run out before the release; nobody else "
                      "has had the lock");
    return rc;
}
