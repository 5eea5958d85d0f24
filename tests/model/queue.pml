/*
 * queue.pml - the queue in a lock's row, when those who wait die
 *
 * A holder gives the lock up, waiters come at any time and queue, and any of
 * them may die at any time.  Who is alive answers its ring, or a call, within a
 * second: time goes on only when nobody alive has something to do.  A waiter
 * that gets the lock gives it up at once.
 *
 * Checked: nobody alive is passed by one that came later (`in_order`); and when
 * the lock is nobody's, a waiter that is alive gets it within a second for each
 * of those that have died, and two more (`in_time`).  Each -D takes away a rule;
 * then there must be a counterexample.
 *
 *   BARGING      a claim takes a row that is over although others wait
 *   NO_CALL      all tickets before that of the finder go, rung or not
 *   NO_LOOK      a release asks nobody to look a second later
 *   NO_RING      a row is reserved for the next one, who is not rung
 */
#ifndef WAITERS
#define WAITERS 3 /* or 4 */
#endif
#ifndef DEATHS
#define DEATHS 2
#endif
#define NOBODY 255
#define NEVER 255
#define END 7
#define OWN_LOOK 6 /* after how long a waiter looks if nobody rings */

mtype = { OUTSIDE, QUEUED, RESERVED, SERVED, DEAD };

mtype state[WAITERS] = OUTSIDE;
bool is_rung[WAITERS];  /* and has not looked yet */
bool is_called[WAITERS]; /* and has given no sign yet */
byte looks_at[WAITERS] = NEVER;
byte came_at[WAITERS];

byte now;
bool is_held = true;      /* by one that does not wait */
byte reserved = NOBODY;   /* for whom the row is */
byte until;               /* until when */
byte free_since;          /* when the lock became nobody's */
byte deaths;

#define IS_ALIVE(p) (state[p] == QUEUED || state[p] == RESERVED)
#define IS_OVER (!is_held && (reserved == NOBODY || now >= until))

/* The first ticket; it is NOBODY's if there is none. */
inline find_first()
{
    first = 0;
    do
    :: first < WAITERS && !has_ticket[first] -> first++
    :: else -> break
    od;
    if
    :: first == WAITERS -> first = NOBODY
    :: else
    fi
}

bool has_ticket[WAITERS]; /* of the living and the dead */

inline reserve(p)
{
    reserved = p;
    until = now + 1;
    has_ticket[p] = false;
    is_called[p] = false;
#ifndef NO_RING
    is_rung[p] = true;
#endif
    if
    :: state[p] == QUEUED -> state[p] = RESERVED
    :: else
    fi
}

inline give_up_lock()
{
    is_held = false;
    reserved = NOBODY;
    free_since = now;
    find_first();
    if
    :: first != NOBODY ->
        reserve(first);
#ifndef NO_LOOK
        for (k : 0 .. WAITERS - 1) {
            if
            :: has_ticket[k] -> looks_at[k] = now + 1
            :: else
            fi
        }
#endif
    :: else
    fi;
    first = 0;
    k = 0
}

/* The lock is p's: nobody alive that came before it waits. */
inline grant(p)
{
    for (k : 0 .. WAITERS - 1) {
        assert(!(k < p && IS_ALIVE(k))) /* in_order */
    }
    k = 0;
    has_ticket[p] = false;
    state[p] = SERVED;
    is_rung[p] = false;
    is_called[p] = false;
    looks_at[p] = NEVER;
    came_at[p] = 0;
    give_up_lock()
}

/* Who was called a second ago and gave no sign has gone, at the front. */
inline remove_the_dead(p)
{
    k = 0;
    do
#ifdef NO_CALL
    :: k < WAITERS && k < p -> has_ticket[k] = false; k++
#else
    :: k < WAITERS && has_ticket[k] && is_called[k] ->
        has_ticket[k] = false;
        is_called[k] = false;
        k++
#endif
    :: k < WAITERS && !has_ticket[k] -> k++
    :: else -> break
    od;
    k = 0
}

/* p found the row over: it takes it if it is the first, or passes it on. */
inline pass_on(p)
{
    remove_the_dead(p);
    find_first();
    if
    :: first == p -> first = 0; grant(p)
    :: first != p && first != NOBODY ->
        reserve(first);
        for (k : 0 .. WAITERS - 1) {
            if
            :: has_ticket[k] && !is_called[k] && k != p ->
                is_called[k] = true
            :: else
            fi
        }
        k = 0;
        looks_at[p] = now + 1
    :: first == NOBODY -> reserved = NOBODY
    fi;
    first = 0
}

inline look(p)
{
    is_rung[p] = false;
    is_called[p] = false;
    looks_at[p] = now + OWN_LOOK;
    if
    :: reserved == p -> grant(p)
    :: reserved != p && IS_OVER -> pass_on(p)
    :: reserved != p && !IS_OVER && !is_held -> looks_at[p] = until
    :: else
    fi
}

inline arrive(p)
{
    state[p] = QUEUED;
    came_at[p] = now;
    looks_at[p] = now + 2;
    find_first();
    if
    :: IS_OVER && (first == NOBODY) -> first = 0; grant(p)
#ifdef BARGING
    :: IS_OVER && first != NOBODY -> first = 0; grant(p)
#else
    :: IS_OVER && first != NOBODY ->
        first = 0;
        has_ticket[p] = true;
        pass_on(p)
#endif
    :: !IS_OVER -> first = 0; has_ticket[p] = true
    fi
}

#define HAS_TO_LOOK(p) (IS_ALIVE(p) && \
                        (is_rung[p] || is_called[p] || looks_at[p] <= now))

#if WAITERS == 4
#define IS_FOURTH_LATE HAS_TO_LOOK(3)
#else
#define IS_FOURTH_LATE false
#endif
#define IS_ANY_LATE \
    (HAS_TO_LOOK(0) || HAS_TO_LOOK(1) || HAS_TO_LOOK(2) || IS_FOURTH_LATE)

proctype waiter(byte p)
{
    byte first, k;

    /* In the order of their numbers. */
    atomic { p == 0 || state[p - 1] != OUTSIDE; arrive(p) }
    do
    :: atomic { HAS_TO_LOOK(p) -> look(p) }
    :: atomic {
        IS_ALIVE(p) && deaths < DEATHS -> deaths++;
        state[p] = DEAD;
        looks_at[p] = NEVER;
        came_at[p] = 0;
        break
    }
    :: atomic { state[p] == SERVED -> break }
    od
}

#define WAITS_SINCE(p) (came_at[p] > free_since -> came_at[p] : free_since)

inline in_time()
{
    for (k : 0 .. WAITERS - 1) {
        assert(is_held || !IS_ALIVE(k) || now - WAITS_SINCE(k) <= deaths + 2)
    }
    k = 0
}

proctype clock()
{
    byte first, k;

    do
    :: atomic { is_held -> give_up_lock() }
    :: atomic {
        now < END && !IS_ANY_LATE ->
        now++;
        in_time()
    }
    :: atomic { now == END -> break }
    od
}

init
{
    byte n;

    atomic {
        run clock();
        for (n : 0 .. WAITERS - 1) {
            run waiter(n)
        }
    }
}
