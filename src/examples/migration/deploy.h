/*
 * deploy.h - applying migrations, each once and in order
 */
#ifndef MIGRATION_DEPLOY_H
#define MIGRATION_DEPLOY_H

#include "connection.h"
#include "folder.h"
#include "sqlock.h"

/* Apply what is not applied yet, holding the lock.  0, or -1 having said
 * why. */
int deploy(sqlock_registry *registry, sqlock_lock *lock,
           const struct connection *connection, const struct folder *folder);

#endif
