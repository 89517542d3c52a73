// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/gpu_request.h"

#include "core/number.h"
#include "core/size.h"

#include <fmt/format.h>

#include <algorithm>

namespace gpuq {
namespace {

constexpr std::uint64_t k_most = 1024; // per node
constexpr std::size_t k_longest_model = 64;

Error no_request(std::string_view text, std::string_view reason)
{
    return fail(Error::Kind::usage, fmt::format("invalid GPU request '{}': {}", text, reason));
}

Error not_understood(std::string_view text)
{
    return no_request(text, "write 1, 2, k80:2 (a model), 16G+ (any with that memory), or "
                            "shard:1 (a share of one GPU)");
}

/// True for a valid Slurm gres type: letters, digits, `_`, `-` and `.`, with at least one letter.
bool is_model(std::string_view text)
{
    const auto allowed = [](char c) {
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
               c == '_' || c == '-' || c == '.';
    };
    const auto letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); };
    return text.size() <= k_longest_model && std::all_of(text.begin(), text.end(), allowed) &&
           !text.empty() && text.front() != '-' && text.front() != '.' &&
           std::any_of(text.begin(), text.end(), letter);
}

bool is_exponent_or_nan(std::string_view text)
{
    // `1e9`, `nan` or `inf` is a mistake in a script, not a model.
    return text == "nan" || text == "NaN" || text == "inf" ||
           (text.find_first_not_of("0123456789e") == std::string_view::npos);
}

Result<int> parse_count(std::string_view text, std::string_view count)
{
    const auto number = whole_number(count);
    if (!number) {
        return count.starts_with('-') ? no_request(text, "the number is negative")
                                      : not_understood(text);
    }
    if (*number > k_most) {
        return no_request(text, "no node has so many");
    }
    return static_cast<int>(*number);
}

constexpr GpuShare::Kind k_kinds[] = {GpuShare::Kind::shard, GpuShare::Kind::mps};
constexpr std::string_view k_mig = "mig";

Result<GpuRequest> parse_share(std::string_view text, GpuShare::Kind kind, std::string_view parts)
{
    const auto number = whole_number(parts);
    if (!number || *number == 0 || *number > k_most) {
        return no_request(text, fmt::format("write the number of parts of one GPU: {}:{}",
                                            word(kind), kind == GpuShare::Kind::mps ? 50 : 1));
    }
    GpuRequest request;
    request.share = GpuShare{kind, static_cast<int>(*number), {}, {}, {}};
    return request;
}

/// `1g.10gb` or `1g.10gb:2`.
Result<GpuRequest> parse_mig(std::string_view text, std::string_view rest)
{
    const std::size_t colon = rest.find(':');
    const std::string_view profile = rest.substr(0, colon);
    if (!is_model(profile) || profile.find('g') == std::string_view::npos) {
        return no_request(text, "write the profile of a MIG device: mig:1g.10gb");
    }
    GpuRequest request;
    request.mig = profile;
    if (colon != std::string_view::npos) {
        TRY_ASSIGN(request.count, parse_count(text, rest.substr(colon + 1)));
    }
    if (request.count == 0) {
        return no_request(text, "none of a profile; write 0 for no GPU");
    }
    return request;
}

Result<GpuRequest> parse_kind(std::string_view text, std::string_view kind)
{
    GpuRequest request;
    if (kind.ends_with('+')) {
        const auto memory = parse_memory_mib(kind.substr(0, kind.size() - 1));
        if (!memory || *memory == 0) {
            return not_understood(text);
        }
        request.min_memory_mib = *memory;
    } else if (is_model(kind) && !is_exponent_or_nan(kind)) {
        request.model = kind;
    } else {
        return not_understood(text);
    }
    return request;
}

} // namespace

std::string_view word(GpuShare::Kind kind)
{
    return kind == GpuShare::Kind::shard ? "shard" : "mps";
}

std::optional<GpuShare::Kind> share_kind(std::string_view word)
{
    for (const GpuShare::Kind kind : k_kinds) {
        if (gpuq::word(kind) == word) {
            return kind;
        }
    }
    return std::nullopt;
}

std::chrono::milliseconds gpu_time(const GpuRequest& request, std::chrono::milliseconds length)
{
    if (request.share && request.share->per_gpu) {
        const int per_gpu = std::max(*request.share->per_gpu, 1);
        return length * std::min(request.share->parts, per_gpu) / per_gpu;
    }
    return length * std::max(request.count, 0);
}

Result<GpuRequest> parse_gpu_request(std::string_view text)
{
    const std::size_t colon = text.find(':');
    const std::string_view kind = text.substr(0, colon);
    const std::string_view rest =
        colon == std::string_view::npos ? std::string_view() : text.substr(colon + 1);
    if (const auto share = share_kind(kind)) {
        return parse_share(text, *share, rest);
    }
    if (kind == k_mig) {
        return parse_mig(text, rest);
    }
    const bool only_count = kind.empty() || kind[0] == '-' || whole_number(kind);
    if (colon == std::string_view::npos && only_count) {
        TRY_ASSIGN(const int count, parse_count(text, text));
        return GpuRequest{.count = count};
    }
    TRY_ASSIGN(GpuRequest request, parse_kind(text, kind));
    if (colon != std::string_view::npos) {
        TRY_ASSIGN(request.count, parse_count(text, text.substr(colon + 1)));
    }
    if (request.count == 0) {
        return no_request(text, "none of a model; write 0 for no GPU");
    }
    return request;
}

std::string gres_text(const GpuRequest& request)
{
    if (request.share) {
        return fmt::format("{}:{}", word(request.share->kind), request.share->parts);
    }
    if (request.count <= 0) {
        return "";
    }
    return request.model ? fmt::format("gpu:{}:{}", *request.model, request.count)
                         : fmt::format("gpu:{}", request.count);
}

std::string to_text(const GpuRequest& request)
{
    if (request.share) {
        return fmt::format("{}:{}", word(request.share->kind), request.share->parts);
    }
    if (request.mig) {
        return fmt::format("{}:{}:{}", k_mig, *request.mig, request.count);
    }
    if (request.model) {
        return fmt::format("{}:{}", *request.model, request.count);
    }
    if (request.min_memory_mib) {
        const std::uint64_t mib = *request.min_memory_mib;
        const std::string memory =
            mib % 1024 == 0 ? fmt::format("{}G", mib / 1024) : fmt::format("{}M", mib);
        return fmt::format("{}+:{}", memory, request.count);
    }
    return fmt::format("{}", request.count);
}

} // namespace gpuq
