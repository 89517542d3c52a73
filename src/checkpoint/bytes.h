// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include "io/descriptor.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace gpuq::checkpoint {

/// Random access to the bytes of one checkpoint file. Reads never exceed the file's size, so that a
/// false size in the file's content can't make gpuq allocate more memory than the file has.
class Bytes {
public:
    explicit Bytes(std::uint64_t size)
        : m_size(size)
    {
    }
    Bytes(const Bytes&) = delete;
    Bytes& operator=(const Bytes&) = delete;
    virtual ~Bytes() = default;

    std::uint64_t size() const { return m_size; }
    /// `count` bytes from `offset`. Nothing if the file has fewer, or can't be read: error() then
    /// has the reason.
    std::optional<std::string> at(std::uint64_t offset, std::uint64_t count);
    /// The first bytes, at most `count`; empty if they can't be read.
    std::string first(std::uint64_t count);
    /// The last bytes, at most `count`; empty if they can't be read.
    std::string last(std::uint64_t count);
    /// An errno, or 0. ESTALE also if the file has become shorter while it was read.
    int error() const { return m_error; }

private:
    /// Returns 0 or an errno.
    virtual int read(std::uint64_t offset, char* to, std::size_t count) = 0;

    std::uint64_t m_size;
    int m_error = 0;
};

/// The bytes of an open file; `file` must outlive the object.
class FileBytes final : public Bytes {
public:
    FileBytes(const Descriptor& file, std::uint64_t size)
        : Bytes(size)
        , m_file(file.get())
    {
    }

private:
    int read(std::uint64_t offset, char* to, std::size_t count) override;

    int m_file;
};

/// The little-endian number in `width` (at most 8) bytes of `text` at `offset`. The range must be
/// within `text`.
std::uint64_t little_endian(std::string_view text, std::size_t offset, std::size_t width);

} // namespace gpuq::checkpoint
