#pragma once

#include <cstdint>
#include <span>

namespace ptrain::data {

// A run of an index's tokens, of 2 or 4 bytes each; a view.
class Tokens {
 public:
  explicit Tokens(std::span<const std::uint16_t> tokens)
      : narrow_(tokens.data()), size_(std::ssize(tokens)) {}
  explicit Tokens(std::span<const std::uint32_t> tokens)
      : wide_(tokens.data()), size_(std::ssize(tokens)) {}

  std::int64_t size() const { return size_; }
  std::uint32_t operator[](std::int64_t i) const {
    return narrow_ != nullptr ? std::uint32_t{narrow_[i]} : wide_[i];
  }

 private:
  const std::uint16_t* narrow_ = nullptr;
  const std::uint32_t* wide_ = nullptr;
  std::int64_t size_ = 0;
};

}  // namespace ptrain::data
