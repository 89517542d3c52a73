// SPDX-License-Identifier: GPL-2.0-or-later
#include "wire/remote_frame.h"

#include <algorithm>
#include <utility>

namespace gpuq::wire::remote {
namespace {

constexpr std::string_view k_hex = "0123456789abcdef";

} // namespace

bool is_session_name(std::string_view text)
{
    return text.size() == k_session_digits && std::all_of(text.begin(), text.end(), [](char c) {
               return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
           });
}

std::string escape_argument(std::string_view bytes)
{
    std::string text;
    for (const char byte : bytes) {
        const auto value = static_cast<unsigned char>(byte);
        text += k_hex[value >> 4U];
        text += k_hex[value & 0xfU];
    }
    return text;
}

std::optional<std::string> unescape_argument(std::string_view text)
{
    std::string bytes;
    if (text.size() % 2 != 0 || text.size() > k_longest_argument) {
        return std::nullopt;
    }
    for (std::size_t i = 0; i < text.size(); i += 2) {
        const std::size_t high = k_hex.find(text[i]), low = k_hex.find(text[i + 1]);
        if (high == std::string_view::npos || low == std::string_view::npos) {
            return std::nullopt;
        }
        bytes += static_cast<char>(high << 4U | low);
    }
    return bytes;
}

std::string output_header(Stream stream, std::uint64_t offset, std::size_t size)
{
    std::string header = encode(Output{stream, offset, {}});
    set_payload_size(header, header.size() - k_header + size);
    return header;
}

std::string encode(const Frame& frame)
{
    return std::visit([](const auto& each) { return encoded_frame(each); }, frame);
}

bool OutputDecoder::has(std::size_t size, std::string_view& bytes)
{
    const std::size_t lacks = size - std::min(size, m_begun.size());
    m_begun += bytes.substr(0, lacks);
    bytes.remove_prefix(std::min(lacks, bytes.size()));
    return m_begun.size() >= size;
}

Result<Came> OutputDecoder::take(std::string_view& bytes)
{
    constexpr std::size_t k_before_bytes = k_header + 1 + sizeof(std::uint64_t);
    if (m_broken) {
        return m_whole.next().error();
    }
    while (!bytes.empty()) {
        if (m_left > 0) {
            const OutputBytes output{m_stream, m_offset, bytes.substr(0, m_left)};
            bytes.remove_prefix(output.bytes.size());
            m_offset += output.bytes.size();
            m_left -= output.bytes.size();
            return Came(output);
        }
        if (!has(k_header, bytes)) {
            break;
        }
        // An impossible size or stream is passed to the Decoder, which reports the error.
        const std::size_t size = k_header + payload_size(m_begun);
        const bool too_large = size > k_header + k_max_payload;
        const bool is_output =
            m_begun[0] == static_cast<char>(Output::k_type) && size > k_before_bytes && !too_large;
        if (!too_large && !has(is_output ? k_before_bytes : size, bytes)) {
            break;
        }
        if (is_output) {
            ValueReader in(std::string_view(m_begun).substr(k_header));
            in.get(m_stream);
            in.get(m_offset);
            if (in.ok()) {
                m_left = size - k_before_bytes;
                m_begun.clear();
                continue;
            }
            m_begun.resize(size);
        }
        m_whole.feed(std::exchange(m_begun, {}));
        auto frame = m_whole.next();
        m_broken = !frame;
        if (m_broken) {
            return std::move(frame).error();
        }
        if (*frame) {
            return Came(**std::move(frame));
        }
    }
    return Came();
}

Result<std::optional<std::string>> Greeting::feed(std::string_view bytes)
{
    // The marker can only be in the new bytes, or begin at the end of the old ones.
    const std::size_t from = m_text.size() - std::min(m_text.size(), k_marker.size());
    m_text += bytes;
    const std::size_t found = m_text.find(k_marker, from);
    if (found != std::string::npos) {
        std::string rest = m_text.substr(found + k_marker.size());
        m_text.resize(found);
        return std::optional(std::move(rest));
    }
    if (m_text.size() > k_most_greeting) {
        return fail(Error::Kind::internal, "the remote program is not gpuq");
    }
    return std::optional<std::string>();
}

} // namespace gpuq::wire::remote

template class gpuq::wire::FrameDecoder<gpuq::wire::remote::Frame>;
