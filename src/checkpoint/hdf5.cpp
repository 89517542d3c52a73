// SPDX-License-Identifier: GPL-2.0-or-later
// .h5 and .hdf5. The superblock contains the end of the file. It is written when the file is closed
// or flushed, so a file that is long enough may still lack data. Offsets as in the HDF5 File Format
// Specification, version 3.0.
#include "checkpoint/formats.h"

#include <array>

namespace gpuq::checkpoint {
namespace {

using Says = Judgement::Says;

/// Offsets of the needed fields in the superblock of one version, counted from the signature.
struct Layout {
    std::size_t address_width; ///< a byte: the size of an address
    std::size_t addresses;     ///< base address, another address, then the end of the file
};

constexpr std::array k_layouts = {Layout{13, 24}, Layout{13, 28}, Layout{9, 12}, Layout{9, 12}};
constexpr std::size_t k_version = 8;
constexpr std::size_t k_flags = 11; ///< version 3; bit 0: open for writing

bool is_open_for_writing(const std::string& head)
{
    return head[k_version] == 3 && (little_endian(head, k_flags, 1) & 1) != 0;
}

} // namespace

Judgement check_hdf5(Bytes& bytes, std::uint64_t signature)
{
    const auto start = bytes.at(signature, 16);
    if (!start) {
        return incomplete("its HDF5 superblock is cut off");
    }
    const std::uint64_t version = little_endian(*start, k_version, 1);
    if (version >= k_layouts.size()) {
        return {Says::settles, ""}; // newer than this table
    }
    const Layout& layout = k_layouts[version];
    const std::uint64_t width = little_endian(*start, layout.address_width, 1);
    if (width != 2 && width != 4 && width != 8) {
        return incomplete("its HDF5 superblock is invalid");
    }
    const std::size_t at = layout.addresses + 2 * width;
    const auto head = bytes.at(signature, at + width);
    if (!head) {
        return incomplete("its HDF5 superblock is cut off");
    }
    if (is_open_for_writing(*head)) {
        return incomplete("its HDF5 superblock shows that it was not closed");
    }
    // An undefined address is all ones: larger than any file.
    if (little_endian(*head, at, width) > bytes.size()) {
        return incomplete("it is shorter than its HDF5 superblock specifies");
    }
    return {Says::settles, ""};
}

} // namespace gpuq::checkpoint
