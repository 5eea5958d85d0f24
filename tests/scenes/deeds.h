/*
 * deeds.h - one random step, compared with the model (model.h)
 */
#ifndef TESTS_SCENES_DEEDS_H
#define TESTS_SCENES_DEEDS_H

#include <setjmp.h>

#include "model.h"
#include "play.h"

#define LOCKS 3
#define STEPS_MAX 400 /* a run of RUN_STEPS, with what belongs to it */

enum deed {
    TAKE,
    TAKE_SHORT,
    TAKE_MIDDLE,   /* a lease that others find while it lasts */
    TAKE_RENEWED,  /* and its loss is told */
    TAKE_AND_WAIT, /* for a moment */
    TAKE_MANY,     /* the lock and the next one */
    WAIT,          /* in the background, until it gets the lock */
    GIVE,
    GIVE_MANY,
    RENEW,
    RENEW_MANY,
    HEAR, /* of a loss */
    BREAK,
    BREAK_NOW,
    FAIL,  /* the network, at the next statement */
    SHAKE, /* all connections */
    DIE,   /* the last process, and another one comes */
    PASS,  /* time, longer than a short lease */
    PASS_LONG,
    DEEDS
};

struct act {
    enum deed deed;
    int owner;
    int lock;
    bool is_apt; /* by an owner that has something, where there is one */
};

struct run {
    struct play play;
    struct model models[LOCKS];
    char clients[LOCKS][SQLOCK_KEY_SIZE]; /* whose row it is; "": not known */
    int waiters[LOCKS]; /* who waits in the background; -1: nobody */
    char owners[OWNERS][8];
    unsigned deaths;
    bool is_to_fail;    /* the next statement of some process */
    int shaken[OWNERS]; /* so many calls may find their connection gone */
    bool is_open;
    struct {
        struct step step;
        char words[200]; /* of which the step is made */
    } steps[STEPS_MAX];  /* that were played; some are still under way */
    size_t count;
    jmp_buf escape;
    char scene[8000]; /* the steps that were played */
    char difference[700];
};

/* Play a step, whatever its result; write it down with what it gave, which is
 * returned. */
int run_step(struct run *run, const char *text, struct moment *at);

/* Start a process. */
bool run_open_process(struct run *run, const char *id);

/* Do what the act says; return whether all went as in the model.  Otherwise
 * run->difference says what did not. */
bool run_act(struct run *run, const struct act *act);

/* Let all hear of their losses, and release what they have, with the results
 * that the model expects. */
bool run_end(struct run *run);

#endif
