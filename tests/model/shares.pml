/*
 * shares.pml - one lock that several may share: its row with the list of those
 * who do, and processes that take it alone, share it, and downgrade
 *
 * Statements are answered at once, or stay without an answer and may arrive
 * later; that a lease is counted from before sending, and by CLIENT_ID, is
 * checked in lease.pml.
 *
 * Checked at each instant: who has the lock alone has it alone, and those who
 * share it have no more than the permits together (`exclusive`); and nobody is
 * granted the lock alone between a downgrade and the share that it becomes
 * (`no_gap`).  Each -D takes away a rule; then there must be a counterexample.
 *
 *   NEWEST_END    the row ends with the newest share, not with the last one
 *   NO_SUM        a claim to share does not count the others' permits
 *   STALE_SHARE   a share that is over is renewed as long as it is in the list
 *   TWO_STEPS     a downgrade releases the lock and shares it afterwards
 *   FREED         who leaves frees the row although others share it
 */
#define PERMITS 3
#define NOBODY 255
#define GROUP 254 /* the CLIENT_ID of those who share */

#ifndef PROCESSES
#define PROCESSES 3
#endif
#ifndef END
#define END 4
#endif
#ifndef STEPS
#define STEPS 3 /* statements of a process */
#endif

/* Processes 0 and 1 have leases of two ticks, process 2 of one. */
#define TTL(i) (i == 2 -> 1 : 2)
/* Process 0 takes two permits, the others one. */
#define WEIGHT(i) (i == 0 -> 2 : 1)

typedef lock_row {
    byte owner = NOBODY;
    byte ends;
    byte share_ends[PROCESSES] /* 0: it is not in the list */
};

typedef holder {
    bool believes;
    byte weight; /* 0: alone */
    byte until
};

byte now;
lock_row row;
holder holders[PROCESSES];
byte downgrading = NOBODY; /* who is between the lock and its share */

#define HOLDS(i) (holders[i].believes && now < holders[i].until)
#define SHARES(i) (row.owner == GROUP && row.share_ends[i] > now)
#define USED(i) (SHARES(i) -> WEIGHT(i) : 0)

inline exclusive()
{
    used = 0;
    alone = 0;
    for (k : 0 .. PROCESSES - 1) {
        if
        :: HOLDS(k) && holders[k].weight == 0 -> alone++
        :: HOLDS(k) && holders[k].weight > 0 -> used = used + holders[k].weight
        :: else
        fi
    }
    assert(alone == 0 || (alone == 1 && used == 0));
    assert(used <= PERMITS);
    k = 0; used = 0; alone = 0
}

/* ------------------------------------------------ statements, each atomic */

inline forget_shares()
{
    for (k : 0 .. PROCESSES - 1) {
        row.share_ends[k] = 0
    }
    k = 0
}

inline last_end()
{
#ifdef NEWEST_END
    row.ends = now + TTL(i);
#else
    row.ends = now;
    for (k : 0 .. PROCESSES - 1) {
        if
        :: row.share_ends[k] > row.ends -> row.ends = row.share_ends[k]
        :: else
        fi
    }
#endif
    k = 0
}

inline claim_alone()
{
    is_done = (row.owner == i || row.owner == NOBODY || row.ends <= now);
    if
    :: is_done ->
        row.owner = i;
        row.ends = now + TTL(i);
        assert(downgrading == NOBODY || downgrading == i) /* no_gap */
    :: else
    fi
}

inline claim_share()
{
    if
    :: row.owner == GROUP && row.ends > now ->
        used = 0;
        for (k : 0 .. PROCESSES - 1) {
            used = used + (k == i -> 0 : USED(k))
        }
        k = 0;
#ifdef NO_SUM
        is_done = true;
#else
        is_done = (used + WEIGHT(i) <= PERMITS);
#endif
        used = 0
    :: else ->
        is_done = (row.owner == NOBODY || row.ends <= now);
        if
        :: is_done -> forget_shares(); row.owner = GROUP
        :: else
        fi
    fi;
    if
    :: is_done -> row.share_ends[i] = now + TTL(i); last_end()
    :: else
    fi
}

inline renew_share()
{
#ifdef STALE_SHARE
    is_done = (row.owner == GROUP && row.share_ends[i] > 0);
#else
    is_done = SHARES(i);
#endif
    if
    :: is_done -> row.share_ends[i] = now + TTL(i); last_end()
    :: else
    fi
}

inline release_share()
{
    if
    :: row.owner == GROUP && row.share_ends[i] > 0 ->
        row.share_ends[i] = 0;
        last_end();
        if
#ifdef FREED
        :: true -> row.owner = NOBODY
#else
        :: row.ends <= now -> row.owner = NOBODY
        :: else
#endif
        fi
    :: else
    fi
}

inline downgrade()
{
    is_done = (row.owner == i && row.ends > now);
    if
    :: is_done ->
        forget_shares();
        row.owner = GROUP;
        row.share_ends[i] = now + TTL(i);
        row.ends = now + TTL(i)
    :: else
    fi
}

/* ------------------------------------------------------------- a process */

inline believe(with_weight)
{
    holders[i].believes = true;
    holders[i].weight = with_weight;
    holders[i].until = now + TTL(i);
    exclusive()
}

inline stop_believing()
{
    holders[i].believes = false;
    holders[i].until = 0;
    holders[i].weight = 0
}

proctype process(byte i)
{
    byte steps = STEPS, used, alone, k;
    bool is_done;

    do
    :: atomic { /* alone; without an answer the row is taken all the same */
        !HOLDS(i) && steps > 0 ->
        steps--;
        stop_believing();
        claim_alone();
        if
        :: is_done -> believe(0)
        :: true
        fi;
        is_done = false
    }
    :: atomic {
        !HOLDS(i) && steps > 0 ->
        steps--;
        stop_believing();
        claim_share();
        if
        :: is_done -> believe(WEIGHT(i))
        :: true
        fi;
        is_done = false
    }
    :: atomic { /* a renewal may come when the share is over for the process */
        holders[i].believes && holders[i].weight > 0 && steps > 0 ->
        steps--;
        renew_share();
        if
        :: is_done -> believe(WEIGHT(i))
        :: !is_done -> stop_believing()
        fi;
        is_done = false
    }
    :: atomic {
        HOLDS(i) && holders[i].weight > 0 ->
        stop_believing();
        release_share()
    }
    :: atomic {
        HOLDS(i) && holders[i].weight == 0 ->
        stop_believing();
        if
        :: row.owner == i -> row.owner = NOBODY; row.ends = now
        :: else
        fi
    }
    :: atomic {
        HOLDS(i) && holders[i].weight == 0 && steps > 0 && downgrading == NOBODY
        ->
        steps--;
#ifdef TWO_STEPS
        downgrading = i;
        stop_believing();
        row.owner = NOBODY;
        row.ends = now;
    }
    atomic {
        claim_share();
        if
        :: is_done -> believe(WEIGHT(i))
        :: else
        fi;
        downgrading = NOBODY;
#else
        downgrade();
        if
        :: is_done -> believe(WEIGHT(i))
        :: !is_done -> stop_believing()
        fi;
#endif
        is_done = false
    }
    :: atomic { steps == 0 && !HOLDS(i) -> break }
    od
}

proctype clock()
{
    byte used, alone, k;

    do
    :: atomic { now < END -> now++; exclusive() }
    :: atomic { now == END -> break }
    od
}

init
{
    byte n;

    atomic {
        run clock();
        for (n : 0 .. PROCESSES - 1) {
            run process(n)
        }
    }
}
