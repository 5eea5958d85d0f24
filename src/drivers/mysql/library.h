/*
 * library.h - the functions of the client library that this driver calls
 *
 * They are there once lk_my_library is loaded, which is the first thing to do
 * with a URL or with a connection of the application.  Each name
 * stands for a pointer; one that is missing in a list does not compile or link.
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

extern struct lk_library lk_my_library;

#ifndef LK_MYSQL_LIBRARY_C /* which has the names themselves */
#define mysql_affected_rows lk_my.mysql_affected_rows
#define mysql_character_set_name lk_my.mysql_character_set_name
#define mysql_close lk_my.mysql_close
#define mysql_errno lk_my.mysql_errno
#define mysql_error lk_my.mysql_error
#define mysql_fetch_fields lk_my.mysql_fetch_fields
#define mysql_fetch_lengths lk_my.mysql_fetch_lengths
#define mysql_fetch_row lk_my.mysql_fetch_row
#define mysql_field_count lk_my.mysql_field_count
#define mysql_free_result lk_my.mysql_free_result
#define mysql_get_client_info lk_my.mysql_get_client_info
#define mysql_get_server_info lk_my.mysql_get_server_info
#define mysql_get_server_version lk_my.mysql_get_server_version
#define mysql_get_ssl_cipher lk_my.mysql_get_ssl_cipher
#define mysql_init lk_my.mysql_init
#define mysql_next_result lk_my.mysql_next_result
#define mysql_num_fields lk_my.mysql_num_fields
#define mysql_num_rows lk_my.mysql_num_rows
#define mysql_options lk_my.mysql_options
#define mysql_options4 lk_my.mysql_options4
#define mysql_query lk_my.mysql_query
#define mysql_read_query_result lk_my.mysql_read_query_result
#define mysql_real_query lk_my.mysql_real_query
#define mysql_send_query lk_my.mysql_send_query
#define mysql_server_init lk_my.mysql_server_init
#define mysql_sqlstate lk_my.mysql_sqlstate
#define mysql_stmt_affected_rows lk_my.mysql_stmt_affected_rows
#define mysql_stmt_bind_param lk_my.mysql_stmt_bind_param
#define mysql_stmt_bind_result lk_my.mysql_stmt_bind_result
#define mysql_stmt_close lk_my.mysql_stmt_close
#define mysql_stmt_errno lk_my.mysql_stmt_errno
#define mysql_stmt_error lk_my.mysql_stmt_error
#define mysql_stmt_execute lk_my.mysql_stmt_execute
#define mysql_stmt_fetch lk_my.mysql_stmt_fetch
#define mysql_stmt_fetch_column lk_my.mysql_stmt_fetch_column
#define mysql_stmt_field_count lk_my.mysql_stmt_field_count
#define mysql_stmt_free_result lk_my.mysql_stmt_free_result
#define mysql_stmt_init lk_my.mysql_stmt_init
#define mysql_stmt_insert_id lk_my.mysql_stmt_insert_id
#define mysql_stmt_next_result lk_my.mysql_stmt_next_result
#define mysql_stmt_param_count lk_my.mysql_stmt_param_count
#define mysql_stmt_prepare lk_my.mysql_stmt_prepare
#define mysql_stmt_result_metadata lk_my.mysql_stmt_result_metadata
#define mysql_stmt_sqlstate lk_my.mysql_stmt_sqlstate
#define mysql_stmt_store_result lk_my.mysql_stmt_store_result
#define mysql_store_result lk_my.mysql_store_result
#define mysql_thread_id lk_my.mysql_thread_id
#define mysql_get_option lk_my.mysql_get_option
#define mysql_get_socket lk_my.mysql_get_socket
#define mysql_get_timeout_value_ms lk_my.mysql_get_timeout_value_ms
#define mysql_optionsv lk_my.mysql_optionsv
#define mysql_real_connect_cont lk_my.mysql_real_connect_cont
#define mysql_real_connect_start lk_my.mysql_real_connect_start
#define mysql_real_connect lk_my.mysql_real_connect
#define mysql_thread_end lk_my.mysql_thread_end
#define mysql_thread_init lk_my.mysql_thread_init
#endif

#endif /* LK_MYSQL_LIBRARY_H */
