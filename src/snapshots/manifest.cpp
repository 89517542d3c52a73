// SPDX-License-Identifier: GPL-2.0-or-later
#include "snapshots/manifest.h"

#include "core/codec.h"
#include "core/strings.h"
#include "runs/records/json_fields.h"

#include <fmt/format.h>
#include <nettle/sha2.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>

namespace gpuq::snapshots {
namespace {

constexpr std::size_t k_digits = 64;
constexpr std::string_view k_heading = "gpuq snapshot 2\n";

bool is_inside(std::string_view path)
{
    const auto parts = split(path, "/");
    return path.find('\0') == std::string_view::npos &&
           std::none_of(parts.begin(), parts.end(), [](std::string_view part) {
               return part.empty() || part == "." || part == "..";
           });
}

} // namespace

std::string sha256(std::string_view bytes)
{
    constexpr std::string_view k_hex = "0123456789abcdef";
    sha256_ctx context;
    sha256_init(&context);
    sha256_update(&context, bytes.size(), reinterpret_cast<const std::uint8_t*>(bytes.data()));
    std::array<std::uint8_t, SHA256_DIGEST_SIZE> digest{};
    sha256_digest(&context, digest.size(), digest.data());
    std::string text;
    for (const std::uint8_t byte : digest) {
        text += k_hex[byte >> 4U];
        text += k_hex[byte & 0xfU];
    }
    return text;
}

bool is_id(std::string_view text)
{
    const auto is_digit = [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); };
    return text.size() == k_digits && std::all_of(text.begin(), text.end(), is_digit);
}

bool is_valid(const Entry& entry)
{
    return is_inside(entry.path) && is_id(entry.hash) && is_id(entry.pack);
}

std::string id_of(const Manifest& manifest)
{
    std::string text = manifest.root + '\0' + manifest.commit + '\0';
    for (const Entry& entry : manifest.entries) {
        text += entry.executable ? 'x' : '-';
        text += entry.hash;
        text += entry.path;
        text += '\0';
    }
    return sha256(text);
}

std::string to_text(const Manifest& manifest)
{
    return std::string(k_heading) + encoded(manifest);
}

Result<Manifest> manifest_from_text(std::string_view text)
{
    if (text.starts_with(k_heading)) {
        if (auto manifest = decoded<Manifest>(text.substr(k_heading.size()))) {
            return *std::move(manifest);
        }
    }
    return fail(Error::Kind::usage, "not a snapshot of this version of gpuq");
}

const Entry* find(const Manifest& manifest, std::string_view path)
{
    const auto found =
        std::lower_bound(manifest.entries.begin(), manifest.entries.end(), path,
                         [](const Entry& entry, std::string_view key) { return entry.path < key; });
    return found != manifest.entries.end() && found->path == path ? &*found : nullptr;
}

std::string to_json(const Reference& reference)
{
    return document_of({{"snapshot", reference.id}, {"required", reference.required}});
}

Result<Reference> reference_from_json(std::string_view text)
{
    TRY_ASSIGN(const auto document, document_in(text, "snapshot.json"));
    const auto id = text_in(document, "snapshot");
    if (!id || !is_id(*id)) {
        return fail(Error::Kind::usage, "snapshot.json: no snapshot in it");
    }
    return Reference{*id, flag_in(document, "required")};
}

std::string tree_path(std::string_view id)
{
    return fmt::format("{}/{}", k_trees, id);
}

std::string pack_path(std::string_view pack)
{
    return fmt::format("{}/{}", k_packs, pack);
}

std::string latest_path(std::string_view root)
{
    return "snapshots/latest/" + sha256(root);
}

} // namespace gpuq::snapshots
