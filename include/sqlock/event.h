/*
 * sqlock/event.h - events of a registry, for logs
 *
 * A registry calls the `on_event` of its options for each event whose level is
 * at least its `event_level`, in a thread of the library, or in one of the
 * application's in the middle of its call.  That call, and calls of other
 * threads which it serves, wait for `on_event` to return: so it must not lock a
 * mutex that a thread of the application keeps locked during a call.
 *
 * Calling sequence
 *     sqlock_event event = {0}; // the argument of on_event
 *
 *     if (event.level >= SQLOCK_LEVEL_WARNING)
 *         fprintf(stderr, "%s %s: %s\n", event.name,
 *                 event.lock ? event.lock : "", event.text);
 */
#ifndef SQLOCK_EVENT_H
#define SQLOCK_EVENT_H

#include <sqlock.h>

#ifdef __cplusplus
extern "C" {
#endif

/* clang-format off */
/* X(kind, name, level): kinds of events, and which members they set. */
#define SQLOCK_EVENTS(X)                                                      \
    X(ACQUIRED,      "acquired",      DEBUG)   /* lock, token */              \
    X(RELEASED,      "released",      DEBUG)   /* lock, code */               \
    X(IN_DOUBT,      "in_doubt",      WARNING) /* lock: a claim or a release  \
                                                  got no answer; resolved in  \
                                                  the background */           \
    X(LOST,          "lost",          WARNING) /* lock, code: of a lease that \
                                                  is renewed or watched, or   \
                                                  found by its release */     \
    X(EPOCH,         "epoch",         WARNING) /* another server answers, see \
                                                  sqlock_registry_epoch() */  \
    X(FORGETFUL,     "forgetful",     WARNING) /* the server may forget what  \
                                                  it has granted */           \
    X(CLOCK_STEP,    "clock_step",    WARNING) /* the database's clock has    \
                                                  stepped */                  \
    X(ITEM_MISSING,  "item_missing",  WARNING) /* the quantity of a           \
                                                  reservation cannot be given \
                                                  back */                     \
    X(NOT_RENEWED,   "not_renewed",   WARNING) /* code: leases could not be   \
                                                  renewed; tried again until  \
                                                  they are over. lock: where  \
                                                  one is refused alone */
/* clang-format on */

/** Kind of an event. */
typedef enum sqlock_event_kind {
#define SQLOCK_X(kind, name, level) SQLOCK_EVENT_##kind,
    SQLOCK_EVENTS(SQLOCK_X)
#undef SQLOCK_X
} sqlock_event_kind;

/** Something that happened.  Its texts are valid during the call only.  A new
 *  release may add kinds. */
struct sqlock_event {
    size_t size;            /* sizeof(sqlock_event): the struct may grow */
    sqlock_event_kind kind; /* what kind of event */
    const char *name;       /* of the kind, a constant */
    sqlock_level level;     /* of the kind */
    const char *lock; /* name of the lock; NULL: about no lock, or not known */
    const char *key;  /* LOCK_KEY of the lock; NULL: about no lock */
    int64_t token;    /* 0: none, or not known */
    int code;         /* 0 or an error */
    const char *text; /* one line, no newline */
};

#ifdef __cplusplus
}
#endif
#endif /* SQLOCK_EVENT_H */
