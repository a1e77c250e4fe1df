// Runs a fuzz target without libFuzzer: on every file of the given folders, and on a fixed series
// of damaged copies of each.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace {

void try_input(const std::string& text) {
  LLVMFuzzerTestOneInput(reinterpret_cast<const std::uint8_t*>(text.data()), text.size());
}

std::string damaged(std::string text, std::mt19937_64& random) {
  const std::uint64_t num_changes = 1 + random() % 4;
  for (std::uint64_t i = 0; i < num_changes && !text.empty(); ++i) {
    const std::size_t at = random() % text.size();
    const std::size_t length = random() % std::min<std::size_t>(16, text.size() - at);
    switch (random() % 4) {
      case 0:
        text[at] = static_cast<char>(random());
        break;
      case 1:
        text.erase(at, length);
        break;
      case 2:
        text.insert(at, text.substr(random() % text.size(), length));
        break;
      default:
        text.resize(at);
    }
  }
  return text;
}

}  // namespace

int main(int count, char** arguments) {
  constexpr int kCopies = 100;
  std::mt19937_64 random(1);
  std::vector<std::string> paths;
  for (int i = 1; i < count; ++i) {
    for (const auto& entry : std::filesystem::directory_iterator(arguments[i])) {
      paths.push_back(entry.path().string());
    }
  }
  std::sort(paths.begin(), paths.end());
  for (const std::string& path : paths) {
    std::ifstream file(path, std::ios::binary);
    const std::string text{std::istreambuf_iterator<char>(file), {}};
    try_input(text);
    for (int copy = 0; copy < kCopies; ++copy) try_input(damaged(text, random));
  }
  std::printf("%zu files and %d damaged copies of each\n", paths.size(), kCopies);
  return paths.empty() ? 1 : 0;
}
