// SPDX-License-Identifier: GPL-2.0-or-later
#include "tui/update.h"
#include "tui/view.h"

#include "tui/screen_files.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

/// Compares every pane at five sizes with the reviewed text in tests/tui/screens.
namespace gpuq::tui {
namespace {

using namespace std::chrono_literals;

const Time k_screen_time{std::chrono::seconds(1'795'000'012)};

Picture picture()
{
    Picture made;
    made.cluster = "centre";
    made.answer = "yes: 2 k80 in queue calibration (up to 2 h); 3 jobs wait for 5 GPUs";
    made.slurm_at = k_screen_time - std::chrono::seconds(12);
    made.holders = {{"key0", "4711", "train-0", true, k_screen_time - 47min, k_screen_time + 73min},
                    {"key1", "4710", "train-1", true, {}, {}},
                    {"", "4690", "lena", false, k_screen_time - 3h, k_screen_time + 9min}};
    GpuModel k80;
    k80.name = "k80";
    k80.queues = "calibration,gpu";
    k80.total = 8;
    k80.free = 2;
    k80.mine = k80.others = 3;
    k80.nodes = {{"n0",
                  {{Gpu::State::mine, 0, 0.97, 0.61},
                   {Gpu::State::mine, 0, 0.42, 0.6},
                   {Gpu::State::mine, 1, {}, {}},
                   {Gpu::State::others, 2, {}, {}}}},
                 {"n1",
                  {{Gpu::State::others, 2, {}, {}},
                   {Gpu::State::others, -1, {}, {}},
                   {Gpu::State::free, -1, {}, {}},
                   {Gpu::State::free, -1, {}, {}}}}};
    GpuModel a100;
    a100.name = "a100";
    a100.queues = "gpu";
    a100.total = 2;
    a100.free = 0;
    a100.next = k_screen_time + 9min;
    a100.nodes = {{"n2", {{Gpu::State::reserved, -1, {}, {}}, {Gpu::State::down, -1, {}, {}}}}};
    made.gpus = {k80, a100};
    for (int i = 0; i < 7; ++i) {
        RunRow row;
        row.key = fmt::format("key{}", i);
        row.id = fmt::format("{}", 4711 - i);
        row.name = i == 2 ? "größe 最終" : i == 3 ? "🔥 moe" : fmt::format("train-{}", i);
        row.gpus = i == 0 ? "2 k80" : "1";
        row.held = "1 GPU";
        row.queue = "calibration";
        row.time = "47 min / 2 h";
        row.state = i < 4    ? "running"
                    : i == 4 ? "waiting: no GPU is free"
                    : i == 5 ? "failed"
                             : "done";
        row.mark = i < 4    ? RunMark::running
                   : i == 4 ? RunMark::waiting
                   : i == 5 ? RunMark::failed
                            : RunMark::done;
        row.ends = i < 4 ? std::optional(k_screen_time + 73min) : std::nullopt;
        row.active = i < 5;
        row.running = i < 4;
        row.saves = i == 0;
        row.facts = {"runs on n0 since 14:02, until 16:02 (1 h 13 min left)",
                     "python3 train.py --lr 3e-4  (in /home/ada/project)"};
        row.part = i < 4 ? std::optional(0.4) : std::nullopt;
        made.runs.push_back(row);
    }
    return made;
}

Detail detail(const std::string& key)
{
    Detail made;
    made.key = key;
    made.facts = {"progress: step 200 of 500, 3.1 steps/s", "loss: 0.19 at step 200"};
    Curve loss{"train/loss", "", {}, true}, val{"val/loss", "", {}, true};
    Curve busy{"GPUs busy", "%", {}, false};
    for (int i = 0; i < 200; ++i) {
        const Time at = k_screen_time - 400s + i * 2s;
        loss.dots.push_back({static_cast<double>(i), at, 4.0 / (1 + i * 0.1)});
        val.dots.push_back({static_cast<double>(i), at, 4.4 / (1 + i * 0.08)});
        busy.dots.push_back(
            {i * 2.0, at, i % 50 < 5 ? std::nullopt : std::optional(60.0 + i % 40)});
    }
    made.curves = {loss, busy, val};
    made.progress = 0.4;
    made.finish = k_screen_time + 97s;
    made.loss = 0.19;
    made.gpus = {{"n0 GPU 0", "97 % busy, 7.3 of 12.0 GiB", 0.97, 0.61},
                 {"n0 GPU 1", "42 % busy, 7.2 of 12.0 GiB", 0.42, 0.6}};
    made.events = {
        {Event::Kind::waiting, k_screen_time - 50min, k_screen_time - 47min, "job 4711 waiting"},
        {Event::Kind::running, k_screen_time - 47min, k_screen_time, "job 4711 on n0"},
        {Event::Kind::checkpoint, k_screen_time - 30min, {}, "epoch-1.pt"},
        {Event::Kind::idle, k_screen_time - 20min, k_screen_time - 18min, "its GPUs were idle"},
        {Event::Kind::notice, k_screen_time - 18min, {}, "works again"},
        {Event::Kind::checkpoint, k_screen_time - 10min, {}, "epoch-2.pt"}};
    return made;
}

Comparison comparison()
{
    Comparison made;
    made.keys = {"key0", "key1"};
    made.names = {"4711 (train-0)", "4710 (train-1)"};
    made.metrics = {{"loss", {detail("").curves[0], detail("").curves[2]}}};
    report::Table table;
    table.columns = {{"setting", "SETTING"}, {"4711", "4711"}, {"4710", "4710"}};
    table.rows = {{"--lr", "0.1", "0.3"}, {"--batch", "32", "-"}};
    made.tables = {table};
    return made;
}

struct Pane {
    const char* name;
    const char* keys;
};
constexpr Pane k_panes[] = {{"lists", ""},      {"gpus", "1"},    {"log", "\n"},
                            {"curves", "\n]"},  {"uses", "\n]]"}, {"timeline", "3]"},
                            {"compare", "  c"}, {"help", "?"},    {"question", "x"},
                            {"prompt", "+"},    {"command", ":"}, {"filter", "/wait\n"}};
constexpr Resized k_sizes[] = {{10, 40}, {24, 80}, {30, 100}, {40, 120}, {60, 200}};

std::string screen_of(const Pane& pane, Resized size)
{
    Model model;
    update(model, size);
    update(model, Tick{k_screen_time});
    update(model, PictureRead{picture()});
    update(model, DetailRead{detail("key0")});
    update(model, DetailRead{detail("key1")});
    for (const char key : std::string_view(pane.keys)) {
        update(model, key == '\n' ? Key{Special::enter, 0}
                                  : Key{Special::none, static_cast<char32_t>(key)});
    }
    if (model.comparison) {
        update(model, ComparisonRead{comparison()});
    }
    if (model.log) {
        std::string text = "loading \x1b[32mdata\x1b[0m\n\r10%|#   |\r100%|####|\n";
        for (int step = 0; step < 70; ++step) {
            text += fmt::format("step {:3} loss {:.4f} größe 最終 {}\n", step, 4.0 / (1 + step),
                                std::string(60, '.'));
        }
        update(model, LogBytes{"key0", Stream::out, text, true, 5'000'000, ""});
    }
    return view(model).text();
}

TEST(Screens, LookAsTheyDid)
{
    use_utc();
    for (const Pane& pane : k_panes) {
        for (const Resized& size : k_sizes) {
            expect_screen(pane.name, size, screen_of(pane, size));
        }
    }
}

} // namespace
} // namespace gpuq::tui
