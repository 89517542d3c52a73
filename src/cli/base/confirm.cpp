// SPDX-License-Identifier: GPL-2.0-or-later
#include "cli/base/confirm.h"

#include "cli/base/message.h"

#include <array>
#include <unistd.h>

namespace gpuq::cli {

Result<bool> confirmed(const std::string& question, const std::string& refusal)
{
    if (::isatty(STDIN_FILENO) != 1 || ::isatty(STDERR_FILENO) != 1) {
        return fail(Error::Kind::usage, refusal);
    }
    write_own("gpuq: " + question + "? y/n ");
    std::array<char, 64> answer{};
    const ssize_t size = ::read(STDIN_FILENO, answer.data(), answer.size());
    return size > 0 && (answer[0] == 'y' || answer[0] == 'Y');
}

} // namespace gpuq::cli
