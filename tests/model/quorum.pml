/*
 * quorum.pml - one lock in three databases, held by who has it in two of them
 *
 * Each database keeps its own lease truthfully, by its own clock, which may be
 * wrong by any amount but runs as fast as the others (lease.pml has what
 * that rests on); so a lease is a count of ticks that are left.  A claim may be
 * answered late, and a database may be out of reach at any time: then its
 * statement changes nothing, or changes the row without an answer.
 *
 * Checked: at no instant do two processes take themselves for the holder.  Each
 * -D takes away a rule; then there must be a counterexample.
 *
 *   MINORITY      one of three is enough
 *   FROM_LAST     all leases are counted from the last answer
 *   LATEST_END    the holder believes until the latest end, not the second one
 *   FORGOTTEN     one database loses its rows (a standby that lagged), once,
 *                 and grants at once
 */
#define SERVERS 3
#define NOBODY 255
#define TTL 2

#ifndef END
#define END 4
#endif
#ifndef ROUNDS
#define ROUNDS 2 /* of process 0; process 1 has one */
#endif
#ifdef MINORITY
#define NEEDED 1
#else
#define NEEDED 2
#endif

byte now;
byte owner[SERVERS] = NOBODY;
byte ends[SERVERS];

/* What a process knows of each server: until when it has the lease there. */
typedef member {
    byte until[SERVERS]
};
member known[2];
bool believes[2];

/* How many of the leases of a process are not over. */
#define ALIVE(i) ((known[i].until[0] > now -> 1 : 0) + \
                  (known[i].until[1] > now -> 1 : 0) + \
                  (known[i].until[2] > now -> 1 : 0))
#ifdef LATEST_END
#define HOLDS(i) (believes[i] && ALIVE(i) >= 1)
#else
#define HOLDS(i) (believes[i] && ALIVE(i) >= NEEDED)
#endif

inline exclusive()
{
    assert(!(HOLDS(0) && HOLDS(1)))
}

inline claim(at)
{
    if
    :: owner[at] == i || ends[at] <= now ->
        owner[at] = i;
        ends[at] = now + TTL;
        is_done = true
    :: else -> is_done = false
    fi
}

/* A round asks each server once; a round of a holder renews.  Between sending
 * and the answer anything may happen. */
proctype process(byte i)
{
    byte rounds = (i == 0 -> ROUNDS : 1), sent, at;
    bool is_done;

outside:
    if
    :: atomic { rounds > 0 && now < END -> rounds--; at = 0 }
    :: goto done
    fi;
    do
    :: atomic { at < SERVERS -> sent = now; is_done = false; claim(at) };
        atomic {
            if
            :: is_done ->
#ifdef FROM_LAST
                known[i].until[at] = now + TTL
#else
                known[i].until[at] = sent + TTL
#endif
            :: !is_done -> known[i].until[at] = 0
            :: true -> skip /* no answer: the old end is believed */
            fi;
            is_done = false;
            sent = 0;
            at++;
            if
            :: ALIVE(i) >= NEEDED -> believes[i] = true
            :: else
            fi;
            exclusive()
        }
    :: atomic { at < SERVERS -> at++ } /* it is out of reach */
    :: atomic { at == SERVERS -> at = 0; break }
    od;
    if
    :: atomic { /* a release; leases that it does not reach end by time */
        believes[i] = false;
        do
        :: at < SERVERS ->
            known[i].until[at] = 0;
            if
            :: owner[at] == i -> owner[at] = NOBODY; ends[at] = 0
            :: else
            fi;
            at++
        :: at == SERVERS -> break
        od;
        at = 0
    }
    :: atomic { HOLDS(i) } /* it goes on, and renews */
    fi;
    goto outside;
done:
    skip
}

proctype clock()
{
    do
    :: atomic { now < END -> now++; exclusive() }
    :: atomic { now == END -> break }
    od
}

#ifdef FORGOTTEN
proctype failover()
{
    atomic { owner[0] = NOBODY; ends[0] = 0 }
}
#endif

init
{
    atomic {
        run clock();
        run process(0);
        run process(1);
#ifdef FORGOTTEN
        run failover();
#endif
    }
}
