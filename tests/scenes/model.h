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

/* A lease certainly lasts until `sure`, and is certainly over after `over`; by
 * this host's monotonic clock. */
struct term {
    int64_t sure_ns;
    int64_t over_ns;
};

/* The part of one owner. */
struct share {
    int count;        /* acquires not released */
    int64_t ttl_ms;   /* of the first of them */
    bool is_gone;     /* the row has been taken, broken or freed since */
    bool may_be_gone; /* it has if a claim that got no answer was carried out */
    bool is_told;     /* the owner has had a result that said so */
    struct term term; /* of the owner's belief */
};

struct model {
    bool keeps_rows;  /* sqlock's layout; on Spring's a free lock has no row */
    int holder;       /* whose row it is; -1: nobody's */
    bool is_in_doubt; /* a call got no answer: the row may be anybody's */
    struct term term; /* of the row */
    struct share of[OWNERS];
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
void model_took(struct model *model, int owner, int64_t ttl_ms,
                const struct moment *at, int rc);
/* A call for several locks was refused: it may have taken a row that was free,
 * and given it back. */
void model_touched(struct model *model, const struct moment *at);

bool model_give(struct model *model, int owner, const struct moment *at,
                int rc);
bool model_renew(struct model *model, int owner, const struct moment *at,
                 int rc);

/* Return whether both are threads of one process. */
bool model_are_siblings(int owner, int other);

/* The operator has freed the row at once. */
void model_break(struct model *model);

/* Return whether the row's lease is certainly over, or certainly not. */
bool model_is_over(const struct model *model, int64_t now_ns);
bool model_is_live(const struct model *model, int64_t now_ns);

#endif
