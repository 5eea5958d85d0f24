/*
 * info_row.h - the columns of an "info" row, which several statements return
 * (dialect.h)
 */
#ifndef LK_INFO_ROW_H
#define LK_INFO_ROW_H

enum {
    LK_INFO_KEY,       /* LOCK_KEY, text */
    LK_INFO_CLIENT,    /* CLIENT_ID, text or null */
    LK_INFO_TOKEN,     /* integer or null */
    LK_INFO_REMAINING, /* us that remain, integer, negative when over */
    LK_INFO_ACQUIRED,  /* us at which it was acquired, integer */
    LK_INFO_EXPIRES,   /* us at which it expires, integer */
    LK_INFO_NAME,      /* LOCK_NAME, text or null */
    LK_INFO_HOLDER,    /* text or null */
    LK_INFO_QUEUE,     /* text or null */
    LK_INFO_SHARERS,   /* text or null */
    LK_INFO_LEADER,    /* text or null */
    LK_INFO_COLUMNS,   /* number of columns */

    LK_INFO_REGION = LK_INFO_COLUMNS /* text; of FIND */
};

#endif
