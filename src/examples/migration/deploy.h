/*
 * deploy.h - apply migrations, each once and in order
 */
#ifndef MIGRATION_DEPLOY_H
#define MIGRATION_DEPLOY_H

#include "connection.h"
#include "folder.h"
#include "sqlock.h"

/* Apply the migrations that are not applied yet.  The caller holds the lock.
 * Return 0; 1 if the lease has ended meanwhile, and another turn is needed; -1
 * after a message. */
int deploy(sqlock_registry *registry, sqlock_lock *lock,
           const struct connection *connection, const struct folder *folder);

#endif
