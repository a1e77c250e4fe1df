// A checkpoint of one rank, timed, after everything before it is on disk. Arguments: raw | save |
// behind | load | raw_load, a folder, MiB. `raw` writes the same bytes to a plain file, to the end
// of an fsync; `save` and `behind` leave FOLDER/step-00000001, which `load` opens (that checks
// every byte) and reads; `raw_load` reads as many bytes of the file of `raw` into the same memory
// on as many threads, and nothing else. Of `behind` only what training waits for is timed: the copy
// and the agreements.
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "engine/base/device.h"
#include "engine/base/engine_error.h"
#include "engine/checkpoint/checkpoint.h"
#include "engine/checkpoint/copy.h"
#include "engine/checkpoint/file.h"
#include "engine/checkpoint/saving.h"
#include "engine/checkpoint/share_out.h"

namespace ptrain {
namespace {

constexpr std::int64_t kRows = 4096;
constexpr std::int64_t kColumns = 1024;  // 16 MiB a tensor

// A tensor in memory as the engine's are.
class Values {
 public:
  Values() : data_(static_cast<float*>(device::allocate(kSize * 4)), device::release) {}
  static constexpr std::int64_t kSize = kRows * kColumns;
  std::span<float> span() const { return {data_.get(), kSize}; }

 private:
  std::unique_ptr<float, decltype(&device::release)> data_;
};
using State = std::vector<Values>;

State make_state(std::int64_t mib, bool filled) {
  State state(static_cast<std::size_t>(mib / 16));
  float value = 0;
  for (const Values& tensor : state)
    for (float& element : tensor.span()) element = filled ? value += 0.25f : 1.0f;
  return state;
}

checkpoint::Items items_of(State& state) {
  checkpoint::Items items;
  for (std::size_t i = 0; i < state.size(); ++i)
    items.tensors.push_back({fmt::format("model.layers.{}.weight", i),
                             DType::kFloat32,
                             {kRows, kColumns},
                             0,
                             Values::kSize,
                             state[i].span().data()});
  return items;
}

void write_raw(const std::string& path, const State& state) {
  const int file = open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
  bool good = file >= 0;
  for (const Values& tensor : state) {
    const auto bytes = std::as_bytes(tensor.span());
    good = good && write(file, bytes.data(), bytes.size()) == static_cast<ssize_t>(bytes.size());
  }
  good = good && fsync(file) == 0;
  close(file);
  if (!good) throw EngineError(ExitCode::kUnusable, "cannot write " + path);
}

void read_raw(const std::string& path, const State& state, int threads) {
  const checkpoint::InFile file(path);
  checkpoint::share_out(state.size(), threads, [&](std::size_t i) {
    const auto bytes = std::as_writable_bytes(state[i].span());
    file.read(static_cast<std::int64_t>(i * bytes.size()), bytes);
  });
}

double cpu_seconds() {
  rusage used{};
  getrusage(RUSAGE_SELF, &used);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
  };
  return seconds(used.ru_utime) + seconds(used.ru_stime);
}

// What several pieces of work took.
class Stopwatch {
 public:
  void time(const std::function<void()>& work) {
    const auto begin = std::chrono::steady_clock::now();
    const double cpu = cpu_seconds();
    work();
    cpu_s_ += cpu_seconds() - cpu;
    wall_s_ += std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  }
  void print() const { fmt::print("{{\"s\": {:.4f}, \"cpu_s\": {:.4f}}}\n", wall_s_, cpu_s_); }

 private:
  double wall_s_ = 0, cpu_s_ = 0;
};

void time(const std::function<void()>& work) {
  sync();
  Stopwatch watch;
  watch.time(work);
  watch.print();
}

// Twice, since the first copy is not what a run's saves are like; the second is told.
void save_behind(const std::string& target, const checkpoint::Items& items,
                 comm::Communicator& world) {
  std::vector<std::byte> memory(static_cast<std::size_t>(checkpoint::copy_bytes(items)));
  for (const bool told : {false, true}) {
    std::filesystem::remove_all(target);
    sync();
    Stopwatch watch;
    std::optional<checkpoint::Saving> saving;
    watch.time([&] {
      checkpoint::Items copy = items;
      checkpoint::copy_tensors(copy, memory, checkpoint::threads_of_rank(world));
      saving.emplace(target, std::move(copy), world, checkpoint::ItemsOf{});
    });
    bool published = false;
    while (!published) {
      std::thread([&] { saving->work(); }).join();
      watch.time([&] { published = saving->agree(); });
    }
    if (told) watch.print();
  }
}

void check_same(const State& loaded, const State& expected) {
  if (!std::ranges::equal(loaded, expected, [](const Values& a, const Values& b) {
        return std::ranges::equal(a.span(), b.span());
      }))
    throw EngineError(ExitCode::kBug, "loaded values differ");
}

void measure(const std::string& what, const std::string& folder, std::int64_t mib) {
  const auto world = comm::make_single();
  const std::string target = folder + "/step-00000001";
  State state = make_state(mib, what != "load" && what != "raw_load");
  const checkpoint::Items items = items_of(state);
  if (what == "raw") {
    time([&] { write_raw(folder + "/raw", state); });
  } else if (what == "raw_load") {
    time([&] { read_raw(folder + "/raw", state, checkpoint::threads_of_rank(*world)); });
    check_same(state, make_state(mib, true));
  } else if (what == "save") {
    std::filesystem::remove_all(target);
    time([&] { checkpoint::save(target, items, *world); });
  } else if (what == "behind") {
    save_behind(target, items, *world);
  } else {
    time([&] { checkpoint::Source(target, *world, checkpoint::Check::kWhileLoading).load(items); });
    check_same(state, make_state(mib, true));
  }
  world->close();
}

}  // namespace
}  // namespace ptrain

int main(int argc, char** argv) {
  if (argc != 4) {
    fmt::print(stderr, "usage: bench_checkpoint raw|save|behind|load|raw_load FOLDER MIB\n");
    return 2;
  }
  try {
    ptrain::measure(argv[1], argv[2], std::atoll(argv[3]));
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}\n", error.what());
    return 1;
  }
}
