/*
 * wire_faults.c - the seven faults of a database behind a network
 */
#include <signal.h>

#include "fault.h"
#include "support/server.h"

/* Return the number of the request at which the fault begins: at FAULT_REPLIED
 * it is the one whose answer completes the operation. */
static unsigned last_request(enum fault_point point, enum op op)
{
    return point == FAULT_REPLIED && op == OP_ACQUIRE_MANY
               ? fixture_claims_of_many(&stage.fixture)
               : 1;
}

static void arm(enum fault_point point, enum op op, enum proxy_act act,
                unsigned delay_ms, void (*hook)(void *, int))
{
    static const enum proxy_point points[FAULT_POINTS] = {
        PROXY_BEFORE, PROXY_SENT, PROXY_REPLIED};
    const struct proxy_plan plan = {.point = points[point],
                                    .act = act,
                                    .nth = last_request(point, op),
                                    .delay_ms = delay_ms,
                                    .hook = hook};

    proxy_arm(stage.proxy, &plan);
}

static bool was_met(void)
{
    return proxy_await(stage.proxy, PATIENCE_MS);
}

static void heal(void)
{
    proxy_heal(stage.proxy);
    (void)proxy_await_quiet(stage.proxy, PATIENCE_MS);
}

static void arm_act(const struct fault *fault, enum fault_point point,
                    enum op op)
{
    arm(point, op, fault->act, fault->delay_ms, NULL);
}

/* Each direction is closed in half of the operations. */
static void arm_half_closed(const struct fault *fault, enum fault_point point,
                            enum op op)
{
    (void)fault;
    arm(point, op, op % 2 == 0 ? PROXY_HALF_TO_CLIENT : PROXY_HALF_TO_SERVER, 0,
        NULL);
}

/* The server ends the session; at FAULT_SENT the answer is lost with it. */
static void arm_terminated(const struct fault *fault, enum fault_point point,
                           enum op op)
{
    (void)fault;
    atomic_store(&stage.sessions_ended, 0);
    arm(point, op, point == FAULT_SENT ? PROXY_HALF_TO_CLIENT : PROXY_PASS, 0,
        end_session_of);
}

static bool was_terminated(void)
{
    return was_met() && atomic_load(&stage.sessions_ended) > 0;
}

static void stop_server(void *context, int port)
{
    (void)context;
    (void)port;
    server_stop(stage.fixture.database);
}

/* Statements sent to a stopped server wait there, and are carried out when the
 * server goes on. */
static void arm_stopped(const struct fault *fault, enum fault_point point,
                        enum op op)
{
    (void)fault;
    arm(point, op, point == FAULT_SENT ? PROXY_SWALLOW : PROXY_PASS, 0,
        stop_server);
}

static void heal_stopped(void)
{
    server_go_on();
    heal();
}

static pid_t victim;

static void kill_victim(void *context, int port)
{
    (void)context;
    (void)port;
    (void)kill(victim, SIGKILL);
}

void killer_arm(pid_t pid)
{
    victim = pid;
    /* With these arguments the fault begins at the first request. */
    arm(FAULT_SENT, OP_ACQUIRE, PROXY_CUT, 0, kill_victim);
}

const struct fault wire_faults[] = {
    {.name = "cut",
     .databases = ON_SERVERS,
     .arm = arm_act,
     .act = PROXY_CUT,
     .was_met = was_met,
     .heal = heal,
     .outcomes = {GOES_THROUGH, GOES_THROUGH, GOES_THROUGH}},
    {.name = "half-closed",
     .databases = ON_SERVERS,
     .arm = arm_half_closed,
     .was_met = was_met,
     .heal = heal,
     .outcomes = {GOES_THROUGH, GOES_THROUGH, GOES_THROUGH}},
    {.name = "session terminated",
     .databases = ON_SERVERS,
     .arm = arm_terminated,
     .was_met = was_terminated,
     .heal = heal,
     .outcomes = {GOES_THROUGH, GOES_THROUGH, GOES_THROUGH}},
    {.name = "blackholed",
     .databases = ON_SERVERS,
     .arm = arm_act,
     .act = PROXY_BLACKHOLE,
     .was_met = was_met,
     .heal = heal,
     .outcomes = {IS_OUTAGE, IS_OUTAGE, IS_OUTAGE}},
    {.name = "delayed",
     .databases = ON_SERVERS,
     .arm = arm_act,
     .act = PROXY_PASS,
     .delay_ms = DELAY_MS,
     .was_met = was_met,
     .heal = heal,
     .outcomes = {GOES_THROUGH, GOES_THROUGH, GOES_THROUGH}},
    {.name = "client killed",
     .databases = ON_SERVERS,
     .place = A_IS_KILLED,
     .heal = heal},
    {.name = "server stopped",
     .databases = ON_SERVERS,
     .stops_server = true,
     .arm = arm_stopped,
     .was_met = was_met,
     .heal = heal_stopped,
     .outcomes = {IS_OUTAGE, IS_OUTAGE, IS_OUTAGE}},
};
const size_t wire_fault_count = sizeof wire_faults / sizeof *wire_faults;
