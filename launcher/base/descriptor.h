#pragma once

#include <unistd.h>

namespace ptrain::base {

// An open file, closed on every way out; below 0: none.
class Descriptor {
 public:
  explicit Descriptor(int value) : value_(value) {}
  ~Descriptor() {
    if (is_open()) ::close(value_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int get() const { return value_; }
  bool is_open() const { return value_ >= 0; }

 private:
  int value_;
};

}  // namespace ptrain::base
