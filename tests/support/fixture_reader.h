#pragma once

#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <stdexcept>
#include <string>
#include <vector>

namespace ptrain::test {

// Reads a binary fixture under tests/fixtures/ from front to back: little-endian int64 and float64.
class FixtureReader {
 public:
  explicit FixtureReader(const std::string& name) {
    const char* root = std::getenv("PTRAIN_SOURCE_DIR");
    const std::string path = std::string(root == nullptr ? "." : root) + "/tests/fixtures/" + name;
    file_.open(path, std::ios::binary);
    if (!file_)
      throw std::runtime_error("cannot read " + path +
                               ": run in the source folder or set "
                               "PTRAIN_SOURCE_DIR");
  }
  std::int64_t integer() { return values<std::int64_t>(1)[0]; }
  std::vector<std::int64_t> integers(std::int64_t count) { return values<std::int64_t>(count); }
  std::vector<double> doubles(std::int64_t count) { return values<double>(count); }
  std::string text(std::int64_t size) {
    const auto letters = values<char>(size);
    return {letters.begin(), letters.end()};
  }

 private:
  template <class T>
  std::vector<T> values(std::int64_t count) {
    std::vector<T> result(static_cast<std::size_t>(count));
    file_.read(reinterpret_cast<char*>(result.data()),
               static_cast<std::streamsize>(result.size() * sizeof(T)));
    if (!file_) throw std::runtime_error("the fixture ends early");
    return result;
  }
  std::ifstream file_;
};

}  // namespace ptrain::test
