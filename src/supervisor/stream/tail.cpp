// SPDX-License-Identifier: GPL-2.0-or-later
#include "supervisor/stream/tail.h"

#include <algorithm>
#include <array>

namespace gpuq::supervisor {
namespace {

constexpr std::size_t k_kept = 64 << 10;
constexpr std::size_t k_gpuq_variables = 2 << 10;
constexpr int k_lines = 5;

// PyTorch, CUDA runtime and driver, cuBLAS, HIP, JAX and TensorFlow.
constexpr std::array<std::string_view, 13> k_phrases = {
    "CUDA out of memory",
    "HIP out of memory",
    "torch.OutOfMemoryError",
    "torch.cuda.OutOfMemoryError",
    "CUDA error: out of memory",
    "HIP error: out of memory",
    "CUDA_ERROR_OUT_OF_MEMORY",
    "cudaErrorMemoryAllocation",
    "hipErrorOutOfMemory",
    "CUBLAS_STATUS_ALLOC_FAILED",
    "RESOURCE_EXHAUSTED: Out of memory",
    "ResourceExhaustedError: OOM when allocating",
    "OOM when allocating tensor",
};

void keep(std::string& kept, std::string_view bytes)
{
    if (bytes.size() >= k_kept) {
        kept = bytes.substr(bytes.size() - k_kept);
        return;
    }
    // Rarely, because each cut moves all the data.
    if (kept.size() + bytes.size() > 2 * k_kept) {
        kept.erase(0, kept.size() - (k_kept - bytes.size()));
    }
    kept += bytes;
}

bool speaks_of_memory(std::string_view text)
{
    return std::any_of(k_phrases.begin(), k_phrases.end(), [&](std::string_view phrase) {
        return text.find(phrase) != std::string_view::npos;
    });
}

} // namespace

void Tail::add(Stream stream, std::string_view bytes)
{
    keep(stream == Stream::out ? m_out : m_err, bytes);
}

std::string Tail::last_lines() const
{
    const std::string& all = m_err.empty() ? m_out : m_err;
    std::string_view line = all;
    line = line.substr(line.size() - std::min(line.size(), k_gpuq_variables));
    std::size_t from = line.ends_with('\n') ? line.size() - 1 : line.size();
    for (int lines = 0; lines < k_lines; ++lines) {
        const std::size_t end = from == 0 ? std::string_view::npos : line.rfind('\n', from - 1);
        if (end == std::string_view::npos) {
            return std::string(line);
        }
        from = end;
    }
    return std::string(line.substr(from + 1));
}

bool Tail::has_gpu_out_of_memory() const
{
    return speaks_of_memory(m_err) || speaks_of_memory(m_out);
}

} // namespace gpuq::supervisor
