/*
 * request.h - acquire and release without a thread of the caller
 */
#ifndef LK_REQUEST_H
#define LK_REQUEST_H

struct sqlock_registry;

/* Abandon all requests, and wait until they are gone.  No more may be made. */
void lk_requests_end(struct sqlock_registry *registry);

#endif
