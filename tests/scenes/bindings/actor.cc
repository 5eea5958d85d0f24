/*
 * actor.cc - an actor of scenes that uses sqlock.hpp: see tests/scenes/README.md
 *
 * It reads a call a line from standard input, makes it in the thread with that
 * number, and tells when the call begins and ends.  A scene with a verb or
 * option that is not here is skipped.
 */
#include <sqlock.hpp>
#include <sqlock/many.hpp>
#include <sqlock/shared.hpp>

#include <fcntl.h>
#include <unistd.h>

#include <atomic>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <functional>
#include <iostream>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <sstream>
#include <string>
#include <thread>
#include <variant>
#include <vector>

namespace
{

using sqlock::milliseconds;

constexpr int not_played = -1000;
constexpr long long forever = -1;
constexpr milliseconds patience{30000};

/* There is no such call, or none that means the same. */
struct refused : std::runtime_error {
    using std::runtime_error::runtime_error;
};

std::atomic<int> under_way{0}; /* calls, of other threads than the first */

/* In one write, so that lines come in the order of what they tell. */
void say(const std::string &line)
{
    const std::string text = line + '\n';

    if (::write(STDOUT_FILENO, text.data(), text.size()) < 0)
        std::_Exit(3);
}

/* "L*3" is of L1, L2 and L3. */
void add_names(std::vector<std::string> &names, const std::string &word)
{
    const auto star = word.find('*');

    if (star == std::string::npos) {
        names.push_back(word);
        return;
    }
    const auto end = word.find_first_not_of("0123456789", star + 1);
    const int count = std::atoi(word.c_str() + star + 1);
    for (int i = 1; i <= count; i++)
        names.push_back(word.substr(0, star) + std::to_string(i) +
                        (end == std::string::npos ? "" : word.substr(end)));
}

/* VERB [NAME] [option=value]... */
struct step {
    std::string verb;
    std::vector<std::string> names;
    std::map<std::string, std::string> options;

    explicit step(std::istringstream words)
    {
        words >> verb;
        for (std::string word; words >> word;) {
            if (names.empty() && std::isupper(word[0]) != 0) {
                std::istringstream parts(word);
                for (std::string part; std::getline(parts, part, ',');)
                    add_names(names, part);
            } else {
                const auto at = word.find('=');
                options[word.substr(0, at)] =
                    at == std::string::npos ? "" : word.substr(at + 1);
            }
        }
    }
    bool has(const std::string &option) const
    {
        return options.count(option) != 0;
    }
    long long number(const std::string &option, long long otherwise) const
    {
        const auto found = options.find(option);

        if (found == options.end())
            return otherwise;
        return found->second == "ever" ? forever
                                       : std::atoll(&found->second[0]);
    }
    milliseconds ms(const std::string &option, long long otherwise = 0) const
    {
        return milliseconds{number(option, otherwise)};
    }
    /* Refuse a step with other options. */
    void only(const std::string &known) const
    {
        for (const auto &[option, value] : options)
            if ((" url folder through within says soon now " + known + " ")
                    .find(" " + option + " ") == std::string::npos)
                throw refused("no such option: " + option);
    }
};

using held = std::variant<sqlock::lease, std::shared_ptr<sqlock::leases>>;

/* A thread, with the mutexes and leases that are its own. */
struct player {
    int number = 0;
    std::int64_t token = 0;
    std::map<std::string, held> leases;
    std::map<std::string, sqlock::lease> given; /* the last one of each lock */
    std::deque<std::string> cues;
};

/* Each by its number, of which 0 opens and closes. */
std::map<int, std::unique_ptr<player>> players;

class actor
{
  public:
    int perform(player &by, const step &what)
    {
        static const std::map<std::string,
                              int (actor::*)(player &, const step &)>
            verbs = {
                {"opens", &actor::opens},
                {"closes", &actor::closes},
                {"takes", &actor::takes},
                {"gives", &actor::gives},
                {"renews", &actor::renews},
                {"holds", &actor::holds},
                {"turns", &actor::turns},
                {"remains", &actor::remains},
                {"cancels", &actor::cancels},
                {"downgrades", &actor::downgrades},
                {"permits", &actor::permits},
            };
        const auto found = verbs.find(what.verb);

        if (found == verbs.end())
            throw refused("no such verb");
        return (this->*found->second)(by, what);
    }

  private:
    std::optional<sqlock::registry> registry_;
    std::string folder_;
    bool is_by_handle_ = false; /* the scene asks for that */
    std::mutex guard_;          /* of the following */
    std::map<std::pair<std::string, int>, std::function<void()>> waiting_;

    int opens(player &, const step &what)
    {
        sqlock::registry_options options;

        what.only("prefix ttl margin poll pool statement connect patient owner "
                  "services "
                  "period peer_ttl waiting");
        options.table_prefix = what.options.at("prefix");
        options.ttl = what.ms("ttl", 60000);
        options.margin = what.ms("margin");
        options.poll =
            what.has("patient") ? milliseconds{3600000} : what.ms("poll", 5);
        options.renew_period = what.ms("period");
        options.peer_ttl = what.ms("peer_ttl");
        if (what.has("waiting"))
            options.waiting = SQLOCK_WAITING_POLL;
        options.no_peers = !what.has("services");
        options.pool_size = static_cast<unsigned>(what.number("pool", 0));
        options.statement_timeout = what.ms("statement");
        options.connect_timeout = what.ms("connect");
        if (what.has("owner") && what.options.at("owner") != "handle")
            throw refused("each lease is an owner here");
        is_by_handle_ = what.has("owner");
        folder_ = what.options.at("folder");
        const auto until = std::chrono::steady_clock::now() + patience;
        for (;;) {
            auto opened = sqlock::registry::open(
                std::nothrow, what.options.at("url"), options);
            if (!opened && opened.error().code == SQLOCK_EUNREACHABLE &&
                std::chrono::steady_clock::now() < until)
                continue;
            registry_.emplace(std::move(opened).value());
            return 0;
        }
    }

    int closes(player &, const step &)
    {
        if (under_way > 0)
            throw refused("a registry closes behind the last call");
        for (auto &[number, by] : players)
            by->leases.clear(), by->given.clear();
        waiting_.clear();
        registry_.reset();
        return 0;
    }

    static sqlock::acquire_options read(const step &what,
                                        const std::string &name)
    {
        sqlock::acquire_options how;

        what.only("wait ttl renewed hasty fenced hold told many shared permits "
                  "weight");
        how.ttl = what.ms("ttl");
        how.max_hold = what.ms("hold");
        how.auto_renew = what.has("renewed");
        how.fenced = what.has("fenced");
        how.fail_fast = what.has("hasty");
        how.mode = what.has("shared") ? SQLOCK_SHARED : SQLOCK_EXCLUSIVE;
        how.permits = static_cast<unsigned>(what.number("permits", 0));
        how.weight = static_cast<unsigned>(what.number("weight", 0));
        if (what.has("told") && !what.options.at("told").empty())
            throw refused("a callback that lingers");
        if (what.has("told"))
            how.on_lost = [name](int code) {
                say("lost " + std::to_string(code) + " " + name);
            };
        return how;
    }

    /* Wait with what the header has for such a lock. */
    sqlock::lease take_one(player &by, const step &what)
    {
        const std::string &name = what.names[0];
        const auto how = read(what, name);
        const bool is_shared = how.mode == SQLOCK_SHARED;

        if (is_shared && how.permits > 0) {
            auto permits = std::make_shared<sqlock::semaphore>(
                *registry_, name, how.permits, how);
            return wait_with(by, what, permits, [&] {
                return permits->acquire(std::nothrow, wait_of(what),
                                        how.weight > 0 ? how.weight : 1);
            });
        }
        if (is_shared && how.weight == 0) {
            auto mutex =
                std::make_shared<sqlock::shared_mutex>(*registry_, name, how);
            return wait_with(by, what, mutex, [&] {
                return mutex->acquire_shared(std::nothrow, wait_of(what));
            });
        }
        auto mutex = std::make_shared<sqlock::mutex>(*registry_, name, how);
        return wait_with(by, what, mutex, [&] {
            return mutex->acquire(std::nothrow, wait_of(what));
        });
    }

    /* Wait so that another thread can cancel it, and again if a claim outlasts
     * its short lease. */
    template <class Lock, class Take>
    sqlock::lease wait_with(player &by, const step &what,
                            std::shared_ptr<Lock> lock, Take take)
    {
        const auto key = std::make_pair(what.names[0], by.number);

        {
            const std::lock_guard<std::mutex> locked(guard_);
            waiting_[key] = [lock] { lock->cancel(); };
        }
        const auto until = std::chrono::steady_clock::now() + patience;
        for (;;) {
            auto got = take();
            if (got || got.error().code != SQLOCK_ETIMEDOUT ||
                what.number("wait", 0) != 0 ||
                std::chrono::steady_clock::now() > until)
                return std::move(got).value();
        }
    }

    static milliseconds wait_of(const step &what)
    {
        const long long wait = what.number("wait", 0);

        if (wait < forever)
            throw refused("a duration below 0 is one of 0");
        return wait == forever ? sqlock::forever : milliseconds{wait};
    }

    int takes(player &by, const step &what)
    {
        for (const auto &name : what.names)
            if (by.leases.count(name) != 0)
                throw refused("a lease is not counted");
        if (what.names.size() == 1 && !what.has("many")) {
            auto lease = take_one(by, what);
            by.token = lease.token();
            by.leases.emplace(what.names[0], std::move(lease));
            return 0;
        }
        if (what.has("told"))
            throw refused("a loss of one of many");
        auto all = std::make_shared<sqlock::leases>(sqlock::acquire_many(
            *registry_, what.names, wait_of(what), read(what, "")));
        by.token = all->token(0);
        for (const auto &name : what.names)
            by.leases.emplace(name, all);
        return 0;
    }

    static held &of(player &by, const std::string &name)
    {
        const auto found = by.leases.find(name);

        if (found == by.leases.end())
            throw refused("there is no lease to ask");
        return found->second;
    }

    int gives(player &by, const step &what)
    {
        what.only("many");
        held it = std::move(of(by, what.names[0]));
        for (const auto &name : what.names)
            by.leases.erase(name);
        if (auto *one = std::get_if<sqlock::lease>(&it))
            by.given.insert_or_assign(what.names[0], std::move(*one))
                .first->second.release();
        else if (std::get<1>(it)->size() != what.names.size())
            throw refused("leases of one call are released together");
        else
            std::get<1>(it)->release();
        return 0;
    }

    int renews(player &by, const step &what)
    {
        what.only("ttl");
        held &it = of(by, what.names[0]);
        if (auto *one = std::get_if<sqlock::lease>(&it))
            one->renew(what.ms("ttl"));
        else
            std::get<1>(it)->renew();
        return 0;
    }

    int holds(player &by, const step &what)
    {
        what.only("most");
        const auto found = by.leases.find(what.names[0]);
        if (found == by.leases.end())
            return 0;
        const auto *one = std::get_if<sqlock::lease>(&found->second);
        if (one == nullptr)
            return std::get<1>(found->second)->held() ? 1 : 0;
        const auto most = what.ms("most", 1 << 30);
        return one->held() && one->remaining() <= most ? 1 : 0;
    }

    int remains(player &by, const step &what)
    {
        what.only("");
        const auto found = by.leases.find(what.names[0]);
        if (found == by.leases.end())
            return 0;
        if (auto *one = std::get_if<sqlock::lease>(&found->second))
            return static_cast<int>(one->remaining().count());
        throw refused("what remains of one of many");
    }

    int downgrades(player &by, const step &what)
    {
        what.only("");
        const auto given = by.given.find(what.names[0]);
        if (by.leases.count(what.names[0]) == 0 && given != by.given.end())
            given->second.downgrade();
        else if (auto *one = std::get_if<sqlock::lease>(&of(by, what.names[0])))
            one->downgrade();
        else
            throw refused("leases of one call stay as they are");
        return 0;
    }

    int permits(player &, const step &what)
    {
        what.only("number");
        registry_->set_permits(what.names[0],
                               static_cast<unsigned>(what.number("number", 0)));
        return 0;
    }

    /* All waits for the lock, of whatever thread, by what waits. */
    int cancels(player &, const step &what)
    {
        const std::lock_guard<std::mutex> locked(guard_);
        bool is_known = false;

        what.only("");
        if (is_by_handle_)
            throw refused("each handle cancels its own waits");
        for (const auto &[key, cancel] : waiting_)
            if (key.first == what.names[0]) {
                cancel();
                is_known = true;
            }
        if (!is_known)
            throw refused("no mutex to cancel");
        return 0;
    }

    int turns(player &by, const step &what)
    {
        what.only("count campaign held many");
        if (what.names.size() > 1)
            throw refused("turns of several locks");
        const std::string &name = what.names[0];
        const std::string path = folder_ + "/" + name.substr(0, name.find('@'));
        for (long long i = what.number("count", 1); i > 0; i--) {
            const auto lease = registry_->acquire(name, sqlock::forever,
                                                  sqlock::acquire_options{});
            const int fd = ::open(path.c_str(), O_CREAT | O_EXCL, 0600);
            if (fd < 0 || lease.token() <= by.token)
                throw std::runtime_error("two are inside, or tokens fall");
            (void)::close(fd);
            by.token = lease.token();
            std::this_thread::sleep_for(what.ms("held", 1));
            (void)::unlink(path.c_str());
        }
        return 0;
    }
};

actor the_actor;
std::mutex cue_guard;
std::condition_variable cue_came;

void play(player &by, const std::string &line)
{
    const std::string number = std::to_string(by.number);
    std::string message;
    int code = 0;

    by.token = 0;
    under_way += by.number > 0 ? 1 : 0;
    say(number + " begun " + std::to_string(::gettid()));
    try {
        code = the_actor.perform(by, step(std::istringstream(line)));
    } catch (const sqlock::error &why) {
        code = why.code();
        message = why.what();
    } catch (const refused &why) {
        code = not_played;
        message = std::string("not for this actor: ") + why.what();
    } catch (const std::exception &why) {
        code = not_played;
        message = why.what();
    }
    under_way -= by.number > 0 ? 1 : 0;
    say(number + " ended " + std::to_string(code) + " " +
        std::to_string(by.token) + " " + message);
}

void wait_for_cues(player &by)
{
    for (;;) {
        std::unique_lock<std::mutex> locked(cue_guard);

        cue_came.wait(locked, [&by] { return !by.cues.empty(); });
        const std::string line = std::move(by.cues.front());
        by.cues.pop_front();
        locked.unlock();
        play(by, line);
    }
}

} /* namespace */

int main()
{
    for (std::string line; std::getline(std::cin, line);) {
        const int number = std::atoi(line.c_str());
        auto &by = players[number];
        const std::string words = line.substr(line.find(' ') + 1);
        const bool is_new = by == nullptr;

        if (is_new) {
            by = std::make_unique<player>();
            by->number = number;
        }
        if (number == 0) {
            play(*by, words);
            continue;
        }
        if (is_new)
            std::thread(wait_for_cues, std::ref(*by)).detach();
        {
            const std::lock_guard<std::mutex> locked(cue_guard);
            by->cues.push_back(words);
        }
        cue_came.notify_all();
    }
    std::_Exit(0);
}
