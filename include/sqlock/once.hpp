/*
 * sqlock/once.hpp - work that is done once and never again; once.h has the
 * functions of C and their codes
 */
#ifndef SQLOCK_ONCE_HPP
#define SQLOCK_ONCE_HPP

#include <string_view>
#include <utility>

#include <sqlock.hpp>
#include <sqlock/once.h>

namespace sqlock
{

/** Check whether a name is recorded as done, in the registry's region. */
inline result<bool> is_done(const std::nothrow_t &, const registry &of,
                            std::string_view name)
{
    return detail::found(detail::call(sqlock_once_check, of.native_handle(),
                                      detail::c_text(name)));
}
inline bool is_done(const registry &of, std::string_view name)
{
    return is_done(std::nothrow, of, name).value();
}

/** Record that the work of a lock is done, in a transaction that guards the
 *  lease: nothing is recorded if the lease is over. */
inline result<void> record_done(const std::nothrow_t &, const lease &held)
{
    if (held.native_handle() == nullptr)
        return failure(SQLOCK_EOWNER);
    return detail::call(sqlock_once_record, held.native_handle());
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
template <class Work>
bool do_once(const registry &of, std::string_view name, wait_time wait,
             Work &&work, acquire_options options = {})
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

/** Create the table of records where it does not exist yet. */
inline result<void> create_once_schema(const std::nothrow_t &,
                                       std::string_view url,
                                       const registry_options &options = {})
{
    const sqlock_options how = options.native();

    if (!options.valid())
        return detail::refused();
    return detail::call(sqlock_once_schema_create, detail::c_text(url), &how);
}
inline void create_once_schema(std::string_view url,
                               const registry_options &options = {})
{
    create_once_schema(std::nothrow, url, options).value();
}

} /* namespace sqlock */

#endif /* SQLOCK_ONCE_HPP */
