/*
 * request.h - acquiring and releasing without a thread of the caller's
 */
#ifndef LK_REQUEST_H
#define LK_REQUEST_H

struct sqlock_registry;

/* Abandon all that are there, and wait until they are gone; no more may
 * come. */
void lk_requests_end(struct sqlock_registry *registry);

#endif
