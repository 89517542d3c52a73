// SPDX-License-Identifier: GPL-2.0-or-later
#include "cli/queries/shared_overview_file.h"

#include "core/layout.h"

#include <cstddef>
#include <unistd.h>
#include <utility>

namespace gpuq::cli {
namespace {

constexpr const char* k_directory = "/run/gpuq";
/// 10,000 jobs take 6 MB.
constexpr std::size_t k_most = 64 << 20;

} // namespace

std::optional<SharedOverview> read_shared_overview(Services& services, const std::string& path,
                                                   const std::string& cluster)
{
    const auto file = services.text_file(path, k_most);
    if (!file || file->distrust) {
        return std::nullopt;
    }
    return parse_shared_overview(file->text, cluster, ::getuid());
}

std::function<std::optional<Overview>()> shared_overview(Services& services,
                                                         const std::string& cluster)
{
    const auto settings = services.settings();
    const std::string directory =
        settings ? settings->overview_dir.value_or(k_directory) : k_no_overview_dir;
    if (directory == k_no_overview_dir) {
        return {};
    }
    return [&services, path = layout::shared_overview(directory, cluster),
            cluster]() -> std::optional<Overview> {
        auto shared = read_shared_overview(services, path, cluster);
        return shared && is_recent(shared->overview, services.clock().now())
                   ? std::optional(std::move(shared->overview))
                   : std::nullopt;
    };
}

} // namespace gpuq::cli
