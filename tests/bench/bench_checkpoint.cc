// A checkpoint of one rank, timed, after everything before it is on disk. Arguments: raw | save |
// load, a folder, MiB. `raw` writes the same bytes to a plain file, to the end of an fsync; `save`
// leaves FOLDER/step-00000001, which `load` opens (that checks every byte) and reads.
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <cstring>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "engine/base/engine_error.h"
#include "engine/checkpoint/checkpoint.h"

namespace ptrain {
namespace {

constexpr std::int64_t kRows = 4096;
constexpr std::int64_t kColumns = 1024;  // 16 MiB a tensor

using State = std::vector<std::vector<float>>;

State make_state(std::int64_t mib, bool filled) {
  State state(static_cast<std::size_t>(mib / 16));
  float value = 0;
  for (std::vector<float>& tensor : state) {
    tensor.resize(kRows * kColumns);
    for (float& element : tensor) element = filled ? value += 0.25f : 1.0f;
  }
  return state;
}

checkpoint::Items items_of(State& state) {
  checkpoint::Items items;
  for (std::size_t i = 0; i < state.size(); ++i)
    items.tensors.push_back({fmt::format("model.layers.{}.weight", i),
                             DType::kFloat32,
                             {kRows, kColumns},
                             0,
                             kRows * kColumns,
                             state[i].data()});
  return items;
}

void write_raw(const std::string& path, const State& state) {
  const int file = open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
  bool good = file >= 0;
  for (const std::vector<float>& tensor : state) {
    const auto bytes = std::as_bytes(std::span(tensor));
    good = good && write(file, bytes.data(), bytes.size()) == static_cast<ssize_t>(bytes.size());
  }
  good = good && fsync(file) == 0;
  close(file);
  if (!good) throw EngineError(ExitCode::kUnusable, "cannot write " + path);
}

void time(std::int64_t mib, const std::function<void()>& work) {
  sync();
  const auto begin = std::chrono::steady_clock::now();
  work();
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
  fmt::print("{{\"mib_s\": {:.0f}}}\n", static_cast<double>(mib) / seconds.count());
}

void check_same(const State& loaded, const State& expected) {
  if (loaded != expected) throw EngineError(ExitCode::kBug, "loaded values differ");
}

void run(const std::string& what, const std::string& folder, std::int64_t mib) {
  const auto world = comm::make_single();
  const std::string target = folder + "/step-00000001";
  State state = make_state(mib, what != "load");
  const checkpoint::Items items = items_of(state);
  if (what == "raw") {
    time(mib, [&] { write_raw(folder + "/raw", state); });
  } else if (what == "save") {
    std::filesystem::remove_all(target);
    time(mib, [&] { checkpoint::save(target, items, *world); });
  } else {
    time(mib, [&] { checkpoint::Source(target, *world).load(items); });
    check_same(state, make_state(mib, true));
  }
  world->close();
}

}  // namespace
}  // namespace ptrain

int main(int argc, char** argv) {
  if (argc != 4) {
    fmt::print(stderr, "usage: bench_checkpoint raw|save|load FOLDER MIB\n");
    return 2;
  }
  try {
    ptrain::run(argv[1], argv[2], std::atoll(argv[3]));
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}\n", error.what());
    return 1;
  }
}
