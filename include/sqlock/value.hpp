/*
 * sqlock/value.hpp - values of SQL statements, and their results
 */
#ifndef SQLOCK_VALUE_HPP
#define SQLOCK_VALUE_HPP

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include <sqlock/result.hpp>
#include <sqlock/value.h>

namespace sqlock
{

/** A parameter of a statement: an integer, a text or null.  It owns a copy of
 *  its text. */
class value
{
  public:
    value(std::nullptr_t = nullptr)
    {
    }
    template <class Integer,
              std::enable_if_t<std::is_integral_v<Integer>, int> = 0>
    value(Integer integer) : type_(SQLOCK_INT64)
    {
        /* A number of more than 63 bits is sent as text, so that the database
         * accepts or refuses it by the type of its column. */
        if constexpr (std::is_unsigned_v<Integer> &&
                      sizeof(Integer) >= sizeof(std::int64_t)) {
            if (integer > static_cast<Integer>(INT64_MAX)) {
                type_ = SQLOCK_TEXT;
                text_ = std::to_string(integer);
                return;
            }
        }
        integer_ = static_cast<std::int64_t>(integer);
    }
    value(std::string text) : type_(SQLOCK_TEXT), text_(std::move(text))
    {
    }
    value(std::string_view text) : value(std::string(text))
    {
    }
    /** Make a value of a text that ends with NUL; a null pointer makes null. */
    value(const char *text)
    {
        if (text != nullptr) {
            type_ = SQLOCK_TEXT;
            text_ = text;
        }
    }
    template <class T>
    value(const std::optional<T> &from) : value(from ? value(*from) : value())
    {
    }

    /** This value for C, which refers to the text of this object. */
    sqlock_value native() const
    {
        sqlock_value out = {};

        out.type = type_;
        out.integer = integer_;
        if (type_ == SQLOCK_TEXT) {
            out.text = text_.c_str();
            out.length = text_.size();
        }
        return out;
    }
    /** Whether the text has no NUL byte inside; statements refuse a text with
     *  one, by SQLOCK_EINVAL. */
    bool valid() const noexcept
    {
        return text_.find('\0') == std::string::npos;
    }

  private:
    sqlock_type type_ = SQLOCK_NULL;
    std::int64_t integer_ = 0;
    std::string text_;
};

/** The rows that a statement returned, or the number of rows that it affected.
 *  Rows and columns count from 0; a cell that is not there is refused with
 *  SQLOCK_EINVAL. */
class rows
{
  public:
    rows() = default;
    rows(rows &&other) noexcept
        : result_(std::exchange(other.result_, sqlock_result{}))
    {
    }
    rows &operator=(rows &&other) noexcept
    {
        if (this != &other) {
            sqlock_result_clear(&result_);
            result_ = std::exchange(other.result_, sqlock_result{});
        }
        return *this;
    }
    ~rows()
    {
        sqlock_result_clear(&result_);
    }

    std::size_t size() const noexcept
    {
        return result_.rows;
    }
    bool empty() const noexcept
    {
        return result_.rows == 0;
    }
    std::size_t columns() const noexcept
    {
        return result_.columns;
    }
    /** The number of rows that were inserted, changed or deleted. */
    std::int64_t affected() const noexcept
    {
        return result_.affected;
    }

    /** A cell as text, also where it is an integer; nullopt where it is
     *  null. */
    std::optional<std::string> text(std::size_t row, std::size_t column) const
    {
        const sqlock_value &cell = at(row, column);

        if (cell.type == SQLOCK_NULL)
            return std::nullopt;
        if (cell.type == SQLOCK_INT64)
            return std::to_string(cell.integer);
        return std::string(cell.text, cell.length);
    }
    /** A cell as an integer; nullopt where it is null.  A text is converted;
     *  one that is no integer of 64 bits is refused with SQLOCK_EINVAL. */
    std::optional<std::int64_t> integer(std::size_t row,
                                        std::size_t column) const
    {
        const sqlock_value &cell = at(row, column);

        if (cell.type == SQLOCK_NULL)
            return std::nullopt;
        if (cell.type == SQLOCK_INT64)
            return cell.integer;
        char *end = nullptr;
        errno = 0;
        const long long parsed = std::strtoll(cell.text, &end, 10);
        if (end == cell.text || *end != '\0' || errno != 0)
            detail::raise(failure(SQLOCK_EINVAL, "the cell is no integer"));
        return parsed;
    }

    /** The result for functions of value.h and tx.h; owned by this object. */
    sqlock_result *native_handle() noexcept
    {
        return &result_;
    }

  private:
    sqlock_result result_ = {};

    const sqlock_value &at(std::size_t row, std::size_t column) const
    {
        if (row >= result_.rows || column >= result_.columns)
            detail::raise(failure(SQLOCK_EINVAL, "there is no such cell"));
        return result_.cells[row * result_.columns + column];
    }
};

} /* namespace sqlock */

#endif /* SQLOCK_VALUE_HPP */
