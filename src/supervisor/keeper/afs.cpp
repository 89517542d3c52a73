// SPDX-License-Identifier: GPL-2.0-or-later
#include "supervisor/keeper/afs.h"

#include <fmt/format.h>

#include <cstdlib>
#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

namespace gpuq::supervisor {
namespace {

constexpr const char* k_openafs = "/proc/fs/openafs/afs_ioctl";
constexpr long k_afs_magic = 0x5346414F;
constexpr long k_kafs_magic = 0x6B414653;

/// Argument of the ioctl through which OpenAFS's system calls are made (src/config/afs_args.h in
/// OpenAFS).
struct AfsCall {
    long fourth = 0, third = 0, second = 0, first = 0;
    long number = 0;
};
constexpr unsigned long k_afs_call = _IOW('C', 1, void*);
constexpr long k_setpag = 21;
constexpr int k_join_session_keyring = 1; // KEYCTL_JOIN_SESSION_KEYRING

bool has_afs()
{
    struct statfs facts {};
    return ::access(k_openafs, F_OK) == 0 ||
           (::statfs("/afs", &facts) == 0 &&
            (facts.f_type == k_afs_magic || facts.f_type == k_kafs_magic));
}

} // namespace

std::string aklog_of(const CredentialPlan& plan)
{
    if (plan.aklog.starts_with('/')) {
        return plan.aklog;
    }
    if (!has_afs()) {
        return "";
    }
    const char* const path = std::getenv("PATH");
    return found_in_path(std::string(path == nullptr ? "" : path) + ":/usr/bin:/bin", "aklog");
}

void make_pag()
{
    const Descriptor afs(::open(k_openafs, O_RDWR | O_CLOEXEC));
    AfsCall call;
    call.number = k_setpag;
    if (!afs || ::ioctl(afs.get(), k_afs_call, &call) != 0) {
        ::syscall(SYS_keyctl, k_join_session_keyring, nullptr);
    }
}

std::string make_tokens(const std::string& aklog, const std::string& cache)
{
    const auto ended = finished({{aklog}, in_english(cache)});
    if (!ended) {
        return "aklog: can't start a process";
    }
    return tokens_trouble(aklog, *ended);
}

std::string tokens_trouble(const std::string& aklog, const External::Ended& ended)
{
    if (ended.status == 0) {
        return "";
    }
    const std::string message = one_line(ended.message);
    return "aklog: " + (!message.empty() ? message
                        : ended.status == 127
                            ? aklog + " can't be executed"
                            : fmt::format("{} exits with {}", aklog, ended.status));
}

} // namespace gpuq::supervisor
