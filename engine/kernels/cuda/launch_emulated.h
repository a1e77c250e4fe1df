#pragma once

// Part of launch.h, for an ordinary compiler. Blocks and threads run from the last to the first, so
// that a body which counts on their order gives wrong results here too.

#include <array>
#include <cstring>
#include <memory>
#include <vector>

#include "engine/base/device.h"
#include "engine/kernels/cuda/emulated_stream.h"

#define PT_DEVICE

namespace ptrain::kernels {

class Block {
 public:
  Block(std::int64_t index, std::byte* shared) : index_(index), shared_(shared) {}
  std::int64_t index() const { return index_; }

  template <class F>
  void each(std::int64_t n, const F& f) const {
    for (std::int64_t i = n; i-- > 0;) f(i);
  }

  template <class T, class Fold, class Term>
  T fold(std::int64_t n, T start, const Fold& fold, const Term& term) const {
    std::array<T, kThreads> lanes;
    lanes.fill(start);
    for (std::size_t thread = kThreads; thread-- > 0;)
      for (auto i = static_cast<std::int64_t>(thread); i < n; i += kThreads)
        lanes[thread] = fold(lanes[thread], term(i));
    for (std::size_t half = kThreads / 2; half > 0; half /= 2)
      for (std::size_t thread = half; thread-- > 0;)
        lanes[thread] = fold(lanes[thread], lanes[thread + half]);
    return lanes[0];
  }

  template <class T>
  T* shared() const {
    return reinterpret_cast<T*>(shared_);
  }

 private:
  std::int64_t index_;
  std::byte* shared_;
};

// What nothing was written to holds no zeros, as on a GPU, but NaN.
inline constexpr std::byte kUnwritten{0xff};

template <class Body>
void launch(std::int64_t num_blocks, std::int64_t shared_bytes, const Body& body) {
  device::enqueue([=] {
    for (std::int64_t index = num_blocks; index-- > 0;) {
      std::vector<std::byte> shared(static_cast<std::size_t>(shared_bytes), kUnwritten);
      body(Block(index, shared.data()));
    }
  });
}

// Memory that lives until the work that was enqueued in its scope is done.
class Kept {
 public:
  explicit Kept(std::size_t bytes)
      : bytes_(std::make_shared<std::vector<std::byte>>(bytes, kUnwritten)) {}
  ~Kept() {
    device::enqueue([kept = bytes_] {});
  }
  Kept(const Kept&) = delete;
  Kept& operator=(const Kept&) = delete;
  std::byte* data() const { return bytes_->data(); }

 private:
  std::shared_ptr<std::vector<std::byte>> bytes_;
};

template <class T>
class Scratch {
 public:
  explicit Scratch(std::int64_t n) : bytes_(static_cast<std::size_t>(n) * sizeof(T)) {}
  T* data() const { return reinterpret_cast<T*>(bytes_.data()); }

 private:
  Kept bytes_;
};

template <class T>
class Uploaded {
 public:
  explicit Uploaded(std::span<const T> values) : bytes_(values.size_bytes()) {
    std::memcpy(bytes_.data(), values.data(), values.size_bytes());
  }
  const T* data() const { return reinterpret_cast<const T*>(bytes_.data()); }

 private:
  Kept bytes_;
};

inline void clear(const Tensor& tensor) {
  device::enqueue([=] {
    for (std::int64_t row = 0; row < tensor.rows; ++row)
      std::memset(tensor.row_range(row, 1).data, 0,
                  static_cast<std::size_t>(tensor.cols * size_of(tensor.dtype)));
  });
}

template <class T>
T fetch(const T* value) {
  device::synchronize();
  return *value;
}

}  // namespace ptrain::kernels
