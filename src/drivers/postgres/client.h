/*
 * client.h - the functions of libpq that this driver calls
 *
 * They are there once lk_pg_library is loaded, which is the first thing to do
 * with a URL or with a connection of the application.  Each name
 * stands for a pointer; one that is missing in a list does not compile or link.
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

extern struct lk_library lk_pg_library;

#ifndef LK_PG_CLIENT_C /* which has the names themselves */
#define PQbackendPID lk_pq.PQbackendPID
#define PQclear lk_pq.PQclear
#define PQcmdStatus lk_pq.PQcmdStatus
#define PQcmdTuples lk_pq.PQcmdTuples
#define PQconnectPoll lk_pq.PQconnectPoll
#define PQconnectStartParams lk_pq.PQconnectStartParams
#define PQconnectionNeedsPassword lk_pq.PQconnectionNeedsPassword
#define PQconninfo lk_pq.PQconninfo
#define PQconninfoFree lk_pq.PQconninfoFree
#define PQconninfoParse lk_pq.PQconninfoParse
#define PQconsumeInput lk_pq.PQconsumeInput
#define PQerrorMessage lk_pq.PQerrorMessage
#define PQfinish lk_pq.PQfinish
#define PQflush lk_pq.PQflush
#define PQfreemem lk_pq.PQfreemem
#define PQftype lk_pq.PQftype
#define PQgetResult lk_pq.PQgetResult
#define PQgetisnull lk_pq.PQgetisnull
#define PQgetlength lk_pq.PQgetlength
#define PQgetvalue lk_pq.PQgetvalue
#define PQhost lk_pq.PQhost
#define PQhostaddr lk_pq.PQhostaddr
#define PQisBusy lk_pq.PQisBusy
#define PQlibVersion lk_pq.PQlibVersion
#define PQnfields lk_pq.PQnfields
#define PQnotifies lk_pq.PQnotifies
#define PQntuples lk_pq.PQntuples
#define PQparameterStatus lk_pq.PQparameterStatus
#define PQport lk_pq.PQport
#define PQresultErrorField lk_pq.PQresultErrorField
#define PQresultErrorMessage lk_pq.PQresultErrorMessage
#define PQresultStatus lk_pq.PQresultStatus
#define PQsendDescribePrepared lk_pq.PQsendDescribePrepared
#define PQsendPrepare lk_pq.PQsendPrepare
#define PQsendQuery lk_pq.PQsendQuery
#define PQsendQueryParams lk_pq.PQsendQueryParams
#define PQsendQueryPrepared lk_pq.PQsendQueryPrepared
#define PQsetErrorVerbosity lk_pq.PQsetErrorVerbosity
#define PQsetNoticeReceiver lk_pq.PQsetNoticeReceiver
#define PQsetnonblocking lk_pq.PQsetnonblocking
#define PQsocket lk_pq.PQsocket
#define PQsslAttribute lk_pq.PQsslAttribute
#define PQsslInUse lk_pq.PQsslInUse
#define PQstatus lk_pq.PQstatus
#define PQtransactionStatus lk_pq.PQtransactionStatus
#define PQenterPipelineMode lk_pq.PQenterPipelineMode
#define PQexitPipelineMode lk_pq.PQexitPipelineMode
#define PQpipelineStatus lk_pq.PQpipelineStatus
#define PQpipelineSync lk_pq.PQpipelineSync
#endif

#endif /* LK_POSTGRES_CLIENT_H */
