// SPDX-License-Identifier: GPL-2.0-or-later
#include "checkpoint/formats.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>

namespace gpuq::checkpoint {
namespace {

using Says = Judgement::Says;
using namespace std::string_view_literals;

constexpr auto k_zip = "PK\3\4"sv;
constexpr auto k_empty_zip = "PK\5\6"sv;
constexpr auto k_npy = "\x93NUMPY"sv;
constexpr auto k_hdf5 = "\x89HDF\r\n\x1a\n"sv;
/// The beginning of torch.save's files before version 1.6: a pickled number; raw tensors follow the
/// pickles.
constexpr auto k_old_torch = "\x80\x02\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19."sv;

constexpr std::array k_zip_names = {".npz"sv, ".keras"sv};
constexpr std::array k_hdf5_names = {".h5"sv, ".hdf5"sv};
constexpr std::array k_other_names = {".pt"sv,  ".pth"sv,    ".ckpt"sv,  ".bin"sv,
                                      ".pkl"sv, ".pickle"sv, ".distcp"sv};

template <std::size_t N>
bool ends_with_one_of(std::string_view name, const std::array<std::string_view, N>& endings)
{
    return std::any_of(endings.begin(), endings.end(),
                       [&](std::string_view ending) { return name.ends_with(ending); });
}

/// Finds the signature. An HDF5 file may begin with a user block of 512, 1024, 2048 ... bytes.
std::optional<std::uint64_t> hdf5_signature(Bytes& bytes)
{
    constexpr std::uint64_t k_last = 1 << 20;
    for (std::uint64_t at = 0; at <= k_last; at = std::max<std::uint64_t>(512, at * 2)) {
        const auto found = bytes.at(at, k_hdf5.size());
        if (!found || *found == k_hdf5) {
            return found ? std::optional(at) : std::nullopt;
        }
    }
    return std::nullopt;
}

/// Protocol 2 to 5, then a byte that can be an instruction: files that begin with the number 640
/// are not pickles.
bool is_pickle(std::string_view head)
{
    const auto byte = [&](std::size_t at) { return static_cast<unsigned char>(head[at]); };
    return head.size() >= 3 && byte(0) == 0x80 && byte(1) >= 2 && byte(1) <= 5 && byte(2) >= '(' &&
           byte(2) <= 0x98;
}

bool is_cut_signature(std::string_view head)
{
    return std::ranges::any_of(std::array{k_zip, k_npy, k_hdf5}, [&](std::string_view whole) {
        return head.size() < whole.size() && whole.starts_with(head);
    });
}

std::optional<Judgement> check_by_content(Bytes& bytes, std::string_view head)
{
    if (is_cut_signature(head)) {
        return incomplete(fmt::format("it ends after {} bytes", head.size()));
    }
    if (head.starts_with(k_zip) || head.starts_with(k_empty_zip)) {
        return check_zip(bytes);
    }
    if (head.starts_with(k_npy)) {
        return check_npy(bytes);
    }
    if (head.starts_with(k_hdf5)) {
        return check_hdf5(bytes, 0);
    }
    if (head.starts_with(k_old_torch)) {
        return Judgement{Says::settles, ""};
    }
    return is_pickle(head) ? std::optional(check_pickle(bytes)) : std::nullopt;
}

/// For a file whose beginning does not identify its format.
Judgement check_by_name(Bytes& bytes, std::string_view name, std::string_view head)
{
    if (name.ends_with(".safetensors")) {
        const Judgement judgement = check_safetensors(bytes);
        return judgement.says == Says::unknown
                   ? incomplete("it does not begin with the header of a safetensors file")
                   : judgement;
    }
    if (ends_with_one_of(name, k_zip_names)) {
        return incomplete("it does not begin as a zip archive");
    }
    if (name.ends_with(".npy")) {
        return incomplete("it does not begin as a .npy file");
    }
    if (ends_with_one_of(name, k_hdf5_names)) {
        const auto signature = hdf5_signature(bytes);
        return signature ? check_hdf5(bytes, *signature) : incomplete("it has no HDF5 signature");
    }
    if (ends_with_one_of(name, k_other_names) &&
        std::ranges::all_of(head, [](char byte) { return byte == '\0'; })) {
        return incomplete("it begins with zeros"); // its node died before the data was on disk
    }
    const Judgement judgement = check_safetensors(bytes);
    return judgement.says == Says::whole ? judgement : Judgement{};
}

} // namespace

bool is_data_name(std::string_view name)
{
    return name.ends_with(".safetensors") || name.ends_with(".npy") ||
           ends_with_one_of(name, k_zip_names) || ends_with_one_of(name, k_hdf5_names) ||
           ends_with_one_of(name, k_other_names);
}

Judgement check_completeness(Bytes& bytes, std::string_view name)
{
    if (bytes.size() == 0) {
        return incomplete("it is empty");
    }
    const std::string head = bytes.first(16);
    if (bytes.error() != 0) {
        return {};
    }
    const auto judgement = check_by_content(bytes, head);
    return judgement ? *judgement : check_by_name(bytes, name, head);
}

Judgement check_pickle(Bytes& bytes)
{
    if (bytes.last(1) != ".") {
        return incomplete("its pickle data has no end marker");
    }
    return {Says::settles, ""}; // any byte of its data may be a full stop as well
}

} // namespace gpuq::checkpoint
