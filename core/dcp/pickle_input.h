#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace ptrain::dcp {

// The bytes of a pickle, front to back. The first thing wrong is kept, and every later step yields
// nothing.
class PickleInput {
 public:
  explicit PickleInput(std::span<const std::byte> bytes)
      : bytes_(reinterpret_cast<const char*>(bytes.data()), bytes.size()) {}

  bool ok() const { return error_.empty(); }
  const std::string& error() const { return error_; }
  void refuse(std::string_view why);

  std::size_t size() const { return bytes_.size(); }
  std::string_view take(std::uint64_t count) {
    if (count > bytes_.size() - position_ || !ok()) return missing(count);
    position_ += count;
    return bytes_.substr(position_ - count, count);
  }
  // Without its end.
  std::string_view line();
  // Little-endian, of up to eight bytes.
  std::uint64_t number(int bytes);
  // A line of decimal digits.
  std::uint64_t line_number();

 private:
  std::string_view missing(std::uint64_t count);

  std::string_view bytes_;
  std::size_t position_ = 0;
  std::string error_;
};

}  // namespace ptrain::dcp
