/*
 * leader.cc - leader.hpp on a database: campaigns, texts, and who observes
 *
 *     leader URL REGION
 *
 * Prints "ok - what" or "not ok - what" of each test.
 */
#include "check.hpp"

#include <sqlock/leader.hpp>
#include <sqlock/shared.hpp>

#include <atomic>
#include <string>
#include <sys/eventfd.h>
#include <thread>
#include <type_traits>
#include <unistd.h>

static_assert(!std::is_copy_constructible_v<sqlock::election> &&
              std::is_nothrow_move_constructible_v<sqlock::election> &&
              std::is_nothrow_move_assignable_v<sqlock::election>);

static void test_texts()
{
    const auto one = open_registry();
    const auto other = open_registry();
    sqlock::election ours(one, "texts"), theirs(other, "texts");

    check(!ours.current() && !theirs.current(), "at first nobody leads");
    auto seat = ours.campaign(patience);
    auto seen = theirs.current();
    check(seen && seen->token == seat.token() && !seen->text && seen->holder &&
              seen->held && seen->remaining > 0ms &&
              thrown([&] { (void)theirs.campaign(0s); }) == SQLOCK_EBUSY &&
              thrown([&] { (void)theirs.campaign(20ms); }) == SQLOCK_ETIMEDOUT,
          "one leads, and is told to all");
    for (const auto &text :
         {std::string("10.0.0.7:8080"), std::string(), std::string(1024, 'x')})
        sqlock::publish(seat, text);
    seen = theirs.current();
    check(seen && seen->text == std::string(1024, 'x'),
          "the text of the leader is told, too");
    check(sqlock::publish(std::nothrow, seat, std::string(1025, 'x'))
                      .error()
                      .code == SQLOCK_EINVAL &&
              thrown([&] { sqlock::publish(seat, nul_inside); }) ==
                  SQLOCK_EINVAL &&
              theirs.current()->text == std::string(1024, 'x'),
          "texts that are wrong are refused");
    seat.release();
    check(!theirs.current() &&
              thrown([&] { sqlock::publish(seat, "late"); }) == SQLOCK_EOWNER,
          "it goes with its leader");
    {
        const auto next = theirs.campaign(0s);
        check(ours.current() && !ours.current()->text,
              "and is not the next one's");
    }
    check(!ours.current(), "the end of the lease is a resignation");
    sqlock::semaphore permits(one, "shared", 2);
    const auto permit = permits.acquire();
    check(!sqlock::election(other, "shared").current(),
          "who shares a lock leads nobody");
}

static void test_observing()
{
    const auto one = open_registry();
    const auto other = open_registry();
    sqlock::election ours(one, "observing"), theirs(other, "observing");
    const auto unchanged = [&] {
        return thrown([&] { (void)theirs.observe(20ms); }) == SQLOCK_ETIMEDOUT;
    };

    check(unchanged(), "that nobody leads is no change");
    auto seat = ours.campaign(patience);
    auto seen = theirs.observe(patience);
    check(seen && seen->token == seat.token() && unchanged(),
          "a leader is observed once");
    sqlock::publish(seat, "text");
    seen = theirs.observe(std::nothrow, patience).value();
    sqlock::publish(seat, "text");
    seat.renew();
    check(seen && seen->text == "text" && unchanged(), "and so is each text");
    seat.release();
    check(!theirs.observe(patience) && unchanged(), "and that nobody leads");

    std::atomic<std::int64_t> token{0};
    std::thread watcher([&] { token = theirs.observe(patience)->token; });
    seat = ours.campaign(patience);
    watcher.join();
    check(token == seat.token(), "a thread waits for the next leader");

    const int fd = eventfd(0, EFD_CLOEXEC);
    std::thread canceller([&] {
        const std::uint64_t once = 1;
        std::this_thread::sleep_for(30ms);
        if (write(fd, &once, sizeof once) < 0)
            std::perror("write");
    });
    check(theirs.observe(std::nothrow, sqlock::forever, fd).error().code ==
                  SQLOCK_ECANCELED &&
              thrown([&] { (void)theirs.observe(0s, -1); }) == SQLOCK_EINVAL &&
              unchanged(),
          "observing is cancelled by a descriptor");
    canceller.join();
    (void)close(fd);
    auto moved = std::move(theirs);
    check(thrown([&] { (void)moved.observe(20ms); }) == SQLOCK_ETIMEDOUT &&
              thrown([&] { (void)theirs.observe(0s); }) == SQLOCK_EINVAL &&
              thrown([&] { (void)theirs.current(); }) == SQLOCK_EINVAL &&
              thrown([&] { (void)theirs.campaign(0s); }) == SQLOCK_EINVAL,
          "an election moves, with what it has seen");
}

static void test_loss()
{
    const auto registry = open_registry();
    std::atomic<int> told{0};
    sqlock::acquire_options how;

    how.on_lost = [&](int code) { told = code; };
    sqlock::election election(registry, "loss of a leader", how);
    auto seat = election.campaign(patience);
    end_lease(registry, "loss of a leader");
    check(thrown([&] { sqlock::publish(seat, "late"); }) == SQLOCK_ELOST &&
              comes_true([&] { return told == SQLOCK_ELOST; }) &&
              !seat.held() && !election.current(),
          "a leader is told that it leads no more, and publishes nothing");
    check(thrown([&] { seat.release(); }) == SQLOCK_ELOST &&
              election.campaign(patience).held(),
          "and may campaign again");
}

static void test_cancel()
{
    const auto registry = open_registry();
    sqlock::election one(registry, "cancel"), other(registry, "cancel");
    const auto seat = one.campaign(patience);
    std::atomic<int> code{0};
    std::thread waits(
        [&] { code = thrown([&] { (void)other.campaign(sqlock::forever); }); });

    check(comes_true([&] {
              other.cancel();
              return code != 0;
          }) &&
              code == SQLOCK_ECANCELED && seat.held(),
          "a campaign is cancelled");
    waits.join();
}

int main(int argc, char **argv)
{
    return run(argc, argv, "tests/conformance/cpp/leader", [] {
        test_texts();
        test_observing();
        test_loss();
        test_cancel();
    });
}
