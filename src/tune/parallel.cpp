// SPDX-License-Identifier: GPL-2.0-or-later
#include "tune/parallel.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <thread>
#include <vector>

namespace gpuq::tune {
namespace {

constexpr std::chrono::milliseconds k_tick{200};

} // namespace

void in_parallel(std::size_t count, const std::function<void(std::size_t)>& work,
                 const std::function<void()>& tick)
{
    std::mutex mutex;
    std::condition_variable ended;
    std::size_t next = 0;
    std::size_t done = 0;
    const auto run = [&] {
        std::unique_lock lock(mutex);
        while (next < count) {
            const std::size_t mine = next++;
            lock.unlock();
            work(mine);
            lock.lock();
            if (++done == count) {
                ended.notify_one();
            }
        }
    };
    std::vector<std::thread> threads;
    const std::size_t processors = std::max(1U, std::thread::hardware_concurrency());
    for (std::size_t i = 0; i < std::min(count, processors); ++i) {
        threads.emplace_back(run);
    }
    for (std::unique_lock lock(mutex); done < count;) {
        if (!ended.wait_for(lock, k_tick, [&] { return done == count; })) {
            lock.unlock();
            tick();
            lock.lock();
        }
    }
    for (std::thread& thread : threads) {
        thread.join();
    }
}

} // namespace gpuq::tune
