// SPDX-License-Identifier: GPL-2.0-or-later
#pragma once

#include <cstdint>
#include <string>
#include <vector>

/// Checkpoint files as programs write them, byte by byte.
namespace gpuq::checkpoint {

/// `value` as `width` bytes, little-endian.
inline std::string little(std::uint64_t value, std::size_t width)
{
    std::string text;
    for (std::size_t at = 0; at < width; ++at, value >>= 8) {
        text += static_cast<char>(value & 0xff);
    }
    return text;
}

struct Member {
    std::string name;
    std::string data;
};

enum class Zip64 { no, yes };

/// A zip archive of stored (uncompressed) files, as written by torch.save (with zip64 records) and
/// numpy.
inline std::string zip_of(const std::vector<Member>& members, Zip64 zip64 = Zip64::no,
                          const std::string& comment = "")
{
    std::string files;
    std::string table;
    for (const Member& member : members) {
        const std::string sizes =
            little(0, 4) + little(member.data.size(), 4) + little(member.data.size(), 4);
        const std::string offset = little(files.size(), 8);
        const bool is_wide = zip64 == Zip64::yes;
        const std::string extra = is_wide ? little(1, 2) + little(8, 2) + offset : "";
        files += "PK\3\4" + little(20, 2) + little(0, 8) + sizes + little(member.name.size(), 2) +
                 little(0, 2) + member.name + member.data;
        table += "PK\1\2" + little(20, 2) + little(20, 2) + little(0, 8) + sizes +
                 little(member.name.size(), 2) + little(extra.size(), 2) + little(0, 10) +
                 (is_wide ? little(0xffffffff, 4) : offset.substr(0, 4)) + member.name + extra;
    }
    const std::string count = little(members.size(), 8);
    const std::string size = little(table.size(), 8);
    const std::string offset = little(files.size(), 8);
    std::string ends;
    if (zip64 == Zip64::yes) {
        ends = "PK\6\6" + little(44, 8) + little(45, 2) + little(45, 2) + little(0, 8) + count +
               count + size + offset + "PK\6\7" + little(0, 4) +
               little(files.size() + table.size(), 8) + little(1, 4);
    }
    ends += "PK\5\6" + little(0, 4) + count.substr(0, 2) + count.substr(0, 2) + size.substr(0, 4) +
            offset.substr(0, 4) + little(comment.size(), 2) + comment;
    return files + table + ends;
}

inline std::string torch_file()
{
    return zip_of({{"model/data.pkl", std::string("\x80\2}q.", 5)},
                   {"model/data/0", std::string(64, '\1')},
                   {"model/version", "3\n"}},
                  Zip64::yes);
}

/// An .npz file; more `data` makes it longer.
inline std::string npz_file(const std::string& data = "0123456789")
{
    return zip_of({{"weights.npy", data}, {"step.npy", "7"}});
}

inline std::string safetensors_file(const std::string& header, std::size_t bytes)
{
    return little(header.size(), 8) + header + std::string(bytes, '\2');
}

inline std::string safetensors_file()
{
    return safetensors_file(R"({"__metadata__":{"format":"pt","data_offsets":"[9,9]"},)"
                            R"("a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},)"
                            R"("b":{"dtype":"F32","shape":[3],"data_offsets":[8,20]}}  )",
                            20);
}

inline std::string npy_file(const std::string& descr, const std::string& shape, std::size_t bytes)
{
    const std::string header =
        "{'descr': " + descr + ", 'fortran_order': False, 'shape': " + shape + ", }     \n";
    return "\x93NUMPY" + little(1, 2) + little(header.size(), 2) + header +
           std::string(bytes, '\3');
}

/// An HDF5 file of `size` bytes with a superblock of this version.
inline std::string hdf5_file(int version, std::size_t size)
{
    const std::string addresses = little(0, 8) + little(~0ULL, 8) + little(size, 8);
    std::string file("\x89HDF\r\n\x1a\n", 8);
    if (version < 2) {
        file += little(static_cast<std::uint64_t>(version), 5) + little(8, 1) + little(8, 1) +
                little(0, version == 0 ? 9 : 13) + addresses;
    } else {
        file += little(static_cast<std::uint64_t>(version), 1) + little(8, 1) + little(8, 1) +
                little(0, 1) + addresses;
    }
    file.resize(size, '\4');
    return file;
}

inline std::string old_torch_file()
{
    return std::string("\x80\x02\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19.\x80\2}q", 19) +
           std::string(40, '\0');
}

} // namespace gpuq::checkpoint
