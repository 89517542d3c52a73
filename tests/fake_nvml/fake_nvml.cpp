// SPDX-License-Identifier: GPL-2.0-or-later
// A libnvidia-ml.so.1 that simulates the GPUs described in a file, for a program that finds it
// through LD_LIBRARY_PATH. GPUQ_FAKE_NVML names the file, which is read when the library is
// initialised. Each line is a rule of KEY=VALUE pairs. If several rules in force have a key, the
// last one applies.
//
//     gpus=8                                 number of GPUs
//     total=12e9 used=3e9 util=87 power=143000 temp=61 sm=875 mem=2505
//     gpu=3 minor=7 pci=9 uuid=GPU-x         for one GPU: its location and its name
//     gpu=0 migs=2                           MIG: its instances are gpu=0:0 and gpu=0:1
//     pcie_tx=1000 pcie_rx=2000 nvlink_tx=5000 nvlink_rx=6000    KiB/s
//     gpm=1 gpm2=45.5 gpm20=12               GPM supported; values of its metrics 2 and 20
//     t=5 ...                                in force after 5 seconds
//     after=3 ...                            in force after 3 queries of the GPU's memory
//     err=15                                 return code of all calls
//     call=PowerUsage err=3                  return code of one call
//     call=PowerUsage hang=60                duration of the call in seconds
//     init=9                                 return code of the initialisation
//     log=PATH                               appends a line for each initialisation
//
// Built with GPUQ_FAKE_OLD, it lacks all functions newer than the Tesla K80.
#include "nvml/nvml.h"

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <list>
#include <map>
#include <mutex>
#include <optional>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#define GPUQ_EXPORT extern "C" __attribute__((visibility("default")))

namespace gpuq::nvml {

struct DeviceHandle {
    std::string id; // 3, or 0:1
    unsigned activities = 0;
};
struct GpmSampleHandle {
    DeviceHandle* device = nullptr;
};

namespace {

using Clock = std::chrono::steady_clock;
using Rule = std::map<std::string, std::string>;

struct Play {
    std::vector<Rule> rules;
    std::list<DeviceHandle> devices;
    Clock::time_point began = Clock::now();
};

Play& play()
{
    static Play the_play;
    return the_play;
}

DeviceHandle* device(const std::string& id)
{
    for (DeviceHandle& each : play().devices) {
        if (each.id == id) {
            return &each;
        }
    }
    return &play().devices.emplace_back(DeviceHandle{id});
}

double seconds()
{
    return std::chrono::duration<double>(Clock::now() - play().began).count();
}

bool has(const Rule& rule, const std::string& key)
{
    return rule.count(key) > 0;
}

bool in_force(const Rule& rule, const DeviceHandle* gpu)
{
    if (has(rule, "gpu") && (!gpu || rule.at("gpu") != gpu->id)) {
        return false;
    }
    if (has(rule, "after") && (!gpu || gpu->activities < std::stoul(rule.at("after")))) {
        return false;
    }
    return !has(rule, "t") || seconds() >= std::stod(rule.at("t"));
}

std::optional<std::string> value(const std::string& key, const DeviceHandle* gpu)
{
    std::optional<std::string> found;
    for (const Rule& rule : play().rules) {
        if (has(rule, key) && !has(rule, "call") && in_force(rule, gpu)) {
            found = rule.at(key);
        }
    }
    return found;
}

double number(const std::string& key, const DeviceHandle* gpu, double otherwise = 0)
{
    const auto text = value(key, gpu);
    return text ? std::stod(*text) : otherwise;
}

/// Applies the rules about errors and delays to a call. Returns its return code.
Return begin(const char* call, const DeviceHandle* gpu)
{
    Return answer = k_success;
    for (const Rule& rule : play().rules) {
        if ((has(rule, "call") && rule.at("call") != call) || !in_force(rule, gpu)) {
            continue;
        }
        if (has(rule, "hang")) {
            std::this_thread::sleep_for(std::chrono::duration<double>(std::stod(rule.at("hang"))));
        }
        if (has(rule, "err")) {
            answer = std::stoi(rule.at("err"));
        }
    }
    return answer;
}

template <typename Number>
Return give(const char* call, const std::string& key, const DeviceHandle* gpu, Number* number_out)
{
    const Return answer = begin(call, gpu);
    if (answer != k_success) {
        return answer;
    }
    if (!value(key, gpu)) {
        return k_not_supported;
    }
    *number_out = static_cast<Number>(number(key, gpu));
    return k_success;
}

unsigned gpus()
{
    return static_cast<unsigned>(number("gpus", nullptr, 1));
}

bool is_mig(const DeviceHandle* gpu)
{
    return gpu->id.find(':') != std::string::npos;
}

std::string uuid_of(const DeviceHandle* gpu)
{
    const std::string name = is_mig(gpu) ? "MIG-" + gpu->id : "GPU-" + gpu->id;
    std::string filled = name + "-fake";
    for (char& c : filled) {
        c = c == ':' ? '.' : c;
    }
    return value("uuid", gpu).value_or(filled);
}

Return give_text(const std::string& text, char* out, unsigned size)
{
    if (text.size() >= size) {
        return k_insufficient_size;
    }
    std::memcpy(out, text.c_str(), text.size() + 1);
    return k_success;
}

std::vector<DeviceHandle*> all_devices()
{
    std::vector<DeviceHandle*> all;
    for (unsigned i = 0; i < gpus(); ++i) {
        DeviceHandle* gpu = device(std::to_string(i));
        all.push_back(gpu);
        for (int part = 0; part < number("migs", gpu); ++part) {
            all.push_back(device(gpu->id + ":" + std::to_string(part)));
        }
    }
    return all;
}

Return start()
{
    Play& now = play();
    now.rules.clear();
    now.devices.clear();
    now.began = Clock::now();
    const char* path = std::getenv("GPUQ_FAKE_NVML");
    std::ifstream file(path ? path : "/dev/null");
    for (std::string line; std::getline(file, line);) {
        Rule rule;
        std::istringstream stream(line.substr(0, line.find('#')));
        for (std::string word; stream >> word;) {
            const std::size_t equals = word.find('=');
            if (equals == std::string::npos) {
                std::fprintf(stderr, "fake NVML: what is %s?\n", word.c_str());
                std::abort();
            }
            rule[word.substr(0, equals)] = word.substr(equals + 1);
        }
        now.rules.push_back(rule);
    }
    if (const auto log = value("log", nullptr)) {
        std::ofstream(*log, std::ios::app) << "init\n";
    }
    const Return answer = begin("Init", nullptr);
    return answer != k_success ? answer : static_cast<Return>(number("init", nullptr));
}

} // namespace

GPUQ_EXPORT Return nvmlInit_v2()
{
    return start();
}

GPUQ_EXPORT Return nvmlDeviceGetCount_v2(unsigned* count)
{
    *count = gpus();
    return begin("Count", nullptr);
}

GPUQ_EXPORT Return nvmlDeviceGetHandleByIndex_v2(unsigned index, Device* out)
{
    *out = device(std::to_string(index));
    return begin("HandleByIndex", *out);
}

GPUQ_EXPORT Return nvmlDeviceGetHandleByUUID(const char* uuid, Device* out)
{
    for (DeviceHandle* each : all_devices()) {
        if (uuid_of(each) == uuid) {
            *out = each;
            return begin("HandleByUUID", each);
        }
    }
    return k_not_found;
}

GPUQ_EXPORT Return nvmlDeviceGetUUID(Device gpu, char* out, unsigned size)
{
    const Return answer = begin("UUID", gpu);
    return answer != k_success ? answer : give_text(uuid_of(gpu), out, size);
}

GPUQ_EXPORT Return nvmlDeviceGetName(Device gpu, char* out, unsigned size)
{
    return give_text(value("model", gpu).value_or("Fake-GPU"), out, size);
}

GPUQ_EXPORT Return nvmlDeviceGetPciInfo_v3(Device gpu, PciInfo* info)
{
    *info = {};
    info->bus = static_cast<unsigned>(number("pci", gpu, std::stod(gpu->id) + 1));
    return begin("PciInfo", gpu);
}

GPUQ_EXPORT Return nvmlDeviceGetMinorNumber(Device gpu, unsigned* minor)
{
    *minor = static_cast<unsigned>(number("minor", gpu, std::stod(gpu->id)));
    return begin("MinorNumber", gpu);
}

GPUQ_EXPORT Return nvmlDeviceGetMemoryInfo(Device gpu, Memory* memory)
{
#ifdef GPUQ_FAKE_OLD
    ++gpu->activities;
#endif
    const Return answer = give("MemoryInfo", "total", gpu, &memory->total);
    memory->used = static_cast<unsigned long long>(number("used", gpu));
    memory->free = memory->total - memory->used;
    return answer;
}

GPUQ_EXPORT Return nvmlDeviceGetUtilizationRates(Device gpu, Utilization* busy)
{
    return is_mig(gpu) ? k_not_supported : give("UtilizationRates", "util", gpu, &busy->gpu);
}

GPUQ_EXPORT Return nvmlDeviceGetPowerUsage(Device gpu, unsigned* milliwatts)
{
    return give("PowerUsage", "power", gpu, milliwatts);
}

GPUQ_EXPORT Return nvmlDeviceGetTemperature(Device gpu, int, unsigned* celsius)
{
    return give("Temperature", "temp", gpu, celsius);
}

GPUQ_EXPORT Return nvmlDeviceGetClockInfo(Device gpu, int clock, unsigned* mhz)
{
    return give("ClockInfo", clock == k_clock_sm ? "sm" : "mem", gpu, mhz);
}

#ifndef GPUQ_FAKE_OLD

GPUQ_EXPORT Return nvmlInitWithFlags(unsigned)
{
    return start();
}

GPUQ_EXPORT Return nvmlDeviceGetMemoryInfo_v2(Device gpu, MemoryV2* memory)
{
    ++gpu->activities;
    if (memory->version != k_memory_v2) {
        return 25;
    }
    memory->used = static_cast<unsigned long long>(number("used", gpu));
    return give("MemoryInfo", "total", gpu, &memory->total);
}

GPUQ_EXPORT Return nvmlDeviceGetPcieThroughput(Device gpu, int counter, unsigned* kib)
{
    return give("PcieThroughput", counter == k_pcie_sent ? "pcie_tx" : "pcie_rx", gpu, kib);
}

GPUQ_EXPORT Return nvmlDeviceGetFieldValues(Device gpu, int count, FieldValue* fields)
{
    for (int i = 0; i < count; ++i) {
        const char* key = fields[i].field == k_nvlink_sent ? "nvlink_tx" : "nvlink_rx";
        double rate = 0;
        fields[i].status = give("FieldValues", key, gpu, &rate);
        fields[i].type = k_type_ulonglong;
        fields[i].value.as_ulonglong = static_cast<unsigned long long>(rate * seconds());
    }
    return k_success;
}

GPUQ_EXPORT Return nvmlDeviceGetMaxMigDeviceCount(Device gpu, unsigned* count)
{
    *count = static_cast<unsigned>(number("migs", gpu));
    return k_success;
}

GPUQ_EXPORT Return nvmlDeviceGetMigDeviceHandleByIndex(Device gpu, unsigned index, Device* out)
{
    *out = device(gpu->id + ":" + std::to_string(index));
    return k_success;
}

GPUQ_EXPORT Return nvmlDeviceGetDeviceHandleFromMigDeviceHandle(Device mig, Device* out)
{
    *out = device(mig->id.substr(0, mig->id.find(':')));
    return k_success;
}

GPUQ_EXPORT Return nvmlDeviceGetGpuInstanceId(Device mig, unsigned* id)
{
    *id = static_cast<unsigned>(std::stoul(mig->id.substr(mig->id.find(':') + 1)));
    return k_success;
}

GPUQ_EXPORT Return nvmlGpmQueryDeviceSupport(Device gpu, GpmSupport* support)
{
    return give("GpmQueryDeviceSupport", "gpm", gpu, &support->supported);
}

GPUQ_EXPORT Return nvmlGpmSampleAlloc(GpmSample* sample)
{
    *sample = new GpmSampleHandle;
    return k_success;
}

GPUQ_EXPORT Return nvmlGpmSampleFree(GpmSample sample)
{
    delete sample;
    return k_success;
}

GPUQ_EXPORT Return nvmlGpmSampleGet(Device gpu, GpmSample sample)
{
    sample->device = gpu;
    return begin("GpmSampleGet", gpu);
}

GPUQ_EXPORT Return nvmlGpmMigSampleGet(Device gpu, unsigned instance, GpmSample sample)
{
    sample->device = device(gpu->id + ":" + std::to_string(instance));
    return begin("GpmSampleGet", sample->device);
}

GPUQ_EXPORT Return nvmlGpmMetricsGet(GpmMetrics* metrics)
{
    DeviceHandle* const gpu = metrics->second->device;
    if (metrics->version != 1 || metrics->first->device != gpu) {
        return k_invalid_argument;
    }
    for (unsigned i = 0; i < metrics->count; ++i) {
        GpmMetric& metric = metrics->metrics[i];
        metric.status =
            give("GpmMetricsGet", "gpm" + std::to_string(metric.id), gpu, &metric.value);
    }
    return k_success;
}

#endif

} // namespace gpuq::nvml
