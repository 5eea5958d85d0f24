/*
 * stage.h - what the performers of the stage share
 */
#ifndef TESTS_SCENES_STAGE_H
#define TESTS_SCENES_STAGE_H

#include <string.h>

#include "play.h"

static inline struct result is(int rc)
{
    return (struct result){.rc = rc};
}

static inline bool says(const struct step *step, const char *verb)
{
    return strcmp(step->verb, verb) == 0;
}

static inline struct result unknown(void)
{
    return (struct result){.rc = NOT_PLAYED, .message = "no such verb"};
}

/* Return a duration; 0: the step has none. */
int64_t stage_ms(const struct step *step, const char *option);

/* Write the key of a lock of the scene to out; return out. */
const char *stage_key(const struct play *play, char out[SQLOCK_KEY_SIZE],
                      const char *name);

/* The steps of the network, the database and of other programs. */
struct result stage_network(struct play *play, const struct step *step);
struct result stage_database(struct play *play, const struct step *step);
struct result stage_stranger(struct play *play, const struct step *step);
struct result stage_of_stock(struct play *play, const struct step *step);

/* Remove the tables of a quorum's other servers, and what leads to them. */
void stage_close_servers(struct play *play);

/* Undo what the database would keep. */
void stage_mend(struct play *play);

#endif
