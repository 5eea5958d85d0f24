/*
 * library.h - the functions of the client library that this driver calls
 *
 * They are there once lk_my_library is loaded, which is the first thing to do
 * with a URL or with a connection of the application.  Each name stands for a
 * pointer, by a macro that the build makes of the list; one that is missing
 * there does not link.
 */
#ifndef LK_MYSQL_LIBRARY_H
#define LK_MYSQL_LIBRARY_H

#include <mysql.h>

#include "drivers/library.h"

/* clang-format off */
#ifdef MARIADB_PACKAGE_VERSION_ID
#define LK_MY_OWN(X) \
    X(mysql_get_option) \
    X(mysql_get_socket) \
    X(mysql_get_timeout_value_ms) \
    X(mysql_optionsv) \
    X(mysql_real_connect_cont) \
    X(mysql_real_connect_start)
#else
#define LK_MY_OWN(X) \
    X(mysql_real_connect) \
    X(mysql_thread_end) \
    X(mysql_thread_init)
#endif

#define LK_MY_FUNCTIONS(X) \
    X(mysql_affected_rows) \
    X(mysql_character_set_name) \
    X(mysql_close) \
    X(mysql_errno) \
    X(mysql_error) \
    X(mysql_fetch_fields) \
    X(mysql_fetch_lengths) \
    X(mysql_fetch_row) \
    X(mysql_field_count) \
    X(mysql_free_result) \
    X(mysql_get_client_info) \
    X(mysql_get_server_info) \
    X(mysql_get_server_version) \
    X(mysql_get_ssl_cipher) \
    X(mysql_init) \
    X(mysql_next_result) \
    X(mysql_num_fields) \
    X(mysql_num_rows) \
    X(mysql_options) \
    X(mysql_options4) \
    X(mysql_query) \
    X(mysql_read_query_result) \
    X(mysql_real_query) \
    X(mysql_send_query) \
    X(mysql_server_init) \
    X(mysql_sqlstate) \
    X(mysql_stmt_affected_rows) \
    X(mysql_stmt_bind_param) \
    X(mysql_stmt_bind_result) \
    X(mysql_stmt_close) \
    X(mysql_stmt_errno) \
    X(mysql_stmt_error) \
    X(mysql_stmt_execute) \
    X(mysql_stmt_fetch) \
    X(mysql_stmt_fetch_column) \
    X(mysql_stmt_field_count) \
    X(mysql_stmt_free_result) \
    X(mysql_stmt_init) \
    X(mysql_stmt_insert_id) \
    X(mysql_stmt_next_result) \
    X(mysql_stmt_param_count) \
    X(mysql_stmt_prepare) \
    X(mysql_stmt_result_metadata) \
    X(mysql_stmt_sqlstate) \
    X(mysql_stmt_store_result) \
    X(mysql_store_result) \
    X(mysql_thread_id) \
    LK_MY_OWN(X)
/* clang-format on */

/* NOLINTNEXTLINE: the name that it declares cannot be in parentheses */
#define X(name) __typeof__(&(name)) name;
struct lk_my {
    LK_MY_FUNCTIONS(X)
};
#undef X
extern struct lk_my lk_my;
#define LK_CLIENT lk_my

extern struct lk_library lk_my_library;

#ifndef LK_MYSQL_LIBRARY_C /* which has the names themselves */
#include "drivers/mysql/library_names.h"
#endif

#endif /* LK_MYSQL_LIBRARY_H */
