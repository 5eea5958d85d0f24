/*
 * loses.cc - loses.c in C++: an application that takes a lock and says when it
 * has lost it
 */
#include <sqlock.hpp>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <thread>

int main(int argc, char **argv)
{
    using namespace std::chrono_literals;
    sqlock::acquire_options options;
    std::atomic<int> lost{0};

    if (argc != 3)
        return 1;
    options.ttl = 2s;
    options.on_lost = [&](int code) { lost = code; };
    try {
        auto registry = sqlock::registry::open(argv[1]);
        auto lease = registry.acquire(argv[2], 0s, options);

        std::puts("held");
        std::fflush(stdout);
        for (int i = 0; i < 600 && lost == 0; i++)
            std::this_thread::sleep_for(100ms);
        if (lost != SQLOCK_ELOST || lease.held())
            return 1;
        std::puts("lost");
        if (auto released = lease.release(std::nothrow);
            released || released.error().code != SQLOCK_ELOST)
            return 1;
    } catch (const sqlock::error &why) {
        std::fprintf(stderr, "loses: %s\n", why.what());
        return 1;
    }
    return 0;
}
