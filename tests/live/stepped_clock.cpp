// SPDX-License-Identifier: GPL-2.0-or-later
// An adjustable wall clock for LD_PRELOAD: adds the number of seconds in the file named by
// STEPPED_CLOCK, which is read at every call. libfaketime is unsuitable: its semaphore ends with
// the process started first, which for a run is the client.

#include <cstdlib>
#include <fcntl.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

namespace {

long step()
{
    const char* path = std::getenv("STEPPED_CLOCK");
    const int file = path ? ::open(path, O_RDONLY | O_CLOEXEC) : -1;
    char text[32]{};
    if (file >= 0) {
        (void)!::read(file, text, sizeof text - 1);
        ::close(file);
    }
    return std::atol(text);
}

} // namespace

extern "C" {

int clock_gettime(clockid_t clock, timespec* time) noexcept
{
    const long result = ::syscall(SYS_clock_gettime, clock, time);
    if (result == 0 && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)) {
        time->tv_sec += step();
    }
    return static_cast<int>(result);
}

int gettimeofday(timeval* __restrict time, void* __restrict) noexcept
{
    timespec now{};
    const int result = clock_gettime(CLOCK_REALTIME, &now);
    *time = {now.tv_sec, now.tv_nsec / 1000};
    return result;
}

time_t time(time_t* result) noexcept
{
    timespec now{};
    clock_gettime(CLOCK_REALTIME, &now);
    if (result) {
        *result = now.tv_sec;
    }
    return now.tv_sec;
}
}
