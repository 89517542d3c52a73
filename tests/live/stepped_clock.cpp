// SPDX-License-Identifier: GPL-2.0-or-later
// A wall clock that can be set: preloaded (LD_PRELOAD), it shows the machine's plus as many seconds
// as the file that STEPPED_CLOCK names says, as often as somebody asks. libfaketime wants a
// semaphore that ends with the process that was started first, which of a run is the client.

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
