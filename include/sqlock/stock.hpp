/*
 * sqlock/stock.hpp - stock that never oversells; stock.h has the functions of C
 * and their codes
 *
 * After SQLOCK_EINSUFFICIENT sqlock::failure has the quantity that is left, and
 * the index of the item.  An operation that is given a transaction becomes part
 * of it: that transaction commits the change, or rolls it back.
 */
#ifndef SQLOCK_STOCK_HPP
#define SQLOCK_STOCK_HPP

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <sqlock.hpp>
#include <sqlock/stock.h>
#include <sqlock/tx.hpp>

namespace sqlock
{

/** Options of a stock, those of sqlock_stock_options; zero and "" mean the
 *  default, a time below zero 1 ms. */
struct stock_options {
    sqlock_stock_strategy strategy = SQLOCK_STOCK_CONDITIONAL;
    std::string table;
    std::string item_column;
    std::string quantity_column;
    std::string version_column;
    unsigned batch = 0;
    unsigned attempts = 0;
    milliseconds deadline{0};

    /** Whether no text has a NUL byte inside; a stock with one is refused, by
     *  SQLOCK_EINVAL. */
    bool valid() const noexcept
    {
        for (const std::string *text :
             {&table, &item_column, &quantity_column, &version_column})
            if (text->find('\0') != std::string::npos)
                return false;
        return true;
    }
    /** These options for C, which refer to the texts of this object. */
    sqlock_stock_options native() const
    {
        const auto set = [](const std::string &text) {
            return text.empty() ? nullptr : text.c_str();
        };
        sqlock_stock_options out = SQLOCK_STOCK_INIT;

        out.strategy = strategy;
        out.table = set(table);
        out.item_column = set(item_column);
        out.quantity_column = set(quantity_column);
        out.version_column = set(version_column);
        out.batch = batch;
        out.attempts = attempts;
        out.deadline_ms = detail::to_option(deadline);
        return out;
    }
};

/** One item of an order. */
struct stock_line {
    std::string item;
    std::int64_t quantity = 0;
};

/** Answer of an operation. */
struct stock_answer {
    /* The quantity of the item after an operation on one item; nullopt: not
     * known, or an operation on several.  After a repeated order it is the
     * quantity that the first answer had. */
    std::optional<std::int64_t> left;
    /* The quantity of each item after an operation on several, in the order in
     * which they were given. */
    std::vector<std::optional<std::int64_t>> lines;
    bool duplicate = false; /* the order had been answered before */
    unsigned attempts = 0;  /* number of attempts; 0: nothing was sent */
};

/** State of a reservation. */
struct reservation {
    sqlock_stock_state state = SQLOCK_STOCK_RESERVED;
    milliseconds remaining{0}; /* until it expires, on the database's clock */
};

/** One item and its quantity. */
struct stock_item {
    std::string name;
    std::optional<std::int64_t> quantity; /* nullopt: null, no integer, or -1 */
};

/** A table of items and quantities.  Several threads may use it at a time, but
 *  none may move or destroy it meanwhile.  It keeps its registry open. */
class stock
{
  public:
    /* An order id makes an operation happen once, however often it is sent;
     * nullopt: it happens each time.  A transaction must be one of the same
     * registry; NULL: the operation is a transaction of its own. */
    using order_id = std::optional<std::string_view>;

    static stock open(const registry &of, const stock_options &options = {})
    {
        return open(std::nothrow, of, options).value();
    }
    static result<stock> open(const std::nothrow_t &, const registry &of,
                              const stock_options &options = {})
    {
        const sqlock_stock_options how = options.native();
        sqlock_stock *opened = nullptr;

        if (!options.valid())
            return detail::refused();
        const auto came =
            detail::call(sqlock_stock_open, &opened, of.native_handle(), &how);

        if (!came)
            return came.error();
        return stock(std::shared_ptr<sqlock_stock>(
            opened, closer{detail::access::share(of)}));
    }

    stock(stock &&) noexcept = default;
    stock &operator=(stock &&) noexcept = default;
    stock(const stock &) = delete;
    stock &operator=(const stock &) = delete;

    /** Deduct a quantity, 1 or more; SQLOCK_EINSUFFICIENT where there is
     *  less. */
    stock_answer deduct(std::string_view item, std::int64_t quantity = 1,
                        order_id order = {}, transaction *tx = nullptr)
    {
        return deduct(std::nothrow, item, quantity, order, tx).value();
    }
    result<stock_answer> deduct(const std::nothrow_t &, std::string_view item,
                                std::int64_t quantity = 1, order_id order = {},
                                transaction *tx = nullptr)
    {
        return change(sqlock_stock_deduct, item, quantity, order, tx);
    }
    /** Add a quantity, 1 or more, to an item. */
    stock_answer restore(std::string_view item, std::int64_t quantity = 1,
                         order_id order = {}, transaction *tx = nullptr)
    {
        return restore(std::nothrow, item, quantity, order, tx).value();
    }
    result<stock_answer> restore(const std::nothrow_t &, std::string_view item,
                                 std::int64_t quantity = 1, order_id order = {},
                                 transaction *tx = nullptr)
    {
        return change(sqlock_stock_restore, item, quantity, order, tx);
    }
    /** Set the quantity of an item; sqlock's own table gets an item that it
     *  does not have yet. */
    stock_answer set(std::string_view item, std::int64_t quantity,
                     order_id order = {}, transaction *tx = nullptr)
    {
        return set(std::nothrow, item, quantity, order, tx).value();
    }
    result<stock_answer> set(const std::nothrow_t &, std::string_view item,
                             std::int64_t quantity, order_id order = {},
                             transaction *tx = nullptr)
    {
        return change(sqlock_stock_set, item, quantity, order, tx);
    }

    /** Read the quantity of an item; nullopt where there is no such item. */
    std::optional<std::int64_t> read(std::string_view item,
                                     transaction *tx = nullptr)
    {
        return read(std::nothrow, item, tx).value();
    }
    result<std::optional<std::int64_t>> read(const std::nothrow_t &,
                                             std::string_view item,
                                             transaction *tx = nullptr)
    {
        std::int64_t quantity = 0;

        return found(
            call(sqlock_stock_read, tx, detail::c_text(item), &quantity),
            quantity);
    }
    /** List all items, by name, or by number where they are integers. */
    std::vector<stock_item> list()
    {
        return list(std::nothrow).value();
    }
    result<std::vector<stock_item>> list(const std::nothrow_t &)
    {
        sqlock_stock_item *items = nullptr;
        std::size_t count = 0;
        const auto came =
            detail::call(sqlock_stock_list, native_handle(), &items, &count);

        if (!came)
            return came.error();
        const std::unique_ptr<sqlock_stock_item, void (*)(void *)> memory(
            items, sqlock_free);
        std::vector<stock_item> out;
        for (std::size_t i = 0; i < count; i++)
            out.push_back({items[i].name, known(items[i].quantity)});
        return out;
    }

    /** Deduct several items, all or none. */
    stock_answer deduct_many(const std::vector<stock_line> &lines,
                             order_id order = {}, transaction *tx = nullptr)
    {
        return deduct_many(std::nothrow, lines, order, tx).value();
    }
    result<stock_answer> deduct_many(const std::nothrow_t &,
                                     const std::vector<stock_line> &lines,
                                     order_id order = {},
                                     transaction *tx = nullptr)
    {
        return change_many(SQLOCK_STOCK_DEDUCT, lines, order, tx);
    }
    /** Add to several items, all or none. */
    stock_answer restore_many(const std::vector<stock_line> &lines,
                              order_id order = {}, transaction *tx = nullptr)
    {
        return restore_many(std::nothrow, lines, order, tx).value();
    }
    result<stock_answer> restore_many(const std::nothrow_t &,
                                      const std::vector<stock_line> &lines,
                                      order_id order = {},
                                      transaction *tx = nullptr)
    {
        return change_many(SQLOCK_STOCK_RESTORE, lines, order, tx);
    }

    /** Deduct several items until the order is claimed, is cancelled, or @p ttl
     *  has passed on the database's clock. */
    stock_answer reserve(std::string_view order,
                         const std::vector<stock_line> &lines, wait_time ttl,
                         transaction *tx = nullptr)
    {
        return reserve(std::nothrow, order, lines, ttl, tx).value();
    }
    result<stock_answer> reserve(const std::nothrow_t &, std::string_view order,
                                 const std::vector<stock_line> &lines,
                                 wait_time ttl, transaction *tx = nullptr)
    {
        return change_many(SQLOCK_STOCK_RESERVE, lines, order, tx, ttl.ms);
    }
    /** Make a reservation final. */
    stock_answer claim(std::string_view order, transaction *tx = nullptr)
    {
        return claim(std::nothrow, order, tx).value();
    }
    result<stock_answer> claim(const std::nothrow_t &, std::string_view order,
                               transaction *tx = nullptr)
    {
        return decide(sqlock_stock_claim, order, tx);
    }
    /** Give the quantities of a reservation back. */
    stock_answer cancel(std::string_view order, transaction *tx = nullptr)
    {
        return cancel(std::nothrow, order, tx).value();
    }
    result<stock_answer> cancel(const std::nothrow_t &, std::string_view order,
                                transaction *tx = nullptr)
    {
        return decide(sqlock_stock_cancel, order, tx);
    }
    /** Read the state of a reservation; nullopt where there is none. */
    std::optional<reservation> status(std::string_view order,
                                      transaction *tx = nullptr)
    {
        return status(std::nothrow, order, tx).value();
    }
    result<std::optional<reservation>> status(const std::nothrow_t &,
                                              std::string_view order,
                                              transaction *tx = nullptr)
    {
        reservation out;
        std::int64_t remaining_ms = 0;
        const auto came = call(sqlock_stock_status, tx, detail::c_text(order),
                               &out.state, &remaining_ms);

        out.remaining = milliseconds{remaining_ms};
        return found(came, out);
    }
    /** Give back the quantities of reservations whose time is over.  Return the
     *  number of these reservations; a failure does not return it, although
     *  some may have been given back: use sqlock_stock_expire() where it
     *  matters. */
    std::int64_t expire()
    {
        return expire(std::nothrow).value();
    }
    result<std::int64_t> expire(const std::nothrow_t &)
    {
        std::int64_t expired = 0;

        return detail::made(
            detail::call(sqlock_stock_expire, native_handle(), &expired),
            expired);
    }
    /** Remove orders and reservations that ended longer ago than the retention,
     *  1 hour to 10 years; 0: 90 days.  With @p dry_run remove nothing.  Return
     *  the counts of rows; a failure does not return them, although rows may
     *  have been removed.  Wait for rows that others have locked. */
    sqlock_stock_reaped reap(milliseconds retention = milliseconds{0},
                             bool dry_run = false)
    {
        return reap(std::nothrow, retention, dry_run).value();
    }
    result<sqlock_stock_reaped> reap(const std::nothrow_t &,
                                     milliseconds retention = milliseconds{0},
                                     bool dry_run = false)
    {
        sqlock_stock_reap_options how = SQLOCK_STOCK_REAP_INIT;
        sqlock_stock_reaped reaped = SQLOCK_STOCK_REAPED_INIT;

        how.retention_ms = retention.count();
        how.dry_run = dry_run;
        return detail::made(
            detail::call(sqlock_stock_reap, native_handle(), &how, &reaped),
            reaped);
    }

    /** Counts since the stock was opened; no I/O. */
    sqlock_stock_stats statistics() const
    {
        sqlock_stock_stats out = SQLOCK_STOCK_STATS_INIT;

        (void)sqlock_stock_statistics(native_handle(), &out, nullptr);
        return out;
    }
    /** The stock for functions of stock.h, closed by this object; NULL where it
     *  was moved from. */
    sqlock_stock *native_handle() const
    {
        return handle_.get();
    }

  private:
    struct closer {
        std::shared_ptr<sqlock_registry> owner; /* keeps the registry open */

        void operator()(sqlock_stock *opened) const noexcept
        {
            detail::cleaner::run(
                [opened, kept = owner] { sqlock_stock_close(opened); });
        }
    };
    std::shared_ptr<sqlock_stock> handle_;

    explicit stock(std::shared_ptr<sqlock_stock> opened)
        : handle_(std::move(opened))
    {
    }

    static std::optional<std::int64_t> known(std::int64_t quantity)
    {
        if (quantity == -1)
            return std::nullopt;
        return quantity;
    }
    template <class T>
    static result<std::optional<T>> found(const result<void> &came,
                                          const T &value)
    {
        if (came)
            return std::optional<T>(value);
        if (came.error().code == SQLOCK_ENOTFOUND)
            return std::optional<T>();
        return came.error();
    }

    /* Call a function of C for this stock, in that transaction. */
    template <class Function, class... Arguments>
    result<void> call(Function function, transaction *tx,
                      const Arguments &...arguments)
    {
        sqlock_tx *const in = tx != nullptr ? tx->native_handle() : nullptr;

        if (tx != nullptr && in == nullptr)
            return detail::empty();
        return detail::call(function, native_handle(), in, arguments...);
    }
    static sqlock_stock_answer unknown()
    {
        sqlock_stock_answer answer = SQLOCK_STOCK_ANSWER_INIT;

        answer.left = -1;
        return answer;
    }
    static result<stock_answer> told(const result<void> &came,
                                     const sqlock_stock_answer &answer)
    {
        stock_answer out;

        if (!came) {
            failure why = came.error();
            why.left = answer.left;
            why.line = answer.line;
            return why;
        }
        out.left = known(answer.left);
        out.duplicate = answer.is_duplicate;
        out.attempts = answer.attempts;
        return out;
    }
    template <class Function>
    result<stock_answer> change(Function function, std::string_view item,
                                std::int64_t quantity, order_id order,
                                transaction *tx)
    {
        sqlock_stock_answer answer = unknown();

        return told(call(function, tx, detail::c_text(order),
                         detail::c_text(item), quantity, &answer),
                    answer);
    }
    template <class Function>
    result<stock_answer> decide(Function function, std::string_view order,
                                transaction *tx)
    {
        sqlock_stock_answer answer = unknown();

        return told(call(function, tx, detail::c_text(order), &answer), answer);
    }
    result<stock_answer> change_many(sqlock_stock_change kind,
                                     const std::vector<stock_line> &lines,
                                     order_id order, transaction *tx,
                                     std::int64_t ttl_ms = 0)
    {
        std::vector<sqlock_stock_line> natives(lines.size());
        sqlock_stock_answer answer = unknown();

        for (std::size_t i = 0; i < lines.size(); i++) {
            if (lines[i].item.find('\0') != std::string::npos)
                return detail::refused();
            natives[i].item = lines[i].item.c_str();
            natives[i].quantity = lines[i].quantity;
        }
        auto out =
            told(call(sqlock_stock_change_sized, tx, kind,
                      detail::c_text(order), natives.data(), natives.size(),
                      ttl_ms, &answer, sizeof(sqlock_stock_line)),
                 answer);
        if (out) {
            out->left = std::nullopt;
            for (const sqlock_stock_line &line : natives)
                out->lines.push_back(known(line.left));
        }
        return out;
    }
};

/** Create sqlock's tables of stock where they do not exist yet. */
inline result<void> create_stock_schema(const std::nothrow_t &,
                                        std::string_view url,
                                        const registry_options &options = {})
{
    const sqlock_options how = options.native();

    if (!options.valid())
        return detail::refused();
    return detail::call(sqlock_stock_schema_create, detail::c_text(url), &how);
}
inline void create_stock_schema(std::string_view url,
                                const registry_options &options = {})
{
    create_stock_schema(std::nothrow, url, options).value();
}

} /* namespace sqlock */

#endif /* SQLOCK_STOCK_HPP */
