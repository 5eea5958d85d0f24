/*
 * model.h - what one lock does to its owners: a model, with which random.c
 * compares the library
 *
 * Times are intervals: what a call began and ended at bounds when its lease
 * begins and ends.  Where the model cannot know, it allows both results and
 * learns from the one that comes.
 */
#ifndef TESTS_SCENES_MODEL_H
#define TESTS_SCENES_MODEL_H

#include <stdbool.h>
#include <stdint.h>

#define OWNERS 4
#define NOBODY (-1)
#define GHOST OWNERS /* a holder that died, or one that breaks a lease */

/* A lease certainly lasts until `sure`, and is certainly over after `over`; by
 * this host's monotonic clock. */
struct term {
    int64_t sure_ns;
    int64_t over_ns;
};

/* The options of an acquire. */
struct wish {
    int64_t ttl_ms;
    bool is_renewed; /* such a lease does not end by itself */
    bool is_told;    /* its loss is */
};

/* The part of one owner. */
struct share {
    int count; /* acquires not released */
    struct wish wish;
    bool is_gone;     /* the row has been taken, broken or freed since */
    bool may_be_gone; /* it has if a claim that got no answer was carried out */
    bool knows;       /* the owner has had a result that said so */
    bool may_know;    /* or that may have; only one of several is known */
    int told_before;  /* losses that its process had been told of */
    struct term term; /* of the owner's belief */
};

struct model {
    bool keeps_rows;  /* sqlock's layout; on Spring's a free lock has no row */
    int holder;       /* whose row it is; NOBODY, GHOST */
    bool is_in_doubt; /* a call got no answer: the row may be anybody's */
    struct term term; /* of the row */
    struct share of[OWNERS + 1];
};

/* When a call was made, and whether the network has failed. */
struct moment {
    int64_t began_ns;
    int64_t ended_ns;
    bool has_failed;
};

void model_begin(struct model *model, bool keeps_rows);

/* Each returns whether the result is one that the call may have, and notes what
 * has happened.  Several locks in one call: model_may_take() for each, then
 * model_took() for each if the call gave 0. */
bool model_may_take(const struct model *model, int owner, int64_t wait_ms,
                    const struct moment *at, int rc);
void model_took(struct model *model, int owner, const struct wish *wish,
                const struct moment *at, int rc);
/* A call for several locks was refused: it may have taken a row that was free,
 * and given it back. */
void model_touched(struct model *model, const struct moment *at);

bool model_give(struct model *model, int owner, const struct moment *at,
                int rc);
bool model_renew(struct model *model, int owner, const struct moment *at,
                 int rc);
/* A call renewed several, and gave the result of another lock. */
void model_renewed(struct model *model, int owner, const struct moment *at);

/* Return whether both are threads of one process. */
bool model_are_siblings(int owner, int other);

/* The operator has broken the lease: the row is free, at once or when the lease
 * would have ended. */
void model_break(struct model *model, bool now);

/* The owner's process has died. */
void model_die(struct model *model, int owner, int64_t now_ns);

/* Return whether the row's lease is certainly not over. */
bool model_is_live(const struct model *model, int64_t now_ns);

/* Return whether the owner's lease is certainly lost. */
bool model_is_lost(const struct model *model, int owner, int64_t now_ns);

#endif
