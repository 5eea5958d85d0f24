/*
 * client.h - the functions of libpq that this driver calls
 *
 * They are there once lk_pg_library is loaded, which is the first thing to do
 * with a URL or with a connection of the application.  Each name stands for a
 * pointer, by a macro that the build makes of the list; one that is missing
 * there does not link.
 */
#ifndef LK_POSTGRES_CLIENT_H
#define LK_POSTGRES_CLIENT_H

#include <libpq-fe.h>

#include "drivers/library.h"

/* clang-format off */
#ifdef LIBPQ_HAS_PIPELINING
#define LK_PQ_PIPELINE(X) \
    X(PQenterPipelineMode) \
    X(PQexitPipelineMode) \
    X(PQpipelineStatus) \
    X(PQpipelineSync)
#else
#define LK_PQ_PIPELINE(X)
#endif

#define LK_PQ_FUNCTIONS(X) \
    X(PQbackendPID) \
    X(PQclear) \
    X(PQcmdStatus) \
    X(PQcmdTuples) \
    X(PQconnectPoll) \
    X(PQconnectStartParams) \
    X(PQconnectionNeedsPassword) \
    X(PQconninfo) \
    X(PQconninfoFree) \
    X(PQconninfoParse) \
    X(PQconsumeInput) \
    X(PQerrorMessage) \
    X(PQfinish) \
    X(PQflush) \
    X(PQfreemem) \
    X(PQftype) \
    X(PQgetResult) \
    X(PQgetisnull) \
    X(PQgetlength) \
    X(PQgetvalue) \
    X(PQhost) \
    X(PQhostaddr) \
    X(PQisBusy) \
    X(PQlibVersion) \
    X(PQnfields) \
    X(PQnotifies) \
    X(PQntuples) \
    X(PQparameterStatus) \
    X(PQport) \
    X(PQresultErrorField) \
    X(PQresultErrorMessage) \
    X(PQresultStatus) \
    X(PQsendDescribePrepared) \
    X(PQsendPrepare) \
    X(PQsendQuery) \
    X(PQsendQueryParams) \
    X(PQsendQueryPrepared) \
    X(PQsetErrorVerbosity) \
    X(PQsetNoticeReceiver) \
    X(PQsetnonblocking) \
    X(PQsocket) \
    X(PQsslAttribute) \
    X(PQsslInUse) \
    X(PQstatus) \
    X(PQtransactionStatus) \
    LK_PQ_PIPELINE(X)
/* clang-format on */

/* NOLINTNEXTLINE: the name that it declares cannot be in parentheses */
#define X(name) __typeof__(&(name)) name;
struct lk_pq {
    LK_PQ_FUNCTIONS(X)
};
#undef X
extern struct lk_pq lk_pq;
#define LK_CLIENT lk_pq

extern struct lk_library lk_pg_library;

#ifndef LK_PG_CLIENT_C /* which has the names themselves */
#include "drivers/postgres/client_names.h"
#endif

#endif /* LK_POSTGRES_CLIENT_H */
