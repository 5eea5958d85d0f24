/*
 * fault_driver.c - see fault_driver.h
 */
#include "fault_driver.h"

#include <pthread.h>
#include <string.h>

const char *const fault_point_names[FAULT_POINTS] = {"before", "sent",
                                                     "replied"};

static pthread_mutex_t guard = PTHREAD_MUTEX_INITIALIZER;
static struct fault_plan armed;
static bool is_armed;
static bool is_dead; /* the next call breaks its connection */
static unsigned seen;
static unsigned times;
static uint64_t meant; /* number of the call that fails after it was sent */

static bool is_truthful(const struct fault_plan *plan)
{
    switch (plan->point) {
    case FAULT_BEFORE:
        return plan->code == 0 || plan->code == SQLOCK_EUNREACHABLE ||
               plan->code == SQLOCK_ERETRY || plan->code == SQLOCK_EBUSY ||
               plan->code == SQLOCK_ERESOURCE || plan->code == SQLOCK_ECANCELED;
    case FAULT_SENT:
        return plan->code == 0 || plan->code == SQLOCK_EUNCERTAIN;
    default:
        return plan->code == 0 || plan->code == SQLOCK_EUNREACHABLE;
    }
}

/* Return whether the plan is for calls such as this one.  The caller holds the
 * mutex `guard`. */
static bool is_concerned(const struct tap_event *event)
{
    if (!is_armed || event->call != armed.call)
        return false;
    return armed.containing == NULL ||
           (event->text != NULL &&
            strstr(event->text, armed.containing) != NULL);
}

/* Count a call that the plan is for; return whether it is to fail.  The caller
 * holds the mutex `guard`. */
static bool matches(const struct tap_event *event)
{
    if (!is_concerned(event))
        return false;
    seen++;
    return armed.nth == 0 || seen == armed.nth;
}

static void reach(const struct fault_plan *plan)
{
    if (plan->hook != NULL)
        plan->hook(plan->context);
    check_sleep(plan->stall_ms);
    pthread_mutex_lock(&guard);
    times++;
    pthread_mutex_unlock(&guard);
}

static int before(void *context, const struct tap_event *event)
{
    struct fault_plan plan;
    bool is_meant;
    bool was_dead;

    (void)context;
    pthread_mutex_lock(&guard);
    plan = armed;
    was_dead = is_dead;
    is_dead = false;
    is_meant = !was_dead && matches(event);
    if (is_meant)
        meant = event->number;
    pthread_mutex_unlock(&guard);
    if (was_dead)
        return SQLOCK_EUNREACHABLE;
    if (!is_meant || plan.point != FAULT_BEFORE)
        return 0;
    reach(&plan);
    return plan.code;
}

static int after(void *context, const struct tap_event *event, int rc)
{
    struct fault_plan plan;
    bool is_meant;

    (void)context;
    pthread_mutex_lock(&guard);
    plan = armed;
    /* `meant` has one number only: with nth 0 several may be under way. */
    is_meant = is_concerned(event) && plan.point != FAULT_BEFORE &&
               (plan.nth == 0 || event->number == meant);
    if (is_meant && plan.point == FAULT_REPLIED)
        is_dead = plan.code != 0;
    pthread_mutex_unlock(&guard);
    if (!is_meant)
        return rc;
    reach(&plan);
    return plan.point == FAULT_SENT && plan.code != 0 && rc == 0 ? plan.code
                                                                 : rc;
}

void fault_arm(const struct fault_plan *plan)
{
    assert_true(is_truthful(plan));
    pthread_mutex_lock(&guard);
    armed = *plan;
    is_armed = true;
    is_dead = false;
    seen = 0;
    times = 0;
    meant = 0;
    pthread_mutex_unlock(&guard);
    tap_hooks(before, after, NULL);
}

void fault_heal(void)
{
    tap_hooks(NULL, NULL, NULL);
    pthread_mutex_lock(&guard);
    is_armed = false;
    is_dead = false;
    pthread_mutex_unlock(&guard);
}

unsigned fault_times(void)
{
    unsigned count;

    pthread_mutex_lock(&guard);
    count = times;
    pthread_mutex_unlock(&guard);
    return count;
}
