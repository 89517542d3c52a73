// SPDX-License-Identifier: GPL-2.0-or-later
#include "checkpoint/json.h"

#include "core/python_json.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <set>

namespace gpuq::checkpoint {
namespace {

using nlohmann::json;

/// Parses a text without building a document, and tracks the position within it.
class Reader : public nlohmann::json_sax<json> {
public:
    bool null() override { return other(); }
    bool boolean(bool) override { return other(); }
    bool number_integer(number_integer_t) override { return other(); }
    bool number_unsigned(number_unsigned_t value) override { return number(value); }
    bool number_float(number_float_t, const string_t&) override { return other(); }
    bool string(string_t& value) override { return word(value); }
    bool binary(binary_t&) override { return other(); }
    bool start_object(std::size_t) override { return begin(); }
    bool end_object() override { return end(); }
    bool start_array(std::size_t) override { return begin(); }
    bool end_array() override { return end(); }
    bool parse_error(std::size_t, const std::string&, const nlohmann::detail::exception&) override
    {
        return false;
    }
    bool key(string_t& name) override
    {
        if (m_depth <= k_kept) {
            m_keys[m_depth - 1] = name;
        }
        return true;
    }

protected:
    /// The number of open objects and arrays.
    std::size_t depth() const { return m_depth; }
    /// The latest key of the object at this depth; the outermost is 1.
    const std::string& key_at(std::size_t level) const { return m_keys[level - 1]; }

    // Each returns false if the text is invalid.
    virtual bool number(std::uint64_t) { return true; }
    virtual bool word(const std::string&) { return true; }
    virtual bool other() { return true; }
    virtual bool begun() { return true; }
    virtual bool ended() { return true; }

private:
    static constexpr std::size_t k_kept = 2;

    bool begin()
    {
        ++m_depth;
        if (m_depth <= k_kept) {
            m_keys[m_depth - 1].clear();
        }
        return begun();
    }
    bool end()
    {
        const bool is_fine = ended();
        --m_depth;
        return is_fine;
    }

    std::size_t m_depth = 0;
    std::string m_keys[k_kept];
};

class Tensors final : public Reader {
public:
    std::uint64_t end() const { return m_end; }

private:
    bool is_offsets() const
    {
        return depth() == 3 && key_at(2) == "data_offsets" && key_at(1) != "__metadata__";
    }
    bool number(std::uint64_t value) override
    {
        if (is_offsets()) {
            m_offsets.push_back(value);
        }
        return !is_offsets() || m_offsets.size() <= 2;
    }
    bool word(const std::string&) override { return !is_offsets(); }
    bool other() override { return !is_offsets(); }
    bool begun() override
    {
        if (depth() == 2) {
            m_offsets.clear();
        }
        return depth() <= 3;
    }
    bool ended() override
    {
        if (depth() != 2 || key_at(1) == "__metadata__") {
            return true;
        }
        if (m_offsets.size() != 2 || m_offsets[0] > m_offsets[1]) {
            return false;
        }
        m_end = std::max(m_end, m_offsets[1]);
        return true;
    }

    std::vector<std::uint64_t> m_offsets; ///< of the current tensor
    std::uint64_t m_end = 0;
};

class Trainer final : public Reader {
public:
    TrainerState state;

private:
    bool number(std::uint64_t value) override
    {
        if (depth() == 1 && key_at(1) == "global_step") {
            state.global_step = value;
        }
        return true;
    }
};

class Index final : public Reader {
public:
    std::set<std::string> files;

private:
    bool word(const std::string& value) override
    {
        if (depth() == 2 && key_at(1) == "weight_map") {
            files.insert(value);
        }
        return true;
    }
};

bool read(std::string_view text, Reader& reader)
{
    return text.starts_with('{') && json::sax_parse(text.begin(), text.end(), &reader);
}

} // namespace

std::optional<std::uint64_t> data_end(std::string_view safetensors_header)
{
    Tensors tensors;
    return read(safetensors_header, tensors) ? std::optional(tensors.end()) : std::nullopt;
}

std::optional<TrainerState> parse_trainer_state(std::string_view text)
{
    Trainer trainer;
    return read(json_of_python(text), trainer) ? std::optional(trainer.state) : std::nullopt;
}

std::optional<std::vector<std::string>> files_of_index(std::string_view text)
{
    Index index;
    if (!read(text, index)) {
        return std::nullopt;
    }
    return std::vector<std::string>(index.files.begin(), index.files.end());
}

} // namespace gpuq::checkpoint
