/*
 * sqlock/once.hpp - work that is done once and never again
 *
 *     if (sqlock::do_once(registry, "migration/17", sqlock::forever,
 *                         [&](const sqlock::lease &held) { migrate(held); }))
 *         std::puts("done now");
 *
 * once.h documents the functions of C that these call, and their codes.
 */
#ifndef SQLOCK_ONCE_HPP
#define SQLOCK_ONCE_HPP

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <sqlock.hpp>
#include <sqlock/once.h>

namespace sqlock
{

/** One record of work that was done. */
struct once_record {
    std::optional<std::string> name; /* nullopt: not known */
    std::string key;                 /* LOCK_KEY of the name */
    std::string client_id;           /* of the lease under which it was done */
    std::int64_t token = 0;          /* fencing token of that lease */
    /* the time at which it was recorded, on the database's clock */
    std::chrono::time_point<std::chrono::system_clock,
                            std::chrono::microseconds>
        done_at;
};

namespace detail
{

/* Call a function of C on the record of a name; false where there is none. */
inline result<bool> find_record(const registry &of, std::string_view name,
                                int (*function)(sqlock_registry *, const char *,
                                                sqlock_error *))
{
    const c_text text(name);
    sqlock_error why = {};

    if (of.native_handle() == nullptr)
        return empty();
    if (!text.valid())
        return c_text::refused();
    const int code = function(of.native_handle(), text.get(), &why);
    if (code != 0 && code != SQLOCK_ENOTFOUND)
        return result_of(code, why).error();
    return code == 0;
}

} /* namespace detail */

/** Check whether a name is recorded as done, in the registry's region.  With
 *  std::nothrow the result<bool> converts to true if that is known; ask `*came`
 *  for the answer. */
inline result<bool> is_done(const std::nothrow_t &, const registry &of,
                            std::string_view name)
{
    return detail::find_record(of, name, sqlock_once_check);
}
inline bool is_done(const registry &of, std::string_view name)
{
    return is_done(std::nothrow, of, name).value();
}

/** Record that the work of a lock is done, in a transaction that guards the
 *  lease: nothing is recorded if the lease is over. */
inline result<void> record_done(const std::nothrow_t &, const lease &held)
{
    sqlock_error why = {};

    if (held.native_handle() == nullptr)
        return failure(SQLOCK_EOWNER);
    return detail::result_of(sqlock_once_record(held.native_handle(), &why),
                             why);
}
inline void record_done(const lease &held)
{
    record_done(std::nothrow, held).value();
}

/**
 * Do the work of a name unless it is recorded as done: check, acquire the lock
 * of the name, check again, call work(lease), record it and release the lock.
 *
 * The exceptions of the work pass through, and nothing is recorded then.
 * record_done() may throw after the work was done: SQLOCK_ELOST and
 * SQLOCK_EEXPIRED say that the lease was over; after SQLOCK_EUNCERTAIN ask
 * is_done().
 *
 * @return true: this call has done the work; false: it had been done before
 */
template <class Rep, class Period, class Work>
bool do_once(const registry &of, std::string_view name,
             std::chrono::duration<Rep, Period> wait, Work &&work,
             acquire_options options = {})
{
    if (is_done(of, name))
        return false;
    auto held = of.acquire(name, wait, std::move(options));
    if (is_done(of, name))
        return false;
    std::forward<Work>(work)(std::as_const(held));
    record_done(held);
    return true;
}

/** Read the records of the registry's region, ordered by name, or by key where
 *  the name is not known. */
inline result<std::vector<once_record>> list_done(const std::nothrow_t &,
                                                  const registry &of)
{
    sqlock_once_info *rows = nullptr;
    std::size_t count = 0;
    sqlock_error why = {};

    if (of.native_handle() == nullptr)
        return detail::empty();
    const int code =
        sqlock_once_list(of.native_handle(), nullptr, &rows, &count, &why);
    if (code != 0)
        return detail::result_of(code, why).error();
    const auto free = [count](sqlock_once_info *all) {
        sqlock_once_free(all, count);
    };
    const std::unique_ptr<sqlock_once_info, decltype(free)> memory(rows, free);
    std::vector<once_record> out(count);
    for (std::size_t i = 0; i < count; i++) {
        if (rows[i].name != nullptr)
            out[i].name = rows[i].name;
        out[i].key = rows[i].key;
        out[i].client_id = rows[i].client_id;
        out[i].token = rows[i].token;
        out[i].done_at += std::chrono::microseconds(rows[i].done_at_us);
    }
    return out;
}
inline std::vector<once_record> list_done(const registry &of)
{
    return list_done(std::nothrow, of).value();
}

/** Remove a record, so that the work may be done again; false where there was
 *  none.  With std::nothrow the result<bool> converts to true in both cases;
 *  ask `*came` for the answer. */
inline result<bool> forget_done(const std::nothrow_t &, const registry &of,
                                std::string_view name)
{
    return detail::find_record(of, name, sqlock_once_forget);
}
inline bool forget_done(const registry &of, std::string_view name)
{
    return forget_done(std::nothrow, of, name).value();
}

/** Create the table of records where it does not exist yet. */
inline result<void> create_once_schema(const std::nothrow_t &,
                                       std::string_view url,
                                       const registry_options &options = {})
{
    return detail::create_tables(url, options.native(),
                                 sqlock_once_schema_create);
}
inline void create_once_schema(std::string_view url,
                               const registry_options &options = {})
{
    create_once_schema(std::nothrow, url, options).value();
}

} /* namespace sqlock */

#endif /* SQLOCK_ONCE_HPP */
