/*
 * sqlock/tx.hpp - transactions that a lease guards; tx.h has the functions of C
 * and their codes
 *
 * A transaction that is not committed is rolled back by its destructor.  A
 * lease that ends before the transaction that guards it is released with that.
 */
#ifndef SQLOCK_TX_HPP
#define SQLOCK_TX_HPP

#include <array>
#include <cstdio>
#include <exception>
#include <initializer_list>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include <sqlock.hpp>
#include <sqlock/many.hpp>
#include <sqlock/tx.h>
#include <sqlock/value.hpp>

namespace sqlock
{

/** A table of the application, as sqlock_table. */
struct table {
    std::string name;
    std::string key_column;
    std::string version_column;
    sqlock_version_kind version_kind = SQLOCK_VERSION_INTEGER;
    std::string fence_column;
    std::string fence_owner_column;

    /** False where a name has a NUL byte inside. */
    bool valid() const noexcept
    {
        for (const std::string *text : {&name, &key_column, &version_column,
                                        &fence_column, &fence_owner_column})
            if (text->find('\0') != std::string::npos)
                return false;
        return true;
    }
    /** Return this table for C, valid as long as this object. */
    sqlock_table native() const
    {
        const auto set = [](const std::string &text) {
            return text.empty() ? nullptr : text.c_str();
        };
        sqlock_table out = SQLOCK_TABLE_INIT;

        out.name = set(name);
        out.key_column = set(key_column);
        out.version_column = set(version_column);
        out.version_kind = version_kind;
        out.fence_column = set(fence_column);
        out.fence_owner_column = set(fence_owner_column);
        return out;
    }
};

/** One assignment of an update, column = value. */
struct assignment {
    std::string column;
    value to;
};

/* ----------------------------------------------------------- transaction -- */

/** A transaction, rolled back with the end of this object unless it was
 *  committed.  One thread at a time uses it. */
class transaction
{
  public:
    /** Begin a transaction on a connection of the registry. */
    static transaction begin(const registry &of)
    {
        return begin(std::nothrow, of).value();
    }
    static result<transaction> begin(const std::nothrow_t &, const registry &of)
    {
        return begun(of, sqlock_tx_begin);
    }

    /** Use the application's own PGconn, MYSQL or sqlite3; join the transaction
     *  that is open there, or begin one. */
    static transaction adopt(const registry &of, void *connection)
    {
        return adopt(std::nothrow, of, connection).value();
    }
    static result<transaction> adopt(const std::nothrow_t &, const registry &of,
                                     void *connection)
    {
        return begun(of, sqlock_tx_adopt, connection);
    }

    /** Commit it.  SQLOCK_EUNCERTAIN: it may be committed or not; any other
     *  failure: it was rolled back. */
    void commit()
    {
        commit(std::nothrow).value();
    }
    result<void> commit(const std::nothrow_t &)
    {
        return over(sqlock_tx_commit);
    }
    void rollback()
    {
        rollback(std::nothrow).value();
    }
    result<void> rollback(const std::nothrow_t &)
    {
        return over(sqlock_tx_rollback);
    }
    /** Leave the transaction of an adopted connection to the application.  If
     *  the connection is not adopted, this fails with SQLOCK_EINVAL, and the
     *  transaction goes on. */
    void leave()
    {
        leave(std::nothrow).value();
    }
    result<void> leave(const std::nothrow_t &)
    {
        const auto came = detail::call(sqlock_tx_leave, native_handle());

        if (came || came.error().code != SQLOCK_EINVAL)
            (void)tx_.release();
        return came;
    }

    /** Run one statement, with a `?` for each parameter: values, or a vector
     *  of values.  SQLOCK_ETIMEDOUT: it took longer than the registry's
     *  statement_timeout. */
    template <class... Parameters>
    rows execute(std::string_view sql, const Parameters &...parameters)
    {
        return execute(std::nothrow, sql, parameters...).value();
    }
    template <class... Parameters>
    result<rows> execute(const std::nothrow_t &, std::string_view sql,
                         const Parameters &...parameters)
    {
        return execute(std::nothrow, sql,
                       std::vector<value>{value(parameters)...});
    }
    result<rows> execute(const std::nothrow_t &, std::string_view sql,
                         const std::vector<value> &parameters)
    {
        std::vector<sqlock_value> natives;
        rows out;

        for (const value &parameter : parameters) {
            if (!parameter.valid())
                return detail::refused();
            natives.push_back(parameter.native());
        }
        return detail::made(detail::call(sqlock_tx_execute, native_handle(),
                                         detail::c_text(sql), natives.data(),
                                         natives.size(), out.native_handle()),
                            out);
    }

    /** Let the database check that a lease is still held, and keep anybody from
     *  taking the lock before the transaction ends.  If that is refused, also
     *  since it is held no more, the transaction does not commit. */
    template <class Held> void guard(const Held &held)
    {
        guard(std::nothrow, held).value();
    }
    template <class Held>
    result<void> guard(const std::nothrow_t &, const Held &held)
    {
        return guard_lock(held.native_handle());
    }
    result<void> guard(const std::nothrow_t &, const leases &held)
    {
        if (held.empty())
            return guard_lock(nullptr);
        for (std::size_t i = 0; i < held.size(); i++)
            if (auto came = guard_lock(held.native_handle(i)); !came)
                return came;
        return {};
    }

    /** Lock names until the transaction ends.  These locks have nothing to do
     *  with the leases of the same names. */
    void lock(const name_list &names, wait_time wait)
    {
        lock(std::nothrow, names, wait).value();
    }
    result<void> lock(const std::nothrow_t &, const name_list &names,
                      wait_time wait)
    {
        std::vector<const char *> texts;

        for (const detail::c_text &name : names.all()) {
            if (!name.valid())
                return detail::refused();
            texts.push_back(name.get());
        }
        return detail::call(sqlock_tx_lock, native_handle(), texts.data(),
                            texts.size(), wait.ms, false, nullptr);
    }

    /** Lock a row FOR UPDATE, or FOR SHARE; false if there is no such row. */
    bool lock_row(const table &of, const value &key, wait_time wait,
                  bool share = false)
    {
        return lock_row(std::nothrow, of, key, wait, share).value();
    }
    result<bool> lock_row(const std::nothrow_t &, const table &of,
                          const value &key, wait_time wait, bool share = false)
    {
        return detail::found(
            with_row(sqlock_tx_lock_row, of, key, share, wait.ms));
    }

    /** Refuse an old token: SQLOCK_ECONFLICT where a later holder was here. */
    void fence(const table &of, const value &key, std::int64_t token,
               std::string_view owner)
    {
        fence(std::nothrow, of, key, token, owner).value();
    }
    result<void> fence(const std::nothrow_t &, const table &of,
                       const value &key, std::int64_t token,
                       std::string_view owner)
    {
        return with_row(sqlock_tx_fence, of, key, token, detail::c_text(owner));
    }

    /** Read the version of a row. */
    sqlock_row_version version(const table &of, const value &key)
    {
        return version(std::nothrow, of, key).value();
    }
    result<sqlock_row_version> version(const std::nothrow_t &, const table &of,
                                       const value &key)
    {
        sqlock_row_version out = {};

        return detail::made(with_row(sqlock_tx_version, of, key, &out), out);
    }

    /** Update a row that still has the expected version; SQLOCK_ECONFLICT where
     *  it has another.  Return the next version. */
    sqlock_row_version update(const table &of, const value &key,
                              const sqlock_row_version &expected,
                              const std::vector<assignment> &set)
    {
        return update(std::nothrow, of, key, expected, set).value();
    }
    result<sqlock_row_version> update(const std::nothrow_t &, const table &of,
                                      const value &key,
                                      const sqlock_row_version &expected,
                                      const std::vector<assignment> &set)
    {
        std::vector<sqlock_assignment> natives;
        sqlock_row_version next = {};

        for (const assignment &one : set) {
            if (!one.to.valid() || one.column.find('\0') != std::string::npos)
                return detail::refused();
            natives.push_back({one.column.c_str(), one.to.native()});
        }
        return detail::made(with_row(sqlock_tx_update, of, key, &expected,
                                     natives.data(), natives.size(), &next),
                            next);
    }

    /** The transaction for functions of tx.h; NULL once it has ended. */
    sqlock_tx *native_handle() const noexcept
    {
        return tx_.get();
    }

  private:
    friend struct retry_access;

    struct ender {
        std::shared_ptr<sqlock_registry> owner; /* empty: retry() ends it */

        void operator()(sqlock_tx *begun) noexcept
        {
            if (owner)
                detail::cleaner::run([begun, kept = std::move(owner)] {
                    (void)sqlock_tx_rollback(begun, nullptr);
                });
        }
    };
    std::unique_ptr<sqlock_tx, ender> tx_; /* empty: over */

    transaction(std::shared_ptr<sqlock_registry> owner, sqlock_tx *begun)
        : tx_(begun, ender{std::move(owner)})
    {
    }

    template <class Begin, class... Arguments>
    static result<transaction> begun(const registry &of, Begin begin,
                                     Arguments... arguments)
    {
        sqlock_tx *tx = nullptr;
        const auto came =
            detail::call(begin, &tx, of.native_handle(), arguments...);

        if (!came)
            return came.error();
        return transaction(detail::access::share(of), tx);
    }
    result<void> over(int (*finish)(sqlock_tx *, sqlock_error *))
    {
        if (!tx_)
            return detail::empty();
        if (!tx_.get_deleter().owner)
            return failure(SQLOCK_EINVAL, "retry() ends its transaction");
        return detail::call(finish, tx_.release());
    }
    result<void> guard_lock(sqlock_lock *lock)
    {
        const auto came = detail::call(sqlock_tx_guard, native_handle(), lock);

        return lock != nullptr ? came : failure(SQLOCK_EOWNER);
    }
    template <class Function, class... Arguments>
    result<void> with_row(Function function, const table &of, const value &key,
                          const Arguments &...arguments)
    {
        const sqlock_table native = of.native();
        const sqlock_value native_key = key.native();

        if (!of.valid() || !key.valid())
            return detail::refused();
        return detail::call(function, native_handle(), &native, &native_key,
                            arguments...);
    }
};

/* ----------------------------------------------------------------- retry -- */

/** Limits of retry(); zero means the default, a time below zero 1 ms. */
struct retry_options {
    unsigned attempts = 0;
    milliseconds deadline{0};
    milliseconds longest_pause{0};
};

/** Implementation of the functions below. */
struct retry_access {
    template <class Work>
    static result<void> run(const registry &of, Work &work,
                            const retry_options &options)
    {
        struct context {
            Work *work;
#if defined(__cpp_exceptions)
            std::exception_ptr other; /* not a sqlock::error */
#endif
        };
        context with = {};
        sqlock_retry_options how = SQLOCK_RETRY_INIT;

        with.work = &work;
        how.attempts = options.attempts;
        how.deadline_ms = detail::to_option(options.deadline);
        how.pause_ms = detail::to_option(options.longest_pause);
        const auto came = detail::call(
            sqlock_tx_retry, of.native_handle(),
            +[](void *passed, sqlock_tx *tx, sqlock_error *err) {
                auto *in = static_cast<context *>(passed);
                transaction open(nullptr, tx);
#if defined(__cpp_exceptions)
                try {
                    return attempt(*in->work, open, err);
                } catch (const error &thrown) {
                    return told(thrown.why(), err);
                } catch (...) {
                    in->other = std::current_exception();
                    return static_cast<int>(SQLOCK_ECANCELED);
                }
#else
                return attempt(*in->work, open, err);
#endif
            },
            &with, &how);
#if defined(__cpp_exceptions)
        if (with.other)
            std::rethrow_exception(with.other);
#endif
        return came;
    }

  private:
    /* Copy the failure to *err.  Return its code. */
    static int told(const failure &came, sqlock_error *err)
    {
        if (err != nullptr) {
            err->code = came.code;
            err->native = came.native;
            std::snprintf(err->sqlstate, sizeof err->sqlstate, "%s",
                          came.sqlstate.c_str());
            std::snprintf(err->message, sizeof err->message, "%s",
                          came.message.c_str());
        }
        return came.code < 0 ? came.code : SQLOCK_EINVAL;
    }
    template <class Work>
    static int attempt(Work &work, transaction &tx, sqlock_error *err)
    {
        if constexpr (std::is_void_v<decltype(work(tx))>) {
            work(tx);
        } else {
            const result<void> came = work(tx);
            if (!came)
                return told(came.error(), err);
        }
        return 0;
    }
};

/**
 * Run work(tx) in a transaction, and commit it.  Try again after
 * SQLOCK_ECONFLICT, SQLOCK_ERETRY, SQLOCK_EBUSY and SQLOCK_ETIMEDOUT of the
 * commit, or of the work, which throws sqlock::error or returns a result<void>.
 * Any other exception of the work rolls back, and is passed on.
 */
template <class Work>
result<void> retry(const std::nothrow_t &, const registry &of, Work &&work,
                   const retry_options &options = {})
{
    return retry_access::run(of, work, options);
}
template <class Work>
void retry(const registry &of, Work &&work, const retry_options &options = {})
{
    retry_access::run(of, work, options).value();
}

} /* namespace sqlock */

#endif /* SQLOCK_TX_HPP */
