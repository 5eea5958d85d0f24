/*
 * hash.h - uthash, which would end the process for want of memory: here, what
 * could not be added has no table (hh.tbl is NULL)
 */
#ifndef LK_HASH_H
#define LK_HASH_H

#define HASH_NONFATAL_OOM 1
#include <uthash.h>

#endif
