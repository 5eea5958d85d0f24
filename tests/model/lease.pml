/*
 * lease.pml - one exclusive lock: its row, and two processes that count their
 * leases by clocks of their own
 *
 * Each process has two connections.  A statement on one of them arrives at any
 * time, or never; its answer may be lost.  A process that has no answer may
 * repeat its claim on the other connection, or give it up; it may stop at any
 * point, since nothing makes it take a step.
 *
 * Checked: at no instant do two processes take themselves for the holder
 * (`exclusive`), and no guarded write follows one of a later grant
 * (`in_order`).  Each -D takes away a rule of the library, or a condition that
 * sqlock-failures(7) names; then there must be a counterexample.
 *
 *   FROM_ANSWER   a lease is counted from its answer, not from before sending
 *   SLOW_CLOCK    a holder's clock falls behind by more than the margin
 *   ANY_OWNER     a release does not compare the CLIENT_ID
 *   SAME_ID       all claims of a process have the same CLIENT_ID
 *   NO_CAP        a shorter renewal that may yet arrive is forgotten
 *   NO_GUARD      a write does not look at the row
 *   FAILOVER      a standby takes over that lacks the last commits
 *
 * SHORTER adds renewals with a shorter TTL, which is safe, but for NO_CAP.
 * HANDING lets a process give its lease to the next of its own waiters, which is
 * safe, but for
 *
 *   KEPT_ID       a lease that is handed off keeps its CLIENT_ID
 */
#define TTL 2
#define SHORT_TTL 1
#define NOBODY 255

#ifndef END
#define END 4 /* the last instant */
#endif
#ifndef GRANTS
#define GRANTS 1 /* claims of a process */
#endif
#ifndef TRIES
#define TRIES 1 /* repetitions, renewals and writes of a lease, together */
#endif

mtype = { CLAIM, RENEW, RELEASE, WRITE, HAND_OFF };

typedef lock_row {
    byte owner = NOBODY; /* CLIENT_ID */
    byte ends;
    byte fence
};

typedef holder {
    bool believes;
    byte until; /* by its own clock */
    byte behind /* by how much its own clock is behind */
};

byte now; /* the database's clock */
lock_row row;
holder holders[2];
byte last_write; /* the token of the last write to the data */

#ifdef FAILOVER
lock_row standby;
bool is_promoted;
#endif

/* Connections 0 and 1 are of process 0, 2 and 3 of process 1. */
chan statement[4] = [1] of { mtype, byte /* CLIENT_ID */, byte /* TTL */,
                             byte /* token, or the next CLIENT_ID */ };
chan answer[4] = [1] of { bool /* whether it changed the row */,
                          byte /* token */ };

#define CLOCK_OF(i) (now - holders[i].behind)
#define HOLDS(i) (holders[i].believes && CLOCK_OF(i) < holders[i].until)
#define IS_OVER (row.ends <= now)

inline exclusive()
{
    assert(!(HOLDS(0) && HOLDS(1)))
}

/* -------------------------------------------------------------- the server */

inline claim()
{
    if
    :: id == row.owner || IS_OVER ->
        if
        :: id == row.owner && !IS_OVER -> skip /* it is repeated */
        :: else -> row.fence++
        fi;
        row.owner = id;
        row.ends = now + ttl;
        token = row.fence;
        is_done = true
    :: else -> skip
    fi
}

inline renew()
{
    if
    :: id == row.owner && !IS_OVER ->
        row.ends = now + ttl;
        is_done = true
    :: else -> skip
    fi
}

inline release()
{
    if
#ifdef ANY_OWNER
    :: true ->
#else
    :: id == row.owner ->
#endif
        row.owner = NOBODY;
        row.ends = now;
        is_done = true
#ifndef ANY_OWNER
    :: else -> skip
#endif
    fi
}

#ifdef HANDING
inline hand_off()
{
    if
    :: id == row.owner && !IS_OVER ->
        row.owner = token;
        row.ends = now + ttl;
        row.fence++;
        token = row.fence;
        is_done = true
    :: else -> skip
    fi
}
#endif

/* A write in a transaction with a guard, which fails if the lease is over. */
inline write()
{
    if
#ifdef NO_GUARD
    :: true ->
#else
    :: id == row.owner && !IS_OVER ->
#endif
        assert(token >= last_write); /* in_order */
        last_write = token;
        is_done = true
#ifndef NO_GUARD
    :: else -> skip
#endif
    fi
}

#ifdef FAILOVER
inline ship()
{
    standby.owner = row.owner;
    standby.ends = row.ends;
    standby.fence = row.fence
}

inline promote()
{
    is_promoted = true;
    row.owner = standby.owner;
    row.ends = standby.ends;
    row.fence = standby.fence;
    for (on : 0 .. 3) { /* no connection outlives it */
        do
        :: statement[on]?_, _, _, _
        :: answer[on]?_, _
        :: empty(statement[on]) && empty(answer[on]) -> break
        od
    }
    on = 0
}
#endif

proctype server()
{
    mtype kind;
    byte on, id, ttl, token;
    bool is_done;

    do
    :: atomic {
        if
        :: statement[0]?kind, id, ttl, token -> on = 0
        :: statement[1]?kind, id, ttl, token -> on = 1
        :: statement[2]?kind, id, ttl, token -> on = 2
        :: statement[3]?kind, id, ttl, token -> on = 3
        fi;
        if
        :: kind == CLAIM -> claim()
        :: kind == RENEW -> renew()
        :: kind == RELEASE -> release()
        :: kind == WRITE -> write()
#ifdef HANDING
        :: kind == HAND_OFF -> hand_off()
#endif
        fi;
        if
        :: nfull(answer[on]) -> answer[on]!is_done, token
        :: true -> skip /* it is lost */
        fi;
        kind = 0; on = 0; id = 0; ttl = 0; token = 0; is_done = false
    }
#ifdef FAILOVER
    :: atomic { !is_promoted && standby.ends != row.ends -> ship() }
    :: atomic { !is_promoted -> promote() }
#endif
    od
}

proctype clock()
{
    do
    :: atomic { now < END -> now++; exclusive() }
    od
}

/* -------------------------------------------------------------- a process */

#ifdef SAME_ID
#define NEXT_ID i
#else
#define NEXT_ID (i + 2 * claimed)
#endif

/* That of the one to whom the lease is handed off. */
#ifdef KEPT_ID
#define HEIR id
#else
#define HEIR (id + 16)
#endif

/* The other connection of the same process. */
#define OTHER(c) (c % 2 == 0 -> c + 1 : c - 1)

/* Send on the connection in use, and forget what came on it before. */
inline send(what, for_ttl, with_token)
{
    do
    :: answer[on]?_, _
    :: empty(answer[on]) -> break
    od;
    statement[on]!what, id, for_ttl, with_token
}

inline begin()
{
    holders[i].believes = false;
    holders[i].until = 0;
    is_renewing = false;
    is_done = false;
    sent = 0;
    asked = 0;
    token = 0;
    cap = TTL;
    tries = TRIES
}

proctype process(byte i)
{
    byte on = 2 * i; /* the connection in use */
    byte claimed, id, token, sent, asked, cap, tries;
    bool is_renewing, is_done;

outside:
    atomic {
        begin();
        if
        :: claimed < GRANTS && now < END -> claimed++; id = NEXT_ID
        :: true -> goto done
        fi
    }

claiming:
    atomic {
        nfull(statement[on]) ->
        sent = CLOCK_OF(i);
        send(CLAIM, TTL, 0)
    }
    do
    :: atomic {
        answer[on]?is_done, token ->
        if
        :: is_done -> break
        :: else -> goto outside
        fi
    }
    :: atomic { /* without an answer: the same claim, on the other one */
        tries > 0 && nfull(statement[OTHER(on)]) ->
        tries--;
        on = OTHER(on);
        goto claiming
    }
    :: atomic { /* or it is given up */
        CLOCK_OF(i) > sent -> on = OTHER(on); goto outside
    }
    od;

granted:
    atomic {
#ifdef FROM_ANSWER
        holders[i].until = CLOCK_OF(i) + TTL;
#else
        holders[i].until = sent + TTL;
#endif
        holders[i].believes = true;
        is_done = false;
        exclusive()
    }

    do
    :: atomic {
        HOLDS(i) && tries > 0 && !is_renewing && nfull(statement[on]) ->
        tries--;
        is_renewing = true;
        sent = CLOCK_OF(i);
        asked = TTL;
#ifdef SHORTER
        if
        :: asked = SHORT_TTL
        :: true
        fi;
        if /* it may shorten the row at any time from now on */
        :: holders[i].until > sent + asked -> holders[i].until = sent + asked
        :: else
        fi;
#endif
        send(RENEW, asked, 0)
    }
    :: atomic {
        is_renewing && nempty(answer[on]) ->
        answer[on]?is_done, _;
        is_renewing = false;
        if
        :: is_done ->
            holders[i].until = sent + (asked < cap -> asked : cap);
            is_done = false;
            exclusive()
        :: else -> goto outside
        fi
    }
    :: atomic { /* a renewal without an answer may arrive later */
        is_renewing ->
        is_renewing = false;
        on = OTHER(on);
#ifndef NO_CAP
        if
        :: asked < cap -> cap = asked
        :: else
        fi
#endif
    }
    :: atomic {
        HOLDS(i) && tries > 0 && !is_renewing && nfull(statement[on]) ->
        tries--;
        send(WRITE, 0, token);
        on = OTHER(on)
    }
    :: atomic {
        nfull(statement[on]) ->
        holders[i].believes = false;
        send(RELEASE, 0, 0);
        goto outside
    }
#ifdef HANDING
    :: atomic { /* nobody believes until the answer has come */
        HOLDS(i) && tries > 0 && !is_renewing && nfull(statement[on]) ->
        tries--;
        holders[i].believes = false;
        sent = CLOCK_OF(i);
        send(HAND_OFF, TTL, HEIR);
        id = HEIR
    };
        if
        :: atomic {
            answer[on]?is_done, token ->
            if
            :: is_done -> cap = TTL; goto granted
            :: else -> goto outside
            fi
        }
        :: atomic { CLOCK_OF(i) > sent -> on = OTHER(on); goto outside }
        fi
#endif
    :: atomic { !HOLDS(i) -> goto outside }
#ifdef SLOW_CLOCK
    :: atomic {
        holders[i].behind == 0 && now > 0 -> holders[i].behind = 1; exclusive()
    }
#endif
    od;
done:
    skip
}

init
{
    atomic {
        run server();
        run clock();
        run process(0);
        run process(1)
    }
}
