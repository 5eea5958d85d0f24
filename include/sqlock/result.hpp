/*
 * sqlock/result.hpp - errors of sqlock.hpp: exceptions, or results by choice
 *
 * std::bad_alloc is thrown by both forms.  sqlock.hpp includes this header.
 */
#ifndef SQLOCK_RESULT_HPP
#define SQLOCK_RESULT_HPP

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

#include <sqlock.h>

namespace sqlock
{

using milliseconds = std::chrono::milliseconds;

/* As a time to wait: no limit.  Any time of more than a century means that. */
inline constexpr milliseconds forever = milliseconds::max();

/** An error.  Its code is one of sqlock.h's, such as SQLOCK_ETIMEDOUT. */
struct failure {
    int code = 0;
    int native = 0;       /* error number of the client library, or 0 */
    std::string sqlstate; /* "" when the database gave none */
    std::string message;  /* one line without any password */
    /* After an operation of stock.hpp with SQLOCK_EINSUFFICIENT: the quantity
     * that is there; -1: not known. */
    std::int64_t left = -1;
    /* After an operation on several items with SQLOCK_EINSUFFICIENT or
     * SQLOCK_ENOTFOUND: the index of the first item that was refused, from
     * 0. */
    std::size_t line = 0;

    failure() = default;
    explicit failure(const sqlock_error &error)
        : code(error.code), native(error.native), sqlstate(error.sqlstate),
          message(error.message)
    {
    }
    explicit failure(int result)
        : code(result), message(sqlock_strerror(result))
    {
    }
    failure(int result, std::string_view text) : code(result), message(text)
    {
    }
};

/** A failure as an exception. */
class error : public std::runtime_error
{
  public:
    explicit error(failure why)
        : std::runtime_error(why.message),
          why_(std::make_shared<const failure>(std::move(why)))
    {
    }
    int code() const noexcept
    {
        return why_->code;
    }
    const failure &why() const noexcept
    {
        return *why_;
    }

    /* Copies do not throw; there are no moves, which would leave nothing to
     * tell. */
    error(const error &) noexcept = default;
    error &operator=(const error &) noexcept = default;
    ~error() override = default;

  private:
    std::shared_ptr<const failure> why_;
};

namespace detail
{

[[noreturn]] inline void raise(const failure &why)
{
#if defined(__cpp_exceptions)
    throw error(why);
#else
    std::fprintf(stderr, "sqlock: %s\n", why.message.c_str());
    std::abort();
#endif
}

} /* namespace detail */

/** A value, or a failure that says why there is none.  As bool it is true if
 *  there is a value, also where that is a bool: `*came`, not `came`, is the
 *  answer of a result<bool>. */
template <class T> class [[nodiscard]] result
{
  public:
    result(T value) : state_(std::in_place_index<0>, std::move(value))
    {
    }
    result(failure why) : state_(std::in_place_index<1>, std::move(why))
    {
    }

    bool has_value() const noexcept
    {
        return state_.index() == 0;
    }
    explicit operator bool() const noexcept
    {
        return has_value();
    }

    /* The value; the behaviour is undefined where there is none, and that of
     * error() where there is one. */
    T &operator*() &
    {
        return *std::get_if<0>(&state_);
    }
    const T &operator*() const &
    {
        return *std::get_if<0>(&state_);
    }
    T &&operator*() &&
    {
        return std::move(*std::get_if<0>(&state_));
    }
    T *operator->()
    {
        return std::get_if<0>(&state_);
    }
    const T *operator->() const
    {
        return std::get_if<0>(&state_);
    }
    const failure &error() const
    {
        return *std::get_if<1>(&state_);
    }

    /* The value; throws sqlock::error where there is none. */
    T &value() &
    {
        if (!has_value())
            detail::raise(error());
        return **this;
    }
    const T &value() const &
    {
        if (!has_value())
            detail::raise(error());
        return **this;
    }
    T &&value() &&
    {
        return std::move(value());
    }

  private:
    std::variant<T, failure> state_;
};

/** Either success or a failure. */
template <> class [[nodiscard]] result<void>
{
  public:
    result() = default;
    result(failure why) : why_(std::make_shared<const failure>(std::move(why)))
    {
    }
    /* There are no moves: what was moved from must not become a success. */
    result(const result &) noexcept = default;
    result &operator=(const result &) noexcept = default;
    ~result() = default;

    bool has_value() const noexcept
    {
        return why_ == nullptr;
    }
    explicit operator bool() const noexcept
    {
        return has_value();
    }
    const failure &error() const
    {
        return *why_;
    }
    void value() const
    {
        if (!has_value())
            detail::raise(error());
    }

  private:
    std::shared_ptr<const failure> why_;
};

namespace detail
{

/** A copy of a text that ends with NUL, for C, or NULL.  A text with a NUL byte
 *  inside is not valid: C would read it only up to there. */
class c_text
{
  public:
    explicit c_text(std::optional<std::string_view> from) : copy_(from)
    {
    }
    bool valid() const noexcept
    {
        return !copy_ || copy_->find('\0') == std::string::npos;
    }
    const char *get() const noexcept
    {
        return copy_ ? copy_->c_str() : nullptr;
    }

  private:
    std::optional<std::string> copy_;
};

inline failure refused()
{
    return {SQLOCK_EINVAL, "a text has a NUL byte inside"};
}

/* Convert an argument for C, and tell whether C may have it. */
inline const char *given(const c_text &text)
{
    return text.get();
}
template <class T> T given(T argument)
{
    return argument;
}
inline bool may_be_given(const c_text &text)
{
    return text.valid();
}
template <class T> bool may_be_given(const T &)
{
    return true;
}

/** Call a function of C, whose last argument is the error. */
template <class Function, class... Arguments>
result<void> call(Function function, const Arguments &...arguments)
{
    sqlock_error why = {};

    if (!(may_be_given(arguments) && ...))
        return refused();
    const int code = function(given(arguments)..., &why);
    if (code == 0)
        return {};
    return why.code == code ? failure(why) : failure(code);
}

/** The value that a call has made, which is copied after the call. */
template <class T> result<T> made(const result<void> &came, T &value)
{
    if (!came)
        return came.error();
    return std::move(value);
}

/** Whether a row was there, or a failure but SQLOCK_ENOTFOUND. */
inline result<bool> found(const result<void> &came)
{
    if (!came && came.error().code != SQLOCK_ENOTFOUND)
        return came.error();
    return came.has_value();
}

/** The failure of an object that was moved from, or has ended. */
inline failure empty()
{
    return {SQLOCK_EINVAL, "the object was moved from, or has ended"};
}

/* Convert a time to milliseconds, rounded up, so that no wait is shorter than
 * was asked for. */
template <class Rep, class Period>
std::int64_t to_ms(std::chrono::duration<Rep, Period> time)
{
    if (!(time > time.zero())) /* nor NaN */
        return 0;
    /* As seconds of double, which no time overflows. */
    if (std::chrono::duration<double>(time) > std::chrono::hours(24 * 36525))
        return SQLOCK_FOREVER;
    return std::chrono::ceil<milliseconds>(time).count();
}

/* As to_ms(), from now until that time, which may be further away than any
 * duration can tell. */
template <class Clock, class Duration>
std::int64_t until_ms(std::chrono::time_point<Clock, Duration> until)
{
    using seconds = std::chrono::duration<double>;
    const auto now = Clock::now();
    const seconds about =
        seconds(until.time_since_epoch()) - seconds(now.time_since_epoch());

    if (about < std::chrono::hours(-1))
        return 0;
    if (about > std::chrono::hours(24 * 36525))
        return SQLOCK_FOREVER;
    return to_ms(until - now);
}

/* Convert a time to an option's milliseconds.  Zero is the default; a time
 * below it, as of a moment that has passed, becomes the shortest, and one that
 * is too long the longest, 49 days. */
inline std::uint32_t to_option(milliseconds time)
{
    if (time.count() < 0)
        return 1;
    return time.count() < UINT32_MAX ? static_cast<std::uint32_t>(time.count())
                                     : UINT32_MAX;
}

} /* namespace detail */

/** A time to wait: any std::chrono::duration. */
struct wait_time {
    std::int64_t ms;

    template <class Rep, class Period>
    wait_time(std::chrono::duration<Rep, Period> time) : ms(detail::to_ms(time))
    {
    }
};

} /* namespace sqlock */

#endif /* SQLOCK_RESULT_HPP */
